//! A kernel that is not stopped computes what its source says (invariant 9).

use crate::launcher::Contents;
use crate::session::{Checked, Loaded, Report, SOUND, Session, same};
use cuinstr_abi::control::Action;
use cuinstr_harness::variant::{self, Variant};
use serde_json::json;

/// Pairs of a rewritten build and the same build without contraction.
const PAIRS: [(Variant, Variant); 3] = [
    (variant::DEFAULT, variant::DEFAULT_STRICT),
    (variant::DEFAULT_ALL, variant::DEFAULT_ALL_STRICT),
    (variant::EACH_ALL, variant::EACH_ALL_STRICT),
];

/// Runs a kernel as it was written and as it was rewritten, and compares all buffers bit for bit. Without contraction nothing may
/// differ. With it, a difference is allowed only if the plain source compiles to other code without it.
///
/// # Errors
/// What differs, or what did not end.
pub fn same_results(session: &Session, name: &str) -> Checked {
    let subject = session.manifest.subject(name)?;
    let plain = run(session, name, variant::PLAIN)?;
    let strict = run(session, name, variant::PLAIN_STRICT)?;
    let again = run(session, name, variant::PLAIN_STRICT)?;
    same(&strict, &again).map_err(|why| format!("the plain kernel is not deterministic: {why}"))?;
    if strict.iter().all(|buffer| buffer.bytes.iter().all(|&byte| byte == 0)) {
        return Err("the plain kernel leaves nothing but zeros: there is nothing to compare".into());
    }
    let contracts = subject.build(variant::PLAIN)?.code != subject.build(variant::PLAIN_STRICT)?.code;

    let (mut errors, mut contracted) = (Vec::new(), Vec::new());
    for (loose, without) in PAIRS {
        if let Err(why) = run(session, name, without).and_then(|answer| same(&strict, &answer)) {
            errors.push(format!("{}: {why}", without.name));
        } else if let Err(why) = run(session, name, loose).and_then(|answer| same(&plain, &answer)) {
            let found = format!("{}: {why}", loose.name);
            if contracts && !session.spoiled() { contracted.push(found) } else { errors.push(found) }
        }
        if session.spoiled() {
            break;
        }
    }
    if !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    let report = Report::of(json!({ "contracts": contracts, "differs by contraction": contracted }));
    Ok(contracted.into_iter().fold(report, |report, found| report.note(format!("by contraction, {found}"))))
}

/// Runs a build: unarmed where no limit is compiled in, else armed with a minute that is not used up.
fn run(session: &Session, name: &str, variant: Variant) -> Result<Vec<Contents>, String> {
    let tell = |why: String| format!("{}: {why}", variant.name);
    let loaded = session.load(name, variant)?;
    if variant.rewriting.is_some_and(|rewriting| rewriting.limits.any()) {
        armed(session, &loaded).map_err(tell)
    } else {
        session.run(&loaded).map_err(tell)
    }
}

fn armed(session: &Session, loaded: &Loaded) -> Result<Vec<Contents>, String> {
    session.arm(loaded, Action::Leave, |orders| orders.timeout_ns = 3 * SOUND.as_nanos() as u64)?;
    session.launch(loaded)?;
    let answer = session.finish(loaded)?;
    let record = session.record(loaded)?;
    if record.claimed != 0 || record.late != 0 || record.threads() != 0 {
        return Err(format!("nothing should have stopped: {:?}", loaded.describe(&record)));
    }
    Ok(answer)
}
