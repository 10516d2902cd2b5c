//! Loops that a compiler has unrolled by four, with what is left over in front of them or behind: within a loop that polls.

use crate::{poll, verdicts};
use cuinstr::verify::report::{Bound, Verdict};

/// At most 42 rounds of a loop over `t <= end`, four at a time, counted down from 42 to what is left over.
const CHUNK: &str = "\tld.global.u32 %r1, [%rd9];
\tld.global.u32 %r2, [%rd9];
\tsetp.gt.s32 %p2, %r1, %r2;
\t@%p2 bra $O;
\tnot.b32 %r3, %r2;
\tadd.s32 %r4, %r1, %r3;
\tmax.u32 %r5, %r4, -42;
\tneg.s32 %r6, %r5;
\tand.b32 %r7, %r6, 3;
\tsetp.gt.u32 %p3, %r5, -4;
\t@%p3 bra $O;
\tadd.s32 %r9, %r5, %r7;
\tneg.s32 %r10, %r9;
\tmov.u32 %r11, 42;
$I:
\tadd.s32 %r11, %r11, -4;
\tadd.s32 %r12, %r10, %r11;
\tsetp.ne.s32 %p4, %r12, 42;
\t@%p4 bra $I;
\tbra $O;";

/// A strip of 1 to 16384 iterations of a loop that steps by 32, first what is left over, then four at a time up to its end.
const STRIP: &str = "\tld.global.u32 %r1, [%rd9];
\tld.global.u32 %r2, [%rd9];
\tmax.u32 %r3, %r2, 1;
\tmin.u32 %r3, %r3, 16384;
\tshl.b32 %r4, %r3, 5;
\tadd.s32 %r5, %r4, %r1;
\tadd.s32 %r6, %r4, -32;
\tshr.u32 %r7, %r6, 5;
\tadd.s32 %r8, %r7, 1;
\tand.b32 %r9, %r8, 3;
\tsetp.eq.s32 %p2, %r9, 0;
\tmov.u32 %r10, %r1;
\t@%p2 bra $L;
\tadd.s32 %r10, %r1, 32;
\tand.b32 %r11, %r3, 3;
\tsetp.eq.s32 %p2, %r11, 1;
\t@%p2 bra $L;
\tadd.s32 %r10, %r1, 64;
\tsetp.eq.s32 %p2, %r9, 2;
\t@%p2 bra $L;
\tadd.s32 %r10, %r1, 96;
$L:
\tsetp.lt.u32 %p3, %r6, 96;
\t@%p3 bra $O;
$I:
\tadd.s32 %r10, %r10, 128;
\tsetp.ne.s32 %p4, %r10, %r5;
\t@%p4 bra $I;
\tbra $O;";

/// The same with an end of 64 bits, three times as far as there are iterations: their number is widened beside the product.
const WIDE: &str = "\tld.global.u32 %r1, [%rd9];
\tld.global.u64 %rd1, [%rd9];
\tmax.u32 %r3, %r1, 1;
\tmin.u32 %r3, %r3, 16384;
\tcvt.u64.u32 %rd2, %r3;
\tmul.wide.u32 %rd3, %r3, 3;
\tadd.s64 %rd4, %rd3, %rd1;
\tand.b64 %rd5, %rd2, 3;
\tsetp.eq.s64 %p2, %rd5, 0;
\tmov.u64 %rd6, %rd1;
\t@%p2 bra $L;
\tadd.s64 %rd6, %rd1, 3;
\tsetp.eq.s64 %p2, %rd5, 1;
\t@%p2 bra $L;
\tadd.s64 %rd6, %rd1, 6;
\tsetp.eq.s64 %p2, %rd5, 2;
\t@%p2 bra $L;
\tadd.s64 %rd6, %rd1, 9;
$L:
\tsetp.lt.u64 %p3, %rd2, 4;
\t@%p3 bra $O;
\tsub.s64 %rd7, %rd4, %rd6;
$I:
\tadd.s64 %rd7, %rd7, -12;
\tsetp.ne.s64 %p4, %rd7, 0;
\t@%p4 bra $I;
\tbra $O;";

/// Sixty-four rounds at most, each counted before the last count is put in the place of the one that is compared.
const LATE: &str = "\tmov.u32 %r1, 64;
$I:
\tld.global.u32 %r9, [%rd9];
\tadd.s32 %r2, %r1, -1;
\tsetp.ne.s32 %p2, %r1, 1;
\tsetp.ne.s32 %p3, %r9, 7;
\tand.pred %p4, %p2, %p3;
\tmov.u32 %r1, %r2;
\t@%p4 bra $I;
\tbra $O;";

