//! Loops that can run for ever, made to look as if they could not, and their twins that end.

use crate::{poll, report, verdicts};
use cuinstr::verify::report::{Bound, Verdict};

/// Asserts that every loop of the body is proved.
#[track_caller]
fn holds(body: &str) {
    let report = report(body);
    assert!(!report.loops.is_empty(), "there is no loop in {body}");
    assert!(report.holds(), "{body}\n{:#?}", report.loops);
}

/// Asserts that some loop of the body is not.
#[track_caller]
fn fails(body: &str) {
    assert!(!report(body).holds(), "{body}");
}

/// The loop that all of these are variations of.
const POLLED: &str = "$L:\n\tld.global.u64 %rd1, [cuinstr_control_v1+16];\n\tld.relaxed.sys.u32 %r1, [%rd1];\n\
    \tld.global.u32 %r2, [cuinstr_control_v1+8];\n\tsetp.eq.s32 %p1, %r1, %r2;\n\t@%p1 exit;\n\tbra $L;";

#[test]
fn a_poll_reads_the_flag_past_the_caches_and_ends_the_thread() {
    holds(POLLED);
    for (from, to) in [
        // A weak load, which may be moved out of the loop or served from a cache.
        ("ld.relaxed.sys.u32 %r1", "ld.global.u32 %r1"),
        ("ld.relaxed.sys.u32 %r1", "ld.relaxed.cta.u32 %r1"),
        ("ld.relaxed.sys.u32 %r1", "ld.volatile.shared.u32 %r1"),
        // Another word, a part of one, or a word beside it.
        ("+16]", "+24]"),
        ("[%rd1]", "[%rd1+4]"),
        ("ld.relaxed.sys.u32 %r1", "ld.relaxed.sys.u16 %r1"),
        ("cuinstr_control_v1+16", "cuinstr_control_v2+16"),
        // Compared with something else, or the other way round.
        ("+8]", "+12]"),
        ("setp.eq.s32", "setp.ne.s32"),
        ("setp.eq.s32", "setp.gt.s32"),
        ("setp.eq.s32 %p1, %r1, %r2", "setp.eq.s32 %p1, %r1, 1"),
        ("setp.eq.s32 %p1, %r1, %r2", "setp.eq.and.s32 %p1, %r1, %r2, %p9"),
        ("@%p1 exit", "@!%p1 exit"),
        // Nothing comes of it.
        ("@%p1 exit", "@%p1 bra $L"),
        ("@%p1 exit", "@%p1 bar.sync 0"),
        ("@%p1 exit", "@%p2 exit"),
        ("\t@%p1 exit", "\tmov.pred %p1, %p2;\n\t@%p1 exit"),
        ("\t@%p1 exit", "\tand.pred %p3, %p1, %p2;\n\t@%p3 exit"),
        // Read, and then lost.
        ("\tsetp", "\tadd.s32 %r1, %r1, 1;\n\tsetp"),
        ("\tsetp", "\t@%p5 mov.u32 %r1, %r7;\n\tsetp"),
        ("\tsetp", "\tnew.unknown.op %r7, %r1;\n\tsetp"),
    ] {
        let body = POLLED.replacen(from, to, 1);
        assert_ne!(body, POLLED, "{from}");
        fails(&body);
    }
    for (from, to) in [
        ("ld.relaxed.sys", "ld.relaxed.gpu"),
        ("ld.relaxed.sys", "ld.acquire.sys"),
        ("ld.relaxed.sys", "ld.volatile"),
        ("ld.relaxed.sys", "ld.relaxed.sys.global"),
        ("exit;", "trap;"),
        ("setp.eq.s32 %p1", "setp.ne.s32 %p1"),
    ] {
        let body = POLLED.replacen(from, to, 1);
        holds(&if to == "setp.ne.s32 %p1" { body.replace("@%p1", "@!%p1") } else { body });
    }
    // `or` with anything still leaves.
    holds(&POLLED.replace("\t@%p1 exit", "\tor.pred %p3, %p1, %p2;\n\t@%p3 exit"));
    // A newer instruction elsewhere changes nothing.
    holds(&POLLED.replace("\tsetp", "\tnew.unknown.op %r7, %r8;\n\tsetp"));
}

