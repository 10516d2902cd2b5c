//! Builds all kernels, plain and rewritten, into `.gpu/`, which then travels to a machine with a GPU.

use clap::Parser;
use cuinstr_gpu_tests::manifest::Manifest;
use cuinstr_gpu_tests::prepare::{self, Plan};
use cuinstr_harness::fixtures::{self, Fixture, workspace};
use cuinstr_harness::nvcc::{ARCH, Nvcc};
use cuinstr_harness::variant;
use std::path::PathBuf;
use std::process::ExitCode;

/// Builds all kernels, plain and rewritten, into a folder that travels to a machine with a GPU.
#[derive(Parser)]
struct Arguments {
    /// Folder to fill [default: .gpu in the workspace].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Compilations at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only kernels whose name contains this; the manifest then holds no others.
    #[arg(long)]
    only: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let folder = arguments.out.unwrap_or_else(|| workspace().join(".gpu"));
    let wanted = |fixture: &Fixture| arguments.only.is_empty() || arguments.only.iter().any(|only| fixture.name.contains(only.as_str()));
    let prepared = fixtures::all().and_then(|fixtures| {
        let fixtures = fixtures.into_iter().filter(wanted).collect();
        let plan = Plan { folder: folder.clone(), fixtures, variants: variant::of, arch: ARCH, jobs: arguments.jobs, verbose: true };
        prepare::prepare(&Nvcc::find()?, &plan)
    });
    match prepared {
        Ok(prepared) => {
            report_failures(&folder);
            let megabytes = prepared.bytes.div_ceil(1 << 20);
            println!(
                "{} builds in {} ({} compiled now, {megabytes} MB), {} failed",
                prepared.builds,
                folder.display(),
                prepared.compiled,
                prepared.failed
            );
            if prepared.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("gpu-prepare: {error}");
            ExitCode::from(2)
        }
    }
}

/// One paragraph a kernel: the first reason, and the builds that it keeps away.
fn report_failures(folder: &std::path::Path) {
    let Ok(manifest) = Manifest::read(folder) else { return };
    for subject in manifest.subjects.iter().filter(|subject| !subject.failures.is_empty()) {
        let names: Vec<&str> = subject.failures.keys().map(String::as_str).collect();
        let why = subject.failures.values().next().map_or("", String::as_str);
        eprintln!("{}: no build {}\n  {}", subject.fixture.name, names.join(", "), why.replace('\n', "\n  "));
    }
}
