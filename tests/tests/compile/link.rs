//! Several rewritten translation units in one program: one control block after device linking, each unit's own without it.

use crate::{Checks, Tools};
use cuinstr::options::Options;
use cuinstr_abi::control::{CONTROL_SYMBOL, FLAG_SYMBOL};
use cuinstr_harness::cubin;
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::record;
use cuinstr_harness::unit::{Compiled, STRICT, Unit, call};
use std::path::Path;

const KERNEL: &str = "__device__ int collatz(long long n);\n__global__ void steps(int* out, int n)\n{\n    for (int i = threadIdx.x; i < n; i += blockDim.x)\n        out[i] = collatz(i + 1);\n    __syncthreads();\n}\n";
const FUNCTION: &str = "// another text\n__device__ int collatz(long long n)\n{\n    int steps = 0;\n    while (n != 1) {\n        n = n % 2 ? 3 * n + 1 : n / 2;\n        ++steps;\n    }\n    return steps;\n}\n";
const OTHER_KERNEL: &str = "__global__ void fill(int* out, int n)\n{\n    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = n;\n}\nint main() { return 0; }\n";

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    for std in ["c++11", "c++14", "c++17"] {
        checks.add(format!("link: two units of relocatable {std} have one control block"), move |tools| device_link(tools, std));
    }
    checks.add("link: a program of two units links without relocatable code", |tools| {
        program(
            tools,
            &[],
            [
                OTHER_KERNEL,
                &KERNEL.replace("__device__ int collatz(long long n);", "__device__ int collatz(long long n) { return (int)n; }"),
            ],
        )
    });
    checks.add("link: a program of three units links with relocatable code", |tools| {
        program(tools, &["-rdc=true"], [OTHER_KERNEL, KERNEL, FUNCTION])
    });
}

fn rewritten(name: &str, text: &str) -> Result<Unit, String> {
    Unit::new(name, text).rewrite(&Options::default())
}

fn nvcc(tools: &Tools, folder: &Path, args: &[&str]) -> Result<Compiled, String> {
    let args: Vec<String> = STRICT.iter().chain(args).map(|arg| (*arg).to_owned()).collect();
    call(&tools.nvcc.path, folder, &args)?.expect_clean()
}

fn device_link(tools: &Tools, std: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (kernel, function) = (rewritten("kernel.cu", KERNEL)?, rewritten("function.cu", FUNCTION)?);
    let std = format!("-std={std}");
    for unit in [&kernel, &function] {
        unit.write(folder.path())?;
        nvcc(tools, folder.path(), &["-dc", &std, "-arch=sm_75", "-o", &format!("{}.o", unit.name), &unit.name])?;
    }
    let linked = nvcc(tools, folder.path(), &["-dlink", "-cubin", "-arch=sm_75", "-o", "out", "kernel.cu.o", "function.cu.o"])?;
    let symbols = cubin::symbols(&linked.image)?;
    for name in [CONTROL_SYMBOL, FLAG_SYMBOL] {
        let count = symbols.iter().filter(|symbol| *symbol == name).count();
        if count != 1 {
            return Err(format!("{count} symbols are called {name}: {symbols:?}"));
        }
    }
    let mut maps = record::site_maps(&linked.image)?;
    maps.sort_by(|a, b| b.file.cmp(&a.file));
    let expected = [kernel.site_maps, function.site_maps].concat();
    if maps == expected { Ok(()) } else { Err(format!("the linked cubin holds {maps:#?}\nwhere the rewriter gave {expected:#?}")) }
}

fn program<const N: usize>(tools: &Tools, args: &[&str], texts: [&str; N]) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let names: Vec<String> = (0..N).map(|index| format!("{index}.cu")).collect();
    for (name, text) in names.iter().zip(texts) {
        rewritten(name, text)?.write(folder.path())?;
    }
    let root = tools.nvcc.path.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let libraries = [format!("-L{}", root.join("lib").display()), format!("-L{}", root.join("lib64").display())];
    let mut all = vec!["-arch=sm_75", "-std=c++17", &libraries[0], &libraries[1], "-o", "out"];
    all.extend(args.iter().copied().chain(names.iter().map(String::as_str)));
    nvcc(tools, folder.path(), &all).map(drop)
}
