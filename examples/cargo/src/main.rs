//! Calls the library and names the kernels of the image. Neither needs a GPU; the kernels themselves would be launched with `cuinstr-runtime`, by
//! `Module::load_data(…, halve::IMAGE)` and `module.kernel(halve::kernel::HALVE)`.

mod halve {
    include!(concat!(env!("OUT_DIR"), "/halve.rs"));
}

unsafe extern "C" {
    /// The steps that a number takes to 1. Compiled by nvcc, for host and device.
    safe fn steps_to_one(number: u32) -> u32;
}

fn main() {
    println!("27 takes {} steps", steps_to_one(27));
    println!("kernel `{}` in {} of PTX", halve::kernel::HALVE, if halve::IMAGE.is_empty() { "no bytes" } else { "some kilobytes" });
}
