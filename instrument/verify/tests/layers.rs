//! The order of the folders: each imports only from itself and from folders in front of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The folders, and those that each may import from.
const LAYERS: [(&str, &[&str]); 5] = [
    ("program", &[]),
    ("domain", &["program"]),
    ("interpret", &["program", "domain"]),
    ("rank", &["program", "domain", "interpret"]),
    ("module", &["program", "domain", "interpret", "rank"]),
];

/// The files of a folder, as `folder/file`, with their text.
fn files() -> BTreeMap<String, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    for (folder, _) in LAYERS {
        for entry in fs::read_dir(source.join(folder)).expect("a folder of the crate") {
            let path = entry.expect("a file").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            if name != "mod" {
                found.insert(format!("{folder}/{name}"), fs::read_to_string(&path).expect("it is text"));
            }
        }
    }
    found
}

/// The files that a text names as `crate::folder::file`.
fn imports(text: &str) -> BTreeSet<String> {
    let word = |text: &str| text.chars().take_while(|byte| byte.is_alphanumeric() || *byte == '_').collect::<String>();
    let code = text.lines().map(|line| line.split("//").next().unwrap_or(""));
    let paths = code.flat_map(|line| line.split("crate::").skip(1));
    paths
        .map(|path| {
            let folder = word(path);
            let file = word(path[folder.len()..].trim_start_matches("::"));
            assert!(!file.is_empty(), "`crate::{path}` names several files at once");
            format!("{folder}/{file}")
        })
        .collect()
}

#[test]
fn each_folder_imports_only_from_those_in_front_of_it() {
    let files = files();
    assert!(files.len() > 40, "the folders have moved");
    for (file, text) in &files {
        let (folder, _) = file.split_once('/').expect("a folder");
        let (_, allowed) = LAYERS.iter().find(|(name, _)| *name == folder).expect("a layer");
        for import in imports(text) {
            assert!(files.contains_key(&import), "{file} imports {import}, which is no file");
            let (from, _) = import.split_once('/').expect("a folder");
            assert!(from == folder || allowed.contains(&from), "{file} imports {import}");
        }
    }
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let graph: BTreeMap<String, BTreeSet<String>> = files().into_iter().map(|(file, text)| (file, imports(&text))).collect();
    let reached = |from: &str| {
        let (mut seen, mut work) = (BTreeSet::new(), vec![from]);
        while let Some(file) = work.pop() {
            for next in &graph[file] {
                if seen.insert(next.as_str()) {
                    work.push(next);
                }
            }
        }
        seen
    };
    for file in graph.keys() {
        assert!(!reached(file).contains(file.as_str()), "{file} imports itself, through others");
    }
}

#[test]
fn an_import_is_seen_wherever_it_stands() {
    let text = "use crate::rank::linear::{self, count};\n// crate::module::report\nfn f() -> crate::domain::value::Value {}\n";
    assert_eq!(imports(text).into_iter().collect::<Vec<_>>(), ["domain/value", "rank/linear"]);
}
