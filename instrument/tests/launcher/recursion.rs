//! Which calls of functions that may reach themselves are polled: those that the compiler's output shows on a cycle.

use crate::project::{BINARY, Project, expect, text};
use crate::toolkit::nvcc;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Functions that reach themselves by name: in the first half what is called is always another one. What can be called is known in this file alone.
const SOURCE: &str = r"
struct Leaf { __device__ int get(int i) const { return i; } };
template <class T> struct Box { T inner; __device__ int get(int i) const { const T &t = inner; return t.get(i + 1); } };
template <class T> __device__ int dig(const Box<T> *b, int i) { return dig(&b->inner, i) + 1; }
__device__ int dig(const Leaf *, int i) { return i; }
template <class T> __device__ __noinline__ int apart(const Box<T> *b, int i) { return apart(&b->inner, i) + 1; }
__device__ int apart(const Leaf *, int i) { return i; }
template <class T> __host__ __device__ void both(const Box<T> *b, int *o) { for (int i = 0; i < 3; ++i) both(&b->inner, o + i); }
__host__ __device__ void both(const Leaf *, int *o) { *o += 1; }

__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ int down(int n) { if (n == 7) return 3; return down(n - 2); }
__device__ int odd(int n);
__device__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
template <class T> __device__ int again(const Box<T> *b, int i) { if (i == 9) return 0; return again(b, i - 2); }
struct Node { const Node *next; __device__ int last(int i) const { const Node *n = next; return n ? n->last(i + 1) : i; } };
template <class T> struct Pair { T one; };
template <class T> __device__ __noinline__ int all(const Pair<T> *p, volatile int *o) { return all(&p->one, o) + all(&p->one, o); }
__device__ int all(const Leaf *, volatile int *o) { return *o; }

__global__ void never(int *o, int n) { Box<Box<Leaf>> b; both(&b, o); o[threadIdx.x] += b.get(n) + dig(&b, n) + apart(&b, n); }
__global__ void ever(int *o, int n, const Node *node) {
  Box<Leaf> b;
  o[0] = fib(n) + down(n) + even(n) + again(&b, n) + node->last(n);
}
";

/// The same with a function whose calls double thirty times over: no cycle, and no end either.
const DOUBLES: &str = r"
template <int N> struct Deep { typedef Pair<typename Deep<N - 1>::type> type; };
template <> struct Deep<0> { typedef Leaf type; };
__global__ void doubles(const Deep<30>::type *p, int *o) { *o = all(p, o); }
";

/// The form of each recursive function's poll after a compilation with these words and flags.
fn forms(nvcc: &PathBuf, source: &str, words: &[&str], flags: &str) -> BTreeMap<String, String> {
    let project = Project::new(&[("a.cu", source)]);
    let mut command = project.command(BINARY);
    command.arg(nvcc).args(["a.cu", "-o", "a.out", "--cuinstr-coverage", "covered"]).args(words).env("CUINSTR_FLAGS", flags);
    let output = expect(&mut command, 0);
    // What recursion makes ptxas say of a plain compilation, too.
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(said.lines().all(|line| line.contains("Stack size for entry function")), "{said}");
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
    let names = fs::read_dir(project.path()).expect("a folder").map(|entry| entry.expect("readable").file_name());
    let expected = ["a.cu", "a.out", "covered", "none.cu", "tmp", "toolkit"];
    assert!(names.map(|name| name.into_string().expect("text")).all(|name| expected.contains(&name.as_str())));
    let unit = fs::read_dir(project.path().join("covered")).expect("a folder").next().expect("one unit").expect("readable").path();
    let unit: serde_json::Value = serde_json::from_slice(&fs::read(unit).expect("readable")).expect("JSON");
    let sites = unit["files"][0]["sites"]["sites"].as_array().expect("sites");
    let calls = sites.iter().filter(|site| site["kind"] == "recursion");
    let word = |site: &serde_json::Value, key: &str| site[key].as_str().expect("text").to_owned();
    calls.map(|site| (word(site, "function"), word(site, "form"))).collect()
}

