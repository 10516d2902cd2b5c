//! A file in, a file out; listing, diff, site map.

use crate::project::{COPY_ALL, Project, Run, SPIN};
use std::path::Path;

#[test]
fn a_kernel_is_rewritten_into_another_file() {
    let project = Project::new(&[("k.cu", SPIN)]);
    project.run("k.cu -o k.inst.cu").exits(0);
    assert!(project.read("k.inst.cu").contains("__cuinstr_"));
    assert!(project.read("k.inst.cu").contains("#line 1 \"k.cu\""), "compilers name the file as the user spelled it");
    assert_eq!(project.read("k.cu"), SPIN);
    assert_eq!(project.names("."), ["k.cu", "k.inst.cu"], "nothing else is left behind");
}

#[test]
fn the_prelude_may_stand_in_a_file_of_its_own() {
    let project = Project::new(&[("src/k.cu", SPIN), ("src/l.cu", SPIN)]);
    project.run("src/k.cu src/l.cu -o out/ --prelude include/p.cuh").exits(3).says("CI042").says("folder does not exist");
    project.write("include/keep", b"");
    project.run("src/k.cu src/l.cu -o out/ --prelude include/p.cuh --timeout 2s").exits(0);
    let (output, prelude) = (project.read("out/k.cu"), project.read("include/p.cuh"));
    assert!(output.contains("#include \"../include/p.cuh\"\n") && output.contains("__cuinstr_timeout_ns 2000000000ull"), "{output}");
    assert!(prelude.contains("__cuinstr_stop(") && !output.contains("__cuinstr_device unsigned"), "{output}");
    assert!(output.len() < 6000, "{} bytes", output.len());
    // Whatever the options, the file is the same, so that several runs may share it.
    project.run("src/l.cu -o out/ --prelude include/p.cuh --fuel 7").exits(0);
    assert_eq!(project.read("include/p.cuh"), prelude);
    project.run("src/k.cu -o out/ --prelude out/k.cu").exits(2).says("both be written");
    project.run("src/k.cu -o out/ --prelude src/k.cu").exits(1).says("CI041");
    project.run("src/k.cu --list --prelude include/p.cuh").exits(2);
}

#[test]
fn dashes_are_standard_input_and_output() {
    let project = Project::new(&[("k.cu", SPIN)]);
    let piped = project.run_with("- -o -", SPIN.as_bytes()).exits(0);
    assert!(piped.stdout.contains("__cuinstr_") && piped.stdout.contains("#line 1 \"<stdin>\""), "{piped:?}");
    let printed = project.run("k.cu -o -").exits(0);
    assert!(printed.stdout.contains("#line 1 \"k.cu\""));
    project.run_with("- -o out.cu", SPIN.as_bytes()).exits(0);
    assert_eq!(project.read("out.cu"), piped.stdout);
    assert_eq!(project.names("."), ["k.cu", "out.cu"]);
}

#[test]
fn several_files_go_into_a_folder() {
    let project = Project::new(&[("a.cu", SPIN), ("sub/b.cu", SPIN)]);
    let run = project.run("a.cu sub/b.cu -o build/inst").exits(0).says("2 files rewritten");
    assert_eq!(project.names("build/inst"), ["a.cu", "b.cu"]);
    assert!(!run.stderr.contains('\r') && !run.stderr.contains('\u{1b}'), "plain when piped: {run:?}");
}

#[test]
fn files_without_device_code_are_copied() {
    let project = Project::new(&[("k.cu", SPIN), ("host.cu", "int main() { return 0; }\n")]);
    project.write("binary.cu", b"\x7fELF\x02\x00");
    let run = project.run("k.cu host.cu -o out").exits(0).says("host.cu: copied unchanged: no device code found").says("1 file copied");
    assert!(!run.stderr.contains("error"), "{run:?}");
    assert_eq!(project.read("out/host.cu"), project.read("host.cu"));
    project.run("host.cu -o alone.cu --strict").exits(0);
    assert_eq!(project.run("host.cu -o - -q").exits(0).silent().stdout, project.read("host.cu"));
    project.run("host.cu k.cu --list").exits(0).says("host.cu: nothing to rewrite");
    project.run("binary.cu -o out").exits(1).says("error[CI006]");
}

