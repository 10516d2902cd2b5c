//! What the driver is given in place of the code that a program hands to it.

use crate::cache::Place;
use crate::image::Image;
use crate::{choice, driver, session, sites};
use cuinstr::options::Options;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// PTX with polls, and a zero behind it. It stays for the life of the process: the driver may be told that it may read it at any time.
pub(crate) type Polled = &'static [u8];

/// What became of an image.
pub(crate) type Replaced = Result<Polled, String>;

/// What is said of code that has polls already.
pub(crate) const HAS_POLLS: &str = "it has polls already";

/// PTX with polls for what the driver would take out of an image, or why there is none. `of_context` if it is loaded into the current context alone.
pub(crate) fn replacement(image: &Image<'_>, of_context: bool) -> Replaced {
    let (text, name) = match image {
        Image::Text(text) => (Cow::Borrowed(*text), None),
        Image::Code(code) => {
            // Compiled from PTX with polls by a tool in the program, perhaps.
            return Err(if known_sites(code) { HAS_POLLS } else { "it is machine code" }.to_owned());
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

/// Whether the code holds polls of ours; takes over its sites if so.
fn known_sites(code: &[u8]) -> bool {
    let control = cuinstr_abi::control::CONTROL_SYMBOL.as_bytes();
    if !code.windows(control.len()).any(|part| part == control) {
        return false;
    }
    if let Ok(image) = cuinstr_image::read(code) {
        image.site_maps.iter().for_each(sites::add);
    }
    true
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

fn make(text: &[u8], name: Option<String>) -> Replaced {
    if known_sites(text) {
        return Err(HAS_POLLS.to_owned());
    }
    let path = name.unwrap_or_else(|| {
        let first = std::str::from_utf8(text).ok().and_then(|text| cuinstr_image::kernel::of_ptx(text).into_iter().next());
        first.map_or_else(|| "PTX".to_owned(), |kernel| format!("PTX of {}", kernel.name))
    });
    let cached = Place::of(text, &path);
    if let Some((mut output, map)) = cached.as_ref().and_then(Place::get) {
        sites::add(&map);
        output.push(0);
        return Ok(output.leak());
    }
    session::begin_compiling(std::str::from_utf8(text).map_or(1, |text| cuinstr_image::kernel::of_ptx(text).len()));
    let rewrite = cuinstr::rewrite_ptx(text, &Options { path, ..Options::default() });
    let Some(mut output) = rewrite.output else {
        let why = rewrite.diagnostics.first().map(|diagnostic| diagnostic.message.clone());
        return Err(why.unwrap_or_else(|| "its PTX is refused".to_owned()));
    };
    if let Some(cached) = cached {
        cached.put(&output, &rewrite.sites);
    }
    sites::add(&rewrite.sites);
    output.push(0);
    Ok(output.leak())
}
