//! Single instructions with results that the PTX manual or a GPU gives.

use cuinstr_simulate::{Launch, Machine, Memory, Outcome, Program};

/// Runs a body that leaves 64 bits in `%d0`, for so many threads; what each left.
fn run(body: &str, threads: u32) -> Result<Vec<u64>, Outcome> {
    let text = format!(
        ".version 9.0 .target sm_90 .address_size 64\n.visible .entry k(.param .u64 out) {{\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %d<20>;\n\
         .reg .f32 %f<9>; .reg .f64 %e<9>;\n{body}\nld.param.u64 %d18, [out]; mov.u32 %r18, %tid.x; mul.wide.u32 %d19, %r18, 8; add.u64 %d18, %d18, %d19;\n\
         st.global.u64 [%d18], %d0; ret; }}"
    );
    let program = Program::read(&text).unwrap_or_else(|why| panic!("{why}: {text}"));
    let mut memory = Memory::new(&program);
    let out = memory.allocate(vec![0; 8 * threads as usize]);
    let launch =
        Launch { kernel: "k".into(), grid: [1; 3], block: [threads, 1, 1], shared: 0, parameters: vec![out.to_le_bytes().to_vec()] };
    let mut machine = Machine::new(&program, memory, launch).expect("a launch");
    match machine.run(100_000, &mut |_| ()).expect("it ends") {
        Outcome::Completed => {
            let bytes = machine.memory.bytes(out).expect("the buffer");
            Ok(bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect())
        }
        other => Err(other),
    }
}

/// The 32 bits that an expression of one instruction leaves in `%r0`.
fn word(instruction: &str) -> u64 {
    run(&format!("{instruction}\ncvt.u64.u32 %d0, %r0;"), 1).unwrap_or_else(|outcome| panic!("{instruction}: {outcome:?}"))[0]
}

#[test]
fn integer_arithmetic_is_that_of_the_manual() {
    for (instruction, expected) in [
        ("add.u32 %r0, 0xffffffff, 2;", 1),
        ("sub.s32 %r0, 1, 2;", 0xffff_ffff),
        ("add.sat.s32 %r0, 0x7fffffff, 1;", 0x7fff_ffff),
        ("mul.hi.s32 %r0, -2, 3;", 0xffff_ffff),
        ("mul.hi.u32 %r0, 0xfffffffe, 3;", 2),
        ("mad.lo.s32 %r0, -2, 3, 7;", 1),
        ("mul24.lo.s32 %r0, 0x1000003, 2;", 6),
        ("div.s32 %r0, -7, 2;", 0xffff_fffd),
        ("rem.s32 %r0, -7, 2;", 0xffff_ffff),
        ("div.u32 %r0, 7, 0;", 0xffff_ffff),
        ("min.s32 %r0, -1, 1;", 0xffff_ffff),
        ("min.u32 %r0, 0xffffffff, 1;", 1),
        ("abs.s32 %r0, -5;", 5),
        ("shl.b32 %r0, 1, 32;", 0),
        ("shr.s32 %r0, 0x80000000, 99;", 0xffff_ffff),
        ("shr.u32 %r0, 0x80000000, 31;", 1),
        ("popc.b32 %r0, 0xf0f0;", 8),
        ("clz.b32 %r0, 0;", 32),
        ("brev.b32 %r0, 1;", 0x8000_0000),
        ("bfind.u32 %r0, 0x100;", 8),
        ("bfind.s32 %r0, -1;", 0xffff_ffff),
        ("bfind.shiftamt.u32 %r0, 0x100;", 23),
        ("bfe.u32 %r0, 0x12345678, 8, 8;", 0x56),
        ("bfe.s32 %r0, 0x0000f000, 12, 4;", 0xffff_ffff),
        ("bfe.s32 %r0, 0x80000000, 28, 8;", 0xffff_fff8),
        ("bfe.u32 %r0, 0x12345678, 40, 8;", 0),
        ("bfi.b32 %r0, 0xff, 0x12345678, 8, 8;", 0x1234_ff78),
        ("lop3.b32 %r0, 12, 10, 7, 0x80;", 0xc & 0xa & 0x7),
        ("lop3.b32 %r0, 12, 10, 7, 0x96;", 0xc ^ 0xa ^ 0x7),
        ("prmt.b32 %r0, 0x33221100, 0x77665544, 0x7531;", 0x7755_3311),
        ("prmt.b32 %r0, 0x80, 0, 0x8888;", 0xffff_ffff),
        ("shf.l.wrap.b32 %r0, 0x80000000, 1, 1;", 3),
        ("shf.r.clamp.b32 %r0, 5, 9, 40;", 9),
        ("sad.u32 %r0, 3, 10, 1;", 8),
        ("cnot.b32 %r0, 0;", 1),
        ("bmsk.clamp.b32 %r0, 4, 8;", 0xff0),
        ("slct.u32.s32 %r0, 1, 2, -1;", 2),
        ("cvt.sat.u8.u32 %r0, 999;", 255),
        ("mov.u32 %r1, 0x1ff; cvt.s32.s8 %r0, %r1;", 0xffff_ffff),
        ("set.lt.u32.s32 %r0, -1, 0;", 0xffff_ffff),
        ("dp4a.s32.s32 %r0, 0x01ff0203, 0x01010101, 4;", 9),
        ("add.cc.u32 %r1, 0xffffffff, 1; addc.u32 %r0, 5, 0;", 6),
        ("sub.cc.u32 %r1, 0, 1; subc.u32 %r0, 5, 0;", 4),
    ] {
        assert_eq!(word(instruction), expected, "{instruction}");
    }
}