#[test]
fn device_code_of_macros_that_are_given_is_told() {
    let project = Project::new(&[("k.cu", "K\n"), ("b.cu", "__global__ void k(int *p) { BODY }\n")]);
    let strictly =
        |source: &str, given: &str| project.command(&format!("{source} -o out.cu --strict")).args(["-D", given]).output().expect("it runs");
    for (source, given, code) in [
        ("k.cu", "K=__global__ void k(int *p) { while (*p); }", Some("CI012")),
        ("b.cu", "BODY=while (*p);", Some("CI012")),
        ("k.cu", "K=__global__ void k(int *p) { *p = 3; }", None),
        ("b.cu", "BODY=*p = 3;", None),
    ] {
        let said = String::from_utf8_lossy(&strictly(source, given).stderr).into_owned();
        assert_eq!(said.contains("error["), code.is_some(), "{given}: {said}");
        assert!(code.is_none_or(|code| said.contains(&format!("error[{code}]"))), "{given}: {said}");
    }
}

#[test]
fn headers_that_were_not_examined_are_named_where_a_file_has_no_device_code() {
    let includes = ["h0", "h1", "h2", "h3", "h4"].map(|name| format!("#include \"{name}.cuh\"\n")).concat();
    let project = Project::new(&[
        ("a.cu", "#include \"dev.cuh\"\n#include <vector>\n#include \"plain.h\"\nint main() { }\n"),
        ("dev.cuh", "#pragma once\n__global__ void k(volatile int *p) { while (*p) ; }\n"),
        ("plain.h", "#pragma once\nint plain();\n"),
        ("b.cu", &includes),
        ("c.cu", "#include \"plain.h\"\nint main() { }\n"),
        ("d.cu", "#include \"dev.cuh\" // cuinstr: allow(CI016) it is compiled elsewhere\nint main() { }\n"),
    ]);
    let told = "no device code in the file itself; included and not examined: ";
    let run = project.run("a.cu -o out.cu").exits(0).says(&format!("a.cu: copied unchanged: {told}`dev.cuh` (cuinstr explain CI016)\n"));
    let run = run.says("not covered: 1 gap\n  1 x CI016: an included header is not rewritten\n1 file copied unchanged\n");
    assert!(!run.stderr.contains("plain.h") && !run.stderr.contains("vector"), "{run:?}");
    project.run("b.cu --list").exits(0).says(&format!("b.cu: nothing to rewrite: {told}`h0.cuh`, `h1.cuh`, `h2.cuh` and 2 more ("));
    for source in ["c.cu", "d.cu"] {
        let run =
            project.run(&format!("{source} -o out.cu")).exits(0).says("copied unchanged: no device code found (cuinstr explain CI006)");
        assert!(!run.stderr.contains("not covered"), "{run:?}");
    }
    project.run("a.cu dev.cuh -o out").exits(0).says("a.cu: copied unchanged: no device code found");
}

#[test]
fn a_header_s_declaration_marks_the_file_s_function() {
    let collatz = "(int n) { while (n != 1) n = n % 2 ? 3 * n + 1 : n / 2; return n; }\n";
    let project = Project::new(&[
        ("h.h", "#include \"inner.h\"\nstruct S { __device__ static int step(int); };\n"),
        ("inner.h", "#pragma once\n__device__ int h(int);\n"),
        ("k.cu", &format!("#include \"h.h\"\nint h{collatz}int S::step{collatz}{SPIN}")),
        ("alone.cu", &format!("#include \"inner.h\"\nint h{collatz}")),
    ]);
    project.run("k.cu -o out.cu --strict").exits(0).says("3 loops (3 polled)");
    project.run("alone.cu -o out.cu --strict").exits(0).says("1 loop (1 polled)");
}

