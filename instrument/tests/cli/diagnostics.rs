//! What is said, and how.

use crate::project::{ASM, NO_LIMIT, Project, SPIN};
use std::fs;
use std::path::Path;

#[test]
fn full_diagnostics_look_as_rustc_s() {
    let project = Project::new(&[("cuinstr.toml", "exclude = []\nunknown = 1\n"), ("k.cu", SPIN)]);
    let run = project.run("k.cu -o out.cu -q").exits(1);
    assert!(run.stderr.starts_with("error[CI043]: unknown field `unknown`"), "{run:?}");
    assert!(run.stderr.contains("\n --> cuinstr.toml:2:1\n  |\n2 | unknown = 1\n  | ^^^^^^^\n"), "{run:?}");
    assert!(!project.has("out.cu"));
}

#[test]
fn short_diagnostics_are_one_line_each() {
    let project = Project::new(&[("k.cu", ASM), ("empty.cu", "")]);
    let run = project.run("k.cu -o out.cu -q --format short").exits(0);
    assert!(run.stderr.starts_with("k.cu:2:5: warning[CI013]: "), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1);
    let run = project.run("empty.cu -o out.cu -q --format short").exits(1);
    assert!(run.stderr.starts_with("empty.cu: error[CI003]: "), "{run:?}");
}

#[test]
fn json_diagnostics_are_one_object_a_line() {
    let project = Project::new(&[("k.cu", ASM)]);
    let objects = project.run("k.cu -o out.cu --format json").exits(0).objects();
    let gap = &objects[0];
    assert_eq!((gap["path"].as_str(), gap["line"].as_u64(), gap["column"].as_u64()), (Some("k.cu"), Some(2), Some(5)), "{gap}");
    assert_eq!(
        (gap["code"].as_str(), gap["severity"].as_str(), gap["function"].as_str()),
        (Some("CI013"), Some("warning"), Some("spin")),
        "{gap}"
    );
    assert!(gap["message"].is_string() && gap["end"]["line"].is_u64() && gap.get("help").is_some(), "{gap}");
    let summary = &objects.last().expect("there is a last line")["summary"];
    assert_eq!((summary["rewritten"].as_u64(), summary["not_covered"]["CI013"].as_u64()), (Some(1), Some(1)), "{summary}");
    assert_eq!(summary["hint"], NO_LIMIT);
}

#[test]
fn a_gap_is_an_error_under_strict() {
    let project = Project::new(&[("k.cu", ASM)]);
    project.run("k.cu -o out.cu").exits(0).says("warning[CI013]");
    fs::remove_file(project.0.path().join("out.cu")).expect("it was written");
    project.run("k.cu -o out.cu --strict").exits(1).says("error[CI013]");
    assert!(!project.has("out.cu"));
}

#[test]
fn an_arm_that_is_not_compiled_is_no_gap() {
    let old = format!("#if defined(OLD) && OLD < 3\n{ASM}#endif\n{SPIN}");
    let project = Project::new(&[("k.cu", &old)]);
    project.run("k.cu -o out.cu --strict").exits(1).says("error[CI013]");
    project.run("k.cu -o out.cu --strict -DOLD=2").exits(1).says("error[CI013]");
    for (option, check) in [("-UOLD", "#if !(!defined(OLD))\n#error"), ("-D OLD=3", "#if !(defined(OLD) && (OLD) == 3)\n#error")] {
        project.run(&format!("k.cu -o out.cu --strict {option}")).exits(0);
        // Another compilation may have the arm, which has no polls now.
        let output = project.read("out.cu");
        assert!(output.starts_with(check) && output.contains(ASM), "{output}");
    }
}

#[test]
fn a_header_that_is_never_included_is_no_gap() {
    let [included, not] = ["1", "0"].map(|condition| format!("#if {condition}\n#include \"steps.cuh\"\n#endif\n{SPIN}"));
    let project = Project::new(&[("k.cu", &included), ("l.cu", &not)]);
    project.run("k.cu -o out.cu --strict").exits(1).says("error[CI016]");
    project.run("l.cu -o out.cu --strict").exits(0);
}

#[test]
fn a_header_without_device_code_that_repeats_is_no_gap() {
    let kernel = "__device__ int late(int);\n__global__ void k(int* p) { while (*p) *p = late(*p); }\n";
    let cases = [
        (
            "",
            "#pragma once\n#include <vector>\nstruct S { int n; };\ninline int sum(int n) { int s = 0; while (n) s += n--; return s; }\n",
            0,
        ),
        ("", "__device__ inline int twice(int n) { return 2 * n; }\n", 0),
        ("", "#include \"inner/plain.h\"\n", 0),
        ("", "__device__ inline void spin(int* p) { while (*p) {} }\n", 1),
        ("", "#include \"inner/loops.h\"\n", 1),
        ("", "#include <their/loops.h>\nTHEIRS inline void spin(int* p) { while (*p) {} }\n", 1),
        ("#define ON_GPU __device__\n", "ON_GPU inline void spin(int* p) { while (*p) {} }\n", 1),
        // The mark of the declaration holds for the definition.
        ("", "int late(int n) { while (n & 7) n += 3; return n; }\n", 1),
    ];
    for (before, header, code) in cases {
        let source = format!("{before}{kernel}#include \"some.h\"\n");
        let project = Project::new(&[("k.cu", &source), ("some.h", header)]);
        project.write("inner/plain.h", b"#pragma once\n#include \"../some.h\"\nint plain();\n");
        project.write("inner/loops.h", b"#include \"more.h\"\n");
        project.write("inner/more.h", b"__device__ inline void spin(int* p) { while (*p) {} }\n");
        let run = project.run("k.cu -o out.cu --strict").exits(code);
        assert_eq!(run.stderr.contains("error[CI016]"), code == 1, "{header}: {}", run.stderr);
    }
}