#[test]
fn a_control_block_that_is_none_is_a_fault() {
    for declaration in
        [".shared .align 8 .b8 cuinstr_control_v1[1192];", ".local .b8 cuinstr_control_v1[1192];", ".reg .b64 cuinstr_control_v1;"]
    {
        let text = crate::kernel(&format!("\t{declaration}\n{POLLED}"));
        assert!(!cuinstr::verify::verify_ptx(&text).holds(), "{declaration}");
    }
    let shared = crate::kernel(POLLED).replace(".global .align 8 .b8 cuinstr", ".shared .align 8 .b8 cuinstr");
    assert!(!cuinstr::verify::verify_ptx(&shared).holds());
}

#[test]
fn what_was_read_before_the_loop_says_nothing_in_it() {
    let load = "\tld.global.u64 %rd1, [cuinstr_control_v1+16];\n\tld.relaxed.sys.u32 %r1, [%rd1];\n";
    let launch = "\tld.global.u32 %r2, [cuinstr_control_v1+8];\n";
    let check = "\tsetp.eq.s32 %p1, %r1, %r2;\n\t@%p1 exit;\n";
    fails(&format!("{load}{launch}$L:\n{check}\tbra $L;"));
    // The pointer and the launch's number do not change; the flag must be read anew.
    holds(&format!("{load}{launch}$L:\n\tld.relaxed.sys.u32 %r1, [%rd1];\n{check}\tbra $L;"));
    // Read on one way round only.
    fails(&format!("{launch}$L:\n\tld.global.u32 %r9, [%rd9];\n\tsetp.ne.s32 %p5, %r9, 0;\n\t@%p5 bra $C;\n{load}$C:\n{check}\tbra $L;"));
    // Read outside an inner loop that checks it.
    let inner =
        format!("{launch}$L:\n{load}$I:\n{check}\tld.global.u32 %r9, [%rd9];\n\tsetp.ne.s32 %p5, %r9, 0;\n\t@%p5 bra $I;\n\tbra $L;");
    fails(&inner);
    assert_eq!(verdicts(&inner).iter().filter(|verdict| verdict.holds()).count(), 1, "the outer loop is sound");
    // Two copies that pass a stale value round for ever.
    fails(&format!(
        "{launch}$L:\n\tmov.u32 %r5, %r6;\n\tmov.u32 %r6, %r1;\n\tmov.u32 %r1, %r5;\n\tsetp.eq.s32 %p1, %r1, %r2;\n\t@%p1 exit;\n\tbra $L;"
    ));
}

#[test]
fn every_way_round_asks() {
    let any = "\tld.global.u32 %r9, [%rd9];\n\tsetp.ne.s32 %p5, %r9, 0;\n";
    holds(&format!("$L:\n{any}\t@%p5 bra $A;\n{}\tbra $L;\n$A:\n{}\tbra $L;", poll(1), poll(2)));
    fails(&format!("$L:\n{any}\t@%p5 bra $A;\n{}\tbra $L;\n$A:\n\tbra $L;", poll(1)));
    // An inner loop without a poll, around it one with.
    fails(&format!("$L:\n{}$I:\n{any}\t@%p5 bra $I;\n\tbra $L;", poll(1)));
    // A poll in the inner loop does not cover the outer, whose rounds may pass it by.
    fails(&format!("$L:\n{any}\t@%p5 bra $L;\n$I:\n{}{any}\t@%p5 bra $I;\n\tbra $L;", poll(1)));
    // Two entries: no block is in front of all others.
    let irreducible =
        |first: &str, second: &str| format!("{any}\t@%p5 bra $B;\n$A:\n{first}\tbra $B;\n$B:\n{second}{any}\t@%p5 bra $A;\n\tret;");
    holds(&irreducible(&poll(1), ""));
    holds(&irreducible("", &poll(1)));
    fails(&irreducible("", ""));
    // A table of branches.
    let table =
        |body: &str| format!("$T: .branchtargets $A, $B;\n$A:\n{body}\tld.global.u32 %r9, [%rd9];\n\tbrx.idx %r9, $T;\n$B:\n\tret;");
    holds(&table(&poll(1)));
    fails(&table(""));
}

