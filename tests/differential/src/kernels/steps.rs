//! Steps of loops that are written in unusual ways.

use super::odd::{Odd, is_register};
use super::writer::{Kind, Writer};

impl Writer<'_> {
    /// A variable is changed in front of its loop, at times.
    pub(super) fn moves_off(&mut self, variable: &str, width: u32) {
        let by = self.random.of(&["1", "8", "357913941", "0x3ffffffe", "-1"]);
        let by = if width == 16 { "5" } else { by };
        match self.random.below(12) {
            0 => self.line(&format!("add.s{width} {variable}, {variable}, {by}")),
            1 => {
                let step = format!("add.s{width} {variable}, {variable}, {by}");
                self.rounds(&[step]);
            }
            2 => {
                let step = format!("add.s{width} {variable}, {variable}, 1");
                self.tangled(&step);
            }
            3 => {
                let predicate = self.condition();
                self.line(&format!("@{predicate} add.s{width} {variable}, {variable}, {by}"));
            }
            _ => {}
        }
    }

    /// Four rounds at most of a loop with a counter of its own.
    pub(super) fn rounds(&mut self, statements: &[String]) {
        let (head, counter, predicate) = (self.label(), self.register(Kind::Word), self.register(Kind::Predicate));
        let value = self.value();
        self.line(&format!("and.b32 {counter}, {value}, 3"));
        self.line(&format!("add.s32 {counter}, {counter}, 1"));
        self.place(&head);
        for statement in statements {
            self.line(statement);
        }
        self.line(&format!("add.s32 {counter}, {counter}, -1"));
        self.line(&format!("setp.ne.s32 {predicate}, {counter}, 0"));
        self.branch(&predicate, true, &head);
    }

    /// A statement in a cycle with two ways in, which goes round eight times at most.
    fn tangled(&mut self, statement: &str) {
        let (first, second, counter) = (self.label(), self.label(), self.register(Kind::Word));
        let (p, entry) = (self.register(Kind::Predicate), self.condition());
        let value = self.value();
        self.line(&format!("and.b32 {counter}, {value}, 3"));
        self.branch(&entry, true, &second);
        self.place(&first);
        if self.random.percent(50) {
            // Both ways in lead to one place, which leads back to both.
            let joint = self.label();
            self.mixes(1);
            self.jump(&joint);
            self.place(&second);
            self.mixes(1);
            self.place(&joint);
            self.line(statement);
            self.line(&format!("add.s32 {counter}, {counter}, -1"));
            self.line(&format!("setp.gt.s32 {p}, {counter}, 0"));
            let back = self.condition();
            self.line(&format!("and.pred {back}, {back}, {p}"));
            self.branch(&back, true, &first);
            self.branch(&p, true, &second);
            return;
        }
        let at = self.random.below(3);
        if at != 0 {
            self.line(statement);
        }
        self.place(&second);
        if at != 1 {
            self.line(statement);
        }
        self.line(&format!("add.s32 {counter}, {counter}, -1"));
        self.line(&format!("setp.gt.s32 {p}, {counter}, 0"));
        self.branch(&p, true, &first);
    }

    pub(super) fn odd_steps(&mut self, one: &Odd) {
        for _ in 0..self.random.of(&[1, 1, 1, 1, 1, 1, 2, 2, 3, 0]) {
            self.sum = None;
            if self.random.percent(15) {
                self.open();
                self.odd_step(one);
                self.close();
                self.sum = None;
            } else {
                self.odd_step(one);
            }
        }
    }

    fn odd_step(&mut self, one: &Odd) {
        let Odd { width, variable, bound, goes_up, step, .. } = one;
        let by: i32 = if *goes_up { 1 } else { -1 };
        let plain = format!("add.s{width} {variable}, {variable}, {step}");
        match self.random.below(22) {
            0..7 => self.line(&plain),
            7 => self.odd_sum(one),
            8 => {
                let predicate = self.condition();
                self.line(&format!("@{predicate} {plain}"));
            }
            9 => {
                let (predicate, over) = (self.condition(), self.label());
                self.branch(&predicate, true, &over);
                self.line(&plain);
                self.place(&over);
            }
            10 => {
                let (step, predicate) = (self.register(Kind::of(*width)), self.condition());
                self.line(&format!("selp.b{width} {step}, {by}, {}, {predicate}", 2 * by));
                self.line(&format!("add.s{width} {variable}, {variable}, {step}"));
            }
            11 => {
                let opcode = self.random.of(&["min.s", "max.s", "min.u", "max.u"]);
                self.line(&plain);
                self.line(&format!("{opcode}{width} {variable}, {variable}, {bound}"));
            }
            12 => self.rounds(&[plain]),
            13 | 14 => self.tangled(&plain),
            15 => self.line(&format!("sub.s{width} {variable}, {variable}, {}", -by)),
            16 => {
                let m = self.kept.m.clone();
                let step = self.resized(&m, *width);
                let opcode = if *goes_up { "add" } else { "sub" };
                self.line(&format!("{opcode}.u{width} {variable}, {variable}, {step}"));
            }
            17 => self.by_parts(variable, *width, by),
            18 => {
                let (predicate, m) = (self.condition(), self.kept.m.clone());
                let again = self.resized(&m, *width);
                self.line(&plain);
                self.line(&format!("@{predicate} mov.b{width} {variable}, {again}"));
            }
            19 => {
                let (small, sum) = (self.register(Kind::Half), self.register(Kind::Half));
                self.line(&format!("cvt.u16.u{width} {small}, {variable}"));
                self.line(&format!("add.s16 {sum}, {small}, {by}"));
                self.line(&format!("cvt.u{width}.u16 {variable}, {sum}"));
            }
            20 if is_register(bound) => {
                let predicate = self.condition();
                self.line(&plain);
                self.line(&format!("@{predicate} add.s{width} {bound}, {bound}, {}", -by));
            }
            _ => {
                let factor = self.random.of(&[1, 1, 3]);
                self.line(&format!("mad.lo.s{width} {variable}, {variable}, {factor}, {by}"));
            }
        }
    }

    /// A step by a sum that the variable holds later.
    pub(super) fn odd_sum(&mut self, one: &Odd) {
        let Odd { width, variable, step, .. } = one;
        let sum = self.register(Kind::of(*width));
        self.line(&format!("add.s{width} {sum}, {variable}, {step}"));
        if self.random.percent(50) {
            self.mixes(1);
        }
        self.line(&format!("mov.b{width} {variable}, {sum}"));
        self.sum = Some(sum);
    }

    /// Adds to the halves of a variable.
    fn by_parts(&mut self, variable: &str, width: u32, by: i32) {
        let (kind, half) = match width {
            64 => (Kind::Word, 32),
            32 if self.random.percent(50) => (Kind::Half, 16),
            _ => {
                let carried = self.register(Kind::Word);
                let word = self.low_word(variable, width);
                self.line(&format!("add.cc.u32 {word}, {word}, {by}"));
                self.line(&format!("addc.u32 {carried}, {word}, 0"));
                if width == 16 {
                    self.line(&format!("cvt.u16.u32 {variable}, {word}"));
                }
                return;
            }
        };
        let (low, high) = (self.register(kind), self.register(kind));
        self.line(&format!("mov.b{width} {{{low}, {high}}}, {variable}"));
        if half == 16 {
            self.line(&format!("add.s16 {low}, {low}, {by}"));
        } else if by < 0 {
            self.line(&format!("sub.cc.u32 {low}, {low}, {}", -by));
            self.line(&format!("subc.u32 {high}, {high}, 0"));
        } else {
            self.line(&format!("add.cc.u32 {low}, {low}, {by}"));
            self.line(&format!("addc.u32 {high}, {high}, 0"));
        }
        self.line(&format!("mov.b{width} {variable}, {{{low}, {high}}}"));
    }
}
