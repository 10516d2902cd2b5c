//! `cuinstr run` beside tools that stand between a program and the driver as well: inside of such a tool, and around it.

use super::World;
use crate::project::{BINARY, expect};

#[test]
fn a_tool_that_gives_its_own_library_for_the_drivers_sees_the_calls_as_we_do() {
    let world = World::new();
    world.project.write("tool.c", include_str!("tool.c"));
    let cc = |words: &str| expect(world.project.command("cc").args("-O2 -shared -fPIC".split(' ')).args(words.split(' ')), 0);
    cc("-DINJECTION -Wl,-soname,libcuda.so.1 -o libcuda-injection.so tool.c");
    cc("-o libtool.so tool.c");
    let ours = format!("{BINARY} run --timeout 100ms --on-stop leave -- ");
    for way in ["plt", "dlsym", "ask"] {
        let program = format!("./program {way} done spin done");
        for line in [
            format!("LD_PRELOAD=./libtool.so {ours}{program}"),
            format!("{ours}sh -c 'LD_PRELOAD=./libtool.so:$LD_PRELOAD exec {program}'"),
            format!("{ours}sh -c 'LD_PRELOAD=$LD_PRELOAD:./libtool.so exec {program}'"),
        ] {
            let (said, told) = world.other(124, "", &["sh", "-c", &line]);
            assert_eq!(said, "done: 0 0\nspin: 0 0\ndone: 0 0\n", "{line}: {told}");
            assert!(told.contains("cuinstr: kernel `spin` was stopped: its deadline (100 ms) passed"), "{line}: {told}");
            assert!(told.contains("2 kernels with polls, 3 launches; 0 kernels without, 0 launches"), "{line}: {told}");
            assert!(way == "plt" || told.contains("tool: saw calls"), "{line}: {told}");
        }
    }
}

/// What programs load as the driver looks up the functions of another library that has the driver's file name.
#[test]
fn a_driver_that_hands_on_to_another_library_gets_that_ones_own_functions() {
    let world = World::new();
    world.project.write("tool.c", include_str!("tool.c"));
    std::fs::create_dir(world.project.path().join("front")).expect("a folder");
    let build = "cc -O2 -shared -fPIC -DINJECTION -DFRONT -o front/libcuda.so tool.c -Wl,--no-as-needed fake/libcuda.so.1";
    expect(world.project.command("sh").args(["-c", &format!("{build} && ln -s libcuda.so front/libcuda.so.1")]), 0);
    for way in ["plt", "dlsym", "ask"] {
        let line = format!("{BINARY} run --timeout 100ms --on-stop leave -- env LD_LIBRARY_PATH=front ./program {way} done spin done");
        let (said, told) = world.other(124, "", &["sh", "-c", &line]);
        assert_eq!(said, "done: 0 0\nspin: 0 0\ndone: 0 0\n", "{way}: {told}");
        assert!(told.contains("2 kernels with polls, 3 launches; 0 kernels without, 0 launches"), "{way}: {told}");
    }
}
