//! What `cuinstr-image` reads from real files of every form: text, kernels, architectures and the site map that the rewriter gave.

use crate::{Checks, Tools};
use cuinstr::options::Options;
use cuinstr::verify::verify_ptx;
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::random::Random;
use cuinstr_harness::unit::{Unit, call};
use cuinstr_image::{Content, Form, Image};
use std::path::Path;

const TEXT: &str = "template <typename T>\n__global__ void collatz(T* out, T n)\n{\n    for (T i = threadIdx.x; i < n; i += blockDim.x) {\n        int steps = 0;\n        for (T at = i; at > 1; ++steps) at = at % 2 ? 3 * at + 1 : at / 2;\n        out[i] = steps;\n    }\n}\ntemplate __global__ void collatz<int>(int*, int);\nextern \"C\" __global__ void spin(volatile int* flag) { while (!*flag) {} }\n";
const LAUNCHES: &str = "__global__ void child(int* p) { *p = 1; }\n__global__ void parent(int* p) { child<<<1, 1>>>(p); }\nint main() { parent<<<1, 1>>>(nullptr); return 0; }\n";
const MAIN: &str = "int main() { return 0; }\n";

/// What a file must turn out to hold.
#[derive(Debug, Clone, Copy)]
struct Expected {
    form: Form,
    /// Architectures of the parts of our unit that are PTX, and of those that are machine code.
    ptx: &'static [&'static str],
    code: &'static [&'static str],
    /// Parts that run without their PTX beside them.
    alone: usize,
}

const BOTH: &[&str] = &["80"];

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    let both = |form| Expected { form, ptx: BOTH, code: BOTH, alone: 0 };
    let mut case = |name: &str, since: (u32, u32), commands: &'static str, expected| {
        checks.add(format!("image: {name}"), move |tools| {
            if release(tools) < since {
                // This toolkit lacks the options.
                return Ok(());
            }
            check(tools, commands, expected)
        });
    };
    let text = Expected { code: &[], ..both(Form::Ptx) };
    case("PTX", (0, 0), "-ptx -arch=sm_80 k.cu", text);
    case("relocatable PTX", (0, 0), "-ptx -rdc=true -arch=sm_80 k.cu", text);
    let code = Expected { ptx: &[], alone: 1, ..both(Form::Cubin) };
    case("cubin", (0, 0), "-cubin -arch=sm_80 k.cu", code);
    case("fat binary", (0, 0), "-fatbin -arch=sm_80 k.cu", both(Form::Fatbin));
    case("fat binary, all compressed", (0, 0), "-fatbin -arch=sm_80 -Xfatbin -compress-all k.cu", both(Form::Fatbin));
    case("fat binary, nothing compressed", (0, 0), "-fatbin -arch=sm_80 -Xfatbin -compress=false k.cu", both(Form::Fatbin));
    for (mode, commands) in [
        ("none", "-fatbin -arch=sm_80 --compress-mode=none k.cu"),
        ("speed", "-fatbin -arch=sm_80 --compress-mode=speed -Xfatbin -compress-all k.cu"),
        ("size", "-fatbin -arch=sm_80 --compress-mode=size k.cu"),
        ("balance", "-fatbin -arch=sm_80 --compress-mode=balance -Xfatbin -compress-all k.cu"),
    ] {
        case(&format!("fat binary, compressed for {mode}"), (12, 8), commands, both(Form::Fatbin));
    }
    case(
        "fat binary for three architectures",
        (0, 0),
        "-fatbin -gencode=arch=compute_80,code=[sm_80,sm_86] -gencode=arch=compute_90a,code=[sm_90a,compute_90a] k.cu",
        // What was made for the older architectures has no PTX beside it.
        Expected { ptx: &["90a"], code: &["80", "86", "90a"], alone: 2, ..both(Form::Fatbin) },
    );
    case(
        "fat binary without PTX",
        (0, 0),
        "-fatbin -gencode=arch=compute_80,code=sm_80 k.cu",
        Expected { ptx: &[], alone: 1, ..both(Form::Fatbin) },
    );
    case("object", (0, 0), "-c -arch=sm_80 k.cu", both(Form::Host));
    case("relocatable object", (0, 0), "-dc -arch=sm_80 k.cu", both(Form::Host));
    case("relocatable object, compressed for speed", (12, 8), "-dc -arch=sm_80 --compress-mode=speed k.cu", both(Form::Host));
    // The device linker's result holds no PTX, and the units that it came from are not in it.
    let linked = Expected { ptx: &[], alone: 1, ..both(Form::Host) };
    case("device-linked object", (0, 0), "-dc -arch=sm_80 k.cu -o k.o; -dlink -arch=sm_80 k.o", linked);
    case("device-linked cubin", (0, 0), "-dc -arch=sm_80 k.cu -o k.o; -dlink -cubin -arch=sm_80 k.o", code);
    case(
        "device-linked fat binary",
        (0, 0),
        "-dc -arch=sm_80 k.cu -o k.o; -dlink -fatbin -arch=sm_80 k.o",
        Expected { form: Form::Fatbin, ..linked },
    );
    case("executable", (0, 0), "-arch=sm_80 k.cu main.cu", both(Form::Host));
    case(
        "executable of relocatable units",
        (0, 0),
        "-rdc=true -arch=sm_80 k.cu main.cu",
        // Once as the linker made it, once as it came.
        Expected { code: &["80", "80"], ..both(Form::Host) },
    );
    case("shared library", (0, 0), "-shared -Xcompiler -fPIC -arch=sm_80 k.cu", both(Form::Host));
    case("static library", (0, 0), "-lib -arch=sm_80 main.cu k.cu", both(Form::Archive));
    case("static library of relocatable units", (0, 0), "-lib -rdc=true -arch=sm_80 k.cu main.cu", both(Form::Archive));
    case("object with lines", (0, 0), "-c -lineinfo -arch=sm_80 k.cu", both(Form::Host));
    case("object for debuggers", (0, 0), "-c -G -arch=sm_80 k.cu", both(Form::Host));
    checks.add("image: object of intermediate code", intermediate);
    checks.add("image: a program that launches kernels from kernels has the PTX of all its code", launches);
    checks.add("image: a library of the toolkit", |tools| {
        let bytes = std::fs::read(library_folder(tools)?.join("libcudadevrt.a")).map_err(|error| error.to_string())?;
        let image = cuinstr_image::read(&bytes).map_err(|error| error.to_string())?;
        let is_whole = image.form == Form::Archive && image.notes.is_empty() && image.site_maps.is_empty() && image.parts.len() > 5;
        let texts: Vec<_> = image.ptx().map(|(part, text)| (part.place.to_string(), text.len())).collect();
        if is_whole && !texts.is_empty() { Ok(()) } else { Err(format!("{:?}, {texts:?}, {:?}", image.form, image.notes)) }
    });
}

