//! Statements that are no loops.

use super::writer::{Kind, Writer};

impl Writer<'_> {
    /// Statements in all of which a thread iterates so often at most. Gives the most iterations.
    pub(super) fn statements(&mut self, budget: u64) -> u64 {
        let mut cost = 0;
        for _ in 0..=self.random.below(3) {
            let left = budget.saturating_sub(cost);
            cost += match self.random.below(20) {
                0..=9 => {
                    let count = 1 + self.random.below(3);
                    self.mixes(count);
                    0
                }
                10..=12 => self.choice(left),
                13 => self.memory(),
                14 => self.own_memory(),
                15 if self.uniform && self.shared.is_some() => self.exchange(),
                16 if self.uniform && !self.leaves() => self.votes(),
                15 | 17 if left > 3 && self.loops.len() < 4 => self.repeats(left),
                18 => self.called(left),
                19 => self.jumps_away(),
                _ => {
                    self.mixes(1);
                    0
                }
            };
        }
        cost
    }

    /// Mixes what is at hand into what the thread keeps.
    pub(super) fn mixes(&mut self, count: usize) {
        for _ in 0..count {
            self.mix();
        }
    }

    /// Over 80 lines: a table with an arm for each.
    fn mix(&mut self) {
        let value = self.value();
        let (hash, other, long, float) = (self.kept.hash.clone(), self.kept.other.clone(), self.kept.long.clone(), self.kept.float.clone());
        let number = 1 + self.random.below(60_000);
        match self.random.below(16) {
            0 => self.line(&format!("mad.lo.u32 {hash}, {hash}, {}, {value}", 2 * number + 1)),
            1 => self.line(&format!("xor.b32 {hash}, {hash}, {value}")),
            2 => self.line(&format!("shf.l.wrap.b32 {other}, {other}, {hash}, {}", number % 32)),
            3 => self.line(&format!("add.s32 {other}, {value}, {other}")),
            4 => {
                let wide = self.register(Kind::Long);
                self.line(&format!("mul.wide.u32 {wide}, {hash}, {value}"));
                self.line(&format!("xor.b64 {long}, {long}, {wide}"));
            }
            5 => {
                let wide = self.register(Kind::Long);
                self.line(&format!("cvt.s64.s32 {wide}, {value}"));
                self.line(&format!("mad.lo.s64 {long}, {long}, {}, {wide}", 2 * number + 1));
            }
            6 => {
                let (word, part) = (self.register(Kind::Word), self.register(Kind::Float));
                self.line(&format!("and.b32 {word}, {value}, 1023"));
                self.line(&format!("cvt.rn.f32.u32 {part}, {word}"));
                self.line(&format!("fma.rn.f32 {float}, {float}, 0f3F000000, {part}"));
            }
            7 => {
                let word = self.register(Kind::Word);
                let opcode = self.random.of(&["popc.b32", "clz.b32", "brev.b32", "not.b32", "bfind.u32"]);
                self.line(&format!("{opcode} {word}, {value}"));
                self.line(&format!("mad.lo.u32 {other}, {other}, 33, {word}"));
            }
            8 => {
                let (word, divisor) = (self.register(Kind::Word), self.register(Kind::Word));
                let opcode = self.random.of(&["div.u32", "rem.u32"]);
                self.line(&format!("or.b32 {divisor}, {other}, 1"));
                self.line(&format!("{opcode} {word}, {value}, {divisor}"));
                self.line(&format!("xor.b32 {hash}, {hash}, {word}"));
            }
            9 => {
                let opcode = self.random.of(&["min.s32", "max.u32", "sub.s32", "and.b32", "or.b32"]);
                let word = self.register(Kind::Word);
                self.line(&format!("{opcode} {word}, {hash}, {value}"));
                self.line(&format!("add.u32 {other}, {other}, {word}"));
            }
            10 => {
                let predicate = self.condition();
                self.line(&format!("selp.b32 {other}, {hash}, {other}, {predicate}"));
                self.line(&format!("@!{predicate} add.u32 {hash}, {hash}, {number}"));
            }
            11 => self.line(&format!("lop3.b32 {hash}, {hash}, {value}, {other}, {}", number % 256)),
            12 => self.line(&format!("prmt.b32 {other}, {value}, {other}, 0x{:x}", number % 0x8000)),
            13 => self.line(&format!("bfe.u32 {other}, {hash}, {}, 17", number % 15)),
            14 => {
                let (half, word) = (self.register(Kind::Half), self.register(Kind::Word));
                self.line(&format!("cvt.u16.u32 {half}, {value}"));
                self.line(&format!("mul.lo.u16 {half}, {half}, {}", number % 251 + 2));
                self.line(&format!("cvt.u32.u16 {word}, {half}"));
                self.line(&format!("add.s32 {hash}, {hash}, {word}"));
            }
            _ => {
                self.line(&format!("add.cc.u32 {hash}, {hash}, {value}"));
                self.line(&format!("addc.u32 {other}, {other}, {}", number % 77));
            }
        }
    }

    /// A predicate of what the thread has computed.
    pub(super) fn condition(&mut self) -> String {
        let (predicate, value) = (self.register(Kind::Predicate), self.value());
        let number = self.random.below(15);
        if self.random.percent(20) {
            let bound = self.random.of(&["0f43800000", "0f44000000", "0f3F800000", "0f44800000"]);
            let order = self.random.of(&["lt", "gt", "leu", "geu"]);
            let float = self.kept.float.clone();
            self.line(&format!("setp.{order}.f32 {predicate}, {float}, {bound}"));
        } else if self.random.percent(30) {
            let order = self.random.of(&["lt.s32", "gt.s32", "le.u32", "hi.u32", "eq.s32"]);
            let hash = self.kept.hash.clone();
            self.line(&format!("setp.{order} {predicate}, {value}, {hash}"));
        } else {
            let word = self.register(Kind::Word);
            let order = self.random.of(&["lt.u32", "gt.s32", "ne.b32", "eq.u32"]);
            self.line(&format!("and.b32 {word}, {value}, 15"));
            self.line(&format!("setp.{order} {predicate}, {word}, {number}"));
        }
        predicate
    }

    /// One way or another.
    fn choice(&mut self, budget: u64) -> u64 {
        let uniform = std::mem::replace(&mut self.uniform, false);
        let predicate = self.condition();
        let (over, end) = (self.label(), self.label());
        let when = self.random.percent(50);
        self.branch(&predicate, when, &over);
        let mut cost = self.nested(budget / 2);
        if self.random.percent(50) {
            self.jump(&end);
            self.place(&over);
            cost = cost.max(self.nested(budget / 2));
            self.place(&end);
        } else {
            self.place(&over);
        }
        self.uniform = uniform;
        cost
    }

    /// Statements in a scope, at times.
    fn nested(&mut self, budget: u64) -> u64 {
        let scope = self.random.percent(25);
        let known = self.readable.len();
        if scope {
            self.open();
        }
        self.mixes(1);
        let cost = if self.random.percent(40) { self.statements(budget) } else { 0 };
        self.readable.truncate(known);
        if scope {
            self.close();
        }
        cost
    }

    /// A word of the launch's input at a place that the thread computes.
    pub(super) fn loaded(&mut self, at: &str) -> String {
        let (index, word) = (self.register(Kind::Word), self.register(Kind::Word));
        let (wide, address) = (self.register(Kind::Long), self.register(Kind::Long));
        let data = self.kept.data.clone();
        let opcode = self.random.of(&["ld.global.u32", "ld.global.u32", "ld.global.nc.u32", "ld.volatile.global.u32"]);
        self.line(&format!("and.b32 {index}, {at}, 1023"));
        self.line(&format!("mul.wide.u32 {wide}, {index}, 4"));
        self.line(&format!("add.s64 {address}, {data}, {wide}"));
        self.line(&format!("{opcode} {word}, [{address}]"));
        word
    }

    fn memory(&mut self) -> u64 {
        let value = self.value();
        let word = self.loaded(&value);
        let hash = self.kept.hash.clone();
        self.line(&format!("xor.b32 {hash}, {hash}, {word}"));
        0
    }

    /// Words that only this thread reads and writes.
    fn own_memory(&mut self) -> u64 {
        let (slot, hash, other) = (self.kept.slot.clone(), self.kept.hash.clone(), self.kept.other.clone());
        let at = 16 + 4 * self.random.below(4);
        if self.random.percent(40) {
            let word = self.register(Kind::Word);
            self.line(&format!("ld.global.u32 {word}, [{slot}+{at}]"));
            self.line(&format!("add.s32 {other}, {other}, {word}"));
        }
        self.line(&format!("st.global.u32 [{slot}+{at}], {hash}"));
        0
    }

    /// Fills an array in shared memory, a word for each thread.
    pub(super) fn shares(&mut self) {
        let name = format!("shared{}", self.seed);
        self.declare(&format!("\t.shared .align 4 .b32 {name}[64];\n"));
        let (address, base) = (self.register(Kind::Word), self.register(Kind::Word));
        let (thread, hash) = (self.kept.thread.clone(), self.kept.hash.clone());
        self.line(&format!("mov.u32 {base}, {name}"));
        self.line(&format!("mad.lo.s32 {address}, {thread}, 4, {base}"));
        self.line(&format!("st.shared.u32 [{address}], {hash}"));
        self.line("bar.sync 0");
        self.shared = Some(name);
    }

    /// Threads of the block exchange words.
    fn exchange(&mut self) -> u64 {
        let Some(name) = self.shared.clone() else { return 0 };
        let (address, base, word) = (self.register(Kind::Word), self.register(Kind::Word), self.register(Kind::Word));
        let (thread, hash, other) = (self.kept.thread.clone(), self.kept.hash.clone(), self.kept.other.clone());
        let by = 1 + self.random.below(63);
        let barrier = self.random.of(&["bar.sync 0", "bar.sync 0", "barrier.sync 0", "bar.sync 1, 64"]);
        self.line(barrier);
        self.line(&format!("mov.u32 {base}, {name}"));
        self.line(&format!("mad.lo.s32 {address}, {thread}, 4, {base}"));
        self.line(&format!("st.shared.u32 [{address}], {hash}"));
        self.line(barrier);
        self.line(&format!("xor.b32 {address}, {thread}, {by}"));
        self.line(&format!("mad.lo.s32 {address}, {address}, 4, {base}"));
        self.line(&format!("ld.shared.u32 {word}, [{address}]"));
        self.line(&format!("add.s32 {other}, {other}, {word}"));
        0
    }

    /// What a whole warp does together.
    fn votes(&mut self) -> u64 {
        let (hash, other) = (self.kept.hash.clone(), self.kept.other.clone());
        let word = self.register(Kind::Word);
        let by = 1 + self.random.below(30);
        match self.random.below(5) {
            0 => {
                let way = self.random.of(&[("bfly", 31), ("down", 31), ("up", 0), ("idx", 31)]);
                self.line(&format!("shfl.sync.{}.b32 {word}, {hash}, {by}, {}, -1", way.0, way.1));
            }
            1 => {
                let predicate = self.condition();
                self.line(&format!("vote.sync.ballot.b32 {word}, {predicate}, 0xffffffff"));
            }
            2 => {
                let (predicate, all) = (self.condition(), self.register(Kind::Predicate));
                let way = self.random.of(&["any", "all", "uni"]);
                self.line(&format!("vote.sync.{way}.pred {all}, {predicate}, -1"));
                self.line(&format!("selp.b32 {word}, {by}, {hash}, {all}"));
            }
            3 => {
                let low = self.register(Kind::Word);
                self.line(&format!("and.b32 {low}, {hash}, 3"));
                self.line(&format!("match.any.sync.b32 {word}, {low}, -1"));
            }
            _ => {
                self.line("bar.warp.sync -1");
                self.line(&format!("shfl.sync.bfly.b32 {word}, {other}, 16, 31, 0xffffffff"));
            }
        }
        self.line(&format!("xor.b32 {hash}, {hash}, {word}"));
        0
    }

    /// Out of a loop, to its next iteration, or out of the function, where a condition holds.
    fn jumps_away(&mut self) -> u64 {
        let free = self.loops.iter().rev().take_while(|one| one.may).count();
        let leaves = self.leaves() && !self.uniform && self.random.percent(if free == 0 { 20 } else { 30 });
        if free == 0 && !leaves {
            self.mixes(1);
            return 0;
        }
        let predicate = self.condition();
        if leaves {
            let over = self.label();
            // Few threads at a time.
            let second = self.condition();
            self.line(&format!("and.pred {predicate}, {predicate}, {second}"));
            self.branch(&predicate, false, &over);
            self.leave();
            self.place(&over);
            return 0;
        }
        let at = self.loops.len() - 1 - self.random.below(free);
        let jumps = self.loops[at].clone();
        let to = jumps.next.filter(|_| self.random.percent(50)).unwrap_or(jumps.out);
        let when = self.random.percent(50);
        self.branch(&predicate, when, &to);
        0
    }
}
