//! What polls cost on a GPU: benchmarks timed plain and rewritten in turn, and cancelled at random instants.
//!
//! [`prepare`] compiles them on the build machine. On the machine with the GPU [`crate::crew`] has child processes
//! measure them one after the other. So a kernel that hangs loses only its own figures. [`page`] shows what came out.

pub mod buffers;
pub mod measure;
pub mod page;
pub mod result;

use cuinstr_gpu_tests::prepare::{self, Plan, Prepared};
use cuinstr_harness::fixtures::{self, Fixture};
use cuinstr_harness::nvcc::{ARCH, Nvcc};
use cuinstr_harness::variant::{self, Variant};
use std::path::Path;

/// Sound kernels that the measurements use themselves.
const HELPERS: [&str; 2] = ["probe/compare", "probe/count_steps"];

/// Compiles each benchmark whose name contains one of these words, or every one if there are none, in each of its builds into a folder.
///
/// # Errors
/// If a header is wrong, or the folder can't be written. Builds that fail are in the manifest.
pub fn prepare(nvcc: &Nvcc, folder: &Path, only: &[String], jobs: usize) -> Result<Prepared, String> {
    let mut fixtures = fixtures::benchmarks()?;
    fixtures.retain(|fixture| only.is_empty() || only.iter().any(|word| fixture.name.contains(word.as_str())));
    fixtures.extend(fixtures::all()?.into_iter().filter(|fixture| HELPERS.contains(&fixture.name.as_str())));
    prepare::prepare(nvcc, &Plan { folder: folder.to_owned(), fixtures, variants, arch: ARCH, jobs, verbose: true })
}

fn variants(fixture: &Fixture) -> Vec<Variant> {
    if HELPERS.contains(&fixture.name.as_str()) { vec![variant::PLAIN, variant::DEFAULT] } else { variant::COLUMNS.to_vec() }
}