fn launches(tools: &Tools) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    Unit::new("launch.cu", LAUNCHES).write(folder.path())?;
    let libraries = format!("-L{}", library_folder(tools)?.display());
    let args = ["-rdc=true", "-arch=sm_80", "launch.cu", "-lcudadevrt", &libraries, "-o", "out"].map(str::to_owned);
    let image = call(&tools.nvcc.path, folder.path(), &args)?.expect_clean()?.image;
    let alone = cuinstr_image::scan(&image, |_| {}).map_err(|error| error.to_string())?.without_ptx;
    if alone.is_empty() { Ok(()) } else { Err(format!("{alone:?}")) }
}

fn release(tools: &Tools) -> (u32, u32) {
    let mut numbers = tools.nvcc.release.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn library_folder(tools: &Tools) -> Result<std::path::PathBuf, String> {
    let root = tools.nvcc.path.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let folders = ["lib64", "lib", "targets/x86_64-linux/lib"].map(|folder| root.join(folder));
    folders.into_iter().find(|folder| folder.join("libcudadevrt.a").is_file()).ok_or_else(|| "the toolkit has no libcudadevrt.a".into())
}

/// The output of the last of the commands, each nvcc's arguments, and the unit that went in.
fn build(tools: &Tools, commands: &str) -> Result<(Vec<u8>, Unit), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let unit = Unit::new("k.cu", TEXT).rewrite(&Options::default())?;
    unit.write(folder.path())?;
    Unit::new("main.cu", MAIN).write(folder.path())?;
    let libraries = format!("-L{}", library_folder(tools)?.display());
    let mut image = Vec::new();
    for command in commands.split("; ") {
        let mut args: Vec<String> = command.split(' ').map(str::to_owned).collect();
        args.push(libraries.clone());
        if !command.contains(" -o ") {
            args.extend(["-o".to_owned(), "out".to_owned()]);
        }
        image = call(&tools.nvcc.path, folder.path(), &args)?.expect_clean()?.image;
    }
    Ok((image, unit))
}

