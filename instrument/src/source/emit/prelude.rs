//! The text in front of a rewritten file: the device side of `docs/ABI.md`, the site map as a record in the module, and the line that
//! lets compilers name the user's file.

use crate::common::block_decision::{DECIDE, DECLINE, OF_CLUSTERS};
use crate::common::options::{AtExit, BarrierMarks, GivenMacro, Options};
use crate::common::poll_interval::{self, PollInterval};
use crate::common::site::{Form, Kind, SiteMap};
use cuinstr_abi::control;
use std::fmt::Write as _;

pub use cuinstr_abi::sites::MAGIC as SITES_MAGIC;

/// The part that differs from file to file.
const SETTINGS: &str = include_str!("prelude/settings.cuh");

/// The part that is the same for all files, in four files: the control block and how a thread stops; budgets and their refill, a check; the
/// forms of loops; functions that the host may run too, barriers, and a kernel's two ends.
const BODY: &str = concat!(
    include_str!("prelude/control.cuh"),
    include_str!("prelude/look.cuh"),
    include_str!("prelude/loops.cuh"),
    include_str!("prelude/kernel.cuh")
);

/// The declarations for the host's side of a compilation, which reads the user's own text.
#[cfg(feature = "launcher")]
const HOST: &str = include_str!("prelude/host.cuh");

/// A part of the decision as strings of C, for inline assembly.
fn in_c(part: &str) -> String {
    let quoted = |line: &str| {
        let line = line.trim_start().replace('%', "%%").replace("relaxed.gpu.global", "\" __cuinstr_strong(\"gpu\") \"");
        format!("      \"{line}\\n\\t\"\n")
    };
    part.lines().map(|line| if line == "@CLUSTERS@" { "      __cuinstr_of_clusters\n".to_owned() } else { quoted(line) }).collect()
}

/// The lines about clusters as a string of C.
fn of_clusters_in_c() -> String {
    OF_CLUSTERS.replace('\t', "").replace('%', "%%").replace('\n', "\\n\\t")
}

/// Characters of a line of the record, about.
const LINE: usize = 180;

/// The whole prelude.
pub(crate) fn prelude(options: &Options, sites: &SiteMap, source: &[u8], shared_bytes: Option<u64>) -> String {
    let mut text = given(options);
    if sets_registers(source) && polled_calls(sites) <= FEW_CALLS {
        let _ = writeln!(text, "#define {OWN_STOPS} 1");
    }
    let traits = UnitTraits {
        barriers: has_barriers(sites),
        dynamic: has_dynamic_memory(source),
        bytes: shared_bytes.unwrap_or(u64::MAX),
        virtuals: has_virtual_functions(source),
    };
    text.push_str(&settings(options, traits));
    match &options.prelude {
        Some(name) => {
            let _ = writeln!(text, "#include \"{}\"", escape_path(name));
        }
        None => text.push_str(&body()),
    }
    text.push_str(&record(sites));
    let _ = writeln!(text, "#line 1 \"{}\"", escape_path(&options.path));
    text
}

/// Refuses a compilation for which the macros that were given do not hold: it would compile code that has no polls.
fn given(options: &Options) -> String {
    let mut text = String::new();
    for GivenMacro { name, value } in &options.given_macros {
        let (holds, told) = match value {
            Some(value) if value.parse::<u32>().is_ok() => {
                (format!("defined({name}) && ({name}) == {value}"), format!("-D {name}={value}"))
            }
            Some(_) => (format!("defined({name})"), format!("-D {name}")),
            None => (format!("!defined({name})"), format!("-U {name}")),
        };
        let _ = writeln!(
            text,
            "#if !({holds})\n#error \"this file was rewritten with {told}, which does not hold for this compilation\"\n#endif"
        );
    }
    text
}

/// The macro that gives each check a stop of its own.
///
/// Groups of warps that have registers of their own by `setmaxnreg` can't call one function: ptxas then says "Register allocation failed" (C7600), or leaves out what gives
/// them these (C7507).
pub(crate) const OWN_STOPS: &str = "__cuinstr_own_stops";

/// So many polls at calls may have a stop of their own each.
pub(crate) const FEW_CALLS: usize = 16;

/// Whether a text asks for registers for a group of warps.
pub(crate) fn sets_registers(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"setmaxnreg").is_some()
}

/// How many calls of functions that may reach themselves are polled.
pub(crate) fn polled_calls(sites: &SiteMap) -> usize {
    sites.sites.iter().filter(|site| site.kind == Kind::Recursion && !matches!(site.form, Form::None | Form::Flag)).count()
}

/// Whether threads check at a barrier of this file if others of their block have left.
pub(crate) fn has_barriers(sites: &SiteMap) -> bool {
    sites.sites.iter().any(|site| site.kind == Kind::Barrier)
}

