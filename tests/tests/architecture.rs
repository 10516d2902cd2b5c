//! The invariants that are about the source itself, most of them about what is absent.

use cuinstr_harness::fixtures::workspace;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longest a file may get.
const MOST_LINES: usize = 600;

/// Files that may hold `unsafe`: calls of the CUDA driver, of NVRTC and of libclang, for which this project can't
/// vouch; launches, for whose arguments only the caller can vouch; and an allocator that counts.
const MAY_BE_UNSAFE: &[&str] = &[
    "evaluate/src/baseline/child.rs",
    "instrument/clang/src/lib.rs",
    "python/src/guard.rs",
    "python/src/worker.rs",
    "runtime/c/src/exports.rs",
    "runtime/c/src/processes.rs",
    "runtime/c/src/snapshots.rs",
    "runtime/checkpoint/src/driver.rs",
    "runtime/examples/ctrl_c.rs",
    "runtime/examples/mutants/trial.rs",
    "runtime/examples/race.rs",
    "runtime/examples/snapshot.rs",
    "runtime/examples/stop_a_hang.rs",
    "runtime/examples/suspended.rs",
    "runtime/gpus/src/probe.rs",
    "runtime/interpose/src/calls.rs",
    "runtime/interpose/src/compilers.rs",
    "runtime/interpose/src/control.rs",
    "runtime/interpose/src/driver.rs",
    "runtime/interpose/src/entry.rs",
    "runtime/interpose/src/half.rs",
    "runtime/interpose/src/handles.rs",
    "runtime/interpose/src/image.rs",
    "runtime/interpose/src/jitlink.rs",
    "runtime/interpose/src/lib.rs",
    "runtime/interpose/src/lookup.rs",
    "runtime/interpose/src/open.rs",
    "runtime/interpose/src/session.rs",
    "runtime/examples/urgent.rs",
    "runtime/src/driver.rs",
    "runtime/src/driver/handle.rs",
    "runtime/src/driver/mapped.rs",
    "runtime/src/guard.rs",
    "runtime/src/guard/attach.rs",
    "runtime/src/guard/left.rs",
    "runtime/src/jit/nvrtc.rs",
    "runtime/src/launch.rs",
    "runtime/src/launch/again.rs",
    "runtime/src/launch/argument.rs",
    "runtime/src/launch/prepared.rs",
    "runtime/src/launch/remainder.rs",
    "runtime/src/snapshot.rs",
    "runtime/src/worker/serve.rs",
    "runtime/stand-in/src/calls.rs",
    "runtime/stand-in/src/client.rs",
    "runtime/stand-in/src/control.rs",
    "runtime/stand-in/src/cudart.rs",
    "runtime/stand-in/src/raw.rs",
    "runtime/stand-in/src/versions.rs",
    "runtime/tests/stand_in/interfaces.rs",
    "runtime/tests/stand_in/snapshots.rs",
    "runtime/tests/stand_in/endings.rs",
    "runtime/tests/stand_in/guards.rs",
    "runtime/tests/stand_in/pauses.rs",
    "runtime/tests/stand_in/scenarios.rs",
    "runtime/tests/stand_in/soak.rs",
    "runtime/tests/stand_in/world.rs",
    "tests/measure/src/bench/rig.rs",
    "tests/measure/src/bench/soak.rs",
    "tests/src/bin/nvrtc-compile.rs",
    "tests/measure/src/bin/runtime-bench.rs",
    "tests/gpu/src/checks/runtime/bench.rs",
    "tests/gpu/src/checks/runtime/blocking.rs",
    "tests/gpu/src/checks/runtime/guard.rs",
    "tests/gpu/src/checks/runtime/limits.rs",
    "tests/gpu/src/checks/runtime/misuse.rs",
    "tests/gpu/src/launcher.rs",
    "tests/gpu/src/launcher/control.rs",
    "tests/gpu/src/launcher/memory.rs",
    "tests/measure/src/pause/figures.rs",
    "tests/measure/src/pause/subject.rs",
];

