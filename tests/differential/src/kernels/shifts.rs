//! Loops that halve or double a register, and some that never would come to their end so.

use super::counted::Order;
use super::odd::is_register;
use super::walks::{Drawn, Step, Walk, Written};
use super::writer::{Kind, Writer};
use super::{MOST_M, MOST_N, THREADS};

impl Writer<'_> {
    /// Such a loop. Gives the most iterations.
    pub(super) fn shifts(&mut self, budget: u64) -> u64 {
        let step = match self.random.below(9) {
            0..2 => Step::Shifts("shr.u"),
            2 => Step::Shifts("shr.b"),
            3 => Step::Shifts("shr.s"),
            4 | 5 => Step::Halves,
            _ => Step::Shifts("shl.b"),
        };
        let (width, signed) = (self.random.of(&[32, 32, 32, 32, 64, 64, 16]), self.random.percent(50));
        let walk = if step == Step::Shifts("shl.b") { self.doubling(width, signed, step) } else { self.halving(width, signed, step) };
        self.walks(walk, budget)
    }

    fn halving(&mut self, width: u32, signed: bool, step: Step) -> Walk {
        let order = match self.random.below(10) {
            0..5 => Order::NotEqual,
            5..8 => Order::Greater,
            8 => Order::GreaterEqual,
            _ => self.random.of(&Order::ALL),
        };
        let (n, in_register) = (self.kept.n.clone(), self.random.percent(15));
        let start = match self.random.below(11) {
            0 | 1 => self.special("%ntid.x", THREADS, width),
            2 => self.special("WARP_SZ", 32, width),
            3 => self.up_to(&n, MOST_N, width),
            4 => self.bits(255, 0, width),
            5 => {
                let number = self.random.of(&[-1, -5, -1000, i64::MIN, i64::MIN >> 32, 0x8000, 0x7fff_ffff, 1 << 40]);
                self.fixed(number, (width, signed), false)
            }
            6 => {
                // Below zero.
                let bits = self.bits(63, 1, width);
                let name = self.register(Kind::of(width));
                self.line(&format!("neg.s{width} {name}, {}", bits.name));
                Drawn { name, of: bits.of.iter().map(|value| value.wrapping_neg()).collect() }
            }
            7 => self.fixed(1000, (width, signed), false),
            _ => self.any(width),
        };
        let bound = match (order, self.random.below(10)) {
            (_, 0) => self.bits(7, 0, width),
            (_, 1) => {
                let number = self.random.of(&[-1, 1, 2, 16]);
                self.fixed(number, (width, signed), in_register)
            }
            (Order::NotEqual, _) => self.fixed(0, (width, signed), in_register),
            (Order::GreaterEqual, _) => self.fixed(1, (width, signed), in_register),
            _ => {
                let number = self.random.of(&[0, 0, 0, 1, 3, 31]);
                self.fixed(number, (width, signed), in_register)
            }
        };
        let by = if step == Step::Halves { Drawn { name: "1".to_owned(), of: vec![1] } } else { self.amount(width) };
        Walk { width, signed, order, start, by, bound, step }
    }

    fn doubling(&mut self, width: u32, signed: bool, step: Step) -> Walk {
        let order = match self.random.below(10) {
            0..6 => Order::Less,
            6 | 7 => Order::LessEqual,
            8 => Order::NotEqual,
            _ => self.random.of(&Order::ALL),
        };
        let (n, m) = (self.kept.n.clone(), self.kept.m.clone());
        let start = match self.random.below(12) {
            0..5 => {
                let number = self.random.of(&[1, 1, 1, 2, 3, 5]);
                self.fixed(number, (width, signed), false)
            }
            5 | 6 => self.bits(15, 1, width),
            // It may be zero, and stays so.
            7 => self.bits(7, 0, width),
            8 => self.up_to(&m, MOST_M, width),
            9 => {
                let number = self.random.of(&[0, -1, -3, 0x4000_0001]);
                self.fixed(number, (width, signed), false)
            }
            10 => self.special("%ntid.x", THREADS, width),
            _ => self.any(width),
        };
        let bound = match self.random.below(12) {
            0 | 1 => self.special("WARP_SZ", 32, width),
            2 | 3 => self.special("%ntid.x", THREADS, width),
            4 => self.up_to(&n, MOST_N, width),
            5 => self.bits(255, 0, width),
            6 => {
                // Products may pass these by, and become zero.
                let number = self.random.of(&[0x2000_0000, 0x4000_0000, 0x7fff_ffff, 0xffff_ffff, 40_000, i64::MAX, -1]);
                self.fixed(number, (width, signed), false)
            }
            7 => self.any(width),
            _ => {
                let (number, in_register) = (self.random.of(&[8, 32, 32, 100, 1024, 4096]), self.random.percent(30));
                self.fixed(number, (width, signed), in_register)
            }
        };
        let by = self.amount(width);
        Walk { width, signed, order, start, by, bound, step }
    }

    /// What is shifted by: registers of 32 bits, or literals. More than all bits are as many.
    fn amount(&mut self, width: u32) -> Drawn {
        match self.random.below(14) {
            0 => self.bits(3, 1, 32),
            // It may be zero.
            1 => self.bits(3, 0, 32),
            2 => {
                let m = self.kept.m.clone();
                self.up_to(&m, MOST_M, 32)
            }
            3 => {
                let number = self.random.of(&[0, i64::from(width) - 1, i64::from(width), 40, 100]);
                let in_register = self.random.percent(50);
                self.fixed(number, (32, true), in_register)
            }
            4 => {
                let number = self.random.of(&[1, 1, 2, 5]);
                self.fixed(number, (32, true), true)
            }
            _ => {
                let number = self.random.of(&[1, 1, 1, 1, 2, 3, 4, 7, 15, 20]);
                self.fixed(number, (32, true), false)
            }
        }
    }

    /// The step of such a loop.
    pub(super) fn shifted(&mut self, one: &Written) {
        let (width, variable, by) = (one.walk.width, one.variable.clone(), one.walk.by.name.clone());
        if one.limit.is_some() && self.random.percent(45) {
            return self.shifted_otherwise(one);
        }
        let next = if self.random.percent(30) { self.register(Kind::of(width)) } else { variable.clone() };
        match one.walk.step {
            Step::Shifts(opcode) => self.line(&format!("{opcode}{width} {next}, {variable}, {by}")),
            _ => self.half(&variable, &next, width, width - 1),
        }
        if next != variable {
            if self.random.percent(30) {
                self.mixes(1);
            }
            self.line(&format!("mov.b{width} {variable}, {next}"));
            self.sum = Some(next);
        }
    }

    /// A number and its sign bit, shifted.
    fn half(&mut self, variable: &str, next: &str, width: u32, bit: u32) {
        let (sign, sum) = (self.register(Kind::of(width)), self.register(Kind::of(width)));
        self.line(&format!("shr.u{width} {sign}, {variable}, {bit}"));
        let operands = if self.random.percent(50) { format!("{variable}, {sign}") } else { format!("{sign}, {variable}") };
        self.line(&format!("add.s{width} {sum}, {operands}"));
        self.line(&format!("shr.s{width} {next}, {sum}, 1"));
    }

    /// Nearly that: it may never come to its end.
    fn shifted_otherwise(&mut self, one: &Written) {
        let (width, variable) = (one.walk.width, one.variable.clone());
        let (by, bound) = (one.walk.by.name.clone(), one.walk.bound.name.clone());
        let opcode = if let Step::Shifts(opcode) = one.walk.step { opcode } else { "shr.s" };
        let plain = format!("{opcode}{width} {variable}, {variable}, {by}");
        match self.random.below(11) {
            0 => {
                let predicate = self.condition();
                self.line(&format!("@{predicate} {plain}"));
            }
            1 => {
                let (predicate, over) = (self.condition(), self.label());
                self.branch(&predicate, true, &over);
                self.line(&plain);
                self.place(&over);
            }
            2 => {
                // Of another register.
                let other = self.any(width);
                self.line(&format!("{opcode}{width} {variable}, {}, {by}", other.name));
            }
            3 => [&plain, &plain].into_iter().for_each(|plain| self.line(plain)),
            4 => {
                self.line(&plain);
                let bit = self.random.of(&["1", "4", "0x4000"]);
                self.line(&format!("or.b{width} {variable}, {variable}, {bit}"));
            }
            5 => {
                let predicate = self.condition();
                self.line(&plain);
                self.line(&format!("@{predicate} xor.b{width} {variable}, {variable}, 3"));
            }
            6 if is_register(&bound) => {
                self.line(&plain);
                let step = self.random.of(&["shl.b", "add.u", "sub.u"]);
                self.line(&format!("{step}{width} {bound}, {bound}, 1"));
            }
            7 if is_register(&by) => {
                let (predicate, value) = (self.condition(), self.value());
                self.line(&plain);
                self.line(&format!("@{predicate} and.b32 {by}, {value}, 1"));
            }
            // Not the sign.
            8 => self.half(&variable, &variable, width, width - 2),
            9 => {
                let (sign, sum) = (self.register(Kind::of(width)), self.register(Kind::of(width)));
                let start = one.walk.start.name.clone();
                self.line(&format!("shr.u{width} {sign}, {variable}, {}", width - 1));
                self.line(&format!("add.s{width} {sum}, {variable}, {start}"));
                self.line(&format!("add.s{width} {sum}, {sum}, {sign}"));
                self.line(&format!("shr.s{width} {variable}, {sum}, 1"));
            }
            _ => {
                // The other way.
                let other = if opcode == "shl.b" { "shr.u" } else { "shl.b" };
                self.line(&format!("{other}{width} {variable}, {variable}, {by}"));
            }
        }
    }
}