#[test]
fn a_register_that_counts_bounds_a_loop_and_one_that_may_not_does_not() {
    let counted = |start: &str, step: &str, test: &str| {
        format!("\tmov.u32 %r1, {start};\n$L:\n\tadd.s32 %r1, %r1, {step};\n\t{test};\n\t@%p1 bra $L;\n\tret;")
    };
    for (start, step, test, rounds) in [
        ("0", "1", "setp.lt.s32 %p1, %r1, 10", 10),
        ("0", "16", "setp.ne.s32 %p1, %r1, 64", 4),
        ("64", "-16", "setp.ne.s32 %p1, %r1, 0", 4),
        ("0", "-8", "setp.ne.s32 %p1, %r1, -64", 8),
        ("10", "-1", "setp.gt.s32 %p1, %r1, 0", 10),
        ("-5", "1", "setp.lt.s32 %p1, %r1, 5", 10),
        ("0", "65536", "setp.lt.u32 %p1, %r1, 4294901760", 65535),
        // Below zero it is large, which ends the loop too.
        ("4", "-1", "setp.lt.u32 %p1, %r1, 8", 9),
    ] {
        let body = counted(start, step, test);
        assert_eq!(verdicts(&body), [Verdict::Bounded { by: Bound::Rounds(rounds) }], "{body}");
    }
    for (start, step, test) in [
        // A step of zero, of the wrong sign, or past the end.
        ("0", "0", "setp.lt.s32 %p1, %r1, 10"),
        ("0", "-1", "setp.lt.s32 %p1, %r1, 10"),
        ("0", "3", "setp.ne.s32 %p1, %r1, 64"),
        ("0", "-8", "setp.ne.s32 %p1, %r1, -60"),
        ("65", "1", "setp.ne.s32 %p1, %r1, 64"),
        ("10", "-3", "setp.ne.u32 %p1, %r1, 0"),
        // Never below zero.
        ("10", "-1", "setp.ge.u32 %p1, %r1, 0"),
        // Longer than a bound is worth something.
        ("0", "1", "setp.lt.u32 %p1, %r1, 1000000"),
        // A limit or a start that anybody may choose.
        ("0", "1", "setp.lt.s32 %p1, %r1, %r5"),
        ("%r5", "1", "setp.lt.s32 %p1, %r1, 10"),
        // A step that anybody may choose.
        ("0", "%r5", "setp.lt.s32 %p1, %r1, 10"),
        // Wraps round before it gets there.
        ("0", "65537", "setp.ne.u32 %p1, %r1, 4294967295"),
    ] {
        let body = counted(start, step, test);
        assert!(!report(&body).holds() || body.contains("4294967295"), "{body}");
    }
    // Whoever fills the counter up in the loop starts anew.
    let refilled = "\tmov.u32 %r1, 10;\n$L:\n\tadd.s32 %r1, %r1, -1;\n\tsetp.gt.s32 %p1, %r1, 0;\n\t@%p1 bra $L;\n\tmov.u32 %r1, 10;\n\tld.global.u32 %r9, [%rd9];\n\tsetp.ne.s32 %p5, %r9, 0;\n\t@%p5 bra $L;\n\tret;";
    fails(refilled);
    // A second writer in the loop, a load, an exchange with another register, an inner scope of the same name.
    fails(&counted("0", "1", "ld.global.u32 %r1, [%rd9];\n\tsetp.lt.s32 %p1, %r1, 10"));
    fails(&counted("0", "1", "@%p6 mov.u32 %r1, 0;\n\tsetp.lt.s32 %p1, %r1, 10"));
    fails(&counted("0", "1", "atom.global.add.u32 %r1, [%rd9], 1;\n\tsetp.lt.s32 %p1, %r1, 10"));
    fails(
        "\tmov.u32 %r1, 0;\n$L:\n\t{\n\t.reg .b32 %r1;\n\tadd.s32 %r1, %r1, 1;\n\t}\n\tsetp.lt.s32 %p1, %r1, 10;\n\t@%p1 bra $L;\n\tret;",
    );
    holds(
        "\tmov.u32 %r1, 0;\n$L:\n\tadd.s32 %r1, %r1, 1;\n\t{\n\t.reg .b32 %r1;\n\tmov.u32 %r1, 0;\n\t}\n\tsetp.lt.s32 %p1, %r1, 10;\n\t@%p1 bra $L;\n\tret;",
    );
    // Tested before it moves, and where the exit does not lead out.
    fails("\tmov.u32 %r1, 0;\n$L:\n\tsetp.lt.s32 %p1, %r1, 10;\n\tadd.s32 %r1, %r1, 1;\n\t@%p1 bra $L;\n\tbra $L;");
    // A start that one way into the loop leaves out.
    fails("\t@%p7 bra $L;\n\tmov.u32 %r1, 0;\n$L:\n\tadd.s32 %r1, %r1, 1;\n\tsetp.ne.s32 %p1, %r1, 10;\n\t@%p1 bra $L;\n\tret;");
}

