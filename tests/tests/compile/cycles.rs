//! Functions that call others of their own name: where each call leads to something smaller no poll is compiled, and whatever may reach itself keeps
//! its own.

use crate::{Checks, Tools};
use cuinstr::options::Options;
use cuinstr::site::Kind;
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::unit::Unit;
use std::fmt::Write as _;

/// What is declared, with `FN` for the function, how the kernel calls it, and whether a poll must be left of it.
const CYCLES: &[(&str, &str, bool)] = &[
    // An object's parts.
    (
        "struct In# { int n; D int FN(int m) const { return n * m; } }; struct Mid# { In# in_#; D int FN(int m) const { return in_#.FN(m) + 1; } };\n\
         template <class T> struct Out# { T mid_#; D int FN(int m) const { return mid_#.FN(m) + 2; } };",
        "Out#<Mid#>{{{n}}}.FN(n)",
        false,
    ),
    // A member that only refers to another object, which may be of the same kind: as the text has it, and by another name.
    (
        "struct R# { int n; R# &next_#; D int FN(int m) { return m > 0 ? next_#.FN(m - 1) + next_#.FN(m - 2) : n; } };",
        "R#{n, *(R# *)p}.FN(n)",
        true,
    ),
    (
        "struct R#; using Other# = R# &; struct R# { int n; Other# next_#; D int FN(int m) { return m > 0 ? next_#.FN(m - 1) + next_#.FN(m - 2) : n; } };",
        "R#{n, *(R# *)p}.FN(n)",
        true,
    ),
    (
        "struct R# { int n; static R# *one_#; D int FN(int m) { R# &own_# = *this; return m > 0 ? own_#.FN(m - 1) + own_#.FN(m - 2) : n; } };",
        "R#{n}.FN(n)",
        true,
    ),
    (
        "struct R# { int n; D int FN(int m) { R# own_#{n + m}; return m > 0 ? own_#.FN(m - 1) + own_#.FN(m - 2) : n; } };",
        "R#{n}.FN(n)",
        true,
    ),
    (
        "struct R# { int n; D int FN(int m, R# own_#) { return m > 0 ? own_#.FN(m - 1, *this) + own_#.FN(m - 2, own_#) : n; } };",
        "R#{n}.FN(n, R#{n})",
        true,
    ),
    // A template's instances.
    (
        "template <class R, int N> D R FN(int m) { if constexpr (N == 0) { return m; } else { return FN<R, N - 1>(m + N); } }",
        "FN<int, 9>(n)",
        false,
    ),
    (
        "template <int N> D int FN(int m) { if constexpr (N > 0) { return FN<N - 1>(m) + 1; } else { return m > 0 ? FN<3>(m - 1) + FN<2>(m - 2) : 0; } }",
        "FN<4>(n)",
        true,
    ),
    (
        "constexpr int N# = 1; template <int> D int FN(int m) { return m > 0 ? FN<N# - 1>(m - 1) + FN<N# + 0>(m - 2) : 0; }",
        "FN<0>(n)",
        true,
    ),
    // A type that is deduced.
    (
        "template <class T> D auto FN(T m) { if constexpr (sizeof(T) > 2) { return FN((short)m) + 1; } else if constexpr (sizeof(T) > 1) { return FN((char)m) + 2; } else { return m; } }",
        "FN(n)",
        false,
    ),
    ("template <class T> D auto FN(T m) { if (m < 2) return m; return FN(m - 1) + FN(m - 2); }", "FN(n)", true),
    ("template <class T> D auto FN(T m, int *p) { if (m < 2) return; p[m] += 1; FN(m - 1, p); FN(m - 2, p); }", "(FN(n, p), n)", true),
    (
        "template <class T> D auto FN(T m, int *p) { if constexpr (sizeof(T) > 4) { return; } if (m < 2) { return; } p[m] += 1; FN(m - 1, p); FN(m - 2, p); }",
        "(FN(n, p), n)",
        true,
    ),
    (
        "template <class F> D void both#(int m, F f) { f(m - 1); f(m - 2); }\n\
         template <class T> D auto FN(T m, int *p) { if (m > 1) both#(m, [=](auto less) { FN(less, p); }); p[0] += m; }",
        "(FN(n, p), n)",
        true,
    ),
    // Overloads: a number is no vector; but what a file declares itself may be made of one, and other statements may mean other things by a name.
    (
        "D int FN(int a, int b) { return a + b; } D int2 FN(int2 v, int2 w) { return make_int2(FN(v.x, w.x), FN(v.y, w.y)); }\n\
         D int3 FN(const int3 &v, int b) { return make_int3(FN(v.x, b), FN(v.y, b), FN(v.z, b)); }",
        "FN(FN(make_int3(n, n, n), n).x, FN(make_int2(n, n), make_int2(n, 1)).x)",
        false,
    ),
    (
        "struct float1# { int x; D float1#(int n) : x(n) {} }; D int FN(float1# v, int b) { return b > 0 ? FN(v.x, b - 1) + FN(v.x, b - 2) : v.x; }",
        "FN(n, n)",
        true,
    ),
    (
        "namespace own# { struct short3 { int x; D short3(int n) : x(n) {} }; D int FN(short3 v, int b) { return b > 0 ? FN(v.x, b - 1) + FN(v.x, b - 2) : v.x; } }",
        "own#::FN(n, n)",
        true,
    ),
    (
        "D int FN(int a, char2 b) { return a + b.x; } D int FN(char2 v, char2 b) { int n = v.x; { char2 v = b; if (n) return FN(v, b) + FN(v, v); } return n; }",
        "FN(make_char2(n, n), make_char2(n, n))",
        true,
    ),
    // An object of a nested class; of the class itself by another name; and of a nested one whose functions may be the class's.
    (
        "template <class T, int N = 3> class Outer# { template <int M> struct Inner# { int n; D Inner#(int n) : n(n) {} D int FN(int m) { return n * m; } };\n\
         typedef Inner#<N> Made#; public: D int FN(int m) { return Made#(m).FN(m + 1); } };",
        "Outer#<int>().FN(n)",
        false,
    ),
    (
        "struct Self# { int n; typedef Self# Made#; D Self#(int n) : n(n) {} D int FN(int m) { return m > 0 ? Made#(n).FN(m - 1) + Made#(m).FN(m - 2) : n; } };",
        "Self#(n).FN(n)",
        true,
    ),
    (
        "struct Base#; struct Base# { int n; D Base#(int n) : n(n) {} D int FN(int m) { struct Inner# : Base# { D Inner#(int n) : Base#(n) {} }; typedef Inner# Made#;\n\
         return m > 0 ? Made#(n).FN(m - 1) + Made#(m).FN(m - 2) : n; } };",
        "Base#(n).FN(n)",
        true,
    ),
];

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    checks.add("cycles: functions whose calls lead to something smaller hold no poll, and what may reach itself does", each);
}

