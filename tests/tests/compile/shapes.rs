//! Every shape of loop in functions that the host's compiler sees too: what is put in gives neither compiler anything to warn of.

use crate::kernels::unit_compiles;
use crate::{Checks, Tools, pairs};
use cuinstr::options::{Limits, Options, Polls};
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::unit::{STRICT, Unit};

/// `SPACE` stands for the functions' attributes.
const SHAPES: &str = r"
#define EACH(i, n) for (int i = 0; i < (n); ++i)
#define DRAIN(q) do { while (*(q) > 0) --*(q); } while (0)
struct Range { int values[3]; SPACE const int* begin() const { return values; } SPACE const int* end() const { return values + 3; } };
struct Sum { int total; SPACE Sum(int n) : total(0) { for (int i = 0; i < n; ++i) total += i; } SPACE ~Sum() { while (total > 0) --total; }
    SPACE int operator()(int n) const { int s = total; while (n-- > 0) s += n; return s; } SPACE operator bool() const { return total != 0; } };
SPACE int bare(int* p, int n)
{
    int i = 0, j = 0;
    for (; i < n; ++i) p[i] = i;
    for (i = 0, j = n; i < j; ++i, --j) p[i] += p[j];
    for (i = 0; i < n; i++) if (p[i] > 3) { p[i] = 0; } else if (p[i] > 2) { break; } else { continue; }
    while (n > 0) --n;
    while (p[0]-- > 0) ;
    do ++n; while (n < 9);
    do { if (n == 3) continue; --n; } while (n > 0);
    if (n) for (i = 0; i < 9; i += n) p[0] = i; else while (p[1] > 0) --p[1];
    for (;;) if (p[0]++ > 9) break;
    while (true) { if (p[0]-- < 0) return n; }
}
// Constants of the host's: the device knows their values and has no variable.
constexpr int FLOOR = 5; struct Most { static constexpr int value = 40; static const int old = 3; };
template <class T> SPACE int up_to_constants(int* p, int n, int s)
{
    for (int i = n; i > FLOOR; i -= s) p[i] += 1;
    for (int i = n; i > T::value; --i) { p[i] += 1; if (p[i] > 3) break; }
    for (int i = n; i < T::value; i += T::old) p[i] += 1;
    while (n < T::value) n += T::old;
    do { p[n] += 1; n -= FLOOR; } while (n > FLOOR);
    for (int i = s; i != FLOOR; ++i) p[i] += 1;
    return n;
}
template SPACE int up_to_constants<Most>(int*, int, int);
SPACE int nested(int* p, int n)
{
    int sum = 0;
    for (int i = 0; i < n; ++i) for (int j = i; j < n; ++j) while (p[j] > i) { --p[j]; ++sum; }
    for (int i = 0; i < n; ++i)
#pragma unroll 4
        for (int j = 0; j < n; ++j) sum += i * j;
    switch (n) { case 1: for (int i = 0; i < n; ++i) sum += i; break; case 2: while (n > 0) --n; break; default: do --n; while (n > 0); }
    while (bool more = n < 3) { n += more; }
    while (int left = p[0]) { p[0] = left - 1; }
    return sum;
}
SPACE int ranged(int n)
{
    int sum = 0, all[4] = {1, 2, 3, 4};
    Range range = {{n, n + 1, n + 2}};
    for (int one : all) sum += one;
    for (const int& one : range) { if (one == 2) continue; sum += one; }
    for (auto& one : all) for (int other : range) one += other;
    for (auto one : {n, sum}) sum += one;
    return sum + all[0];
}
SPACE int others(int* p, int n)
{
    auto lambda = [&](int m) { while (m > 0) { m -= n; p[0] += m; } return m; };
    auto typed = [=](int m) mutable -> int { for (; n < m; ++n) m -= 2; return m; };
    struct Local { SPACE static int run(int m) { int s = 0; do s += m; while (--m > 0); return s; } };
    EACH(i, n) { p[i] = i; }
    EACH(i, n) p[i] += i;
    EACH(i, n) EACH(j, i) { p[i] += j; }
    DRAIN(p);
    if (n) DRAIN(p + 1); else DRAIN(p + 2);
    int tries = 0;
again:
    if (++tries < n) goto again;
    Sum sum(n);
    return lambda(n) + typed(n) + Local::run(n) + sum(n) + (sum ? 1 : 0) + tries;
}
SPACE int on_the_host(int* p, int n)
{
#ifdef __CUDA_ARCH__
    return p[n];
#else
    for (int i = 0; i < n; ++i) p[i] += n;
    while (n > 3) { --n; p[n] = 0; }
    return n;
#endif
}
SPACE int on_the_gpu(int* p, int n)
{
#ifdef __CUDA_ARCH__
    for (int i = 0; i < n; ++i) p[i] += n;
    while (n > 3) { --n; p[n] = 0; }
#endif
    return p[n];
}
SPACE int even(int n);
SPACE int odd(int n) { return n == 0 ? 0 : even(n - 1); }
SPACE int even(int n) { return n == 0 ? 1 : odd(n - 1); }
template <class T, int N> SPACE T folded(const T (&values)[N]) { T sum = T(); for (int i = 0; i < N; ++i) sum += values[i]; for (T one : values) sum -= one; return sum; }
template <class... Ts> SPACE int packed(Ts... values) { int all[] = {values...}, sum = 0; for (unsigned i = 0; i < sizeof...(Ts); ++i) sum += all[i]; return sum; }
__global__ void k(int* p, int n)
{
    const int three[3] = {1, 2, 3};
    if (n < 0) return;
    // What the threads of a block share, up to what is no constant of the front end's, and to what is one.
    int tile = 12; const int settled = 24; extern __shared__ int shared[];
    for (unsigned v = threadIdx.x; v <= tile + 1; v += blockDim.x) shared[v] = p[v];
    for (int v = threadIdx.x; v < settled; v += blockDim.x) shared[v] = p[v];
    auto fill = [&](int to) { const int few = 20; for (int v = threadIdx.x; v < few; v += blockDim.x) shared[v] = to; for (int v = threadIdx.x; v < tile; v += 32) shared[v] = to; for (int v = threadIdx.x; v < settled; v += 32) shared[v] = to; };
    fill(n);
    for (int i = threadIdx.x; i < n; i += blockDim.x) { p[i] = bare(p, n) + nested(p, n) + ranged(n) + others(p, n) + on_the_host(p, n) + on_the_gpu(p, n) + odd(n) + folded(three) + packed(1, 2, n); __syncthreads(); }
}
";

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    // Host-only warnings hang on the standard more than the device's.
    let code = [("__host__ __device__", "11"), ("__host__ __device__", "17"), ("__host__ __device__", "20"), ("__device__", "17")];
    let limits = Limits { timeout_ns: Some(1_000_000_000), budget_cycles: Some(1 << 40), fuel: Some(1_000_000) };
    let default = Options::default();
    let forms = [
        ("", default.clone()),
        (" with limits", Options { limits, ..default.clone() }),
        (" with each poll", Options { polls: Polls::Each, ..default }),
    ];
    for ((space, std), (form, options)) in pairs(&code, &forms) {
        checks.add(format!("shapes: every loop of {space} code compiles as C++{std}{form}"), move |tools| {
            shapes(tools, space, std, &options)
        });
    }
}

fn shapes(tools: &Tools, space: &str, std: &str, options: &Options) -> Result<(), String> {
    // The host's compiler knows no unroll pragma.
    let quiet = ["-arch=sm_75", "-Xptxas=--suppress-stack-size-warning", "-Xcompiler=-Wno-unknown-pragmas"].map(str::to_owned);
    let needs = std::iter::once(format!("-std=c++{std}")).chain(quiet).collect();
    let plain = Unit { needs, ..Unit::new("shapes.cu", SHAPES.replace("SPACE", space)) };
    unit_compiles(tools, &plain, options, &[STRICT, &["-c"]].concat())
}
