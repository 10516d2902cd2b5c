//! Shapes of kernels that are bad for a proof which looks at each block more than a few times. A test of the proof takes them, too.

use std::fmt::Write;

/// Writes the block of that number.
pub(crate) type Shape = fn(&mut String, usize);

/// The shapes. Only a chain has no loop.
pub(crate) const SHAPES: [(&str, Shape); 4] = [
    ("a chain", |text, at| {
        let _ = write!(text, "$B{at}:\n\t@%p1 bra $B{};\n", at + 1);
    }),
    ("one large loop", |text, at| {
        let _ = write!(text, "$B{at}:\n\tadd.s32 %r1, %r1, 1;\n\tsetp.ne.s32 %p1, %r1, %r2;\n\t@%p1 bra $B0;\n");
    }),
    ("loops within loops", |text, at| {
        let _ = write!(text, "$B{at}:\n\tsetp.ne.s32 %p1, %r1, {at};\n\t@%p1 bra $B{};\n", at / 2);
    }),
    ("many small loops", |text, at| {
        let _ = write!(text, "$B{at}:\n\tadd.s32 %r1, %r1, 1;\n\tsetp.lt.s32 %p1, %r1, %r2;\n\t@%p1 bra $B{at};\n");
    }),
];
