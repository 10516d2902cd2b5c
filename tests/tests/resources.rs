//! What the compiler says of kernels that are measured elsewhere: of the benchmarks, that none loses occupancy or gains a spill but those
//! listed; of the experiments with hardware state, that there is nothing to complain of.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr_harness::fixtures::{self, workspace};
use cuinstr_harness::nvcc::{EXACT_ARCH, Nvcc};
use cuinstr_harness::resource::{self, Row};
use cuinstr_harness::unit::Unit;
use cuinstr_harness::variant;
use cuinstr_trial::ignore;
use cuinstr_trial::or_ignore;
use rayon::prelude::*;

/// The release that `scripts/fetch-cuda` fetches.
const RELEASE: &str = "13.0";

#[test]
fn a_compiler_that_is_found_names_its_release() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    assert!(nvcc.release.split('.').all(|part| part.parse::<u32>().is_ok()), "{}", nvcc.release);
}

#[test]
fn no_benchmark_loses_occupancy_or_gains_a_spill_but_those_listed() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    // Every release of the compiler hands out registers in its own way, and the list is one release's.
    if nvcc.release != RELEASE {
        ignore(format!("the list is of nvcc {RELEASE}, and this is {}", nvcc.release));
    }
    let benchmarks = fixtures::benchmarks().unwrap_or_else(|errors| panic!("{errors}"));
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let variants = [variant::PLAIN, variant::DEFAULT];
    let rows = resource::measure(&nvcc, &benchmarks, &variants, jobs).unwrap_or_else(|errors| panic!("{errors}"));

    let regressions: Vec<String> = rows.iter().flat_map(|row: &Row| row.regressions(variant::DEFAULT)).collect();
    let listed = std::fs::read_to_string(workspace().join(resource::ACCEPTED)).expect("a file of the repository");
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        resource::accepted_text(&regressions).lines().collect::<Vec<_>>(),
        "{} lists (left) other losses than there are (right): `scripts/poll-bench --resources --accept` writes it",
        resource::ACCEPTED
    );
    // What the latency of a stop is measured on; fewer blocks in the file's `long: grid` make it right.
    assert_eq!(resource::not_resident(&rows), Vec::<String>::new());
}

#[test]
fn every_experiment_with_hardware_state_compiles() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let experiments = fixtures::experiments().unwrap_or_else(|errors| panic!("{errors}"));
    let failed: Vec<String> = experiments
        .par_iter()
        .filter_map(|fixture| {
            let compiled = Unit::plain(fixture).and_then(|unit| unit.nvcc(&nvcc, &["-cubin", &format!("-arch={EXACT_ARCH}")]));
            compiled
                .map_or_else(Some, |compiled| (!compiled.accepted).then_some(compiled.said))
                .map(|why| format!("{}: {why}", fixture.name))
        })
        .collect();
    assert_eq!(failed, Vec::<String>::new());
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
