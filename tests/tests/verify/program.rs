//! Units that are linked into one program.

use cuinstr::verify::report::Verdict;
use cuinstr::verify::{Program, verify_ptx};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

fn unit(functions: &str) -> cuinstr::verify::Report {
    let report = verify_ptx(&format!("{HEAD}{functions}"));
    assert_eq!(report.faults, []);
    report
}

fn program(units: &[&str]) -> Program {
    let mut program = Program::default();
    for text in units {
        program.add(&unit(text));
    }
    program
}

/// A function whose loop runs so often, and calls another each time.
fn calls(name: &str, times: u32, callee: &str) -> String {
    format!(
        ".visible .func {name}()\n{{\n.reg .b32 %r<2>; .reg .pred %p<2>;\nmov.u32 %r1, 0;\n$L:\n{callee}add.u32 %r1, %r1, 1;\n\
         setp.lt.u32 %p1, %r1, {times};\n@%p1 bra $L;\nret;\n}}\n"
    )
}

#[test]
fn a_call_leads_to_another_unit_of_the_program() {
    let outside = calls("f", 10, "call g;\n");
    assert_eq!(unit(&outside).unknown.len(), 1);
    let linked = program(&[&outside, &calls("g", 10, "")]);
    assert!(linked.defines("g") && !linked.defines("h"));
    assert_eq!(linked.findings(), []);
}

#[test]
fn weights_multiply_across_units_and_cycles_are_found() {
    let far = program(&[&calls("f", 60_000, "call g;\n"), &calls("g", 60_000, "")]);
    let [found] = &far.findings()[..] else { panic!("{:#?}", far.findings()) };
    assert!(found.function == "f" && matches!(found.verdict, Verdict::TooMany { rounds: 3_600_000_000.., .. }), "{found:#?}");
    let round = program(&[&calls("f", 2, "call g;\n"), &calls("g", 2, "call f;\n")]);
    let found = round.findings();
    assert!(found.iter().any(|found| found.recursion && !found.verdict.holds()), "{found:#?}");
}

#[test]
fn a_unit_may_define_a_function_of_the_systems_names() {
    for name in ["__cuda_syscall_x", "malloc"] {
        let alone = calls("f", 2, &format!("call {name};\n"));
        assert_eq!((unit(&alone).unknown.len(), program(&[&alone]).findings()), (0, Vec::new()));
        let round = program(&[&alone, &calls(name, 2, "call f;\n")]).findings();
        assert!(round.iter().any(|found| found.recursion && !found.verdict.holds()), "{name}: {round:#?}");
    }
}

/// A function that calls another one so often, in a loop within a loop.
fn calls_squared(name: &str, times: u32, callee: &str) -> String {
    format!(
        ".visible .func {name}()\n{{\n.reg .b32 %r<3>; .reg .pred %p<2>;\nmov.u32 %r1, 0;\n$M:\nmov.u32 %r2, 0;\n$L:\n{callee}\nadd.u32 %r2, %r2, 1;\n\
         setp.lt.u32 %p1, %r2, {times};\n@%p1 bra $L;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, {times};\n@%p1 bra $M;\nret;\n}}\n"
    )
}

#[test]
fn calls_within_a_unit_and_by_way_of_another_add_up() {
    let work = calls("work", 1, "");
    let unit_of = |first: u32| {
        let more = calls_squared("b2", 8000, "call work;");
        format!("{work}{}{more}.visible .func k()\n{{\ncall a2;\ncall b;\nret;\n}}\n", calls_squared("a2", first, "call work;"))
    };
    let other = ".visible .func b()\n{\ncall b2;\nret;\n}\n";
    let [found] = &program(&[&unit_of(8000), other]).findings()[..] else { panic!("one finding") };
    assert!(found.function == "k" && matches!(found.verdict, Verdict::TooMany { rounds: 128_000_000.., .. }), "{found:#?}");
    assert_eq!(program(&[&unit_of(100), other]).findings(), []);
}

