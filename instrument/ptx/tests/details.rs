//! What the reader's other tests ask less of: names in scopes, expressions, calls, and texts that lose an end.

use cuinstr_ptx::{Access, CallTarget, Code, Operand, Register, parse};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

fn kernel(body: &str) -> String {
    format!("{HEAD}.visible .entry k()\n{{\n.reg .b32 %r<9>; .reg .pred %p<5>; .reg .b64 %rd<9>;\n{body}\nret;\n}}\n")
}

/// What is found of a body's first function.
fn of<T>(body: &str, found: impl FnOnce(&Code<'_>) -> T) -> T {
    let text = kernel(body);
    let module = parse(&text);
    assert_eq!(module.faults, [], "{body}");
    found(&Code::new(&text, &module.functions[0]))
}

fn written(code: &Code<'_>, statement: u32) -> Vec<Register> {
    let mut all = Vec::new();
    code.each_written(statement, |register| all.push(register));
    all
}

#[test]
fn a_register_is_that_of_the_innermost_scope() {
    let body = ".reg .b32 a; mov.b32 a, 0; { .reg .b32 a; mov.b32 a, 1; { mov.b32 a, 2; } } mov.b32 a, 3; { .reg .b32 a; mov.b32 a, 4; }";
    let all = of(body, |code| (0..5).flat_map(|statement| written(code, statement)).collect::<Vec<_>>());
    let depths = of(body, |code| code.function.scopes.iter().map(|scope| scope.depth).collect::<Vec<_>>());
    assert_eq!(depths, [0, 1, 2, 1]);
    let [outer, inner, same, again, other] = all[..] else { panic!("{all:?}") };
    let body = "{ .reg .b32 a; mov.b32 a, 0; } { .reg .b32 a; { mov.b32 a, 1; } } { { .reg .b32 b; mov.b32 b, 2; } } mov.b32 %r1, 3;";
    let siblings = of(body, |code| (0..4).flat_map(|statement| written(code, statement)).collect::<Vec<_>>());
    assert_eq!(siblings, [23, 24, 25, 1]);
    assert!(outer == again && inner == same && outer != inner && other != outer && other != inner, "{all:?}");
}

#[test]
fn registers_whose_names_end_alike_are_different_ones() {
    let names = ["%q", "%aq", "%bq", "%counter", "%acounter", "%bcounter", "%a_long_counter", "%b_long_counter"];
    let declared = names.map(|name| format!(".reg .b32 {name}<2>; ")).concat();
    let used = names.map(|name| format!("mov.b32 {name}1, 0; ")).concat();
    let all = of(&format!("{declared}{used}"), |code| (0..8).flat_map(|statement| written(code, statement)).collect::<Vec<_>>());
    // Behind the 23 of every body each has two.
    assert_eq!(all, (0..8).map(|nth| 23 + nth * 2 + 1).collect::<Vec<_>>());
}

#[test]
fn operands_are_told_with_those_inside_them() {
    let (all, number) = of("mad.lo.s32 %r1, %r2, -5, %r4; st.global.v2.b32 [%rd1], {%r2, %r3};", |code| {
        let count = |statement: u32| code.all_operands(statement).len();
        ((count(0), count(1)), code.operands(0)[2].number())
    });
    assert_eq!((all, number), ((4, 4), Some(-5)));
    assert_eq!(Operand::Unsigned(u64::MAX).number(), Some(u64::MAX.into()));
    assert_eq!(Operand::Constant.number(), None);
}

#[test]
fn no_nesting_is_too_deep() {
    let fronts =
        [("mov.b64 ", "{", "}"), ("call ", "(", ")"), ("call f, ", "(", ")"), ("ld.u32 %r1, ", "[", "]"), ("mov.u32 %r1, ", "(", ")")];
    for (front, open, close) in fronts {
        let body = format!("{front}{}%r1{}, %rd1;", open.repeat(100_000), close.repeat(100_000));
        let text = kernel(&body);
        let module = parse(&text);
        let code = Code::new(&text, &module.functions[0]);
        assert!(!code.operands(0).is_empty(), "{front}{open}");
    }
}

#[test]
fn two_bars_are_an_operator() {
    assert_eq!(of("mov.u32 %r1, 1||0;", |code| code.operands(0).to_vec()), [Operand::Register(1), Operand::Constant]);
    assert!(matches!(of("setp.eq.b32 %p1|%p2, %r1, 0;", |code| code.operands(0)[0]), Operand::Pair(_)));
}

#[test]
fn a_vector_has_the_elements_that_it_was_declared_with() {
    let operand = |body: &str| of(body, |code| code.operands(0)[1]);
    assert_eq!(operand(".reg .v2 .b32 v; mov.u32 %r1, v.y;"), Operand::Register(24));
    assert!(matches!(operand(".reg .v2 .b32 v; mov.u32 %r1, v.z;"), Operand::Unknown(_)));
    assert_eq!(operand("mov.u32 %r1, %r2.x;"), Operand::Part(2));
    let all = ["x", "y", "z", "w", "r", "g", "b", "a"].map(|element| operand(&format!(".reg .v4 .b32 v; mov.u32 %r1, v.{element};")));
    assert_eq!(all, [0, 1, 2, 3, 0, 1, 2, 3].map(|lane| Operand::Register(23 + lane)));
    assert!(matches!(operand(".reg .v2 .b32 %v<3>; st.global.v2.b32 [%rd1], %v1;"), Operand::Vector(_)));
    let summed = of("add.s32 %r1, (1+2)*3, %r2;", |code| code.operands(0).to_vec());
    assert_eq!(summed, [Operand::Register(1), Operand::Constant, Operand::Register(2)]);
}

#[test]
fn a_block_ends_at_a_return() {
    let text = kernel("@%p1 ret;\nmov.u32 %r1, 0;\nret;\nmov.u32 %r2, 0;\nexit;\nmov.u32 %r3, 0;");
    let module = parse(&text);
    let graph = cuinstr_ptx::Graph::new(&module.functions[0]);
    let to: Vec<Vec<u32>> = (0..4).map(|block| graph.edges(block).map(|edge| edge.to).collect()).collect();
    assert_eq!(to, [vec![1], vec![], vec![], vec![]]);
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|statement| graph.block_of(statement)), [0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn a_block_behind_a_guarded_jump_is_reached() {
    let text = kernel("@%p1 bra B;\nret;\nB: @!%p2 bra C;\nret;\nC:");
    let module = parse(&text);
    let function = &module.functions[0];
    let order = cuinstr_ptx::Graph::new(function).reverse_postorder();
    assert!(order[..5].iter().all(|place| *place != u32::MAX) && order[0] < order[2] && order[2] < order[4], "{order:?}");
    let code = Code::new(&text, function);
    assert_eq!([0, 1, 2].map(|statement| code.guard(statement)), [Some((Some(10), true)), None, Some((Some(11), false))]);
}

#[test]
fn registers_take_no_more_room_than_the_text() {
    let text = format!("{HEAD}.func f() {{ .reg .b32 %a<60>; .reg .b32 %b<60>; mov.b32 %b1, 0; mov.b32 %b2, %a1; ret; }}");
    let module = parse(&text);
    let code = Code::new(&text, &module.functions[0]);
    assert_eq!((module.faults.len(), code.register_count()), (0, 62));
}

#[test]
fn functions_of_the_system_are_known() {
    let names = ["vprintf", "__assertfail", "malloc", "__cuda_syscall_32f3056bbb", "f", ""];
    assert_eq!(names.map(cuinstr_ptx::is_system), [true, true, true, true, false, false]);
}

#[test]
fn what_stands_behind_a_fault_is_read() {
    let module = parse(".version 9.0\n.target sm_90\n.global .b32 5 6 7;\n.global .b32 b;\n.func f() .pragma \"x\"; .noreturn { ret; }\n");
    assert_eq!((module.faults.len(), module.variables.len(), module.functions.len()), (1, 1, 1));
    let module = parse(
        ".version 9.0\n.target sm_90\n.entry k() .maxntid 128, 1, 1 { ret; }\n.pragma \"x\";\n.func f() .attribute(.unified(1,2)) { ret; }\n.visible .entry l() { ret; }\n",
    );
    let declared = of(".extern .func g(.param .b32 a); .func h(.param .b32 a);", |code| code.function.statements.len());
    assert_eq!(declared, 2, "no declaration is a statement: there are `ret` and the implied one");
    let kernels: Vec<bool> = module.functions.iter().map(|function| function.is_kernel).collect();
    assert_eq!((module.faults.len(), &kernels[..]), (0, &[true, false, true][..]));
    let text = kernel(".reg .b32 5x, y; mov.b32 %r1, 0;");
    let module = parse(&text);
    assert_eq!((module.faults.len(), module.functions[0].statements.len()), (1, 3));
}

#[test]
fn a_location_is_told_where_it_changes() {
    let text = kernel(".loc 1 2 3\n.loc 1 2 3\nmov.b32 %r1, 0;\n.loc 1 2 3\nmov.b32 %r2, 0;\n.loc 1 2 4\nmov.b32 %r3, 0;");
    let module = parse(&text);
    let locations = module.functions[0].locations.iter().map(|location| (location.statement, location.point.column));
    assert_eq!(locations.collect::<Vec<_>>(), [(0, 3), (2, 4)]);
}

#[test]
fn a_label_may_stand_in_front_of_the_closing_brace() {
    for body in ["@%p bra X; mov.b32 r, 0; X:", "bra X; X:", "@%p bra X; X:"] {
        let text = format!("{HEAD}.visible .entry k() {{ .reg .b32 r; .reg .pred %p; {body} }}");
        let module = parse(&text);
        let graph = cuinstr_ptx::Graph::new(&module.functions[0]);
        let last = graph.blocks.len() as u32 - 1;
        assert_eq!((module.faults.len(), graph.lost.len()), (0, 0), "{body}");
        assert!(graph.edges(0).any(|edge| edge.to == last) && graph.edges(last).next().is_none(), "{body}: {graph:?}");
    }
}

#[test]
fn colons_of_a_modifier_end_no_statement() {
    for body in ["ld.shared::cta.u32 %r1, [%r2];", "ld .shared::cta .u32 %r1, [%r2];", "mov.u32 %r1, %r2::x;"] {
        assert_eq!(of(body, |code| code.function.statements.len()), 3, "{body}");
    }
}

#[test]
fn an_opcode_may_have_blanks_in_it() {
    let body = "add.sat.s32 %r1, %r1, 1; add.sat .s32 %r1, %r1, 1; add /**/.sat//\n.s32\n%r1, %r1, 1; add .sat.s32 %r1, %r1, 1;";
    let (opcodes, accesses) = of(body, |code| {
        ([0, 1, 2, 3].map(|statement| code.opcode(statement).to_owned()), [0, 1, 2, 3].map(|statement| written(code, statement)))
    });
    assert_eq!(opcodes, ["add.sat.s32"; 4]);
    assert!(accesses.iter().all(|written| written == &[1]), "{accesses:?}");
    assert_eq!(cuinstr_ptx::access_of("add.s32"), Access::First);
}

#[test]
fn a_call_leads_to_the_name_behind_its_results() {
    for (body, wanted) in [
        ("call (%r1), f, (%r2);", CallTarget::Name("f")),
        ("call f, (%r2);", CallTarget::Name("f")),
        ("call f;", CallTarget::Name("f")),
        ("call.uni (%r1), %rd1, (%r2), P;", CallTarget::Pointer),
        ("call (%r1), 5;", CallTarget::Lost),
    ] {
        let text = kernel(body);
        let module = parse(&text);
        let function = &module.functions[0];
        assert_eq!(function.calls.iter().map(|call| call.target).collect::<Vec<_>>(), [wanted], "{body}");
        assert_eq!((function.call(0), function.call(1)), (function.calls.first(), None), "{body}");
    }
    let text = format!("{HEAD}.func f(.param .b32 a, .param .v2 .b32 b, .param .b8 c[12], .param .u64 .ptr .global .align 8 d) {{ ret; }}");
    let parameters = &parse(&text).functions[0].parameters;
    let sizes = parameters.iter().map(|parameter| (parameter.elements, parameter.bits()));
    assert_eq!(sizes.collect::<Vec<_>>(), [(None, 32), (Some(2), 64), (Some(12), 96), (None, 64)]);
}

#[test]
fn a_number_may_be_the_width_of_a_warp() {
    let text = format!("{HEAD}.func f(.param .b8 a[WARP_SZ], .param .b8 b[]) {{ .reg .pred p<WARP_SZ>; ret; }}");
    let module = parse(&text);
    let function = &module.functions[0];
    assert_eq!(module.faults, []);
    assert_eq!(function.parameters.iter().map(cuinstr_ptx::Parameter::bits).collect::<Vec<_>>(), [256, 0]);
    assert_eq!(function.registers[0].count, Some(32));
}

#[test]
fn what_hides_text_or_names_from_ptxas_is_a_fault() {
    let whole = |text: &str| parse(&format!("{HEAD}{text}")).faults.iter().map(|fault| fault.why).collect::<Vec<_>>();
    assert_eq!(whole(".func f() { ret; } // \0\n.func g() { ret; }"), ["a zero byte amid the text"]);
    assert_eq!(whole(".func f() { ret; } // \0\0"), <[&str; 0]>::default());
    assert_eq!(whole(".func f(); .func f() { ret; } .func f() { exit; }"), ["a second function of this name"]);
    assert_eq!(whole(".func __nv_ptx_builtin_ocg_f() { ret; }"), ["a function named like one of ptxas's own"]);
    for declared in [".reg .b64 %a, %clock64;", ".reg .b32 %clock<65>;", ".reg .v4 .b32 %tid;", ".local .b32 %pm1;"] {
        assert_eq!(whole(&format!(".func f() {{ {declared} ret; }}")), ["a declared name spells a special register"], "{declared}");
    }
    assert_eq!(whole(".func f(.reg .b32 %laneid) { ret; }"), ["a declared name spells a special register"]);
}

#[test]
fn an_end_that_is_missing_is_a_fault() {
    for text in [
        ".global .b32 a[2; .global .b32 b];",
        ".global .attribute(.managed; .b32 g);",
        ".global .b32 a = { 1; .global .b32 b = 2 };",
        ".func g() { ret; } .alias f g;",
    ] {
        assert_ne!(parse(&format!("{HEAD}{text}\n")).faults, [], "{text}");
    }
    let text = format!("{HEAD}.global .b32 a[2] = {{ 3, (4) }}, b = 1;\n");
    let module = parse(&text);
    assert_eq!((module.variables.len(), module.faults.len()), (2, 0));
    // A branch by a table names that alone.
    for body in ["brx.idx %r1, T x;", "brx %r1, T;", "brx.idx %r1 T;"] {
        let text = kernel(&format!("T: .branchtargets A; A: {body}"));
        let module = parse(&text);
        let lost = cuinstr_ptx::Graph::new(&module.functions[0]).lost.len();
        assert!(!module.faults.is_empty() || lost == 1, "{body}");
    }
}

#[test]
fn no_more_than_a_hundred_faults_are_told() {
    let faults = |count: usize| parse(&kernel(&"; ".repeat(count))).faults.len();
    assert_eq!([faults(1), faults(100), faults(101), faults(500)], [1, 100, 100, 100]);
}
