//! The sites of all that was rewritten or loaded here, for reports.

use cuinstr_abi::sites::SiteMap;
use cuinstr_abi::sockets::Loop;
use cuinstr_image::Kernel;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Where a site stands. It lives as long as the process, since reports are written to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) kind: &'static str,
    pub(crate) function: &'static str,
}

fn spots() -> MutexGuard<'static, HashMap<u64, Spot>> {
    static SPOTS: OnceLock<Mutex<HashMap<u64, Spot>>> = OnceLock::new();
    SPOTS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over the sites of a module.
pub(crate) fn add(map: &SiteMap) {
    let keep = |text: String| -> &'static str { text.leak() };
    let mut names: HashMap<&str, &'static str> = HashMap::new();
    let file = keep(map.file.clone());
    let mut spots = spots();
    for site in &map.sites {
        let Ok(id) = u64::from_str_radix(site.id.trim_start_matches("0x"), 16) else { continue };
        let kind = serde_json::to_value(site.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
        let function = *names.entry(&site.function).or_insert_with(|| keep(Kernel::new(&site.function).name));
        let file = site.file.clone().map_or(file, keep);
        spots.insert(id | 1, Spot { file, line: site.line, column: site.column, kind: keep(kind), function });
    }
}

/// The loops of a kernel, by its name as reports have it, in the order of the source.
pub(crate) fn loops_of(kernel: &str) -> Vec<Loop> {
    let is_loop = |kind: &str| !["entry", "exit", "barrier", "recursion"].contains(&kind);
    let spots = spots();
    let of_kernel = spots.values().filter(|spot| spot.function == kernel && is_loop(spot.kind));
    let mut loops: Vec<Loop> = of_kernel
        .map(|spot| Loop { file: spot.file.to_owned(), line: spot.line, column: spot.column, kind: spot.kind.to_owned() })
        .collect();
    loops.sort();
    loops.dedup();
    loops
}

/// The site of that number, odd or even.
pub(crate) fn find(id: u64) -> Option<Spot> {
    spots().get(&(id | 1)).copied()
}