/// A strip of 1 to 16384 iterations, sixteen at a time up to their multiple of sixteen, which is taken anew in each round.
const RENEWED: &str = "\tld.global.u32 %r1, [%rd9];
\tmax.u32 %r3, %r1, 1;
\tmin.u32 %r3, %r3, 16384;
\tsetp.lt.u32 %p2, %r3, 16;
\t@%p2 bra $O;
\tmov.u32 %r4, 0;
$I:
\tadd.s32 %r4, %r4, 16;
\tand.b32 %r5, %r3, -16;
\tsetp.ne.s32 %p4, %r4, %r5;
\t@%p4 bra $I;
\tbra $O;";

/// Up to thirteen iterations, four at a time: whether there are as many is asked in front of the limit.
const LIMITED: &str = "\tld.global.u32 %r1, [%rd9];
\tmin.u32 %r2, %r1, 12;
\tadd.s32 %r3, %r2, 1;
\tsetp.lt.u32 %p2, %r1, 3;
\t@%p2 bra $O;
\tand.b32 %r4, %r3, 28;
\tneg.s32 %r5, %r4;
$I:
\tadd.s32 %r5, %r5, 4;
\tsetp.ne.s32 %p4, %r5, 0;
\t@%p4 bra $I;
\tbra $O;";

/// What is left over of a number and one by four, one at a time: whether that is nothing is asked of the number.
const REST: &str = "\tld.global.u32 %r1, [%rd9];
\tld.global.u32 %r2, [%rd9];
\tadd.s32 %r3, %r1, %r2;
\tand.b32 %r4, %r3, 3;
\tsetp.eq.s32 %p2, %r4, 3;
\t@%p2 bra $O;
\tadd.s32 %r5, %r3, 1;
\tand.b32 %r6, %r5, 3;
\tmov.u32 %r7, 0;
$I:
\tadd.s32 %r7, %r7, 1;
\tsetp.ne.s32 %p4, %r7, %r6;
\t@%p4 bra $I;
\tbra $O;";

/// From anywhere on up to 256 by the size of a block.
const BLOCKS: &str = "\tmov.u32 %r1, %ntid.x;
\tld.global.u32 %r2, [%rd9];
$I:
\tadd.s32 %r2, %r1, %r2;
\tsetp.lt.u32 %p4, %r2, 256;
\t@%p4 bra $I;
\tbra $O;";

/// Up to a thousand by 6 to 13: as many as 32 less the zeroes that a number from 60 to 4155 begins with.
const LENGTH: &str = "\tld.global.u32 %r1, [%rd9];
\tand.b32 %r2, %r1, 4095;
\tadd.s32 %r3, %r2, 60;
\tclz.b32 %r4, %r3;
\tneg.s32 %r5, %r4;
\tand.b32 %r6, %r5, 15;
\tmov.u32 %r7, 0;
$I:
\tadd.s32 %r7, %r7, %r6;
\tsetp.lt.u32 %p4, %r7, 1000;
\t@%p4 bra $I;
\tbra $O;";

/// From a number's opposite to it, each compared before it goes on, as compilers that know how many there are leave it.
const TO_AND_FRO: &str = "\tld.global.u32 %r1, [%rd9];
\tand.b32 %r2, %r1, 255;
\tneg.s32 %r3, %r2;
$I:
\tadd.s32 %r4, %r3, 1;
\tsetp.ne.s32 %p4, %r3, %r2;
\tmov.u32 %r3, %r4;
\t@%p4 bra $I;
\tbra $O;";

/// Eight at a time, as often as twice a number of 16 bits and one says; what is asked of the double is known of its eighth part.
const HALVES: &str = "\tld.global.u16 %rs1, [%rd9];
\tmax.s16 %rs1, %rs1, -256;
\tmin.s16 %rs1, %rs1, 256;
\tmul.wide.s16 %r1, %rs1, 2;
\tcvt.u16.u32 %rs2, %r1;
\tadd.s16 %rs3, %rs2, 1;
\tshr.u16 %rs4, %rs3, 3;
\tsetp.lt.s16 %p2, %rs1, 0;
\t@%p2 bra $E;
$O:
POLL
\tsetp.lt.u32 %p3, %r1, 7;
\t@%p3 bra $O;
\tmul.wide.u16 %r2, %rs4, 8;
\tneg.s32 %r3, %r2;
$I:
\tadd.s32 %r3, %r3, 8;
\tsetp.ne.s32 %p4, %r3, 0;
\t@%p4 bra $I;
\tbra $O;
$E:
\tret;";