#[test]
fn what_lies_behind_a_poll_in_another_unit_counts() {
    let work = ".visible .func work()\n{\nret;\n}\n";
    let polls = calls_squared("f", 8000, "call work;").replacen(
        "mov.u32 %r1, 0;",
        ".reg .b64 %d<2>;\nld.global.u64 %d1, [cuinstr_control_v1+16];\nld.relaxed.sys.u32 %r1, [%d1];\nld.global.u32 %r2, [cuinstr_control_v1+8];\n\
         setp.eq.u32 %p1, %r1, %r2;\n@%p1 exit;\nmov.u32 %r1, 0;",
        1,
    );
    // `h` has the unit looked at by what the flag leaves.
    let heavy = ".visible .func h()\n{\ncall f;\ncall f;\nret;\n}\n";
    let block = ".weak .global .align 8 .b8 cuinstr_control_v1[1192];\n";
    let unit_of = |times: u32| format!("{block}{work}{polls}{heavy}{}", calls_squared("w", times, "call work;"));
    let caller = ".visible .func k()\n{\ncall f;\ncall w;\nret;\n}\n";
    let [found] = &program(&[caller, &unit_of(8000)]).findings()[..] else { panic!("one finding") };
    assert!(found.function == "k" && matches!(found.verdict, Verdict::TooMany { .. }), "{found:#?}");
    assert_eq!(program(&[caller, &unit_of(100)]).findings(), []);
}

#[test]
fn another_unit_may_hand_over_a_function_that_it_sees() {
    // Another function of that type has its address taken here.
    let caller = |linkage: &str| {
        unit(&format!(
            ".func g()\n{{\nret;\n}}\n.global .u64 taken = g;\n.extern .global .align 8 .u64 given;\n{linkage} .func f()\n{{\n.reg .b64 %d<2>;\n\
             ld.global.u64 %d1, [given];\n$T: .callprototype _ ();\ncall %d1, (), $T;\nret;\n}}\n.visible .entry k()\n{{\ncall f;\nret;\n}}\n"
        ))
    };
    let is_cycle = |report: &cuinstr::verify::Report| report.loops.iter().any(|found| found.recursion && !found.verdict.holds());
    assert!(!is_cycle(&caller("")) && is_cycle(&caller(".visible")) && is_cycle(&caller(".weak")));
}

/// A poll, in front of which and behind which a function may call another.
const POLL: &str = ".reg .pred %q; .reg .b32 %a, %b; .reg .b64 %at;\nld.global.u64 %at, [cuinstr_control_v1+16];\nld.relaxed.sys.u32 %a, [%at];\n\
     ld.global.u32 %b, [cuinstr_control_v1+8];\nsetp.eq.u32 %q, %a, %b;\n@%q exit;\n";

const CONTROL: &str = ".weak .global .align 8 .b8 cuinstr_control_v1[1192];\n";

fn calls_each(name: &str, body: &str) -> String {
    format!(".visible .func {name}()\n{{\n{body}ret;\n}}\n")
}

#[test]
fn what_functions_of_a_cycle_call_in_another_unit_all_of_them_call() {
    // `g`, `f`, `h`, `g`: no poll is passed. Within its unit the cycle of `f` and `g` polls.
    let polled = [calls_each("f", &format!("call h;\n{POLL}call g;\n")), calls_each("g", "call f;\n")].concat();
    let kernel = ".visible .entry k()\n{\ncall g;\nret;\n}\n";
    let one = unit(&format!("{CONTROL}.extern .func h();\n.visible .func g();\n{polled}{kernel}"));
    assert!(one.loops.iter().all(|found| found.verdict.holds()), "{one:#?}");
    let program = |body: &str| {
        let mut program = Program::default();
        program.add(&one);
        program.add(&unit(&format!(".extern .func g();\n{}", calls_each("h", body))));
        program.findings()
    };
    assert_eq!(program(""), []);
    let found = program("call g;\n");
    assert!(found.iter().any(|found| found.recursion), "{found:#?}");
}

#[test]
fn each_activation_may_call_what_another_unit_has() {
    let body = format!("{POLL}@%q call f;\ncall w;\n");
    let one = format!("{CONTROL}.extern .func w();\n{}.visible .entry k()\n{{\ncall f;\nret;\n}}\n", calls_each("f", &body));
    assert_eq!(program(&[&one, &calls("w", 1_000, "")]).findings(), []);
    let found = program(&[&one, &calls("w", 1_100, "")]).findings();
    assert!(found.iter().any(|found| found.function == "f" && matches!(found.verdict, Verdict::TooMany { .. })), "{found:#?}");
}

