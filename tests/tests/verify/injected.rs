//! Hangs put into proved kernels, and changes that mean nothing. `cargo run --release -p cuinstr-differential --bin attack -- --count 100000` makes more.

use cuinstr_differential::injection::base::{Base, kept};
use cuinstr_differential::injection::run::{Judged, inject, judge};
use cuinstr_differential::injection::{edit, same};
use cuinstr_harness::random::Random;
use std::sync::LazyLock;

static BASES: LazyLock<Vec<Base>> = LazyLock::new(kept);

const COUNT: u64 = 200;

#[test]
fn each_hang_that_is_put_into_a_proved_kernel_is_rejected() {
    assert!(BASES.len() >= 10, "{} kernels", BASES.len());
    let mut shown = 0;
    for seed in 0..COUNT {
        let injected = inject(&BASES, seed, false);
        match judge(&injected) {
            Judged::Rejected => shown += 1,
            Judged::Hole => panic!("hang {seed} is accepted: {}, {}\n{}", injected.kind, injected.base, injected.text),
            Judged::NotShown(_) => {}
        }
    }
    // What the interpreter can't show to hang is no attack.
    assert!(shown * 100 > COUNT * 95, "{shown} of {COUNT}");
}

#[test]
fn an_edit_after_which_a_state_comes_back_is_rejected() {
    let mut shown = 0;
    for seed in 0..2 * COUNT {
        let Some(injected) = edit::edit(&BASES, seed) else { continue };
        match edit::judge(&injected, seed % 700) {
            Judged::Rejected => shown += 1,
            Judged::Hole => panic!("edit {seed} is accepted: {}, {}\n{}", injected.kind, injected.base, injected.text),
            Judged::NotShown(_) => {}
        }
    }
    assert!(shown > 2, "{shown}");
}

#[test]
fn what_changes_nothing_leaves_the_verdicts_alone() {
    let mut changed = 0;
    for seed in 0..COUNT {
        let mut random = Random::new(seed);
        let base = &BASES[random.below(BASES.len())];
        let text = same::change(&base.text, &mut random);
        changed += u64::from(text != base.text);
        assert_eq!(same::verdicts(&text), base.verdicts, "change {seed} of {}\n{text}", base.name);
    }
    assert!(changed * 2 > COUNT, "{changed} of {COUNT}");
}
