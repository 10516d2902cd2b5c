//! Any text is read without a panic, and what is said of it lies in it.

use cuinstr_ptx::{Callee, Calls, Code, Components, Graph, Operand, parse, tokens};
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

fn lies_in(code: &Code<'_>, operand: Operand) {
    match operand {
        Operand::Vector(list) | Operand::Group(list) | Operand::Pair(list) | Operand::Address(list) | Operand::Unknown(list) => {
            for inner in code.list(list) {
                lies_in(code, *inner);
            }
        }
        Operand::Name(name, _) | Operand::AtName(name, _) => assert!(!code.name(name).text.is_empty()),
        _ => {}
    }
}

fn is_read(text: &str) {
    let all: Vec<_> = tokens(text).collect();
    assert_eq!(all.iter().map(|token| token.span.of(text)).collect::<String>(), text);
    assert!(all.iter().all(|token| token.span.end > token.span.start));
    let module = parse(text);
    assert!(module.faults.iter().all(|fault| text.is_char_boundary(fault.at as usize)));
    let calls = Calls::new(text, &module);
    for function in &module.functions {
        assert_eq!(function.at.of(text), function.name);
        assert!(function.body.of(text).starts_with('{'));
        assert!(function.statements.is_sorted_by_key(|statement| statement.start));
        let code = Code::new(text, function);
        for (number, statement) in (0..).zip(&function.statements) {
            assert!(statement.start <= statement.opcode && statement.opcode <= statement.end && statement.end <= function.body.end);
            assert!(text.get(statement.start as usize..statement.end as usize).is_some());
            assert!(code.opcode(number).starts_with(statement.opcode(text)));
            for operand in code.operands(number) {
                lies_in(&code, *operand);
            }
            let count = code.register_count();
            code.each_written(number, |register| assert!(register < count));
            code.each_read(number, |register| assert!(register < count));
            assert!(function.location(number).is_none_or(|location| location.statement <= number));
        }
        for call in &function.calls {
            assert!((call.statement as usize) < function.statements.len());
            if let Callee::Known(index) = calls.callee(function, call) {
                assert!((index as usize) < module.functions.len());
            }
        }
        let graph = Graph::new(function);
        let count = graph.blocks.len() as u32;
        let place = graph.reverse_postorder();
        let mut reached = vec![false; count as usize];
        reached[0] = true;
        for block in 0..count {
            for (nth, edge) in (0..).zip(graph.edges(block)) {
                assert_eq!(graph.edge(block, nth), Some(edge));
                assert!(graph.sources(edge.to).any(|source| source == block));
                if place[block as usize] != u32::MAX {
                    reached[edge.to as usize] = true;
                }
            }
            assert_eq!(graph.edge(block, graph.edges(block).count() as u32), None);
        }
        assert!(place.iter().zip(reached).all(|(place, reached)| (*place != u32::MAX) == reached), "{place:?}");
        let blocks: Vec<u32> = (0..count).collect();
        let sets = graph.components(&blocks, |_| true, &mut Components::default());
        // The same without tables as nodes of their own.
        let mut plain = Components::default().find(blocks.len(), &blocks, |block, nth| graph.edge(block, nth).map(|edge| Some(edge.to)));
        let mut sets: Vec<Vec<u32>> = sets;
        for set in sets.iter_mut().chain(&mut plain) {
            set.sort_unstable();
        }
        sets.sort();
        plain.sort();
        assert_eq!(sets, plain);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_texts_are_read(text in mutated()) {
        is_read(&text);
    }

    #[test]
    fn random_texts_are_read(text in "[\\x00-\\x7f\u{e9}]{0,200}") {
        is_read(&text);
        is_read(&format!(".version 9.0 .func f() {{ {text}"));
    }
}

#[test]
fn seeds_are_sound() {
    for seed in SEEDS {
        assert_eq!(parse(seed).faults, [], "{seed}");
        is_read(seed);
    }
}