/// The same as newer compilers ask for what is left over: by two bits amid a multiple of 32.
fn by_bits_amid() -> String {
    STRIP
        .replace("shr.u32 %r7, %r6, 5", "mov.u32 %r7, 0")
        .replace("and.b32 %r9, %r8, 3", "and.b32 %r9, %r6, 96")
        .replace("%p2, %r9, 0", "%p2, %r9, 96")
        .replace("and.b32 %r11, %r3, 3", "mov.u32 %r11, %r9")
        .replace("%p2, %r11, 1", "%p2, %r11, 0")
        .replace("%p2, %r9, 2", "%p2, %r9, 32")
}

/// The same where the counter becomes its end, once what is left over is done.
fn in_place() -> String {
    let text = WIDE.replace("\tadd.s64 %rd4, %rd3, %rd1;\n", "").replace("$L:\n", "$L:\n\tadd.s64 %rd1, %rd1, %rd3;\n");
    text.replace("sub.s64 %rd7, %rd4, %rd6", "sub.s64 %rd7, %rd1, %rd6")
}

/// The same by four, where the number of iterations is made of the bytes that they take.
fn in_bytes() -> String {
    let text = in_place().replace("%r3, 3;", "%r3, 4;").replace("-12", "-16");
    let text = text.replace("%rd1, 9;", "%rd1, 12;").replace("%rd1, 6;", "%rd1, 8;").replace("%rd1, 3;", "%rd1, 4;");
    text.replace(
        "\tand.b64 %rd5, %rd2, 3",
        "\tadd.s64 %rd8, %rd3, -4;\n\tshr.u64 %rd8, %rd8, 2;\n\tadd.s64 %rd8, %rd8, 1;\n\tand.b64 %rd5, %rd8, 3",
    )
}

fn all_hold(body: &str) -> bool {
    let verdicts = verdicts(&format!("$O:\n{}{body}", poll(1)));
    assert_eq!(verdicts.len(), 2, "{body}");
    verdicts.iter().all(Verdict::holds)
}

#[test]
fn loops_unrolled_by_four_end() {
    let added_first = BLOCKS.replace("%r2, %r1, %r2", "%r2, %r2, %r1");
    for body in [CHUNK, STRIP, LATE, RENEWED, LIMITED, REST, BLOCKS, TO_AND_FRO, LENGTH, &added_first, &by_bits_amid()] {
        assert!(all_hold(body), "{body}");
    }
}

