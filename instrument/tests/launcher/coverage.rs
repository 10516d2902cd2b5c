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
    assert!(text(&output.stderr).contains("--cuinstr-coverage names no folder"));
}
