//! PTX that compilers made, changed by chance: an answer in time that its size bounds, the same one each time, and never a panic.
//!
//! `CUINSTR_MUTANTS` asks for more of them than a test run has time for, `CUINSTR_MUTANTS_SEED` is the number of the first, and `CUINSTR_SEEDS` names a
//! folder of PTX files to make them of.

use crate::record::Record;
use cuinstr::verify::verify_ptx;
use cuinstr_harness::process::processor_time;
use cuinstr_harness::random::Random;
use std::time::Duration;

/// Longest that one text may take, without optimisation and on a busy machine. What is not linear takes far longer.
const LONGEST: Duration = Duration::from_secs(120);
/// Largest text that is made, as a multiple of the seeds' size and beyond that in bytes.
const GROWTH: usize = 4;

/// A kernel that nobody can stop.
const SPIN: &str = "\n.visible .entry never_stops()\n{\n$L_never:\n\tbra $L_never;\n}\n";

/// Words that matter to a reader of PTX, and numbers at the ends of what it can hold.
const WORDS: &[&str] = &[
    "{",
    "}",
    ";",
    ":",
    "@",
    "@!",
    "(",
    ")",
    "[",
    "]",
    "/*",
    "*/",
    "//",
    "\"",
    "\\",
    ",",
    ".entry",
    ".func",
    ".reg",
    ".loc",
    ".file",
    ".section",
    ".branchtargets",
    ".callprototype",
    ".version",
    ".target",
    "bra",
    "brx.idx",
    "call",
    "ret",
    "exit",
    "trap",
    "mov.u32",
    "ld.relaxed.sys.u32",
    "setp.ne.s32",
    "add.s32",
    "shl.b32",
    "min.u32",
    "cvt.s64.s32",
    "mad.lo.s32",
    "cuinstr_control_v1",
    "%r1",
    "%rd1",
    "%p1",
    "$L__BB0_1",
    "0",
    "-1",
    "1",
    "31",
    "32",
    "63",
    "64",
    "4294967295",
    "2147483648",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "0x",
    "0f3F800000",
    "\u{e9}",
    "\u{0}",
];

fn seeds() -> Vec<String> {
    let Some(folder) = std::env::var_os("CUINSTR_SEEDS") else {
        let kept = [
            include_str!("../../data/ptx/strips.ptx"),
            include_str!("../../data/ptx/clang.ptx"),
            include_str!("../../data/ptx/triton.ptx"),
        ];
        return kept.map(str::to_owned).into();
    };
    let files = std::fs::read_dir(&folder).expect("CUINSTR_SEEDS is a folder").filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|extension| extension == "ptx")).collect();
    files.sort();
    let texts: Vec<String> = files.iter().map(|path| std::fs::read_to_string(path).expect("it can be read")).collect();
    assert!(!texts.is_empty(), "CUINSTR_SEEDS holds no .ptx");
    texts
}

/// Changes a text once.
fn change(text: &mut String, seeds: &[String], random: &mut Random) {
    let line = |text: &str, random: &mut Random| {
        let from = random.below(text.len().max(1));
        text.as_bytes()[..from.min(text.len())].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
    };
    let behind = |text: &str, mut at: usize, lines: usize| {
        for _ in 0..lines {
            at += text[at..].find('\n').map_or(text.len() - at, |end| end + 1);
        }
        at
    };
    let run = |text: &str, longest: usize, random: &mut Random| {
        let from = line(text, random);
        from..behind(text, from, 1 + random.below(longest))
    };
    // A word, or a byte that is none.
    let word = |text: &str, random: &mut Random| {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'%' | b'$' | b'_' | b'.');
        let mut at = random.below(text.len().max(1)).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let bytes = text.as_bytes();
        let from = bytes[..at].iter().rposition(|byte| !is_word(byte)).map_or(0, |before| before + 1);
        let to = at + bytes[at..].iter().position(|byte| !is_word(byte)).unwrap_or(text.len() - at);
        if from < to && text.is_char_boundary(from) { from..to } else { at..at }
    };
    match random.below(9) {
        0 => {
            let lost = run(text, 3, random);
            text.replace_range(lost, "");
        }
        1 => {
            let copy = text[run(text, 20, random)].to_owned();
            let at = line(text, random);
            text.insert_str(at, &copy);
        }
        2 => {
            let moved = run(text, 6, random);
            let lines = text[moved.clone()].to_owned();
            text.replace_range(moved, "");
            let at = line(text, random);
            text.insert_str(at, &lines);
        }
        3 => {
            let other = &seeds[random.below(seeds.len())];
            let copy = other[run(other, 40, random)].to_owned();
            let at = line(text, random);
            text.insert_str(at, &copy);
        }
        4 | 5 => {
            let other = text[word(text, random)].to_owned();
            let at = word(text, random);
            text.replace_range(at, &other);
        }
        6 | 7 => {
            let at = word(text, random);
            text.replace_range(at, random.of(WORDS));
        }
        _ => {
            let from = line(text, random);
            let ends = text[from..].char_indices().map(|(at, _)| from + at).take(10).collect::<Vec<_>>();
            text.truncate(ends.get(random.below(10)).copied().unwrap_or(from));
        }
    }
}

/// Writes down a text that something is wrong with; says where.
fn keep(number: usize, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("cuinstr-mutant-{number}.ptx"));
    std::fs::write(&path, text).map_or_else(|error| error.to_string(), |()| path.display().to_string())
}

#[test]
fn what_is_changed_by_chance_is_answered_the_same_each_time_and_hides_no_loop() {
    let asked = |name: &str| std::env::var(name).ok().and_then(|count| count.parse::<usize>().ok());
    let seeds = seeds();
    let (mut held, mut unlike, mut record) = (0_usize, 0_usize, Record::default());
    let count = asked("CUINSTR_MUTANTS").unwrap_or(60);
    let first = asked("CUINSTR_MUTANTS_SEED").unwrap_or(0);
    for number in first..first + count {
        let mut random = Random::new(number as u64);
        let seed = &seeds[random.below(seeds.len())];
        let mut text = seed.clone();
        // Mostly little, so that much of it stays PTX.
        let most = if random.percent(10) { 40 } else { 4 };
        for _ in 0..=random.below(most) {
            if text.len() < GROWTH * seed.len() {
                change(&mut text, &seeds, &mut random);
            }
        }
        let begun = processor_time();
        let report = verify_ptx(&text);
        let took = processor_time().saturating_sub(begun);
        assert!(took < LONGEST, "mutant {number}, {}, took {took:?}", keep(number, &text));
        record.add(&report);
        held += usize::from(report.holds());
        unlike += usize::from(text != *seed);
        assert!(!verify_ptx(&(text.clone() + SPIN)).holds(), "mutant {number}, {}, hides a loop behind it", keep(number, &text));
        if number % 8 == 0 {
            assert!(verify_ptx(&text) == report, "mutant {number}, {}, has two reports", keep(number, &text));
        }
    }
    assert!(unlike * 10 > count * 9, "{unlike} of {count} are changed");
    // Those of a folder may be proved or not, and so may a few that start elsewhere.
    let is_any = ["CUINSTR_SEEDS", "CUINSTR_MUTANTS_SEED"].into_iter().any(|name| std::env::var_os(name).is_some());
    assert!(is_any || held > count / 50 && held < count, "{held} of {count} hold");
    record.check("changed_texts", &["CUINSTR_MUTANTS", "CUINSTR_MUTANTS_SEED", "CUINSTR_SEEDS"]);
}
