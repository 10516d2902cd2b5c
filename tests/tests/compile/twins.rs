//! The control of the gallery: nvcc deletes no hang. The PTX of each, as its author wrote it, can come round again where its line is marked.

use crate::{Checks, Tools};
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::ptx;

/// Hangs that no cycle makes: threads wait at a barrier that never fills up.
const BARRIERS_ONLY: &[&str] = &["hang/divergent_syncthreads", "hang/named_barrier"];

/// Hangs whose loop is `grid.sync`'s own, in a header of the toolkit.
const LIBRARY: &[&str] = &["hang/grid_sync", "hang/grid_sync_early_return"];

pub(crate) fn add(fixtures: &[Fixture], checks: &mut Checks) {
    for fixture in fixtures.iter().filter(|fixture| fixture.tier() > 0) {
        let name = fixture.name.clone();
        let what =
            if BARRIERS_ONLY.contains(&name.as_str()) { "has no cycle: a barrier holds it" } else { "has a cycle where it is marked" };
        checks.add(format!("twin: {name} {what}"), move |tools| cycle(tools, &name));
    }
}

fn cycle(tools: &Tools, name: &str) -> Result<(), String> {
    let fixture = tools.fixture(name)?;
    let ptx = tools.ptx(name, None, &[])?.expect_clean()?.text();
    let cycles = ptx::cycles(&ptx);
    if BARRIERS_ONLY.contains(&name) {
        return if cycles.is_empty() { Ok(()) } else { Err(format!("it has a cycle: {cycles:?}")) };
    }
    let hang = fixture.hang.as_ref().ok_or("no line is marked")?;
    let files = ptx::files(&ptx);
    // nvcc gives a loop's branch the place of its condition or of its body; the marked line is where the keyword stands.
    let near = hang.line.saturating_sub(3)..hang.line + 12;
    let is_marked = |(file, line): &(u32, u32)| near.contains(line) && files.get(file).is_some_and(|path| path.ends_with(&hang.file));
    // What waits in a library's loop: the marked line only calls it.
    let is_foreign = |(file, _): &(u32, u32)| files.get(file).is_some_and(|path| !path.ends_with(&hang.file));
    let is_library = LIBRARY.contains(&name);
    if cycles.iter().any(|cycle| if is_library { cycle.places.iter().all(is_foreign) } else { cycle.places.iter().any(is_marked) }) {
        return Ok(());
    }
    Err(format!("no cycle at {}:{} `{}`; cycles: {cycles:?}", hang.file, hang.line, hang.text))
}
