//! Which folder of the runtime imports which. A file imports from its own folder and from those that the table names, and no cycle of imports is long.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of `src`, a file beside them that has a folder's name included, and the folders that each may import from. All other files are `base`, but for
/// `lib.rs`, which names everything.
const LAYERS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("driver", &["base"]),
    ("context", &["base", "driver"]),
    ("slot", &["base", "driver", "context"]),
    ("module", &["base", "driver", "context", "slot"]),
    ("launch", &["base", "driver", "context", "slot", "module"]),
    ("guard", &["base", "driver", "context", "slot", "module", "launch"]),
    ("jit", &["base", "driver", "module"]),
    ("snapshot", &["base", "driver", "slot", "module", "launch", "guard"]),
    ("worker", &["base", "driver", "context", "slot", "module", "launch"]),
];
/// The most files that may import each other in a circle.
const LONGEST_CYCLE: usize = 5;

type Imports = BTreeMap<String, BTreeSet<String>>;

/// The files of `src`, by their modules' paths: `slot::pause` for `src/slot/pause.rs`.
fn modules() -> BTreeMap<String, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    let mut folders = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = |path: &PathBuf| path.file_name().is_some_and(|name| name == "bin" || name == "lib.rs");
            if name(&path) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let inside = path.strip_prefix(&source).expect("below it").with_extension("");
                let module = inside.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("::");
                found.insert(module, fs::read_to_string(path).expect("a text"));
            }
        }
    }
    assert!(found.len() > 30, "{:?}", found.keys());
    found
}

/// The words of a path that begins here: `a::b` of `a::b::{c, d}`.
fn path(text: &str) -> Vec<&str> {
    let end = text.find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':')).unwrap_or(text.len());
    text[..end].split("::").take_while(|word| !word.is_empty()).collect()
}

/// What a file imports: what it names by `crate::`, by `super::`, and by the names of modules that it declares.
fn imports(module: &str, text: &str, all: &BTreeSet<String>) -> BTreeSet<String> {
    let code: String = text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect();
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let own: Vec<&str> = module.split("::").collect();
    let mut found = BTreeSet::new();
    let mut add = |words: &[&str]| {
        let longest = (1..=words.len()).rev().map(|count| words[..count].join("::")).find(|path| all.contains(path));
        found.extend(longest.filter(|path| path != module));
    };
    for (at, start) in code.match_indices("crate::") {
        // In a macro's `$crate`, too.
        add(&path(&code[at + start.len()..]));
    }
    for (at, start) in code.match_indices("super::") {
        add(&[&own[..own.len() - 1], &path(&code[at + start.len()..])].concat());
    }
    let children = all.iter().filter_map(|child| child.strip_prefix(module)?.strip_prefix("::"));
    for child in children.filter(|child| !child.contains("::")) {
        let is_word = |at: usize| !code[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':');
        if code.match_indices(&format!("{child}::")).any(|(at, _)| is_word(at)) {
            add(&[&own[..], &[child]].concat());
        }
    }
    found
}

fn graph() -> Imports {
    let modules = modules();
    let names: BTreeSet<String> = modules.keys().cloned().collect();
    modules.iter().map(|(module, text)| (module.clone(), imports(module, text, &names))).collect()
}

fn layer(module: &str) -> &str {
    let first = module.split("::").next().unwrap_or_default();
    if LAYERS.iter().any(|(layer, _)| *layer == first) { first } else { "base" }
}

#[test]
fn each_folder_imports_only_from_those_that_the_table_names() {
    let mut used = BTreeSet::new();
    for (module, imported) in graph() {
        let own = layer(&module).to_owned();
        let (_, allowed) = LAYERS.iter().find(|(layer, _)| *layer == own).expect("a layer of the table");
        for other in imported {
            let other_layer = layer(&other).to_owned();
            assert!(
                other_layer == own || allowed.contains(&other_layer.as_str()),
                "{module} imports {other}: {own} may not import {other_layer}"
            );
            used.insert((own.clone(), other_layer));
        }
    }
    for (own, allowed) in LAYERS {
        for other in *allowed {
            assert!(
                used.contains(&((*own).to_owned(), (*other).to_owned())),
                "{own} imports nothing of {other} any more: take it out of the table"
            );
        }
    }
}

/// Those that a module leads to, and itself only by a cycle.
fn reached<'a>(graph: &'a Imports, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut work = vec![from];
    while let Some(module) = work.pop() {
        work.extend(graph[module].iter().map(String::as_str).filter(|next| found.insert(*next)));
    }
    found
}

#[test]
fn no_cycle_of_imports_is_long() {
    let graph = graph();
    let reached: BTreeMap<&str, BTreeSet<&str>> = graph.keys().map(|module| (module.as_str(), reached(&graph, module))).collect();
    for (module, others) in &reached {
        let cycle: Vec<_> = others.iter().filter(|other| reached[**other].contains(module)).collect();
        assert!(cycle.len() <= LONGEST_CYCLE, "{cycle:?} import each other");
    }
}