#[test]
fn quoted_includes_are_found_from_another_folder() {
    let kernel = "#include \"part.cuh\"\n  # include \"../shared/plain.h\" // both\n#include <cstdio>\n#include \"elsewhere.h\"\n";
    let files = [
        ("src/k.cu", &*format!("{kernel}{SPIN}")),
        ("src/part.cuh", "#include \"more.h\"\n__device__ void part(int *p) { while (*p) { } }\n"),
        ("src/more.h", ""),
        ("shared/plain.h", ""),
    ];
    let project = Project::new(&files);
    let lines = |path: &str| project.read(path).lines().filter(|line| line.contains("include")).map(str::to_owned).collect::<Vec<_>>();
    project.run("src/k.cu -o deep/er/").exits(0);
    let own = lines("deep/er/k.cu");
    for line in
        ["#include \"../../src/part.cuh\"", "  # include \"../../shared/plain.h\" // both", "#include <cstdio>", "#include \"elsewhere.h\""]
    {
        assert!(own.iter().any(|own| own == line), "{line}: {own:?}");
    }
    // A header that is rewritten in the same run is the rewritten one.
    project.run("src/k.cu src/part.cuh -o out").exits(0);
    assert!(lines("out/k.cu").contains(&"#include \"part.cuh\"".to_owned()), "{:?}", lines("out/k.cu"));
    assert!(lines("out/part.cuh").contains(&"#include \"../src/more.h\"".to_owned()), "{:?}", lines("out/part.cuh"));
    // Beside the input nothing changes.
    project.run("src/k.cu -o src/k.inst.cu").exits(0);
    assert!(lines("src/k.inst.cu").contains(&"#include \"part.cuh\"".to_owned()));
}

#[test]
fn one_file_goes_into_a_folder_that_is_there_or_spelled_as_one() {
    let project = Project::new(&[("k.cu", SPIN), ("build/keep", ""), ("cuinstr.toml", COPY_ALL)]);
    project.run("k.cu -o build").exits(0);
    project.run("k.cu -o fresh/").exits(0);
    assert!(project.has("build/k.cu") && project.has("fresh/k.cu"));
}

#[test]
fn many_files_are_reported_in_the_order_they_were_named() {
    let project = Project::new(&[]);
    let names = (0..40).map(|number| format!("{}{number}.cu", if number % 3 == 0 { "missing" } else { "k" })).collect::<Vec<_>>();
    for name in names.iter().filter(|name| name.starts_with('k')) {
        project.write(name, "".as_bytes());
    }
    let run = project.run(&format!("{} -o out --format short -q", names.join(" "))).exits(3);
    let said = run.stderr.lines().map(|line| line.split(':').next().expect("a line has a first word")).collect::<Vec<_>>();
    assert_eq!(said, names);
}

#[test]
fn the_others_are_written_when_one_fails() {
    let project = Project::new(&[("a.cu", SPIN), ("b.cu", ""), ("c.cu", SPIN)]);
    project.run("a.cu b.cu c.cu -o out").exits(1).says("CI003").says("nothing written for 1 input");
    assert_eq!(project.names("out"), ["a.cu", "c.cu"]);
    project.run("a.cu missing.cu c.cu -o out").exits(3).says("CI040");
}

#[test]
fn outputs_that_would_collide_are_refused_before_anything_is_written() {
    let project = Project::new(&[("a/k.cu", SPIN), ("b/k.cu", SPIN), ("c.cu", SPIN), ("cuinstr.toml", COPY_ALL)]);
    project.run("c.cu a/k.cu b/k.cu -o out").exits(2).says("a/k.cu and b/k.cu would both be written");
    project.run("c.cu -o out.cu --sites ./out.cu").exits(2).says("both be written");
    assert!(!project.has("out") && !project.has("out.cu"));
}

#[test]
fn a_path_that_is_no_text_is_a_path_all_the_same() {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt;
        let project = Project::new(&[("cuinstr.toml", COPY_ALL)]);
        let name = std::ffi::OsStr::from_bytes(b"k\xff.cu");
        project.write(Path::new(name), SPIN.as_bytes());
        let output = project.command("-o out.cu").arg(name).output().expect("the command starts");
        Run::new(&output).exits(0).says("k\u{fffd}.cu");
        assert_eq!(project.read("out.cu"), SPIN);
    }
}

