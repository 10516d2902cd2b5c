//! What the reader sees, held against what ptxas 13.0 sees. Each text here was given to ptxas first.

use cuinstr_ptx::{Callee, Calls, Code, Components, Declared, Function, Graph, Module, Operand, Register, parse};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// A kernel with such a body.
fn kernel(body: &str) -> String {
    format!(
        "{HEAD}.visible .entry k(.param .u64 n)\n{{\n.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p<5>; .reg .b64 %rd<9>;\n{body}\nret;\n}}\n"
    )
}

fn sound(text: &str) -> Module<'_> {
    let module = parse(text);
    assert_eq!(module.faults, [], "{text}");
    module
}

/// Sets of blocks that repeat.
fn loops(function: &Function<'_>) -> Vec<Vec<u32>> {
    let graph = Graph::new(function);
    assert_eq!(graph.lost, Vec::<u32>::new());
    let blocks: Vec<u32> = (0..graph.blocks.len() as u32).collect();
    let mut found = graph.components(&blocks, |_| true, &mut Components::default());
    for set in &mut found {
        set.sort_unstable();
    }
    found
}

fn written(code: &Code<'_>, statement: u32) -> Vec<Register> {
    let mut all = Vec::new();
    code.each_written(statement, |register| all.push(register));
    all
}

/// The attack of that name.
macro_rules! data {
    ($name:literal) => {
        include_str!(concat!("data/", $name, ".ptx"))
    };
}

#[test]
fn loops_are_seen_whatever_stands_on_their_line() {
    for text in [
        data!("oneline"),
        data!("loc_line"),
        data!("cr_only"),
        data!("guard_comment"),
        data!("string_backslash"),
        data!("section_oneline"),
        data!("tex_pred"),
    ] {
        let module = sound(text);
        assert!(module.functions.iter().any(|function| function.is_kernel && !loops(function).is_empty()), "{text}");
    }
}

#[test]
fn a_call_is_seen_behind_a_comment() {
    let text = data!("call_comment");
    let module = sound(text);
    let calls = Calls::new(text, &module);
    let rec = &module.functions[0];
    assert_eq!(calls.callee(rec, &rec.calls[0]), Callee::Known(0));
}

#[test]
fn a_predicate_behind_a_vector_is_written() {
    let text = data!("tex_pred");
    let module = sound(text);
    let code = Code::new(text, &module.functions[0]);
    let tex = (0..module.functions[0].statements.len() as u32).find(|at| code.opcode(*at).starts_with("tex")).unwrap_or_default();
    let (guard, _) = code.guard(tex + 1).unwrap_or_default();
    assert!(written(&code, tex).contains(&guard.unwrap_or_default()), "{:?}", code.operands(tex));
}

#[test]
fn a_table_names_labels_of_its_own_scope() {
    let text = data!("table_scope");
    let module = sound(text);
    let function = &module.functions[0];
    // `$A` in front of the table, not the one beside the jump.
    assert_eq!(loops(function).len(), 1, "{function:?}");
}

#[test]
fn a_register_hides_a_function() {
    let text = data!("register_shadows_function");
    let module = sound(text);
    let calls = Calls::new(text, &module);
    let rec = &module.functions[1];
    assert_eq!(calls.callee(rec, &rec.calls[0]), Callee::Pointer(&[1]));
}

#[test]
fn names_are_resolved_at_any_depth() {
    let text = data!("deep_scopes");
    let module = sound(text);
    let function = &module.functions[0];
    let code = Code::new(text, function);
    let counter = written(&code, 0);
    let writers = (0..function.statements.len() as u32).filter(|at| written(&code, *at) == counter).count();
    assert_eq!(writers, 3, "set, counted, and set back in the innermost scope");
}

#[test]
fn leading_zeros_name_the_same_register() {
    let text = data!("leading_zero_alias");
    let module = sound(text);
    let code = Code::new(text, &module.functions[0]);
    assert_eq!(written(&code, 0), written(&code, 2));
}

#[test]
fn branches_lead_where_ptxas_leads_them() {
    // Body, and the statement that the branch in front of all must lead to.
    for (body, to) in [
        ("bra M; L: trap; M: { bra L; L: exit; }", (2, 3)),
        ("bra M; M: { bra L; L: exit; } L: trap;", (1, 2)),
        ("{ { bra L; } L: exit; } L: trap;", (0, 1)),
        ("bra M; L: trap; M: { { bra L; } L: exit; }", (2, 1)),
        ("{ bra L; } trap; L: exit;", (0, 2)),
    ] {
        let text = kernel(body);
        let module = sound(&text);
        assert_eq!(module.functions[0].target(to.0), cuinstr_ptx::Target::Statement(to.1), "{body}");
    }
}

