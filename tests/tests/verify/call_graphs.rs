//! Modules by chance: functions that call each other, by name and through pointers, with polls in some places. An oracle walks the blocks.
//!
//! No register decides anything, so what a thread can do depends on its block and on whether the flag is set. A function returns once the flag is
//! set if some way from its entry does without a poll (a least fixed point over all functions). A thread may run for ever if the blocks that it can
//! come to have a cycle of ways that are left then: to the next block, past a call that returns, or into a function that is called.

use crate::record::Record;
use cuinstr::verify::verify_ptx;
use cuinstr_harness::random::Random;
use std::fmt::Write;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Block {
    /// Goes either way.
    Either(usize, usize),
    Next(usize),
    /// Reads the flag and leaves, or goes on.
    Poll(usize),
    /// Calls a function, always or perhaps, and goes on.
    Call {
        callee: usize,
        guarded: bool,
        next: usize,
    },
    /// Calls any function whose address is taken.
    Pointer(usize),
    Return,
    Exit,
}

/// The first function is the kernel, which nothing calls.
#[derive(Debug)]
struct Module {
    functions: Vec<Vec<Block>>,
    /// Functions in the table of pointers, sorted.
    addressed: Vec<usize>,
}

fn module(random: &mut Random) -> Module {
    let count = 2 + random.below(5);
    let addressed: Vec<usize> = (1..count).filter(|function| *function == 1 || random.percent(30)).collect();
    let mut functions = Vec::new();
    for function in 0..count {
        let blocks = 1 + random.below(6);
        let way = |random: &mut Random, at: usize| {
            let ahead = (at + 1 + random.below(2)).min(blocks);
            if random.percent(75) { ahead } else { random.below(blocks) }
        };
        let mut body: Vec<Block> = (0..blocks)
            .map(|at| {
                // Mostly down, as in programs; up is recursion.
                let last = count - 1;
                let down = (function + 1 + random.below(2)).min(last);
                let callee = if random.percent(80) { down } else { 1 + random.below(last) };
                match random.below(10) {
                    0 | 1 => Block::Either(way(random, at), way(random, at)),
                    2 => Block::Next(way(random, at)),
                    3 | 4 => Block::Poll(way(random, at)),
                    5 | 6 => Block::Call { callee, guarded: random.percent(30), next: way(random, at) },
                    7 if random.percent(40) => Block::Pointer(way(random, at)),
                    8 if random.percent(30) => Block::Exit,
                    _ => Block::Poll(way(random, at)),
                }
            })
            .collect();
        body.push(Block::Return);
        functions.push(body);
    }
    Module { functions, addressed }
}

fn ptx(module: &Module) -> String {
    let mut text = String::from(".version 9.0\n.target sm_90\n.address_size 64\n.global .align 8 .b8 cuinstr_control_v1[1192];\n");
    for function in 1..module.functions.len() {
        let _ = writeln!(text, ".func f{function}();");
    }
    let table: Vec<String> = module.addressed.iter().map(|function| format!("f{function}")).collect();
    let _ = writeln!(text, ".global .align 8 .u64 table[{}] = {{{}}};", table.len(), table.join(", "));
    for (number, blocks) in module.functions.iter().enumerate() {
        let head = if number == 0 { ".visible .entry k".to_owned() } else { format!(".func f{number}") };
        let _ = writeln!(text, "{head}()\n{{\n.reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>;");
        for (at, block) in blocks.iter().enumerate() {
            let _ = writeln!(text, "$B{at}:");
            let either = "ld.volatile.global.u32 %r3, [%rd3];\nsetp.ne.u32 %p2, %r3, 0;\n";
            let _ = match block {
                Block::Either(one, two) => writeln!(text, "{either}@%p2 bra $B{one};\nbra $B{two};"),
                Block::Next(next) => writeln!(text, "bra.uni $B{next};"),
                Block::Poll(next) => writeln!(
                    text,
                    "ld.global.u64 %rd1, [cuinstr_control_v1+16];\nld.relaxed.sys.u32 %r1, [%rd1];\nld.global.u32 %r2, [cuinstr_control_v1+8];\n\
                     setp.eq.s32 %p1, %r1, %r2;\n@%p1 exit;\nbra $B{next};"
                ),
                Block::Call { callee, guarded: true, next } => writeln!(text, "{either}@%p2 call f{callee};\nbra $B{next};"),
                Block::Call { callee, next, .. } => writeln!(text, "call.uni f{callee};\nbra $B{next};"),
                Block::Pointer(next) => writeln!(
                    text,
                    "ld.global.u64 %rd2, [table];\n{{\nP{at}: .callprototype _ ();\ncall %rd2, (), P{at};\n}}\nbra $B{next};"
                ),
                Block::Return => writeln!(text, "ret;"),
                Block::Exit => writeln!(text, "exit;"),
            };
        }
        text.push_str("}\n");
    }
    text
}

