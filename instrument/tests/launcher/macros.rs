//! Macros of the command line and of headers that stay as they are: what they make gets no poll, and a diagnostic.

use crate::headers::{STEP, strictly};
use crate::project::{Project, expect, text};

#[test]
fn device_functions_that_macros_of_others_make_are_told() {
    let spin = "__global__/**/void/**/k(int*p){while(*p);}";
    let k = |text: &str| format!("-Ipre -DK={text}");
    for (options, pre, source, column) in [
        (k(spin), "", "K\n", Some(1)),
        (k("k(int*p){while(*p);}"), "", "__global__ void K\n", Some(17)),
        (k("{while(*p);}"), "", "__global__ void k(int *p) K\n", Some(27)),
        (k("{while(*p);}"), "", "__attribute__((device)) void k(int *p) K\n", Some(40)),
        (k("{while(*p);}"), "", "constexpr int k(int *p) K\n", Some(25)),
        (k("while(*p);"), "", "__global__ void k(int *p) { K }\n", Some(29)),
        (k("__device__/**/int/**/m(int/**/n){while(n--);return/**/n;}"), "", "struct S { int a; K };\n", Some(19)),
        (k("__device__/**/int/**/f(int/**/n)/**/noexcept{return/**/n?f(n-1)*n:1;}"), "", "K\n", Some(1)),
        (k(spin), "#define ALL(x) x\n", "int a;\n#define MINE ALL(K)\nMINE int main() { }\n", Some(1)),
        (k(spin), "#define ALL(x) x\n", "int a;\nALL(\nK)\n", Some(1)),
        ("-isystem pre".to_owned(), "#define WAITER(n) __global__ void n(int *p) { while (*p); }\n", "int a; WAITER(k)\n", Some(8)),
        // What ends, what only the host runs, and a head alone, whose body has its polls.
        (k("__global__/**/void/**/k(int*p){do{*p=3;}while(0);}"), "", "K\n", None),
        (k("int/**/f(int/**/n){while(n--);return/**/n;}"), "", "K __global__ void k() { }\n", None),
        (k("__global__/**/void/**/k(int*p)"), "", "K { while (*p); }\n", None),
        ("-Ipre".to_owned(), "#define WAITER(n) __global__ void n(int *p) { while (*p); }\n", "WAITER(k)\n", None),
    ] {
        let project = Project::new(&[("a.cu", &format!("#include <pre.h>\n{source}")), ("pre/pre.h", pre)]);
        let done = strictly(&project, &options, "a.cu");
        match (&done, column) {
            (Err(said), Some(column)) => assert!(said.contains(&format!(":{column}: error[CI012]")), "{options} {source}: {said}"),
            (done, column) => assert_eq!((done.is_err(), column), (false, None), "{options} {pre} {source}: {done:?}"),
        }
    }
}

#[test]
fn words_that_are_macros_stop_no_build() {
    let kernel = "__global__ void k(volatile float *p) { while (p[0] < 0.5f) ; for (int i = 0; i < 16; ++i) p[i] = i; }\n";
    let harmless = "#pragma once\n#define true 1\n#define false 0\n#define bool int\n#define inline __inline__\n";
    // In the plainest form a loop that ends soon has no poll, and where no trips can be counted it has one.
    for (options, pre, told, polled) in [
        ("-Ipre", harmless, None, false),
        ("-Ipre -Dtrue=1 -Dinline=", "", None, false),
        ("-Ipre", "#ifndef PRE\n#define PRE\n#define int short\n#endif\n", Some("pre.h:3:"), true),
        ("-Ipre -Dint=short", "", Some("a.cu: error[CI017]: on the command line, `int`"), true),
        ("-Ipre -Dfor=if(0);else/**/for", "", Some("a.cu: error[CI017]: on the command line, `for`"), false),
    ] {
        let project = Project::new(&[("a.cu", &format!("#include <pre.h>\n{kernel}")), ("pre/pre.h", pre)]);
        match (strictly(&project, options, "a.cu"), told) {
            (Err(said), Some(told)) => assert!(said.contains(told) && said.contains("error[CI017]"), "{options} {pre}: {said}"),
            (done, told) => assert_eq!((done.is_err(), told), (false, None), "{options} {pre}: {done:?}"),
        }
        let mut command = project.launch(&["-c", "a.cu"]);
        command.env("SHIM_SOURCES", "a.cu").env("SHIM_OPTIONS", options).env("SHIM_ENDING", STEP);
        let output = expect(&mut command, 0);
        assert_eq!(text(&output.stderr).contains("warning[CI017]"), told.is_some(), "{options} {pre}: {}", text(&output.stderr));
        let made = project.preprocessed_as("a.cu", STEP);
        let line = made.lines().find(|line| line.contains("void k(")).expect("a kernel");
        assert_eq!(line.contains("__cuinstr_poll("), polled, "{line}");
        assert!(!line.contains("(bool)") && !line.contains("(int)"), "{line}");
    }
}

#[test]
fn an_arm_that_is_never_taken_makes_no_file_a_piece_of_a_function() {
    let never = "#if A\n#elif 0 && A\n({[\n#endif\n#ifndef __cplusplus\n({[\n#endif\n";
    let kernel = "__global__ void k(int* o) { while (*o) *o = all[1]; }\n";
    let project = Project::new(&[
        ("a.cu", &format!("#include \"all.h\"\n{never}{kernel}")),
        ("all.h", &format!("{never}static __device__ int all[90000] = {{}};\n")),
    ]);
    let made = strictly(&project, "", "a.cu").expect("it compiles");
    assert!(made.lines().any(|line| line.contains("void k(") && line.contains("__cuinstr_left")), "{made}");
}
