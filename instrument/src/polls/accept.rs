//! Which texts the pass takes.

use super::emit;
use crate::diagnostic::{Code, Diagnostic};
use cuinstr_ptx::{Kind as Token, Module};

/// Oldest architecture whose instructions polls are made of.
const OLDEST: u32 = 70;

/// Names that only rewritten text holds.
const OURS: [&str; 5] = [emit::RESERVED, "cuinstr_control_v1", "cuinstr_flag_v1", "cuinstr_left_v1", "cuinstr_pause_v1"];

/// Whether a text is PTX rather than CUDA source: its first word is `.version`.
#[must_use]
pub fn is_ptx(source: &[u8]) -> bool {
    let front = std::str::from_utf8(source).unwrap_or_else(|error| std::str::from_utf8(&source[..error.valid_up_to()]).unwrap_or(""));
    let mut words = cuinstr_ptx::tokens(front).filter(|token| !matches!(token.kind, Token::Blank | Token::Comment));
    words.next().is_some_and(|token| token.span.of(front) == ".version")
}

/// Whether a text holds names that only polls bring.
#[cfg(feature = "launcher")]
pub(crate) fn is_own(source: &[u8]) -> bool {
    first_of_ours(source).is_some()
}

/// Where the first name stands that only polls bring.
fn first_of_ours(source: &[u8]) -> Option<usize> {
    let mut all = memchr::memmem::find_iter(source, "cuinstr_");
    all.find_map(|at| {
        OURS.iter().find_map(|name| {
            let start = at.checked_sub(name.find("cuinstr_")?)?;
            source[start..].starts_with(name.as_bytes()).then_some(start)
        })
    })
}

pub(super) fn text_of(source: &[u8]) -> Result<&str, Box<Diagnostic>> {
    if u32::try_from(source.len()).is_err() {
        return Err(Box::new(Diagnostic::new(Code::TooLarge, "the file is larger than 4 GiB").help("split the file")));
    }
    if source.iter().all(u8::is_ascii_whitespace) {
        return Err(Box::new(
            Diagnostic::new(Code::Empty, "the file is empty").help("check the path, and that the file was generated before"),
        ));
    }
    std::str::from_utf8(source).map_err(|error| {
        let at = error.valid_up_to();
        let help = "give PTX text; `cuobjdump -ptx FILE` prints the PTX inside an object";
        Box::new(
            Diagnostic::new(Code::UnsoundPtx, format!("this is no PTX: byte {:#04x} is not UTF-8", source[at])).at(at..at + 1).help(help),
        )
    })
}

/// Why a module is refused.
pub(super) fn refusals(text: &str, module: &Module<'_>) -> Vec<Diagnostic> {
    let faults = module.faults.iter().take(20).map(|fault| {
        let at = fault.at as usize;
        let diagnostic = Diagnostic::new(Code::UnsoundPtx, fault.why).at(at..text.len().min(at + 1));
        diagnostic.help("ptxas would refuse or misread it: give the text as the compiler wrote it")
    });
    let mut refusals: Vec<Diagnostic> = faults.collect();
    if let Some(at) = first_of_ours(text.as_bytes()) {
        let help = "run cuinstr on the PTX of a plain compilation; names that begin with __cuinstr_ are reserved";
        refusals.push(Diagnostic::new(Code::OwnOutput, "the PTX holds names that only cuinstr inserts").at(at..at + 10).help(help));
    }
    if let (Some(architecture), Some(span)) = (oldest(module).filter(|architecture| *architecture < OLDEST), module.target) {
        let message = format!("the target sm_{architecture} is older than sm_{OLDEST}");
        let help = "compile for sm_70 or newer, or rewrite the source instead";
        refusals.push(Diagnostic::new(Code::UnsoundPtx, message).at(span.start as usize..span.end as usize).help(help));
    }
    refusals
}

/// What polls may be spelled with in a module.
#[derive(Debug, Clone, Copy)]
pub(in crate::polls) struct Instructions {
    /// The least of a warp's numbers (`redux.sync`).
    pub(in crate::polls) has_redux: bool,
    /// Loads that leave nothing in the first cache, on a GPU where that was seen to hold.
    pub(in crate::polls) has_no_allocate: bool,
    /// That a function says how many registers it keeps for its callers (`.abi_preserve`).
    pub(in crate::polls) has_preserve: bool,
}

impl Instructions {
    pub(super) fn of(module: &Module<'_>) -> Self {
        let version = module.version.and_then(|version| {
            let (major, minor) = version.split_once('.')?;
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        });
        let has = |since, from| {
            version.is_some_and(|version| version >= since) && oldest(module).is_some_and(|architecture| architecture >= from)
        };
        Self { has_redux: has((7, 0), 80), has_no_allocate: has((7, 4), 90), has_preserve: has((9, 0), 80) }
    }
}

/// The oldest architecture that a module is for.
pub(super) fn oldest(module: &Module<'_>) -> Option<u32> {
    let number = |target: &&str| target.strip_prefix("sm_")?.trim_end_matches(char::is_alphabetic).parse::<u32>().ok();
    module.targets.iter().filter_map(number).min()
}

#[cfg(test)]
mod tests {
    use super::is_ptx;

    #[cfg(feature = "launcher")]
    #[test]
    fn what_has_polls_is_told_by_their_names() {
        for name in super::OURS {
            assert!(super::is_own(format!(".version 9.0\n.global .b32 {name};\n").as_bytes()), "{name}");
            assert!(super::is_own(name.as_bytes()), "{name}");
        }
        assert!(!super::is_own(b"") && !super::is_own(b".version 9.0\n.global .b32 cuinstr_other, __cuinstr, cuinstr_;\n"));
    }

    #[test]
    fn ptx_is_told_by_its_first_word() {
        assert!(is_ptx(b".version 9.0\n") && is_ptx(b"// by nvcc\n/* .target */\n\t.version 9.0") && is_ptx(b".version 9.0 \xff"));
        assert!(!is_ptx(b"") && !is_ptx(b"// .version 9.0\n__global__ void k() {}") && !is_ptx(b".versions 9.0"));
    }
}
