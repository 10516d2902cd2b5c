//! `--coverage DIR`: what became of each unit's files, one JSON file a unit, for tools that count what is polled in a whole project.

use super::error::Error;
use super::plan::Plan;
use super::process::absolute;
use super::recursion;
use cuinstr_abi::sites::{SiteMap, hash};
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file for each unit of the session. A unit that is compiled again the same way takes the place of the one before.
///
/// # Errors
/// If the folder can't be written.
pub(super) fn write(folder: &Path, session: &Path, code: u8) -> Result<(), Error> {
    let failed = |error: io::Error| Error::io("can't write coverage to", folder, &error);
    let current = std::env::current_dir().map_err(failed)?;
    fs::create_dir_all(folder).map_err(failed)?;
    for unit in units(session) {
        let files: Vec<_> = unit
            .files
            .iter()
            .map(|file| {
                let said: Vec<&str> = file.said.lines().collect();
                json!({ "file": absolute(&file.path), "rewritten": file.rewritten, "sites": file.sites, "said": said })
            })
            .collect();
        let words: Vec<_> = unit.words.iter().map(|word| word.to_string_lossy()).collect();
        let text = json!({ "version": 1, "source": unit.source.to_string_lossy(), "folder": current, "words": words, "code": code, "files": files });
        let key = format!("{}\n{}\n{}", current.display(), unit.source.display(), unit.key);
        let mut new = tempfile::Builder::new().prefix("new-").tempfile_in(folder).map_err(failed)?;
        writeln!(new, "{text}").map_err(failed)?;
        new.persist(folder.join(format!("{:016x}.json", hash(0, key.as_bytes())))).map_err(|error| failed(error.error))?;
    }
    Ok(())
}

/// What became of one source's files.
#[derive(Debug)]
struct UnitFiles {
    /// What the overlay was made by.
    key: String,
    source: PathBuf,
    /// The preprocessor's words.
    words: Vec<OsString>,
    files: Vec<CoveredFile>,
}

/// One file.
#[derive(Debug)]
struct CoveredFile {
    path: PathBuf,
    rewritten: bool,
    sites: Option<SiteMap>,
    said: String,
}

/// All units of the session. Where a pass was repeated with more files, the last time counts.
fn units(session: &Path) -> Vec<UnitFiles> {
    let mut units: BTreeMap<String, (usize, UnitFiles)> = BTreeMap::new();
    for entry in fs::read_dir(session).into_iter().flatten().flatten() {
        let Some(mut plan) = Plan::read_all(&entry.path()) else { continue };
        recursion::tell(session, &mut plan.files.iter_mut().filter_map(|(_, facts)| facts.sites.as_mut()).collect::<Vec<_>>());
        let source = Path::new(&plan.roots[plan.main.0].0).join(&plan.main.1);
        let files = plan.files.into_iter().map(|(path, facts)| CoveredFile {
            path: path.into(),
            rewritten: facts.rewritten,
            sites: facts.sites,
            said: facts.said,
        });
        let unit = UnitFiles { key: plan.key.clone(), source, words: plan.words, files: files.collect() };
        let count = unit.files.len();
        if units.get(&plan.key).is_none_or(|(before, _)| *before < count) {
            units.insert(plan.key, (count, unit));
        }
    }
    units.into_values().map(|(_, unit)| unit).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rewritten_file::Facts;
    use super::*;

    #[test]
    fn of_a_pass_that_was_repeated_the_one_with_the_most_files_counts() {
        let session = tempfile::tempdir().expect("a folder");
        // The folder's order is by chance: each unit has its passes in another.
        let files = |unit: usize, pass: usize| [[2, 1, 3], [3, 2, 1], [1, 3, 2], [1, 2, 3]][unit % 4][pass];
        for (unit, pass) in (0..48).map(|number| (number / 3, number % 3)) {
            let mut plan =
                Plan { key: unit.to_string(), main: (0, "a.cu".into()), roots: vec![("src".into(), "src".into())], ..Plan::default() };
            plan.files = (0..files(unit, pass)).map(|file| (format!("{file}.cuh").into(), Facts::default())).collect();
            let overlay = session.path().join(format!("{pass}-{unit}"));
            fs::create_dir(&overlay).and_then(|()| plan.write(&overlay)).expect("it can be written");
        }
        let units = units(session.path());
        assert_eq!(units.len(), 16);
        assert!(units.iter().all(|unit| unit.files.len() == 3 && unit.source == Path::new("src/a.cu")), "{units:?}");
    }
}
