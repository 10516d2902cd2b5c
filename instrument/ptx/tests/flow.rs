//! Details of what the reader says: the ways out of a block, what an instruction reads and writes, where a token ends.

use cuinstr_ptx::{Access, Code, Edge, Graph, Kind, access_of, parse, tokens};

/// A kernel with such a body.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 n)\n\
         {{\n.reg .b32 %r<9>; .reg .pred %p<5>; .reg .b64 %rd<9>;\n{body}\nret;\n}}\n"
    )
}

#[test]
fn a_block_goes_on_where_its_end_lets_it() {
    let text = kernel("mov.u32 %r1, 0;\nA: add.s32 %r1, %r1, 1;\nB: @%p1 bra A;\n@!%p2 bra B;\n@%p3 exit;\nbra A;\ntrap;\n@%p1 trap;");
    let module = parse(&text);
    assert_eq!(module.faults, []);
    let graph = Graph::new(&module.functions[0]);
    let to = |to: u32, when: Option<bool>| Edge { to, when };
    let wanted: [&[Edge]; 9] = [
        &[to(1, None)],
        &[to(2, None)],
        &[to(1, Some(true)), to(3, Some(false))],
        &[to(2, Some(true)), to(4, Some(false))],
        &[to(5, Some(false))],
        &[to(1, None)],
        &[],
        &[to(8, Some(false))],
        &[],
    ];
    for (number, wanted) in (0..).zip(wanted) {
        assert_eq!(graph.edges(number).collect::<Vec<_>>(), wanted, "block {number}");
        for nth in 0..3 {
            assert_eq!(graph.edge(number, nth), wanted.get(nth as usize).copied(), "way {nth} of block {number}");
        }
    }
    let mut sources: Vec<u32> = graph.sources(1).collect();
    sources.sort_unstable();
    assert_eq!((sources, graph.lost.len()), (vec![0, 2, 5], 0));
    // `trap` is behind a jump, so control comes to neither block behind it.
    let order = graph.reverse_postorder();
    assert!(order[..6].windows(2).all(|pair| pair[0] < pair[1]) && order[6..].iter().all(|place| *place == u32::MAX), "{order:?}");
}

#[test]
fn a_table_lists_each_block_once_and_who_jumps_by_it() {
    let text = kernel("T: .branchtargets A, B, A;\nbra C;\nA: brx.idx %r1, T;\nB: brx.idx %r1, T;\nC: @%p1 bra A;");
    let module = parse(&text);
    assert_eq!(module.faults, []);
    let graph = Graph::new(&module.functions[0]);
    assert_eq!(graph.table_count(), 1);
    assert_eq!(graph.listed(0), (&[1, 2][..], &[1, 2][..]));
    assert_eq!((graph.table_of(0), graph.table_of(1), graph.table_of(3)), (None, Some(0), None));
    assert_eq!(graph.edges(2).map(|edge| edge.to).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_statement_is_found_by_its_bytes() {
    let text = kernel("mov.u32 %r1, 0;\nmov.u32 %r2, 1;");
    let module = parse(&text);
    let function = &module.functions[0];
    for (number, statement) in (0..).zip(&function.statements[..2]) {
        let span = statement.span();
        assert!(span.of(&text).starts_with("mov.u32 %r"), "{}", span.of(&text));
        assert_eq!(statement.opcode(&text), "mov");
        assert_eq!([span.start, span.end - 1].map(|offset| function.statement_at(offset)), [number; 2]);
    }
}

#[test]
fn what_is_written_is_read_only_by_instructions_that_do_both() {
    // Body, the registers that its first statement reads, and those that it writes. %r is 0 to 8, %p 9 to 13, %rd 14 to 22.
    for (body, read, written) in [
        ("add.s32 %r1, %r2, %r3;", &[2, 3][..], &[1][..]),
        ("@%p1 mov.u32 %r1, %r2;", &[10, 2], &[1]),
        ("st.global.u32 [%rd1], %r2;", &[15, 2], &[]),
        ("wgmma.mma_async.sync.aligned {%r1, %r2}, %rd1, %rd2, 1;", &[1, 2, 15, 16], &[1, 2]),
        ("wmma.store.d.sync.aligned [%rd1], {%r1, %r2};", &[15, 1, 2], &[]),
        ("barrier.red.popc.u32 %r1, 0, %p1;", &[10], &[1]),
        ("call (%r1), f, (%r2);", &[2], &[1]),
        ("mov.u32 %r1, %r2 - %r5 + 1;", &[2, 5], &[1]),
        ("mov.b32 %r1.h0, %r2;", &[1, 2], &[1]),
    ] {
        let text = kernel(body);
        let module = parse(&text);
        let code = Code::new(&text, &module.functions[0]);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        code.each_read(0, |register| reads.push(register));
        code.each_written(0, |register| writes.push(register));
        assert_eq!((&reads[..], &writes[..]), (read, written), "{body}");
    }
    let named = ["wmma.load.a", "wmma.store.d", "wgmma.mma_async", "wgmma.fence", "bar.red", "bar.sync", "frobnicate"];
    let wanted = [Access::First, Access::None, Access::FirstRead, Access::None, Access::First, Access::None, Access::Any];
    assert_eq!(named.map(access_of), wanted);
}

#[test]
fn a_token_ends_where_ptxas_ends_it() {
    for (text, first) in [
        ("0b101U+1", "0b101U"),
        ("0B102", "0B10"),
        ("0b1101,1", "0b1101"),
        ("0xfgU", "0xf"),
        ("0x", "0"),
        ("0d3FF0000000000000F", "0d3FF0000000000000"),
        ("0f3F8000001", "0f3F800000"),
        ("1.5e-3x", "1.5e-3"),
        ("1e+5x", "1e+5"),
        ("1e5x", "1e5"),
        ("1.5e", "1.5"),
        ("0789U", "07"),
        ("12U3", "12U"),
        (".shared::cta.b32", ".shared::cta"),
        (".a::b::c:d", ".a::b::c"),
        ("%r12,", "%r12"),
        ("\"a\\\"b", "\"a\\\""),
        ("/*a*/b", "/*a*/"),
        ("//a\rb\nc", "//a\rb"),
    ] {
        let token = tokens(text).next().map(|token| token.span.of(text));
        assert_eq!(token, Some(first), "{text}");
    }
    let kinds: Vec<Kind> = tokens("% _ . %a").map(|token| token.kind).filter(|kind| *kind != Kind::Blank).collect();
    assert_eq!(kinds, [Kind::Mark(b'%'), Kind::Word, Kind::Mark(b'.'), Kind::Word]);
}
