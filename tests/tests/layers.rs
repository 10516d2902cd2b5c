//! The folders of `instrument/src` import only from folders below them, and no import cycle is larger than a person can follow.

use cuinstr_harness::fixtures::workspace;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Each folder with the folders that it may import, in the order in which a kernel passes through them. A folder may import itself.
const LAYERS: &[(&str, &[&str])] = &[
    ("common", &[]),
    ("source/syntax", &["common"]),
    ("source/analysis", &["common", "source/syntax"]),
    ("source/plan", &["common", "source/syntax", "source/analysis"]),
    ("source/emit", &["common", "source/syntax", "source/analysis", "source/plan"]),
    ("source", &["common", "source/syntax", "source/analysis", "source/plan", "source/emit"]),
    ("polls", &["common"]),
    ("project", &["common"]),
    ("launcher", &["common", "source", "source/syntax", "source/emit", "polls", "project"]),
    ("build", &["common", "source", "source/emit", "polls", "project", "launcher"]),
    ("command", &["common", "source", "source/emit", "polls", "project", "launcher"]),
];

/// Most files of an import cycle.
const MOST_IN_CYCLE: usize = 5;

/// A path of names: of a module from the crate's root, or as it is written.
type Path = Vec<String>;

struct Module {
    words: Vec<String>,
    /// What `use` brings in: names, and the paths that they stand for.
    uses: Vec<(String, Path)>,
}

/// The modules of a crate by their paths. The root is the empty path.
struct Crate(BTreeMap<Path, Module>);

impl Crate {
    fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let path = |file: &str| -> Path {
            let parts = file.trim_end_matches(".rs").split('/').filter(|part| !matches!(*part, "mod" | "lib"));
            parts.map(str::to_owned).collect()
        };
        Self(files.into_iter().map(|(file, text)| (path(file), Module::read(text))).collect())
    }

    /// The module that a path leads to from a module; none if it leads out of the crate.
    fn resolve(&self, from: &Path, path: &[String], depth: usize) -> Option<Path> {
        let (mut at, mut rest): (Path, &[String]) = match path.first()?.as_str() {
            "crate" | "cuinstr" => (Vec::new(), &path[1..]),
            "super" | "self" => {
                let above = path.iter().take_while(|part| matches!(part.as_str(), "super" | "self")).count();
                let ups = path[..above].iter().filter(|part| *part == "super").count();
                (from[..from.len().checked_sub(ups)?].to_vec(), &path[above..])
            }
            first => match self.0[from].stands_for(first).filter(|known| known[0] != first && depth < 8) {
                Some(known) => return self.resolve(from, &[known, &path[1..]].concat(), depth + 1),
                None => (from.clone(), path).to_owned(),
            },
        };
        let is_local = matches!(path[0].as_str(), "crate" | "cuinstr" | "super" | "self");
        if !is_local && !self.0.contains_key(&[&at[..], &rest[..1]].concat()) {
            return None;
        }
        while let Some(next) = rest.first() {
            let below = [&at[..], &rest[..1]].concat();
            if self.0.contains_key(&below) {
                (at, rest) = (below, &rest[1..]);
                continue;
            }
            // An item, or something that the module exports again.
            let again = self.0.get(&at).and_then(|module| module.stands_for(next)).filter(|_| depth < 8);
            let further = again.and_then(|known| self.resolve(&at, &[known, &rest[1..]].concat(), depth + 1));
            return Some(further.unwrap_or(at));
        }
        Some(at)
    }

    /// Each module with the others that it imports.
    fn imports(&self) -> BTreeMap<&Path, BTreeSet<Path>> {
        let of = |(at, module): (&_, &Module)| -> BTreeSet<Path> {
            let named = module.uses.iter().map(|(_, path)| path.clone()).chain(module.inline_paths());
            named.filter_map(|path| self.resolve(at, &path, 0)).filter(|to| to != at && self.0.contains_key(to)).collect()
        };
        self.0.iter().map(|(at, module)| (at, of((at, module)))).collect()
    }

    /// Imports that the table does not allow.
    fn backward(&self, layers: &[(&str, &[&str])]) -> Vec<String> {
        let folder = |module: &Path| {
            let name = module.join("/");
            let holds = |folder: &&(&str, &[&str])| name == folder.0 || name.starts_with(&format!("{}/", folder.0));
            layers.iter().copied().filter(|layer| holds(&layer)).max_by_key(|(folder, _)| folder.len())
        };
        let mut found = Vec::new();
        for (module, others) in self.imports() {
            // The crate's root names all there is.
            let Some((own, allowed)) = folder(module) else { continue };
            for other in others {
                let of = folder(&other).map_or("", |(folder, _)| folder);
                if of != own && !allowed.contains(&of) {
                    found.push(format!("{} imports {}", module.join("::"), other.join("::")));
                }
            }
        }
        found
    }

    /// Sets of modules that import each other in a circle.
    fn cycles(&self) -> BTreeSet<BTreeSet<Path>> {
        let imports = self.imports();
        let reach = |from: &Path| {
            let (mut seen, mut work) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = work.pop() {
                work.extend(imports[&module].iter().filter(|other| seen.insert((*other).clone())).cloned());
            }
            seen
        };
        let reached: BTreeMap<&Path, BTreeSet<Path>> = imports.keys().map(|module| (*module, reach(module))).collect();
        let circle = |module: &&Path| reached[module].iter().filter(|other| reached[other].contains(*module)).cloned().collect();
        imports.keys().map(circle).filter(|circle: &BTreeSet<Path>| circle.len() > 1).collect()
    }
}