fn check(tools: &Tools, commands: &str, expected: Expected) -> Result<(), String> {
    let (bytes, unit) = build(tools, commands)?;
    let image = cuinstr_image::read(&bytes).map_err(|error| error.to_string())?;
    let Image { form, parts, site_maps, notes } = &image;
    if !notes.is_empty() || *site_maps != unit.site_maps {
        return Err(format!("notes {notes:?}, site maps {site_maps:#?}\nwhere the rewriter gave {:#?}", unit.site_maps));
    }
    let mut signatures: Vec<String> = image.kernels().into_iter().map(|kernel| kernel.signature).collect();
    signatures.sort();
    if signatures != ["spin", "void collatz<int>(int*, int)"] {
        return Err(format!("the kernels are {signatures:?}"));
    }
    // The host's main is a unit too, and the device linker leaves a stub: neither has a kernel.
    let arches = |is_it: fn(&Content<'_>) -> bool| {
        let ours = parts.iter().filter(|part| {
            is_it(&part.content)
                && !match &part.content {
                    Content::Ptx(text) => cuinstr_image::kernel::of_ptx(text),
                    Content::Code(code) => cuinstr_image::kernel::of_cubin(code),
                    Content::Intermediate | Content::Unread(_) => Vec::new(),
                }
                .is_empty()
        });
        let mut arches: Vec<String> = ours.map(|part| part.arch.map_or("none".into(), |arch| arch.to_string())).collect();
        arches.sort();
        arches
    };
    let ptx = arches(|content| matches!(content, Content::Ptx(_)));
    let code = arches(|content| matches!(content, Content::Code(_)));
    let alone: Vec<String> = image.without_ptx().map(|part| part.place.to_string()).collect();
    if *form != expected.form || ptx != expected.ptx || code != expected.code || alone.len() != expected.alone {
        return Err(format!("{form:?} with PTX for {ptx:?}, code for {code:?}, without PTX: {alone:?}\nwhere {expected:?}"));
    }
    changed(&bytes)
}

/// Changes a file by chance: it is read the same way each time, or is an error, and the proof has an answer to what PTX is left. Never a panic.
/// `CUINSTR_MUTANTS` asks for more than a test run has time for.
fn changed(bytes: &[u8]) -> Result<(), String> {
    let asked = std::env::var("CUINSTR_MUTANTS").ok().and_then(|count| count.parse().ok());
    for number in 0..asked.unwrap_or(8) {
        let mut random = Random::new(number);
        let mut other = bytes.to_vec();
        for _ in 0..=random.below(4) {
            let (at, length) = (random.below(other.len().max(1)), random.below(24));
            let to = (at + length).min(other.len());
            match random.below(6) {
                0 => other.truncate(at),
                1 => other[at.min(to)..to].fill(0),
                2 => other[at.min(to)..to].fill(0xff),
                3 => drop(other.drain(at.min(to)..to)),
                4 => {
                    let copy = other[at.min(to)..to].to_vec();
                    let here = random.below(other.len().max(1)).min(other.len());
                    other.splice(here..here, copy);
                }
                _ => other[at.min(to)..to].iter_mut().for_each(|byte| *byte ^= 1 << random.below(8)),
            }
        }
        let first = cuinstr_image::read(&other);
        if first != cuinstr_image::read(&other) {
            return Err(format!("change {number}: the same bytes, another result"));
        }
        for (_, text) in first.iter().flat_map(Image::ptx) {
            let report = verify_ptx(text);
            if report.holds() && report.kernels.is_empty() && text.contains(".entry") {
                return Err(format!("change {number}: proved without its kernel"));
            }
        }
    }
    Ok(())
}

fn intermediate(tools: &Tools) -> Result<(), String> {
    let (bytes, unit) = build(tools, "-dc -gencode=arch=compute_80,code=lto_80 k.cu")?;
    let image = cuinstr_image::read(&bytes).map_err(|error| error.to_string())?;
    let alone: Vec<_> = image.without_ptx().map(|part| &part.content).collect();
    // The site map is in the host's half too, whose compiler keeps the variable.
    if alone == [&Content::Intermediate] && image.notes.is_empty() && image.site_maps == unit.site_maps {
        Ok(())
    } else {
        Err(format!("{:?}, {alone:?}, {:?}, {:#?}", image.form, image.notes, image.site_maps))
    }
}