#[test]
fn counts_within_counts_are_multiplied() {
    let nest = |outer: u32, inner: u32| {
        format!(
            "\tmov.u32 %r1, 0;\n$L:\n\tmov.u32 %r2, 0;\n$I:\n\tadd.s32 %r2, %r2, 1;\n\tsetp.lt.s32 %p2, %r2, {inner};\n\t@%p2 bra $I;\n\tadd.s32 %r1, %r1, 1;\n\tsetp.lt.s32 %p1, %r1, {outer};\n\t@%p1 bra $L;\n\tret;"
        )
    };
    assert_eq!(verdicts(&nest(11, 21)), [Verdict::Bounded { by: Bound::Rounds(231) }, Verdict::Bounded { by: Bound::Rounds(21) }]);
    fails(&nest(60_000, 60_000));
}

#[test]
fn an_allowance_is_filled_up_by_polls_only() {
    let tick = |refill: &str, poll: &str| {
        format!(
            "\tmov.u32 %r1, 1024;\n$L:\n\tsetp.gt.u32 %p1, %r1, 2;\n\t@%p1 bra $D;\n{poll}\tld.local.u32 %r8, [%rd8];\n\t{refill};\n\tbra $B;\n$D:\n\tadd.s32 %r1, %r1, -2;\n$B:\n\tld.global.u32 %r9, [%rd9];\n\tsetp.ne.s32 %p5, %r9, 0;\n\t@%p5 bra $L;\n\tret;"
        )
    };
    holds(&tick("min.u32 %r1, %r8, 65536", &poll(1)));
    holds(&tick("mov.u32 %r1, 1024", &poll(1)));
    fails(&tick("min.u32 %r1, %r8, 65536", ""));
    fails(&tick("min.s32 %r1, %r8, 65536", &poll(1)));
    fails(&tick("min.u32 %r1, %r8, 6553600", &poll(1)));
    fails(&tick("mov.u32 %r1, %r8", &poll(1)));
    fails(&tick("min.u32 %r1, %r8, 65536", &poll(1)).replace("%r1, -2", "%r1, -4"));
    fails(&tick("min.u32 %r1, %r8, 65536", &poll(1)).replace("%r1, -2", "%r1, 0"));
}