/// Rust files below the folders, by their paths from the workspace's root.
fn rust_files(folders: &[&str]) -> Vec<(String, String)> {
    let mut work: Vec<PathBuf> = folders.iter().map(|folder| workspace().join(folder)).collect();
    let mut found = Vec::new();
    while let Some(path) = work.pop() {
        if path.is_dir() {
            work.extend(fs::read_dir(&path).expect("a folder of the repository").map(|entry| entry.expect("a readable entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let shown = path.strip_prefix(workspace()).unwrap_or(&path).to_string_lossy().into_owned();
            found.push((shown, fs::read_to_string(&path).expect("a file of the repository")));
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no Rust files below {folders:?}");
    found
}

/// The crate that proves.
const PROOF: &str = "instrument/verify/src";

const ALL: &[&str] = &["evaluate", "instrument", "mutate", "python", "runtime", "tests", "fuzz/fuzz_targets"];

/// The library's own files and the proof's: without the command, without what may write to a terminal, and without what stands around whole projects.
fn library() -> Vec<(String, String)> {
    let outside =
        ["instrument/src/main.rs", "instrument/src/command", "instrument/src/launcher/", "instrument/src/project/", "instrument/src/build"];
    // Compiled for tests alone: it reads their texts.
    let outside = [&outside[..], &["instrument/verify/src/module/record.rs"]].concat();
    rust_files(&["instrument/src", PROOF]).into_iter().filter(|(path, _)| !outside.iter().any(|part| path.starts_with(part))).collect()
}

/// A line without its comment.
fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Whether the code names the word, as a word of its own.
fn names(code: &str, word: &str) -> bool {
    let is_part = |byte: Option<char>| byte.is_some_and(|byte| byte.is_alphanumeric() || byte == '_');
    code.match_indices(word).any(|(at, _)| !is_part(code[..at].chars().next_back()) && !is_part(code[at + word.len()..].chars().next()))
}

/// Places, as `path:line`, where the code of these files names any of the words.
fn places<'a>(files: impl IntoIterator<Item = &'a (String, String)>, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        for (index, line) in text.lines().enumerate() {
            if words.iter().any(|word| names(code(line), word)) {
                found.push(format!("{path}:{}: {}", index + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn the_library_does_no_io() {
    let files = ["std::fs", "std::env", "std::process", "std::net", "std::io", "std::thread"];
    let output = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];
    assert_eq!(places(&library(), &[&files[..], &output].concat()), Vec::<String>::new());
}

#[test]
fn the_library_measures_no_time_and_hashes_in_no_random_order() {
    // Same bytes and options, same output.
    let words = ["HashMap", "HashSet", "RandomState", "SystemTime", "Instant"];
    assert_eq!(places(&library(), &words), Vec::<String>::new());
}

#[test]
fn one_module_of_a_crate_names_tree_sitter_and_one_the_renderer() {
    for (words, folder, owner) in [
        (["tree_sitter", "tree_sitter_cuda"], "instrument/src", Some("instrument/src/source/syntax/grammar.rs")),
        (["tree_sitter", "tree_sitter_cuda"], "mutate", Some("mutate/src/walk.rs")),
        (["tree_sitter", "tree_sitter_cuda"], "runtime", None),
        (["annotate_snippets", "annotate_snippets"], "instrument/src", Some("instrument/src/common/render.rs")),
        (["annotate_snippets", "annotate_snippets"], "runtime", Some("runtime/src/report/text.rs")),
    ] {
        let files = rust_files(&[folder]);
        let others: Vec<_> = files.iter().filter(|(path, _)| Some(path.as_str()) != owner).cloned().collect();
        assert_eq!(places(&others, &words), Vec::<String>::new(), "in {folder} only {owner:?} may name {}", words[0]);
        if let Some(owner) = owner {
            let found = places(&files, &words);
            assert_ne!(found, Vec::<String>::new(), "{owner} names {} no more: does another file under another name?", words[0]);
        }
    }
}

#[test]
fn unsafe_code_stands_in_listed_files_each_time_with_its_reason() {
    let files = rust_files(ALL);
    // What forbids it names it as `unsafe_code`, which is another word; this file names it in strings.
    let own = "tests/tests/architecture.rs";
    let (listed, others): (Vec<_>, Vec<_>) =
        files.into_iter().filter(|(path, _)| path != own).partition(|(path, _)| MAY_BE_UNSAFE.contains(&path.as_str()));
    assert_eq!(places(&others, &["unsafe"]), Vec::<String>::new());
    assert_eq!(listed.len(), MAY_BE_UNSAFE.len(), "a listed file is gone");
    for (path, text) in &listed {
        assert_ne!(places([&(path.clone(), text.clone())], &["unsafe"]), Vec::<String>::new(), "{path} needs no place on the list");
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| code(line).contains("unsafe {")) {
            let reason = lines[index.saturating_sub(6)..=index].iter().any(|line| line.contains("SAFETY:"));
            assert!(reason, "{path}:{}: no reason stands above `{}`", index + 1, line.trim());
        }
    }
}

#[test]
fn the_proof_and_the_rewriter_share_no_code() {
    let (proof, others): (Vec<_>, Vec<_>) = library().into_iter().partition(|(path, _)| path.starts_with(PROOF));
    assert!(proof.len() > 10, "the proof has moved");
    // Of the project's crates the proof uses the PTX reader alone.
    let manifest = fs::read_to_string(workspace().join("instrument/verify/Cargo.toml")).expect("the proof's manifest");
    let used: Vec<&str> = manifest.lines().filter(|line| line.starts_with("cuinstr")).collect();
    assert_eq!(used, ["cuinstr-ptx.workspace = true"]);
    // The crate's root is handed on, and the codes of findings are names.
    let users = ["instrument/src/lib.rs", "instrument/src/common/diagnostic.rs"];
    let others: Vec<_> = others.into_iter().filter(|(path, _)| !users.contains(&path.as_str())).collect();
    // Where diagnostics are explained, the command's name stands in sentences.
    let others: Vec<_> = others.into_iter().map(|(path, text)| (path, text.replace("`cuinstr verify`", ""))).collect();
    assert_eq!(places(&others, &["verify", "verify_ptx", "cuinstr_verify"]), Vec::<String>::new());
}

#[test]
fn no_file_is_longer_than_a_person_reads_in_one_go() {
    for (path, text) in rust_files(ALL) {
        let lines = text.lines().count();
        assert!(lines <= MOST_LINES, "{path} has {lines} lines");
    }
}

/// Longest a function may get without a reason, which begins with these words in its comment.
const MOST_LINES_OF_A_FUNCTION: usize = 80;
const REASON: &str = "Over 80 lines: ";

#[test]
fn a_long_function_says_why_it_is_no_shorter() {
    for (path, text) in rust_files(ALL) {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| names(code(line), "fn") && !code(line).contains("fn(")) {
            let indent = line.len() - line.trim_start().len();
            let closes = format!("{}}}", " ".repeat(indent));
            let is_end = |(nth, other): (usize, &&str)| *other == closes || nth == 0 && other.ends_with([';', '}']);
            let length = lines[at..].iter().enumerate().position(is_end).map_or(1, |end| end + 1);
            let comment = lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with(['/', '#']));
            let has_reason = comment.into_iter().any(|line| line.contains(REASON));
            assert!(length <= MOST_LINES_OF_A_FUNCTION || has_reason, "{path}:{}: {length} lines", at + 1);
        }
    }
}

#[test]
fn what_goes_into_users_sources_includes_nothing_and_defines_only_its_own_names() {
    let part =
        |name: &str| fs::read_to_string(workspace().join("instrument/src/source/emit/prelude").join(name)).expect("a part of the prelude");
    let prelude: String = ["settings.cuh", "control.cuh", "look.cuh", "loops.cuh", "kernel.cuh"].into_iter().map(part).collect();
    for line in prelude.lines().map(str::trim) {
        assert!(!line.starts_with("#include"), "{line}");
        if let Some(name) = line.strip_prefix("#define ") {
            assert!(name.starts_with("__cuinstr_"), "{line}");
        }
    }
    assert!(prelude.starts_with("// SPDX-License-Identifier: 0BSD\n"));
}

#[test]
fn each_term_of_the_glossary_has_a_line_and_a_reference_that_is_there() {
    let text = fs::read_to_string(workspace().join("docs/GLOSSARY.md")).expect("the glossary");
    let rows: Vec<Vec<&str>> =
        text.lines().filter(|line| line.starts_with("| ")).map(|line| line.split('|').map(str::trim).collect()).collect();
    assert!(rows.len() > 50, "{} rows", rows.len());
    assert!(rows.windows(2).skip(2).all(|pair| pair[0][1].to_lowercase() <= pair[1][1].to_lowercase()), "the terms are sorted");
    for row in &rows[2..] {
        let ["", term, meaning, reference, ""] = row[..] else { panic!("{row:?} is no row of three cells") };
        assert!(![term, meaning, reference].contains(&""), "{term}: a cell is empty");
        let path = match (reference.split_once("]("), reference.strip_prefix('`')) {
            (Some((_, link)), _) if !link.starts_with("https://doi.org/") => {
                format!("docs/{}", link.split(['#', ')']).next().unwrap_or(""))
            }
            (None, Some(path)) => path.trim_end_matches('`').to_owned(),
            _ => continue,
        };
        assert!(workspace().join(&path).exists(), "{term}: {path} is not there");
    }
}

/// The workspace's crates as Cargo describes them.
fn crates() -> Vec<serde_json::Value> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let done = Command::new(cargo).args(words).current_dir(workspace()).output().expect("cargo runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut described: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let serde_json::Value::Array(packages) = described["packages"].take() else { panic!("no packages") };
    assert!(packages.len() > 20, "{} crates", packages.len());
    packages
}

#[test]
fn every_crate_of_the_workspace_takes_its_lints() {
    for package in crates() {
        let path = package["manifest_path"].as_str().expect("a path");
        let manifest = fs::read_to_string(path).expect("a manifest");
        assert!(manifest.contains("[lints]\nworkspace = true"), "{path}");
    }
}

#[test]
fn a_published_crate_says_what_it_is_and_needs_published_crates_alone() {
    let crates = crates();
    let published: Vec<_> = crates.iter().filter(|package| package["publish"].is_null()).collect();
    let names: Vec<_> = published.iter().map(|package| &package["name"]).collect();
    for package in &published {
        let name = &package["name"];
        for key in ["description", "license", "repository", "readme", "keywords", "categories"] {
            let value = &package[key];
            assert!(
                value.as_str().is_some_and(|text| !text.is_empty()) || value.as_array().is_some_and(|list| !list.is_empty()),
                "{name}: {key}"
            );
        }
        let folder = Path::new(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder");
        for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
            assert!(folder.join(license).is_file(), "{name} has no {license}: link it to the one at the top");
        }
        // A development dependency without a version stays out of the package; any other must be had from the registry.
        for needed in package["dependencies"].as_array().expect("a list").iter().filter(|needed| needed["path"].is_string()) {
            let stays_out = needed["kind"] == "dev" && needed["req"] == "*";
            assert!(stays_out || (needed["req"] != "*" && names.contains(&&needed["name"])), "{name} needs {}", needed["name"]);
        }
    }
}
