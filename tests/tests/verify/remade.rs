//! Loops that a compiler has unrolled by four, whose end no register keeps: it is made anew in each round, told by a product alone, or by either of two
//! tests. Each with twins whose end really is elsewhere.

use crate::{poll, verdicts};

/// A strip of 1 to 16384 iterations of a loop that counts down, first what is left over, then four at a time up to an end that is made anew.
const ANEW: &str = "\tld.global.u32 %r1, [%rd9];
\tld.global.u32 %r2, [%rd9];
\tmax.u32 %r3, %r2, 1;
\tmin.u32 %r3, %r3, 16384;
\tand.b32 %r9, %r3, 3;
\tsetp.eq.s32 %p2, %r9, 0;
\tmov.u32 %r10, %r1;
\t@%p2 bra $L;
\tadd.s32 %r10, %r1, -1;
\tsetp.eq.s32 %p2, %r9, 1;
\t@%p2 bra $L;
\tadd.s32 %r10, %r1, -2;
\tsetp.eq.s32 %p2, %r9, 2;
\t@%p2 bra $L;
\tadd.s32 %r10, %r1, -3;
$L:
\tadd.s32 %r11, %r3, -1;
\tsetp.lt.u32 %p3, %r11, 3;
\t@%p3 bra $O;
$I:
\tsub.s32 %r5, %r1, %r3;
\tadd.s32 %r10, %r10, -4;
\tsetp.ne.s32 %p4, %r10, %r5;
\t@%p4 bra $I;
\tbra $O;";

/// The same for a loop by two over 64 bits, whose number of iterations is in no register of 64 bits.
const WIDE: &str = "\tld.global.u32 %r1, [%rd9];
\tld.global.u64 %rd1, [%rd9];
\tmax.u32 %r3, %r1, 1;
\tmin.u32 %r3, %r3, 16384;
\tmul.wide.u32 %rd3, %r3, 2;
\tadd.s64 %rd4, %rd3, %rd1;
\tadd.s64 %rd5, %rd3, -2;
\tshr.u64 %rd6, %rd5, 1;
\tadd.s64 %rd7, %rd6, 1;
\tand.b64 %rd8, %rd7, 3;
\tsetp.eq.s64 %p2, %rd8, 0;
\tmov.u64 %rd10, %rd1;
\t@%p2 bra $L;
\tadd.s64 %rd10, %rd1, 2;
\tsetp.eq.s64 %p2, %rd8, 1;
\t@%p2 bra $L;
\tadd.s64 %rd10, %rd1, 4;
\tsetp.eq.s64 %p2, %rd8, 2;
\t@%p2 bra $L;
\tadd.s64 %rd10, %rd1, 6;
$L:
\tsetp.lt.u64 %p3, %rd5, 6;
\t@%p3 bra $O;
$I:
\tadd.s64 %rd10, %rd10, 8;
\tsetp.ne.s64 %p4, %rd10, %rd4;
\t@%p4 bra $I;
\tbra $O;";

/// The same for a loop that goes down by three, which counts how far it has to go: three times the iterations, less those that were left over.
const THREES: &str = "\tld.global.u32 %r1, [%rd9];
\tld.global.u32 %r2, [%rd9];
\tmax.u32 %r3, %r2, 1;
\tmin.u32 %r3, %r3, 16384;
\tand.b32 %r9, %r3, 3;
\tsetp.eq.s32 %p2, %r9, 0;
\tmov.u32 %r10, %r1;
\t@%p2 bra $L;
\tadd.s32 %r10, %r1, -3;
\tsetp.eq.s32 %p2, %r9, 1;
\t@%p2 bra $L;
\tadd.s32 %r10, %r1, -6;
\tsetp.eq.s32 %p2, %r9, 2;
\t@%p2 bra $L;
\tadd.s32 %r10, %r1, -9;
$L:
\tadd.s32 %r11, %r3, -1;
\tsetp.lt.u32 %p3, %r11, 3;
\t@%p3 bra $O;
\tmad.lo.s32 %r12, %r3, 3, %r10;
\tsub.s32 %r13, %r12, %r1;
$I:
\tadd.s32 %r13, %r13, -12;
\tsetp.ne.s32 %p4, %r13, 0;
\t@%p4 bra $I;
\tbra $O;";