#[test]
fn a_declaration_is_seen_from_where_it_stands() {
    let text = kernel("{ mov.u32 %r1, 0; .reg .b32 %r1; mov.u32 %r1, 0; } mov.u32 %r01, 0; { .local .b32 %r1; st.local.b32 [%r1], 0; }");
    let module = sound(&text);
    let code = Code::new(&text, &module.functions[0]);
    assert_eq!(written(&code, 0), written(&code, 2));
    assert_ne!(written(&code, 0), written(&code, 1));
    assert_eq!(code.width(written(&code, 0)[0]), 32);
    let [Operand::AtName(name, 0), Operand::Integer(0)] = code.operands(3) else { panic!("{:?}", code.operands(3)) };
    assert_eq!(code.name(*name).declared, Declared::Variable(0));
}

#[test]
fn every_form_of_operand_is_taken_apart() {
    use Operand::{Address, At, AtName, AtNumber, Constant, Group, Integer, Name, Pair, Part, Register, Unknown, Unsigned, Vector};
    let operands = |body: &str| {
        let text = kernel(body);
        let module = sound(&text);
        let code = Code::new(&text, &module.functions[0]);
        let list = |operand: &Operand| match operand {
            Vector(list) | Group(list) | Pair(list) | Address(list) | Unknown(list) => format!("{:?}", code.list(*list)),
            Name(name, offset) | AtName(name, offset) => format!("{} {offset}", code.name(*name).text),
            other => format!("{other:?}"),
        };
        let kinds = code.operands(0).iter().map(|operand| format!("{operand:?}").split('(').next().unwrap_or_default().to_owned());
        let inner = code.operands(0).iter().map(list);
        kinds.zip(inner).map(|(kind, inner)| if inner.starts_with(&kind) { inner } else { format!("{kind}: {inner}") }).collect::<Vec<_>>()
    };
    let shown = |all: &[Operand]| all.iter().map(|operand| format!("{operand:?}")).collect::<Vec<_>>();
    // %r is 0 to 8, %f 9 to 17, %p 18 to 22, %rd 23 to 31.
    assert_eq!(operands("add.s32 %r1, %r2, -5;"), shown(&[Register(1), Register(2), Integer(-5)]));
    assert_eq!(operands("mov .u64 %rd1/**/, 0xffffffffffffffff;"), shown(&[Register(24), Unsigned(u64::MAX)]));
    assert_eq!(operands("mov.f32 %f1, 0f3F800000;"), shown(&[Register(10), Constant]));
    assert_eq!(operands("mov.u32 %r1, (1+2)*3;"), shown(&[Register(1), Constant]));
    assert_eq!(operands("mov.u32 %r1, 1?2:3;"), shown(&[Register(1), Constant]));
    assert_eq!(operands("mov.u32 %r1, %tid.x;"), ["Register(1)", "Name: %tid.x 0"]);
    assert_eq!(operands("ld.param.u64 %rd1, [/*a*/n/*b*/+/*c*/8/*d*/];"), ["Register(24)", "AtName: n 8"]);
    assert_eq!(operands("ld.global.u32 %r1, [%rd1+-4];"), shown(&[Register(1), At(24, -4)]));
    assert_eq!(operands("ld.local.u32 %r1, [16];"), shown(&[Register(1), AtNumber(16)]));
    assert_eq!(operands("ld.global.u32 %r1, [%rd1+4+4];"), ["Register(1)", "Address: [Unknown(List { first: 0, count: 1 })]"]);
    assert_eq!(
        operands("setp.eq.and.u32 %p1 | %p2, %r1, %r2, ! %p3;"),
        ["Pair: [Register(19), Register(20)]", "Register(1)", "Register(2)", "Negated(21)"]
    );
    assert_eq!(operands("mov.b64 {%r1, _}, %rd1;"), ["Vector: [Register(1), Sink]", "Register(24)"]);
    assert_eq!(operands("vadd.s32.s32.s32 %r1, %r2.h0, %r3.h1;"), shown(&[Register(1), Part(2), Part(3)]));
    assert_eq!(operands("elect.sync _|%p1, -1;"), ["Pair: [Sink, Register(19)]", "Integer(-1)"]);
    assert_eq!(operands(".reg .v2 .b32 v<3>; mov.u32 v2.y, v1.x;"), shown(&[Register(32 + 5), Register(32 + 2)]));
    assert_eq!(operands(".reg .v2 .b32 v; st.global.v2.b32 [%rd1], v;"), ["At(24, 0)", "Vector: [Register(32), Register(33)]"]);
    assert_eq!(operands("mov.u64 %rd1, g+4;").last().map(String::as_str), Some("Name: g 4"));
    assert_eq!(operands("call (%r1), f, (%r2, 1);"), ["Group: [Register(1)]", "Name: f 0", "Group: [Register(2), Integer(1)]"]);
}

