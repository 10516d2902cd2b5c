//! `cuinstr run` and libraries that compile inside the program, and libraries that are opened out of sight.

use super::World;
use crate::project::{BINARY, expect, text};
use crate::toolkit::nvcc;
use cuinstr_trial::ignore;
use std::fs;
use std::path::Path;

impl World {
    /// What another program than the usual one says, and what we say.
    pub(super) fn other(&self, status: i32, options: &str, words: &[&str]) -> (String, String) {
        let mut command = self.project.command("timeout");
        command.args(["-s", "KILL", "60"]);
        if !options.is_empty() {
            command.args([BINARY, "run"]).args(options.split(' ')).arg("--");
        }
        command
            .args(words)
            .env("LD_LIBRARY_PATH", "fake")
            .env("XDG_RUNTIME_DIR", self.project.path().join("runtime"))
            .env_remove("LD_PRELOAD");
        let output = command.env("XDG_CACHE_HOME", self.project.path().join("cache")).output().expect("it starts");
        assert_eq!(output.status.code(), Some(status), "{words:?}\n{}{}", text(&output.stdout), text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }

    /// A program that compiles while it runs, and a library for it.
    fn with_compiler() -> Self {
        let world = Self::new();
        world.project.write("compiles.c", include_str!("compiles.c"));
        world.project.write("compiler.c", include_str!("compiler.c"));
        let cc = |words: &str| expect(world.project.command("cc").args(words.split(' ')), 0);
        cc("-shared -fPIC -Wl,-soname,libnvrtc.so.99 -o fake/libnvrtc.so.99 compiler.c");
        cc("-shared -fPIC -o fake/libother.so compiler.c");
        cc("-o compiles compiles.c -Lfake -lcuda -ldl");
        cc("-DBOUND -o bound compiles.c -Lfake -l:libnvrtc.so.99 -lcuda -ldl");
        world
    }

    fn forget_cache(&self) {
        fs::remove_dir_all(self.project.path().join("cache/cuinstr/polled")).expect("a cache");
    }
}

const OPTIONS: &str = "--timeout 100ms --on-stop leave --list";
const STOPPED: &str = "cuinstr: kernel `spin` was stopped: its deadline (100 ms) passed";

#[test]
fn machine_code_of_nvrtc_is_reached_by_its_ptx() {
    let world = World::with_compiler();
    for words in
        [["./compiles", "looked up", "libnvrtc.so.99"], ["./compiles", "looked up", "libother.so"], ["./bound", "bound", "libnvrtc.so.99"]]
    {
        let (said, told) = world.other(124, OPTIONS, &[&words[..], &["rtc", "run"]].concat());
        assert_eq!(said, "made: 0 0\nspin: 0 0 0 0\n", "{words:?}: {told}");
        assert!(told.contains(STOPPED), "{words:?}: {told}");
        world.forget_cache();
    }
    // A program that keeps machine code: made in one process, loaded in the next.
    world.other(0, OPTIONS, &["./compiles", "looked up", "libother.so", "rtc", "keep"]);
    let loads = ["./compiles", "looked up", "libother.so", "take", "run"];
    let (_, told) = world.other(124, OPTIONS, &loads);
    assert!(told.contains(STOPPED), "{told}");
    // What nobody knows the PTX of is machine code.
    world.forget_cache();
    let (_, told) = world.other(124, OPTIONS, &loads);
    assert!(told.contains("kernel `spin` can't be stopped") && told.contains("no polls  spin: it is machine code"), "{told}");
}

#[test]
fn what_nvjitlink_is_given_gets_polls_or_is_reached_by_its_ptx() {
    let world = World::with_compiler();
    let (said, _) = world.other(0, "--quiet", &["./compiles", "looked up", "libother.so", "ptx"]);
    assert_eq!(said, "given PTX with polls\nlinked: 0 0\n");
    assert_eq!(world.other(0, "", &["./compiles", "looked up", "libother.so", "ptx"]).0, "given PTX without polls\nlinked: 0 0\n");
    let (said, told) = world.other(124, OPTIONS, &["./compiles", "looked up", "libother.so", "lto", "run"]);
    assert_eq!(said, "linked: 0 0\nspin: 0 0 0 0\n", "{told}");
    assert!(told.contains(STOPPED), "{told}");
}

/// NVIDIA's own, which gives both, and whose machine code is a whole ELF file.
#[test]
fn machine_code_of_the_real_nvrtc_is_reached_by_its_ptx() {
    let nvcc = nvcc();
    let world = World::with_compiler();
    let folder = nvcc.parent().and_then(Path::parent).expect("a toolkit").join("lib64");
    let found = ["libnvrtc.so.13", "libnvrtc.so.12"].into_iter().find(|name| folder.join(name).exists());
    let name = found.unwrap_or_else(|| ignore(format!("there is no NVRTC in {}", folder.display())));
    let files = fs::read_dir(folder).expect("a folder").flatten().filter(|file| file.file_name().to_string_lossy().starts_with("libnvrtc"));
    for file in files {
        std::os::unix::fs::symlink(file.path(), world.project.path().join("fake").join(file.file_name())).expect("a link");
    }
    let (said, told) = world.other(124, OPTIONS, &["./compiles", "looked up", name, "rtc", "run"]);
    assert_eq!(said, "made: 0 0\nspin: 0 0 0 0\n", "{told}");
    assert!(told.contains(STOPPED), "{told}");
}

#[test]
fn a_library_that_is_opened_with_deepbind_finds_our_functions() {
    let world = World::new();
    let deep = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <string.h>\nint probe(void) {\n  void* driver = dlopen(\"libcuda.so.1\", RTLD_LAZY);\n  \
                void* found = driver ? dlsym(driver, \"cuLaunchKernel\") : 0;\n  Dl_info about;\n  \
                return found && dladdr(found, &about) ? strstr(about.dli_fname, \"interpose\") != 0 : -1;\n}\n";
    let opens = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {\n  \
                 void* deep = dlopen(\"libdeep.so\", RTLD_NOW | RTLD_DEEPBIND);\n  if (!deep) return puts(dlerror()), 9;\n  \
                 printf(\"%d %d\\n\", ((int (*)(void))dlsym(deep, \"probe\"))(), dlopen(\"libnowhere.so\", RTLD_NOW | RTLD_DEEPBIND) != 0);\n  return 0;\n}\n";
    world.project.write("deep.c", deep);
    world.project.write("opens.c", opens);
    fs::create_dir(world.project.path().join("sub")).expect("a folder");
    let cc = |words: &str| expect(world.project.command("cc").args(words.split(' ')), 0);
    cc("-shared -fPIC -o sub/libdeep.so deep.c -ldl");
    // The library lies where only the program's own search path leads.
    cc("-o opens opens.c -ldl -Wl,--enable-new-dtags,-rpath,$ORIGIN/sub");
    assert_eq!(world.other(0, "--quiet", &["./opens"]).0, "1 0\n");
    assert_eq!(world.other(0, "", &["./opens"]).0, "0 0\n");
}

/// Tools that compile in the program find links to this program.
#[test]
fn tools_that_compile_get_a_compiler_with_polls() {
    nvcc();
    let world = World::new();
    let variables = |own: &str| world.other(0, "--quiet", &["sh", "-c", &format!("echo {own}")]).0;
    let shown = variables("$NVCC $PYTORCH_NVCC");
    let paths: Vec<&str> = shown.split_whitespace().collect();
    assert!(paths.len() == 2 && paths.iter().all(|path| path.ends_with("cache/cuinstr/links/nvcc")), "{shown}");
    let (said, _) = world.other(0, "--quiet", &["sh", "-c", "$NVCC --version"]);
    assert!(said.contains("\ncuinstr 0."), "{said}");
}

/// Settings of the user's that keep polls out are told where a kernel had none.
#[test]
fn a_compiler_that_the_user_chose_is_told_as_one_without_polls() {
    let world = World::new();
    let mut command = world.command("--timeout 10s", "plt code");
    let told = text(&command.env("NVCC", "/usr/local/nvcc").output().expect("it starts").stderr);
    assert!(told.contains("note: NVCC is `/usr/local/nvcc`, so extensions that are compiled by it get no polls"), "{told}");
    let mut command = world.command("--timeout 10s", "plt done");
    let told = text(&command.env("NVCC", "/usr/local/nvcc").output().expect("it starts").stderr);
    assert!(!told.contains("NVCC is"), "{told}");
}
