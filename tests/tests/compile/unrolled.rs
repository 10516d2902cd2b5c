//! Loops whose trips the front end knows: the short ones hold no poll, whatever the compiler does with them. Those that
//! it unrolls hold a few. What only looks like one keeps its own.

use crate::{Checks, Tools};
use cuinstr::options::Options;
use cuinstr::site::Kind;
use cuinstr::verify::verify_ptx;
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::unit::Unit;
use std::fmt::Write as _;

/// The loop in a kernel that keeps it a loop, and whether a poll must be left of it.
const LOOPS: &[(&str, bool)] = &[
    ("for (int i = 0; i < 8; ++i) p[i] += n;", false),
    ("for (int i = 0; i < Eight; ++i) p[i] += n;", false),
    ("for (unsigned i = 2; i <= Eight * 2; i += 3) p[i] += n;", false),
    ("for (int i = -Eight; i < Eight; ++i) p[i] += n;", false),
    ("for (long i = 0; i < Eight; ++i) { for (int j = 0; j < Eight; ++j) p[i * j] += n; }", false),
    ("constexpr int own = Eight / 2; for (int i = 0; i < own; ++i) p[i] += part<own>(p, n);", false),
    // Many trips.
    ("for (int i = 0; i < Eight * 50000; ++i) p[i] += n;", true),
    ("for (int i = 0; i < Eight * 100; ++i) p[i] += n;", true),
    // Fewer than none, as types without a sign have it.
    ("for (unsigned i = 0; i < Minus; ++i) p[i] += n;", true),
    ("for (size_t i = 0; i <= Minus; ++i) p[i] += n;", true),
    ("for (unsigned i = Minus; i >= 0; ++i) p[i] += n;", true),
    // A counter that never gets there.
    ("for (unsigned char i = 0; i < 300; ++i) p[i] += n;", true),
    ("for (signed char i = 0; i <= 127; ++i) p[i] += n;", true),
    ("for (float i = 1e9f; i < 1000000100; i += 1) p[0] += n;", true),
    ("for (int i = 0; i <= 0x7fffffff; ++i) p[0] += n;", true),
    // A body that changes it, itself or by a name that leads there.
    ("for (int i = 0; i < Eight; ++i) i -= p[i];", true),
    ("for (int i = 0; i < Eight; ++i) less(i, p);", true),
    ("for (int i = 0, *q = &i; i < Eight; ++i) *q -= p[0];", true),
    ("int i; for (i = 0; i < Eight; ++i) { int &other = i; other -= p[0]; }", true),
    // A bound that is no constant.
    ("int most = Eight; for (int i = 0; i < most; ++i) { p[i] += n; most += p[0]; }", true),
    ("for (int i = 0; i < n; ++i) p[i] += n;", true),
];

/// Most reads of the clock, of which a poll has one or more, in the unrolled transform: with a poll an iteration of its long nests there were 313.
const MOST_READS: usize = 240;

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    checks.add("unrolled: short loops of known trips hold no poll, and what only looks like one does", each);
    checks.add("unrolled: long loops of known trips read as far ahead as their strips are long", evenly);
    checks.add("unrolled: a nest of three holds few polls when it is unrolled", nests);
    checks.add("unrolled: loops of templates up to a class's constant hold no poll, unless that class goes on", constants);
    checks.add("unrolled: members of classes that calls name poll where the classes come round", instances);
}

