//! What ptxas makes of polled kernels, next to what it makes of plain ones.

use crate::{ALL, CLOCKS, bodies, kernel, options, output};
use cuinstr::options::{Limits, Options, Polls};
use cuinstr::rewrite_ptx;
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::{process, sass};
use cuinstr_trial::or_ignore;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn assembled(nvcc: &Nvcc, text: &str, kernel: &str) -> sass::Code {
    sass::assemble(nvcc, text, kernel).unwrap_or_else(|why| panic!("{why}"))
}

/// The innermost loops of a kernel.
fn loops(nvcc: &Nvcc, text: &str, kernel: &str) -> Vec<sass::Loop> {
    assembled(nvcc, text, kernel).innermost
}

/// A text in a version of PTX that the toolkit knows: an older one if that is of CUDA 12.
fn known(nvcc: &Nvcc, text: &str) -> String {
    if nvcc.release.starts_with("12.") { text.replacen(".version 9.0", ".version 8.4", 1) } else { text.to_owned() }
}

/// What each loop of plain code does in a round, it does with polls in about as many instructions.
fn compare(nvcc: &Nvcc, name: &str, plain: &str, kernel: &str) {
    let plain = known(nvcc, plain);
    let (_, polled) = output(&plain, Polls::Amortised);
    let after = loops(nvcc, &polled, kernel);
    for one in loops(nvcc, &plain, kernel).iter().filter(|one| one.work != sass::Work::default()) {
        let is_kept = after.iter().any(|other| other.work == one.work && other.round <= one.round + one.round / 8 + 4);
        assert!(is_kept, "{name}: {one:?} in the plain code, and with polls only {after:?}");
    }
}

#[test]
fn ptxas_unrolls_loops_with_polls_as_it_does_without() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let front = "ld.param.u64 %rd1, [k_0]; ld.param.u32 %r2, [k_1]; mov.u32 %r9, %tid.x; mul.wide.u32 %rd2, %r9, 4; add.u64 %rd1, %rd1, %rd2; \
                 mov.b32 %r1, 0; mov.b32 %r8, 0; shl.b32 %r7, %r9, 2; setp.lt.s32 %p1, %r2, 1; @%p1 bra $X;";
    let step = "add.u64 %rd1, %rd1, 512; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;";
    for (name, body) in [
        ("loads", "ld.global.u32 %r3, [%rd1]; add.u32 %r8, %r8, %r3;"),
        ("barriers", "ld.shared.u32 %r3, [%r7]; bar.sync 0; add.u32 %r8, %r8, %r3; st.shared.u32 [%r7], %r8; bar.sync 0;"),
        ("shuffles", "ld.global.u32 %r3, [%rd1]; shfl.sync.bfly.b32 %r3, %r3, 1, 31, -1; add.u32 %r8, %r8, %r3;"),
        ("atomics", "red.global.add.u32 [%rd1], %r8; add.u32 %r8, %r8, 3;"),
    ] {
        let body = format!(".shared .align 4 .b8 sm[4096]; {front} $L: {body} {step} $X: st.global.u32 [%rd1], %r8; ret;");
        compare(&nvcc, name, &kernel(&body), "k");
    }
}

#[test]
fn ptxas_unrolls_the_benchmarks_as_it_does_without() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    // Loops in strips, and one that pays for eight iterations at once. Light ones of the latter are unrolled where the plain ones are not.
    for name in ["gemm_tiled", "smith_waterman", "spmv_csr", "bfs"] {
        let (text, kernel) = benchmark(&nvcc, name);
        compare(&nvcc, name, &text, &kernel);
    }
}

#[test]
fn ptxas_makes_of_a_brief_nest_what_it_makes_of_the_users() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let (text, kernel) = benchmark(&nvcc, "convolve2d");
    let (_, polled) = output(&text, Polls::Amortised);
    let after = loops(&nvcc, &polled, &kernel);
    for one in loops(&nvcc, &text, &kernel) {
        assert!(after.iter().any(|other| (&other.work, other.round) == (&one.work, one.round)), "{one:?}, and with polls only {after:?}");
    }
}

