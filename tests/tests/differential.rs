//! Random loop programs do the same when rewritten: a slice of what `scripts/differential` checks in bulk, and whether the check would notice.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr_differential::batch::Workshop;
use cuinstr_differential::check::{self, Failure, Plan};
use cuinstr_differential::lane::{self, Lane, replaced};
use cuinstr_differential::program::Program;
use cuinstr_differential::{generate, gpu, reduce};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_trial::or_ignore;
use std::fmt::Write as _;

/// Programs of every commit, and with `CUINSTR_SWEEP`; `scripts/differential` takes any number.
const PROGRAMS: [u64; 2] = [160, 400];

/// Compilations on this machine. Where nvcc is a must, so is the compiler that it needs for the host.
fn workshop() -> Workshop {
    or_ignore("nvcc", Workshop::new())
}

fn told(failures: &[Failure]) -> String {
    let mut text = String::new();
    for failure in failures {
        let _ = writeln!(text, "seed {:?}, {}: {}", failure.seed, failure.lane.unwrap_or("plain"), failure.why);
    }
    text
}

#[test]
fn random_programs_do_the_same_when_rewritten() {
    workshop();
    let programs = PROGRAMS[usize::from(std::env::var_os("CUINSTR_SWEEP").is_some())];
    let plan = Plan { seeds: 0..programs, sets: 3, rare: false, until: None };
    let report = check::check(&plan, |_| ()).expect("there is a compiler");
    assert!(report.failures.is_empty(), "scripts/differential --first SEED --programs 1 makes one smaller:\n{}", told(&report.failures));
    assert_eq!(report.programs as u64, programs);
    // The programs are worth comparing: most are defined, some go on for ever, some run for long without a look.
    assert!(
        report.runs as u64 > 20 * programs && (report.undefined as u64) < programs / 3 && report.cut as u64 > programs / 3,
        "{report:?}"
    );
    assert!(report.gap >= check::MOST / 8, "no loop ran for long: at most {} iterations between two looks", report.gap);
}

/// The lane of a name with something broken in it on purpose.
fn broken(name: &str, sabotage: fn(&mut String, &mut String, &str)) -> Lane {
    let lane = lane::rewritten_lanes().into_iter().find(|lane| lane.name == name).expect("a lane of that name");
    Lane { sabotage: Some(sabotage), ..lane }
}

#[test]
fn each_kind_of_fault_is_found() {
    let workshop = workshop();
    // Some go on for so long that a missing look shows.
    let long = (60..900).map(generate::program).filter(|program| program.single && program.budget > 100_000).take(20);
    let strips = (50..900).filter(|seed| matches!(seed % 16, 5 | 11)).take(40).map(generate::program);
    let programs: Vec<Program> = (0..50).map(generate::program).chain(long).chain(strips).collect();
    let programs: Vec<&Program> = programs.iter().collect();
    let faults = [
        ("another computation", "after", broken("default", |_, text, _| *text = text.replace("acc * 31u", "acc * 33u"))),
        ("no poll in any loop", "iterations without a look", broken("default", |_, text, plain| plain.clone_into(text))),
        (
            "a flag that nobody obeys",
            "raised at look",
            broken("default", |prelude, _, _| *prelude = prelude.replace("return host_look(word)", "return host_look(word) & 0u")),
        ),
        (
            "one unit of fuel too many",
            "after",
            broken("default with fuel", |prelude, _, _| *prelude = prelude.replace(".__ci_fuel = fuel;", ".__ci_fuel = fuel + 1ull;")),
        ),
        (
            "fuel counted wrongly",
            "units of fuel used",
            broken("default with fuel", |prelude, _, _| {
                *prelude = prelude.replace("__ci_own_record.__ci_fuel_used;", "__ci_own_record.__ci_fuel_used + 1ull;");
            }),
        ),
        ("too few looks", "looks for", broken("each", |_, text, plain| plain.clone_into(text))),
        (
            "a stride that fits once too often",
            "after",
            broken("default", |prelude, _, _| {
                *prelude = replaced(prelude, "return __ci_distance / __ci_step;", "return __ci_distance / __ci_step + 1u;");
            }),
        ),
        (
            "strips of a length by which the trips can't be divided",
            "after",
            broken("default", |prelude, _, _| *prelude = replaced(prelude, "__ci_trips % __cuinstr_length == 0u && ", "")),
        ),
        (
            "one trip too many between two constants",
            "after",
            broken("default", |prelude, _, _| {
                *prelude = replaced(
                    prelude,
                    "(unsigned int)((__ci_last - __ci_first) / __ci_by) + 1u",
                    "(unsigned int)((__ci_last - __ci_first) / __ci_by) + 2u",
                );
            }),
        ),
    ];
    for (fault, said, lane) in faults {
        let report = check::compare(&workshop, &programs, &[lane], 3);
        assert!(report.failures.iter().any(|failure| failure.why.contains(said)), "{fault} is not found:\n{}", told(&report.failures));
    }
}

