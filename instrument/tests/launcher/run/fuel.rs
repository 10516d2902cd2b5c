//! `cuinstr run --fuel`.

use super::World;
use crate::project::text;
use std::fs;

/// Whether a text of the cache counts fuel: the limit's place in the control block is read.
fn cached_with_fuel(world: &World) -> Vec<bool> {
    let entries = fs::read_dir(world.project.path().join("cache/cuinstr/polled")).into_iter().flatten().flatten();
    let texts = entries.map(|entry| text(&fs::read(entry.path()).expect("a file")));
    let mut found: Vec<bool> = texts.map(|text| text.contains("\"counts_fuel\":true") && text.contains("+48]")).collect();
    found.sort_unstable();
    found
}

#[test]
fn fuel_ends_a_hang_and_is_compiled_in_only_where_it_is_asked_for() {
    let world = World::new();
    world.run("--timeout 10s", "plt done", 0);
    assert_eq!(cached_with_fuel(&world), [false]);
    let (said, told) = world.run("--fuel 1000 --on-stop leave --report all.jsonl", "plt done spin done", 124);
    assert_eq!(said, "done: 0 0\nspin: 0 0\ndone: 0 0\n", "{told}");
    assert!(told.contains("cuinstr: kernel `spin` was stopped: its fuel is used up"), "{told}");
    assert!(!told.contains("without fuel") && !told.contains("has no effect"), "{told}");
    // The other text stays as it was.
    assert_eq!(cached_with_fuel(&world), [false, true]);
    let report = fs::read_to_string(world.project.path().join("all.jsonl")).expect("a report");
    assert!(report.contains("\"why\":\"fuel\"") && report.contains("\"no_fuel\":null"), "{report}");
    // Another amount takes the same text.
    world.run("--fuel 2000 --on-stop leave", "plt spin", 124);
    assert_eq!(cached_with_fuel(&world), [false, true]);
    let (_, told) = world.run("--fuel 0", "plt done", 2);
    assert!(told.contains("--fuel"), "{told}");
}

#[test]
fn a_kernel_whose_function_repeats_is_named_and_runs_without_fuel() {
    let world = World::new();
    let why =
        "cuinstr: warning: `calls` ran without fuel: `repeats` of its module is called and repeats, and PTX counts fuel in kernels only";
    // Made now, and from the cache.
    for _ in 0..2 {
        let (said, told) = world.run("--fuel 1000 --timeout 10s --list", "plt calls", 0);
        assert_eq!(said, "calls: 0 0 0\n", "{told}");
        assert!(told.contains(why) && told.contains("polls  calls"), "{told}");
    }
    assert_eq!(cached_with_fuel(&world), [false, true]);
    let (_, told) = world.run("--timeout 10s --list", "plt calls", 0);
    assert!(!told.contains("without fuel"), "{told}");
}
