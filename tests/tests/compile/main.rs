//! Rewritten code goes through the real compilers: every kernel without a warning, the control block's layout, lines and names as the
//! user wrote them, linking. Without nvcc each test shows as ignored with the reason, or fails where `CUINSTR_REQUIRE` names it.

mod attacks;
mod counters;
mod cycles;
mod image;
mod kernels;
mod layout;
mod libraries;
mod lines;
mod link;
mod nvrtc;
mod shapes;
mod shared;
mod shared_prelude;
mod standards;
mod twins;
mod unrolled;
mod verify;

use cuinstr::options::Options;
use cuinstr_harness::fixtures::{self, Fixture};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::unit::{Compiled, Nvrtc, STRICT, Unit};
use cuinstr_trial::or_ignore;
use cuinstr_trial::trial;
use libtest_mimic::Arguments;
use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};

/// What every test is given.
struct Tools {
    nvcc: Nvcc,
    nvrtc: Result<Nvrtc, String>,
    fixtures: Vec<Fixture>,
    /// What nvcc made of fixtures, so that tests which ask different things of one PTX compile it once.
    compiled: Mutex<HashMap<String, Shared>>,
}

/// The one compilation of several tests.
type Shared = Arc<OnceLock<Result<Compiled, String>>>;

impl Tools {
    /// What nvcc makes of a fixture, rewritten or as it is, with every warning on and lines in it; for the fixture's own architecture, but for no
    /// older one than `sm_90`, unless the arguments name one.
    fn ptx(&self, name: &str, options: Option<&Options>, args: &[&str]) -> Result<Compiled, String> {
        let fixture = self.fixture(name)?;
        let arch = format!("-arch=sm_{}", fixture.header.min_arch.max(90));
        let mut all = [STRICT, &["-ptx"]].concat();
        if !args.contains(&"-G") {
            all.push("-lineinfo");
        }
        if !args.iter().any(|arg| arg.starts_with("-arch")) {
            all.push(&arch);
        }
        all.extend(args);
        let shared = {
            let mut compiled = self.compiled.lock().map_err(|_| "another test panicked")?;
            Arc::clone(compiled.entry(format!("{name} {options:?} {all:?}")).or_default())
        };
        let compile = || {
            let plain = Unit::plain(fixture)?;
            let unit = options.map_or_else(|| Ok(plain.clone()), |options| plain.rewrite(options))?;
            unit.nvcc(&self.nvcc, &all)
        };
        shared.get_or_init(compile).clone()
    }

    /// The fixture of that name.
    fn fixture(&self, name: &str) -> Result<&Fixture, String> {
        self.fixtures.iter().find(|fixture| fixture.name == name).ok_or_else(|| format!("no kernel is called {name}"))
    }
}

type Check = Box<dyn FnOnce(&Tools) -> Result<(), String> + Send>;

/// The tests by name.
#[derive(Default)]
struct Checks {
    list: Vec<(String, Check)>,
}

impl Checks {
    fn add(&mut self, name: impl Into<String>, check: impl FnOnce(&Tools) -> Result<(), String> + Send + 'static) {
        self.list.push((name.into(), Box::new(check)));
    }
}

/// Whether all cases are asked for: else those that repeat others in a further form are a slice.
fn sweeps() -> bool {
    std::env::var_os("CUINSTR_SWEEP").is_some()
}

/// What a test that repeats another one in a further form runs on: each fifth item, or all if `CUINSTR_SWEEP` is set.
fn slice<T>(items: &[T]) -> impl Iterator<Item = &T> {
    items.iter().step_by(if sweeps() { 1 } else { 5 })
}

/// Each of the first with each of the second if `CUINSTR_SWEEP` is set; else each of both at least once, in pairs.
fn pairs<A: Clone, B: Clone>(first: &[A], second: &[B]) -> Vec<(A, B)> {
    let pair = |index: usize| (first[index % first.len()].clone(), second[index % second.len()].clone());
    if sweeps() {
        return first.iter().flat_map(|one| second.iter().map(|other| (one.clone(), other.clone()))).collect();
    }
    (0..first.len().max(second.len())).map(pair).collect()
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One nvcc keeps one core busy; CI has two.
    arguments.test_threads = arguments.test_threads.or(Some(2));
    let (fixtures, benchmarks) = match (fixtures::all(), fixtures::benchmarks()) {
        (Ok(fixtures), Ok(benchmarks)) => (fixtures, benchmarks),
        (Err(errors), _) | (_, Err(errors)) => {
            eprintln!("{errors}");
            return ExitCode::FAILURE;
        }
    };
    let mut checks = Checks::default();
    for add in [
        attacks::add,
        kernels::add,
        image::add,
        nvrtc::add,
        layout::add,
        lines::add,
        link::add,
        shapes::add,
        standards::add,
        twins::add,
        counters::add,
        cycles::add,
        shared::add,
        shared_prelude::add,
        unrolled::add,
        verify::add,
        libraries::add,
    ] {
        add(&fixtures, &mut checks);
    }
    verify::add_sweep(fixtures.iter().chain(&benchmarks), &mut checks);
    let tools = Nvcc::find().map(|nvcc| {
        let fixtures = fixtures.into_iter().chain(benchmarks).collect();
        let nvrtc = Nvrtc::of(&nvcc, Path::new(env!("CARGO_BIN_EXE_nvrtc-compile")));
        Arc::new(Tools { nvcc, nvrtc, fixtures, compiled: Mutex::default() })
    });
    let trials = checks.list.into_iter().map(|(name, check)| {
        let tools = tools.clone();
        trial(name, move || {
            let tools = or_ignore("nvcc", tools);
            check(&tools)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
