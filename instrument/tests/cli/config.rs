//! `cuinstr.toml`.

use crate::project::{ASM, COPY_ALL, Project, SPIN};

#[test]
fn the_configuration_is_found_upward_from_each_input() {
    let project = Project::new(&[("cuinstr.toml", COPY_ALL), ("a/b/k.cu", SPIN), ("c/l.cu", SPIN), ("c/cuinstr.toml", "bad = 1\n")]);
    project
        .run("a/b/k.cu -o out.cu")
        .exits(0)
        .says("a/b/k.cu: copied unchanged, because cuinstr.toml excludes it")
        .says("1 file copied unchanged");
    assert_eq!(project.read("out.cu"), SPIN);
    project.run("a/b/k.cu c/l.cu -o out").exits(1).says("c/cuinstr.toml:1:1");
    assert_eq!(project.names("out"), ["k.cu"]);
    project.run("c/l.cu -o out.cu --config cuinstr.toml").exits(0);
}

#[test]
fn a_bad_configuration_refuses_the_input_and_shows_the_place() {
    for (text, code, place) in [
        ("loop-macro = []", "CI043", "cuinstr.toml:1:1: "),
        ("exclude = [\"[z-a]\"]", "CI043", "cuinstr.toml:1:12: "),
        ("[gpu]\nweight = {}", "CI043", "cuinstr.toml:2:1: "),
        ("a = \"", "CI043", "cuinstr.toml:1:"),
        ("\n[device-macros]\nX = \"gpu\"", "CI043", "cuinstr.toml:3:5: "),
        ("[[waiver]]\ncode = \"CI013\"", "CI031", "cuinstr.toml:1:1: "),
        ("[[waiver]]\ncode = \"CI013\"\nreason = \" \"", "CI031", "cuinstr.toml:3:10: "),
        ("[[waiver]]\ncode = \"CI777\"\nreason = \"x\"", "CI032", "cuinstr.toml:2:8: "),
        ("[[waiver]]\ncode = \"CI003\"\nreason = \"x\"", "CI032", "cuinstr.toml:2:8: "),
    ] {
        let project = Project::new(&[("cuinstr.toml", text), ("k.cu", SPIN), ("l.cu", SPIN)]);
        let run = project.run("k.cu l.cu -o out --format short").exits(1).says(place).says(&format!("error[{code}]"));
        assert_eq!(run.stderr.matches(code).count(), 1, "once for all inputs: {run:?}");
        assert!(project.names("out").is_empty());
    }
}

#[test]
fn a_configuration_that_is_missing_is_an_io_error() {
    let project = Project::new(&[("k.cu", SPIN)]);
    project.run("k.cu -o out.cu --config no.toml").exits(3).says("CI040").says("no.toml");
    assert!(!project.has("out.cu"));
}

#[test]
fn a_configuration_that_is_no_utf8_shows_the_byte() {
    let project = Project::new(&[("k.cu", SPIN)]);
    project.write("cuinstr.toml", b"# ok\n# \xff\n");
    project.run("k.cu -o out.cu --format short").exits(1).says("cuinstr.toml:2:3: error[CI043]");
}

#[test]
fn excluded_files_are_neither_listed_nor_read_as_cuda() {
    let project = Project::new(&[("cuinstr.toml", "exclude = [\"third_party\"]"), ("third_party/x.cu", "not CUDA"), ("k.cu", SPIN)]);
    let run = project.run("third_party/x.cu k.cu --list").exits(0).says("left alone");
    assert!(!run.stdout.contains("x.cu") && run.stdout.starts_with("k.cu: "), "{run:?}");
    assert_eq!(project.run("third_party/x.cu -o - -q").exits(0).silent().stdout, "not CUDA");
}

#[test]
fn device_macros_come_from_the_configuration_and_the_command_line() {
    let text = "MY_KERNEL void spin(volatile int *p) {\n    while (*p == 0) {\n    }\n}\n";
    let project = Project::new(&[("k.cu", text), ("sub/k.cu", text), ("sub/cuinstr.toml", "[device-macros]\nMY_KERNEL = \"kernel\"\n")]);
    project.run("k.cu -o out.cu").exits(0).says("1 function (0 kernels), 1 loop (1 polled), 1 poll");
    project.run("sub/k.cu -o out.cu").exits(0).says("1 kernel");
    project.run("k.cu -o out.cu --device-macro MY_KERNEL=kernel").exits(0).says("1 kernel");
    project.run("sub/k.cu -o out.cu --device-macro MY_KERNEL=device").exits(0).says("0 kernels");
}

#[test]
fn loop_macros_and_functions_left_alone_come_from_the_configuration() {
    let text = "__global__ void a(int *p) {\n    MY_LOOP(i, 3) { p[i] = 0; }\n}\n__global__ void b(volatile int *p) {\n    while (*p == 0) { }\n}\n";
    let project = Project::new(&[("k.cu", text)]);
    project.run("k.cu -o out.cu").exits(0).says("CI010").says("in `a`");
    project.write("cuinstr.toml", b"loop-macros = [\"MY_LOOP\"]\nleave-alone = [\"b\"]\n");
    let run = project.run("k.cu -o out.cu").exits(0);
    assert!(!run.stderr.contains("CI010"), "{run:?}");
    assert!(project.read("out.cu").contains("    while (*p == 0) { }\n"), "`b` is as it was");
}