#[test]
fn a_refused_input_leaves_the_old_output_and_says_so() {
    let project = Project::new(&[("k.cu", ""), ("out.cu", "old")]);
    project.run("k.cu -o out.cu").exits(1).says("CI003").says("out.cu was there before and is unchanged");
    assert_eq!(project.read("out.cu"), "old");
}

#[test]
fn bad_input_gets_its_code_and_no_output() {
    let inputs: [(&str, &[u8]); 6] = [
        ("CI003", b""),
        ("CI003", b"\xef\xbb\xbf"),
        ("CI003", b" \r\n\t// only a comment"),
        ("CI001", b"__global__ void k() { const char *s = \"gr\xfcn\"; }"),
        ("CI005", b"__global__ void k() { while (1) { }"),
        ("CI006", b"\x7fELF\x02\x01\x01\x00"),
    ];
    for (code, bytes) in inputs {
        let project = Project::new(&[]);
        project.write("k.cu", bytes);
        let run = project.run("k.cu -o out.cu");
        assert!(run.stderr.contains(&format!("error[{code}]")), "{code}: {run:?}");
        run.exits(1);
        assert_eq!(project.names("."), ["k.cu"]);
    }
}

#[test]
fn our_own_output_is_refused() {
    let project = Project::new(&[("k.cu", SPIN)]);
    project.run("k.cu -o once.cu").exits(0);
    project.run("once.cu -o twice.cu").exits(1).says("error[CI004]");
    assert!(!project.has("twice.cu"));
}

#[test]
fn latin1_in_comments_is_kept_and_said() {
    let project = Project::new(&[]);
    project.write("k.cu", &[b"// gr\xfc\xdfe\n".as_slice(), SPIN.as_bytes()].concat());
    project.run("k.cu -o out.cu --format short").exits(0).says("note[CI002]");
    let bytes = fs::read(project.0.path().join("out.cu")).expect("it was written");
    assert!(bytes.windows(6).any(|bytes| bytes == b"gr\xfc\xdfe\n"));
}

#[test]
fn a_gate_is_refused_where_a_return_comes_before_a_barrier() {
    let text = "__global__ void k(int *p, int n) {\n    if (threadIdx.x >= n) return;\n    __syncthreads();\n    p[threadIdx.x] = 1;\n}\n";
    let project = Project::new(&[("k.cu", text)]);
    project.run("k.cu -o out.cu --at-exit gate").exits(1).says("error[CI022]");
    project.run("k.cu -o out.cu --at-exit check").exits(0);
}

#[test]
fn reject_kernels_say_what_their_headers_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/reject");
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("readable").path();
        let bytes = fs::read(&path).expect("readable");
        let text = String::from_utf8_lossy(&bytes);
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("//@ {key}: ")));
            line.unwrap_or_else(|| panic!("{} has no `{key}`", path.display())).trim().to_owned()
        };
        let (code, severity) = (value("code"), value("severity"));
        assert!(!value("about").is_empty());
        assert!(text.lines().filter(|line| line.starts_with("//@")).count() == 3, "{}: unknown keys", path.display());
        let project = Project::new(&[]);
        project.write("k.cu", &bytes);
        let run = project.run("k.cu -o out.cu --format short");
        // A file of the host's is no error for the command, which copies it.
        let copied = code == "CI006" && run.stderr.contains("copied unchanged: no device code found (cuinstr explain CI006)");
        let refused = severity == "error";
        if copied {
            seen += 1;
            continue;
        }
        if !run.stderr.contains(&format!("{severity}[{code}]")) || project.has("out.cu") == refused || run.code != Some(i32::from(refused))
        {
            wrong.push(format!("{}: {run:?}", path.display()));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 20, "{seen} files");
}

#[test]
fn the_summary_counts_and_ends_with_the_missing_limit() {
    let project = Project::new(&[("k.cu", SPIN)]);
    let run = project.run("k.cu -o out.cu").exits(0).says("1 function (1 kernel), 1 loop (1 polled)").says("not covered: ");
    assert_eq!(run.stderr.lines().last(), Some(NO_LIMIT));
}

