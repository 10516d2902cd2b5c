//! Bad use gets a clear error, and costs nothing.

use super::Promise;
use super::bench::{Bench, cubin, told};
use crate::session::{Checked, Report, Session};
use cuinstr_harness::variant;
use cuinstr_runtime::{Error, LONGEST_TIMEOUT, Module, Result};
use std::time::Duration;

pub(super) const PROMISES: &[Promise] = &[
    Promise::new("modules that can't be used are refused, each with its reason", modules),
    Promise::new("a load that might wait for ever is refused", load_beside_a_hang),
    Promise::new("an unknown kernel is answered with the nearest name and the list", kernels),
    Promise::new("limits that make no sense are refused", limits),
    Promise::new("arguments of the wrong number or size are refused before the launch", arguments),
];

const LONG: Duration = Duration::from_secs(10);

/// A module with a control block of another version.
const OTHER_ABI: &str = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .global .align 4 .b32 cuinstr_flag_v1;\n\
    .visible .global .align 8 .b8 cuinstr_control_v1[1192] = {7};\n.visible .entry k() { ret; }\n";
/// One that nobody rewrote.
const PLAIN: &str = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";
/// One that no compiler takes.
const BROKEN: &str = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k() { frobnicate; }\n";

fn refusal<T>(what: &str, result: Result<T>, is_it: fn(&Error) -> bool, notes: &mut Vec<String>) -> std::result::Result<(), String> {
    match result {
        Err(error) if is_it(&error) => {
            notes.push(error.to_string());
            Ok(())
        }
        Err(error) => Err(format!("{what}: another error than it should be: {error:?}")),
        Ok(_) => Err(format!("{what} was accepted")),
    }
}

fn modules(session: &Session) -> Checked {
    let context = cuinstr_runtime::open(0).map_err(told)?;
    let mut notes = Vec::new();
    let plain = cubin(session, "saxpy", variant::PLAIN)?;
    let not_rewritten = |error: &Error| *error == Error::NotInstrumented;
    refusal("a plain cubin", Module::load(&context, &plain), not_rewritten, &mut notes)?;
    refusal("plain PTX", Module::load(&context, PLAIN.as_bytes()), not_rewritten, &mut notes)?;
    let other = |error: &Error| *error == Error::OtherAbi { module: 7, runtime: 1 };
    refusal("another ABI", Module::load(&context, OTHER_ABI.as_bytes()), other, &mut notes)?;
    let module = |error: &Error| matches!(error, Error::Module { .. });
    refusal("broken PTX", Module::load(&context, BROKEN.as_bytes()), module, &mut notes)?;
    let no_module = |error: &Error| matches!(error, Error::NoModule(_));
    refusal("half a cubin", Module::load(&context, &plain[..plain.len() / 2]), no_module, &mut notes)?;
    refusal("a cubin without its last bytes", Module::load(&context, &plain[..plain.len() - 64]), no_module, &mut notes)?;
    refusal("nothing", Module::load(&context, b""), no_module, &mut notes)?;
    refusal("text", Module::load(&context, b"int main() { return 0; }"), no_module, &mut notes)?;
    let unreadable = |error: &Error| matches!(error, Error::Unreadable { .. });
    refusal("no file", Module::load_file(&context, "no/such/file.cubin"), unreadable, &mut notes)?;
    refusal("a folder", Module::load_file(&context, "/"), unreadable, &mut notes)?;
    let no_device = |error: &Error| matches!(error, Error::NoDevice { ordinal: 77, .. });
    refusal("no such GPU", cuinstr_runtime::open(77), no_device, &mut notes)?;
    session.next_launch_is_right()?;
    Ok(notes.into_iter().fold(Report::default(), Report::note))
}

