//! Polls in PTX that a compiler wrote: the pass, with the configuration that holds for the source, and what it says.

use super::error::Error;
use super::overlay::SAID;
use super::rewritten_file::holding;
use super::settings::Settings;
use crate::diagnostic::Severity;
use crate::options::Options;
use crate::project::config::slashes;
use crate::project::input::Input;
use crate::render::{self, Source};
use crate::site::SiteMap;
use crate::{rewrite_ptx, rewrite_ptx_with_fuel};
use cuinstr_abi::sites::hash;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// PTX with polls.
pub(super) struct Polled {
    pub(super) text: Vec<u8>,
    /// Its sites; none of a file that the configuration excludes.
    pub(super) sites: Option<SiteMap>,
}

/// Inserts polls into the PTX of a source, and prints what there is to say. What the folder `told` has a mark of is not said again. None if the PTX is
/// refused.
///
/// # Errors
/// If the configuration can't be used.
pub(super) fn insert(ptx: &[u8], source: &Path, settings: &Settings, told: &Path) -> Result<Option<Polled>, Error> {
    let input = Input::new(source);
    let mut configs = BTreeMap::new();
    let config = holding(&mut configs, settings, &input)?;
    let site_path = config.map_or_else(|| slashes(&input.name), |config| config.relative(&input));
    // Reports name files as the source pass does: from the project's root, or from where nvcc runs.
    let folder = config.map_or_else(|| std::env::current_dir().unwrap_or_default(), |config| config.folder.clone());
    let mut options = Options { path: input.name.clone(), source_folder: folder.to_string_lossy().into_owned(), ..settings.options() };
    if let Some(config) = config {
        if config.excludes(&site_path) {
            return Ok(Some(Polled { text: ptx.to_vec(), sites: None }));
        }
        options.leave_alone.clone_from(&config.leave_alone);
        options.waivers = config.waivers(&site_path);
    }
    options.site_path = site_path;
    // A program under `cuinstr run` goes on without fuel where it can't be counted, and is told so at its end.
    let under_run = std::env::var_os("CUINSTR_RUN").is_some();
    let rewrite = if under_run { rewrite_ptx_with_fuel(ptx, &options).0 } else { rewrite_ptx(ptx, &options) };
    // Offsets are those of the PTX.
    let shown = input.path.with_extension("ptx").to_string_lossy().into_owned();
    let shown = Source::new(&shown, ptx);
    for diagnostic in rewrite.diagnostics.iter().filter(|diagnostic| diagnostic.severity >= Severity::Warning) {
        let text = render::short(&shown, diagnostic);
        let is_error = diagnostic.severity == Severity::Error;
        let is_new = || {
            let mark = told.join(format!("{SAID}{:016x}", hash(0, text.as_bytes())));
            File::create_new(mark).and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes())).is_ok()
        };
        if is_new() && !settings.quiet || is_error {
            eprint!("{text}");
        }
    }
    Ok(rewrite.output.map(|text| Polled { text, sites: Some(rewrite.sites) }))
}