#[test]
fn a_limit_or_quiet_silences_the_last_line() {
    let project = Project::new(&[("k.cu", SPIN)]);
    for limit in ["--timeout 2s", "--budget-cycles 1000000", "--fuel 1000"] {
        let run = project.run(&format!("k.cu -o out.cu {limit}")).exits(0).says("1 kernel");
        assert!(!run.stderr.contains("no limit"), "{run:?}");
    }
    project.run("k.cu -o out.cu -q").exits(0).silent();
}

#[test]
fn the_summary_names_what_is_not_covered() {
    let project = Project::new(&[("k.cu", ASM)]);
    project.run("k.cu -o out.cu").exits(0).says("not covered: 1 gap").says("1 x CI013: inline assembly holds a loop");
}

#[test]
fn limits_and_polls_change_the_output() {
    let project = Project::new(&[("k.cu", SPIN)]);
    let plain = project.run("k.cu -o -").exits(0).stdout;
    for option in [
        "--timeout 2s",
        "--budget-cycles 5",
        "--fuel 5",
        "--polls each",
        "--polls count-down",
        "--poll-gap 40us",
        "--poll-gap 5us",
        "--at-exit gate",
    ] {
        let other = project.run(&format!("k.cu -o - {option}")).exits(0).stdout;
        assert_ne!(other, plain, "{option}");
    }
    assert_eq!(project.run("k.cu -o - --polls amortised --poll-gap 20us --at-exit check").exits(0).stdout, plain, "these are the defaults");
}

#[test]
fn macros_of_headers_and_pieces_of_functions_are_read() {
    for (header, statement, code) in [
        ("#define COPY(to, from, count) memcpy(to, from, count)\n", "COPY(p, p + n, n);", "CI019"),
        ("#define COPY(to, from, count) memcpy(to, from, count)\n", "COPY(p, p + n, 16);", ""),
        ("#define AGAIN(x) if (x) goto top\n", "AGAIN(p[3]);", "CI012"),
        ("#define ONCE(x) do { x; } while (0)\n", "ONCE(p[3] = 1);", ""),
    ] {
        let source = format!("#include \"some.h\"\n__global__ void k(int *p, int n) {{ top: p[1]++; {statement} }}\n");
        let run = Project::new(&[("k.cu", &*source), ("some.h", header)]).run("k.cu -o out.cu --strict").exits(i32::from(!code.is_empty()));
        assert!(run.stderr.contains(code), "{header}: {}", run.stderr);
    }
    for (piece, is_told) in [("memcpy(p, p + n, n);\n", true), ("memcpy(p, p + n, 16);\n", false), ("while (p[3]) p[4]++;\n", true)] {
        let source = "__global__ void k(int *p, int n) {\n#include \"piece.inc\"\n}\n";
        let run = Project::new(&[("k.cu", source), ("piece.inc", piece)]).run("k.cu -o out.cu --strict").exits(i32::from(is_told));
        assert_eq!(run.stderr.contains("error[CI016]"), is_told, "{piece}: {}", run.stderr);
    }
}

#[test]
fn a_header_in_a_folder_of_the_users_is_none_of_the_systems() {
    let device = "__device__ inline void part(volatile int *p) { while (*p) { } }\n";
    let kernel = "__global__ void k(volatile int *p) { while (*p) { } }\n";
    for (include, header, option, is_told) in [
        ("<algorithm>", device, "-Imine", true),
        ("<algorithm>", device, "-I other -I mine", true),
        ("<algorithm>", device, "--include-path=other", false),
        ("<algorithm>", "int twice(int);\n", "-Imine", false),
        ("\"vector\"", device, "-Imine", true),
        ("<own.h>", device, "-Imine", true),
        ("<own.h>", "int twice(int);\n", "-Imine", false),
    ] {
        let name = include.trim_matches(['<', '>', '"']);
        let project =
            Project::new(&[("k.cu", &*format!("#include {include}\n{kernel}")), (&*format!("mine/{name}"), header), ("other/x.h", "")]);
        let run = project.run(&format!("k.cu -o out.cu --strict {option}")).exits(i32::from(is_told));
        assert_eq!(run.stderr.contains("error[CI016]"), is_told, "{include} {option}: {}", run.stderr);
    }
}

#[test]
fn a_header_of_the_users_is_none_of_the_systems_of_that_name() {
    let device = "__device__ void part(volatile int *p) { while (*p) { } }\n";
    for (name, is_told) in [("math.h", true), ("vector", true), ("cuda_runtime.h", true), ("my_kernels", true), ("limits.h", false)] {
        let source = format!("#include \"{name}\"\n__global__ void k(volatile int *p) {{ while (*p) {{ }} }}\n");
        let files = [("k.cu", &*source), (if is_told { name } else { "other.h" }, device)];
        let run = Project::new(&files).run("k.cu -o out.cu");
        assert_eq!(run.stderr.contains("warning[CI016]"), is_told, "{name}: {}", run.stderr);
    }
    for name in ["no_such_header", "thrust_like"] {
        let source = format!("#include <{name}>\n__global__ void k(volatile int *p) {{ while (*p) {{ }} }}\n");
        Project::new(&[("k.cu", &*source)]).run("k.cu -o out.cu").says("warning[CI016]");
    }
}
