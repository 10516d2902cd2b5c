//! Sources on their way through the rewriter.

use crate::handles::Handles;
use crate::status::{self, Failure, Status};
use cuinstr::Rewrite;
use cuinstr::diagnostic::Severity;
use cuinstr::options::{BarrierMarks, DeviceMacro, Limits, Options, Pass, Polls, Space};
use cuinstr::render::{self, Source};
use cuinstr_runtime::guard::{self, Origin};
use std::ffi::CString;
use std::fmt::Write as _;

/// Names of sources that were given none.
const UNNAMED: &str = "kernel.cu";
const UNNAMED_PTX: &str = "kernel.ptx";

/// A source that was rewritten.
pub(crate) struct Rewritten {
    pub(crate) text: CString,
    pub(crate) sites: CString,
    pub(crate) diagnostics: CString,
}

pub(crate) static REWRITTEN: Handles<Rewritten> = Handles::new("rewritten source");

/// What a caller may ask for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) path: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) polls_each: bool,
    pub(crate) strict: bool,
    pub(crate) pausable: bool,
    pub(crate) loop_macros: Vec<String>,
    pub(crate) device_macros: Vec<DeviceMacro>,
    pub(crate) leave_alone: Vec<String>,
    pub(crate) barrier_marks: BarrierMarks,
}