/// The same within one unit: each of several functions takes a frame of 8 bytes in machine code.
#[test]
fn as_many_activations_return_as_a_stack_holds_addresses() {
    let ring = |rounds: u32| {
        let next = |nth: usize| format!("f{}", (nth + 1) % 64);
        let heads: Vec<String> = (0..64).map(|nth| format!(".visible .func f{nth}();\n")).collect();
        let function = |nth: usize| {
            let poll = if nth == 0 { format!("{POLL}@%q ret;\n") } else { String::new() };
            calls_each(&format!("f{nth}"), &format!("{poll}call {};\ncall w;\n", next(nth)))
        };
        let functions: Vec<String> = (0..64).map(function).collect();
        let kernel = ".visible .entry k()\n{\ncall f0;\nret;\n}\n";
        let text = [CONTROL, &heads.concat(), &calls("w", rounds, ""), &functions.concat(), kernel].concat();
        unit(&text).loops.iter().all(|found| found.verdict.holds())
    };
    assert!(ring(1_000) && !ring(1_100));
}

/// What launches a kernel.
fn launch(kernel: &str) -> String {
    format!(
        ".reg .b64 %d<3>;\nmov.u64 %d1, {kernel};\n{{ .param .b64 p0; .param .align 4 .b8 p1[12]; .param .align 4 .b8 p2[12]; .param .b32 p3; .param .b64 r0;\n\
         st.param.b64 [p0], %d1;\ncall (r0), cudaGetParameterBufferV2, (p0, p1, p2, p3);\nld.param.b64 %d2, [r0]; }}\n\
         {{ .param .b64 p0; .param .b64 p1; .param .b32 r0;\nst.param.b64 [p0], %d2;\ncall (r0), cudaLaunchDeviceV2, (p0, p1); }}\n"
    )
}

const BUFFER: &str =
    ".func (.param .b64 r) cudaGetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s)";

/// A unit with a function that launches a kernel, which calls another unit's function.
fn launching(letter: &str, calls: &str) -> String {
    let runtime = format!(".extern {BUFFER};\n.extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);\n");
    let (own, kernel) = (calls_each(&format!("f{letter}"), &launch(&format!("k{letter}"))), format!(".visible .entry k{letter}()"));
    format!("{runtime}.extern .func {calls}();\n{kernel};\n{own}{kernel}\n{{\ncall {calls};\nret;\n}}\n")
}

#[test]
fn kernels_of_several_units_may_launch_each_other() {
    let found = program(&[&launching("a", "fb"), &launching("b", "fa")]).findings();
    assert!(found.iter().any(|found| found.recursion), "{found:#?}");
    assert_eq!(program(&[&launching("a", "fb"), &launching("b", "fc")]).findings(), []);
}

#[test]
fn a_unit_may_define_what_launches_kernels() {
    let defines = |body: &str| format!(".extern .func fa();\n.visible {BUFFER}\n{{\n{body}ret;\n}}\n");
    let found = program(&[&launching("a", "fb"), &defines("call fa;\n")]).findings();
    assert!(found.iter().any(|found| found.recursion), "{found:#?}");
    assert_eq!(program(&[&launching("a", "fb"), &defines("")]).findings(), []);
}

#[test]
fn a_function_of_unknown_size_keeps_no_other_out() {
    // Only `z` has its address taken, and may be of any type.
    let text = ".extern .global .align 8 .u64 given;\n.func z(.param .align 4 .b8 x[])\n{\nret;\n}\n.global .u64 taken = z;\n\
                .visible .func f()\n{\n.reg .b64 %d<2>;\nld.global.u64 %d1, [given];\n$T: .callprototype _ ();\ncall %d1, (), $T;\nret;\n}\n\
                .visible .entry k()\n{\ncall f;\nret;\n}\n";
    assert!(unit(text).loops.iter().any(|found| found.recursion && !found.verdict.holds()));
}

/// A function that waits by the clock if its word is not zero, and then ends as it is told.
fn waits(name: &str, end: &str) -> String {
    format!(
        ".visible .func {name}(.param .b32 word)\n{{\n.reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %d<4>;\nld.param.b32 %r1, [word];\n\
         setp.eq.u32 %p1, %r1, 0;\n@%p1 ret;\nmov.u64 %d1, %globaltimer;\n$W:\nmov.u64 %d2, %globaltimer;\nsub.u64 %d3, %d2, %d1;\n\
         setp.lt.u64 %p1, %d3, 1000000;\n@%p1 bra $W;\n{end};\n}}\n"
    )
}

