//! Loops with ways out in front of their test: strips end where these lead, too.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr::options::Options;
use cuinstr::rewrite_ptx;
use cuinstr::verify::verify_ptx;
use cuinstr_differential::simulated::run;
use cuinstr_harness::header::{Header, Place};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::sass;
use cuinstr_trial::or_ignore;

/// As compilers leave it: `%r9` is set in front of each way out.
const VALUE_OF_EACH_WAY: &str = "$L: mul.lo.u32 %r4, %r4, 5; add.u32 %r4, %r4, %r3; and.b32 %r6, %r4, 63; setp.eq.u32 %p2, %r6, 7; mov.b32 %r9, %r1; \
     @%p2 bra $X; xor.b32 %r4, %r4, %r1; add.s32 %r1, %r1, 1; setp.ne.s32 %p3, %r1, %r2; mov.b32 %r9, %r2; @%p3 bra $L; $X:";

/// The second value is not the first one's register.
const OTHER_VALUE: &str = "$L: mul.lo.u32 %r4, %r4, 5; add.u32 %r4, %r4, %r3; and.b32 %r6, %r4, 63; setp.eq.u32 %p2, %r6, 7; mov.b32 %r9, %r1; \
     @%p2 bra $X; xor.b32 %r4, %r4, %r1; add.s32 %r1, %r1, 1; setp.ne.s32 %p3, %r1, %r2; mov.b32 %r8, %r2; @%p3 bra $L; $X:";

/// Two ways out, each with a value, and the one that comes first stands behind the other one.
const SECOND_FIRST: &str = "bra $H; $A: and.b32 %r6, %r4, 31; setp.eq.u32 %p4, %r6, 9; mov.b32 %r9, 1000; @%p4 bra $X; add.s32 %r1, %r1, 1; \
     setp.lt.s32 %p3, %r1, %r2; mov.b32 %r9, %r2; @%p3 bra $H; bra $X; $H: mul.lo.u32 %r4, %r4, 5; add.u32 %r4, %r4, %r3; and.b32 %r6, %r4, 63; \
     setp.eq.u32 %p2, %r6, 7; mov.b32 %r9, %r1; @%p2 bra $X; bra $A; $X:";

/// The moves read what others write: they can't be made twice.
const EXCHANGED: &str = "$L: mul.lo.u32 %r4, %r4, 5; add.u32 %r4, %r4, %r3; and.b32 %r6, %r4, 63; setp.eq.u32 %p2, %r6, 7; mov.b32 %r9, %r8; \
     mov.b32 %r8, %r1; @%p2 bra $X; xor.b32 %r4, %r4, %r1; add.s32 %r1, %r1, 1; setp.ne.s32 %p3, %r1, %r2; mov.b32 %r8, %r9; mov.b32 %r9, %r2; \
     @%p3 bra $L; $X:";

fn kernel(body: &str) -> String {
    let registers = ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;";
    let loads = "ld.param.u64 %rd1, [k_0]; ld.param.u32 %r2, [k_1]; mov.u32 %r3, %tid.x; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd1, %rd1, %rd2; \
                 mov.b32 %r1, 0; mov.b32 %r4, %r3; mov.b32 %r8, 1; mov.b32 %r9, 0; setp.lt.s32 %p1, %r2, 1; @%p1 bra $X;";
    let head = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_0, .param .u32 k_1)\n";
    format!("{head}{{\n{registers}\n{loads}\n{body}\nadd.u32 %r9, %r9, %r8; st.global.u32 [%rd1], %r9; ret;\n}}\n")
}

fn polled(text: &str) -> String {
    let rewrite = rewrite_ptx(text.as_bytes(), &Options { path: "a.ptx".to_owned(), ..Options::default() });
    assert_eq!(rewrite.original().as_deref(), Some(text.as_bytes()));
    String::from_utf8(rewrite.output.expect("it is PTX")).expect("it is text")
}

fn innermost(nvcc: &Nvcc, text: &str) -> Vec<usize> {
    let code = sass::assemble(nvcc, text, "k").unwrap_or_else(|why| panic!("{why}"));
    code.innermost.iter().map(|one| one.round).collect()
}

#[test]
fn what_each_way_out_sets_is_right() {
    for body in [VALUE_OF_EACH_WAY, OTHER_VALUE, SECOND_FIRST, EXCHANGED] {
        let text = kernel(body);
        let with_polls = polled(&text);
        assert!(with_polls.contains("$__cuinstr_out1:") && verify_ptx(&with_polls).holds(), "{with_polls}");
        for most in [0, 1, 3, 40, 3000] {
            let header =
                format!("//@ about: ways out\n//@ entry: k\n//@ grid: 1\n//@ block: 32\n//@ arg: u32[32] zero\n//@ arg: u32 {most}\n");
            let header = Header::parse(&header, Place::Kernel).expect("a header");
            let [plain, also] = [&text, &with_polls].map(|text| run(text, &header, 1, 1 << 20).expect("it runs"));
            assert_eq!((plain.outcome, plain.buffers), (also.outcome, also.buffers), "{most}\n{with_polls}");
        }
    }
}

/// A predicate that was not set in the first iteration yet decides nothing.
#[test]
fn the_way_out_that_an_iteration_comes_to_first_is_asked_first() {
    let with_polls = polled(&kernel(SECOND_FIRST));
    let ends = with_polls.split_once("$__cuinstr_out1:").expect("strips end").1;
    let [first, second] = ["%p2", "%p4"].map(|predicate| ends.find(predicate).expect("it is asked"));
    assert!(first < second, "{ends}");
}

#[test]
fn a_value_for_behind_the_loop_costs_the_hot_loop_nothing() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let text = kernel(VALUE_OF_EACH_WAY);
    let (plain, also) = (innermost(&nvcc, &text), innermost(&nvcc, &polled(&text)));
    let [plain] = plain[..] else { panic!("{plain:?}") };
    assert!(also.contains(&plain), "{plain} instructions, and with polls {also:?}");
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