impl Module {
    fn read(text: &str) -> Self {
        let words = words(text);
        let mut uses = Vec::new();
        let mut rest = Vec::new();
        let mut at = 0;
        while at < words.len() {
            if words[at] == "use" {
                let end = words[at..].iter().position(|word| word == ";").map_or(words.len(), |length| at + length);
                leaves(&words[at + 1..end], &[], &mut uses);
                at = end;
            } else if words[at..].starts_with(&["pub", "(", "in"].map(str::to_owned)) {
                // Who may see a name is no import.
                at += words[at..].iter().position(|word| word == ")").unwrap_or(words.len() - at - 1);
            } else {
                rest.push(words[at].clone());
            }
            at += 1;
        }
        Self { words: rest, uses }
    }

    fn stands_for(&self, name: &str) -> Option<&[String]> {
        self.uses.iter().find(|(known, _)| known == name).map(|(_, path)| &path[..])
    }

    /// Paths outside `use`, such as `crate::a::b`.
    fn inline_paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        let is_name = |at: usize| self.words.get(at).is_some_and(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'));
        for at in 0..self.words.len() {
            let begins = is_name(at) && (at == 0 || self.words[at - 1] != "::");
            let mut path = vec![self.words[at].clone()];
            let mut next = at + 1;
            while self.words.get(next).is_some_and(|word| word == "::") && is_name(next + 1) {
                path.push(self.words[next + 1].clone());
                next += 2;
            }
            if begins && path.len() > 1 {
                found.push(path);
            }
        }
        found
    }
}

/// The paths of a `use`, with the names that they get.
fn leaves(tree: &[String], before: &[String], found: &mut Vec<(String, Path)>) {
    let brace = tree.iter().position(|word| word == "{");
    let end = brace.or_else(|| tree.iter().position(|word| word == "as")).unwrap_or(tree.len());
    let mut path = before.to_vec();
    path.extend(tree[..end].iter().filter(|word| *word != "::").cloned());
    let Some(brace) = brace else {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = tree.get(end + 1).or(path.last()).cloned();
        found.extend(name.map(|name| (name, path)));
        return;
    };
    let (mut depth, mut from) = (0, brace + 1);
    for at in brace..tree.len() {
        match tree[at].as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if (depth == 1 && tree[at] == ",") || depth == 0 {
            if from < at {
                leaves(&tree[from..at], &path, found);
            }
            from = at + 1;
        }
    }
}

/// The words of a file: names, `::` and signs. Comments, literals and the file's own unit tests are left out.
fn words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let raw = rest.trim_start_matches('b').strip_prefix('r').filter(|behind| behind.trim_start_matches('#').starts_with('"'));
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(behind) = raw.filter(|_| rest.starts_with(['r', 'b'])) {
            let hashes = behind.len() - behind.trim_start_matches('#').len();
            let begin = rest.len() - behind.len() + hashes + 1;
            let end = format!("\"{}", "#".repeat(hashes));
            rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len())
        } else if first == '"' {
            quoted(rest)
        } else if first == '\'' {
            // A character, or a lifetime's tick.
            let mut inside = rest[1..].chars();
            match (inside.next(), inside.next()) {
                (Some('\\'), Some(escaped)) => {
                    let behind = 2 + escaped.len_utf8();
                    rest[behind..].find('\'').map_or(rest.len(), |at| behind + at + 1)
                }
                (Some(one), Some('\'')) => 2 + one.len_utf8(),
                _ => 1,
            }
        } else if is_name(first) {
            let name: String = rest.chars().take_while(|c| is_name(*c)).collect();
            let length = name.len();
            found.push(name);
            length
        } else if rest.starts_with("::") {
            found.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                found.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    let is_test = |at: usize| {
        found[at..].starts_with(&["#", "[", "cfg", "("].map(str::to_owned)) && found[at + 4..].iter().take(3).any(|word| word == "test")
    };
    let module = |at: usize| {
        found[at..].iter().position(|word| word == "]").is_some_and(|end| found.get(at + end + 1).is_some_and(|word| word == "mod"))
    };
    let tests = (0..found.len()).find(|at| is_test(*at) && module(*at));
    found.truncate(tests.unwrap_or(found.len()));
    found
}