/// Whether a file declares shared memory whose size the launch says: `extern __shared__ float tile[];`.
pub(crate) fn has_dynamic_memory(source: &[u8]) -> bool {
    const WORD: &[u8] = b"__shared__";
    let found = source.windows(WORD.len()).enumerate().filter(|(_, part)| *part == WORD);
    found
        .map(|(at, _)| at)
        .any(|at| source[..at].trim_ascii_end().ends_with(b"extern") || source[at + WORD.len()..].trim_ascii_start().starts_with(b"extern"))
}

/// Whether a file may declare virtual functions.
pub(crate) fn has_virtual_functions(source: &[u8]) -> bool {
    memchr::memmem::find(source, b"virtual").is_some()
}

/// What the prelude must know of a translation unit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnitTraits {
    /// Threads check at barriers.
    pub(crate) barriers: bool,
    /// The launch says how much there is of some of its shared memory.
    pub(crate) dynamic: bool,
    /// Bytes of shared memory that its files declare; the largest number where their text does not tell.
    pub(crate) bytes: u64,
    /// Classes may have tables of virtual functions.
    pub(crate) virtuals: bool,
}

/// Shared memory that a unit may declare beside ours: a kernel has 48 KiB, and the rest is for alignment, and for headers.
const ROOM: u64 = 40 << 10;

impl UnitTraits {
    /// Whether marks of barriers lie in global memory. Units under `-rdc=true` have them there in any case.
    fn global_marks(self, options: &Options) -> bool {
        match options.barrier_marks {
            BarrierMarks::Auto => self.dynamic || self.bytes > ROOM,
            BarrierMarks::Shared => false,
            BarrierMarks::Global => true,
        }
    }

    /// Whether marks of barriers lie in shared memory.
    #[cfg(feature = "launcher")]
    pub(crate) fn holds_marks(self, options: &Options) -> bool {
        self.barriers && !self.global_marks(options)
    }
}

/// The device side of the ABI, the same for all files of a translation unit.
#[cfg(feature = "launcher")]
pub(crate) fn device_side(options: &Options, traits: UnitTraits) -> String {
    settings(options, traits) + &body()
}

/// The text that a file rewritten with [`Options::prelude`] includes. It is the same for all files and options.
#[must_use]
pub fn body() -> String {
    let values = [
        ("CONTROL_BLOCK", control::c_text().trim_end().to_owned()),
        ("MOST_PACE", poll_interval::MOST_INTERVAL.to_string()),
        ("NEST", poll_interval::NEST_BUDGET.to_string()),
        ("OF_CLUSTERS", of_clusters_in_c()),
        ("DECIDE", in_c(DECIDE)),
        ("DECLINE", in_c(DECLINE)),
    ];
    filled(BODY, &values)
}

/// The settings of a file and its options.
fn settings(options: &Options, traits: UnitTraits) -> String {
    let limit = |value: Option<u64>| value.unwrap_or(0).to_string();
    let gate = if options.at_exit == AtExit::Gate { "1" } else { "0" };
    let pace = PollInterval::of(options.poll_gap);
    let values = [
        ("TIMEOUT_NS", limit(options.limits.timeout_ns)),
        ("BUDGET_CYCLES", limit(options.limits.budget_cycles)),
        ("FUEL", limit(options.limits.fuel)),
        ("GATE", gate.to_owned()),
        ("BARRIERS", u8::from(traits.barriers).to_string()),
        ("GLOBAL_MARKS", u8::from(traits.global_marks(options)).to_string()),
        ("DYNAMIC", u8::from(traits.dynamic).to_string()),
        ("VIRTUALS", u8::from(traits.virtuals).to_string()),
        ("FIRST_PACE", pace.first.to_string()),
        ("SHORT", pace.short.to_string()),
        ("GAP", pace.gap.to_string()),
        ("PAUSABLE", u8::from(options.pausable).to_string()),
    ];
    filled(SETTINGS, &values)
}

/// The template with these values in place of their names between `@`.
fn filled(template: &str, values: &[(&str, String)]) -> String {
    let mut text = String::with_capacity(template.len() + template.len() / 8);
    let mut rest = template;
    while let Some(at) = rest.find('@') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        // A predicate of PTX has such a sign, too.
        match values.iter().find_map(|(name, value)| rest.strip_prefix(name)?.strip_prefix('@').map(|behind| (value, behind))) {
            Some((value, behind)) => {
                text.push_str(value);
                rest = behind;
            }
            None => text.push('@'),
        }
    }
    text.push_str(rest);
    text
}

/// The text in front of the user's own text where nvcc compiles it for the host.
#[cfg(feature = "launcher")]
pub(crate) fn host_side(is_pausable: bool, traits: UnitTraits) -> String {
    let words = size_of::<control::ControlBlock>() / size_of::<u64>();
    let values = [
        ("WORDS", words.to_string()),
        ("PAUSABLE", u8::from(is_pausable).to_string()),
        ("VIRTUALS", u8::from(traits.virtuals).to_string()),
    ];
    filled(HOST, &values)
}

