//! Graphs by chance, with polls and counters, against an oracle that walks every state.
//!
//! The oracle knows the blocks, not the PTX: it walks all states (block, counters, whether what was read of the flag is from after the stop)
//! that a thread can be in, and asks if some state after the stop can come round to itself. Where the proof holds, there must be none. Where
//! no counter decides anything and each poll stands in one block, the two must agree exactly.

use crate::kernel;
use crate::record::Record;
use cuinstr::verify::verify_ptx;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What a block does before control leaves it by one of two ways, which may be the same.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Block {
    /// Goes either way.
    Either,
    /// Reads the flag and leaves, or goes on the first way.
    Poll,
    /// Reads the flag weakly and does the same.
    WeakPoll,
    /// Reads the flag and goes either way.
    Read,
    /// Leaves if what was read last was a stop, or goes on the first way.
    Check,
    /// Sets a counter.
    Set(usize, i64),
    /// Adds to a counter.
    Add(usize, i64),
    /// The first way if the counter is less than, greater than, or not that; else the second.
    Less(usize, i64),
    Greater(usize, i64),
    Not(usize, i64),
    /// Sets a counter to the other, or to what they differ by: the other less itself.
    Copy(usize),
    Apart(usize),
    /// The first way if the first counter is less than the other, or not that; else the second.
    LessOther,
    NotOther,
    /// Takes the smaller of both, without its sign, from a counter, which stays above 0 by that or becomes 0.
    Charge(usize),
    /// Takes the lowest two bits of the other; or the other rounded up to a multiple of 4, by its opposite's lowest bits.
    Low(usize),
    RoundUp(usize),
    /// Twice the other, without its lowest bit shifted back.
    There(usize),
    /// Half of it, without its sign.
    Halve(usize),
    /// The first way if the counter is not the other down to a multiple of 4, in a register that nobody else reads.
    NotMasked(usize),
    /// Sets a counter to the smaller of the other, without its sign, and 3.
    Smaller(usize),
    /// Sets a counter to the lowest two bits of what comes behind the other.
    LowOfNext(usize),
    /// Adds what does not change while the thread runs: 1 or 2.
    AddFixed(usize),
    /// Adds twice that and one less, which was made in front: 1 or 3.
    AddDerived(usize),
    /// The first way if what does not change is 1.
    FixedIsOne,
    /// The first way if a counter is not the other, or else the second; then adds to it.
    NotThenAdd(usize, i64),
    /// Sets a counter to what a division of the other by 3 leaves over, as compilers write it.
    Remainder(usize),
    /// The first way if the counter is not the other and what does not change, or twice the other and that, in registers that nobody else reads.
    NotPast(usize),
    NotPastTwice(usize),
    /// Sets a counter to the other less one, by a multiple of 64 bits.
    LessOneWide(usize),
    /// Adds the other twice, as three times less once.
    AddTwice(usize),
    /// Sets a counter to the smaller of the first one and how far that is from the other, without their signs, as the larger of their opposites.
    Nearer(usize),
    /// Ends.
    Return,
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        // Marsaglia's xorshift64.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

type Graph = Vec<(Block, usize, usize)>;

fn graph(chance: &mut Chance, counters: bool, relations: bool) -> Graph {
    let count = 2 + chance.below(9);
    let mut graph: Graph = Vec::new();
    for at in 0..count {
        let kinds = if relations {
            45
        } else if counters {
            13
        } else {
            5
        };
        let (counter, value) = (chance.below(2), [-1, 0, 1, 2, 3, 4][chance.below(6)]);
        let step = [1, 1, -1, -1, 2, -2, 0, 3][chance.below(8)];
        let block = match chance.below(kinds) {
            0 | 1 => Block::Either,
            2 | 3 => Block::Poll,
            4 if counters => [Block::WeakPoll, Block::Read, Block::Check, Block::Check][chance.below(4)],
            4 => [Block::WeakPoll, Block::Return][chance.below(2)],
            5 => Block::Set(counter, value),
            6 | 7 => Block::Add(counter, step),
            8 | 9 => Block::Less(counter, value),
            10 => Block::Greater(counter, value),
            11 => Block::Not(counter, value),
            13 => Block::Copy(counter),
            14 => Block::Apart(counter),
            15 => Block::LessOther,
            16 | 17 => Block::NotOther,
            18 => Block::Charge(counter),
            19 => Block::Low(counter),
            20 => Block::RoundUp(counter),
            21 => Block::There(counter),
            22 | 23 => Block::Halve(counter),
            24 | 25 => Block::NotMasked(counter),
            26 => Block::Smaller(counter),
            27 => Block::LowOfNext(counter),
            28 | 29 => Block::AddFixed(counter),
            30 => Block::AddDerived(counter),
            31 => Block::FixedIsOne,
            32..=34 => Block::NotThenAdd(counter, step),
            35 | 36 => Block::Remainder(counter),
            37 | 38 => Block::NotPast(counter),
            39 => Block::NotPastTwice(counter),
            40 => Block::LessOneWide(counter),
            41 => Block::AddTwice(counter),
            42..=44 => Block::Nearer(counter),
            _ => Block::Return,
        };
        // Mostly ahead, and often to the next, as code is.
        let way = |chance: &mut Chance| if chance.below(3) > 0 { (at + 1 + chance.below(2)).min(count - 1) } else { chance.below(count) };
        let (one, two) = (way(chance), way(chance));
        graph.push((block, one, two));
    }
    graph
}

/// Over 80 lines: an arm for each kind of block, beside its text.
fn ptx(graph: &Graph) -> String {
    let mut body = String::from(
        "\t.reg .b32 %q<44>;\n\tmov.u32 %r20, 0;\n\tmov.u32 %r21, 3;\n\tmov.u32 %r10, 0;\n\tld.global.u32 %r11, [cuinstr_control_v1+8];\n",
    );
    body.push_str("\tld.global.u32 %r9, [%rd9];\n\tand.b32 %r8, %r9, 1;\n\tadd.s32 %r22, %r8, 1;\n\tshl.b32 %r23, %r22, 1;\n\tadd.s32 %r24, %r23, -1;\n");
    for (at, (block, one, two)) in graph.iter().enumerate() {
        let _ = writeln!(body, "$B{at}:");
        let read = |weak: bool| {
            let strength = if weak { "global" } else { "relaxed.sys" };
            format!("\tld.global.u64 %rd1, [cuinstr_control_v1+16];\n\tld.{strength}.u32 %r10, [%rd1];\n")
        };
        let leave = "\tsetp.eq.s32 %p1, %r10, %r11;\n\t@%p1 exit;\n";
        let either = "\tld.global.u32 %r9, [%rd9];\n\tsetp.ne.s32 %p5, %r9, 0;\n\t@%p5 bra";
        let compare = |order: &str, counter: &usize, value: &i64| {
            format!("\tsetp.{order}.s32 %p2, %r2{counter}, {value};\n\t@%p2 bra $B{one};\n\tbra $B{two};")
        };
        let text = match block {
            Block::Either => format!("{either} $B{one};\n\tbra $B{two};"),
            Block::Poll => format!("{}{leave}\tbra $B{one};", read(false)),
            // What a weak load reads is not followed by a later check: it goes to a register of its own.
            Block::WeakPoll => format!("{}{leave}\tbra $B{one};", read(true)).replace("%r10", "%r12"),
            Block::Read => format!("{}{either} $B{one};\n\tbra $B{two};", read(false)),
            Block::Check => format!("{leave}\tbra $B{one};"),
            Block::Set(counter, value) => format!("\tmov.u32 %r2{counter}, {value};\n\tbra $B{one};"),
            Block::Add(counter, step) => format!("\tadd.s32 %r2{counter}, %r2{counter}, {step};\n\tbra $B{one};"),
            Block::Less(counter, value) => compare("lt", counter, value),
            Block::Greater(counter, value) => compare("gt", counter, value),
            Block::Not(counter, value) => compare("ne", counter, value),
            Block::Copy(counter) => format!("\tmov.u32 %r2{counter}, %r2{};\n\tbra $B{one};", 1 - counter),
            Block::Apart(counter) => format!("\tsub.s32 %r2{counter}, %r2{}, %r2{counter};\n\tbra $B{one};", 1 - counter),
            Block::LessOther => format!("\tsetp.lt.s32 %p2, %r20, %r21;\n\t@%p2 bra $B{one};\n\tbra $B{two};"),
            Block::NotOther => format!("\tsetp.ne.s32 %p2, %r20, %r21;\n\t@%p2 bra $B{one};\n\tbra $B{two};"),
            Block::Charge(counter) => format!(
                "\tmin.u32 %r15, %r20, %r21;\n\tmax.u32 %r16, %r2{counter}, %r15;\n\tsub.s32 %r2{counter}, %r16, %r15;\n\tbra $B{one};"
            ),
            Block::Low(counter) => format!("\tand.b32 %r2{counter}, %r2{}, 3;\n\tbra $B{one};", 1 - counter),
            Block::RoundUp(counter) => {
                let other = 1 - counter;
                format!("\tneg.s32 %r15, %r2{other};\n\tand.b32 %r16, %r15, 3;\n\tadd.s32 %r2{counter}, %r2{other}, %r16;\n\tbra $B{one};")
            }
            Block::There(counter) => {
                format!("\tshl.b32 %r15, %r2{}, 1;\n\tshr.u32 %r2{counter}, %r15, 1;\n\tbra $B{one};", 1 - counter)
            }
            Block::Halve(counter) => format!("\tshr.u32 %r2{counter}, %r2{counter}, 1;\n\tbra $B{one};"),
            Block::NotMasked(counter) => {
                let other = 1 - counter;
                format!(
                    "\tand.b32 %r3{at}, %r2{other}, -4;\n\tsetp.ne.s32 %p2, %r2{counter}, %r3{at};\n\t@%p2 bra $B{one};\n\tbra $B{two};"
                )
            }
            Block::Smaller(counter) => format!("\tmin.u32 %r2{counter}, %r2{}, 3;\n\tbra $B{one};", 1 - counter),
            Block::LowOfNext(counter) => {
                format!("\tadd.s32 %r15, %r2{}, 1;\n\tand.b32 %r2{counter}, %r15, 3;\n\tbra $B{one};", 1 - counter)
            }
            Block::AddDerived(counter) => format!("\tadd.s32 %r2{counter}, %r2{counter}, %r24;\n\tbra $B{one};"),
            Block::FixedIsOne => format!("\tsetp.eq.s32 %p2, %r22, 1;\n\t@%p2 bra $B{one};\n\tbra $B{two};"),
            Block::NotThenAdd(counter, step) => {
                format!(
                    "\tsetp.ne.s32 %p2, %r20, %r21;\n\tadd.s32 %r2{counter}, %r2{counter}, {step};\n\t@%p2 bra $B{one};\n\tbra $B{two};"
                )
            }
            Block::Remainder(counter) => {
                // Each in registers of its own.
                let (other, [upper, sign, quotient, multiple]) = (1 - counter, [0, 1, 2, 3].map(|nth| format!("%q{}", 4 * at + nth)));
                format!(
                    "\tmul.hi.s32 {upper}, %r2{other}, 1431655766;\n\tshr.u32 {sign}, {upper}, 31;\n\tadd.s32 {quotient}, {upper}, {sign};\n\
                     \tmul.lo.s32 {multiple}, {quotient}, 3;\n\tsub.s32 %r2{counter}, %r2{other}, {multiple};\n\tbra $B{one};"
                )
            }
            Block::NotPast(counter) => format!(
                "\tadd.s32 %r3{at}, %r2{}, %r22;\n\tsetp.ne.s32 %p2, %r2{counter}, %r3{at};\n\t@%p2 bra $B{one};\n\tbra $B{two};",
                1 - counter
            ),
            Block::NotPastTwice(counter) => format!(
                "\tshl.b32 %q{}, %r2{}, 1;\n\tadd.s32 %r3{at}, %q{0}, %r22;\n\tsetp.ne.s32 %p2, %r2{counter}, %r3{at};\n\t@%p2 bra $B{one};\n\tbra $B{two};",
                4 * at,
                1 - counter
            ),
            Block::LessOneWide(counter) => format!(
                "\tmul.wide.u32 %rd2, %r2{}, 4;\n\tadd.s64 %rd3, %rd2, -4;\n\tshr.u64 %rd4, %rd3, 2;\n\tcvt.u32.u64 %r2{counter}, %rd4;\n\tbra $B{one};",
                1 - counter
            ),
            Block::AddTwice(counter) => {
                format!("\tmad.lo.s32 %r15, %r2{}, 3, %r2{counter};\n\tsub.s32 %r2{counter}, %r15, %r2{0};\n\tbra $B{one};", 1 - counter)
            }
            Block::Nearer(counter) => format!(
                "\tneg.s32 %r15, %r20;\n\tsub.s32 %r16, %r20, %r21;\n\tmax.u32 %r17, %r16, %r15;\n\tneg.s32 %r2{counter}, %r17;\n\tbra $B{one};"
            ),
            Block::AddFixed(counter) => format!("\tadd.s32 %r2{counter}, %r22, %r2{counter};\n\tbra $B{one};"),
            Block::Return => "\tret;".to_owned(),
        };
        body.push_str(&text);
        body.push('\n');
    }
    body.push_str("\tret;");
    kernel(&body)
}

/// A counter beyond this has so far to go that its loop counts as endless.
const FAR: i64 = 40;
/// Stands for what lost its sign: just below 2^31, where whatever is added may wrap round.
const HUGE: i64 = 2 * FAR;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    block: usize,
    counters: [i64; 2],
    /// What does not change while the thread runs.
    fixed: i64,
    /// What was read last is a stop.
    seen: bool,
    stopped: bool,
}

