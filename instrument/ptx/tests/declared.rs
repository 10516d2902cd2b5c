//! What is declared, and where declarations and operands end.

use cuinstr_ptx::{Code, Components, Graph, parse};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

fn kernel(body: &str) -> String {
    format!("{HEAD}.visible .entry k()\n{{\n.reg .b32 %r<9>; .reg .pred %p<5>; .reg .b64 %rd<9>;\n{body}\nret;\n}}\n")
}

#[test]
fn variables_have_names_and_sizes() {
    let text = format!(
        "{HEAD}.global .b32 a = 1, b[2] = {{ 3, 4 }};\n.global .v2 .f32 c;\n.global .v4 .f32 d;\n.global .v8 .f32 e;\n.global .texref f;\n\
         .global .attribute(.unified(1,2)) .b32 g;\n.func .attribute(.unified(1,2)) h() {{ ret; }}\n"
    );
    let module = parse(&text);
    assert_eq!(module.faults, []);
    let found: Vec<_> = module.variables.iter().map(|variable| (variable.name, variable.bytes)).collect();
    let wanted = [("a", Some(4)), ("b", Some(8)), ("c", Some(8)), ("d", Some(16)), ("e", Some(32)), ("f", None), ("g", Some(4))];
    assert_eq!(found, wanted);
    assert_eq!(module.functions.iter().map(|function| (function.name, function.results.len())).collect::<Vec<_>>(), [("h", 0)]);
}

#[test]
fn operands_end_where_their_brackets_do() {
    for body in ["mov.u32 %r1, 1?2:3 L: bra L;", "mov.b64 {%r1, %r2}, %rd1 };", "{ mov.b64 {%r1, %r2}, %rd1 } ;"] {
        assert!(!parse(&kernel(body)).faults.is_empty(), "{body}");
    }
    for body in ["mov.u32 %r1, 1?2:3;\nL: bra L;", "{ mov.b64 {%r1, %r2}, %rd1; }", ".extern .func g(.param .b32 a);"] {
        assert_eq!(parse(&kernel(body)).faults, [], "{body}");
    }
}

#[test]
fn registers_of_a_function_follow_its_parameters() {
    let text = format!("{HEAD}.func (.reg .b32 r) f(.reg .b64 a) {{ .reg .b16 %h<2>; mov.b16 %h1, 0; mov.b32 r, 0; ret; }}");
    let module = parse(&text);
    assert_eq!(module.faults, []);
    let code = Code::new(&text, &module.functions[0]);
    let mut widths = Vec::new();
    for statement in 0..2 {
        code.each_written(statement, |register| widths.push((code.width(register), code.declaration(register).is_some())));
    }
    assert_eq!(widths, [(16, true), (0, false)]);
}

#[test]
fn a_loop_through_any_table_is_found() {
    let text =
        kernel("T: .branchtargets A;\nU: .branchtargets B;\nA: brx.idx %r1, U;\nB: @%p1 bra C;\nbrx.idx %r1, U;\nC: @%p1 brx.idx %r1, T;");
    let module = parse(&text);
    assert_eq!(module.faults, []);
    let graph = Graph::new(&module.functions[0]);
    let blocks: Vec<u32> = (0..graph.blocks.len() as u32).collect();
    let sorted = |mut set: Vec<u32>| {
        set.sort_unstable();
        set
    };
    let inner: Vec<u32> = vec![1, 2];
    let all = graph.components(&blocks, |_| true, &mut Components::default());
    assert_eq!(all.into_iter().map(sorted).collect::<Vec<_>>(), [vec![0, 1, 2, 3]]);
    let found = graph.components(&inner, |block| inner.contains(&block), &mut Components::default());
    assert_eq!(found.into_iter().map(sorted).collect::<Vec<_>>(), [inner]);
}
