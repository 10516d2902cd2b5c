//! Loops whose trips nothing computes: shifts, searches, cycles with two ways in, and branches by a table.

use super::writer::{Jumps, Kind, Writer};

impl Writer<'_> {
    /// A loop. Gives the most iterations.
    pub(super) fn repeats(&mut self, budget: u64) -> u64 {
        if budget < 40 {
            return self.counted(budget);
        }
        let uniform = self.uniform;
        let choice = self.random.below(56);
        // Which threads go on depends on what they have computed.
        self.uniform &= choice < 16;
        let cost = match choice {
            0..15 => self.counted(budget),
            15 => self.nest(budget),
            16 | 17 => self.halves(budget),
            18 => self.rest(budget),
            19 => self.searches(budget),
            20 => self.follows(budget),
            21 => self.two_ways_in(budget),
            22 | 23 => self.dispatches(budget),
            24 => self.threaded(budget),
            25 => self.fractions(budget),
            26 => self.meets(budget),
            27 => self.doubles(budget),
            28 => self.local_array(),
            29 => self.shared_latch(budget),
            30..35 => self.at_times_in_scope(20, |writer| writer.shifts(budget)),
            35..42 => self.at_times_in_scope(20, |writer| writer.strides(budget)),
            _ => self.odd(budget),
        };
        self.uniform = uniform;
        cost
    }

    fn begins(&mut self) -> [String; 3] {
        let labels = [self.label(), self.label(), self.label()];
        if self.random.percent(5) {
            self.line(".pragma \"nounroll\"");
        }
        labels
    }

    pub(super) fn ticked(&mut self) {
        let ticks = self.kept.ticks.clone();
        self.line(&format!("add.u32 {ticks}, {ticks}, 1"));
    }

    /// From `-m` to `m` and once more inside: such nests stand twice.
    fn nest(&mut self, budget: u64) -> u64 {
        if budget < 169 {
            return self.counted(budget);
        }
        let [outer, inner, out] = self.begins();
        let (row, column, least) = (self.register(Kind::Word), self.register(Kind::Word), self.register(Kind::Word));
        let reach = self.register(Kind::Word);
        let (p, q) = (self.register(Kind::Predicate), self.register(Kind::Predicate));
        let m = self.kept.m.clone();
        let step = self.random.of(&[1, 1, 2]);
        self.line(&format!("mov.b32 {reach}, {m}"));
        self.line(&format!("neg.s32 {least}, {reach}"));
        self.line(&format!("mov.b32 {row}, {least}"));
        if self.random.percent(30) {
            self.line(&format!("setp.eq.s32 {p}, {reach}, 0"));
            self.branch(&p, true, &out);
        }
        self.place(&outer);
        let start = if self.random.percent(70) { least } else { row.clone() };
        self.line(&format!("mov.b32 {column}, {start}"));
        self.place(&inner);
        self.readable.push((column.clone(), 32));
        self.mixes(1);
        self.ticked();
        self.readable.pop();
        self.line(&format!("add.s32 {column}, {column}, {step}"));
        self.line(&format!("setp.le.s32 {q}, {column}, {reach}"));
        self.branch(&q, true, &inner);
        self.mixes(1);
        self.line(&format!("add.s32 {row}, {row}, 1"));
        self.line(&format!("setp.le.s32 {p}, {row}, {reach}"));
        self.branch(&p, true, &outer);
        self.place(&out);
        169
    }

    /// A number that shrinks to zero: at most 32 iterations.
    fn halves(&mut self, budget: u64) -> u64 {
        let [head, next, out] = self.begins();
        let (word, predicate) = (self.register(Kind::Word), self.register(Kind::Predicate));
        let value = self.value();
        let mask = self.random.of(&[0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff_u32]);
        self.line(&format!("and.b32 {word}, {value}, 0x{mask:x}"));
        let shift = self.random.of(&["shr.u32", "shr.u32", "shl.b32", "div.u32", "clear", "shr.s32"]);
        if shift == "shr.s32" {
            self.line(&format!("and.b32 {word}, {word}, 0x7fffffff"));
        }
        if self.random.percent(50) {
            self.line(&format!("setp.eq.u32 {predicate}, {word}, 0"));
            self.branch(&predicate, true, &out);
        } else {
            self.line(&format!("or.b32 {word}, {word}, 1"));
        }
        self.place(&head);
        self.ticked();
        self.readable.push((word.clone(), 32));
        let cost = self.inside(budget / 33, Jumps { next: Some(next.clone()), out: out.clone(), may: true });
        self.readable.pop();
        self.place(&next);
        if shift == "clear" {
            let less = self.register(Kind::Word);
            self.line(&format!("add.s32 {less}, {word}, -1"));
            self.line(&format!("and.b32 {word}, {word}, {less}"));
        } else {
            let by = if shift == "div.u32" { self.random.of(&[2, 3, 10]) } else { self.random.of(&[1, 1, 2, 3]) };
            self.line(&format!("{shift} {word}, {word}, {by}"));
        }
        if self.random.percent(60) {
            self.line(&format!("setp.ne.s32 {predicate}, {word}, 0"));
            self.branch(&predicate, true, &head);
        } else {
            self.line(&format!("setp.eq.u32 {predicate}, {word}, 0"));
            self.branch(&predicate, true, &out);
            self.jump(&head);
        }
        self.place(&out);
        32 * (1 + cost)
    }

    /// What compilers leave of an unrolled loop, with the loop in front of it.
    fn rest(&mut self, budget: u64) -> u64 {
        let [head, _, out] = self.begins();
        let (mut trips, four) = (u64::from(super::MOST_N), self.random.of(&[2, 4, 8]));
        let (rest, variable, predicate) = (self.register(Kind::Word), self.register(Kind::Word), self.register(Kind::Predicate));
        let value = if self.random.percent(50) { self.kept.n.clone() } else { self.value() };
        self.line(&format!("and.b32 {rest}, {value}, {}", four - 1));
        self.line(&format!("mov.b32 {variable}, 0"));
        self.readable.push((variable.clone(), 32));
        if self.random.percent(70) {
            let (begin, most) = (self.label(), self.register(Kind::Word));
            let over = self.label();
            self.line(&format!("and.b32 {most}, {value}, {}", 63 & !(four - 1)));
            self.line(&format!("setp.eq.s32 {predicate}, {most}, 0"));
            self.branch(&predicate, true, &over);
            self.place(&begin);
            self.ticked();
            self.mixes(1);
            self.line(&format!("add.s32 {variable}, {variable}, {four}"));
            self.line(&format!("setp.ne.s32 {predicate}, {variable}, {most}"));
            self.branch(&predicate, true, &begin);
            self.place(&over);
            trips = 64;
        }
        let order = self.random.of(&[("eq", true), ("ne", false)]);
        self.line(&format!("setp.{}.s32 {predicate}, {rest}, 0", order.0));
        self.branch(&predicate, order.1, &out);
        self.place(&head);
        self.ticked();
        let cost = self.inside(budget / 80, Jumps { next: None, out: out.clone(), may: false });
        self.line(&format!("add.s32 {variable}, {variable}, 1"));
        self.line(&format!("add.s32 {rest}, {rest}, -1"));
        self.line(&format!("setp.ne.s32 {predicate}, {rest}, 0"));
        self.branch(&predicate, true, &head);
        self.place(&out);
        self.readable.pop();
        trips + 8 * (1 + cost)
    }

    /// A counter that ends a loop whatever else it does: its register.
    fn fuel(&mut self, trips: u64) -> String {
        let fuel = self.register(Kind::Word);
        self.line(&format!("mov.u32 {fuel}, {trips}"));
        fuel
    }

    /// Fewer than a budget, with what one iteration may take.
    fn share(&mut self, budget: u64) -> (u64, u64) {
        let trips = self.random.of(&[5, 12, 30, 80]).min(budget / 2).max(1);
        (trips, (budget / trips).saturating_sub(1))
    }

    /// Goes through the words until one ends in zeros.
    fn searches(&mut self, budget: u64) -> u64 {
        let [head, next, out] = self.begins();
        let (trips, each) = self.share(budget);
        let (at, p, q) = (self.register(Kind::Word), self.register(Kind::Predicate), self.register(Kind::Predicate));
        let value = self.value();
        self.line(&format!("mov.b32 {at}, {value}"));
        let fuel = self.fuel(trips);
        let low = self.register(Kind::Word);
        self.place(&head);
        self.ticked();
        let word = self.loaded(&at);
        self.line(&format!("and.b32 {low}, {word}, 31"));
        let cost = self.inside(each, Jumps { next: Some(next.clone()), out: out.clone(), may: true });
        self.place(&next);
        self.line(&format!("add.s32 {at}, {at}, 1"));
        self.line(&format!("add.s32 {fuel}, {fuel}, -1"));
        self.line(&format!("setp.ne.s32 {p}, {low}, 0"));
        if self.random.percent(50) {
            self.line(&format!("setp.ne.and.s32 {p}, {fuel}, 0, {p}"));
        } else {
            self.line(&format!("setp.gt.s32 {q}, {fuel}, 0"));
            self.line(&format!("and.pred {p}, {p}, {q}"));
        }
        self.branch(&p, true, &head);
        self.place(&out);
        trips * (1 + cost)
    }

    /// Each word says where the next one is.
    fn follows(&mut self, budget: u64) -> u64 {
        let [head, out, back] = self.begins();
        let (trips, each) = self.share(budget);
        let (at, p, q) = (self.register(Kind::Word), self.register(Kind::Predicate), self.register(Kind::Predicate));
        let value = self.value();
        self.line(&format!("mov.b32 {at}, {value}"));
        let fuel = self.fuel(trips);
        let other = self.kept.other.clone();
        self.place(&head);
        self.line(&format!("setp.eq.s32 {p}, {fuel}, 0"));
        self.branch(&p, true, &out);
        let word = self.loaded(&at);
        self.line(&format!("xor.b32 {at}, {word}, {other}"));
        self.line(&format!("sub.s32 {fuel}, {fuel}, 1"));
        self.ticked();
        let cost = self.inside(each, Jumps { next: Some(head.clone()), out: out.clone(), may: true });
        self.line(&format!("and.b32 {word}, {at}, 63"));
        self.line(&format!("setp.eq.u32 {q}, {word}, 5"));
        self.branch(&q, false, &back);
        self.jump(&out);
        self.place(&back);
        self.jump(&head);
        self.place(&out);
        trips * (1 + cost)
    }

    /// A cycle that is entered at two places.
    fn two_ways_in(&mut self, budget: u64) -> u64 {
        let [head, middle, out] = self.begins();
        let (trips, each) = self.share(budget);
        let fuel = self.fuel(trips);
        let left = self.register(Kind::Predicate);
        if self.random.percent(30) {
            let (value, way) = (self.value(), self.register(Kind::Word));
            let table = self.table(&[head.clone(), middle.clone()]);
            self.line(&format!("and.b32 {way}, {value}, 1"));
            self.by_table(&way, &table);
        } else {
            let (entry, when) = (self.condition(), self.random.percent(50));
            self.branch(&entry, when, &middle);
        }
        self.place(&head);
        let first = self.inside(each / 2, Jumps { next: Some(middle.clone()), out: out.clone(), may: true });
        self.place(&middle);
        self.ticked();
        // Not in scopes: control may come from in front.
        let second = self.inside(each / 2, Jumps { next: None, out: out.clone(), may: true });
        self.line(&format!("add.s32 {fuel}, {fuel}, -1"));
        self.line(&format!("setp.gt.s32 {left}, {fuel}, 0"));
        if self.random.percent(40) {
            let third = self.condition();
            self.line(&format!("and.pred {third}, {third}, {left}"));
            self.branch(&third, true, &middle);
        }
        self.branch(&left, true, &head);
        self.place(&out);
        trips * (1 + first + second)
    }

    /// A table of labels.
    fn table(&mut self, labels: &[String]) -> String {
        let table = self.label();
        self.raw(&format!("{table}: .branchtargets {};\n", labels.join(", ")));
        table
    }

    /// A branch by a table, which stands outside of braces at times.
    fn by_table(&mut self, state: &str, table: &str) {
        let scope = self.random.percent(25);
        if scope {
            self.open();
        }
        self.line(&format!("brx.idx {state}, {table}"));
        if scope {
            self.close();
        }
    }

    /// A state machine with one place that branches by a table.
    fn dispatches(&mut self, budget: u64) -> u64 {
        let [head, out, last] = self.begins();
        let (trips, each) = self.share(budget);
        let fuel = self.fuel(trips);
        let (state, p) = (self.register(Kind::Word), self.register(Kind::Predicate));
        let value = self.value();
        self.line(&format!("and.b32 {state}, {value}, 3"));
        let mut labels: Vec<String> = (0..3).map(|_| self.label()).collect();
        // The table may lead straight back, or out.
        labels.push(self.random.of(&[&head, &out, &last]).clone());
        let latch = self.label();
        let table = self.table(&labels);
        self.place(&head);
        self.line(&format!("add.s32 {fuel}, {fuel}, -1"));
        self.line(&format!("setp.lt.s32 {p}, {fuel}, 0"));
        self.branch(&p, true, &out);
        self.ticked();
        if labels[3] == head {
            // Else nothing moves on.
            let hash = self.kept.hash.clone();
            self.line(&format!("mad.lo.u32 {hash}, {hash}, 69069, 1"));
            self.line(&format!("shr.u32 {state}, {hash}, 30"));
        }
        self.by_table(&state, &table);
        let mut worst = 0;
        for label in &labels[..3] {
            self.place(label);
            worst = worst.max(self.inside(each, Jumps { next: None, out: out.clone(), may: true }));
            let value = self.value();
            self.line(&format!("and.b32 {state}, {value}, 3"));
            let back = if self.random.percent(60) { head.clone() } else { latch.clone() };
            self.jump(&back);
        }
        self.place(&last);
        self.mixes(1);
        let hash = self.kept.hash.clone();
        self.line(&format!("shr.u32 {state}, {hash}, 30"));
        self.place(&latch);
        self.jump(&head);
        self.place(&out);
        trips * (1 + worst)
    }

    /// A state machine whose states branch by tables of their own: no place is the header.
    fn threaded(&mut self, budget: u64) -> u64 {
        let out = self.label();
        let (trips, each) = self.share(budget);
        let fuel = self.fuel(trips);
        let (state, p) = (self.register(Kind::Word), self.register(Kind::Predicate));
        let value = self.value();
        let labels: Vec<String> = (0..4).map(|_| self.label()).collect();
        let table = self.table(&labels);
        self.line(&format!("and.b32 {state}, {value}, 3"));
        self.by_table(&state, &table);
        let mut worst = 0;
        for (nth, label) in labels.iter().enumerate() {
            self.place(label);
            self.ticked();
            worst = worst.max(self.inside(each, Jumps { next: None, out: out.clone(), may: true }));
            self.line(&format!("add.s32 {fuel}, {fuel}, -1"));
            self.line(&format!("setp.le.s32 {p}, {fuel}, 0"));
            self.branch(&p, true, &out);
            if nth % 2 == 0 || self.random.percent(50) {
                let hash = self.kept.hash.clone();
                self.line(&format!("mad.lo.u32 {hash}, {hash}, 69069, {nth}"));
                self.line(&format!("shr.u32 {state}, {hash}, 30"));
                self.by_table(&state, &table);
            } else {
                let to = self.random.below(4);
                self.jump(&labels[to]);
            }
        }
        self.place(&out);
        trips * (1 + worst)
    }

    /// A variable with a fraction.
    fn fractions(&mut self, budget: u64) -> u64 {
        let [head, next, out] = self.begins();
        let (variable, bound, p) = (self.register(Kind::Float), self.register(Kind::Float), self.register(Kind::Predicate));
        let (value, word) = (self.value(), self.register(Kind::Word));
        self.line(&format!("and.b32 {word}, {value}, 31"));
        self.line(&format!("cvt.rn.f32.u32 {bound}, {word}"));
        self.line(&format!("mov.f32 {variable}, 0f00000000"));
        self.place(&head);
        self.ticked();
        let cost = self.inside(budget / 65, Jumps { next: Some(next.clone()), out: out.clone(), may: true });
        self.place(&next);
        let step = self.random.of(&["0f3F800000", "0f3F000000", "0f40000000"]);
        self.line(&format!("add.rn.f32 {variable}, {variable}, {step}"));
        self.line(&format!("setp.lt.f32 {p}, {variable}, {bound}"));
        self.branch(&p, true, &head);
        self.place(&out);
        63 * (1 + cost)
    }

    /// Two variables that go towards each other.
    fn meets(&mut self, budget: u64) -> u64 {
        let [head, next, out] = self.begins();
        let (low, high, p) = (self.register(Kind::Word), self.register(Kind::Word), self.register(Kind::Predicate));
        let value = self.value();
        self.line(&format!("mov.b32 {low}, 0"));
        self.line(&format!("and.b32 {high}, {value}, 63"));
        self.readable.push((low.clone(), 32));
        self.readable.push((high.clone(), 32));
        self.place(&head);
        self.ticked();
        let cost = self.inside(budget / 65, Jumps { next: Some(next.clone()), out: out.clone(), may: true });
        self.place(&next);
        let by = self.random.of(&[1, 1, 2]);
        self.line(&format!("add.s32 {low}, {low}, {by}"));
        // At times the upper one stays.
        let q = self.condition();
        self.line(&format!("@{q} add.s32 {high}, {high}, -1"));
        self.line(&format!("setp.lt.s32 {p}, {low}, {high}"));
        self.branch(&p, true, &head);
        self.place(&out);
        self.readable.truncate(self.readable.len() - 2);
        64 * (1 + cost)
    }

    /// A variable that grows by a factor.
    fn doubles(&mut self, budget: u64) -> u64 {
        let [head, next, out] = self.begins();
        let (variable, p) = (self.register(Kind::Word), self.register(Kind::Predicate));
        let value = self.value();
        let bound = self.random.of(&[100, 1_000_000, 0x2000_0000]);
        self.line(&format!("and.b32 {variable}, {value}, 15"));
        self.line(&format!("add.s32 {variable}, {variable}, 1"));
        self.place(&head);
        self.ticked();
        let cost = self.inside(budget / 31, Jumps { next: Some(next.clone()), out: out.clone(), may: true });
        self.place(&next);
        let grow = self.random.of(&["shl.b32 V, V, 1", "mul.lo.s32 V, V, 3", "mad.lo.s32 V, V, 2, 1", "add.s32 V, V, V"]);
        self.line(&grow.replace('V', &variable));
        self.line(&format!("setp.lt.u32 {p}, {variable}, {bound}"));
        self.branch(&p, true, &head);
        self.place(&out);
        30 * (1 + cost)
    }

    /// An array of the thread's own, filled and read again.
    fn local_array(&mut self) -> u64 {
        let [fill, read, _] = self.begins();
        let name = format!("local{}{}", self.seed, fill.replace(['$', '%'], "_"));
        self.declare(&format!("\t.local .align 4 .b8 {name}[64];\n"));
        let (base, at, wide) = (self.register(Kind::Long), self.register(Kind::Word), self.register(Kind::Long));
        let (p, word) = (self.register(Kind::Predicate), self.register(Kind::Word));
        let (hash, other) = (self.kept.hash.clone(), self.kept.other.clone());
        self.line(&format!("mov.u64 {base}, {name}"));
        self.line(&format!("mov.u32 {at}, 0"));
        self.place(&fill);
        self.line(&format!("mul.wide.u32 {wide}, {at}, 4"));
        self.line(&format!("add.s64 {wide}, {base}, {wide}"));
        self.line(&format!("mad.lo.u32 {hash}, {hash}, 69069, {at}"));
        self.line(&format!("st.local.u32 [{wide}], {hash}"));
        self.line(&format!("add.s32 {at}, {at}, 1"));
        self.line(&format!("setp.lt.u32 {p}, {at}, 16"));
        self.branch(&p, true, &fill);
        let value = self.value();
        let fuel = self.fuel(24);
        self.line(&format!("mov.b32 {at}, {value}"));
        self.place(&read);
        self.ticked();
        self.line(&format!("and.b32 {at}, {at}, 15"));
        self.line(&format!("mul.wide.u32 {wide}, {at}, 4"));
        self.line(&format!("add.s64 {wide}, {base}, {wide}"));
        self.line(&format!("ld.local.u32 {word}, [{wide}]"));
        self.line(&format!("add.s32 {other}, {other}, {word}"));
        self.line(&format!("shr.u32 {at}, {word}, 7"));
        self.line(&format!("add.s32 {fuel}, {fuel}, -1"));
        self.line(&format!("setp.ne.s32 {p}, {fuel}, 0"));
        self.branch(&p, true, &read);
        40
    }

    /// One branch ends the inner loop and begins the next round of the outer one.
    fn shared_latch(&mut self, budget: u64) -> u64 {
        let [head, inner, out] = self.begins();
        let (trips, each) = self.share(budget);
        let fuel = self.fuel(trips);
        let (word, p, q) = (self.register(Kind::Word), self.register(Kind::Predicate), self.register(Kind::Predicate));
        self.line(&format!("mov.u32 {word}, 0"));
        self.place(&head);
        self.mixes(1);
        self.place(&inner);
        self.ticked();
        let cost = self.inside(each, Jumps { next: None, out: out.clone(), may: true });
        self.line(&format!("add.s32 {word}, {word}, 1"));
        self.line(&format!("add.s32 {fuel}, {fuel}, -1"));
        self.line(&format!("setp.eq.s32 {q}, {fuel}, 0"));
        self.branch(&q, true, &out);
        let other = self.register(Kind::Word);
        self.line(&format!("and.b32 {other}, {word}, 3"));
        self.line(&format!("setp.ne.s32 {p}, {other}, 0"));
        self.branch(&p, true, &inner);
        self.jump(&head);
        self.place(&out);
        trips * (1 + cost)
    }
}