#[test]
fn calls_are_polled_where_the_compilers_output_has_a_cycle() {
    let nvcc = nvcc();
    let never = ["get", "dig", "apart", "both"];
    let ever = ["fib", "down", "even", "odd", "again", "last"];
    let all: BTreeMap<_, _> = forms(&nvcc, SOURCE, &["-ptx", "-arch=sm_90"], "--recursion named");
    assert!(never.iter().chain(&ever).all(|name| all[*name] != "none"), "{all:?}");
    for words in [
        &["-c", "-arch=sm_90", "-lineinfo"][..],
        &["-c", "-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"],
        &["-ptx", "-arch=sm_90"],
        &["-cubin", "-arch=sm_90"],
        &["-fatbin", "-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"],
    ] {
        let found = forms(&nvcc, SOURCE, words, "");
        assert!(never.iter().all(|name| found[*name] == "none"), "{words:?}: {found:?}");
        assert!(ever.iter().all(|name| found[*name] == all[*name]), "{words:?}: {found:?}");
    }
    // What can be told of no call, or where another unit may call back.
    let unseen = format!("{SOURCE}extern __device__ int other(int);\n__global__ void far(int *o) {{ *o = other(*o); }}\n");
    for (source, words, flags) in [
        (SOURCE, &["-ptx", "-arch=sm_90", "-G"][..], ""),
        (&unseen, &["-arch=sm_90", "-dc"], ""),
        (SOURCE, &["-ptx", "-arch=sm_90"], "--fuel 1000"),
        (&format!("{SOURCE}{DOUBLES}"), &["-ptx", "-arch=sm_90"], ""),
    ] {
        let found = forms(&nvcc, source, words, flags);
        assert!(found.iter().all(|(name, form)| all.get(name).is_none_or(|named| named == form)), "{words:?} {flags}: {found:?}");
    }
}

/// A merge network as selections have it: a template that calls two smaller instances of itself, and loops that halve, unrolled.
const MERGE: &str = r"
template <class T> __device__ inline void put(bool is, T &x, T y) { x = is ? y : x; }
__device__ inline int other(int v, int by) { return __shfl_xor_sync(~0u, v, by); }
__device__ inline long long other(long long v, int by) { return other((int)v, by); }
template <int N> struct Step {
  static __device__ inline void merge(int *k) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) { int a = k[i], b = k[i + N / 2]; put(a > b, k[i], b); put(a > b, k[i + N / 2], a); }
    Step<N / 2>::merge(k);
    Step<N / 2>::merge(k + N / 2);
  }
};
template <int L> __device__ inline void warp(int &k) {
#pragma unroll
  for (int by = L / 2; by > 0; by /= 2) {
    int a = other(k, by), b = other(k + 1, by), c = other(k + 2, by);
    put(threadIdx.x & by ? a > k : a < k, k, a); put(b > k, k, b); put(c < k, k, c); put(a + b > k, k, c); put(b + c > k, k, a);
  }
}
template <> struct Step<1> { static __device__ inline void merge(int *k) { warp<32>(*k); } };
__global__ void merge(int *p) {
  int k[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) k[i] = p[i * 32 + threadIdx.x];
  Step<16>::merge(k);
#pragma unroll
  for (int i = 0; i < 16; ++i) p[i * 32 + threadIdx.x] = k[i];
}
";

#[test]
fn templates_that_end_have_no_polls_at_their_calls() {
    let nvcc = nvcc();
    for product in ["-ptx", "-cubin", "-fatbin", "-c"] {
        let found = forms(&nvcc, MERGE, &[product, "-arch=sm_90"], "");
        // The other one is called nowhere.
        assert_eq!(found["merge"], "none", "{product}: {found:?}");
    }
    let project = Project::new(&[("a.cu", MERGE)]);
    let loads = |flags: &str| {
        expect(project.command(BINARY).arg(&nvcc).args(["-ptx", "-arch=sm_90", "a.cu", "-o", "a.ptx"]).env("CUINSTR_FLAGS", flags), 0);
        expect(project.command(BINARY).args(["verify", "a.ptx"]), 0);
        let text = fs::read_to_string(project.path().join("a.ptx")).expect("nvcc wrote it");
        // Each poll has such a load, and the kernel's end has one.
        text[text.find(".entry").expect("a kernel")..].matches("ld.relaxed").count()
    };
    assert_eq!(loads(""), 1);
    assert!(loads("--recursion named") > 30);
}

