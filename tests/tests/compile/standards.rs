//! C++11 to C++20, and code that the compiler itself runs.

use crate::kernels::unit_compiles;
use crate::{Checks, Tools, pairs};
use cuinstr::options::{Limits, Options, Polls};
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::unit::{STRICT, Unit};

const STANDARDS: [&str; 4] = ["11", "14", "17", "20"];

/// Loops of every kind that `static_assert` runs, and a kernel that runs them too.
const CONSTEXPR: &str = "
__host__ __device__ constexpr unsigned down(unsigned n) { unsigned sum = 0; while (n) sum += n--; return sum; }
__host__ __device__ constexpr unsigned up(unsigned n) { unsigned sum = 0; for (unsigned i = 1; i <= n; ++i) { sum += i; } return sum; }
__host__ __device__ constexpr unsigned at_least_one(unsigned n) { unsigned sum = 0; do { sum += n; } while (n-- > 1); return sum; }
__host__ __device__ constexpr unsigned ranged(unsigned n) { unsigned all[] = {1, 2, 3}, sum = 0; for (unsigned one : all) sum += one * n; return sum; }
template <unsigned N> struct Table {
    unsigned values[N];
    __host__ __device__ constexpr Table() : values() { for (unsigned i = 0; i < N; ++i) values[i] = down(i); }
};
constexpr __device__ unsigned device_only(unsigned n) { for (;;) if (n-- == 0) return 7; }
static_assert(down(100) == 5050 && up(100) == 5050 && at_least_one(100) == 5050 && ranged(10) == 60, \"sums\");
static_assert(down(20000) == 200010000, \"more iterations than an allowance\");
static_assert(Table<9>().values[8] == 36, \"table\");
static_assert(device_only(3) == 7, \"seven\");
constexpr unsigned host_side = up(12);
__global__ void k(unsigned* out, unsigned n) {
    constexpr Table<16> table;
    constexpr unsigned here = down(40);
    static_assert(here == 820, \"sum\");
    out[0] = down(n) + up(n) + at_least_one(n) + ranged(n) + table.values[n % 16] + here + host_side + device_only(n);
}
unsigned on_host(unsigned n) { return down(n) + up(n) + at_least_one(n) + ranged(n); }
";

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    const WAYS: [(&str, &[&str]); 4] = [
        ("to PTX", &["-ptx"]),
        ("to relocatable PTX", &["-ptx", "-rdc=true"]),
        ("with its host half", &["-c"]),
        ("relocatable with its host half", &["-c", "-rdc=true"]),
    ];
    for (std, (what, args)) in pairs(&STANDARDS, &WAYS) {
        checks.add(format!("standard: cxx11 compiles as C++{std} {what}"), move |tools| standard(tools, std, args));
    }
    let limits = Limits { timeout_ns: None, budget_cycles: None, fuel: Some(9) };
    let default = Options::default();
    let forms = [
        ("", default.clone()),
        (" with each poll", Options { polls: Polls::Each, ..default.clone() }),
        (" with fuel", Options { limits, ..default }),
    ];
    for (std, (form, options)) in pairs(&STANDARDS[1..], &forms) {
        checks.add(format!("standard: constexpr loops compile as C++{std}{form}"), move |tools| constexpr(tools, std, &options));
    }
}

fn standard(tools: &Tools, std: &str, args: &[&str]) -> Result<(), String> {
    let limits = Limits { timeout_ns: Some(1_000_000), budget_cycles: Some(1), fuel: Some(5) };
    let unit = Unit::plain(tools.fixture("cxx11")?)?;
    for options in [Options::default(), Options { polls: Polls::Each, limits, ..Options::default() }] {
        let mut unit = unit.rewrite(&options)?;
        unit.needs = vec![format!("-std=c++{std}"), "-arch=sm_75".to_owned()];
        unit.nvcc(&tools.nvcc, &[STRICT, args].concat())?.expect_clean()?;
    }
    Ok(())
}

fn constexpr(tools: &Tools, std: &str, options: &Options) -> Result<(), String> {
    let plain = Unit::new("constants.cu", CONSTEXPR);
    let needs = vec![format!("-std=c++{std}"), "-arch=sm_75".to_owned()];
    let plain = Unit { needs, ..plain };
    unit_compiles(tools, &plain, options, &[STRICT, &["-c"]].concat())
}