#[test]
fn loops_unrolled_by_four_that_step_over_their_end_are_not_proved() {
    for (body, from, to, why) in [
        (CHUNK, "and.b32 %r7, %r6, 3", "and.b32 %r7, %r6, 1", "what is left over is no multiple of four"),
        (CHUNK, "and.b32 %r7, %r6, 3", "and.b32 %r7, %r5, 3", "these are not its lowest bits"),
        (CHUNK, "%r11, %r11, -4", "%r11, %r11, -3", "it steps by three"),
        (CHUNK, "max.u32", "min.u32", "nothing bounds it"),
        (CHUNK, "%p3, %r5, -4", "%p3, %r5, -3", "three rounds are left to a loop of four"),
        (STRIP, "%r10, %r1, 64", "%r10, %r1, 65", "it begins off its stride"),
        (STRIP, "%r10, %r10, 128", "%r10, %r10, 96", "it steps by three"),
        (STRIP, "%p2, %r9, 2", "%p2, %r9, 3", "two iterations are left over where there should be none"),
        (STRIP, "%p3, %r6, 96", "%p3, %r6, 64", "three rounds are left to a loop of four"),
        (STRIP, "min.u32 %r3, %r3, 16384", "min.u32 %r3, %r3, -1", "nothing bounds it"),
        (STRIP, "shr.u32 %r7, %r6, 5", "shr.u32 %r7, %r6, 4", "not the number of iterations"),
        (&by_bits_amid(), "%r6, 96;\n\tsetp", "%r6, 64;\n\tsetp", "one bit says nothing of the other"),
        (&by_bits_amid(), "%p2, %r9, 32", "%p2, %r9, 64", "two iterations are left over where there should be none"),
        (&by_bits_amid(), "shl.b32 %r4, %r3, 5", "shl.b32 %r4, %r3, 4", "steps are twice as long as the end is far"),
        (RENEWED, "min.u32 %r3, %r3, 16384", "min.u32 %r3, %r3, -1", "nothing bounds it"),
        (RENEWED, "%r3, -16", "%r3, -8", "it is a multiple of eight"),
        (RENEWED, "%r4, %r4, 16", "%r4, %r4, 32", "it steps by thirty-two"),
        (RENEWED, "%p2, %r3, 16", "%p2, %r3, 8", "there may be nothing for it to come to"),
        (RENEWED, "%r4, %r4, 16;", "%r4, %r4, 16;\n\tadd.s32 %r3, %r3, 16;", "its end goes on as it does"),
        (RENEWED, "%r4, %r5;", "%r4, %r5;\n\tadd.s32 %r3, %r3, 16;", "its end goes on as it does, once it was asked for"),
        (RENEWED, "$I:\n\tadd.s32 %r4, %r4, 16;", "$I:\n\tadd.s32 %r4, %r5, 16;", "it goes on from where it should end"),
        (LIMITED, "%r1, 3", "%r1, 2", "three iterations are left to a loop of four"),
        (LIMITED, "min.u32", "max.u32", "it may be thirty-one, which leaves nothing"),
        (LIMITED, "min.u32", "min.s32", "what is large may be negative"),
        (LIMITED, "%r1, 12", "%r1, 40", "it may be thirty-one, which leaves nothing"),
        (REST, "%r3, 1;", "%r3, 2;", "nothing may be left over"),
        (REST, "%r4, 3;\n\t@", "%r4, 2;\n\t@", "nothing may be left over"),
        (REST, "%r5, 3", "%r5, 7", "three bits say nothing of two"),
        (REST, "add.s32 %r5, %r3, 1", "add.s32 %r5, %r1, 1", "it is another number"),
        (REST, "add.s32 %r5, %r3, 1", "sub.s32 %r5, 1, %r3", "one bit less may be left over"),
        (TO_AND_FRO, "neg.s32 %r3, %r2", "not.b32 %r3, %r2;\n\tneg.s32 %r3, %r3", "it begins beyond its end"),
        (TO_AND_FRO, "%r3, %r2;\n\tmov", "%r4, %r2;\n\tmov", "from zero on it goes past zero"),
        (TO_AND_FRO, "%r1, 255", "%r1, -2", "nothing bounds it"),
        (TO_AND_FRO, "%r3, 1;", "%r3, 3;", "it steps over its end"),
        (LENGTH, "%r1, 4095", "%r1, -1", "a number of 32 bits begins with no zeroes"),
        (LENGTH, "%r2, 60", "%r2, 0", "zero begins with 32 zeroes, of which four bits are none"),
        (LENGTH, "%r5, 15", "%r5, 7", "three bits of eight are none"),
        (LENGTH, "clz", "popc", "it counts other bits"),
        (BLOCKS, "%ntid.x", "%tid.x", "some thread's is zero"),
        (LATE, "%p2, %r1, 1", "%p2, %r1, 65", "it never comes by there"),
        (LATE, "and.pred", "or.pred", "either condition goes on"),
    ] {
        let text = body.replace(from, to);
        assert_ne!(text, body, "{from}");
        assert!(!all_hold(&text), "{why}: {from} -> {to}");
    }
}

#[test]
fn a_number_of_iterations_that_is_widened_is_known_of_its_product() {
    for body in [WIDE, &in_place(), &in_bytes(), &WIDE.replace("mul.wide.u32", "mul.wide.s32")] {
        assert!(all_hold(body), "{body}");
    }
    // Either of two numbers, which is not known: two that are chosen so are not the same.
    let either = "\tld.global.u32 %r9, [%rd9];\n\tsetp.eq.s32 %p8, %r9, 0;\n\tsetp.eq.s32 %p9, %r9, 1;\n\tadd.s32 %r4, %r3, 1;
\tselp.b32 %r5, %r3, %r4, %p8;\n\tselp.b32 %r6, %r3, %r4, %p9;\n\tcvt.u64.u32 %rd2, %r5;";
    for (from, to, why) in [
        ("%r3, 3;", "%r3, 2;", "the end is off the stride"),
        ("%r3, 3;", "%r3, -3;", "the end is far off"),
        ("%rd1, 6;", "%rd1, 5;", "it begins off its stride"),
        ("%rd7, -12", "%rd7, -9", "it steps by three"),
        ("%p2, %rd5, 2", "%p2, %rd5, 3", "two iterations are left over where there should be none"),
        ("%p3, %rd2, 4", "%p3, %rd2, 3", "three rounds are left to a loop of four"),
        ("min.u32 %r3, %r3, 16384", "min.u32 %r3, %r3, -1", "nothing bounds it"),
        ("cvt.u64.u32 %rd2, %r3", "cvt.u64.u32 %rd2, %r1", "it is another number"),
        ("%rd2, %r3;", "%rd2, %r3;\n\tadd.s32 %r3, %r3, 1;", "it was written since"),
        ("%rd2, %r3;", "%rd2, %r3;\n\t@%p9 add.s32 %r3, %r3, 1;", "it may have been written since"),
        ("%rd2, %r3;", "%rd2, %r3;\n\tadd.s64 %rd2, %rd2, 1;", "it is one more"),
        ("%rd2, %r3;", "%rd2, %r3;\n\tadd.s64 %rd2, %rd2, 4294967296;", "only its lower half is the same"),
    ] {
        for of in [WIDE, &in_place()] {
            let text = of.replace(from, to);
            assert_ne!(text, of, "{from}");
            assert!(!all_hold(&text), "{why}: {from} -> {to}");
        }
    }
    let text = WIDE.replace("\tcvt.u64.u32 %rd2, %r3;", either).replace("%rd3, %r3, 3", "%rd3, %r6, 3");
    assert!(!all_hold(&text), "{text}");
    // What is negative has other bits in front as a signed integer.
    let text = WIDE.replace("mul.wide.u32", "mul.wide.s32").replace("max.u32 %r3, %r1, 1", "max.s32 %r3, %r1, -16384");
    assert!(!all_hold(&text.replace("min.u32", "min.s32")), "{text}");
}

