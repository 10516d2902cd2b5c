//! Macros of the command line and of headers that stay as they are: what they bring along gets no poll, so it is told.

use crate::headers::strictly;
use crate::project::Project;

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