/// At most 64 iterations towards a bound, as many as the smaller of both allows: it ends where either is met.
const EITHER: &str = "\tld.global.u32 %r1, [%rd9];
\tld.global.u32 %r2, [%rd9];
\tld.global.u32 %r3, [%rd9];
\tmax.u32 %r3, %r3, 1;
\tmin.u32 %r3, %r3, 64;
\tsetp.ge.s32 %p2, %r1, %r2;
\t@%p2 bra $O;
\tneg.s32 %r4, %r3;
\tsub.s32 %r5, %r1, %r2;
\tmax.u32 %r6, %r5, %r4;
\tneg.s32 %r7, %r6;
\tand.b32 %r8, %r7, 3;
\tsetp.eq.s32 %p3, %r8, 0;
\tmov.u32 %r10, %r1;
\tmov.u32 %r11, %r3;
\t@%p3 bra $L;
\tadd.s32 %r11, %r3, -1;
\tadd.s32 %r10, %r1, 1;
\tsetp.eq.s32 %p3, %r8, 1;
\t@%p3 bra $L;
\tadd.s32 %r11, %r3, -2;
\tadd.s32 %r10, %r1, 2;
\tsetp.eq.s32 %p3, %r8, 2;
\t@%p3 bra $L;
\tadd.s32 %r11, %r3, -3;
\tadd.s32 %r10, %r1, 3;
$L:
\tsetp.gt.u32 %p3, %r6, -4;
\t@%p3 bra $O;
$I:
\tadd.s32 %r11, %r11, -4;
\tsetp.ne.s32 %p4, %r11, 0;
\tadd.s32 %r10, %r10, 4;
\tsetp.lt.s32 %p5, %r10, %r2;
\tand.pred %p6, %p4, %p5;
\t@%p6 bra $I;
\tbra $O;";

/// The two verdicts about a body inside a loop that polls.
fn all_hold(body: &str) -> bool {
    let verdicts = verdicts(&format!("$O:\n{}{body}", poll(1)));
    assert_eq!(verdicts.len(), 2, "{body}");
    verdicts.iter().all(cuinstr::verify::report::Verdict::holds)
}

/// A body that is proved, and that it is not with each of these changes.
fn check(body: &str, changes: &[(&str, &str, &str)]) {
    assert!(all_hold(body), "{body}");
    for (from, to, why) in changes {
        let text = body.replace(from, to);
        assert_ne!(text, body, "{from}");
        assert!(!all_hold(&text), "{why}: {from} -> {to}");
    }
}