fn load_beside_a_hang(session: &Session) -> Checked {
    let bench = Bench::new(session, "hang/while_true")?;
    let stream = bench.context.new_stream().map_err(told)?;
    let image = cubin(session, "saxpy", variant::DEFAULT)?;
    let mut notes = Vec::new();
    let mut running = bench.start(&stream, |launch| _ = launch.until_cancelled()).map_err(told)?;
    let in_flight = |error: &Error| *error == Error::InFlight { launches: 1 };
    refusal("a load beside a hang", Module::load(&bench.context, &image), in_flight, &mut notes)?;
    refusal("a second instance beside a hang", bench.module.prepare(4), in_flight, &mut notes)?;
    running.cancel().map_err(told)?;
    let _ = running.wait().map_err(told)?;
    // Beside one with a deadline of its own it waits for that, and gets through.
    let mut running = bench.start(&stream, |launch| _ = launch.timeout(Duration::from_millis(100))).map_err(told)?;
    Module::load(&bench.context, &image).map_err(told)?;
    let _ = running.wait().map_err(told)?;
    session.next_launch_is_right()?;
    Ok(notes.into_iter().fold(Report::default(), Report::note))
}

fn kernels(session: &Session) -> Checked {
    let bench = Bench::new(session, "saxpy")?;
    let mut notes = Vec::new();
    let unknown = |error: &Error| error.to_string().contains("did you mean \"saxpy\"?");
    refusal("a misspelt kernel", bench.module.kernel("saxpi"), unknown, &mut notes)?;
    bench.module.kernel("saxpy").map_err(told)?;
    Ok(notes.into_iter().fold(Report::default(), Report::note))
}

fn limits(session: &Session) -> Checked {
    let bench = Bench::new(session, "saxpy")?;
    let stream = bench.context.default_stream();
    let mut notes = Vec::new();
    let none = bench.start(&stream, |_| {});
    refusal("no limit", none, |error| matches!(error, Error::NoLimit { .. }), &mut notes)?;
    let zero = bench.start(&stream, |launch| _ = launch.timeout(Duration::ZERO));
    refusal("a timeout of zero", zero, |error| *error == Error::ZeroTimeout, &mut notes)?;
    let long = bench.start(&stream, |launch| _ = launch.timeout(LONGEST_TIMEOUT + Duration::from_secs(1)));
    refusal("a timeout of centuries", long, |error| matches!(error, Error::TimeoutTooLong(_)), &mut notes)?;
    for timeout in [Duration::from_nanos(1), LONGEST_TIMEOUT] {
        // Both ends of what is allowed.
        let _ = bench.start(&stream, |launch| _ = launch.timeout(timeout)).map_err(told)?.wait().map_err(told)?;
    }
    session.next_launch_is_right()?;
    Ok(notes.into_iter().fold(Report::default(), Report::note))
}

fn arguments(session: &Session) -> Checked {
    let bench = Bench::new(session, "saxpy")?;
    let stream = bench.context.default_stream();
    let misfit = |error: &Error| matches!(error, Error::Arguments { .. });
    let mut notes = Vec::new();
    let slice = stream.alloc_zeros::<f32>(16).map_err(told)?;
    let mut launch = bench.kernel.on(&stream).map_err(told)?;
    launch.arg(&slice).timeout(LONG);
    // SAFETY: it is refused.
    refusal("one argument", unsafe { launch.start(bench.config) }, misfit, &mut notes)?;
    let mut launch = bench.kernel.on(&stream).map_err(told)?;
    for _ in 0..4 {
        launch.arg(&1_u8);
    }
    launch.timeout(LONG);
    // SAFETY: it is refused.
    refusal("arguments of one byte", unsafe { launch.start(bench.config) }, misfit, &mut notes)?;
    let mut config = bench.config;
    config.block_dim = (4096, 1, 1);
    let mut bench = bench;
    bench.config = config;
    refusal("a block too large", bench.start(&stream, |launch| _ = launch.timeout(LONG)), misfit, &mut notes)?;
    session.next_launch_is_right()?;
    Ok(notes.into_iter().fold(Report::default(), Report::note))
}
