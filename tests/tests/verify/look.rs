//! Looks in assembly, which use few registers again and again, as a compiler that does not optimise leaves them.

use crate::report;

/// Strips that are paid from an allowance, with a look where nothing is left. What the look read of the clock and of limits lay in the registers of the
/// flag's pointer and of the answer before, and does so again behind it.
const STRIPS: &str = "\tmov.u32 %r1, 1024;
\tmov.u32 %r2, 0;
$H:
\tmov.u32 %r3, %r1;
\tsetp.lt.s32 %p1, %r2, %r9;
\t@!%p1 bra $O;
\tadd.s32 %r2, %r2, 1;
\tsetp.gt.u32 %p2, %r3, 16;
\t@!%p2 bra $Z;
\tsub.s32 %r4, %r3, 16;
\tmov.u32 %r1, %r4;
\tbra $H;
$Z:
\t{
\t.reg .pred asked, holds;
\t.reg .b32 flag, launch, word;
\t.reg .b64 now, begin;
\tld.global.u64 begin, [cuinstr_control_v1+16];
\tld.relaxed.sys.global.u32 flag, [begin];
\tmov.u64 now, %globaltimer;
\tld.global.u64 begin, [cuinstr_control_v1+32];
\tsub.u64 begin, now, begin;
\tsetp.gt.u64 holds, begin, 1000;
\tmov.u32 word, 1;
\tshl.b32 %r5, word, %r10;
\tld.global.u32 launch, [cuinstr_control_v1+8];
\tsetp.eq.u32 asked, flag, launch;
\tor.pred holds, asked, holds;
\tactivemask.b32 word;
\tvote.sync.any.pred holds, holds, word;
\t@!holds bra stays;
\tsetp.eq.u32 holds, flag, launch;
\tactivemask.b32 word;
\tvote.sync.any.pred holds, holds, word;
\t@holds bra stops;
\tld.global.u64 begin, [cuinstr_control_v1+24];
\tsetp.ne.u64 holds, begin, 0;
\t@!holds bra stays;
stops:
\texit;
stays:
\t}
\tmov.u32 %r6, %r5;
\tsetp.lt.u32 %p3, %r6, 16384;
\t@!%p3 bra $M;
\tmov.u32 %r7, %r6;
\tbra $J;
$M:
\tmov.u32 %r7, 16384;
$J:
\tmov.u32 %r1, %r7;
\tbra $H;
$O:
\tret;";

#[test]
fn what_a_look_in_assembly_leaves_is_followed_though_its_registers_hold_other_things_too() {
    let held = report(STRIPS);
    assert!(held.holds(), "{:#?}", held.loops);
    for (from, to) in [
        // Another word than the flag, or another number than the launch's.
        ("[cuinstr_control_v1+16];\n", "[cuinstr_control_v1+16];\n\tld.global.u64 begin, [cuinstr_control_v1+32];\n"),
        ("ld.relaxed.sys.global.u32 flag, [begin]", "ld.relaxed.sys.global.u32 flag, [now]"),
        ("ld.relaxed.sys.global.u32 flag, [begin]", "ld.global.u32 flag, [begin]"),
        ("\tmov.u64 now, %globaltimer;\n", "\tmov.u64 now, %globaltimer;\n\tld.global.u32 flag, [now];\n"),
        ("[cuinstr_control_v1+8]", "[cuinstr_control_v1+12]"),
        ("\tsetp.eq.u32 asked, flag, launch;\n", "\tmov.u32 launch, word;\n\tsetp.eq.u32 asked, flag, launch;\n"),
        // The answer is of something else, or leads elsewhere.
        ("\tor.pred holds, asked, holds;\n", "\tor.pred holds, asked, holds;\n\tsetp.gt.u64 holds, begin, 1000;\n"),
        ("\t@!holds bra stays;\n\tsetp.eq.u32 holds, flag, launch;\n", "\tsetp.gt.u64 holds, begin, 1000;\n\t@!holds bra stays;\n"),
        ("or.pred holds, asked, holds", "and.pred holds, asked, holds"),
        ("@holds bra stops;\n", "@holds bra stays;\n"),
        ("stops:\n\texit;\n", "stops:\n"),
        // What is left may be nothing, or more each time.
        ("sub.s32 %r4, %r3, 16", "sub.s32 %r4, %r3, 0"),
        ("setp.gt.u32 %p2, %r3, 16", "setp.ne.u32 %p2, %r3, 16"),
        ("mov.u32 %r1, %r4", "mov.u32 %r1, %r8"),
        ("@!%p3 bra $M;\n\tmov.u32 %r7, %r6", "@%p3 bra $M;\n\tmov.u32 %r7, %r6"),
        ("mov.u32 %r7, %r6", "mov.u32 %r7, %r10"),
    ] {
        let other = STRIPS.replacen(from, to, 1);
        assert_ne!(other, STRIPS, "{from}");
        assert!(!report(&other).holds(), "{from} -> {to}");
    }
}
