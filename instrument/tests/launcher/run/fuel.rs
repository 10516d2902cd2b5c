//! `cuinstr run --fuel`.

use super::World;
use crate::project::{BINARY, text};
use crate::toolkit::nvcc;
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

/// Tools that run ptxas in the program (Triton's), and extensions that are compiled there, get fuel by the launcher's own variable.
#[test]
fn tools_that_compile_in_the_program_count_fuel_where_they_can() {
    let world = World::new();
    let mut command = world.project.command(BINARY);
    command.args(["run", "--quiet", "--fuel", "7", "--", "sh", "-c", "echo $CUINSTR_FUEL $CUINSTR_FLAGS"]).env("CUINSTR_FLAGS", "--strict");
    let shown = command.env("XDG_CACHE_HOME", world.project.path().join("cache")).output().expect("it starts");
    assert_eq!(text(&shown.stdout), "7 --fuel=1099511627774 --strict\n", "{}", text(&shown.stderr));
    let nvcc = nvcc();
    let calls = ".version 8.0\n.target sm_80\n.address_size 64\n.func repeats() {\n.reg .pred p;\n.reg .b32 r;\n.reg .b64 a;\nmov.b64 a, 0;\n$M: ld.volatile.global.b32 r, [a];\n\
                 setp.ne.b32 p, r, 0;\n@p bra $M;\nret;\n}\n.visible .entry calls() {\ncall.uni repeats;\nret;\n}\n";
    world.project.write("calls.ptx", calls);
    let assemble = |session: Option<&str>| {
        let mut command = world.project.command(BINARY);
        command.args(["ptxas", "-arch=sm_90", "calls.ptx", "-o", "calls.cubin"]).env("CUINSTR_FLAGS", "--fuel=7").env_remove("CUINSTR_RUN");
        command.env("CUINSTR_PTXAS", nvcc.with_file_name("ptxas")).envs(session.map(|folder| ("CUINSTR_RUN", folder)));
        let output = command.output().expect("it starts");
        (output.status.code(), text(&output.stderr))
    };
    let (status, said) = assemble(None);
    assert!(status == Some(1) && said.contains("CI008"), "{said}");
    let (status, said) = assemble(Some("session"));
    assert_eq!(status, Some(0), "{said}");
    let made = fs::read(world.project.path().join("calls.cubin")).expect("a file");
    let holds = |text: &str| made.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(holds("cuinstr_control_v1") && !holds("counts_fuel"));
}