/// Whether a thread may go on for ever after the stop, for sure. Over 80 lines: an arm for each kind of block, in the order of [`ptx`].
fn is_endless(graph: &Graph) -> bool {
    let next = |state: State| -> Vec<State> {
        let (block, one, two) = graph[state.block];
        // What lies far away is not known exactly: such a way is not followed, which can only make a graph look as if it ended.
        let is_far = |counter: usize| state.counters[counter].abs() >= FAR;
        match block {
            Block::LessOther | Block::NotOther | Block::NotMasked(_) | Block::NotThenAdd(..) if is_far(0) && is_far(1) => return vec![],
            Block::NotMasked(counter) if is_far(counter) && state.counters[1 - counter] < 4 - FAR => return vec![],
            Block::Low(counter) | Block::LowOfNext(counter) if is_far(1 - counter) => return vec![],
            Block::RoundUp(counter) | Block::There(counter) | Block::Smaller(counter) if is_far(1 - counter) => return vec![],
            Block::Remainder(counter) if is_far(1 - counter) => return vec![],
            Block::NotPast(_) | Block::NotPastTwice(_) | Block::AddTwice(_) | Block::Nearer(_) if is_far(0) && is_far(1) => return vec![],
            // What is added may bring the one to where the other is.
            Block::NotPast(counter) | Block::NotPastTwice(counter)
                if is_far(counter) && state.counters[1 - counter].abs() >= (FAR - 2) / 2
                    || is_far(1 - counter) && state.counters[counter].abs() >= FAR - 2 =>
            {
                return vec![];
            }
            Block::AddTwice(_) | Block::Nearer(_) if is_far(0) || is_far(1) => return vec![],
            Block::LessOneWide(counter) if state.counters[1 - counter] == HUGE => return vec![],
            Block::Add(counter, _) | Block::NotThenAdd(counter, _) | Block::AddFixed(counter) | Block::AddDerived(counter)
                if state.counters[counter] == HUGE =>
            {
                return vec![];
            }
            Block::Apart(_) | Block::Charge(_) if state.counters.contains(&HUGE) => return vec![],
            Block::Halve(counter) if is_far(counter) => return vec![],
            _ => {}
        }
        let to = |block: usize| State { block, ..state };
        // A stop may come at any moment.
        let mut states = match block {
            Block::Either => vec![to(one), to(two)],
            Block::Poll if state.stopped => vec![],
            Block::Poll => vec![State { seen: false, ..to(one) }],
            Block::WeakPoll => vec![to(one)],
            Block::Read => [one, two].iter().map(|way| State { seen: state.stopped, ..to(*way) }).collect(),
            Block::Check if state.seen => vec![],
            Block::Check => vec![to(one)],
            Block::Set(counter, value) => {
                let mut next = to(one);
                next.counters[counter] = value;
                vec![next]
            }
            Block::Add(counter, step) => {
                let mut next = to(one);
                next.counters[counter] = (next.counters[counter] + step).clamp(-FAR, FAR);
                vec![next]
            }
            Block::Less(counter, value) => vec![to(if state.counters[counter] < value { one } else { two })],
            Block::Greater(counter, value) => vec![to(if state.counters[counter] > value { one } else { two })],
            Block::Not(counter, value) => vec![to(if state.counters[counter] == value { two } else { one })],
            Block::Copy(counter) => {
                let mut next = to(one);
                next.counters[counter] = next.counters[1 - counter];
                vec![next]
            }
            Block::Apart(counter) => {
                let mut next = to(one);
                next.counters[counter] = (next.counters[1 - counter] - next.counters[counter]).clamp(-FAR, FAR);
                vec![next]
            }
            Block::LessOther => vec![to(if state.counters[0] < state.counters[1] { one } else { two })],
            Block::NotOther => vec![to(if state.counters[0] == state.counters[1] { two } else { one })],
            Block::Charge(counter) => {
                let mut next = to(one);
                // As unsigned numbers: what is negative is larger than all that is not.
                let unsigned = |value: i64| if value < 0 { value + (1 << 32) } else { value };
                let charge = unsigned(state.counters[0]).min(unsigned(state.counters[1]));
                let left = unsigned(state.counters[counter]).max(charge) - charge;
                next.counters[counter] = if left > 1 << 31 { left - (1 << 32) } else { left }.clamp(-FAR, FAR);
                vec![next]
            }
            Block::NotMasked(counter) => {
                let other = state.counters[1 - counter];
                vec![to(if state.counters[counter] == other - other.rem_euclid(4) { two } else { one })]
            }
            Block::AddFixed(counter) | Block::AddDerived(counter) => {
                let mut next = to(one);
                let by = if block == Block::AddFixed(counter) { state.fixed } else { 2 * state.fixed - 1 };
                next.counters[counter] = (next.counters[counter] + by).clamp(-FAR, FAR);
                vec![next]
            }
            Block::FixedIsOne => vec![to(if state.fixed == 1 { one } else { two })],
            Block::NotThenAdd(counter, step) => {
                let mut next = to(if state.counters[0] == state.counters[1] { two } else { one });
                next.counters[counter] = (next.counters[counter] + step).clamp(-FAR, FAR);
                vec![next]
            }
            Block::Low(counter) | Block::LowOfNext(counter) | Block::RoundUp(counter) | Block::There(counter) | Block::Smaller(counter) => {
                let mut next = to(one);
                let other = state.counters[1 - counter];
                let value = match block {
                    Block::Low(_) => other.rem_euclid(4),
                    Block::LowOfNext(_) => (other + 1).rem_euclid(4),
                    Block::Smaller(_) => other.rem_euclid(1 << 32).min(3),
                    Block::RoundUp(_) => other + (-other).rem_euclid(4),
                    // A sign is lost on the way.
                    _ => (other * 2).rem_euclid(1 << 32) / 2,
                };
                next.counters[counter] = if value > 1 << 29 { HUGE } else { value.clamp(-FAR, FAR) };
                vec![next]
            }
            Block::Remainder(counter) => {
                let mut next = to(one);
                next.counters[counter] = next.counters[1 - counter] % 3;
                vec![next]
            }
            Block::NotPast(counter) | Block::NotPastTwice(counter) => {
                let other = state.counters[1 - counter];
                let end = if block == Block::NotPast(counter) { other } else { 2 * other } + state.fixed;
                vec![to(if state.counters[counter] == end { two } else { one })]
            }
            Block::LessOneWide(counter) => {
                let mut next = to(one);
                next.counters[counter] = (next.counters[1 - counter] - 1).clamp(-FAR, FAR);
                vec![next]
            }
            Block::AddTwice(counter) => {
                let mut next = to(one);
                next.counters[counter] = (next.counters[counter] + 2 * next.counters[1 - counter]).clamp(-FAR, FAR);
                vec![next]
            }
            Block::Nearer(counter) => {
                let mut next = to(one);
                let [first, second] = next.counters;
                let unsigned = |value: i64| value.rem_euclid(1 << 32);
                let nearer = -if unsigned(first - second) >= unsigned(-first) { first - second } else { -first };
                next.counters[counter] = nearer.clamp(-FAR, FAR);
                vec![next]
            }
            Block::Halve(counter) => {
                let mut next = to(one);
                let half = next.counters[counter].rem_euclid(1 << 32) / 2;
                next.counters[counter] = if half > 1 << 29 { HUGE } else { half.clamp(-FAR, FAR) };
                vec![next]
            }
            Block::Return => vec![],
        };
        if !state.stopped {
            states.push(State { stopped: true, ..state });
        }
        states
    };
    let mut work: Vec<State> =
        [1, 2].into_iter().map(|fixed| State { block: 0, counters: [0, 3], fixed, seen: false, stopped: false }).collect();
    let mut found: BTreeSet<State> = work.iter().copied().collect();
    while let Some(state) = work.pop() {
        work.extend(next(state).into_iter().filter(|next| found.insert(*next)));
    }
    // What has no way on is taken away until nothing changes: what is left goes on for ever.
    let mut left: BTreeSet<State> = found.into_iter().filter(|state| state.stopped).collect();
    loop {
        let dead: Vec<State> = left.iter().copied().filter(|state| !next(*state).iter().any(|next| left.contains(next))).collect();
        if dead.is_empty() {
            return !left.is_empty();
        }
        for state in dead {
            left.remove(&state);
        }
    }
}