#[test]
fn a_call_that_ends_the_thread_is_made_once_whichever_unit_has_the_callee() {
    let caller = calls("f", 60_000, "{ .param .b32 a; st.param.b32 [a], %r1; call g, (a); }\n");
    assert_eq!(program(&[&caller, &waits("g", "trap")]).findings(), []);
    let [found] = &program(&[&caller, &waits("g", "ret")]).findings()[..] else { panic!("one finding") };
    assert!(matches!(found.verdict, Verdict::TooMany { seconds: 60.., .. }), "{found:#?}");
}

#[test]
fn a_unit_says_that_its_pointers_are_taken_to_stay_in_it() {
    let caller = |linkage: &str| {
        format!(
            "{linkage} .func g()\n{{\nret;\n}}\n.visible .entry k()\n{{\n.reg .b64 %d<2>;\nmov.u64 %d1, g;\n\
             $T: .callprototype _ ();\ncall %d1, (), $T;\nret;\n}}\n"
        )
    };
    assert_eq!(unit(&caller("")).assumptions, []);
    let [assumed] = &unit(&caller(".visible")).assumptions[..] else { panic!("one assumption") };
    assert_eq!((assumed.function.as_str(), assumed.line), ("k", 13));
    assert!(unit(&format!(".extern .func h();\n{}", caller(""))).assumptions.len() == 1);
}

#[test]
fn an_alias_is_a_function_for_other_units() {
    let caller = ".extern .func vprintf();\n.visible .func a()\n{\ncall vprintf;\ncall vprintf;\nret;\n}\n";
    let alias = ".extern .func a();\n.visible .func real()\n{\ncall a;\nret;\n}\n.visible .func vprintf();\n.alias vprintf, real;\n";
    let found = program(&[caller, alias]).findings();
    assert!(found.iter().any(|found| found.recursion && !found.verdict.holds()), "{found:#?}");
    assert_eq!(program(&[caller]).findings(), []);
}

#[test]
fn a_function_that_others_do_not_see_defines_nothing_for_them() {
    let caller = ".extern .func g();\n.visible .entry k()\n{\ncall g;\nret;\n}\n";
    let of = |linkage: &str| format!("{linkage} .func g()\n{{\nret;\n}}\n.visible .entry e()\n{{\ncall g;\nret;\n}}\n");
    let is_defined = [".visible", ".weak", "", "/* .visible */"].map(|linkage| program(&[caller, &of(linkage)]).defines("g"));
    assert_eq!(is_defined, [true, true, false, false]);
    // Two of one name are two functions.
    let both = program(&[&calls("f", 60_000, "call g;\n"), &calls("g", 60_000, "").replace(".visible ", "")]);
    assert_eq!(both.findings(), []);
}

#[test]
fn units_that_are_linked_have_one_control_block() {
    let has_two = |units: &[(&str, &str, &str)]| {
        let mut program = Program::default();
        for (object, target, linkage) in units {
            let text = format!("{HEAD}{linkage} .global .align 8 .b8 cuinstr_control_v1[1192];\n");
            program.link(object, &verify_ptx(&text.replace("sm_90", target)));
        }
        program.has_two_controls()
    };
    let two = |one: &str, other: &str| has_two(&[("a", "sm_90", one), ("b", "sm_90", other)]);
    assert!(two("", ".weak") && two(".visible", ""));
    assert!(!two(".extern", ".weak") && !two(".weak", ".weak"));
    assert!(!has_two(&[("a", "sm_90", "")]));
    // The linker takes what its target runs.
    for targets in [["sm_90", "sm_90, texmode_unified"], ["sm_90", "sm_90a"], ["sm_80", "sm_90"]] {
        assert!(has_two(&[("a", targets[0], ""), ("b", targets[1], "")]), "{targets:?}");
    }
    // It takes one of an object's own.
    assert!(!has_two(&[("a", "sm_80", ""), ("a", "sm_90", "")]));
}

#[test]
fn a_debug_build_says_that_its_stack_is_not_followed() {
    let text = include_str!("../../data/ptx/attacks/kept_on_unfollowed_stack.ptx");
    let report = verify_ptx(&text.replace(".target sm_90", ".target sm_90, debug"));
    let [assumed] = &report.assumptions[..] else { panic!("one assumption") };
    assert!(report.holds() && assumed.function == "k", "{report:#?}");
    assert_eq!(verify_ptx(text).assumptions, []);
}