#[test]
fn programs_for_a_gpu_compile() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    workshop();
    let folder = tempfile::tempdir().expect("there is room");
    let written = gpu::write(0..6, folder.path()).expect("they are written");
    assert_eq!(written.programs + written.recursive, 6);
    for source in ["gpu.cu", "units/0000-default.cu", "units/0000-broken-on-purpose.cu"] {
        let path = folder.path().join(source);
        let flags = ["-w", "-std=c++17", "-gencode=arch=compute_90,code=sm_90", "-default-stream", "per-thread", "-c", "-o"];
        let include = format!("-I{}", folder.path().display());
        let arguments = flags.iter().map(std::ffi::OsString::from).chain([path.with_extension("o").into(), include.into(), path.into()]);
        let finished = nvcc.run(arguments).expect("it starts");
        assert!(finished.success(), "{source}: {}", finished.stderr);
    }
    let expected = std::fs::read_to_string(folder.path().join("expected")).expect("it is written");
    assert_eq!(expected.lines().count(), 2 * written.programs);
}

#[test]
fn a_failing_program_is_made_smaller() {
    let workshop = workshop();
    let lanes = [broken("default", |_, text, _| *text = text.replace("acc * 31u", "acc * 33u"))];
    let program = (0..60).map(generate::program).find(|program| check::compare(&workshop, &[program], &lanes, 1).failures.len() == 1);
    let program = program.expect("one of sixty programs multiplies");
    let (smaller, failure) = reduce::reduce(&workshop, &program, &lanes, 1).expect("it fails");
    let length = |program: &Program| program.text(cuinstr_differential::program::Mode::Plain).lines().count();
    assert!(length(&smaller) < 8 && length(&smaller) < length(&program), "{}\n{}", failure.why, length(&smaller));
}
/// Programs that a person wrote, each for a fault that was found or feared. The arguments are as random as ever; `(b & 0)` is a zero that only
/// the kernel's run tells.
const WRITTEN: &[(&str, &str)] = &[
    (
        "a case label lies in a loop whose trips can be counted",
        "int left = 3;
switch ((n + 2) & 3) {
  case 0: @0 for (left = 1; left < n; @,++left) {
    __stwt(0, 0);
    default:
    __stcg(1, left);
  }
}",
    ),
    (
        "a jump into a loop whose trips can be counted",
        "int i = 0;
if (n & 1) goto inside;
@0 for (i = 0; i < n; @,++i) {
  __stwt(0, 0);
  inside:
  __stcg(1, i);
}",
    ),
    (
        "a jump back around a loop that runs for nothing",
        "unsigned int round = (b & 0);
again:
int table[5] = {1, (int)(acc & 15u), 3, n, 5};
@0 for (int each : table) @{__stwt(0, 0), acc = acc * 31u + (unsigned int)each;@}
if (round++ < 40000u) @{goto again;@}
__stcg(1, acc);",
    ),
    (
        "a break behind a step, where a strip would have ended",
        "int i = 3;
size_t last = 4 + (b & 0);
@0 while (@,i != last) {
  __stwt(0, 0);
  i += 16;
  if (i == 19) break;
}
__stcg(1, i);
@1 for (i = 3; i != last; @.) {
  __stwt(1, 0);
  i += 16;
  if (i == 19) break;
}
__stcg(2, i);",
    ),
    (
        "nothing polls but a lambda",
        // A lambda with a loop looks where it begins, and pays a unit for that.
        "auto f = [&](int m) {
  @;
  @0 while (@,m-- > 0) __stwt(0, 0);
};
f(n & 15);
__stcg(1, acc);",
    ),
    (
        "short loops one after another use up an allowance to the last unit and one more",
        "unsigned int rounds = 4000u + (b & 0), few = 250u + (b & 0);
@0 for (unsigned int i = 0; i < rounds; @,++i)
  if (__stwt(0, 0)) @1 for (unsigned int j = 0; j < few; @,++j) __stwt(1, 0);",
    ),
    (
        "iterations of an outer loop were paid for before an inner one looked",
        "unsigned int rounds = 60000u + (b & 0);
@0 for (unsigned int i = 0; i < rounds; @,++i) {
  __stwt(0, 0);
  unsigned int few = i % 15000u == 5u ? 65000u : 0u;
  @1 for (unsigned int j = 0; j < few; @,++j) __stwt(1, 0);
}",
    ),
    (
        "a signed counter goes round by an unsigned step",
        "long long last = 4294967295ll + (b & 0);
@0 for (int i = 2147483640 + (b & 0); i < last; @,i += 4u) {
  __stwt(0, 0);
  __stcg(1, i);
}",
    ),
    (
        "an unsigned counter below a bound that it can't reach",
        "long long last = 4294967301ll + (b & 0);
@0 for (unsigned int i = 4294967280u + (b & 0); i <= last; @,i += 3) {
  __stwt(0, 0);
  __stcg(1, i);
}",
    ),
    (
        "a signed counter compared without a sign",
        "unsigned int last = 5u + (b & 0);
@0 for (int i = -3 + (b & 0); i > last; @,--i) {
  __stwt(0, 0);
  __stcg(1, i);
}",
    ),
    (
        "a bound that is never met, by a step that skips it",
        "unsigned int last = 7u + (b & 0);
@0 for (unsigned int i = 4294967290u; i != last; @,i += 2) {
  __stwt(0, 0);
  __stcg(1, i);
}",
    ),
    (
        "a narrow counter that never gets to its bound",
        "int last = 128 + (b & 0);
@0 for (signed char i = 120; i < last; @,++i) {
  __stwt(0, 0);
  __stcg(1, i);
}",
    ),
    (
        "down to zero without a sign, and past it",
        "unsigned long long none = 0ull + (b & 0);
@0 for (unsigned long long i = 5; i >= none; @,i -= 2) {
  __stwt(0, 0);
  __stcg(1, i);
}",
    ),
    (
        "a step of zero, or of the wrong sign, that only the run tells",
        "@0 for (int i = 0; i < 9 + (b & 0); @,i += s) {
  __stwt(0, 0);
  __stcg(1, i);
  if (acc % 5u == 2u) break;
  acc = acc * 31u + 1u;
}",
    ),
    (
        "a condition with side effects is asked once a round",
        "int left = 200 + (b & 0);
@0 while (@,__stwt(0, 0) && left-- > 0) __stcg(1, left);
__stcg(2, left);",
    ),
    (
        "an inner loop that is left by a break, round after round",
        "@0 for (int i = 0; i < 40 + (b & 0); @,++i) {
  __stwt(0, 0);
  @1 for (int j = 0; j < n; @,++j) {
    __stwt(1, 0);
    if (j == i % 7) break;
    __stcg(1, j);
  }
  @2 while (acc++ % 5u != 0u) {@;
    __stwt(2, 0);
    if (acc % 11u == 3u) break;
    __stcg(2, acc);
  }
}",
    ),
];

#[test]
fn programs_that_a_person_wrote_do_the_same_when_rewritten() {
    let workshop = workshop();
    let head = "__global__ void k(int n, unsigned int u, long long w, int s, unsigned char b, int *p) {\nunsigned int acc = u;";
    let written = |(index, (_, text)): (usize, &(&str, &str))| {
        Program::written(index as u64, &format!("{head}\n{text}\n__stcg(99, acc);\n}}"), 400_000)
    };
    let programs: Vec<Program> = WRITTEN.iter().enumerate().map(written).collect();
    let lanes: Vec<Lane> = lane::rewritten_lanes().into_iter().chain(lane::rare_lanes()).collect();
    let report = check::compare(&workshop, &programs.iter().collect::<Vec<_>>(), &lanes, 8);
    let named = |failure: &Failure| WRITTEN[failure.seed.map_or(0, |seed| seed as usize)].0;
    let mut text = told(&report.failures);
    for failure in &report.failures {
        let _ = writeln!(text, "seed {:?} is: {}", failure.seed, named(failure));
    }
    assert!(report.failures.is_empty(), "{text}");
    assert!(report.undefined < WRITTEN.len(), "{report:?}");
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
