//! Cycles without a poll, as tokens: a space is a gap that must be there, `~` one that may be.

use super::base::Site;
use super::dress::number;
use cuinstr_harness::random::Random;

/// What is put into a text.
#[derive(Debug, Clone)]
pub struct Cycle {
    /// Its kind, for messages.
    pub kind: &'static str,
    /// In front of the statement.
    pub body: String,
    /// In front of the module's first function.
    pub module: String,
    /// Whether it is endless, rather than longer than the bound.
    pub endless: bool,
}

/// Names that a cycle declares for itself. Each may hide one of the function's.
struct Names {
    /// Labels.
    one: String,
    two: String,
    /// A predicate, two words of 32 bits, two of 16 and two of 64.
    p: String,
    q: String,
    r: String,
    s: String,
    h: String,
    d: String,
    e: String,
    f: String,
}

impl Names {
    fn new(random: &mut Random) -> Self {
        let label = |random: &mut Random, suffix: &str| {
            let stem = random.of(&["$L__BB0_2", "again", "L", "_x", "$L__BB1_3", "exit", "ret", "$poll", "bra"]);
            format!("{stem}{suffix}")
        };
        // Of several spellings of a range's registers each is the same register.
        let prefix = random.of(&["%x", "w", "$v", "%zz", "_t", "%rr"]);
        Self {
            one: label(random, ""),
            two: label(random, "_b"),
            p: format!("{prefix}p1"),
            q: format!("{prefix}p2"),
            r: format!("{prefix}r1"),
            s: format!("{prefix}r2"),
            h: format!("{prefix}h1"),
            d: format!("{prefix}d1"),
            e: format!("{prefix}d2"),
            f: format!("{prefix}f1"),
        }
    }

    /// The registers, each by its name or as a range.
    fn declared(&self, random: &mut Random) -> String {
        let Self { p, q, r, s, h, d, e, f, .. } = self;
        let stem = |name: &str| name[..name.len() - 1].to_owned();
        let mut all = if random.percent(50) {
            vec![
                format!(".reg .pred {p}~,~{q}~;\n"),
                format!(".reg .b32 {r}~,~{s}~;\n"),
                format!(".reg .b16 {h}~;\n"),
                format!(".reg .b64 {d}~;~.reg .b64 {e}~;\n"),
                format!(".reg .f32 {f}~;\n"),
            ]
        } else {
            [(".pred", p), (".b32", r), (".b16", h), (".b64", d), (".f32", f)]
                .map(|(kind, name)| format!(".reg {kind} {}~<~3~>~;\n", stem(name)))
                .into()
        };
        for at in (1..all.len()).rev() {
            let other = random.below(at + 1);
            all.swap(at, other);
        }
        all.concat()
    }
}

/// A cycle that nothing ends. Its guards hold where the site is reached first.
#[must_use]
pub fn cycle(site: &Site, random: &mut Random) -> Cycle {
    let names = Names::new(random);
    let mut cycle = match random.below(10) {
        0..=5 => looped(&names, site, random),
        6 => memory(&names, random),
        7 => branches(&names, random),
        8 => calls(random),
        _ => long(&names, random),
    };
    let mut body = format!("{}{}", names.declared(random), cycle.body);
    if random.percent(30) {
        body = format!("{}{body}", directive(random));
    }
    for _ in 0..random.below(3) {
        // In scopes of their own the same names stand for something else.
        body = format!("{}{{\n{body}\n}}\n{}", decoy(&names, random), decoy(&names, random));
    }
    cycle.body = guarded(&format!("{{\n{body}}}\n"), site, random);
    cycle
}

/// A directive that ptxas takes anywhere, whose line what follows may share.
fn directive(random: &mut Random) -> String {
    random.of(&[".pragma \"nounroll\";~", ".pragma \"{_exit;\\\";~", ".pragma \"//\"~;~", ".loc 1 7 3 "]).replace(".loc 1 7 3 ", "")
}

/// A scope beside the cycle that looks as if it ended it.
fn decoy(names: &Names, random: &mut Random) -> String {
    let Names { one, r, p, .. } = names;
    match random.below(6) {
        0 => format!("{{\n.reg .pred {p}~;~.reg .b32 {r}~;\nmov.u32 {r}~,~0~;\nsetp.ne.u32 {p}~,~{r}~,~0~;\n@{p} exit~;\n}}\n"),
        1 => format!("{{\n{one}~:\n.reg .b32 {r}~;\nmov.u32 {r}~,~1~;\n}}\n"),
        2 => "{~}\n".to_owned(),
        _ => String::new(),
    }
}

