//! Compilers name the user's file and line, whatever was put in front of it.

use crate::{Checks, Tools};
use cuinstr::options::Options;
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::ptx;
use cuinstr_harness::unit::Unit;

/// A mistake on line 7.
const WRONG: &str = "// a kernel\n\n__global__ void k(int* p, int n)\n{\n    for (int i = 0; i < n; ++i)\n        if (p[i])\n            p[i] = nowhere;\n}\n";

const HOST: &str = "__global__ void k(int* p, int n)\n{\n    for (int i = 0; i < n; ++i) p[i] = 1;\n}\n\n\n#error seventh\n";

/// What only the compiler knows of its place, in device code, in host code, and behind loops on the same line.
const PLACES: &str = r#"__global__ void k(volatile int* p, int n)
{
    for (int i = 0; i < n; ++i) { p[i] = __LINE__ * 1000; }
    static_assert(__LINE__ == 4, "four");
    while (p[n]) { static_assert(__LINE__ == 5, "five"); p[n + 1] = __LINE__ * 1000; }
    do p[n + 2] = __LINE__ * 1000; while (p[n]);
}
static_assert(__LINE__ == 8, "eight");
__device__ const char* file() { return __FILE__; }
"#;

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    for name in ["name.cu", "src/deep er/näme.cu"] {
        checks.add(format!("lines: a mistake in device code is reported at {name}, line 7"), move |tools| {
            for text in [WRONG.to_owned(), WRONG.replace('\n', "\r\n"), format!("\u{feff}{WRONG}")] {
                mistake(tools, name, &text, &["-ptx"], &format!("{name}(7): error"))?;
            }
            Ok(())
        });
    }
    checks.add("lines: a mistake for the host's compiler is reported at its line", |tools| {
        mistake(tools, "name.cu", HOST, &["-c"], "name.cu:7:2: error: #error")
    });
    checks.add("lines: __LINE__ and __FILE__ are the user's", places);
    checks.add("lines: -lineinfo names the user's file and lines", line_information);
    checks.add("lines: NVRTC reports a mistake at its line", |tools| {
        let unit = Unit::new("name.cu", WRONG).rewrite(&Options::default())?;
        expect(&unit.nvrtc(tools.nvrtc.as_ref()?, &["--gpu-architecture=compute_75"])?.said, "name.cu(7): error")
    });
}

fn expect(said: &str, words: &str) -> Result<(), String> {
    if said.lines().any(|line| line.starts_with(words)) { Ok(()) } else { Err(format!("no line begins with `{words}`:\n{said}")) }
}

fn mistake(tools: &Tools, name: &str, text: &str, args: &[&str], words: &str) -> Result<(), String> {
    let plain = Unit::new(name, text);
    for unit in [plain.clone(), plain.rewrite(&Options::default())?] {
        expect(&unit.nvcc(&tools.nvcc, args)?.said, words)?;
    }
    Ok(())
}

fn places(tools: &Tools) -> Result<(), String> {
    let plain = Unit::new("src/name.cu", PLACES);
    let mut strings = Vec::new();
    for unit in [plain.clone(), plain.rewrite(&Options::default())?] {
        let ptx = unit.nvcc(&tools.nvcc, &["-ptx", "-rdc=true"])?.expect_clean()?.text();
        for line in [3000, 5000, 6000] {
            let operand = format!(" {line};");
            if !ptx.lines().any(|text| (text.contains("mov.") || text.contains("st.")) && text.contains(&operand)) {
                return Err(format!("the PTX stores no {line}:\n{ptx}"));
            }
        }
        let bytes = ptx::variables(&ptx).into_iter().filter_map(|variable| variable.bytes());
        strings.push(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).find(|text| text.starts_with("src/")));
    }
    match &strings[..] {
        [Some(plain), Some(rewritten)] if plain == rewritten && plain.trim_end_matches('\0') == "src/name.cu" => Ok(()),
        _ => Err(format!("__FILE__ is {strings:?}")),
    }
}

fn line_information(tools: &Tools) -> Result<(), String> {
    let text = "__device__ int twice(int n)\n{\n    return 2 * n;\n}\n__global__ void k(int* p, int n)\n{\n    for (int i = 0; i < n; ++i) {\n        p[i] = twice(p[i]);\n    }\n}\n";
    let plain = Unit::new("name.cu", text);
    let mut seen = Vec::new();
    for unit in [plain.clone(), plain.rewrite(&Options::default())?] {
        let ptx = unit.nvcc(&tools.nvcc, &["-ptx", "-lineinfo"])?.expect_clean()?.text();
        let files = ptx::files(&ptx);
        let own = files.iter().find(|(_, path)| path.ends_with("/name.cu")).map(|(number, _)| *number);
        let own = own.ok_or_else(|| format!("-lineinfo names no name.cu: {files:?}"))?;
        let lines: Vec<u32> = ptx::cycles(&ptx)
            .iter()
            .flat_map(|cycle| cycle.places.clone())
            .filter(|(file, _)| *file == own)
            .map(|(_, line)| line)
            .collect();
        if !(lines.contains(&7) && lines.contains(&8)) {
            return Err(format!("lines of the loop: {lines:?}"));
        }
        seen.push(files.len());
    }
    // The prelude's own lines have no other file to belong to.
    if seen[0] <= seen[1] { Ok(()) } else { Err(format!("files named by each: {seen:?}")) }
}