#[test]
fn an_end_that_is_made_anew_in_each_round_stays_where_it_is() {
    check(
        ANEW,
        &[
            ("$I:\n", "$I:\n\tadd.s32 %r1, %r1, -4;\n", "the end moves along"),
            ("$I:\n", "$I:\n\tadd.s32 %r3, %r3, 4;\n", "so it does by the other operand"),
            ("%p4 bra $I;", "%p4 bra $J;\n\tbra $O;\n$J:\n\tadd.s32 %r1, %r1, -4;\n\tbra $I;", "it moves along elsewhere"),
            ("$I:\n", "$I:\n\tld.global.u32 %r1, [%rd9];\n", "it is another one in each round"),
            ("%r1, %r3;\n", "%r1, %r3;\n\t@%p9 add.s32 %r5, %r5, -1;\n", "it is not quite that"),
            ("sub.s32 %r5", "@%p9 sub.s32 %r5", "it may be what it was"),
            (
                "\tsub.s32 %r5, %r1, %r3;",
                "\tadd.s32 %r1, %r1, 1;\n\tsub.s32 %r5, %r1, %r3;\n\tadd.s32 %r1, %r1, -1;",
                "an operand is another one in between",
            ),
            ("%r5, %r1, %r3", "%r5, %r1, %r2", "it is as far away as nobody knows"),
            (
                "$I:\n\tsub.s32 %r5, %r1, %r3;",
                "\tsub.s32 %r5, %r1, %r3;\n$I:\n\tsub.s32 %r5, %r1, %r2;",
                "it is that only in front of the loop",
            ),
            ("sub.s32 %r5", "add.s32 %r5", "it lies the other way"),
            ("%r10, -4;", "%r10, -3;", "it is stepped over"),
            ("%r1, -2;", "%r1, -1;", "one iteration too few is left over"),
            ("%r11, 3;", "%r11, 2;", "three are left to a loop of four"),
        ],
    );
    // What was compared last round is not what is made behind it.
    let late = ANEW.replace("\tsub.s32 %r5, %r1, %r3;\n", "").replace("%r10, %r5;\n", "%r10, %r5;\n\tsub.s32 %r5, %r1, %r3;\n");
    assert!(!all_hold(&late), "{late}");
    // By two instructions, each of which is made anew.
    let by_two = ANEW.replace("sub.s32 %r5, %r1, %r3;", "add.s32 %r6, %r1, 3;\n\tsub.s32 %r7, %r6, %r3;\n\tadd.s32 %r5, %r7, -3;");
    check(&by_two, &[("%r7, -3", "%r7, -2", "one off"), ("$I:\n", "$I:\n\tadd.s32 %r1, %r1, -4;\n", "it moves along")]);
}

#[test]
fn a_product_is_that_many_times_what_nobody_has_widened() {
    check(
        WIDE,
        &[
            ("%r3, 2;", "%r3, 3;", "the end is off the stride"),
            ("%rd1, 4;", "%rd1, 3;", "it begins off its stride"),
            ("%rd10, 8", "%rd10, 6", "it steps by three"),
            ("%p2, %rd8, 2", "%p2, %rd8, 3", "two iterations are left over where there should be none"),
            ("%p3, %rd5, 6", "%p3, %rd5, 4", "three are left to a loop of four"),
            ("min.u32 %r3, %r3, 16384", "min.u32 %r3, %r3, -1", "nothing bounds it"),
            ("%rd6, %rd5, 1", "%rd6, %rd5, 2", "it is a quarter of it"),
            ("add.s64 %rd5, %rd3", "mul.wide.u32 %rd2, %r1, 2;\n\tadd.s64 %rd5, %rd2", "it is another number's product"),
        ],
    );
    let negative = WIDE.replace("mul.wide.u32", "mul.wide.s32").replace("max.u32 %r3, %r1, 1", "max.s32 %r3, %r1, -16384");
    assert!(!all_hold(&negative.replace("min.u32", "min.s32")), "{negative}");
}

