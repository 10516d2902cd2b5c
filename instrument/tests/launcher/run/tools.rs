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