/// Names separated by white space.
pub(crate) fn names(text: Option<String>) -> Vec<String> {
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Macros and what they mark functions as, `NAME=kernel`, separated by white space.
pub(crate) fn device_macros(text: Option<String>) -> Result<Vec<DeviceMacro>, Failure> {
    let one = |word: String| {
        let (name, space) = word.split_once('=').unwrap_or((&word, ""));
        let space = match space {
            "kernel" => Space::Kernel,
            "device" => Space::Device,
            "host-device" => Space::HostDevice,
            _ => {
                let message = format!("`device_macros` holds {word:?}: write NAME=kernel, NAME=device or NAME=host-device");
                return Err(Failure::new(Status::BadArgument, message));
            }
        };
        Ok(DeviceMacro { name: name.to_owned(), space })
    };
    names(text).into_iter().map(one).collect()
}

/// Where barriers' marks lie, by its name.
pub(crate) fn barrier_marks(name: Option<String>) -> Result<BarrierMarks, Failure> {
    let Some(name) = name else { return Ok(BarrierMarks::default()) };
    let message = || format!("`barrier_marks` is {name:?}: write auto, shared or global");
    BarrierMarks::from_name(&name).ok_or_else(|| Failure::new(Status::BadArgument, message()))
}

pub(crate) fn rewrite(pass: Pass, source: &[u8], wishes: Wishes) -> Result<u64, Failure> {
    if wishes.limits.fuel.is_some_and(|fuel| fuel > Limits::MAX_FUEL) {
        return Err(Failure::new(Status::BadArgument, format!("fuel is at most {} iterations", Limits::MAX_FUEL)));
    }
    let (rewrite, unnamed): (fn(&[u8], &Options) -> Rewrite, _) = match pass {
        Pass::Source => (cuinstr::rewrite, UNNAMED),
        Pass::Ptx => (cuinstr::rewrite_ptx, UNNAMED_PTX),
    };
    let options = Options {
        path: wishes.path.unwrap_or_else(|| unnamed.into()),
        polls: if wishes.polls_each { Polls::Each } else { Polls::Amortised },
        limits: wishes.limits,
        strict: wishes.strict,
        pausable: wishes.pausable,
        loop_macros: wishes.loop_macros,
        device_macros: wishes.device_macros,
        leave_alone: wishes.leave_alone,
        barrier_marks: wishes.barrier_marks,
        ..Options::default()
    };
    let rewrite = rewrite(source, &options);
    let shown = Source::new(&options.path, source);
    let Some(output) = rewrite.output else {
        let errors = rewrite.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        let text: String = errors.map(|diagnostic| render::short(&shown, diagnostic)).collect();
        return Err(Failure::new(Status::Refused, text.trim_end()));
    };
    let mut diagnostics = String::new();
    for diagnostic in &rewrite.diagnostics {
        let _ = writeln!(diagnostics, "{}", render::json(&shown, diagnostic).trim_end());
    }
    let sites = rewrite.sites.to_json();
    guard::remember(Origin { sites: rewrite.sites, text: source.to_vec() });
    let (text, sites, diagnostics) = (status::text(output), status::text(sites), status::text(diagnostics));
    Ok(REWRITTEN.keep(Rewritten { text, sites, diagnostics }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &[u8] = b"__global__ void wait(volatile int* flag) { while (*flag == 0) { } }\n";

    #[test]
    fn a_source_is_rewritten_and_remembered() {
        let id = rewrite(Pass::Source, KERNEL, Wishes { path: Some("wait.cu".into()), ..Wishes::default() }).unwrap();
        let rewritten = REWRITTEN.get(id).unwrap();
        assert!(rewritten.text.to_str().is_ok_and(|text| text.contains("#line 1 \"wait.cu\"")));
        assert!(rewritten.sites.to_str().is_ok_and(|sites| sites.contains("\"kind\":\"while\"")));
        assert!(guard::recent().iter().any(|origin| origin.sites.file == "wait.cu" && origin.text == KERNEL));
    }

    #[test]
    fn ptx_is_rewritten_and_remembered() {
        let ptx = b".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry spin() { $L: bra $L; }\n";
        let id = rewrite(Pass::Ptx, ptx, Wishes::default()).unwrap();
        let text = REWRITTEN.get(id).unwrap().text.to_str().unwrap().to_owned();
        assert!(cuinstr::verify::verify_ptx(&text).holds(), "{text}");
        assert!(guard::recent().iter().any(|origin| origin.sites.file == "kernel.ptx" && origin.text == ptx));
        let again = rewrite(Pass::Ptx, text.as_bytes(), Wishes::default()).unwrap_err();
        assert!(again.message.contains("error[CI004]"), "{}", again.message);
        let cuda = rewrite(Pass::Ptx, KERNEL, Wishes::default()).unwrap_err();
        assert_eq!(cuda.status, Status::Refused, "{}", cuda.message);
    }

    #[test]
    fn macros_and_functions_are_named_as_in_a_configuration() {
        let source = "MY_KERNEL void f(volatile int* p) { FOREVER { *p += 1; } }\n__device__ void g(int* p) { while (*p) {} }\n";
        let sites = |wishes: Wishes| {
            REWRITTEN.get(rewrite(Pass::Source, source.as_bytes(), wishes).unwrap()).unwrap().sites.to_str().unwrap().to_owned()
        };
        let plain = sites(Wishes::default());
        assert!(plain.contains("\"function\":\"g\""), "{plain}");
        let told = sites(Wishes {
            loop_macros: names(Some(" FOREVER\n".into())),
            device_macros: device_macros(Some("MY_KERNEL=kernel".into())).unwrap(),
            leave_alone: names(Some("g h".into())),
            ..Wishes::default()
        });
        assert!(told.contains("\"line\":1,\"column\":37"), "{told}");
        // As a kernel it has a site where it begins, too.
        let sites_of_f = |sites: &str| sites.matches("\"function\":\"f\"").count();
        assert!(sites_of_f(&told) > sites_of_f(&plain), "{told}");
        let refused = device_macros(Some("A=kernel B".into())).unwrap_err();
        assert_eq!(refused.status, Status::BadArgument);
        assert!(refused.message.contains("holds \"B\": write NAME=kernel"), "{}", refused.message);
        assert!(device_macros(None).unwrap().is_empty());
    }

    #[test]
    fn barriers_marks_lie_where_the_caller_says() {
        let source = b"__global__ void f(int* p) { for (int i = 0; p[i]; ++i) { __syncthreads(); } }\n";
        let text = |name: &str| {
            let wishes = Wishes { barrier_marks: barrier_marks(Some(name.into())).unwrap(), ..Wishes::default() };
            REWRITTEN.get(rewrite(Pass::Source, source, wishes).unwrap()).unwrap().text.clone()
        };
        assert_eq!(text("auto"), text("shared"));
        assert_ne!(text("global"), text("shared"));
        assert!(barrier_marks(Some("local".into())).unwrap_err().message.contains("write auto, shared or global"));
    }

    #[test]
    fn a_refusal_names_the_place_and_the_reason() {
        let refused = rewrite(Pass::Source, b"__global__ void f() { (", Wishes::default());
        let refused = refused.expect_err("a bracket is open");
        assert_eq!(refused.status, Status::Refused);
        assert!(refused.message.starts_with("kernel.cu:1:23: error[CI005]: "), "{}", refused.message);
        let limits = Limits { fuel: Some(u64::MAX), ..Limits::default() };
        assert_eq!(rewrite(Pass::Source, KERNEL, Wishes { limits, ..Wishes::default() }).unwrap_err().status, Status::BadArgument);
    }
}