#[test]
fn a_clock_ends_a_loop_only_if_it_is_read_in_it_and_compared_with_a_constant() {
    let wait = |limit: &str| {
        format!(
            "\tmov.u64 %rd1, %globaltimer;\n$L:\n\tmov.u64 %rd2, %globaltimer;\n\tsub.s64 %rd3, %rd2, %rd1;\n\tsetp.lt.u64 %p1, %rd3, {limit};\n\t@%p1 bra $L;\n\tret;"
        )
    };
    assert_eq!(verdicts(&wait("1000000")), [Verdict::Bounded { by: Bound::Clock }]);
    for body in [
        wait("100000000000"),
        wait("%rd5"),
        // The start is read anew in each round, or never read, or the clock is read before the loop.
        wait("1000000").replace("$L:\n", "$L:\n\tmov.u64 %rd1, %globaltimer;\n"),
        wait("1000000").replace("$L:\n\tmov.u64 %rd2, %globaltimer;\n", "\tmov.u64 %rd2, %globaltimer;\n$L:\n"),
        wait("1000000").replace("sub.s64 %rd3, %rd2, %rd1", "sub.s64 %rd3, %rd1, %rd2"),
        wait("1000000").replace("%globaltimer;\n\tsub", "%gridid;\n\tsub"),
        wait("1000000").replace("setp.lt.u64", "setp.gt.u64"),
    ] {
        fails(&body);
    }
    // A clock has not gone on for 2^63 ticks.
    assert_eq!(verdicts(&wait("1000000").replace("setp.lt.u64", "setp.lt.s64")), [Verdict::Bounded { by: Bound::Clock }]);
    // A start that no clock has shown may lie ahead, and the loop then waits for it.
    fails(&wait("1000000").replace("mov.u64 %rd1, %globaltimer", "ld.global.u64 %rd1, [%rd9]"));
    fails(&wait("1000000").replace("%rd1, %globaltimer", "%rd1, %clock64"));
}

#[test]
fn threads_that_only_trap_are_told_apart() {
    let odd = "$L:\n\tld.global.u64 %rd1, [cuinstr_control_v1+16];\n\tld.relaxed.sys.u32 %r1, [%rd1];\n\tld.global.u32 %r2, [cuinstr_control_v1+8];\n\
        \tsetp.ne.s32 %p1, %r1, %r2;\n\t@%p1 bra $L;\n\tld.global.u32 %r3, [cuinstr_control_v1+4];\n\tsetp.ne.s32 %p2, %r3, 0;\n\t@%p2 bra $L;\n\ttrap;";
    assert_eq!(verdicts(odd), [Verdict::TrapOnly]);
    let wait = "$L:\n\tmbarrier.try_wait.shared::cta.b64 %p1, [%rd1], %rd2;\n\t@!%p1 bra $L;\n\tret;";
    assert_eq!(verdicts(wait), [Verdict::WaitsInHardware]);
    holds(&wait.replace("\t@!%p1 bra", &format!("{}\t@!%p1 bra", poll(1))));
}

/// A module with a kernel that calls `f`, whose body this is.
fn callee(body: &str, kernel: &str) -> String {
    crate::kernel(kernel).replace(
        ".visible .entry",
        &format!(".func f()\n{{\n\t.reg .pred %p<40>;\n\t.reg .b32 %r<40>;\n\t.reg .b64 %rd<40>;\n{body}\n}}\n.visible .entry"),
    )
}