/// A check where a long chain of calls begins is no poll of a call. What the compiler's output says of calls does not take it away.
#[test]
fn checks_of_chains_stay() {
    let nvcc = nvcc();
    let text = include_str!("../../../tests/data/attacks/activations_multiply.cu");
    let project = Project::new(&[("a.cu", text)]);
    for product in ["-ptx", "-c"] {
        let words = [product, "-arch=sm_90", "-std=c++17", "a.cu", "-o", "out"];
        expect(project.command(BINARY).arg(&nvcc).args(words).env("CUINSTR_FLAGS", "--verify"), 0);
    }
}

#[test]
fn what_is_left_of_polls_is_proved() {
    let nvcc = nvcc();
    let project = Project::new(&[("a.cu", SOURCE)]);
    let main = format!("{SOURCE}int main() {{}}\n");
    project.write("a.cu", &main);
    let both = ["-gencode=arch=compute_80,code=compute_80", "-gencode=arch=compute_90,code=compute_90"];
    for words in [&["-cubin"][..], &["-ptx"], &["-c", "-MD", "-MF", "a.d"], &["-o", "a.out", both[0], both[1]], &["-rdc=true", "-c"]] {
        let mut command = project.command(BINARY);
        command.arg(&nvcc).args(words).arg("a.cu").env("CUINSTR_FLAGS", "--verify");
        if !words.contains(&"-o") {
            command.args(["-o", "a.out"]);
        }
        if !words.contains(&both[0]) {
            command.arg("-arch=sm_90");
        }
        expect(&mut command, 0);
        // What the object holds, not what the compiler said on its way.
        if !words.contains(&"-cubin") {
            expect(project.command(BINARY).args(["verify", "a.out"]), 0);
        }
        fs::remove_file(project.path().join("a.out")).expect("it was made");
        assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
    }
    let dependencies = fs::read_to_string(project.path().join("a.d")).expect("nvcc wrote it");
    assert!(dependencies.starts_with("a.out"), "{dependencies}");
    // An error in the source is said once.
    project.write("a.cu", &format!("{SOURCE}__global__ void wrong() {{ nothing(); }}\n"));
    let output = project.command(BINARY).arg(&nvcc).args(["-c", "a.cu", "-o", "b.o", "-arch=sm_90"]).output().expect("it starts");
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(!output.status.success() && said.matches("\"nothing\" is undefined").count() == 1, "{said}");
    assert!(!project.path().join("b.o").exists());
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

/// Two groups of warps that have registers of their own, so many that ptxas finds no room beside a function that both call.
const GROUPS: &str = r#"
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define REGISTERS(n) asm volatile("setmaxnreg." n ";")
#else
#define REGISTERS(n)
#endif
__global__ void __launch_bounds__(384, 1) groups(const float *in, float *out, volatile int *ready, int n) {
  __shared__ float tile[4096];
  if (threadIdx.x >= 256) {
    REGISTERS("dec.sync.aligned.u32 40");
    for (int i = threadIdx.x - 256; i < n; i += 128) { while (!ready[i]); tile[i & 4095] = in[i]; }
  } else {
    REGISTERS("inc.sync.aligned.u32 232");
    float sum[180];
    for (int k = 0; k < 180; ++k) sum[k] = in[k];
    for (int i = 0; i < n; ++i) {
#pragma unroll
      for (int k = 0; k < 180; ++k) sum[k] = sum[k] * tile[(i + k) & 4095] + in[k];
    }
#pragma unroll
    for (int k = 0; k < 180; ++k) out[k * 256 + threadIdx.x] = sum[k];
  }
}
"#;

#[test]
fn groups_of_warps_keep_the_registers_that_they_ask_for() {
    let nvcc = nvcc();
    let both = format!("{SOURCE}{GROUPS}");
    let header = [("a.cu", "#include \"groups.h\"\n"), ("groups.h", GROUPS)];
    let target = "-gencode=arch=compute_90a,code=sm_90a";
    for (files, words, flags) in [
        (&[("a.cu", GROUPS)][..], &["-cubin"][..], ""),
        (&header, &["-c", "-gencode=arch=compute_80,code=sm_80"], ""),
        (&[("a.cu", &both)], &["-c"], ""),
        (&[("a.cu", &both)], &["-cubin"], "--recursion named"),
    ] {
        let project = Project::new(files);
        let mut command = project.command(BINARY);
        command.arg(&nvcc).args(["a.cu", "-o", "a.out", target]).args(words).env("CUINSTR_FLAGS", flags);
        let output = expect(&mut command, 0);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!said.contains("setmaxnreg"), "{words:?} {flags}: {said}");
    }
    // A look calls the function that stops, from its own assembly; there each has it in line, and what a kernel's end asks alone calls it.
    let plain = "__global__ void plain(volatile int *ready, int n) { for (int i = 0; i < n; ++i) while (!ready[i]); }\n";
    for (source, has_calls) in [(plain, true), (GROUPS, false)] {
        let project = Project::new(&[("a.cu", source)]);
        expect(project.command(BINARY).arg(&nvcc).args(["-ptx", "a.cu", "-o", "a.ptx", "-arch=sm_90a"]), 0);
        let ptx = fs::read_to_string(project.path().join("a.ptx")).expect("nvcc wrote it");
        assert_eq!(ptx.matches("call __cuinstr_stop").count() > 1, has_calls);
    }
    // The command alone says it in the text.
    let project = Project::new(&[("a.cu", GROUPS)]);
    expect(project.command(BINARY).args(["a.cu", "-o", "a.inst.cu"]), 0);
    let output = expect(project.command(&nvcc).args(["-cubin", "a.inst.cu", "-o", "a.cubin", target]), 0);
    assert_eq!(text(&output.stdout) + &text(&output.stderr), "");
}

