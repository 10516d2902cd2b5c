//! Reports, from a record's numbers to the text that a person reads.

use cuinstr_runtime::control::{SITE_SLOTS, SiteCount, StopRecord, Why};
use cuinstr_runtime::report::{Launched, Report, SourceLine};
use cuinstr_runtime::sites::{Form, Kind, Site, SiteMap, hash};
use cuinstr_runtime::sources::NoSources;
use proptest::prelude::*;

const SOURCE: &str =
    "#include \"a.h\"\n__global__ void gemm(float* c, int n)\n{\n\tfor (int i = 0; /* \u{e4}\u{1f600} */ i < n; )\n\t\tc[i] += 1.0f;\n}\n";

fn site(id: u64, kind: Kind, line: u32, column: u32) -> Site {
    Site {
        id: format!("{id:016x}"),
        kind,
        function: "gemm".into(),
        file: None,
        line,
        column,
        form: Form::CountDown,
        why: None,
        waiver: None,
    }
}

fn map(file: &str, source: &str, sites: Vec<Site>) -> SiteMap {
    let hash = format!("{:016x}", hash(hash(0, file.as_bytes()), source.as_bytes()));
    SiteMap { version: SiteMap::VERSION, file: file.into(), hash, polls_each: false, counts_fuel: false, sites }
}

fn gemm() -> SiteMap {
    map("src/gemm.cu", SOURCE, vec![site(0x10, Kind::Entry, 2, 17), site(0x20, Kind::For, 4, 2), site(0x31, Kind::Barrier, 5, 3)])
}

fn record(why: Why, site: u64, counts: &[(u64, u64)]) -> StopRecord {
    let mut sites = [SiteCount { site: 0, threads: 0 }; SITE_SLOTS];
    for (slot, (site, threads)) in sites.iter_mut().zip(counts) {
        *slot = SiteCount { site: *site, threads: *threads };
    }
    StopRecord {
        claimed: 7,
        published: 7,
        site,
        why: why as u32,
        late: 0,
        block: [3, 0, 0],
        thread: [31, 2, 0],
        start_ns: 0,
        fuel_used: 0,
        elapsed_ns: 2_000_013_500,
        elapsed_cycles: 0,
        reserved: 0,
        unlisted: 0,
        sites,
    }
}

const LAUNCHED: Launched<'_> = Launched {
    kernel: "gemm",
    grid: [64, 64, 1],
    block: [256, 1, 1],
    timeout_ns: Some(2_000_000_000),
    budget_cycles: None,
    fuel: None,
    flagged_at_deadline: false,
};

fn source(path: &str) -> Option<Vec<u8>> {
    (path == "src/gemm.cu").then(|| SOURCE.into())
}

#[track_caller]
fn says(report: &Report, expected: &str) {
    let text = report.to_string();
    assert!(text == expected, "{text}\n-- where this was expected\n{expected}");
}

#[test]
fn a_stopped_loop_is_shown_with_its_line() {
    let record = record(Why::Deadline, 0x20, &[(0x20, 131_072), (0x10, 1_000 * 256 + 32), (0x30, 12)]);
    let report = Report::new(&record, &LAUNCHED, &[gemm()], &source);
    says(
        &report,
        "kernel `gemm` was stopped: its deadline (2 s) passed
 --> src/gemm.cu:4:2
  |
4 |     for (int i = 0; /* ä😀 */ i < n; )
  |     ^^^ the first thread stopped at this `for` loop in `gemm`
  |
  = note: block (3, 0, 0), thread (31, 2, 0), 2 s after the kernel's start

threads  stopped at
256,032  src/gemm.cu:2:17  entry of kernel `gemm`
131,072  src/gemm.cu:4:2   `for` loop in `gemm`
     12  src/gemm.cu:5:3   barrier in `gemm`, and goes on

387,116 of 1,048,576 threads stopped; 1,000 of 4,096 blocks never began
",
    );
}

#[test]
fn without_the_source_the_place_is_named() {
    let mut record = record(Why::Flag, 0x31, &[(0x31, 1)]);
    record.elapsed_ns = 37_250;
    record.elapsed_cycles = 1_234_567;
    let report = Report::new(&record, &LAUNCHED, &[gemm()], &NoSources);
    says(
        &report,
        "kernel `gemm` was stopped: it was cancelled
--> src/gemm.cu:5:3
 = note: at the barrier in `gemm`
 = note: block (3, 0, 0), thread (31, 2, 0), 37.25 us after the kernel's start, 1,234,567 cycles after its block's
 = note: threads go on from there: leaving is not defined at that place

threads  stopped at
      1  src/gemm.cu:5:3  barrier in `gemm`, and goes on

1 of 1,048,576 threads stopped
",
    );
    let edited = |_: &str| Some(b"another text".to_vec());
    let report = Report::new(&record, &LAUNCHED, &[gemm()], &edited);
    assert_eq!(report.first.as_ref().map(|first| &first.line), Some(&SourceLine::Changed));
    assert!(report.to_string().contains("= note: the file is not the one that was compiled, so its line is not shown\n"), "{report}");
}