/// Passes a body by unless a guard holds that does where the site is reached first.
fn guarded(body: &str, site: &Site, random: &mut Random) -> String {
    match random.below(6) {
        0 | 1 if !site.predicates.is_empty() => {
            let (name, value) = &site.predicates[random.below(site.predicates.len())];
            let skip = if *value { "!" } else { "" };
            format!("{{\n@{skip}{name} bra zz_past~;\n{body}zz_past~:\n}}\n")
        }
        2 | 3 if !site.words.is_empty() => {
            let (name, value) = &site.words[random.below(site.words.len())];
            let (order, against) = match random.below(4) {
                0 if *value < u32::MAX => ("ge", value + 1),
                1 if *value > 0 => ("le", value - 1),
                2 => ("ne", *value),
                _ => ("gt", *value),
            };
            let against = number(against, random);
            format!("{{\n.reg .pred zz_q~;\nsetp.{order}.u32 zz_q~,~{name}~,~{against}~;\n@zz_q bra.uni zz_past~;\n{body}zz_past~:\n}}\n")
        }
        _ => body.to_owned(),
    }
}

fn endless(kind: &'static str, body: String) -> Cycle {
    Cycle { kind, body, module: String::new(), endless: true }
}

/// Loops on registers. Over 80 lines: a table with an arm for each.
fn looped(names: &Names, site: &Site, random: &mut Random) -> Cycle {
    let Names { one, two, p, q, r, s, h, d, e, f } = names;
    let mut n = |value: u32| number(value, random);
    let (zero, few, more) = (n(0), n(3), n(10));
    let bra = if n(1).len() > 1 { "bra.uni" } else { "bra" };
    let alias = alias(r);
    match random.below(38) {
        0 => endless("spin", format!("{one}~:\nbra {one}~;\n")),
        1 => endless("spin", format!("{one}~:~{bra} {two}~;\n{two}~:~{bra} {one}~;\n")),
        2 => endless("fixed test", format!("mov.u32 {r}~,~{few}~;\n{one}~:\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n")),
        3 => endless(
            "odd steps",
            format!("mov.u32 {r}~,~1~;\n{one}~:\nadd.u32 {r}~,~{r}~,~2~;\nsetp.ne.s32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"),
        ),
        4 => endless(
            "8 bits",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nand.b32 {s}~,~{r}~,~255~;\nsetp.lt.u32 {p}~,~{s}~,~256~;\n@{p} bra {one}~;\n"
            ),
        ),
        5 => endless(
            "16 bits",
            format!(
                "mov.u16 {h}~,~{zero}~;\n{one}~:\nadd.s16 {h}~,~{h}~,~1~;\ncvt.u32.u16 {r}~,~{h}~;\nsetp.lt.u32 {p}~,~{r}~,~65536~;\n@{p} bra {one}~;\n"
            ),
        ),
        6 => endless(
            "alias",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nmov.u32 {r}~,~{few}~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        7 => Cycle {
            kind: "leading zero",
            body: format!(
                "{{\n.reg .b32 {stem}~<3>~;\nmov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nmov.u32 {alias}~,~{few}~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n}}\n",
                stem = &r[..r.len() - 1]
            ),
            module: String::new(),
            endless: true,
        },
        8 => endless(
            "up and down",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nadd.s32 {r}~,~{r}~,~1~;\nsub.s32 {r}~,~{r}~,~1~;\nsetp.lt.s32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        9 => endless(
            "xor",
            format!("mov.u32 {r}~,~{zero}~;\n{one}~:\nxor.b32 {r}~,~{r}~,~1~;\nsetp.ne.u32 {p}~,~{r}~,~2~;\n@{p} bra {one}~;\n"),
        ),
        10 => endless(
            "kept bit",
            format!(
                "mov.u32 {r}~,~{more}~;\n{one}~:\nshr.u32 {r}~,~{r}~,~1~;\nor.b32 {r}~,~{r}~,~1~;\nsetp.ne.u32 {p}~,~{r}~,~0~;\n@{p} bra {one}~;\n"
            ),
        ),
        11 => endless(
            "sign",
            format!("mov.u32 {r}~,~0x80000000~;\n{one}~:\nshr.s32 {r}~,~{r}~,~1~;\nsetp.ne.u32 {p}~,~{r}~,~0~;\n@{p} bra {one}~;\n"),
        ),
        12 => endless(
            "odd product",
            format!("mov.u32 {r}~,~1~;\n{one}~:\nmul.lo.u32 {r}~,~{r}~,~{few}~;\nsetp.ne.u32 {p}~,~{r}~,~0~;\n@{p} bra {one}~;\n"),
        ),
        13 => endless(
            "stuck at zero",
            format!(
                "mov.u32 {r}~,~{more}~;\n{one}~:\nadd.s32 {r}~,~{r}~,~-1~;\nmax.s32 {r}~,~{r}~,~0~;\nsetp.ge.s32 {p}~,~{r}~,~0~;\n@{p} bra {one}~;\n"
            ),
        ),
        14 => endless(
            "unsigned",
            format!("mov.u32 {r}~,~{more}~;\n{one}~:\nadd.s32 {r}~,~{r}~,~-1~;\nsetp.ge.u32 {p}~,~{r}~,~0~;\n@{p} bra {one}~;\n"),
        ),
        15 => endless(
            "guarded step",
            format!(
                "mov.u32 {r}~,~{zero}~;\nsetp.ne.u32 {q}~,~{r}~,~0~;\n{one}~:\n@{q} add.u32 {r}~,~{r}~,~1~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        16 => endless(
            "step of zero",
            format!(
                "mov.u32 {s}~,~4~;\nsub.u32 {s}~,~{s}~,~4~;\nmov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~{s}~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        17 => endless(
            "vector",
            format!(
                "mov.u64 {d}~,~5~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nmov.b64 {{~{r}~,~{s}~}}~,~{d}~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        18 => endless(
            "second predicate",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nsetp.ge.u32 {q}~|~{p}~,~{r}~,~{more}~;\nsetp.eq.u32 {q}~|~{p}~,~{r}~,~0~;\nsetp.lt.or.u32 {p}~,~{r}~,~5~,~!{q}~;\n@{p} bra {one}~;\nmov.u32 {r}~,~0~;\nbra {one}~;\n"
            ),
        ),
        19 => endless(
            "distance",
            format!(
                "mov.u64 {d}~,~0~;\nmov.u64 {e}~,~41~;\n{one}~:\nadd.s64 {d}~,~{d}~,~4~;\nsetp.ne.s64 {p}~,~{d}~,~{e}~;\n@{p} bra {one}~;\n"
            ),
        ),
        20 => endless(
            "saturated",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\ncvt.sat.u8.u32 {r}~,~{r}~;\nsetp.lt.u32 {p}~,~{r}~,~256~;\n@{p} bra {one}~;\n"
            ),
        ),
        21 => endless(
            "saturated sum",
            format!(
                "mov.u32 {r}~,~0x7ffffff0~;\n{one}~:\nadd.sat.s32 {r}~,~{r}~,~1~;\nsetp.le.s32 {p}~,~{r}~,~0x7fffffff~;\n@{p} bra {one}~;\n"
            ),
        ),
        22 => endless(
            "float",
            format!(
                "mov.f32 {f}~,~0f4b7ffffe~;\n{one}~:\nadd.f32 {f}~,~{f}~,~0f3f800000~;\nsetp.lt.f32 {p}~,~{f}~,~0f4e6e6b28~;\n@{p} bra {one}~;\n"
            ),
        ),
        23 => endless(
            "exit never taken",
            format!("mov.u32 {r}~,~{few}~;\nsetp.eq.u32 {p}~,~{r}~,~{more}~;\n{one}~:\n@{p} exit~;\n@!{p} bra {one}~;\n"),
        ),
        24 => endless(
            "reset",
            format!(
                "{two}~:\nmov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\nsetp.eq.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {two}~;\n"
            ),
        ),
        25 => endless(
            "swapped",
            format!(
                "mov.u32 {r}~,~{zero}~;\nmov.u32 {s}~,~{few}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nsub.u32 {s}~,~{s}~,~1~;\nadd.u32 {r}~,~{r}~,~{s}~;\nsub.u32 {s}~,~{r}~,~{s}~;\nsub.u32 {r}~,~{r}~,~{s}~;\nsetp.lt.s32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        26 => endless(
            "lookup",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nlop3.b32 {r}~,~{r}~,~0~,~0~,~0~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        27 => endless(
            "permuted",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nprmt.b32 {r}~,~{r}~,~0~,~0x4444~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        28 => endless("clock", format!("{one}~:\nmov.u64 {d}~,~%clock64~;\nsetp.ge.u64 {p}~,~{d}~,~0~;\n@{p} bra {one}~;\n")),
        29 => endless(
            "narrow shift",
            format!(
                "mov.u32 {r}~,~1~;\n{one}~:\nmov.u32 {s}~,~33~;\nand.b32 {s}~,~{s}~,~32~;\nshr.u32 {s}~,~{s}~,~6~;\nadd.u32 {r}~,~{r}~,~{s}~;\nsetp.ne.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        30 => endless(
            "select",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nsetp.lt.u32 {q}~,~{r}~,~{few}~;\nselp.b32 {s}~,~1~,~-1~,~{q}~;\nadd.u32 {r}~,~{r}~,~{s}~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        31 => endless(
            "wide",
            format!(
                "mov.u64 {d}~,~0xffffffffffffff00~;\n{one}~:\nadd.u64 {d}~,~{d}~,~16~;\ncvt.u32.u64 {r}~,~{d}~;\nsetp.ne.u32 {p}~,~{r}~,~8~;\n@{p} bra {one}~;\n"
            ),
        ),
        32 => endless(
            "halves",
            format!(
                "mov.u64 {d}~,~0x700000000~;\n{one}~:\nadd.u64 {d}~,~{d}~,~0x100000000~;\ncvt.u32.u64 {r}~,~{d}~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        33 => endless(
            "inner loop",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nmov.u32 {s}~,~{zero}~;\n{two}~:\nadd.u32 {s}~,~{s}~,~1~;\nsub.u32 {r}~,~{r}~,~{s}~;\nadd.u32 {r}~,~{r}~,~{s}~;\nsetp.lt.u32 {p}~,~{s}~,~4~;\n@{p} bra {two}~;\nsub.u32 {r}~,~{r}~,~1~;\nsetp.lt.u32 {q}~,~{r}~,~{more}~;\n@{q} bra {one}~;\n"
            ),
        ),
        34 => endless(
            "carry",
            format!(
                "mov.u32 {r}~,~{zero}~;\nmov.u32 {s}~,~{zero}~;\n{one}~:\nadd.cc.u32 {s}~,~{s}~,~1~;\naddc.u32 {r}~,~{r}~,~0~;\nsub.u32 {s}~,~{s}~,~1~;\nsetp.eq.u32 {p}~,~{r}~,~0~;\n@{p} bra {one}~;\n"
            ),
        ),
        35 => endless(
            "remainder",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nrem.u32 {r}~,~{r}~,~{few}~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        36 => endless(
            "field",
            format!(
                "mov.u32 {r}~,~{zero}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nbfi.b32 {r}~,~0~,~{r}~,~0~,~8~;\nsetp.lt.u32 {p}~,~{r}~,~{more}~;\n@{p} bra {one}~;\n"
            ),
        ),
        _ => decoy_poll(names, site, random),
    }
}

/// A register's name with a zero in front of its number.
fn alias(name: &str) -> String {
    let (stem, digit) = name.split_at(name.len() - 1);
    format!("{stem}0{digit}")
}

/// A loop that looks as if it asked.
fn decoy_poll(names: &Names, site: &Site, random: &mut Random) -> Cycle {
    let Names { one, two, p, q, r, s, d, .. } = names;
    let pointer = format!("ld.global.u64 {d}~,~[~cuinstr_control_v1~+~16~]~;\n");
    let flag = format!("ld.relaxed.sys.u32 {r}~,~[~{d}~]~;\n");
    let launch = format!("ld.global.u32 {s}~,~[~cuinstr_control_v1~+~8~]~;\n");
    let test = format!("setp.eq.u32 {p}~,~{r}~,~{s}~;\n");
    let (kind, body) = match random.below(9) {
        0 => ("flag read in front", format!("{pointer}{flag}{launch}{one}~:\n{test}@{p} exit~;\nbra {one}~;\n")),
        1 => ("no way out", format!("{one}~:\n{pointer}{flag}{launch}{test}@{p} bra {two}~;\n{two}~:\nbra {one}~;\n")),
        2 => ("the other way round", format!("{pointer}{flag}{launch}{one}~:\n{pointer}{flag}{test}@{p} bra {one}~;\nexit~;\n")),
        3 => (
            "another word",
            format!(
                "{one}~:\n{pointer}ld.relaxed.sys.u32 {r}~,~[~cuinstr_control_v1~]~;\nmov.u32 {s}~,~77~;\n{test}@{p} exit~;\nbra {one}~;\n"
            ),
        ),
        4 => ("lost", format!("{one}~:\n{pointer}{flag}{launch}add.u32 {r}~,~{r}~,~1~;\n{test}@{p} exit~;\nbra {one}~;\n")),
        5 => (
            "behind a guard",
            format!(
                "mov.u32 {r}~,~0~;\nsetp.ne.u32 {q}~,~{r}~,~0~;\n{one}~:\n{pointer}{flag}{launch}{test}and.pred {p}~,~{p}~,~{q}~;\n@{p} exit~;\nbra {one}~;\n"
            ),
        ),
        6 => (
            "passed by",
            format!(
                "mov.u32 {r}~,~0~;\nsetp.eq.u32 {q}~,~{r}~,~0~;\n{one}~:\n@{q} bra {two}~;\n{pointer}{flag}{launch}{test}@{p} exit~;\n{two}~:\nbra {one}~;\n"
            ),
        ),
        7 => (
            "guarded load",
            format!(
                "mov.u32 {r}~,~0~;\nsetp.ne.u32 {q}~,~{r}~,~0~;\n{pointer}{launch}{one}~:\n@{q} {flag}{test}@{p} exit~;\nbra {one}~;\n"
            ),
        ),
        _ => ("overwritten", format!("{one}~:\n{pointer}{flag}{launch}{test}setp.ne.u32 {p}~,~{s}~,~{s}~;\n@{p} exit~;\nbra {one}~;\n")),
    };
    if site.has_control { endless(kind, body) } else { endless("spin", format!("{one}~:\nbra {one}~;\n")) }
}

/// Loops whose counter lies in memory.
fn memory(names: &Names, random: &mut Random) -> Cycle {
    let Names { one, p, r, s, d, e, .. } = names;
    let below = format!("setp.lt.u32 {p}~,~{r}~,~9~;\n@{p} bra {one}~;\n");
    let step = format!("add.u32 {r}~,~{r}~,~1~;\n");
    let local = ".local .align 8 .b8 zz_w~[~16~]~;\n";
    let (kind, body) = match random.below(8) {
        0 => (
            "stack word",
            format!(
                "{local}st.local.u32 [~zz_w~]~,~0~;\n{one}~:\nld.local.u32 {r}~,~[~zz_w~]~;\n{step}st.local.u32 [~zz_w~]~,~{r}~;\nmov.u64 {d}~,~zz_w~;\nadd.u64 {d}~,~{d}~,~4~;\nst.local.u32 [~{d}~+~-4~]~,~0~;\n{below}"
            ),
        ),
        1 => (
            "stack pair",
            format!(
                "{local}st.local.u32 [~zz_w~]~,~0~;\n{one}~:\nld.local.u32 {r}~,~[~zz_w~]~;\n{step}st.local.u32 [~zz_w~]~,~{r}~;\nmov.u32 {s}~,~0~;\nst.local.v2.u32 [~zz_w~]~,~{{~{s}~,~{s}~}}~;\n{below}"
            ),
        ),
        2 => (
            "stack by a generic address",
            format!(
                "{local}st.local.u32 [~zz_w~]~,~0~;\nmov.u64 {d}~,~zz_w~;\ncvta.local.u64 {e}~,~{d}~;\n{one}~:\nld.local.u32 {r}~,~[~zz_w~]~;\n{step}st.local.u32 [~zz_w~]~,~{r}~;\nst.u32 [~{e}~]~,~0~;\n{below}"
            ),
        ),
        3 => (
            "a byte of the word",
            format!(
                "{local}st.local.u32 [~zz_w~]~,~0~;\n{one}~:\nld.local.u32 {r}~,~[~zz_w~]~;\n{step}st.local.u32 [~zz_w~]~,~{r}~;\nst.local.u8 [~zz_w~]~,~0~;\n{below}"
            ),
        ),
        4 => (
            "shared word",
            format!(
                ".shared .b32 zz_s~;\n{one}~:\natom.shared.exch.b32 {r}~,~[~zz_s~]~,~0~;\nsetp.eq.u32 {p}~,~{r}~,~0~;\n@{p} bra {one}~;\n"
            ),
        ),
        5 => (
            "volatile word",
            format!(
                ".shared .b32 zz_s~;\nst.shared.u32 [~zz_s~]~,~0~;\n{one}~:\nld.volatile.shared.u32 {r}~,~[~zz_s~]~;\nsetp.eq.u32 {p}~,~{r}~,~0~;\n@{p} bra {one}~;\n"
            ),
        ),
        6 => (
            "register over the stack",
            format!(
                "{local}mov.u32 {r}~,~0~;\nst.local.u32 [~zz_w~+~8~]~,~{r}~;\n{one}~:\n{step}ld.local.u32 {r}~,~[~zz_w~+~8~]~;\n{below}"
            ),
        ),
        _ => (
            "narrow word",
            format!(
                "{local}st.local.u32 [~zz_w~]~,~0~;\n{one}~:\nld.local.u8 {r}~,~[~zz_w~]~;\n{step}st.local.u8 [~zz_w~]~,~{r}~;\nsetp.lt.u32 {p}~,~{r}~,~257~;\n@{p} bra {one}~;\n"
            ),
        ),
    };
    endless(kind, body)
}

/// Tables, and loops with two entries.
fn branches(names: &Names, random: &mut Random) -> Cycle {
    let Names { one, two, p, r, s, .. } = names;
    match random.below(5) {
        0 => {
            endless("table", format!("mov.u32 {r}~,~0~;\n{one}~:\nzz_t~:~.branchtargets {one}~,~{two}~;\nbrx.idx {r}~,~zz_t~;\n{two}~:\n"))
        }
        1 => endless(
            "table of one name",
            format!("mov.u32 {r}~,~1~;\nzz_t~:~.branchtargets {two}~,~{one}~,~{two}~;\n{one}~:\nbrx.idx.uni {r}~,~zz_t~;\n{two}~:\n"),
        ),
        2 => endless(
            "two entries",
            format!(
                "mov.u32 {r}~,~0~;\nsetp.ne.u32 {p}~,~{r}~,~0~;\n@{p} bra {two}~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\n{two}~:\nsub.u32 {r}~,~{r}~,~1~;\nsetp.lt.u32 {p}~,~{r}~,~9~;\n@{p} bra {one}~;\nbra {two}~;\n"
            ),
        ),
        3 => endless(
            "table in a scope",
            format!("mov.u32 {r}~,~0~;\n{one}~:\n{{\n{two}~:\nzz_t~:~.branchtargets {one}~,~{two}~;\nbrx.idx {r}~,~zz_t~;\n}}\n{two}~:\n"),
        ),
        _ => endless("hidden label", format!("{one}~:\n{{\nmov.u32 {s}~,~1~;\nbra {one}~;\n}}\n{{\n{one}~:\nexit~;\n}}\n")),
    }
}

/// Calls without end, or without number.
fn calls(random: &mut Random) -> Cycle {
    let name = random.of(&["zz_f", "%zz_f", "$zz", "zz_malloc", "zz_vprintf"]);
    let prototype = random.of(&["_", "zz_unused_2_1", "F"]);
    let body = format!("call {name}~;\n");
    let with = |kind, endless, module: String| Cycle { kind, body: body.clone(), module, endless };
    match random.below(6) {
        0 => with("recursion", true, format!(".func {name}~(~)~;\n.func {name}~(~)\n{{\ncall {name}~;\nret~;\n}}\n")),
        1 => with(
            "two functions",
            true,
            format!(".func {name}~(~)~;\n.func {name}_b~(~)\n{{\ncall.uni {name}~;\nret~;\n}}\n.func {name}~(~)\n{{\n{{\ncall {name}_b~;\n}}\nret~;\n}}\n"),
        ),
        2 => {
            let level = |depth: u32| {
                let inner = format!("call {name}_{}~;\n", depth - 1);
                format!(".func {name}_{depth}~(~)\n{{\n{inner}{inner}ret~;\n}}\n")
            };
            let mut parts = vec![format!(".func {name}_0~(~)\n{{\nret~;\n}}\n")];
            parts.extend((1..=28).map(level));
            parts.push(format!(".func {name}~(~)\n{{\ncall {name}_28~;\nret~;\n}}\n"));
            let module = parts.concat();
            with("call tree", false, module)
        }
        3 => with(
            "pointer",
            true,
            format!(
                ".func {name}~(~)~;\n.global .align 8 .u64 zz_table~[~2~]~=~{{~{name}~,~{name}~}}~;\n.func {name}~(~)\n{{\n.reg .b64 zz_d~;\nld.global.u64 zz_d~,~[~zz_table~+~8~]~;\nzz_p~:~.callprototype {prototype} (~)~;\ncall zz_d~,~(~)~,~zz_p~;\nret~;\n}}\n"
            ).replace(&format!("{prototype} (~)"), "_ ()"),
        ),
        4 => with(
            "address taken",
            true,
            format!(
                ".func {name}~(~.param .b64 zz_a~)~;\n.func {name}_b~(~)\n{{\n.reg .b64 zz_d~;\n.param .b64 zz_o~;\nmov.u64 zz_d~,~{name}~;\nst.param.b64 [~zz_o~]~,~zz_d~;\nzz_p~:~.callprototype ()~_ (~.param .b64 _~)~;\ncall zz_d~,~(~zz_o~)~,~zz_p~;\nret~;\n}}\n.func {name}~(~.param .b64 zz_a~)\n{{\ncall {name}_b~;\nret~;\n}}\n"
            ).replace("()~_ (", "_ ("),
        )
        .renamed(&format!("{name}_b")),
        _ => with(
            "loop in a callee",
            true,
            format!(".func {name}~(~)\n{{\n.reg .pred p~;\n.reg .b32 r~;\nmov.u32 r~,~0~;\nagain~:\nadd.u32 r~,~r~,~1~;\nand.b32 r~,~r~,~7~;\nsetp.lt.u32 p~,~r~,~8~;\n@p bra again~;\nret~;\n}}\n"),
        ),
    }
}

impl Cycle {
    /// Calls a function of another name.
    fn renamed(mut self, name: &str) -> Self {
        self.body = format!("call {name}~;\n");
        self
    }
}

/// Loops that end, after far more rounds than a kernel may run between two polls.
fn long(names: &Names, random: &mut Random) -> Cycle {
    let Names { one, two, p, q, r, s, d, .. } = names;
    let counted = |kind, body| Cycle { kind, body, module: String::new(), endless: false };
    match random.below(5) {
        0 => counted(
            "long",
            format!("mov.u32 {r}~,~0~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nsetp.lt.u32 {p}~,~{r}~,~0x40000000~;\n@{p} bra {one}~;\n"),
        ),
        1 => counted(
            "long",
            format!("mov.u64 {d}~,~0~;\n{one}~:\nadd.u64 {d}~,~{d}~,~1~;\nsetp.ne.u64 {p}~,~{d}~,~0x100000000000~;\n@{p} bra {one}~;\n"),
        ),
        2 => counted(
            "long nest",
            format!(
                "mov.u32 {r}~,~0~;\n{one}~:\nmov.u32 {s}~,~0~;\n{two}~:\nadd.u32 {s}~,~{s}~,~1~;\nsetp.lt.u32 {p}~,~{s}~,~60000~;\n@{p} bra {two}~;\nadd.u32 {r}~,~{r}~,~1~;\nsetp.lt.u32 {q}~,~{r}~,~60000~;\n@{q} bra {one}~;\n"
            ),
        ),
        3 => counted(
            "wraps round",
            format!("mov.u32 {r}~,~5~;\n{one}~:\nadd.u32 {r}~,~{r}~,~1~;\nsetp.ne.u32 {p}~,~{r}~,~5~;\n@{p} bra {one}~;\n"),
        ),
        _ => counted(
            "odd product",
            format!("mov.u32 {r}~,~1~;\n{one}~:\nmul.lo.u32 {r}~,~{r}~,~5~;\nsetp.ne.u32 {p}~,~{r}~,~1~;\n@{p} bra {one}~;\n"),
        ),
    }
}
