//! What is true of any text that is read: shared with the fuzz target.

use cuinstr_ptx::{Callee, Calls, Code, Components, Graph, Operand, parse, tokens};

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

/// Reads a text, and fails if what is said of it does not lie in it or does not agree.
pub(crate) fn hold(text: &str) {
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
