//! `--cuinstr-coverage`: what became of each file of a build.

use crate::project::{Project, SPIN, expect, text};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[test]
fn each_unit_leaves_a_file_that_says_what_became_of_its_files() {
    let source = format!("#include \"loop.cuh\"\n{SPIN}__global__ void gap() {{ asm(\"L: bra L;\"); }}\n");
    let header = "__device__ void look(int* p) { for (int i = 0; i < 4; ++i) p[i] = 0; }\n";
    let project = Project::new(&[("a.cu", &source), ("loop.cuh", header), ("plain.h", "int f();\n")]);
    // By nvcc's own words, and twice: the second is the same unit.
    for _ in 0..2 {
        expect(project.launch(&["-c", "a.cu", "--cuinstr-coverage", "covered"]).env("SHIM_SOURCES", "a.cu"), 0);
        assert!(!project.record().1.iter().any(|word| word.contains("coverage")), "nvcc is not told");
    }
    // By the variable, with other names defined: another unit.
    let mut command = project.launch(&["-c", "a.cu"]);
    expect(command.env("SHIM_SOURCES", "a.cu").env("SHIM_OPTIONS", "-DX=1").env("CUINSTR_FLAGS", "--coverage covered"), 0);
    let files = fs::read_dir(project.path().join("covered")).expect("a folder").map(|entry| entry.expect("readable").path());
    let units: Vec<serde_json::Value> =
        files.map(|path| serde_json::from_slice(&fs::read(path).expect("readable")).expect("JSON")).collect();
    assert_eq!(units.len(), 2);
    for unit in &units {
        assert_eq!((&unit["source"], &unit["code"]), (&"a.cu".into(), &0.into()));
        assert!(unit["words"].as_array().is_some_and(|words| words.iter().any(|word| word == "-D__CUDACC__")));
        let by_name: BTreeMap<_, _> = unit["files"]
            .as_array()
            .expect("files")
            .iter()
            .map(|file| {
                let name = Path::new(file["file"].as_str().expect("a path")).file_name().expect("a name").to_owned();
                (name.into_string().expect("text"), file)
            })
            .collect();
        assert_eq!(by_name.keys().collect::<Vec<_>>(), ["a.cu", "loop.cuh"]);
        assert_eq!(by_name["a.cu"]["rewritten"], true);
        assert!(by_name["a.cu"]["said"][0].as_str().is_some_and(|said| said.contains("CI013")), "{unit}");
        assert_eq!(by_name["loop.cuh"]["sites"]["sites"][0]["form"], "none");
    }
    let output = expect(project.launch(&["-c", "a.cu", "--cuinstr-coverage"]).env("SHIM_SOURCES", "a.cu"), 2);
    assert!(text(&output.stderr).contains("among nvcc's own: --cuinstr-coverage"));
}

/// A result of `scripts/coverage` for a project of that name.
fn result(name: &str, loops: &serde_json::Value, more: &serde_json::Value) -> String {
    let mut all = serde_json::json!({ "name": name, "files": 2, "loops": loops });
    for part in [more, &serde_json::json!({ "said": [] })] {
        all.as_object_mut().expect("an object").extend(part.as_object().expect("an object").clone());
    }
    all.to_string()
}

#[test]
fn rows_take_from_each_result_what_its_machine_found_out() {
    use serde_json::json;
    let columns = "| project | files | loops | polled | bounded | not covered | of libraries | builds | same output | time | compile time | size |\n\
                   | --- | ---: | ---: | ---: | ---: | --- | ---: | --- | --- | ---: | ---: | ---: |\n";
    let before = "| b | 1 | 4 | 4 | 0 | 0 | 0 | yes | **no** | 1.50 | 1.10 | 1.05 |\n| **all** | 1 | 4 | 4 | 0 | 0 | 0 | 1 of 1 | 0 of 1 |  |  |  |\n";
    let counted =
        json!({ "counted": true, "own": 5, "polled": 3, "bounded": 1, "library": 7, "causes": { "CI010": 1 }, "errors": ["a.cu: odd"] });
    // Without libclang.
    let blind =
        json!({ "counted": false, "own": 0, "polled": 0, "bounded": 0, "library": 0, "causes": {}, "errors": ["a.cu: no libclang"] });
    let built = |processor: f64| json!({ "plain": { "status": 0, "processor": 2.0, "bytes": 100 }, "ours": { "status": 0, "processor": processor, "bytes": 150 } });
    let mut ran = built(3.0);
    ran["run"] = json!({ "same": true });
    ran["kernels"] = json!({ "plain": 100, "ours": 125 });
    let project = Project::new(&[
        ("here.json", &result("A", &counted, &built(2.5))),
        ("there.json", &result("A", &blind, &ran)),
        ("again.json", &result("b", &blind, &built(2.5))),
        // Loops alone, and a build that was ended.
        ("loops.json", &result("slow", &counted, &json!({}))),
        (
            "late.json",
            &result("slow", &blind, &json!({ "plain": { "status": 0, "processor": 2.0 }, "ours": { "status": null, "processor": 9.0 } })),
        ),
    ]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/coverage");
    let mut tables = Vec::new();
    for order in [
        ["loops.json", "here.json", "there.json", "again.json", "late.json"],
        ["late.json", "again.json", "there.json", "here.json", "loops.json"],
    ] {
        project.write("table.md", &format!("words\n\n{columns}{before}\nmore words\n"));
        expect(project.command("python3").arg(&script).args(["--table", "table.md"]).args(order), 0);
        tables.push(fs::read_to_string(project.path().join("table.md")).expect("readable"));
    }
    // What was compiled last counts for what compiling takes.
    for (table, compile) in tables.iter().zip(["1.50", "1.25"]) {
        let rows = format!(
            "| A | 2 | 5 | 3 | 1 | 1 CI010 | 7 | yes | yes | 1.25 | {compile} | 1.50 |\n\
             | b | 1 | 4 | 4 | 0 | 0 | 0 | yes | **no** | 1.50 | 1.25 | 1.50 |\n\
             | slow | 2 | 5 | 3 | 1 | 1 CI010 | 7 | not in time | - | - | - | - |\n\
             | **all** | 5 | 14 | 10 | 2 | 2 | 14 | 2 of 3 | 1 of 2 |  |  |  |\n"
        );
        assert_eq!(*table, format!("words\n\n{columns}{rows}\nmore words\n"));
    }
}