/// What asks for other graphs than the record holds.
const ASKED: [&str; 2] = ["CUINSTR_GRAPHS", "CUINSTR_GRAPHS_SEED"];

/// How many graphs; `CUINSTR_GRAPHS` asks for more than a test run has time for.
fn how_many() -> usize {
    std::env::var("CUINSTR_GRAPHS").ok().and_then(|count| count.parse().ok()).unwrap_or(2_000)
}

/// Where chance begins; `CUINSTR_GRAPHS_SEED` names others, so that many processes look at different graphs.
fn chance(seed: u64) -> Chance {
    let more = std::env::var("CUINSTR_GRAPHS_SEED").ok().and_then(|more| more.parse::<u64>().ok()).unwrap_or(0);
    // The generator must not begin with zero, which it never leaves.
    Chance((seed ^ more.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1))
}

#[test]
fn graphs_with_polls_alone_are_judged_exactly() {
    let mut chance = chance(0x9e37_79b9_7f4a_7c15);
    let (mut endless, mut record) = (0, Record::default());
    for number in 0..how_many() {
        let graph = graph(&mut chance, false, false);
        let truth = is_endless(&graph);
        let report = verify_ptx(&ptx(&graph));
        assert_eq!(report.holds(), !truth, "graph {number}: {graph:?}");
        record.add(&report);
        endless += usize::from(truth);
    }
    assert!(endless > how_many() / 10 && endless < how_many() * 9 / 10, "{endless}");
    record.check("graphs_polls", &ASKED);
}