#[test]
fn a_waiver_accepts_a_gap_even_under_strict() {
    let waiver = |more: &str| format!("[[waiver]]\ncode = \"CI013\"\n{more}reason = \"the peer always answers\"\n");
    for more in ["", "function = \"spin\"\n", "path = \"src/*.cu\"\n", "path = \"src/k.cu\"\nfunction = \"spin\"\n"] {
        let project = Project::new(&[("src/k.cu", ASM), ("cuinstr.toml", &waiver(more))]);
        project.run("src/k.cu -o out.cu --strict --sites sites.json").exits(0);
        assert!(project.read("sites.json").contains("the peer always answers"), "{more}");
    }
    for more in ["function = \"other\"\n", "path = \"*.cu\"\n", "path = \"src/other.cu\"\n"] {
        let project = Project::new(&[("src/k.cu", ASM), ("cuinstr.toml", &waiver(more))]);
        project.run("src/k.cu -o out.cu --strict").exits(1).says("error[CI013]");
    }
}

#[test]
fn a_waiver_that_nothing_in_the_project_can_need_is_stale() {
    let waiver = |more: &str| format!("[[waiver]]\ncode = \"CI013\"\n{more}reason = \"the peer always answers\"\n");
    let all = ["", "path = \"k.cu\"\n", "path = \"**/*.cu\"\n", "path = \"other.cu\"\n", "function = \"spin\"\n", "function = \"other\"\n"];
    for more in all {
        let project = Project::new(&[("k.cu", SPIN), ("cuinstr.toml", &waiver(more))]);
        // The second run finds the output of the first, which is no source.
        for _ in 0..2 {
            let run = project.run("k.cu -o out.cu").exits(1).says("error[CI030]");
            assert_eq!(run.stderr.matches("CI030").count(), 1, "{more}: {run:?}");
        }
    }
    // Another source, which this run does not rewrite, may need it.
    for more in ["", "path = \"**/*.cu\"\n", "path = \"other.cu\"\n", "function = \"there\"\n"] {
        let other = "__global__ void there(int *p) {\n    asm volatile(\"L: ld.volatile.global.u32 r, [p]; @q bra L;\");\n}\n";
        let project = Project::new(&[("k.cu", SPIN), ("other.cu", other), ("cuinstr.toml", &waiver(more))]);
        project.run("k.cu -o out.cu").exits(0);
        project.run("k.cu other.cu -o out").exits(0);
        project.write("cuinstr.toml", format!("exclude = [\"other.cu\"]\n{}", waiver(more)).as_bytes());
        project.run("k.cu -o out.cu").exits(1).says("error[CI030]").says("cuinstr.toml:2:1");
    }
}

#[test]
fn a_function_to_leave_alone_is_one_of_the_project() {
    let project = Project::new(&[("k.cu", SPIN), ("cuinstr.toml", "leave-alone = [\"spin\", \"spn\"]\n")]);
    project
        .run("k.cu -o out.cu")
        .exits(1)
        .says("error[CI043]")
        .says("no source of this project names a function `spn`")
        .says("cuinstr.toml:1:24");
    project.write("cuinstr.toml", b"leave-alone = [\"spin\"]\n");
    project.run("k.cu -o out.cu").exits(0);
    project.write("header.cuh", b"__device__ void spn();\n");
    project.write("cuinstr.toml", b"leave-alone = [\"own::spn\"]\n");
    project.run("k.cu -o out.cu").exits(0);
    project.write("elsewhere/cuinstr.toml", b"leave-alone = [\"spin\"]\n");
    project.run("k.cu -o out.cu --config elsewhere/cuinstr.toml").exits(0);
}

#[cfg(unix)]
#[test]
fn a_configuration_that_is_no_file_is_told() {
    let project = Project::new(&[("folder/cuinstr.toml/x", ""), ("folder/k.cu", SPIN), ("link/k.cu", SPIN)]);
    std::os::unix::fs::symlink("cuinstr.toml", project.0.path().join("link/cuinstr.toml")).expect("links can be made");
    for folder in ["folder", "link"] {
        project.run(&format!("{folder}/k.cu -o out.cu")).exits(3).says("CI040").says(&format!("{folder}/cuinstr.toml"));
        assert!(!project.has("out.cu"));
    }
}

#[test]
fn site_paths_are_relative_to_the_configuration() {
    let project = Project::new(&[("top/cuinstr.toml", ""), ("top/src/k.cu", SPIN), ("k.cu", SPIN)]);
    let file = |arguments: &str| {
        let run = project.run(arguments).exits(0);
        serde_json::from_str::<cuinstr::site::SiteMap>(&run.stdout).expect("it is a site map").file
    };
    assert_eq!(file("top/../top/src/k.cu --sites - -q"), "top/../top/src/k.cu".replace("top/../top/", ""));
    assert_eq!(file("./k.cu --sites - -q"), "./k.cu", "as spelled where there is no configuration");
    assert_eq!(file("k.cu --sites - -q --config top/cuinstr.toml"), "k.cu", "as spelled outside of the project");
}
