//! Single instructions changed by chance. What then comes back to a state that it was in, though the flag is written, never ends.

use super::base::{Base, Site, launch, stop};
use super::run::{Injected, Judged};
use cuinstr::verify::verify_ptx;
use cuinstr_harness::random::Random;
use cuinstr_ptx as ptx;
use cuinstr_ptx::Kind;
use cuinstr_simulate::Program;

/// Words of opcodes that stand for each other.
const SWAPS: &[&[&str]] = &[
    &["eq", "ne", "lt", "le", "gt", "ge"],
    &["add", "sub", "min", "max", "and", "or", "xor", "shl", "shr"],
    &["s32", "u32"],
    &["s64", "u64"],
    &["lo", "hi"],
];
/// Numbers that a constant may become.
const NUMBERS: &[&str] = &["0", "1", "-1", "2", "3", "31", "32", "1024", "65536", "0x7fffffff", "0x80000000"];
/// Instructions that may repeat.
const STEPS: u64 = 3000;

/// A text with a few changed instructions, or `None` where chance left it as it was.
#[must_use]
pub fn edit(bases: &[Base], seed: u64) -> Option<Injected> {
    let mut random = Random::new(seed ^ 0x0065_6469_7400);
    let base = &bases[random.below(bases.len())];
    let module = ptx::parse(&base.text);
    let first = base.site(&mut random);
    let mut edits = ptx::Edits::new();
    let mut kinds = Vec::new();
    for _ in 0..=random.below(3) {
        let site = base.sites.iter().filter(|site| site.kernel == first.kernel).nth(random.below(base.sites.len())).unwrap_or(first);
        kinds.extend(change(&base.text, &module, site, &mut edits, &mut random));
    }
    let kind = kinds.first().copied()?;
    let text = edits.apply(&base.text).ok().filter(|text| *text != base.text)?;
    let base = format!("{} at {}", base.name, first.at);
    Some(Injected { text, kind, kernel: first.kernel.clone(), step: 0, part: 0..0, base })
}

fn change(text: &str, module: &ptx::Module<'_>, site: &Site, edits: &mut ptx::Edits, random: &mut Random) -> Option<&'static str> {
    let statement = module.functions[site.function].statements.iter().find(|statement| statement.start == site.at)?;
    let whole = ptx::Span { start: statement.start, end: statement.end };
    let tokens: Vec<(Kind, ptx::Span)> = ptx::tokens(whole.of(text))
        .map(|token| (token.kind, ptx::Span { start: token.span.start + whole.start, end: token.span.end + whole.start }))
        .collect();
    let of =
        |wanted: Kind| tokens.iter().filter(move |(kind, span)| *kind == wanted && span.start > statement.opcode).map(|(_, span)| *span);
    match random.below(6) {
        0 => {
            edits.replace(ptx::Span { start: whole.start, end: whole.end + 1 }, "");
            Some("left out")
        }
        1 if statement.guarded => {
            let negated = whole.of(text).starts_with("@!");
            let sign = ptx::Span { start: whole.start, end: whole.start + 1 + u32::from(negated) };
            edits.replace(sign, if negated { "@" } else { "@!" });
            Some("opposite guard")
        }
        2 => {
            let numbers: Vec<_> = of(Kind::Number).collect();
            edits.replace(*numbers.get(random.below(numbers.len().max(1)))?, random.of(NUMBERS));
            Some("another number")
        }
        3 | 4 => {
            let words: Vec<_> = of(Kind::Word).collect();
            let one = *words.get(random.below(words.len().max(1)))?;
            let (stem, digits) = one.of(text).split_at(one.of(text).trim_end_matches(|letter: char| letter.is_ascii_digit()).len());
            let declared = module.functions[site.function].registers.iter().find(|declared| declared.name == stem && !digits.is_empty())?;
            let near = digits.parse::<usize>().ok()? + random.below(7);
            edits.replace(one, format!("{stem}{}", near.saturating_sub(3).min(declared.count? as usize - 1)));
            Some("another register")
        }
        _ => {
            let opcode = ptx::Span {
                start: statement.opcode,
                end: tokens.iter().find(|(kind, span)| *kind == Kind::Blank && span.start > statement.opcode)?.1.start,
            };
            let words: Vec<&str> = opcode.of(text).split('.').collect();
            let at = random.below(words.len());
            let swaps = SWAPS.iter().find(|all| all.contains(&words[at]))?;
            let mut words: Vec<&str> = words;
            words[at] = random.of(swaps);
            edits.replace(opcode, words.join("."));
            Some("another opcode")
        }
    }
}

/// What the proof and the interpreter say of it.
#[must_use]
pub fn judge(injected: &Injected, before: u64) -> Judged {
    let not = |why: &str| Judged::NotShown(why.to_owned());
    let Ok(program) = Program::read(&injected.text) else { return not("no PTX") };
    let Ok(mut machine) = launch(&program, &injected.text, &injected.kernel, 1) else { return not("no launch") };
    if machine.run(before, &mut |_| ()).is_some() {
        return not("ends");
    }
    stop(&mut machine);
    // Brent's way to find a cycle: a state is kept for twice as long each time.
    let (mut kept, mut next) = (machine.clone(), machine.steps + 1);
    let end = machine.steps + STEPS;
    while machine.steps < end {
        if machine.run(machine.steps + 1, &mut |_| ()).is_some() {
            return not("ends");
        }
        if machine.is_as(&kept) {
            return if verify_ptx(&injected.text).holds() { Judged::Hole } else { Judged::Rejected };
        }
        if machine.steps >= next {
            next = machine.steps + 2 * (machine.steps - kept.steps).max(1);
            kept = machine.clone();
        }
    }
    not("runs on")
}