/// The site map as a variable that stays in PTX and cubin, so that a lone module can name its loops.
pub(crate) fn record(sites: &SiteMap) -> String {
    let json = sites.to_json();
    let bytes = format!("{SITES_MAGIC}{:08x} {json}", json.len());
    let mut text = format!("static __device__ __attribute__((__used__)) const char __cuinstr_sites_{}[] =", sites.hash);
    let mut begin = text.len();
    for (at, byte) in bytes.bytes().enumerate() {
        if at == 0 || text.len() - begin >= LINE {
            text.push_str(if at == 0 { "\n    \"" } else { "\"\n    \"" });
            begin = text.len();
        }
        push_in_quotes(&mut text, byte);
    }
    text.push_str("\";\n");
    text
}

/// Appends a byte as it is spelled between quotes in C.
pub(crate) fn push_in_quotes(text: &mut String, byte: u8) {
    match byte {
        b'\n' => text.push_str("\\n"),
        b'\t' => text.push_str("\\t"),
        b'"' | b'\\' | b'?' => text.extend(['\\', char::from(byte)]),
        0x20..0x7f => text.push(char::from(byte)),
        _ => {
            let _ = write!(text, "\\{byte:03o}");
        }
    }
}

fn escape_path(path: &str) -> String {
    path.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], "?")
}

#[cfg(test)]
mod tests {
    use super::{BODY, body};
    #[cfg(feature = "launcher")]
    use super::{Options, SiteMap, UnitTraits, device_side, host_side};
    use std::collections::BTreeSet;

    #[test]
    fn no_line_is_longer_than_a_reviewer_s_screen() {
        let text = super::SETTINGS.to_owned() + &body();
        let long: Vec<&str> = text.lines().filter(|line| line.len() > 200).collect();
        assert_eq!(long, Vec::<&str>::new());
    }

    /// The name that begins this text.
    fn name(text: &str) -> &str {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
    }

    /// Words that stand in the prelude beside names that are reserved: those of C++, of CUDA and of its headers. No macro of the user's can have such a name.
    #[cfg(feature = "launcher")]
    const WORDS: &str = "bool case char class const constexpr decltype do else enum extern false for if inline int long namespace nullptr operator return short \
        signed sizeof static static_assert struct template true typedef typename union unsigned using void volatile while auto asm defined _Pragma this \
        noexcept private public switch break continue default float double goto delete explicit \
        blockIdx threadIdx gridDim blockDim x y z atomicAdd atomicMax value type value_type";

    /// Words that `##` joins to names of ours, and that no macro takes the place of.
    #[cfg(feature = "launcher")]
    const JOINED: &str = "_by below above at_most at_least not_up not_down";

    #[cfg(feature = "launcher")]
    #[test]
    fn no_macro_of_the_user_s_means_a_name_of_the_prelude() {
        let allowed: BTreeSet<&str> = WORDS.split_ascii_whitespace().chain(JOINED.split_ascii_whitespace()).collect();
        let sites = SiteMap { version: 1, file: "a".into(), hash: "0".into(), polls_each: false, counts_fuel: false, sites: Vec::new() };
        let text =
            [device_side(&Options::default(), UnitTraits::default()), host_side(false, UnitTraits::default()), super::record(&sites)]
                .concat();
        let mut found = BTreeSet::new();
        for line in text.lines() {
            let line = line.trim_start();
            // What a directive is called is none either, and in these of them there is nothing to take the place of.
            let code = line.strip_prefix('#').map_or(line, |rest| rest.trim_start_matches(|c: char| c.is_ascii_lowercase()));
            if ["#pragma", "#error", "//"].iter().any(|begin| line.starts_with(begin)) {
                continue;
            }
            // Every other part stands between quotes; an escaped one ends none.
            let code = code.replace("\\\\", "").replace("\\\"", "");
            let parts = code.split('"').step_by(2).map(|part| part.split("//").next().unwrap_or_default());
            for word in parts.flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')) {
                let is_ours = word.starts_with("__") || word.starts_with("cuinstr_");
                let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
                if is_name && !is_ours && !allowed.contains(word) {
                    found.insert(word.to_owned());
                }
            }
        }
        assert_eq!(found, BTreeSet::new());
    }

    #[test]
    fn what_a_compilation_may_define_the_prelude_does_not() {
        let asked: BTreeSet<&str> = ["#ifdef ", "defined("].iter().flat_map(|word| BODY.split(word).skip(1).map(name)).collect();
        let own: BTreeSet<&str> = BODY.split("#define ").skip(1).map(name).collect();
        assert!(asked.contains(super::OWN_STOPS), "{asked:?}");
        assert_eq!(asked.intersection(&own).collect::<Vec<_>>(), Vec::<&&str>::new());
    }
}
