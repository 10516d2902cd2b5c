//! Any text is read without a panic, and what is said of it lies in it.

mod invariants;

use cuinstr_ptx::parse;
use proptest::prelude::*;

const SEEDS: &[&str] = &[
    include_str!("data/tex_pred.ptx"),
    include_str!("data/table_scope.ptx"),
    include_str!("data/register_shadows_function.ptx"),
    include_str!("data/leading_zero_alias.ptx"),
    include_str!("data/section_oneline.ptx"),
    ".version 9.0 .target sm_90, debug .file 1 \"a\", 1, 2 .global .align 4 .u64 t[2] = { generic(f), {g} }; .alias a, b; .visible .func \
     (.param .b32 r) f(.param .b32 x) .noreturn { .reg .v4 .b32 %v<3>; .reg .pred %p<2>; .loc 1 2 3, function_name $s+4, inlined_at 1 2 3 \
     p: .callprototype (.param .b32 _) _ (.param .align 8 .b8 _[16]); @!%p1 call (%v0.x), %v1, (%v2, 1+2), p; T: .branchtargets A<2>, B; \
     A0: brx.idx %v1.y, T; { .shared .b32 s[4]; A1: tex.2d.v4 {%v1.x, _}|%p1, [s+4, {%v1.x, {1}}]; } B: mov.u32 %v01.w, (1 ? -2 : ~3) | 4; }\n\
     .section .debug_str { s: .b8 97, 0 }",
];

const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ":",
    ",",
    "|",
    "@",
    "!",
    "\"",
    "//",
    "/*",
    "*/",
    "\n",
    "\r",
    " ",
    ".",
    "..",
    "::",
    "%",
    "$",
    "_",
    "-",
    "+",
    "<",
    ">",
    "=",
    "0",
    "0x",
    "0f3F800000",
    "1.5e3",
    "09",
    "99999999999999999999",
    "é",
    "\u{0}",
    "#",
    "\\",
    "?",
    ".reg .b32 %r<99999999>;",
    "L:",
    "T: .branchtargets ",
    "T: .branchtargets A<70000>;",
    "brx.idx ",
    "bra L;",
    "call ",
    "call (",
    "ret",
    ".loc 1 2 3 ",
    ".entry k() {",
    ".func ",
    ".section .debug_str {",
    ".version 9.0",
    ".extern ",
    ".pragma \"x\";",
    ".v4 ",
    "%r4294967296",
    ".local .b8 x[4] = {1,{2}};",
    ".x",
    ".h0",
];

fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0_usize..12, 0..PIECES.len());
    (0..SEEDS.len(), prop::collection::vec(edit, 0..12)).prop_map(|(seed, edits)| {
        let mut text: Vec<char> = SEEDS[seed].chars().collect();
        for (at, removed, piece) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + removed.saturating_sub(4)).min(text.len());
            text.splice(at..end, PIECES[piece].chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_texts_are_read(text in mutated()) {
        invariants::hold(&text);
    }

    #[test]
    fn random_texts_are_read(text in "[\\x00-\\x7f\u{e9}]{0,200}") {
        invariants::hold(&text);
        invariants::hold(&format!(".version 9.0 .func f() {{ {text}"));
    }
}

#[test]
fn seeds_are_sound() {
    for seed in SEEDS {
        assert_eq!(parse(seed).faults, [], "{seed}");
        invariants::hold(seed);
    }
}
