//! Random loop programs do the same when rewritten: a slice of what `scripts/differential` checks in bulk, and whether the check would notice.

use cuinstr_tests::differential::batch::Workshop;
use cuinstr_tests::differential::check::{self, Failure, Plan};
use cuinstr_tests::differential::lane::{self, Lane};
use cuinstr_tests::differential::program::Program;
use cuinstr_tests::differential::{generate, reduce};
use cuinstr_tests::require;
use std::fmt::Write as _;

/// Programs of every commit: about 30 seconds on two cores.
const PROGRAMS: u64 = 900;

/// Compilations on this machine. Where nvcc is a must, so is the compiler that it needs for the host.
fn workshop() -> Option<Workshop> {
    require::or_skip("nvcc", Workshop::new())
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
    let Some(_) = workshop() else { return };
    let plan = Plan { seeds: 0..PROGRAMS, sets: 3, rare: false };
    let report = check::check(&plan, |_| ()).expect("there is a compiler");
    assert!(report.failures.is_empty(), "scripts/differential --first SEED --programs 1 makes one smaller:\n{}", told(&report.failures));
    assert_eq!(report.programs as u64, PROGRAMS);
    // The programs are worth comparing: most are defined, some go on for ever, some run for long without a look.
    assert!(report.runs as u64 > 20 * PROGRAMS && report.undefined < 300 && report.cut > 300, "{report:?}");
    assert!(report.gap > check::MOST / 2, "no loop ran for long: at most {} iterations between two looks", report.gap);
}

/// The lane of a name with something broken in it on purpose.
fn broken(name: &str, sabotage: fn(&mut String, &mut String, &str)) -> Lane {
    let lane = lane::rewritten_lanes().into_iter().find(|lane| lane.name == name).expect("a lane of that name");
    Lane { sabotage: Some(sabotage), ..lane }
}

#[test]
fn each_kind_of_fault_is_found() {
    let Some(workshop) = workshop() else { return };
    let programs: Vec<Program> = (0..60).map(generate::program).collect();
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
            broken("default with fuel", |prelude, _, _| *prelude = prelude.replace(".fuel = fuel;", ".fuel = fuel + 1ull;")),
        ),
        (
            "fuel counted wrongly",
            "units of fuel used",
            broken("default with fuel", |prelude, _, _| {
                *prelude = prelude.replace("own_record.fuel_used;", "own_record.fuel_used + 1ull;")
            }),
        ),
        ("too few looks", "looks for", broken("each", |_, text, plain| plain.clone_into(text))),
    ];
    for (fault, said, lane) in faults {
        let report = check::compare(&workshop, &programs, &[lane], 3);
        assert!(report.failures.iter().any(|failure| failure.why.contains(said)), "{fault} is not found:\n{}", told(&report.failures));
    }
}

#[test]
fn a_failing_program_is_made_smaller() {
    let Some(workshop) = workshop() else { return };
    let lanes = [broken("default", |_, text, _| *text = text.replace("acc * 31u", "acc * 33u"))];
    let program = (0..60).map(generate::program).find(|program| check::compare(&workshop, &[program], &lanes, 1).failures.len() == 1);
    let program = program.expect("one of sixty programs multiplies");
    let (smaller, failure) = reduce::reduce(&workshop, &program, &lanes, 1).expect("it fails");
    let lines = |program: &Program| program.text(cuinstr_tests::differential::program::Mode::Plain).lines().count();
    assert!(lines(&smaller) < 8 && lines(&smaller) < lines(&program), "{}\n{}", failure.why, lines(&smaller));
}