/// The PTX of a kernel of `kernels/bench`, and its name there.
fn benchmark(nvcc: &Nvcc, name: &str) -> (String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/bench").join(name).with_extension("cu");
    let mut command = Command::new(&nvcc.path);
    command.args(["-arch=sm_90", "-O3", "-std=c++17", "-ptx"]).arg(&path).args(["-o", "-"]);
    let done = process::run(&mut command, Duration::from_secs(120)).expect("nvcc starts");
    assert!(done.success(), "{}", done.stderr);
    let kernel = done.stdout.split(".entry").nth(1).and_then(|rest| rest.split('(').next()).expect("a kernel").trim().to_owned();
    (done.stdout, kernel)
}

/// The names that polls declare, but for those that begin as our own do.
fn declared(output: &str, own: &str) -> BTreeSet<String> {
    let names = output.split([';', ')', '(', '{']).filter_map(|part| {
        let at = part.find(".reg .").or_else(|| part.find(".param ."))?;
        Some(part[at..].split([',', ' ', '\t']).filter(|word| !word.starts_with(['.', '%'])).map(str::to_owned).collect::<Vec<_>>())
    });
    names.flatten().filter(|name| !name.is_empty() && !own.contains(name.as_str()) && !name.contains("cuinstr_")).collect()
}

/// A parameter of a kernel is seen in all of its blocks, and hides a block's own parameter of its name.
#[test]
fn names_of_a_kernels_parameters_are_its_own() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let body = "ld.param.u64 %rd1, [k_0]; $L: ld.volatile.global.u32 %r3, [%rd1]; setp.ne.s32 %p1, %r3, 7; @%p1 bra $L; ret;";
    let text = known(&nvcc, &kernel(body));
    for (limits, polls, begin_by_polls) in [
        (Limits::default(), Polls::Amortised, false),
        (Limits::default(), Polls::Each, true),
        (CLOCKS, Polls::Amortised, false),
        (ALL, Polls::Amortised, true),
        (ALL, Polls::Each, false),
    ] {
        let output = |text: &str| {
            let rewrite = rewrite_ptx(text.as_bytes(), &Options { limits, begin_by_polls, ..options(polls) });
            String::from_utf8(rewrite.output.expect("an output")).expect("ASCII stays ASCII")
        };
        let mut names = declared(&output(&text), &text);
        assert!(names.contains("site") && names.contains("launch"), "{names:?}");
        names.extend(["a", "b", "c", "at"].map(str::to_owned));
        let parameters = names.into_iter().collect::<Vec<_>>().join(", .param .u64 ");
        let taken = text.replace(".param .u32 k_1", &format!(".param .u64 {parameters}"));
        assembled(&nvcc, &output(&taken), "k");
    }
}

/// ptxas takes a loop with a strong load for one that waits for another thread of its warp. Its threads then run on apart.
#[test]
fn ptxas_keeps_the_threads_of_a_warp_together_behind_loops() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let (text, kernel) = benchmark(&nvcc, "hash_probe");
    let yields = |text: &str| assembled(&nvcc, text, &kernel).yields;
    assert_eq!(yields(&text), 0);
    // Those of `__cuinstr_stop` and `__cuinstr_last`, which nothing comes behind. ptxas 13.4 and newer ones put two more where the kernel begins.
    let release: Vec<u32> = nvcc.release.split('.').filter_map(|number| number.parse().ok()).collect();
    let at_begin = if release >= vec![13, 4] { 2 } else { 0 };
    assert_eq!(yields(&output(&text, Polls::Amortised).1), 4 + at_begin);
    // Older GPUs have polls with strong loads.
    let older = text.replace(".target sm_90", ".target sm_80");
    assert!(yields(&output(&older, Polls::Amortised).1) > 4);
}