#[test]
fn no_graph_that_can_go_on_for_ever_is_proved() {
    let mut chance = chance(0xd134_2543_de82_ef95);
    let (mut proved, mut ends, mut record) = (0, 0, Record::default());
    for number in 0..how_many() {
        let graph = graph(&mut chance, true, false);
        let (truth, report) = (is_endless(&graph), verify_ptx(&ptx(&graph)));
        let holds = report.holds();
        record.add(&report);
        assert!(!(truth && holds), "graph {number}: {graph:?}");
        ends += usize::from(!truth);
        proved += usize::from(holds);
    }
    // Most of those that end are proved.
    assert!(proved * 100 > ends * 90, "{proved} of {ends}");
    record.check("graphs_counters", &ASKED);
}

#[test]
fn no_graph_of_counters_that_depend_on_each_other_is_proved_if_it_can_go_on_for_ever() {
    let mut chance = chance(0x8538_eceb_bd45_6ea3);
    let (mut proved, mut ends, mut record) = (0, 0, Record::default());
    for number in 0..how_many() {
        let graph = graph(&mut chance, true, true);
        let (truth, report) = (is_endless(&graph), verify_ptx(&ptx(&graph)));
        let holds = report.holds();
        record.add(&report);
        assert!(!(truth && holds), "graph {number}: {graph:?}");
        ends += usize::from(!truth);
        proved += usize::from(holds);
    }
    // What counters make of each other by three and more operations is proved less often. Of few graphs the share is chance.
    println!("related: proves {proved} of {ends}");
    assert!(ends < 300 || proved * 100 > ends * 65, "{proved} of {ends}");
    record.check("graphs_relations", &ASKED);
}