fn each(tools: &Tools) -> Result<(), String> {
    let mut text = "template <int N> __device__ int part(int *p, int n) { return p[N] - n; }\n__device__ __noinline__ void less(int &i, int *p) { i -= *p; }\n\
                    constexpr int Eight = 8, Minus = -1;\n"
        .to_owned();
    for (index, (body, _)) in LOOPS.iter().enumerate() {
        let body = body.replace("for (", "\n#pragma unroll 1\n    for (");
        let _ = writeln!(text, "extern \"C\" __global__ void k{index}(int *p, int n)\n{{\n    {body}\n}}");
    }
    let unit = Unit { needs: vec!["-std=c++17".into(), "-arch=sm_80".into()], ..Unit::new("known.cu", text) };
    let rewritten = unit.rewrite(&Options::default())?;
    // The compiler warns of some of these loops whoever compiles them.
    let ptx = rewritten.nvcc(&tools.nvcc, &["-ptx"])?.text();
    let loops = rewritten.site_maps.iter().flat_map(|map| &map.sites).filter(|site| site.kind == Kind::For);
    // A poll that is left hands its site over, as a number with a sign.
    let left = loops.filter(|site| {
        let id = u64::from_str_radix(site.id.trim_start_matches("0x"), 16).unwrap_or_default();
        ptx.contains(&id.cast_signed().to_string())
    });
    let left: Vec<&str> = left.map(|site| site.function.as_str()).collect();
    let wrong: Vec<&str> = LOOPS
        .iter()
        .enumerate()
        .filter(|(index, (_, polled))| left.contains(&format!("k{index}").as_str()) != *polled)
        .map(|(_, (body, _))| *body)
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong:#?}; polls are left in {left:?}")) }
}

fn nests(tools: &Tools) -> Result<(), String> {
    let unit = Unit::plain(tools.fixture("hadamard")?)?.rewrite(&Options::default())?;
    let ptx = unit.nvcc(&tools.nvcc, &["-ptx", "-arch=sm_90"])?.expect_clean()?.text();
    let found = ptx.matches("%globaltimer").count();
    if found <= MOST_READS { Ok(()) } else { Err(format!("{found} reads of the clock, more than {MOST_READS}")) }
}