fn each(tools: &Tools) -> Result<(), String> {
    let mut text = "#define D __device__\n".to_owned();
    for (index, (declared, call, _)) in CYCLES.iter().enumerate() {
        let named = |text: &str| text.replace("FN", &format!("cycle{index}")).replace('#', &index.to_string());
        let _ = writeln!(text, "{}\nextern \"C\" __global__ void k{index}(int *p, int n) {{ p[0] = {}; }}", named(declared), named(call));
    }
    let unit = Unit { needs: vec!["-std=c++17".into(), "-arch=sm_80".into()], ..Unit::new("cycles.cu", text) };
    let rewritten = unit.rewrite(&Options::default())?;
    let ptx = rewritten.nvcc(&tools.nvcc, &["-ptx"])?.text();
    let sites = || rewritten.site_maps.iter().flat_map(|map| &map.sites).filter(|site| site.kind == Kind::Recursion);
    // A poll that is left hands its site over, as a number with a sign.
    let left = sites().filter(|site| {
        let id = u64::from_str_radix(site.id.trim_start_matches("0x"), 16).unwrap_or_default();
        ptx.contains(&id.cast_signed().to_string())
    });
    let left: Vec<&str> = left.map(|site| site.function.as_str()).collect();
    let mut wrong = Vec::new();
    for (index, (declared, _, polled)) in CYCLES.iter().enumerate() {
        let name = format!("cycle{index}");
        if *polled && !sites().any(|site| site.function == name) {
            return Err(format!("no function of this calls its own name: {declared}"));
        }
        if left.contains(&name.as_str()) != *polled {
            wrong.push(*declared);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong:#?}; polls are left in {left:?}")) }
}
