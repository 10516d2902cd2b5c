//! Headers: which are rewritten, and that the preprocessor finds each where it would without us.

use crate::project::{Project, SPIN, expect, text};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

/// A device function with a loop that needs a poll, and a host function that says where it stands.
fn header(name: &str, before: &str) -> String {
    format!(
        "{before}\ninline const char* where_{name}() {{ return __FILE__; }}\n__device__ void {name}(volatile int* p) {{ while (*p) {{ }} }}\n"
    )
}

/// nvcc's own ending for what its device compiler reads.
pub(crate) const STEP: &str = ".cpp1.ii";

/// The project preprocessed plainly and by the launcher: our text away, both must be the same, and these functions have polls.
fn same_but_for_polls(project: &Project, options: &str, source: &str, polled: &[&str]) {
    let mut plain = Command::new("gcc");
    plain.current_dir(project.path()).args(["-E", "-x", "c++", "-D__CUDACC__"]).args(options.split_whitespace()).arg(source);
    let plain = text(&expect(&mut plain, 0).stdout);
    let mut ours = project.launch(&["-c", source]);
    let output = expect(ours.env("SHIM_SOURCES", source).env("SHIM_OPTIONS", options).env("SHIM_ENDING", STEP), 0);
    // Loops of headers that are not rewritten are told: `loops_of_headers_that_are_not_rewritten_are_told`.
    let said = text(&output.stderr);
    assert!(said.lines().all(|line| line.starts_with("system/") && line.contains("[CI016]")), "{said}");
    let ours = project.preprocessed_as(source.rsplit('/').next().expect("a name"), STEP);
    for name in polled {
        let line = ours.lines().find(|line| line.contains(&format!("void {name}("))).unwrap_or_else(|| panic!("{name} is gone"));
        assert!(line.contains("__cuinstr_"), "{name} is not polled: {line}");
    }
    let names = |text: &str| {
        // The prelude, from its beginning to where the preprocessor is back at its command line.
        let (before, after) = text
            .split_once("# 1 \"<cuinstr>\" 1")
            .map_or((text, ""), |(before, rest)| (before, rest.split_once("\"<command-line>\" 2\n").expect("the prelude ends").1));
        let lines = before.lines().chain(after.lines());
        lines.filter(|line| line.starts_with("# ") || line.contains("where_")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&ours), names(&plain));
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn each_way_to_name_a_header_leads_to_its_rewritten_text() {
    let project = Project::new(&[
        (
            "src/a.cu",
            "#include \"own.cuh\"\n#include \"../include/up.cuh\"\n#include <deep/angled.cuh>\n#include COMPUTED\n#include <wrapped.cuh>\n\
             #include \"rows.inc\"\n#define ROW int second;\n#include \"rows.inc\"\n#if __has_include(<never.cuh>) || !__has_include(\"own.cuh\")\n#error\n#endif\n\
             const char* where_a() { return __FILE__; }\n",
        ),
        ("src/own.cuh", &header("own", "#pragma once\n#include \"../include/up.cuh\"")),
        ("src/rows.inc", "#ifndef ROW\n#define ROW int first;\n#endif\nROW\n#undef ROW\n"),
        ("include/up.cuh", &header("up", "#pragma once\n#include \"deep/../deep/angled.cuh\"")),
        ("include/deep/angled.cuh", &header("angled", "#ifndef ANGLED\n#define ANGLED").replace("} }\n", "} }\n#endif\n")),
        ("include/computed.cuh", &header("computed", "#pragma once\n#include \"deep/angled.cuh\"\n#include \"next_to_computed.cuh\"")),
        ("include/next_to_computed.cuh", &header("next_to_computed", "#pragma once")),
        ("wrap1/wrapped.cuh", &header("wrapped", "#ifndef WRAPPED\n#define WRAPPED\n#include_next <wrapped.cuh>\n#endif")),
        ("wrap2/wrapped.cuh", &header("inner", "#ifndef INNER\n#define INNER\n#endif")),
        ("forced.cuh", &header("forced", "#pragma once\n#include \"include/up.cuh\"")),
    ]);
    // The folder of every header is found by a link, too.
    symlink(project.path().join("include"), project.path().join("linked")).expect("a link");
    let polled = ["own", "up", "angled", "computed", "next_to_computed", "wrapped", "inner"];
    same_but_for_polls(&project, "-Iinclude -I wrap1 -Iwrap2 -DCOMPUTED=<computed.cuh>", "src/a.cu", &polled);
    same_but_for_polls(&project, "-Ilinked -iquote wrap2 -I./wrap1 -DCOMPUTED=\"../linked/computed.cuh\" -Iwrap2", "src/a.cu", &polled);
    let forced = [&polled[..], &["forced"]].concat();
    same_but_for_polls(&project, "-include forced.cuh -Iinclude -Iwrap1 -Iwrap2 -DCOMPUTED=<computed.cuh>", "src/a.cu", &forced);
}

#[test]
fn absolute_paths_are_followed() {
    let project = Project::new(&[
        ("lib/far.cuh", &header("far", "#pragma once\n#include \"near.cuh\"")),
        ("lib/near.cuh", &header("near", "#pragma once")),
    ]);
    let folder = project.path().display();
    project.write("unity.cu", &format!("#include \"{folder}/lib/far.cuh\"\n#include \"lib/near.cuh\"\n#include \"{folder}/part.cu\"\n"));
    project.write("part.cu", &header("part", "#include <lib/near.cuh>"));
    same_but_for_polls(&project, &format!("-I{folder}"), "unity.cu", &["far", "near", "part"]);
    same_but_for_polls(&project, &format!("-I{folder}"), &format!("{folder}/unity.cu"), &["far", "near", "part"]);
}

#[test]
fn a_header_that_a_system_header_asks_for_is_rewritten_too() {
    let project = Project::new(&[
        ("a.cu", "#include <system.h>\n"),
        ("system/system.h", "#include <config/user.cuh>\n__device__ inline void theirs(volatile int* p) { while (*p) { } }\n"),
        ("mine/config/user.cuh", &header("user", "#pragma once\n#include \"beside.cuh\"")),
        ("mine/config/beside.cuh", &header("beside", "#pragma once")),
    ]);
    same_but_for_polls(&project, "-Imine -isystem system", "a.cu", &["user", "beside"]);
    let ours = project.preprocessed_as("a.cu", STEP);
    let theirs = ours.lines().find(|line| line.contains("void theirs(")).expect("it is there");
    assert!(!theirs.contains("__cuinstr_"), "a system's header is not ours to change: {theirs}");
}

#[test]
fn loops_of_headers_that_are_not_rewritten_are_told() {
    let theirs = "#pragma once\n__device__ inline void wait(volatile int* p) { while (*p) { } }\n";
    let project = Project::new(&[
        ("a.cu", "#include <theirs.h>\n#include <plain.h>\n__global__ void k(int* p) { wait(p); }\n"),
        ("b.cu", "#include <plain.h>\n#if 0\n#include <theirs.h>\n#endif\n__global__ void k(int* p) { *p = plain(); }\n"),
        ("system/theirs.h", theirs),
        ("system/plain.h", "#pragma once\n__device__ inline int plain() { return 1; }\nstatic int host() { for (;;); }\n"),
        ("mine/theirs.h", theirs),
    ]);
    let run = |source: &str, flags: &str, options: &str, status: i32| {
        let mut command = project.launch(&["-c", source]);
        command.env("SHIM_SOURCES", source).env("SHIM_OPTIONS", options).env("CUINSTR_FLAGS", flags);
        text(&expect(&mut command, status).stderr)
    };
    let told = run("a.cu", "", "-isystem system", 0);
    assert!(told.starts_with("system/theirs.h: warning[CI016]: headers of -isystem are not rewritten, and 1 of those"), "{told}");
    assert!(run("a.cu", "--strict", "-isystem system", 1).contains("system/theirs.h: error[CI016]: "));
    // What is not read is no gap, nor is what is rewritten.
    assert_eq!(run("b.cu", "--strict", "-isystem system", 0), "");
    assert_eq!(run("a.cu", "--strict", "-Imine -isystem system", 0), "");
}

#[test]
fn files_of_the_user_s_in_folders_of_isystem_are_rewritten() {
    let project = Project::new(&[
        (
            "src/a.cu",
            "#include \"own.cuh\"\n#include \"../include/up.cuh\"\n#include <up.cuh>\n__device__ void a(volatile int* p) { while (*p) { } }\n",
        ),
        ("src/own.cuh", &header("own", "#pragma once")),
        ("include/up.cuh", &header("up", "#pragma once\n#include \"beside.cuh\"")),
        ("include/beside.cuh", &header("beside", "#pragma once")),
    ]);
    let all = ["a", "own", "up", "beside"];
    for folder in ["src", ".", &project.path().display().to_string()] {
        same_but_for_polls(&project, &format!("-isystem {folder} -isystem include"), "src/a.cu", &all);
    }
    same_but_for_polls(&project, "-Iinclude -isystem include", "src/a.cu", &all);
    // What only the search for angles finds is a header of others, and is told.
    fs::write(project.path().join("src/b.cu"), "#include \"own.cuh\"\n#include <theirs.cuh>\n").expect("a file");
    fs::write(project.path().join("src/theirs.cuh"), header("theirs", "#pragma once")).expect("a file");
    let mut command = project.launch(&["-c", "src/b.cu"]);
    let output = expect(command.env("SHIM_SOURCES", "src/b.cu").env("SHIM_OPTIONS", "-isystem src"), 0);
    assert!(text(&output.stderr).contains("/src/theirs.cuh: warning[CI016]"), "{}", text(&output.stderr));
}

#[test]
fn names_may_hold_blanks_quotes_and_any_letters() {
    for name in ["with blank", "qu\"ote's", "größe-日本", "back\\slash", "$HOME;&"] {
        let project = Project::new(&[]);
        project.write(&format!("{name}/x y.cuh"), &header("odd", "#pragma once"));
        project.write("plain.cu", "#include <x y.cuh>\nconst char* where_main() { return __FILE__; }\n");
        // The shim's words are split at blanks, so the folder comes by a variable here.
        let command = |program: &mut Command| {
            program.current_dir(project.path()).env("CPATH", project.path().join(name));
            text(&expect(program, 0).stdout)
        };
        let plain = command(Command::new("gcc").args(["-E", "-x", "c++", "-D__CUDACC__", "plain.cu"]));
        command(project.launch(&["-c", "plain.cu"]).env("SHIM_SOURCES", "plain.cu"));
        let ours = project.preprocessed("plain.cu");
        let names = |text: &str| {
            text.lines()
                .filter(|line| line.contains("where_") || line.starts_with("# ") && line.contains("x y.cuh"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&ours), names(&plain), "{name}");
        assert!(ours.contains("__cuinstr_") && names(&plain).len() >= 3, "{name}");
    }
}

#[test]
fn a_read_only_source_tree_is_enough() {
    let project = Project::new(&[("src/a.cu", "#include \"b.cuh\"\n"), ("src/b.cuh", &header("b", "#pragma once"))]);
    let folder = project.path().join("src");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).expect("it is ours");
    same_but_for_polls(&project, "", "src/a.cu", &["b"]);
    assert_eq!(fs::read_dir(&folder).expect("readable").count(), 2);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn the_hosts_side_reads_the_users_own_text() {
    let macro_named = "#define NAME \"c.cuh\"\n#include NAME\n#include <b.cuh>\n";
    let project = Project::new(&[("src/a.cu", macro_named), ("include/b.cuh", &header("b", "")), ("src/c.cuh", &header("c", ""))]);
    let mut command = project.launch(&["-c", "a.cu"]);
    expect(command.env("SHIM_SOURCES", "src/a.cu").env("SHIM_ENDING", ".cpp4.ii").env("SHIM_OPTIONS", "-Iinclude"), 0);
    let found = project.preprocessed_as("a.cu", ".cpp4.ii");
    assert!(found.contains("# 1 \"<cuinstr>\"") && !found.contains("cuinstr-"), "{found}");
    // What the CUDA runtime is told of by name, where a stop is reported, and nothing of the device's side.
    for name in ["cuinstr_flag_v1", "cuinstr_control_v1", "__cuinstr_sites_unit", "include/b.cuh", "src/c.cuh"] {
        assert!(found.contains(name), "{name}: {found}");
    }
    assert!(!found.contains("__cuinstr_poll") && !found.contains("__cuinstr_tick"), "{found}");
    let plain = expect(project.command("gcc").args(["-E", "-x", "c++", "-D__CUDACC__", "-Iinclude", "src/a.cu"]), 0);
    let plain = text(&plain.stdout);
    let (_, own) = plain.split_once("# 1 \"src/c.cuh\"").expect("it is included");
    assert!(found.ends_with(own), "{found}\n{own}");
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn a_header_that_changes_between_two_passes_stays_what_it_was_at_the_first() {
    let project = Project::new(&[("a.cu", "#include \"b.cuh\"\n"), ("b.cuh", &header("before", "#pragma once"))]);
    project.write("after.cuh", &header("after", "#pragma once"));
    // Host and device passes of one compilation must see the same text.
    let shim = fs::read_to_string(project.shim())
        .expect("readable")
        .replace("|| exit", "|| exit; cp after.cuh b.cuh; cp \"$here/a.cu.ii\" \"$here/last.ii\"");
    fs::write(project.shim(), shim).expect("writable");
    expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu a.cu"), 0);
    let last = fs::read_to_string(project.path().join("toolkit/bin/last.ii")).expect("readable");
    assert!(last.contains("where_before") && !last.contains("where_after"));
    expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu"), 0);
    assert!(project.preprocessed("a.cu").contains("where_after"));
}

#[test]
fn a_file_that_vanishes_between_two_passes_is_what_it_was_or_named_as_missing() {
    for (gone, code) in [("b.cuh", 0), ("a.cu", 1)] {
        let project = Project::new(&[("a.cu", "#include \"b.cuh\"\n"), ("b.cuh", &header("before", "#pragma once"))]);
        let shim = fs::read_to_string(project.shim()).expect("readable").replace("|| exit", &format!("|| exit; rm -f {gone}"));
        fs::write(project.shim(), shim).expect("writable");
        let said = text(&expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu a.cu"), code).stderr);
        // A header is read from where the first pass left it; the preprocessor itself opens what the command line names.
        assert!(if code == 0 { said.is_empty() } else { said.contains("a.cu: No such file") }, "{gone}: {said}");
        assert_eq!(project.left_behind(), Vec::<PathBuf>::new(), "{gone}");
        let said = text(&expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu"), 1).stderr);
        assert!(said.contains(&format!("{gone}: No such file")), "{said}");
    }
}

#[test]
fn headers_of_odd_bytes_are_read_as_the_preprocessor_reads_them() {
    let project = Project::new(&[
        ("a.cu", "#include \"bom.cuh\"\n#include \"latin.cuh\"\n#include \"round.cuh\"\n#include <folder.cuh>\n"),
        ("bom.cuh", &format!("\u{feff}{}", header("bom", "#pragma once").replace('\n', "\r\n"))),
        ("round.cuh", &header("round", "#pragma once\n#include \"a.cu\"\n#include \"round.cuh\"")),
        // A folder of the name, in front of the file that it leads to.
        ("first/folder.cuh/none", ""),
        ("second/folder.cuh", &header("folder", "#pragma once")),
    ]);
    let latin = [b"// caf\xe9 \xff\n".as_slice(), header("latin", "#pragma once").as_bytes()].concat();
    fs::write(project.path().join("latin.cuh"), latin).expect("writable");
    same_but_for_polls(&project, "-Ifirst -Isecond", "a.cu", &["bom", "latin", "round", "folder"]);
}

#[test]
fn builds_at_once_share_their_headers_and_leave_nothing() {
    let project = Project::new(&[("shared.cuh", &header("shared", "#pragma once"))]);
    let sources: Vec<String> = (0..12).map(|number| format!("s{number}.cu")).collect();
    for source in &sources {
        project.write(source, "#include \"shared.cuh\"\n");
    }
    let children: Vec<_> =
        sources.iter().map(|source| project.launch(&["-c", source]).env("SHIM_SOURCES", source).spawn().expect("it starts")).collect();
    for (mut child, source) in children.into_iter().zip(&sources) {
        assert!(child.wait().expect("it ends").success(), "{source}");
        assert!(project.preprocessed(source).contains("__cuinstr_"), "{source}");
    }
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn a_preprocessor_that_fails_names_the_users_files() {
    let project = Project::new(&[
        ("src/a.cu", "#include \"b.cuh\"\n"),
        ("src/b.cuh", "#include \"nowhere.h\"\n__device__ void f(int* p) { while (*p) { } }\n"),
    ]);
    let plain = Command::new("gcc")
        .current_dir(project.path())
        .args(["-E", "-x", "c++", "-D__CUDACC__", "src/a.cu"])
        .output()
        .expect("gcc is there");
    let output = expect(project.launch(&["-c", "src/a.cu"]).env("SHIM_SOURCES", "src/a.cu"), 1);
    assert_eq!(text(&output.stderr), text(&plain.stderr));
    assert!(!project.path().join("toolkit/bin/a.cu.ii").exists());
}

#[test]
fn a_macro_of_one_header_marks_functions_in_another() {
    let config = "#pragma once\n#ifdef __CUDACC__\n#define ESS __host__ __device__\n#define FAST DEVICE_ONLY\n#else\n#define ESS\n#endif\n";
    let later = "#pragma once\n#define DEVICE_ONLY __device__ __forceinline__\n";
    let library = "#pragma once\nESS\nstatic inline int count(unsigned n) { int c = 0; while (n & 1) n >>= 1, ++c; return c; }\n\
                   FAST int wait(volatile int* p) { while (*p) {} return 0; }\nstatic int host(int n) { while (n > 1) n /= 3; return n; }\n";
    let source = format!("#include \"later.h\"\n#include \"config.h\"\n#include \"library.h\"\n{SPIN}");
    let project = Project::new(&[("a.cu", &source), ("config.h", config), ("later.h", later), ("library.h", library)]);
    expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu"), 0);
    let text = project.preprocessed("a.cu");
    let line = |mark: &str| text.lines().find(|line| line.contains(mark)).unwrap_or_else(|| panic!("{mark} is gone")).to_owned();
    assert!(line("int count(").contains("__cuinstr_tick_hd"), "{}", line("int count("));
    assert!(line("int wait(").contains("__cuinstr_") && !line("int wait(").contains("_hd("), "{}", line("int wait("));
    assert!(!line("static int host(").contains("__cuinstr_"), "{}", line("static int host("));
}

#[test]
fn a_macro_of_one_header_is_known_to_open_no_loop_in_another() {
    let user = "__global__ void k(int* p) {\n    WHEN { p[0] = 1; }\n    EACH(i, p[1]) { p[i] = 2; }\n    ELSEWHERE { p[2] = 3; }\n}\n";
    let project = Project::new(&[
        ("a.cu", "#include \"macros.h\"\n#include \"b.cuh\"\n"),
        ("macros.h", "#define INNER if (true)\n#define WHEN INNER\n#define EACH(i, n) for (int i = 0; i < n; ++i)\n"),
        ("b.cuh", user),
    ]);
    let output = expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu").env("SHIM_OPTIONS", "-DELSEWHERE=if(true)"), 0);
    let said = text(&output.stderr);
    let names: Vec<&str> = said.lines().filter_map(|line| line.split('`').nth(1)).collect();
    assert_eq!(names, ["EACH", "ELSEWHERE"], "{said}");
    let preprocessed = project.preprocessed("a.cu");
    assert!(preprocessed.contains("if (true) { p[0] = 1; }"), "{preprocessed}");
}

#[test]
fn a_number_of_one_header_changes_no_counter_in_another() {
    let user = "__global__ void k(int* p, int n) {\n    for (int i = 0; i < n; ++i) p[i] = p[i] == FIRST_MODE ? COLUMNS : 0;\n    for (int i = 0; i < n; ++i) p[i] = NEXT;\n}\n";
    let project = Project::new(&[
        ("a.cu", "#include \"numbers.h\"\n#include \"b.cuh\"\n"),
        ("numbers.h", "#define COLUMNS 7\n#define NEXT i++\nenum { FIRST_MODE, OTHER_MODE };\n"),
        ("b.cuh", user),
    ]);
    expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu"), 0);
    let text = project.preprocessed("a.cu");
    let line = |mark: &str| text.lines().find(|line| line.contains(mark)).unwrap_or_else(|| panic!("{mark} is gone")).to_owned();
    assert!(line("? 7 : 0").contains("__cuinstr_below<"), "{}", line("? 7 : 0"));
    assert!(line("= i++").contains("__cuinstr_again("), "{}", line("= i++"));
}

#[test]
fn two_copies_of_a_header_are_one_where_the_preprocessor_takes_them_for_one() {
    let text = header("twin", "#pragma once");
    let source = "#include \"one/twin.cuh\"\n#include \"other/twin.cuh\"\n#include \"linked/twin.cuh\"\n";
    let project = Project::new(&[("a.cu", source), ("one/twin.cuh", &text), ("other/twin.cuh", &text), ("linked/none", "")]);
    let (one, other) = (project.path().join("one/twin.cuh"), project.path().join("other/twin.cuh"));
    // As after `cp -p`, or where both were written within one second.
    let time = fs::metadata(&one).and_then(|metadata| metadata.modified()).expect("it is there");
    fs::File::options().write(true).open(&other).and_then(|file| file.set_modified(time)).expect("it is ours");
    fs::hard_link(&other, project.path().join("linked/twin.cuh")).expect("a link");
    same_but_for_polls(&project, "", "a.cu", &["twin"]);
    assert_eq!(project.preprocessed_as("a.cu", STEP).matches("void twin(").count(), 1);
    // Of another time they are two, for which the compiler will have a word.
    fs::File::options().write(true).open(&one).and_then(|file| file.set_modified(std::time::UNIX_EPOCH)).expect("it is ours");
    same_but_for_polls(&project, "", "a.cu", &["twin"]);
    assert_eq!(project.preprocessed_as("a.cu", STEP).matches("void twin(").count(), 2);
}

#[test]
fn a_header_that_is_read_before_there_are_polls_is_left_as_it_is() {
    let project = Project::new(&[
        ("a.cu", "#include \"later.cuh\"\n"),
        ("later.cuh", &header("later", "#pragma once")),
        ("mine/stdio.h", &header("early", "#pragma once\n#include_next <stdio.h>\n#include \"below.cuh\"")),
        ("mine/below.cuh", &header("below", "#pragma once")),
        // Stands for the toolkit's, which nvcc has included before the source.
        ("toolkit/include/cuda_runtime.h", "#pragma once\n#include <stdio.h>\n"),
    ]);
    let run = |flags: &str, code| {
        let mut command = project.launch(&["-c", "a.cu"]);
        command
            .env("SHIM_SOURCES", "a.cu")
            .env("SHIM_OPTIONS", "-Imine -Itoolkit/include -include cuda_runtime.h")
            .env("CUINSTR_FLAGS", flags);
        text(&expect(command.env("SHIM_ENDING", STEP), code).stderr)
    };
    let said = run("", 0);
    assert_eq!(said.matches("warning: cuinstr did not rewrite this file").count(), 2, "{said}");
    assert!(said.contains("mine/stdio.h: ") && said.contains("mine/below.cuh: "), "{said}");
    let text = project.preprocessed_as("a.cu", STEP);
    let line = |mark: &str| text.lines().find(|line| line.contains(mark)).unwrap_or_else(|| panic!("{mark} is gone")).to_owned();
    assert!(!line("void early(").contains("__cuinstr_") && !line("void below(").contains("__cuinstr_"));
    assert!(line("void later(").contains("__cuinstr_"));
    assert!(run("--strict", 1).contains("mine/stdio.h: error: "));
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn a_file_that_xcompiler_includes_stands_in_front_of_the_toolkit_s_headers() {
    let project = Project::new(&[
        ("a.cu", &header("main", "#if CONFIG != 3 || !defined(RUNTIME)\n#error\n#endif")),
        ("config.h", "#define CONFIG 3\n"),
        ("early.cuh", &header("early", "#pragma once")),
        ("toolkit/include/cuda_runtime.h", "#pragma once\n#define RUNTIME CONFIG\n"),
    ]);
    let run = |options: &str| {
        let mut command = project.launch(&["-c", "a.cu"]);
        command.env("SHIM_SOURCES", "a.cu").env("SHIM_OPTIONS", options).env("SHIM_ENDING", STEP);
        (text(&expect(&mut command, 0).stderr), project.preprocessed_as("a.cu", STEP))
    };
    let (said, made) = run("-Itoolkit/include -include config.h -include cuda_runtime.h");
    let at = |mark: &str| made.find(mark).unwrap_or_else(|| panic!("{mark} is gone: {made}"));
    assert_eq!(said, "");
    assert!(at("toolkit/include/cuda_runtime.h\"") < at("\"<cuinstr>\"") && at("\"<cuinstr>\"") < at("void main("));
    let (said, made) = run("-Itoolkit/include -DCONFIG=3 -include early.cuh -include cuda_runtime.h");
    assert!(said.contains("early.cuh: warning: cuinstr did not rewrite this file"), "{said}");
    let line = |mark: &str| made.lines().find(|line| line.contains(mark)).unwrap_or_else(|| panic!("{mark} is gone")).to_owned();
    assert!(!line("void early(").contains("__cuinstr_") && line("void main(").contains("__cuinstr_"));
}

#[test]
fn maps_of_paths_say_what_file_is() {
    let project = Project::new(&[
        ("src/a.cu", "#include <deep/b.cuh>\nconst char* where_a() { return __FILE__; }\n"),
        ("lib/deep/b.cuh", &header("b", "")),
    ]);
    let here = project.path().display();
    // The folder for temporary files lies below the one that is mapped, too.
    for options in [
        format!("-I{here}/lib -fmacro-prefix-map={here}/=MAPPED/ {here}/src/a.cu"),
        format!("-I{here}/lib -ffile-prefix-map={here}=."),
        "-Ilib -fmacro-prefix-map=lib/deep/=LONGER/ -fmacro-prefix-map=src=S".to_owned(),
        "-Ilib -fmacro-prefix-map=lib/=ONE/ -ffile-prefix-map=lib/d=OTHER_D".to_owned(),
        "-Ilib -ffile-prefix-map=lib/d=OTHER_D -fmacro-prefix-map=l=L".to_owned(),
        "-Ilib -fmacro-prefix-map=/=/ROOT/".to_owned(),
    ] {
        let (options, source) = options.rsplit_once(' ').filter(|(_, last)| last.starts_with('/')).unwrap_or((&options, "src/a.cu"));
        same_but_for_polls(&project, options, source, &["b"]);
    }
}

#[test]
fn macros_of_the_command_line_decide_conditions() {
    let gap = "#if OLD > 2\n__global__ void k() {\n  asm volatile(\"L: bra L;\");\n}\n#endif\n";
    let main = format!("#include \"setup.cuh\"\n#include \"old.cuh\"\n{SPIN}");
    for (setup, options, code) in [
        ("#ifndef OLD\n#define OLD 3\n#endif\n", "-DOLD=1", 0),
        ("#ifndef OLD\n#define OLD 3\n#endif\n", "-DOLD=3", 1),
        ("", "-UOLD", 0),
        ("", "-D OLD=9 -D OLD=2", 0),
        ("", "", 1),
        // What a file says otherwise holds, whatever it says.
        ("#undef OLD\n#define OLD 1\n", "-DOLD=1", 1),
        ("#ifdef OTHER\n#define OLD 3\n#endif\n", "-UOLD", 1),
        ("#ifdef OTHER\n#define OLD 3\n#endif\n", "-UOLD -UOTHER", 0),
        ("#undef OTHER\n#define OTHER\n#ifdef OTHER\n#define OLD 3\n#endif\n", "-UOLD -UOTHER", 1),
    ] {
        let project = Project::new(&[("a.cu", &main), ("setup.cuh", setup), ("old.cuh", gap)]);
        let mut command = project.launch(&["-c", "a.cu"]);
        command.env("SHIM_SOURCES", "a.cu").env("SHIM_OPTIONS", options).env("CUINSTR_FLAGS", "--strict");
        let output = expect(&mut command, code);
        assert_eq!(text(&output.stderr).contains("error[CI013]"), code == 1, "{setup}{options}: {}", text(&output.stderr));
    }
}

/// What is said of a source with strict rules, and its text for the device where nothing is.
pub(crate) fn strictly(project: &Project, options: &str, source: &str) -> Result<String, String> {
    let mut command = project.launch(&["-c", source]);
    command.env("SHIM_SOURCES", source).env("SHIM_OPTIONS", options).env("SHIM_ENDING", STEP).env("CUINSTR_FLAGS", "--strict");
    let output = command.output().expect("it runs");
    if output.status.success() { Ok(project.preprocessed_as(source, STEP)) } else { Err(text(&output.stderr)) }
}

#[test]
fn macros_of_others_that_may_repeat_are_told_where_they_are_used() {
    let kernel = |statement: &str| format!("#include <pre.h>\n__global__ void k(volatile int* o) {{ top: o[1]++; {statement} }}\n");
    for (options, macros, statement, is_gap) in [
        ("-Dspin=while(*o)", "", "spin;", true),
        ("-Dloop(x)=while(x)", "", "loop(*o);", true),
        ("-Dplain(x)=(x+1)", "", "o[2]=plain(*o);", false),
        ("-isystem pre", "#define spin while(*o)\n", "spin;", true),
        ("-isystem pre", "#define spin while(*o)\n#define once(x) do { x; } while (0)\n", "once(o[2] = 1);", false),
        ("-isystem pre", "#define retry_if(x) if (x) goto top\n", "retry_if(*o);", true),
        ("-Ipre", "#define retry_if(x) if (x) goto top\n", "retry_if(*o);", true),
        ("-Ipre", "#define out_if(x) if (x) goto out\n", "out_if(*o); out: ;", false),
        ("-isystem pre", "#define DO(x) my_##x\n#define my_spin(c) while(c)\n", "DO(spin)(*o);", true),
        ("-isystem pre", "#define wait_here() asm volatile(\"{ L%=: bra L%=; }\")\n", "wait_here();", true),
    ] {
        let project = Project::new(&[("a.cu", &kernel(statement)), ("pre/pre.h", macros)]);
        let options = if options.starts_with("-D") { format!("-Ipre {options}") } else { options.to_owned() };
        let done = strictly(&project, &options, "a.cu");
        assert_eq!(done.is_err(), is_gap, "{options} {macros} {statement}: {done:?}");
        if let Err(said) = done {
            assert!(said.contains("a.cu:2:") && said.contains("error[CI"), "{said}");
        }
    }
}

#[test]
fn loops_that_the_compiler_makes_of_macros_of_other_files_are_told() {
    let kernel = |statement: &str| format!("#include <pre.h>\n__global__ void k(char* a, char* b, int n) {{ {statement} }}\n");
    let copy = "#define copy(to, from, count) memcpy(to, from, count)\n";
    let more = "#define also(to, from) copy(to, from, n)\n#define DO(what) co##what\n";
    for (options, macros, statement, is_gap) in [
        ("-Ipre", copy, "copy(a, b, n);", true),
        ("-isystem pre", copy, "copy(a, b, n);", true),
        ("-Ipre -Dcopy(to,from,count)=memcpy(to,from,count)", "", "copy(a, b, n);", true),
        ("-Ipre", copy, "copy(a, b, 64);", false),
        ("-Ipre", copy, "copy(a, b, 1 << 20);", true),
        ("-Ipre", &format!("{copy}{more}"), "also(a, b);", true),
        ("-Ipre", &format!("{copy}{more}"), "DO(py)(a, b, n);", true),
        ("-Ipre", "#define MAKE(type, count) new type[count]\n", "struct S { int a; __device__ S() { a = 3; } }; new S; MAKE(S, n);", true),
    ] {
        let project = Project::new(&[("a.cu", &kernel(statement)), ("pre/pre.h", macros)]);
        let done = strictly(&project, options, "a.cu");
        let said = done.err();
        assert_eq!(said.is_some(), is_gap, "{options} {macros} {statement}: {said:?}");
        if let Some(said) = said {
            assert!(said.contains("a.cu:2:") && said.contains("error[CI019]"), "{said}");
        }
    }
}

#[test]
fn what_no_poll_can_stand_in_is_told_in_a_piece_of_a_function_too() {
    let source = |before: &str, after: &str| {
        format!("{before}\n__global__ void k(volatile int* o, int n) {{ top: o[1]++;\n#include \"piece.inc\"\n{after} o[2] = 1; }}\n")
    };
    let class = "struct S { int a; __device__ S() { a = 3; } };";
    for (before, piece, after, code) in [
        ("", "memcpy((void*)o, (void*)(o + n), n);\n", "", Some("CI019")),
        (class, "S* made = new S[n];\n", "o[3] = made[1].a;", Some("CI019")),
        ("", "int all[300][300] = {};\n", "o[3] = all[n][n];", Some("CI019")),
        ("#define again(x) if (x) goto top\n", "again(o[3]);\n", "", Some("CI012")),
        ("", "memcpy((void*)o, (void*)(o + n), 16);\n", "", None),
        ("", "while (o[3]) { o[4]++; }\n", "", None),
    ] {
        let project = Project::new(&[("a.cu", &source(before, after)), ("piece.inc", piece)]);
        let done = strictly(&project, "", "a.cu");
        match (&done, code) {
            (Err(said), Some(code)) => assert!(said.contains("piece.inc:1:") && said.contains(&format!("error[{code}]")), "{said}"),
            (done, code) => assert_eq!((done.is_err(), code), (false, None), "{piece}: {done:?}"),
        }
    }
    // In a header, an array of the program's is no loop of a kernel's.
    let project = Project::new(&[
        ("a.cu", "#include \"all.h\"\n__global__ void k(int* o) { while (*o) *o = all[1]; }\n"),
        ("all.h", "static __device__ int all[90000] = {};\n"),
    ]);
    strictly(&project, "", "a.cu").expect("it compiles");
}

#[test]
fn a_macro_of_another_file_that_changes_a_counter_is_no_value() {
    let strips = |options: &str, pre: &str, statement: &str| {
        let source =
            format!("#include <pre.h>\n__global__ void k(volatile int* o, int n) {{ for (int i = 0; i < n; ++i) {{ {statement} }} }}\n");
        let project = Project::new(&[("a.cu", &source), ("pre/pre.h", pre)]);
        let made = strictly(&project, options, "a.cu").expect("it compiles");
        made.lines().any(|line| line.contains("void k(") && line.contains("__cuinstr_below<"))
    };
    for (options, pre) in
        [("-Ipre", "#define nxt (i = o[3])\n"), ("-isystem pre", "#define nxt (i = o[3])\n"), ("-Ipre -Dnxt=(i=o[3])", "")]
    {
        assert!(!strips(options, pre, "o[1] = nxt;"), "{options} {pre}");
        assert!(strips(options, &pre.replace("i = o[3]", "o[3]"), "o[1] = 3;"), "{options} {pre}");
    }
    for folder in ["-Ipre", "-isystem pre"] {
        assert!(!strips(folder, "#define min(a, b) ((a) = (b))\n", "o[1] = min(i, o[3]);"), "{folder}");
        assert!(strips(folder, "#define width 8\n#define UNROLLED _Pragma(\"unroll\")\n", "o[i * width] = 3;"), "{folder}");
    }
}

#[test]
fn a_constant_that_an_included_file_redefines_is_none() {
    for pre in ["#undef N\n#define N (*o)\n", "#pragma push_macro(\"N\")\n#undef N\n#define N n\n"] {
        let source =
            "#define N 8\n#include <pre.h>\n__global__ void k(volatile int* o, int n) { for (int i = 0; i < N; ++i) { o[1] = i; } }\n";
        let project = Project::new(&[("a.cu", source), ("pre/pre.h", pre)]);
        for options in ["-Ipre", "-isystem pre"] {
            let made = strictly(&project, options, "a.cu").expect("it compiles");
            let line = made.lines().find(|line| line.contains("void k(")).expect("a kernel");
            assert!(line.contains("__cuinstr_left"), "{line}");
        }
    }
}