#[test]
fn the_slots_of_one_site_are_one_row() {
    let record = record(Why::Flag, 0x20, &[(0x20, 64), (0x40, 96), (0, 0), (0x20, 40)]);
    let report = Report::new(&record, &LAUNCHED, &[], &NoSources);
    let rows: Vec<_> = report.sites.iter().map(|row| (row.site.id.as_str(), row.threads)).collect();
    assert_eq!((rows, report.threads), (vec![("0000000000000020", 104), ("0000000000000040", 96)], 200));
}

#[test]
fn without_a_site_map_ids_are_shown() {
    let mut record = record(Why::Fuel, 0x1234_5678_9abc_def1, &[(0x1234_5678_9abc_def0, 96), (0x20, 4)]);
    record.unlisted = 33;
    let launched = Launched { fuel: Some(1), timeout_ns: None, ..LAUNCHED };
    says(
        &Report::new(&record, &launched, &[], &source),
        "kernel `gemm` was stopped: its fuel (1 iteration) was used up
 |
 = note: at site 0x123456789abcdef0, which no site map names
 = note: block (3, 0, 0), thread (31, 2, 0), 2 s after the kernel's start
 = note: threads go on from there: leaving is not defined at that place

threads  stopped at
     96  0x123456789abcdef0  no site map names it
      4  0x0000000000000020  no site map names it
     33  unlisted            at further sites, for which the record has no room

133 of 1,048,576 threads stopped
",
    );
}

#[test]
fn a_record_that_was_never_completed_says_so() {
    let mut record = record(Why::Deadline, 0x20, &[(0x20, 5)]);
    record.published = 0;
    let report = Report::new(&record, &LAUNCHED, &[gemm()], &source);
    assert_eq!((report.why, &report.first), (None, &None));
    says(
        &report,
        "kernel `gemm` was stopped for a reason that is not known
 |
 = note: its record was never completed: which thread stopped first is not known

threads  stopped at
      5  src/gemm.cu:4:2  `for` loop in `gemm`

5 of 1,048,576 threads stopped
",
    );
}

#[test]
fn a_flag_that_the_host_set_at_the_deadline_is_the_deadline() {
    let launched = Launched { flagged_at_deadline: true, ..LAUNCHED };
    let report = Report::new(&record(Why::Flag, 0x20, &[]), &launched, &[gemm()], &source);
    assert_eq!((report.why, report.limit), (Some(Why::Deadline), Some(2_000_000_000)));
    assert!(report.to_string().ends_with("for` loop in `gemm`\n  |\n  = note: block (3, 0, 0), thread (31, 2, 0), 2 s after the kernel's start\n0 of 1,048,576 threads stopped\n"), "{report}");
}

#[test]
fn many_sites_are_cut_to_those_with_the_most_threads() {
    let ids = (1..=SITE_SLOTS as u64).map(|index| index * 2);
    let file = "a/very/long/path/that/goes/on/through/many/folders/until/it/ends/in/kernels/gemm.cu";
    let sites = ids.clone().map(|id| site(id, Kind::While, id as u32, 1)).collect();
    let counts: Vec<_> = ids.map(|id| (id, if id == 64 { u64::MAX } else { id })).collect();
    let launched = Launched { grid: [u32::MAX; 3], block: [1024, 1, 1], ..LAUNCHED };
    let report = Report::new(&record(Why::Deadline, 2, &counts), &launched, &[map(file, "", sites)], &NoSources);
    let text = report.to_string();
    let table: Vec<&str> = text.lines().skip_while(|line| !line.contains("stopped at")).collect();
    assert_eq!(
        table[1],
        "18,446,744,073,709,551,615  …/on/through/many/folders/until/it/ends/in/kernels/gemm.cu:64:1   `while` loop in `gemm`"
    );
    assert_eq!(
        table[2],
        "                       128  …/on/through/many/folders/until/it/ends/in/kernels/gemm.cu:128:1  `while` loop in `gemm`"
    );
    assert_eq!(table[17], "                     2,386  at 48 more sites");
    assert_eq!(table.last(), Some(&"18,446,744,073,709,551,615 of 18,446,744,073,709,551,615 threads stopped"));
    assert_eq!(table.len(), 20);
    assert!(text.contains(file), "the place itself is shown whole: {text}");
    for all in [format!("{report:#}"), report.text().all_sites().to_string()] {
        assert_eq!(all.lines().filter(|line| line.contains("`while` loop")).count(), 1 + SITE_SLOTS);
    }
}