type Place = (usize, usize);

impl Module {
    /// Blocks of the function that come next, by which functions return, and functions that are entered.
    fn ways(&self, (function, block): Place, stopped: bool, returns: &[bool]) -> (Vec<usize>, Vec<usize>) {
        let call = |callees: Vec<usize>, may_skip: bool, next: usize| {
            let comes_back = may_skip || callees.iter().any(|callee| returns[*callee]);
            (if comes_back { vec![next] } else { vec![] }, callees)
        };
        match self.functions[function][block] {
            Block::Either(one, two) => (vec![one, two], vec![]),
            Block::Next(next) => (vec![next], vec![]),
            Block::Poll(next) => (if stopped { vec![] } else { vec![next] }, vec![]),
            Block::Call { callee, guarded, next } => call(vec![callee], guarded, next),
            Block::Pointer(next) => call(self.addressed.clone(), false, next),
            Block::Return | Block::Exit => (vec![], vec![]),
        }
    }

    /// The functions that return, with the flag set or not.
    fn returning(&self, stopped: bool) -> Vec<bool> {
        let mut returns = vec![false; self.functions.len()];
        loop {
            let before = returns.clone();
            for (function, blocks) in self.functions.iter().enumerate() {
                let (mut found, mut work) = (vec![0], vec![0]);
                while let Some(block) = work.pop() {
                    for next in self.ways((function, block), stopped, &before).0 {
                        if !found.contains(&next) {
                            found.push(next);
                            work.push(next);
                        }
                    }
                }
                returns[function] = found.iter().any(|block| blocks[*block] == Block::Return);
            }
            if returns == before {
                return returns;
            }
        }
    }

    /// Blocks that come next, in the function and in those that it enters.
    fn next(&self, place: Place, stopped: bool, returns: &[bool]) -> Vec<Place> {
        let (blocks, callees) = self.ways(place, stopped, returns);
        let within = blocks.into_iter().map(|block| (place.0, block));
        within.chain(callees.into_iter().map(|callee| (callee, 0))).collect()
    }

    /// Whether a thread may run for ever once the flag is set.
    fn is_endless(&self) -> bool {
        let returns = self.returning(false);
        // The proof asks of each function, whether the kernel comes to it or not.
        let mut left: Vec<Place> = (0..self.functions.len()).map(|function| (function, 0)).collect();
        let mut work = left.clone();
        while let Some(place) = work.pop() {
            for next in self.next(place, false, &returns) {
                if !left.contains(&next) {
                    left.push(next);
                    work.push(next);
                }
            }
        }
        let returns = self.returning(true);
        loop {
            let goes_on = |place: &Place| self.next(*place, true, &returns).iter().any(|next| left.contains(next));
            let still: Vec<Place> = left.iter().copied().filter(goes_on).collect();
            if still.len() == left.len() {
                return !left.is_empty();
            }
            left = still;
        }
    }
}

#[test]
fn no_module_that_can_go_on_for_ever_is_proved() {
    let count = std::env::var("CUINSTR_GRAPHS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000_u64);
    let (mut ends, mut proved, mut record) = (0, 0, Record::default());
    for seed in 0..count {
        let module = module(&mut Random::new(seed));
        let (endless, report) = (module.is_endless(), verify_ptx(&ptx(&module)));
        assert_eq!(report.faults, [], "module {seed}: {}", ptx(&module));
        assert!(!(endless && report.holds()), "module {seed}: {module:?}\n{}", ptx(&module));
        record.add(&report);
        ends += u64::from(!endless);
        proved += u64::from(report.holds());
    }
    // A function that is asked of itself is taken to return.
    assert!(ends > count / 10 && ends < count * 9 / 10, "{ends} of {count} end");
    assert!(proved * 100 > ends * 70, "{proved} of {ends}");
    record.check("graphs_calls", &["CUINSTR_GRAPHS"]);
}