/// Loops that no compiler unrolls as a whole, by a number, a macro and a template's parameter: between two polls each has all of a strip's loads, where a
/// loop that asks in each iteration has one or two.
fn evenly(tools: &Tools) -> Result<(), String> {
    let text = "#define COUNT (500 * 8)\nconst int size = COUNT;\nint told() { return size; }\n\
                extern \"C\" __global__ void by_number(const int *p, int *q, int n) { int s = 0; for (int i = 0; i < 4000; ++i) s += p[i * n]; *q = s; }\n\
                extern \"C\" __global__ void by_macro(const int *p, int *q, int n) { int s = 0; for (int i = 0; i < COUNT; ++i) s += p[i * n]; *q = s; }\n\
                template <int size> __global__ void by_parameter(const int *p, int *q, int n) { int s = 0; for (int i = 0; i < size; ++i) s += p[i * n]; *q = s; }\n\
                template __global__ void by_parameter<4000>(const int *, int *, int);\n";
    let unit = Unit { needs: vec!["-std=c++17".into(), "-arch=sm_80".into()], ..Unit::new("even.cu", text.to_owned()) };
    let ptx = unit.rewrite(&Options::default())?.nvcc(&tools.nvcc, &["-ptx"])?.expect_clean()?.text();
    let mut wrong = String::new();
    for entry in ptx.split(".entry ").skip(1) {
        // The launch's number and what else a look reads are named in the instruction.
        let loads = entry.lines().filter(|line| line.contains("ld.global.u32") && !line.contains("cuinstr")).count();
        if loads < 20 {
            let _ = writeln!(wrong, "{loads} loads in {}", entry.split('(').next().unwrap_or_default());
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Functions that the host may run too, as libraries of templates have them: what they loop up to is of a class that holds one number. One class holds
/// another than its own comparison goes by.
fn constants(tools: &Tools) -> Result<(), String> {
    let text = "template <int V> struct Int { static constexpr int value = V; typedef int value_type; __host__ __device__ constexpr operator int() const { return V; } };\n\
                struct Liar { static constexpr int value = 4; typedef int value_type; };\n\
                __host__ __device__ inline bool operator<(int, Liar) { return true; }\n\
                template <class T> __host__ __device__ constexpr T size(T) { return {}; }\n\
                __host__ __device__ inline void step(int *p, int n) { *p = *p * n + 1; }\n\
                template <class T> __host__ __device__ void few(int *p, int n, T t) {\n#pragma unroll\n    for (int i = 0; i < size(t); ++i) step(p + i, n); }\n\
                template <class T> __host__ __device__ void deduced(int *p, int n, T t) { auto N = size(t);\n#pragma unroll\n    for (int i = 0; i < N; ++i) step(p + i, n); }\n\
                template <class T> __host__ __device__ void many(int *p, int n, T t) { for (int i = 0; i < size(t); ++i) step(p + i, n); }\n\
                template <class T> __host__ __device__ void lies(int *p, int n, T t) { for (int i = 0; i < size(t); ++i) step(p + i, n); }\n\
                template <class T> __host__ __device__ void plain(int *p, int n, T t) { auto N = t; for (int i = 0; i < N; ++i) step(p + i, n); }\n\
                extern \"C\" __global__ void k(int *p, int n) {\n    few(p, n, Int<128>{}); deduced(p, n, Int<128>{}); many(p, n, Int<100000>{}); plain(p, n, n); lies(p, n, Liar{});\n}\n";
    let unit = Unit { needs: vec!["-std=c++17".into(), "-arch=sm_80".into()], ..Unit::new("constants.cu", text.to_owned()) };
    let rewritten = unit.rewrite(&Options::default())?;
    let ptx = rewritten.nvcc(&tools.nvcc, &["-ptx"])?.text();
    let loops = rewritten.site_maps.iter().flat_map(|map| &map.sites).filter(|site| site.kind == Kind::For);
    let left = loops.filter(|site| {
        let id = u64::from_str_radix(site.id.trim_start_matches("0x"), 16).unwrap_or_default();
        ptx.contains(&id.cast_signed().to_string())
    });
    let left: Vec<&str> = left.map(|site| site.function.as_str()).collect();
    if left == ["many", "lies", "plain"] && verify_ptx(&ptx).holds() { Ok(()) } else { Err(format!("polls are left in {left:?}")) }
}

/// Two kernels call members of a template's instances by name: one leads from a large tile to a small one, the other from an instance to a second, and back
/// for ever.
fn instances(tools: &Tools) -> Result<(), String> {
    let text = "template <int I, int J, class T = int> struct tile { static __device__ __forceinline__ int row(int n) { if constexpr (I == 32) { return tile<16, J>::row(n); } else { return n / J; } } };\n\
                template <int I> struct ring { static __device__ int at(int n) { return n < 0 ? n : ring<1 - I>::at(n - (n > 5)); } };\n\
                extern \"C\" __global__ void down(int *q, int n) { *q = tile<32, 8>::row(n); }\n\
                extern \"C\" __global__ void around(int *q, int n) { *q = ring<0>::at(n); }\n";
    let unit = Unit { needs: vec!["-std=c++17".into(), "-arch=sm_80".into()], ..Unit::new("instances.cu", text.to_owned()) };
    let rewritten = unit.rewrite(&Options::default())?;
    let ptx = rewritten.nvcc(&tools.nvcc, &["-ptx"])?.expect_clean()?.text();
    let sites = rewritten.site_maps.iter().flat_map(|map| &map.sites).filter(|site| site.kind == Kind::Recursion);
    let is_left = |id: &str| {
        let id = u64::from_str_radix(id.trim_start_matches("0x"), 16).unwrap_or_default();
        ptx.contains(&id.cast_signed().to_string())
    };
    let left: Vec<(&str, bool)> = sites.map(|site| (site.function.as_str(), is_left(&site.id))).collect();
    let report = verify_ptx(&ptx);
    if !left.iter().any(|(function, is_left)| function.ends_with("at") && *is_left) {
        return Err(format!("the ring has no poll: {left:?}"));
    }
    if report.holds() { Ok(()) } else { Err("the ring of instances has no poll".to_owned()) }
}
