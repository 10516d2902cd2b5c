//! Each call of the driver that the runtime makes fails once, loses the context once, and blocks once, in turn. Whatever happens, nothing hangs, no
//! outcome is wrong, and nothing is left behind.

use crate::scenarios::{Found, SCENARIOS, Scenario};
use crate::world::{command, until};
use cuinstr_stand_in::client;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// For how long a call blocks.
const BLOCKED: Duration = Duration::from_millis(10);
/// How many calls of one name are swept, the first ones; all of them if `CUINSTR_SWEEP` is set.
const CALLS: u64 = 8;

/// Calls of cudarc's that leave a context behind when they fail.
const KEPT_BY_CUDARC: &[&str] = &["cuDeviceGetAttribute", "cuDevicePrimaryCtxRelease_v2"];

/// Nothing runs, and no context is left with what belongs to it.
fn is_clean() -> bool {
    command("running") == 0 && ["contexts", "device", "mapped", "pinned"].iter().all(|kind| command(&format!("live {kind}")) == 0)
}

fn sound(scenario: Scenario, after: &str) {
    let Found { wrongs, errors, .. } = Found::of(scenario);
    assert!(wrongs.is_empty() && errors.is_empty(), "{after}: {wrongs:#?} {errors:#?}");
    until(&format!("{after}: all is given back"), is_clean);
}

/// How often each call was made so far.
fn counts() -> BTreeMap<String, i64> {
    let count = |name: String| (name.clone(), command(&format!("calls {name}")));
    client::names().into_iter().map(count).collect()
}

/// Each scenario and call that it makes, one a line.
pub(crate) fn names() {
    for (name, scenario) in SCENARIOS {
        let before = counts();
        sound(*scenario, "nothing failed");
        let made = counts().into_iter().filter(|(call, count)| before.get(call).copied().unwrap_or(0) < *count);
        made.for_each(|(call, _)| println!("{name} {call}"));
    }
}

/// While this acts, calls that block go on after a moment.
fn with_releases<T>(act: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if command("blocked") > 0 {
                    thread::sleep(BLOCKED);
                    command("release");
                }
                thread::sleep(BLOCKED / 10);
            }
        });
        let answer = act();
        is_over.store(true, Ordering::Relaxed);
        answer
    })
}

/// Sweeps one call of one scenario, given as a line of [`names`].
pub(crate) fn sweep(what: &str) {
    let (scenario, name) = what.split_once(' ').expect("a scenario and a call");
    let scenario = SCENARIOS.iter().find(|(name, _)| *name == scenario).expect("a scenario of this program").1;
    sound(scenario, "nothing failed");
    let before = command(&format!("calls {name}"));
    sound(scenario, "nothing failed");
    let count = u64::try_from(command(&format!("calls {name}")) - before).expect("it counts up");
    let most = if std::env::var_os("CUINSTR_SWEEP").is_some() { count } else { count.min(CALLS) };
    for call in 1..=most {
        for rule in [format!("fail {name} {call} 2"), format!("lose {name} {call} 719"), format!("block {name} {call}")] {
            command(&rule);
            let found = with_releases(|| Found::of(scenario));
            command("forget");
            command("release");
            let Found { wrongs, errors, .. } = &found;
            assert!(wrongs.is_empty(), "{rule}: {wrongs:#?} {errors:#?}");
            assert!(errors.is_empty() || !rule.starts_with("block"), "{rule}: {errors:#?}");
            assert!(errors.len() < 2 || rule.starts_with("lose"), "{rule}: one call failed, and not one thing alone: {errors:#?}");
            // A module of a lost context stays loaded on purpose, and cudarc keeps contexts that it could not make or give back.
            if rule.starts_with("lose") || KEPT_BY_CUDARC.contains(&name) {
                until(&format!("{rule}: nothing runs"), || command("running") == 0);
                command("reset");
            }
            until(&format!("{rule}: all is given back"), is_clean);
            assert!(!found.has_run_twice(), "{rule}: a block ran twice: {found:?}");
        }
        sound(scenario, &format!("after call {call} of {name} had failed"));
    }
}
