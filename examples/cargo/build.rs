//! Compiles the CUDA sources: a static library that this crate calls, and PTX that it carries for a launch with `cuinstr-runtime`.

use cuinstr::build::{Build, Image};
use std::time::Duration;

fn main() {
    let mut build = Build::new();
    build.include("cuda/include").timeout(Duration::from_secs(2)).architecture("sm_90").verify(true);
    build.clone().file("cuda/steps.cu").compile("steps");
    build.file("cuda/halve.cu").compile_image(Image::Ptx, "halve");
}