#[test]
fn what_was_made_in_front_of_a_loop_follows_what_is_asked_in_it() {
    let holds = |body: &str| {
        let verdicts = verdicts(&body.replace("POLL\n", &poll(1)));
        assert_eq!(verdicts.len(), 2, "{body}");
        verdicts.iter().all(Verdict::holds)
    };
    assert!(holds(HALVES));
    for (from, to, why) in [
        ("%r1, 7;", "%r1, 6;", "an eighth of seven is nothing"),
        ("%rs3, 3;", "%rs3, 4;", "half an eighth of it is nothing"),
        ("%rs1, 0;", "%rs1, -300;", "what is negative has no eighth"),
        ("add.s16 %rs3, %rs2, 1", "ld.global.u16 %rs3, [%rd9]", "it is another number"),
        ("POLL\n", "POLL\n\tld.global.u32 %r1, [%rd9];\n", "it was written since"),
        ("POLL\n", "POLL\n\tld.global.u16 %rs2, [%rd9];\n\tadd.s16 %rs3, %rs2, 1;\n\tshr.u16 %rs4, %rs3, 3;\n", "each was written since"),
        ("POLL\n", "POLL\n\tld.global.u16 %rs3, [%rd9];\n\tshr.u16 %rs4, %rs3, 3;\n", "the eighth was written since"),
    ] {
        let text = HALVES.replace(from, to);
        assert_ne!(text, HALVES, "{from}");
        assert!(!holds(&text), "{why}: {from} -> {to}");
    }
    // Where a way leads past the instruction nothing is known of its register.
    let past = HALVES.replace("\tcvt.u16.u32", "\tld.global.u32 %r9, [%rd9];\n\tsetp.eq.s32 %p9, %r9, 0;\n\t@%p9 bra $S;\n\tcvt.u16.u32");
    let past = past.replace("\tsetp.lt.s16", "$S:\n\tsetp.lt.s16");
    assert!(!holds(&past), "{past}");
}

#[test]
fn what_is_shifted_by_six_bits_at_least_pays_for_sixty_four() {
    let body = "\tld.global.u32 %r1, [%rd9];
\tmin.u32 %r3, %r1, 16384;
$I:
\tld.global.u32 %r4, [%rd9];
\tmin.u32 %r4, %r4, 256;
\tmax.u32 %r4, %r4, 1;
\tld.global.u32 %r5, [%rd9];
\tmin.u32 %r5, %r5, 13;
\tmax.u32 %r5, %r5, 6;
\tshl.b32 %r6, %r4, %r5;
\tmax.u32 %r7, %r3, %r6;
\tsub.s32 %r3, %r7, %r6;
\tsetp.ne.s32 %p4, %r3, 0;
\t@%p4 bra $I;
\tret;";
    let rounds = |body: &str| match verdicts(body)[..] {
        [Verdict::Bounded { by: Bound::Rounds(rounds) }] => rounds,
        ref other => panic!("{body}: {other:?}"),
    };
    assert!((250..300).contains(&rounds(body)), "{}", rounds(body));
    let by_three = rounds(&body.replace("%r5, 6", "%r5, 3"));
    assert!((2040..2100).contains(&by_three), "{by_three}");
}