#[test]
fn what_a_round_began_with_is_not_taken_for_what_the_next_one_begins_with() {
    // Found by chance: 3 less a counter, which the next round began with, was taken for the same as that counter.
    let graph = vec![
        (Block::Charge(0), 2, 2),
        (Block::Less(1, -1), 3, 3),
        (Block::Less(1, 3), 4, 5),
        (Block::Poll, 4, 5),
        (Block::Apart(0), 5, 6),
        (Block::NotOther, 4, 6),
        (Block::Greater(1, 4), 6, 4),
    ];
    assert!(is_endless(&graph) && !verify_ptx(&ptx(&graph)).holds());
}

#[test]
fn values_that_never_come_to_rest_are_given_up() {
    // Number 89,536 of 100,000 by chance: what is named anew at each passage went round in it for ever, and with it the proof.
    let graph = vec![
        (Block::Not(0, 3), 2, 1),
        (Block::NotOther, 2, 3),
        (Block::Either, 4, 3),
        (Block::NotOther, 4, 5),
        (Block::There(1), 5, 5),
        (Block::Either, 2, 5),
    ];
    assert!(is_endless(&graph) && !verify_ptx(&ptx(&graph)).holds());
}

#[test]
fn a_block_is_looked_at_again_where_one_way_to_it_changes_what_it_brings() {
    // Number 63,426 by chance: what one way brought was among what all had brought together, and what it did by itself was not asked again.
    let graph = vec![
        (Block::NotMasked(1), 2, 0),
        (Block::NotOther, 3, 1),
        (Block::NotMasked(1), 4, 4),
        (Block::FixedIsOne, 5, 9),
        (Block::Either, 6, 6),
        (Block::Set(1, -1), 6, 7),
        (Block::Not(1, -1), 7, 8),
        (Block::NotOther, 8, 6),
        (Block::AddDerived(0), 9, 6),
        (Block::Set(0, 3), 7, 6),
    ];
    assert!(is_endless(&graph) && !verify_ptx(&ptx(&graph)).holds());
}

#[test]
fn what_wraps_round_does_not_stay_far_away() {
    // By chance: -1 without its sign is 2^31 - 1, and with 3 added less than 1, so each round asks. The oracle had it stay above.
    let graph = vec![
        (Block::NotThenAdd(1, 3), 1, 4),
        (Block::Add(0, 1), 2, 7),
        (Block::NotThenAdd(0, -2), 5, 3),
        (Block::Poll, 1, 5),
        (Block::Less(0, 4), 5, 6),
        (Block::LessOther, 9, 7),
        (Block::NotThenAdd(0, 1), 0, 8),
        (Block::Poll, 8, 9),
        (Block::RoundUp(1), 9, 9),
        (Block::There(1), 6, 9),
    ];
    assert!(!is_endless(&graph) && verify_ptx(&ptx(&graph)).holds());
}
