//! Calls the library, then launches the kernel of the image, once to its end and once on a number that it never halves to 1.

use cuinstr_runtime::cudarc::driver::LaunchConfig;
use cuinstr_runtime::{Outcome, open};
use std::error::Error;
use std::time::Duration;

cuinstr_runtime::include_module!(
    /// `cuda/halve.cu`, with a method for each kernel.
    mod halve
);

unsafe extern "C" {
    /// The steps that a number takes to 1. Compiled by nvcc, for host and device.
    safe fn steps_to_one(number: u32) -> u32;
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("27 takes {} steps", steps_to_one(27));
    println!("the image has kernel `{}`", halve::kernel::HALVE);
    let context = match open(0) {
        Ok(context) => context,
        Err(error) => {
            println!("not launched: {error}");
            return Ok(());
        }
    };
    let kernel = halve::Module::load(&context)?.halve()?;
    let stream = context.default_stream();
    for numbers in [[12_u32, 5, 1, 1 << 31], [12, 5, 0, 1]] {
        let mut data = stream.clone_htod(&numbers)?;
        let count = i32::try_from(numbers.len())?;
        let mut launch = kernel.on(&stream)?;
        launch.arg(&mut data).arg(&count).timeout(Duration::from_secs(1));
        // SAFETY: these are the kernel's parameters, and the numbers are as many as it is told.
        match unsafe { launch.start(LaunchConfig::for_num_elems(4)) }?.wait()? {
            Outcome::Completed { .. } => println!("{numbers:?} became {:?}", stream.clone_dtoh(&data)?),
            Outcome::Stopped { report, .. } => println!("{numbers:?}: {report}"),
            Outcome::Faulted { fault } => println!("{numbers:?}: it crashed: {fault}"),
            // Nothing here pauses a launch.
            Outcome::Paused { left, .. } => println!("{numbers:?}: {left} blocks wait"),
        }
    }
    Ok(())
}
