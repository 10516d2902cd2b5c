//! Counted loops in other loops that stand twice: as the user wrote them where they have few trips, and in strips.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr::options::{Limits, Options, Polls};
use cuinstr::rewrite_ptx;
use cuinstr::verify::verify_ptx;
use cuinstr_differential::simulated::run;
use cuinstr_harness::header::{Header, Place};
use cuinstr_simulate::Outcome;

/// Instructions that a launch may run.
const STEPS: u64 = 200_000;

/// Most trips of a loop that runs as the user wrote it.
const MOST_TRIPS: u32 = 16;

/// How an inner loop counts: its comparison, its integers, and what it adds.
#[derive(Debug, Clone, Copy)]
struct Way {
    comparison: &'static str,
    is_signed: bool,
    width: u32,
    step: i64,
}

impl Way {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (comparison, steps) in
            [("lt", [1, 3, 4]), ("le", [1, 2, 5]), ("gt", [-1, -3, -4]), ("ge", [-1, -2, -7]), ("ne", [1, -1, 4]), ("ne", [-4, 8, 3])]
        {
            for (is_signed, width, step) in
                steps.into_iter().flat_map(|step| [(true, 32, step), (false, 32, step), (true, 64, step), (false, 64, step)])
            {
                all.push(Self { comparison, is_signed, width, step });
            }
        }
        all
    }

    /// A thread that runs the inner loop twice from `a` to `b`, and writes what it came by. By `xor` it is no nest that stands twice.
    fn kernel(self) -> String {
        let Self { comparison, is_signed, width, step } = self;
        let kind = format!("{}{width}", if is_signed { 's' } else { 'u' });
        let low = if width == 64 { "cvt.u32.u64 %r3, %i;" } else { "mov.b32 %r3, %i;" };
        format!(
            ".version 9.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 out, .param .u{width} a, .param .u{width} b) {{
.reg .pred %p<3>; .reg .b32 %r<6>; .reg .b{width} %i, %a, %b; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [out]; ld.param.u{width} %a, [a]; ld.param.u{width} %b, [b]; mov.b32 %r1, 0; mov.b32 %r2, 2;
$O: xor.b{width} %i, %a, 0;
$L: {low} mad.lo.s32 %r1, %r1, 31, %r3; add.s{width} %i, %i, {step}; setp.{comparison}.{kind} %p1, %i, %b; @%p1 bra $L;
add.s32 %r2, %r2, -1; setp.ne.s32 %p2, %r2, 0; @%p2 bra $O; st.global.u32 [%rd1], %r1; ret; }}"
        )
    }

    fn largest(self) -> i128 {
        if self.is_signed { (1 << (self.width - 1)) - 1 } else { (1 << self.width) - 1 }
    }

    fn least(self) -> i128 {
        if self.is_signed { -(1 << (self.width - 1)) } else { 0 }
    }

    /// How often the loop runs from one number to another, if that is seldom.
    fn trips(self, from: i128, to: i128) -> Option<u32> {
        let size = 1_i128 << self.width;
        let mut at = from;
        (1..300).find(|_| {
            at = (at + i128::from(self.step) - self.least()).rem_euclid(size) + self.least();
            !match self.comparison {
                "lt" => at < to,
                "le" => at <= to,
                "gt" => at > to,
                "ge" => at >= to,
                _ => at != to,
            }
        })
    }

    /// Numbers near zero, and near both ends.
    fn numbers(self) -> Vec<i128> {
        let near = [0, 1, 3, 15, 16, 17, 64, 80];
        let all = near.into_iter().flat_map(|by| [by, -by, self.least() + by, self.largest() - by]);
        let mut all: Vec<i128> = all.filter(|number| (self.least()..=self.largest()).contains(number)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn polled(text: &str, options: &Options) -> String {
    let rewrite = rewrite_ptx(text.as_bytes(), options);
    assert_eq!(rewrite.original().as_deref(), Some(text.as_bytes()));
    String::from_utf8(rewrite.output.expect("it is PTX")).expect("it is text")
}

#[test]
fn a_brief_inner_loop_runs_as_it_was_written_and_a_long_one_in_strips() {
    let options = Options { path: "k.ptx".to_owned(), ..Options::default() };
    let (mut brief, mut long) = (0, 0);
    for way in Way::all() {
        let plain = way.kernel();
        let sound = polled(&plain, &options);
        assert!(verify_ptx(&sound).holds(), "{way:?}\n{sound}");
        let stands_twice = sound.contains("$__cuinstr_few");
        // By another step a loop may pass by its bound for ever.
        assert_eq!(stands_twice, way.comparison != "ne" || way.step.unsigned_abs().is_power_of_two(), "{way:?}");
        if !stands_twice {
            continue;
        }
        // The copy stands first.
        let marked = sound.replacen("mad.lo.s32 %r1, %r1, 31, %r3;", "mad.lo.s32 %r1, %r1, 31, %r3; add.s32 %r1, %r1, 0x9e3779b1;", 1);
        let numbers = way.numbers();
        for (from, to) in numbers.iter().flat_map(|from| numbers.iter().map(move |to| (*from, *to))) {
            let Some(trips) = way.trips(from, to) else { continue };
            let kind = format!("{}{}", if way.is_signed { 'i' } else { 'u' }, way.width);
            let header = format!(
                "//@ about: a loop\n//@ entry: k\n//@ grid: 1\n//@ block: 1\n//@ arg: u32[1] zero\n//@ arg: {kind} {from}\n//@ arg: {kind} {to}\n"
            );
            let header = Header::parse(&header, Place::Kernel).expect("a header");
            let left = |text: &str| run(text, &header, 1, STEPS).expect("it is PTX");
            let before = left(&plain);
            let after = left(&sound);
            assert_eq!(before.outcome, Some(Outcome::Completed));
            assert_eq!((after.outcome, &after.buffers), (before.outcome, &before.buffers), "{way:?}, {from} to {to}");
            let is_brief = left(&marked).buffers != before.buffers;
            assert!(!is_brief || trips <= MOST_TRIPS, "{way:?}, {from} to {to}: {trips}");
            if is_brief {
                brief += 1;
            } else {
                long += 1;
            }
            // Far from both ends few trips are enough.
            let inside = (way.least() + 200..way.largest() - 200).contains(&to);
            let comes_to = if way.step > 0 { from < to } else { from > to };
            assert!(is_brief || !inside || !comes_to || trips >= MOST_TRIPS, "{way:?}, {from} to {to}: {trips}");
        }
    }
    assert!(brief > 1000 && long > 1000, "{brief}, {long}");
}

#[test]
fn with_fuel_and_with_each_poll_no_inner_loop_stands_twice() {
    let text = Way { comparison: "lt", is_signed: true, width: 32, step: 1 }.kernel();
    let options = Options { path: "k.ptx".to_owned(), ..Options::default() };
    assert!(polled(&text, &options).contains("$__cuinstr_few"));
    let fuel = Options { limits: Limits { fuel: Some(1000), ..Limits::default() }, ..options.clone() };
    for options in [fuel, Options { polls: Polls::Each, ..options }] {
        assert!(!polled(&text, &options).contains("$__cuinstr_few"));
    }
}

/// What is known behind a copy's test must tell that a step over the bound does not wrap.
#[test]
fn loops_that_begin_at_another_loops_counter_are_proved() {
    let text = include_str!("../data/ptx/triangle.ptx");
    let output =
        rewrite_ptx(text.as_bytes(), &Options { path: "triangle.ptx".to_owned(), ..Options::default() }).output.expect("it is PTX");
    let output = String::from_utf8(output).expect("it is text");
    assert_eq!(output.matches("$__cuinstr_few").count() / 2, 2, "{output}");
    let report = verify_ptx(&output);
    assert!(report.holds(), "{:#?}", report.loops);
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