#[test]
fn wide_and_narrow_values_keep_their_widths() {
    let left = |body: &str| run(body, 1).expect("it ends")[0];
    assert_eq!(left("mul.wide.s32 %d0, -2, 3;"), (-6_i64).cast_unsigned());
    assert_eq!(left("mul.hi.u64 %d0, 0xffffffffffffffff, 2;"), 1);
    assert_eq!(left("mov.u16 %h1, 0xffff; add.u16 %h1, %h1, 1; cvt.u64.u16 %d0, %h1;"), 0);
    assert_eq!(left("mov.u32 %r1, 7; mov.b64 %d0, {%r1, 9};"), 9 << 32 | 7);
    assert_eq!(left("mov.u64 %d1, 0x900000007; mov.b64 {%r1, %r2}, %d1; cvt.u64.u32 %d0, %r2;"), 9);
    // A zero in front of a register's number changes nothing.
    assert_eq!(left("mov.u32 %r01, 5; add.u32 %r1, %r001, 1; cvt.u64.u32 %d0, %r1;"), 6);
}

#[test]
fn floats_are_rounded_as_asked() {
    for (instruction, expected) in [
        ("add.rn.f32 %f1, 0f3f800000, 0f33000000;", 0x3f80_0000),
        ("add.rp.f32 %f1, 0f3f800000, 0f33000000;", 0x3f80_0001),
        ("add.rz.f32 %f1, 0fbf800000, 0fb3000000;", 0xbf80_0000),
        ("add.rm.f32 %f1, 0fbf800000, 0fb3000000;", 0xbf80_0001),
        ("cvt.rz.f32.u32 %f1, 0xffffffff;", 0x4f7f_ffff),
        ("cvt.rn.f32.u32 %f1, 0xffffffff;", 0x4f80_0000),
        ("min.f32 %f1, 0f7fc00000, 0f3f800000;", 0x3f80_0000),
        ("copysign.f32 %f1, 0f80000000, 0f3f800000;", 0xbf80_0000),
    ] {
        assert_eq!(word(&format!("{instruction} mov.b32 %r0, %f1;")), expected, "{instruction}");
    }
    assert_eq!(word("cvt.rzi.s32.f32 %r0, 0fc0200000;"), 0xffff_fffe);
    assert_eq!(word("cvt.rni.u32.f32 %r0, 0f40200000;"), 2);
    assert_eq!(word("cvt.rzi.u32.f32 %r0, 0fbf800000;"), 0);
    assert_eq!(word("setp.ltu.f32 %p1, 0f7fc00000, 0f0; selp.u32 %r0, 1, 0, %p1;".replace("0f0;", "0f00000000;").as_str()), 1);
}

#[test]
fn predicates_guards_and_branches() {
    let both = "mov.u32 %r1, 5; setp.lt.u32 %p1|%p2, %r1, 3; selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 2, 0, %p2; or.b32 %r0, %r2, %r3;";
    assert_eq!(word(both), 2);
    assert_eq!(word("mov.u32 %r0, 1; setp.eq.u32 %p1, %r0, 1; @!%p1 mov.u32 %r0, 7; @%p1 add.u32 %r0, %r0, 1;"), 2);
    let table = "mov.u32 %r1, 1; T: .branchtargets A, B; brx.idx %r1, T; A: mov.u32 %r0, 3; bra C; B: mov.u32 %r0, 4; C:";
    assert_eq!(word(table), 4);
}

#[test]
fn lanes_and_threads_meet() {
    let each = run("mov.u32 %r1, %laneid; shfl.sync.down.b32 %r2|%p1, %r1, 1, 31, -1; cvt.u64.u32 %d0, %r2;", 32).expect("it ends");
    assert_eq!(each[..3], [1, 2, 3]);
    assert_eq!(each[31], 31);
    let each = run("mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 4; vote.sync.ballot.b32 %r2, %p1, -1; cvt.u64.u32 %d0, %r2;", 32);
    assert_eq!(each.expect("it ends"), [15; 32]);
    let sum = "mov.u32 %r1, %laneid; redux.sync.add.u32 %r2, %r1, -1; cvt.u64.u32 %d0, %r2;";
    assert_eq!(run(sum, 32).expect("it ends"), [496; 32]);
    let count = ".shared .b32 s; mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 9; bar.red.popc.u32 %r2, 0, %p1; cvt.u64.u32 %d0, %r2;";
    assert_eq!(run(count, 64).expect("it ends"), [54; 64]);
    let atomic = ".shared .b32 s; atom.shared.add.u32 %r1, [s], 1; bar.sync 0; ld.shared.u32 %r2, [s]; cvt.u64.u32 %d0, %r2;";
    assert_eq!(run(atomic, 64).expect("it ends"), [64; 64]);
}

#[test]
fn what_hardware_refuses_and_what_is_not_simulated_end_the_launch() {
    assert!(matches!(run("ld.global.u32 %r1, [%d1];", 1), Err(Outcome::Fault(..))));
    assert!(matches!(run("trap;", 1), Err(Outcome::Trapped(_))));
    assert!(matches!(run("tanh.approx.f16 %h1, %h2;", 1), Err(Outcome::NotSimulated(..))));
    assert!(matches!(run("mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bar.sync 0, 64;", 32), Err(Outcome::Deadlock)));
}