#[test]
fn an_end_that_a_product_tells_anew_in_each_round_stays_where_it_is() {
    let anew = WIDE
        .replace("\tadd.s64 %rd4, %rd3, %rd1;\n", "")
        .replace("$I:\n", "$I:\n\tmul.wide.u32 %rd12, %r3, 2;\n\tadd.s64 %rd4, %rd12, %rd1;\n");
    check(
        &anew,
        &[
            ("%rd12, %r3, 2;", "%rd12, %r3, 3;", "the end is off the stride"),
            ("%rd12, %r3, 2;", "%rd12, %r1, 2;", "it is another number's product"),
            ("mul.wide.u32 %rd12, %r3, 2;", "mul.wide.s32 %rd12, %r1, 2;", "it is a signed number's"),
            ("%rd12, %rd1;", "%rd12, %rd9;", "it is from another start"),
            ("$I:\n", "$I:\n\tadd.s32 %r3, %r3, 4;\n", "the end moves along"),
            ("$I:\n", "$I:\n\tadd.s64 %rd1, %rd1, 8;\n", "so it does by its start"),
            ("$I:\n", "$I:\n\tld.global.u32 %r3, [%rd9];\n", "it is another one in each round"),
            ("$L:\n", "$L:\n\tadd.s32 %r3, %r3, 1;\n", "it is another number by then"),
            ("$L:\n", "$L:\n\t@%p9 add.s32 %r3, %r3, 2;\n", "it may be"),
            ("mul.wide.u32 %rd12, %r3, 2;", "add.s32 %r4, %r3, 1;\n\tmul.wide.u32 %rd12, %r4, 2;", "it is the next number's"),
            ("%p2, %rd8, 2", "%p2, %rd8, 3", "two iterations are left over where there should be none"),
            ("%p3, %rd5, 6", "%p3, %rd5, 4", "three are left to a loop of four"),
            ("%rd6, %rd5, 1", "%rd6, %rd5, 2", "it is a quarter of it"),
            ("%rd10, 8", "%rd10, 6", "it steps by three"),
            ("min.u32 %r3, %r3, 16384", "min.u32 %r3, %r3, -1", "nothing bounds it"),
        ],
    );
    // What is negative widens otherwise: the number's lower half is the same, and twice it is not.
    let widened = |kind: &str| {
        format!(
            "\tld.global.s32 %r1, [%rd9];\n\tld.global.u64 %rd1, [%rd9];\n\tmin.s32 %r3, %r1, 5;\n\tmax.s32 %r3, %r3, -5;\n\tcvt.u64.u32 %rd7, %r3;\n\
             \tcvt.{kind} %rd8, %r3;\n\tadd.s64 %rd10, %rd1, %rd7;\n\tadd.s64 %rd4, %rd1, %rd8;\n$I:\n\tsetp.eq.s64 %p2, %rd10, %rd4;\n\t@%p2 bra $O;\n\
             \tadd.s64 %rd10, %rd10, 1;\n\tbra $I;"
        )
    };
    assert!(all_hold(&widened("u64.u32")) && !all_hold(&widened("s64.s32")));
}

#[test]
fn how_far_a_loop_by_three_has_to_go_is_a_multiple_of_four_steps() {
    check(
        THREES,
        &[
            ("%r3, 3, %r10", "%r3, 2, %r10", "it is twice the iterations"),
            ("%r3, 3, %r10", "%r2, 3, %r10", "it is another number"),
            ("%r1, -6;", "%r1, -5;", "it begins off its stride"),
            ("%r13, -12", "%r13, -9", "it steps over zero"),
            ("%r11, 3;", "%r11, 2;", "three are left to a loop of four"),
            ("$I:\n", "$I:\n\tadd.s32 %r13, %r13, 12;\n", "it stays where it is"),
        ],
    );
}

#[test]
fn of_two_tests_one_comes_true_in_either_case() {
    check(
        EITHER,
        &[
            ("max.u32 %r6", "min.u32 %r6", "it is the larger distance of both"),
            ("max.u32 %r6", "max.s32 %r6", "a distance of more than 2^31 is none"),
            ("and.pred", "or.pred", "both have to be met"),
            ("%r11, -4;", "%r11, -3;", "zero is stepped over, and the bound may be the largest integer"),
            ("%r10, 4;", "%r10, 3;", "the bound is stepped over, and may be the largest integer"),
            ("%r1, 2;", "%r1, 1;", "the bound is off the stride"),
            ("%r3, -2;", "%r3, -1;", "zero is off the stride"),
            ("%r6, -4", "%r6, -3", "three are left to a loop of four"),
            ("$I:\n", "$I:\n\tld.global.u32 %r2, [%rd9];\n", "the bound is another one in each round"),
            ("$I:\n", "$I:\n\tadd.s32 %r2, %r2, 4;\n", "the bound moves along"),
            ("\tneg.s32 %r7, %r6;", "\tmax.u32 %r6, %r6, -60;\n\tneg.s32 %r7, %r6;", "it is a third number at times"),
            (
                "\tneg.s32 %r4",
                "\tmov.u32 %r6, -8;\n\tmov.u32 %r10, %r1;\n\tmov.u32 %r11, %r3;\n\t@%p9 bra $L;\n\tneg.s32 %r4",
                "a way leads past what takes the smaller",
            ),
        ],
    );
}