/// The device linker gives a kernel as many registers as any function that it calls may use.
#[test]
fn linked_kernels_need_few_registers_for_their_ends() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let registers = |text: &str| -> u32 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [source, object, linked] = ["k.ptx", "k.o", "k.cubin"].map(|name| folder.path().join(name));
        std::fs::write(&source, text).expect("a file");
        let run = |tool: &str, words: &[&str], from: &Path, to: &Path| {
            let mut command = Command::new(nvcc.path.with_file_name(tool));
            command.arg("-arch=sm_90").args(words).arg(from).arg("-o").arg(to);
            let done = process::run(&mut command, Duration::from_secs(120)).expect("it starts");
            assert!(done.success(), "{tool}: {}", done.stderr);
            done.stdout + &done.stderr
        };
        run("ptxas", &["-c"], &source, &object);
        let said = run("nvlink", &["-v"], &object, &linked);
        let count = said.split("used ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        count.unwrap_or_else(|| panic!("no registers: {said}"))
    };
    for name in ["hash_probe", "mandelbrot", "collatz"] {
        let text = benchmark(&nvcc, name).0;
        let version = text.lines().find(|line| line.starts_with(".version")).expect("PTX has a version");
        let mut older = text.clone();
        if !version.starts_with(".version 8") {
            let (plain, polled) = (registers(&text), registers(&output(&text, Polls::Amortised).1));
            assert!(polled <= plain.max(32), "{name}: {plain} registers, {polled} with polls");
            older = text.replacen(version, ".version 8.8", 1);
        }
        // Older PTX can't say that the function keeps none for its callers.
        assert!(registers(&output(&older, Polls::Amortised).1) > 40, "{name}");
    }
}

/// A product that may be under way where a thread leaves has ptxas wait for each before the next (C7518).
#[test]
fn ptxas_keeps_products_of_warp_groups_under_way() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd2, %rd2, 1, 1, 1, 0, 0;";
    let body = format!(
        ".reg .f32 %f<4>; ld.param.u64 %rd1, [k_0]; ld.param.u32 %r2, [k_1]; mov.b64 %rd2, 0; mov.b32 %r1, 0; mov.f32 %f0, 0f00000000; \
         mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; wgmma.fence.sync.aligned; $L: {product} wgmma.commit_group.sync.aligned; \
         wgmma.wait_group.sync.aligned 1; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L; wgmma.wait_group.sync.aligned 0; \
         st.global.v4.f32 [%rd1], {{%f0, %f1, %f2, %f3}}; ret;"
    );
    let (_, polled) = output(&known(&nvcc, &kernel(&body)).replace("sm_90", "sm_90a"), Polls::Amortised);
    // ptxas 12.4 does not say so.
    let is_asked = !nvcc.release.starts_with("12.");
    let waits = "\twgmma.wait_group.sync.aligned 0;\n\tbra.uni $__cuinstr_leaves;";
    for (text, is_serial) in [(polled.clone(), false), (polled.replace(waits, "\tbra.uni $__cuinstr_leaves;"), is_asked)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = folder.path().join("k.ptx");
        std::fs::write(&source, text).expect("a file");
        let words = ["-arch=sm_90a", "-v", "-o"];
        let ptxas = nvcc.path.with_file_name("ptxas");
        let done = process::run(Command::new(ptxas).args(words).arg(folder.path().join("k.cubin")).arg(source), Duration::from_secs(60));
        let done = done.expect("ptxas starts");
        assert!(done.success(), "{}", done.stderr);
        assert_eq!((done.stdout + &done.stderr).contains("C7518"), is_serial);
    }
}

#[test]
fn ptxas_takes_every_shape() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    for (_, text) in bodies() {
        loops(&nvcc, &output(&known(&nvcc, &text), Polls::Amortised).1, "k");
    }
}
