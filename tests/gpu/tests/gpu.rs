//! The cases of the GPU harness as tests. Without nvcc or a GPU each shows as ignored with the reason, or fails where
//! `CUINSTR_REQUIRE` names what is missing.

use cuinstr_gpu_tests::case::{self, Case};
use cuinstr_gpu_tests::launcher;
use cuinstr_gpu_tests::prepare::{self, Plan};
use cuinstr_gpu_tests::results::Status;
use cuinstr_gpu_tests::supervise::Supervisor;
use cuinstr_harness::fixtures::{self, workspace};
use cuinstr_harness::nvcc::{ARCH, Nvcc};
use cuinstr_harness::variant;
use cuinstr_trial::required;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Cases measure times, and a context takes a third of a second of the one GPU.
    arguments.test_threads = Some(1);
    let fixtures = match fixtures::all() {
        Ok(fixtures) => fixtures,
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::FAILURE;
        }
    };
    let missing = missing();
    let trials = case::all(&fixtures).into_iter().map(|case| {
        let missing = missing.clone();
        Trial::ignorable_test(case.name.clone(), move || match missing {
            // A GPU without a compiler runs no test either.
            Some((what, reason)) if required(what) || required("gpu") => Err(format!("CUINSTR_REQUIRE asks for it, but {reason}").into()),
            Some((_, reason)) => Ok(Completion::ignored_with(reason)),
            None => run(&case),
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// What this machine lacks, and why.
fn missing() -> Option<(&'static str, String)> {
    let nvcc = Nvcc::find().err().map(|why| ("nvcc", why));
    nvcc.or_else(|| launcher::present().err().map(|why| ("gpu", why)))
}

fn run(case: &Case) -> Result<Completion, Failed> {
    static PREPARED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let folder = PREPARED.get_or_init(|| {
        let folder = workspace().join(".gpu");
        let jobs = std::thread::available_parallelism().map_or(2, usize::from);
        let arch = ARCH;
        let plan = Plan { folder: folder.clone(), fixtures: fixtures::all()?, variants: variant::of, arch, jobs, verbose: false };
        prepare::prepare(&Nvcc::find()?, &plan).map(|_| folder)
    });
    let supervisor = Supervisor {
        program: env!("CARGO_BIN_EXE_gpu-run").into(),
        folder: folder.clone()?,
        jobs: 1,
        deadline: Instant::now() + Duration::from_secs(3600),
        verbose: false,
    };
    let results = supervisor.run(std::slice::from_ref(case));
    match results.first() {
        Some(result) if result.status == Status::Pass => Ok(Completion::Completed),
        Some(result) => Err(result.notes.join("\n").into()),
        None => Err("the case was not run".into()),
    }
}