#[test]
fn list_prints_a_table_and_writes_nothing() {
    let project = Project::new(&[("k.cu", SPIN)]);
    let run = project.run("k.cu --list").exits(0).silent();
    let row = run.stdout.lines().find(|line| line.contains("while")).unwrap_or_else(|| panic!("{run:?}"));
    assert!(row.trim_start().starts_with("2:5 ") && row.contains("spin"), "{row}");
    assert_eq!(project.names("."), ["k.cu"]);
}

#[test]
fn list_says_why_a_loop_has_its_form_and_what_forms_mean() {
    let text = "__global__ void k(volatile int *p, int n) {\n    while (*p == 0) { }\n    while (true) { if (p[1]) goto out; p[2] = 1; }\nout:\n    for (int i = 0; i < n; ++i) p[i] = 1;\n}\n";
    let project = Project::new(&[("k.cu", text)]);
    let list = project.run("k.cu --list").exits(0).silent().stdout;
    let line = |start: &str| list.lines().find(|line| line.trim_start().starts_with(start)).unwrap_or_else(|| panic!("no {start}: {list}"));
    assert!(line("2:5 ").contains("chunk") && line("2:5 ").contains("no strip: "), "{list}");
    assert!(line("3:5 ").contains("count-down") && line("3:5 ").contains("neither strip nor chunk: "), "{list}");
    assert!(line("5:5 ").contains("strip") && !line("5:5 ").contains("no strip"), "{list}");
    for form in ["chunk", "count-down", "strip", "flag", "each"] {
        assert_eq!(list.lines().filter(|line| line.starts_with(&format!("  {form} "))).count(), 1, "{form}: {list}");
    }
    assert!(!list.contains("foldable"), "{list}");
    let json = project.run("k.cu --list --format json").exits(0).stdout;
    assert!(json.contains("neither strip nor chunk: ") && !json.contains("how a site asks"), "{json}");
    let sites = project.run("k.cu --sites -").exits(0).stdout;
    assert!(!sites.contains("neither strip"), "what is compiled in does not grow: {sites}");
}

#[test]
fn list_prints_json_when_asked_to() {
    let project = Project::new(&[("k.cu", SPIN), ("l.cu", SPIN)]);
    let run = project.run("k.cu l.cu --list --format json").exits(0).silent();
    let maps =
        run.stdout.lines().map(|line| serde_json::from_str::<cuinstr::site::SiteMap>(line).expect("it is a site map")).collect::<Vec<_>>();
    assert_eq!(maps.iter().map(|map| map.file.as_str()).collect::<Vec<_>>(), ["k.cu", "l.cu"]);
    assert!(maps[0].sites.iter().any(|site| (site.line, site.column) == (2, 5)), "{run:?}");
}

#[test]
fn diff_prints_a_patch_and_writes_nothing() {
    let project = Project::new(&[("k.cu", SPIN)]);
    let run = project.run("k.cu --diff").exits(0).silent();
    assert!(run.stdout.starts_with("--- k.cu\n+++ k.cu\trewritten, without the prelude\n@@ "), "{run:?}");
    assert!(run.stdout.contains("\n-    while (*p == 0) {\n"), "{run:?}");
    assert_eq!(project.names("."), ["k.cu"]);
}

#[test]
fn a_diff_keeps_bytes_that_are_no_utf8() {
    let project = Project::new(&[]);
    project.write("k.cu", &[b"// gr\xfc\xdfe\n".as_slice(), SPIN.as_bytes()].concat());
    let output = project.command("k.cu --diff").output().expect("the command starts");
    assert!(output.stdout.windows(5).any(|bytes| bytes == b"gr\xfc\xdfe"), "{output:?}");
}

#[test]
fn the_site_map_is_written_beside_the_source() {
    let project = Project::new(&[("k.cu", SPIN), ("l.cu", SPIN)]);
    project.run("k.cu -o out.cu --sites sites.json").exits(0);
    let map: cuinstr::site::SiteMap = serde_json::from_str(&project.read("sites.json")).expect("it is a site map");
    assert_eq!(map.file, "k.cu");
    project.run("k.cu l.cu -o out --sites sites.json").exits(0);
    assert_eq!(project.read("sites.json").lines().count(), 2, "a line for each input");
    let alone = project.run("k.cu --sites -").exits(0);
    assert!(alone.stdout.starts_with('{'), "{alone:?}");
}