#[test]
fn each_kind_of_place_has_words_that_its_author_knows() {
    let said = [
        (Kind::For, "`for` loop in `gemm`"),
        (Kind::RangeFor, "range-based `for` loop in `gemm`"),
        (Kind::While, "`while` loop in `gemm`"),
        (Kind::Do, "`do … while` loop in `gemm`"),
        (Kind::MacroLoop, "loop behind a macro in `gemm`"),
        (Kind::Goto, "backward `goto` in `gemm`"),
        (Kind::Recursion, "entry of the recursive `gemm`"),
        (Kind::Entry, "entry of kernel `gemm`"),
        (Kind::Exit, "end of kernel `gemm`"),
        (Kind::Barrier, "barrier in `gemm`"),
        (Kind::AsmLoop, "loop of inline assembly in `gemm`"),
    ];
    for (kind, words) in said {
        let map = map("k.cu", "", vec![site(2, kind, 1, 1)]);
        let text = Report::new(&record(Why::Deadline, 2, &[(2, 1)]), &LAUNCHED, &[map], &NoSources).to_string();
        assert!(text.contains(&format!("k.cu:1:1  {words}\n")), "{text}");
    }
}

#[test]
fn colour_comes_only_when_asked_for_and_names_start_no_line_of_their_own() {
    let mut map = gemm();
    map.file = "src/\u{1b}[31mgemm\n.cu".into();
    let launched = Launched { kernel: "ge\nmm\u{1b}[0m", ..LAUNCHED };
    let report = Report::new(&record(Why::Deadline, 0x20, &[(0x20, 1)]), &launched, &[map], &NoSources);
    assert!(!report.to_string().contains('\u{1b}'), "{report}");
    assert!(report.to_string().starts_with("kernel `ge mm [0m` was stopped"), "{report}");
    assert!(report.text().colour(true).to_string().contains('\u{1b}'));
}

#[test]
fn as_data_it_has_names_that_stay() {
    let report =
        Report::new(&record(Why::Budget, 0x31, &[(0x31, 2)]), &Launched { budget_cycles: Some(9), ..LAUNCHED }, &[gemm()], &source);
    let value = serde_json::to_value(&report).expect("it is data");
    assert_eq!(value["why"], "budget");
    assert_eq!(value["limit"], 9);
    assert_eq!(value["first"]["site"]["id"], "0000000000000030");
    assert_eq!(value["first"]["site"]["goes_on"], true);
    assert_eq!(value["first"]["site"]["place"]["kind"], "barrier");
    assert_eq!(value["first"]["line"], serde_json::json!({ "text": "\t\tc[i] += 1.0f;" }));
    assert_eq!(value["sites"][0]["threads"], 2);
    assert_eq!(serde_json::from_value::<Report>(value).ok(), Some(report));
}

proptest! {
    #[test]
    fn any_record_is_shown(
        words in prop::collection::vec(any::<u64>(), 12),
        counts in prop::collection::vec((0..70_u64, any::<u64>()), 0..SITE_SLOTS),
        line in 0..9_u32,
        column in any::<u32>(),
        source in "(\\PC|\t|\r|\n|\u{1b}){0,80}",
        grid in any::<[u32; 3]>(),
        block in any::<[u32; 3]>(),
    ) {
        let mut record = record(Why::Deadline, words[0] % 70, &counts);
        record.why = words[1] as u32 % 6;
        record.published = if words[2] % 4 == 0 { words[2] as u32 } else { record.claimed };
        (record.elapsed_ns, record.elapsed_cycles, record.unlisted, record.reserved) = (words[3], words[4], words[5], words[6]);
        (record.block, record.thread) = (grid, block);
        let sites = (0..30).map(|id| site(id * 2, Kind::For, line, column % 100)).collect();
        let launched = Launched { grid, block, timeout_ns: Some(words[7]), fuel: Some(words[8]), ..LAUNCHED };
        let report = Report::new(&record, &launched, &[map("k.cu", &source, sites)], &|_: &str| Some(source.clone().into_bytes()));
        let plain = !report.to_string().contains('\u{1b}');
        prop_assert!(plain, "an escape reaches the terminal");
        prop_assert!(report.text().colour(true).all_sites().to_string().ends_with('\n'));
        let json = serde_json::to_string(&report).expect("it is data");
        prop_assert_eq!(serde_json::from_str::<Report>(&json).ok(), Some(report));
    }
}
