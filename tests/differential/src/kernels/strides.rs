//! Loops that add one register to their variable several times in an iteration, as compilers unroll them, and some that nearly do.

use super::counted::Order;
use super::odd::is_register;
use super::walks::{Drawn, Step, Walk, Written};
use super::writer::{Kind, Writer};
use super::{MOST_M, MOST_N, THREADS};

impl Writer<'_> {
    /// Such a loop. Gives the most iterations.
    pub(super) fn strides(&mut self, budget: u64) -> u64 {
        let (width, signed) = (self.random.of(&[32, 32, 32, 32, 32, 64, 64, 16]), self.random.percent(60));
        let order = match self.random.below(12) {
            0..7 => Order::Less,
            7..9 => Order::LessEqual,
            9 => Order::NotEqual,
            _ => self.random.of(&Order::ALL),
        };
        let times = self.random.of(&[1, 2, 2, 3, 4, 4, 4, 4, 4, 4, 8, 16, 17, 20]);
        let (start, by, bound) =
            (self.stride_start((width, signed)), self.stride_step((width, signed)), self.stride_bound((width, signed)));
        self.walks(Walk { width, signed, order, start, by, bound, step: Step::Adds(times) }, budget)
    }

    fn stride_start(&mut self, (width, signed): (u32, bool)) -> Drawn {
        let (thread, n) = (self.kept.thread.clone(), self.kept.n.clone());
        match self.random.below(12) {
            0..3 => self.up_to(&thread, THREADS - 1, width),
            3 | 4 => {
                let number = self.random.of(&[7, 64, -8, -1000]);
                self.fixed(number, (width, signed), false)
            }
            5 => self.bits(31, 0, width),
            6 => self.up_to(&n, MOST_N, width),
            7 => {
                // Sums go round soon.
                let number = self.random.of(&[i64::MAX, 0x7fff_ff00, 0x7fff_fff0, 0xffff_fff0, -4, 0x7ff0, 0xfff0]);
                self.fixed(number, (width, signed), false)
            }
            8 => self.any(width),
            _ => self.fixed(0, (width, signed), false),
        }
    }

    /// A register: zero in some cases, below zero in others.
    fn stride_step(&mut self, (width, signed): (u32, bool)) -> Drawn {
        let (n, m) = (self.kept.n.clone(), self.kept.m.clone());
        match self.random.below(12) {
            0..3 => self.special("%ntid.x", THREADS, width),
            3 => {
                // Blocks may be any number.
                let (threads, blocks, word) = (self.register(Kind::Word), self.register(Kind::Word), self.register(Kind::Word));
                self.line(&format!("mov.u32 {threads}, %ntid.x"));
                self.line(&format!("mov.u32 {blocks}, %nctaid.x"));
                self.line(&format!("mul.lo.s32 {word}, {threads}, {blocks}"));
                Drawn { name: self.resized(&word, width), of: Vec::new() }
            }
            4 | 5 => {
                let number = self.random.of(&[1, 3, 64, 1000]);
                self.fixed(number, (width, signed), true)
            }
            6 => {
                let number =
                    self.random.of(&[0, -1, -64, 65_536, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000, 0x7fff_ffff, i64::MIN]);
                self.fixed(number, (width, signed), true)
            }
            7 => self.up_to(&m, MOST_M, width),
            8 => self.bits(3, 0, width),
            9 => self.up_to(&n, MOST_N, width),
            10 => self.any(width),
            _ => self.bits(7, 1, width),
        }
    }

    fn stride_bound(&mut self, (width, signed): (u32, bool)) -> Drawn {
        let n = self.kept.n.clone();
        match self.random.below(12) {
            0 | 1 => self.up_to(&n, MOST_N, width),
            2 | 3 => {
                let (word, times) = (self.register(Kind::Word), self.random.of(&[64_u32, 100, 700]));
                self.line(&format!("mul.lo.s32 {word}, {n}, {times}"));
                Drawn { name: self.resized(&word, width), of: (0..=MOST_N).map(|n| u64::from(n * times)).collect() }
            }
            4 => self.bits(0xfff, 0, width),
            5 => {
                let number = self.random.of(&[i64::MAX, 0x7fff_ffff, 0x7fff_fff0, 0xffff_ffff, -1, 0x7fff, 0, -100]);
                self.fixed(number, (width, signed), false)
            }
            6 => self.any(width),
            _ => {
                let (number, in_register) = (self.random.of(&[64, 100, 1000, 4096, 20_000]), self.random.percent(40));
                self.fixed(number, (width, signed), in_register)
            }
        }
    }

    /// The step of such a loop.
    pub(super) fn adds(&mut self, one: &Written, times: u32) {
        let (width, variable, by) = (one.walk.width, one.variable.clone(), one.walk.by.name.clone());
        // In the place of which addition something else stands.
        let breaks = if one.limit.is_some() && self.random.percent(35) { self.random.below(times as usize) } else { usize::MAX };
        let in_place = self.random.percent(10);
        let moves = self.random.percent(15);
        let mut from = variable.clone();
        for nth in 0..times as usize {
            let is_last = nth + 1 == times as usize;
            let to = if in_place || is_last && !moves { variable.clone() } else { self.register(Kind::of(width)) };
            if nth == breaks {
                self.adds_otherwise(one, &to, &from);
            } else {
                let operands = if self.random.percent(25) { format!("{by}, {from}") } else { format!("{from}, {by}") };
                let sign = self.random.of(&["s", "s", "u"]);
                self.line(&format!("add.{sign}{width} {to}, {operands}"));
            }
            if !is_last && self.random.percent(20) {
                // What unrolled iterations do.
                let hash = self.kept.hash.clone();
                let low = self.low_word(&to, width);
                self.line(&format!("mad.lo.u32 {hash}, {hash}, 31, {low}"));
            }
            if one.limit.is_some() && !is_last && self.random.percent(4) {
                // One of the sums is tested.
                self.sum = Some(to.clone());
            }
            from = to;
        }
        if from != variable {
            self.line(&format!("mov.b{width} {variable}, {from}"));
        }
        if self.sum.is_none() {
            self.sum = Some(from);
        }
    }

    /// Nearly an addition of the step.
    fn adds_otherwise(&mut self, one: &Written, to: &str, from: &str) {
        let width = one.walk.width;
        let (by, bound, variable) = (&one.walk.by.name, &one.walk.bound.name, &one.variable);
        let plain = format!("add.s{width} {to}, {from}, {by}");
        match self.random.below(11) {
            0 => {
                let other = self.any(width);
                self.line(&format!("add.s{width} {to}, {from}, {}", other.name));
            }
            1 => {
                // The same, in another register.
                let other = self.register(Kind::of(width));
                self.line(&format!("mov.b{width} {other}, {by}"));
                self.line(&format!("add.s{width} {to}, {from}, {other}"));
            }
            2 => {
                let number = self.random.of(&["1", "0", "-1", "64"]);
                self.line(&format!("add.s{width} {to}, {from}, {number}"));
            }
            3 => self.line(&format!("sub.s{width} {to}, {from}, {by}")),
            4 => {
                let predicate = self.condition();
                self.line(&format!("mov.b{width} {to}, {from}"));
                self.line(&format!("@{predicate} {plain}"));
            }
            5 => {
                self.line(&plain);
                let step = self.random.of(&["add.s", "sub.s", "shl.b"]);
                self.line(&format!("{step}{width} {by}, {by}, 1"));
            }
            6 => {
                let predicate = self.condition();
                self.line(&plain);
                self.line(&format!("@{predicate} mov.b{width} {by}, 0"));
            }
            7 if is_register(bound) => {
                self.line(&plain);
                let bound = bound.clone();
                self.line(&format!("add.s{width} {bound}, {bound}, {by}"));
            }
            8 => self.line(&format!("add.s{width} {to}, {from}, {from}")),
            9 => self.line(&format!("add.s{width} {to}, {variable}, {by}")),
            _ => self.line(&format!("add.s{width} {to}, {by}, {by}")),
        }
    }
}