/// The length of a literal between quotes.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// The files below `instrument/src`, by their paths from there.
fn instrument() -> Vec<(String, String)> {
    let root = workspace().join("instrument/src");
    let mut work = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(path) = work.pop() {
        if path.is_dir() {
            work.extend(fs::read_dir(&path).expect("a folder of the repository").map(|entry| entry.expect("a readable entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(&root).expect("a file below the root").to_string_lossy().into_owned();
            found.push((name, fs::read_to_string(&path).expect("a file of the repository")));
        }
    }
    found
}

fn read(files: &[(String, String)]) -> Crate {
    Crate::new(files.iter().map(|(path, text)| (path.as_str(), text.as_str())))
}

#[test]
fn folders_import_only_folders_below_them() {
    let files = instrument();
    assert_eq!(read(&files).backward(LAYERS), Vec::<String>::new());
    for (folder, _) in LAYERS {
        let is_there = files.iter().any(|(path, _)| path.starts_with(&format!("{folder}/")) || *path == format!("{folder}.rs"));
        assert!(is_there, "no folder `{folder}`: has it moved?");
    }
}

#[test]
fn import_cycles_are_small() {
    for cycle in read(&instrument()).cycles() {
        let names: Vec<String> = cycle.iter().map(|module| module.join("::")).collect();
        assert!(cycle.len() <= MOST_IN_CYCLE, "{} files import each other in a circle: {}", cycle.len(), names.join(", "));
    }
}

#[test]
fn a_backward_import_is_found_however_it_is_written() {
    let layers: &[(&str, &[&str])] = &[("low", &[]), ("high", &["low"])];
    let backward = |text: &str| {
        let files = [
            ("lib.rs", "mod low; mod high; pub use high::thing::Thing;"),
            ("low/mod.rs", "pub mod a; use self::a::f;"),
            ("low/a.rs", text),
        ];
        let rest = [("high/mod.rs", "pub mod thing; use crate::low::a;"), ("high/thing.rs", "pub struct Thing; use super::super::low;")];
        Crate::new(files.into_iter().chain(rest)).backward(layers)
    };
    for planted in [
        "use crate::high::thing;",
        "use crate::{low, high::thing::{self, Thing}};",
        "use super::super::high::thing as other;",
        "fn f() -> crate::high::thing::Thing { todo }",
        "fn f(x: super::super::high::thing::Thing) {}",
        "use crate::Thing;",
        "use crate::high;\nfn f() { high::thing::g() }",
        "fn f<'a>(c: char) -> bool { c == '\"' && crate::high::thing::g(\"\\\\\") }",
    ] {
        assert!(backward(planted).contains(&"low::a imports high::thing".to_owned()), "{planted}: {:?}", backward(planted));
    }
    for fine in [
        "use super::b; use std::fmt; fn f() { std::mem::take(x); Self::g() }",
        "// use crate::high::thing;\n/* crate::high::thing */",
        "const TEXT: &str = \"crate::high::thing\"; const RAW: &str = r#\"use crate::high::thing; \"# ;",
        "#[cfg(test)]\nmod tests { use crate::high::thing; }",
        "#[cfg(all(test, feature = \"x\"))]\nmod tests { use crate::high::thing; }",
    ] {
        assert_eq!(backward(fine), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn a_cycle_is_found_with_all_its_files() {
    let next = |name: &str| format!("use crate::{name};");
    let texts: Vec<(String, String)> = (0..6).map(|at| (format!("m{at}.rs"), next(&format!("m{}", (at + 1) % 6)))).collect();
    let cycles = read(&texts).cycles();
    assert_eq!(cycles.iter().map(BTreeSet::len).collect::<Vec<_>>(), [6]);
    assert_eq!(read(&texts[..5]).cycles(), BTreeSet::new());
}