#[test]
fn a_cycle_through_several_files_is_polled() {
    let nvcc = nvcc();
    let next = "n % 2 ? 3 * n + 1 : n / 2";
    let g = format!("__device__ __noinline__ int g(int n) {{ return n > 3 ? f({next}) : n; }}\n");
    let f = format!("__device__ int g(int n);\nstatic __device__ __noinline__ int f(int n) {{ return n > 3 ? g({next}) + 1 : n; }}\n");
    let apply = "template <class F> __device__ int apply(const F& f, int n) { return f(n) + 1; }\n".to_owned();
    let functor =
        format!("struct Fn {{ __device__ __noinline__ int operator()(int n) const {{ return n > 3 ? apply(*this, {next}) : n; }} }};\n");
    let base = "struct Base { __device__ virtual int go(int n) = 0; };\nstatic __device__ __noinline__ int drive(Base* b, int n) { return b->go(n) + 1; }\n".to_owned();
    let derived =
        format!("struct D : Base {{ __device__ __noinline__ int go(int n) override {{ return n > 3 ? drive(this, {next}) : n; }} }};\n");
    for (first, second, call) in [(&f, &g, "f(o[1])"), (&apply, &functor, "Fn()(o[1])"), (&base, &derived, "D().go(o[1])")] {
        let kernel = format!("__global__ void k(int* o) {{ o[0] = {call}; }}\n");
        let in_source = format!("#include \"one.h\"\n{second}{kernel}");
        let in_headers = format!("#include \"one.h\"\n#include \"two.h\"\n{kernel}");
        for source in [in_source, in_headers] {
            let project = Project::new(&[("a.cu", &source), ("one.h", first), ("two.h", second)]);
            expect(project.command(BINARY).arg(&nvcc).args(["-arch=sm_90", "-ptx", "a.cu", "-o", "a.ptx"]), 0);
            expect(project.command(BINARY).args(["verify", "a.ptx"]), 0);
        }
    }
}

#[test]
fn a_cycle_through_a_piece_of_a_function_is_polled() {
    let nvcc = nvcc();
    let next = "n % 2 ? 3 * n + 1 : n / 2";
    let f = format!("__device__ int g(int n);\nstatic __device__ __noinline__ int f(int n) {{ return n > 3 ? g({next}) + 1 : n; }}\n");
    let rest = "__device__ __noinline__ int g(int n) {\n#include \"piece.inc\"\n}\n__global__ void k(int* o) { o[0] = f(o[1]); }\n";
    let in_source = format!("{f}{rest}");
    let in_header = format!("#include \"one.h\"\n{rest}");
    // The second piece ends what another file begins, and begins what that ends.
    for piece in [format!("return n > 3 ? f({next}) : n;\n"), format!("return n > 3 ? f({next}) : n; }}\nnamespace inner {{\n")] {
        for source in [&in_source, &in_header] {
            let project = Project::new(&[("a.cu", source), ("one.h", &f), ("piece.inc", &piece)]);
            expect(project.command(BINARY).arg(&nvcc).args(["-arch=sm_90", "-ptx", "a.cu", "-o", "a.ptx"]), 0);
            expect(project.command(BINARY).args(["verify", "a.ptx"]), 0);
        }
    }
}
