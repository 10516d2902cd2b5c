//! What becomes of launches.

use crate::Case;
use crate::world::{LONG, SHORT, World, command, start, until};
use cuinstr_runtime::{Cause, Error, Outcome, Tier};

pub(crate) const CASES: &[Case] = &[
    ("a launch completes, is stopped by its deadline, and is cancelled", ordinary),
    ("a fault ends the context, and later calls say so", fault),
];

fn ordinary() {
    let world = World::new();
    let stream = world.stream();
    let outcome = start(&world.kernel("empty"), &stream, |launch| {
        launch.timeout(LONG);
    });
    assert!(outcome.expect("a launch").wait().expect("an outcome").is_completed());
    let stopped = start(&world.kernel("spin"), &stream, |launch| {
        launch.timeout(SHORT);
    });
    let stopped = stopped.expect("a launch").wait().expect("an outcome");
    let Outcome::Stopped { why: Cause::Deadline, tier: Tier::Leave, latency, report } = stopped else { panic!("{stopped:?}") };
    assert!(latency < LONG && report.to_string().contains("spin"), "{latency:?} {report}");
    let mut cancelled = start(&world.kernel("spin"), &stream, |launch| {
        launch.until_cancelled();
    })
    .expect("a launch");
    until("it runs", || command("running") == 1);
    cancelled.cancel().expect("a cancel");
    let cancelled = cancelled.wait().expect("an outcome");
    assert!(matches!(cancelled, Outcome::Stopped { why: Cause::Cancelled, .. }), "{cancelled:?}");
}

fn fault() {
    let world = World::new();
    let stream = world.stream();
    let set = |launch: &mut cuinstr_runtime::Launch<'_>| {
        launch.timeout(LONG);
    };
    let outcome = start(&world.kernel("fault"), &stream, set).expect("a launch").wait().expect("an outcome");
    assert!(matches!(outcome, Outcome::Faulted { .. }), "{outcome:?}");
    let refused = start(&world.kernel("empty"), &stream, set).expect_err("the context is lost");
    assert!(matches!(&refused, Error::Poisoned(poison) if poison.kernel == "fault"), "{refused:?}");
}