#[test]
fn calls_are_followed() {
    let loop_around = "$L:\n\tcall.uni f, ();\n\tbra $L;";
    let check = |body: &str, kernel: &str| {
        let report = cuinstr::verify::verify_ptx(&callee(body, kernel));
        assert_eq!(report.faults, [], "{body}");
        report
    };
    // A callee that asks before it returns is a poll of its caller's loop; one that may return without is none.
    assert!(check(&format!("{}\tret;", poll(1)), loop_around).holds());
    assert!(!check("\tret;", loop_around).holds());
    assert!(!check(&format!("\t@%p7 ret;\n{}\tret;", poll(1)), loop_around).holds());
    assert!(!check(&format!("{}\tret;", poll(1)), "$L:\n\t@%p7 call.uni f, ();\n\tbra $L;").holds());
    // Recursion.
    let again = |poll: &str| format!("{poll}\t@%p7 bra $R;\n\tcall.uni f, ();\n$R:\n\tret;");
    let polled = check(&again(&poll(1)), "\tcall.uni f, ();\n\tret;");
    assert!(polled.holds() && polled.loops[0].recursion && polled.loops[0].kernels == ["k"]);
    assert!(!check(&again(""), "\tcall.uni f, ();\n\tret;").holds());
    assert!(!check(&again("\t@%p6 call.uni f, ();\n"), "\tcall.uni f, ();\n\tret;").holds());
    // Through a pointer, and out of sight.
    let pointer = "\t{\n\tprototype_0 : .callprototype _ ();\n\tmov.u64 %rd1, f;\n\tcall %rd1, (), prototype_0;\n\t}\n\tret;";
    assert!(!check("\tmov.u64 %rd1, f;\n\tP: .callprototype _ ();\n\tcall %rd1, (), P;\n\tret;", pointer).holds(), "f calls itself");
    assert!(check("\tret;", pointer).holds());
    let outside = check("\tret;", "\tcall.uni elsewhere, ();\n\tret;");
    assert_eq!(outside.unknown.iter().map(|call| call.callee.as_str()).collect::<Vec<_>>(), ["elsewhere"]);
    assert!(!outside.holds());
    assert!(check("\tret;", "\tcall.uni vprintf, ();\n\tret;").holds());
}

#[test]
fn what_a_thread_votes_for_holds_for_some() {
    let voted = POLLED.replace("\t@%p1 exit", "\tactivemask.b32 %r8;\n\tvote.sync.any.pred %p2, %p1, %r8;\n\t@%p2 exit");
    assert_ne!(voted, POLLED);
    holds(&voted);
    for (from, to) in [
        // All of them, the other way round, as a mask, or of something else.
        ("any.pred %p2, %p1", "all.pred %p2, %p1"),
        ("any.pred %p2, %p1", "uni.pred %p2, %p1"),
        ("any.pred %p2, %p1", "any.pred %p2, %p3"),
        ("\tactivemask", "\tnot.pred %p1, %p1;\n\tactivemask"),
        ("vote.sync.any.pred %p2, %p1, %r8", "vote.sync.ballot.b32 %r7, %p1, %r8"),
        ("@%p2 exit", "@!%p2 exit"),
    ] {
        let body = voted.replacen(from, to, 1);
        assert_ne!(body, voted, "{from}");
        fails(&body);
    }
}

#[test]
fn two_halves_of_a_register_are_added_without_a_carry() {
    // The lower half goes from 65535 to 0, and the register never comes to 65540.
    let body = "\tmov.u32 %r1, 65535;\n\tmov.u32 %r2, 1;\n$L:\n\tadd.u32 %r1, %r1, %r2;\n\tsetp.ne.u32 %p1, %r1, 65540;\n\t@%p1 bra $L;";
    holds(body);
    for kind in ["u16x2", "s16x2"] {
        fails(&body.replace("add.u32", &format!("add.{kind}")));
    }
    // The larger of each half is more than either register.
    let body =
        "\tmov.u32 %r1, 65536;\n\tmov.u32 %r2, 65535;\n$L:\n\tmax.u32 %r1, %r1, %r2;\n\tsetp.gt.u32 %p1, %r1, 65536;\n\t@%p1 bra $L;";
    holds(body);
    fails(&body.replace("max.u32", "max.u16x2"));
}