#[test]
fn what_ptxas_refuses_is_a_fault() {
    for body in [
        "mov.u32 %r1, 0 L: bra L;",
        "mov.u32 %r1, 0 }",
        ";",
        "@%p1 @%p2 ret;",
        "@%p1 { ret; }",
        "@%p1 L: ret;",
        ".loc 1 1;",
        ".loc 1 1 0.5",
        "bra \"x\";",
        "# 1 \"x\"",
        "\u{b}",
        "\u{a0}",
        ".file 1 \"x\"",
        ".section .debug_x { .b8 1 }",
        ".frobnicate",
        "L: L: ret;",
        ".reg .b32 %q<1+2>;",
        "/* ",
        ".pragma \"",
        "T: .branchtargets ;",
        "P: .callprototype f (.param .b32 _);",
    ] {
        let text = kernel(body);
        assert!(!parse(&text).faults.is_empty(), "{body}");
    }
    for text in ["", "int main() {}", ".version 9.0 .target sm_90 ;", ".version 9.0 .target sm_90 .entry k() { ret; } }"] {
        assert!(!parse(text).faults.is_empty(), "{text}");
    }
    assert!(!parse(&format!("{HEAD}.entry k() {{ {} ret; {} }}", "{ ".repeat(5000), "} ".repeat(5000))).faults.is_empty());
}

#[test]
fn functions_are_told_apart_by_their_types() {
    let text = format!(
        "{HEAD}.func f(.param .b64 a) {{ ret; }}\n.func g(.param .b32 a) {{ ret; }}\n.func h(.param .b32 a) {{ ret; }}\n.func i(.param .b32 a) {{ ret; }}\n\
         .global .u64 t[2][1] = {{ {{ f }}, {{ g }} }};\n.alias j, i;\n\
         .entry k(.param .u64 n) {{ .reg .b64 %rd<3>; .reg .b32 %r<3>; st.global.u64 [%rd1], h;\n\
         p: .callprototype _ (.param .b32 underscore_in_name); call %rd1, (%r1), p; q: .calltargets g; call %rd1, (%r1), q; call j, (%r1); call vprintf; }}"
    );
    let module = sound(&text);
    let calls = Calls::new(&text, &module);
    let kernel = &module.functions[4];
    let callees: Vec<Callee<'_, '_>> = kernel.calls.iter().map(|call| calls.callee(kernel, call)).collect();
    assert_eq!(calls.addressed(), [0, 1, 2]);
    assert_eq!(callees, [Callee::Pointer(&[1, 2]), Callee::Pointer(&[1]), Callee::Known(3), Callee::Outside("vprintf")]);
}

#[test]
fn a_size_that_is_not_known_fits_any() {
    let text = format!(
        "{HEAD}.func f(.param .b8 a[]) {{ ret; }}\n.func g(.param .b32 a) {{ ret; }}\n.global .u64 t[2] = {{ f, g }};\n\
         .entry k(.param .u64 n) {{ .reg .b64 %rd<3>; .reg .b32 %r<3>;\n\
         p: .callprototype _ (.param .b32 _); call %rd1, (%r1), p; q: .callprototype _ (.param .b64 _); call %rd1, (%rd2), q;\n\
         r: .callprototype _ (.param .b8 _[]); call %rd1, (%r1), r; }}"
    );
    let module = sound(&text);
    let calls = Calls::new(&text, &module);
    let kernel = &module.functions[2];
    let callees: Vec<Callee<'_, '_>> = kernel.calls.iter().map(|call| calls.callee(kernel, call)).collect();
    assert_eq!(callees, [Callee::Pointer(&[0, 1]), Callee::Pointer(&[0]), Callee::Pointer(&[0, 1])]);
}

#[test]
fn locations_say_where_code_was_inlined() {
    let text = kernel(".loc 1 2 3\nmov.u32 %r1, 0;\n.loc 2 5 6, function_name $L__info_string1+2, inlined_at 1 2 3 mov.u32 %r1, 1;");
    let module = sound(&text);
    let function = &module.functions[0];
    let location = |at: u32| {
        function.location(at).map(|location| {
            (location.point.line, function.inlined(location).map(|inlined| (inlined.function, inlined.offset, inlined.at.line)))
        })
    };
    assert_eq!([location(0), location(1)], [Some((2, None)), Some((5, Some(("$L__info_string1", 2, 2))))]);
}

#[test]
fn a_location_without_a_statement_still_says_where_code_was_inlined() {
    let text = kernel(".loc 2 5 6, function_name $A, inlined_at 1 2 3\n.loc 3 7 8, function_name $B, inlined_at 2 5 6\nmov.u32 %r1, 0;");
    let module = sound(&text);
    let function = &module.functions[0];
    let line = |location: &cuinstr_ptx::Location| (location.point.line, function.inlined(location).map(|inlined| inlined.at.line));
    assert_eq!(function.locations.iter().map(line).collect::<Vec<_>>(), [(5, Some(2)), (7, Some(5))]);
    assert_eq!(function.location(0).map(line), Some((7, Some(5))));
}

#[test]
fn names_of_files_are_those_that_the_compiler_was_given() {
    let module = parse(
        ".version 9.0\n.target sm_90\n.address_size 64\n.file 1 \"/a/gr\\303\\266\\303\\237e/d\\042e.cu\"\n.file 2 \"c\\\\s\\8\"\n.file 3 \"a.cu\"\n",
    );
    assert_eq!(module.faults, []);
    let names: Vec<&str> = module.files.iter().map(|(_, name)| &**name).collect();
    assert_eq!(names, ["/a/größe/d\"e.cu", "c\\s\\8", "a.cu"]);
}
