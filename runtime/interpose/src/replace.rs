//! What the driver is given in place of the code that a program hands to it.

use crate::cache::Place;
use crate::image::Image;
use crate::{choice, compilers, driver, session, sites};
use cuinstr::options::{Limits, Options, PollGap};
use cuinstr_abi::sites::SiteMap;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// PTX with polls. It stays for the life of the process: the driver may be told that it may read it at any time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Polled {
    /// The text, and a zero behind it.
    pub(crate) text: &'static [u8],
    /// Why its launches have no fuel, if fuel is asked for.
    pub(crate) no_fuel: Option<&'static str>,
}

/// What became of an image.
pub(crate) type Replaced = Result<Polled, String>;

/// What is said of code that has polls already.
pub(crate) const HAS_POLLS: &str = "it has polls already";
const HAS_NO_FUEL: &str = "it was compiled with polls and without fuel";

/// What is said of code that the driver refuses with polls.
pub(crate) fn refusal(code: u32) -> String {
    format!("the driver refuses its PTX with polls (error {code})")
}

/// Whether launches have fuel.
pub(crate) fn has_fuel() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED.get_or_init(|| std::env::var_os("CUINSTR_FUEL").is_some_and(|value| !value.is_empty()))
}

/// Whether launches can be paused at block boundaries.
fn is_pausable() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED.get_or_init(|| std::env::var_os("CUINSTR_PAUSABLE").is_some_and(|value| value == "1"))
}

/// PTX with polls for what the driver would take out of an image, or why there is none. `of_context` if it is loaded into the current context alone.
pub(crate) fn replacement(image: &Image<'_>, of_context: bool) -> Replaced {
    let (text, name) = match image {
        Image::Text(text) => (Cow::Borrowed(*text), None),
        Image::Code(code) => {
            // Compiled from PTX with polls by a tool in the program, perhaps.
            if let Some(known) = known_sites(code) {
                return Err(known.to_owned());
            }
            // Made in the program, by a library that gives the PTX as well.
            (Cow::Owned(compilers::source_of(code).ok_or("it is machine code")?), None)
        }
        Image::Fat(bytes) => {
            let entries = cuinstr_image::listing(bytes).ok_or("its fat binary can't be read")?;
            let listed: Vec<_> = entries.iter().map(|entry| (entry.is, entry.arch)).collect();
            let mut choices = driver::architectures(of_context).into_iter().map(|gpu| choice::ptx_for(&listed, gpu));
            let first = choices.next().ok_or("there is no GPU")??;
            if choices.any(|choice| choice != Ok(first)) {
                return Err("GPUs of this machine take different code".to_owned());
            }
            (Cow::Owned(entries[first].text()?), entries[first].source.clone())
        }
    };
    polled(&text, name)
}

/// What is said of code that holds polls of ours; takes over its sites if so.
fn known_sites(code: &[u8]) -> Option<&'static str> {
    let control = cuinstr_abi::control::CONTROL_SYMBOL.as_bytes();
    if !code.windows(control.len()).any(|part| part == control) {
        return None;
    }
    let maps = cuinstr_image::read(code).map(|image| image.site_maps).unwrap_or_default();
    maps.iter().for_each(sites::add);
    let lacks_fuel = has_fuel() && !maps.iter().any(|map| map.counts_fuel);
    Some(if lacks_fuel { HAS_NO_FUEL } else { HAS_POLLS })
}

/// Puts polls into PTX, once for each text.
fn polled(text: &[u8], name: Option<String>) -> Replaced {
    static DONE: OnceLock<Mutex<HashMap<(u64, usize), Replaced>>> = OnceLock::new();
    let key = (cuinstr_abi::sites::hash(0, text), text.len());
    let done = || DONE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = done().get(&key) {
        return known.clone();
    }
    // Not under the lock: large texts take seconds.
    let made = make(text, name);
    done().entry(key).or_insert(made).clone()
}

/// 200 us: what asks for a stop takes some milliseconds to come here. Threads that run for less have no poll, which is most of what polls cost.
fn poll_gap() -> PollGap {
    PollGap::from_nanoseconds(200_000).unwrap_or_default()
}

fn make(text: &[u8], name: Option<String>) -> Replaced {
    if let Some(known) = known_sites(text) {
        return Err(known.to_owned());
    }
    let path = name.unwrap_or_else(|| {
        let first = std::str::from_utf8(text).ok().and_then(|text| cuinstr_image::kernel::of_ptx(text).into_iter().next());
        first.map_or_else(|| "PTX".to_owned(), |kernel| format!("PTX of {}", kernel.name))
    });
    // How much fuel there is the host says at each launch, so the text is the same for any.
    let limits = Limits { fuel: has_fuel().then_some(Limits::MAX_FUEL), ..Limits::default() };
    // The stream's own writes say when a launch begins.
    let options = Options { path, limits, pausable: is_pausable(), begin_by_polls: true, poll_gap: poll_gap(), ..Options::default() };
    let cached = Place::of(text, &options);
    if let Some((output, map, no_fuel)) = cached.as_ref().and_then(Place::get) {
        return Ok(kept(output, &map, no_fuel));
    }
    session::begin_compiling(std::str::from_utf8(text).map_or(1, |text| cuinstr_image::kernel::of_ptx(text).len()));
    let (mut rewrite, mut repeating) = cuinstr::rewrite_ptx_with_fuel(text, &options);
    if options.pausable && rewrite.output.is_none() {
        // Kernels that launch kernels can't be paused, but stopped.
        (rewrite, repeating) = cuinstr::rewrite_ptx_with_fuel(text, &Options { pausable: false, ..options });
    }
    let no_fuel =
        repeating.map(|function| format!("`{function}` of its module is called and repeats, and PTX counts fuel in kernels only"));
    let Some(output) = rewrite.output else {
        let why = rewrite.diagnostics.first().map(|diagnostic| diagnostic.message.clone());
        return Err(why.unwrap_or_else(|| "its PTX is refused".to_owned()));
    };
    if let Some(cached) = cached {
        cached.put(&output, &rewrite.sites, no_fuel.as_deref());
    }
    Ok(kept(output, &rewrite.sites, no_fuel))
}

/// Keeps a text with polls, and takes over its sites.
fn kept(mut text: Vec<u8>, map: &SiteMap, no_fuel: Option<String>) -> Polled {
    sites::add(map);
    text.push(0);
    Polled { text: text.leak(), no_fuel: no_fuel.map(|why| &*why.leak()) }
}
