//! nvcc's own command line, as far as it decides what is to be done: whether there may be CUDA source, and which host
//! compiler is named.
//!
//! All else goes to nvcc as it is. A wrong guess here can only be on the safe side: an argument that might name CUDA source
//! counts as such.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Variables whose words nvcc puts in front of its arguments and behind them.
pub(super) const VARIABLES: [&str; 2] = ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"];

/// Options that take a value, by their long and short names; `nvcc --help` lists them.
const WITH_VALUE: &[&str] = &[
    "--output-file",
    "-o",
    "--pre-include",
    "-include",
    "--library",
    "-l",
    "--define-macro",
    "-D",
    "--undefine-macro",
    "-U",
    "--include-path",
    "-I",
    "--system-include",
    "-isystem",
    "--library-path",
    "-L",
    "--output-directory",
    "-odir",
    "--compiler-bindir",
    "-ccbin",
    "--archiver-binary",
    "-arbin",
    "--cudart",
    "-cudart",
    "--cudadevrt",
    "-cudadevrt",
    "--libdevice-directory",
    "-ldir",
    "--target-directory",
    "-target-dir",
    "--optimization-info",
    "-opt-info",
    "--optimize",
    "-O",
    "--Ofast-compile",
    "-Ofc",
    "--dopt",
    "-dopt",
    "--ftemplate-backtrace-limit",
    "-ftemplate-backtrace-limit",
    "--ftemplate-depth",
    "-ftemplate-depth",
    "--x",
    "-x",
    "--std",
    "-std",
    "--machine",
    "-m",
    "--compiler-options",
    "-Xcompiler",
    "--linker-options",
    "-Xlinker",
    "--archive-options",
    "-Xarchive",
    "--ptxas-options",
    "-Xptxas",
    "--nvlink-options",
    "-Xnvlink",
    "--static-global-template-stub",
    "-static-global-template-stub",
    "--device-entity-has-hidden-visibility",
    "-device-entity-has-hidden-visibility",
    "--threads",
    "-t",
    "--split-compile",
    "-split-compile",
    "--split-compile-extended",
    "-split-compile-extended",
    "--fdevice-time-trace",
    "-fdevice-time-trace",
    "--keep-dir",
    "-keep-dir",
    "--time",
    "-time",
    "--run-args",
    "-run-args",
    "--input-drive-prefix",
    "-idp",
    "--dependency-drive-prefix",
    "-ddp",
    "--drive-prefix",
    "-dp",
    "--dependency-target-name",
    "-MT",
    "--dependency-output",
    "-MF",
    "--gpu-architecture",
    "-arch",
    "--gpu-code",
    "-code",
    "--generate-code",
    "-gencode",
    "--relocatable-device-code",
    "-rdc",
    "--entries",
    "-e",
    "--maxrregcount",
    "-maxrregcount",
    "--ftz",
    "-ftz",
    "--prec-div",
    "-prec-div",
    "--prec-sqrt",
    "-prec-sqrt",
    "--fmad",
    "-fmad",
    "--default-stream",
    "-default-stream",
    "--Werror",
    "-Werror",
    "--diag-error",
    "-diag-error",
    "--diag-suppress",
    "-diag-suppress",
    "--diag-warn",
    "-diag-warn",
    "--host-linker-script",
    "-hls",
    "--brief-diagnostics",
    "-brief-diag",
    "--jump-table-density",
    "-jtd",
    "--device-stack-protector",
    "-device-stack-protector",
    "--compress-mode",
    "-compress-mode",
    "--frandom-seed",
    "-frandom-seed",
    "--sanitize",
    "-sanitize",
    "--qpp-config",
    "-qpp-config",
    "--options-file",
    "-optf",
    "-Xfatbin",
    "-Xcudafe",
    "-Xcicc",
    "-Xopencc",
    "-Xnvvm",
    "--cicc-options",
    "--fatbin-options",
    "--cudafe-options",
];

/// Options of one letter whose value may stand in the same word, such as `-Iinclude`.
const JOINED: &[u8] = b"IDULlOtmex";

/// Options that make nvcc answer and compile nothing.
const ANSWERS: &[&str] =
    &["--help", "-h", "--list-gpu-code", "-code-ls", "--list-gpu-arch", "-arch-ls", "--dryrun", "-dryrun", "--clean-targets", "-clean"];

/// Options that leave intermediate files behind.
const KEEPS: &[&str] = &["--keep", "-keep", "--save-temps", "-save-temps"];

/// What the command line says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CommandLine {
    /// All words in order. Words of options files stand in place of the file's name where one of them matters.
    pub(super) words: Vec<OsString>,
    /// Host compilers that are named: index of the word, and where in it the path begins.
    pub(super) host_compilers: Vec<(usize, usize)>,
    /// The same for variables: their names and values.
    pub(super) variables: Vec<(&'static str, OsString)>,
    /// Host compilers named in variables.
    pub(super) variable_compilers: Vec<OsString>,
    /// PTX that a variable names.
    pub(super) ptx_in_variable: Option<OsString>,
    /// Whether any word might name CUDA source, or make source CUDA.
    pub(super) may_hold_cuda: bool,
    /// Whether an input is CUDA source for sure.
    pub(super) names_cuda: bool,
    /// Whether nvcc compiles at all.
    pub(super) preprocesses: bool,
    /// `--version`.
    pub(super) asks_version: bool,
    /// `--dryrun`, `--verbose`: nvcc prints its commands.
    pub(super) prints_commands: bool,
    /// What is made.
    pub(super) product: Product,
    /// `-o`.
    pub(super) output: Option<OsString>,
    /// `-odir`.
    pub(super) output_folder: Option<OsString>,
    /// What is compiled or linked.
    pub(super) sources: Vec<OsString>,
    /// `--keep`: intermediate files stay.
    pub(super) keeps: bool,
}

/// What nvcc makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Product {
    /// Text for the GPU.
    Ptx,
    /// An object for each source.
    Object,
    /// A file for each source with this ending, or one program.
    Binary(Option<&'static str>),
    /// No code.
    #[default]
    Nothing,
}

/// One word that was understood.
enum Meaning<'a> {
    /// An option without a value, or one that is not known.
    Flag(&'a [u8]),
    /// An option, its value, and where the value begins in the word that holds it: this one or the next.
    Value { name: &'a [u8], value: &'a [u8], at: usize, next: bool },
    /// Something to compile or to link.
    Input(&'a [u8]),
}

impl CommandLine {
    /// Reads the words and, by `variable`, the environment's share of them.
    pub(super) fn read(arguments: &[OsString], variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut line = Self { words: arguments.to_vec(), preprocesses: true, ..Self::default() };
        let expanded = expand(arguments.to_vec());
        let mut facts = Facts::default();
        facts.take(&expanded);
        for name in VARIABLES {
            let Some(value) = variable(name).filter(|value| !value.is_empty()) else { continue };
            let words = expand(split(value.as_bytes()));
            let mut own = Facts::default();
            own.take(&words);
            line.variable_compilers.extend(own.host_compilers.iter().map(|&(word, at)| from_bytes(&words[word].as_bytes()[at..])));
            facts.merge(&own);
            line.ptx_in_variable = line.ptx_in_variable.or_else(|| ptx_inputs(&words).first().map(|at| words[*at].clone()));
            line.variables.push((name, value));
        }
        if !facts.host_compilers.is_empty() {
            line.words = expanded;
        }
        line.host_compilers = std::mem::take(&mut facts.host_compilers);
        line.may_hold_cuda = facts.may_hold_cuda;
        line.names_cuda = facts.cuda_inputs > 0 || facts.language_is_cuda && facts.inputs > 0;
        line.preprocesses = !facts.answers;
        line.asks_version = facts.version;
        line.prints_commands = facts.prints_commands;
        line.product = if facts.answers { Product::Nothing } else { facts.product.unwrap_or(Product::Binary(None)) };
        (line.output, line.output_folder, line.sources, line.keeps) = (facts.output, facts.output_folder, facts.sources, facts.keeps);
        line
    }
}

/// What a list of words says.
#[derive(Default)]
struct Facts {
    host_compilers: Vec<(usize, usize)>,
    may_hold_cuda: bool,
    language_is_cuda: bool,
    inputs: usize,
    cuda_inputs: usize,
    answers: bool,
    version: bool,
    prints_commands: bool,
    product: Option<Product>,
    output: Option<OsString>,
    output_folder: Option<OsString>,
    sources: Vec<OsString>,
    keeps: bool,
}

impl Facts {
    fn take(&mut self, words: &[OsString]) {
        let mut at = 0;
        while at < words.len() {
            let word = words[at].as_bytes();
            // Whatever option it may be the value of: a word like this might be an input.
            self.may_hold_cuda |= word.ends_with(b".cu") || word.ends_with(b".CU") || word.ends_with(b".cup");
            let meaning = meaning(word, words.get(at + 1).map(|next| next.as_bytes()));
            match meaning {
                Meaning::Input(name) => {
                    self.inputs += 1;
                    self.sources.push(from_bytes(name));
                    self.cuda_inputs += usize::from(name.ends_with(b".cu"));
                }
                Meaning::Value { name: b"-x" | b"--x", value, .. } => {
                    self.may_hold_cuda = true;
                    self.language_is_cuda |= value == b"cu";
                }
                // One that is not read, or lies too deep.
                Meaning::Value { name: b"-optf" | b"--options-file", .. } => self.may_hold_cuda = true,
                Meaning::Value { name: b"-ccbin" | b"--compiler-bindir", at: start, next, .. } => {
                    self.host_compilers.push((at + usize::from(next), start));
                }
                Meaning::Value { name: b"-o" | b"--output-file", value, .. } => self.output = Some(from_bytes(value)),
                Meaning::Value { name: b"-odir" | b"--output-directory", value, .. } => self.output_folder = Some(from_bytes(value)),
                Meaning::Value { name: b"-keep-dir" | b"--keep-dir", .. } => self.keeps = true,
                Meaning::Flag(b"--version" | b"-V") => self.version = true,
                Meaning::Flag(b"--verbose" | b"-v") => self.prints_commands = true,
                Meaning::Flag(name) => {
                    self.product = self.product.or(product(name));
                    self.keeps |= KEEPS.iter().any(|keep| keep.as_bytes() == name);
                    self.answers |= ANSWERS.iter().any(|answer| answer.as_bytes() == name);
                    self.prints_commands |= name == b"--dryrun" || name == b"-dryrun";
                }
                Meaning::Value { .. } => {}
            }
            at += 1 + usize::from(matches!(meaning, Meaning::Value { next: true, .. }));
        }
    }

    fn merge(&mut self, other: &Self) {
        self.may_hold_cuda |= other.may_hold_cuda;
        self.language_is_cuda |= other.language_is_cuda;
        self.inputs += other.inputs;
        self.cuda_inputs += other.cuda_inputs;
        self.answers |= other.answers;
        self.version |= other.version;
        self.prints_commands |= other.prints_commands;
        self.product = self.product.or(other.product);
        self.keeps |= other.keeps;
    }
}

/// What the option makes nvcc make.
fn product(option: &[u8]) -> Option<Product> {
    Some(match option {
        b"-ptx" | b"--ptx" => Product::Ptx,
        b"-c" | b"--compile" | b"-dc" | b"--device-c" | b"-dw" | b"--device-w" => Product::Object,
        b"-cubin" | b"--cubin" => Product::Binary(Some("cubin")),
        b"-fatbin" | b"--fatbin" => Product::Binary(Some("fatbin")),
        b"-E"
        | b"--preprocess"
        | b"-M"
        | b"--generate-dependencies"
        | b"-MM"
        | b"--generate-nonsystem-dependencies"
        | b"-cuda"
        | b"--cuda"
        | b"-fdevice-syntax-only"
        | b"--fdevice-syntax-only"
        | b"-optix-ir"
        | b"--optix-ir"
        | b"-ltoir"
        | b"--ltoir" => Product::Nothing,
        _ => return None,
    })
}

fn meaning<'a>(word: &'a [u8], next: Option<&'a [u8]>) -> Meaning<'a> {
    if word.first() != Some(&b'-') || word.len() < 2 {
        return Meaning::Input(word);
    }
    let takes_value = |name: &[u8]| WITH_VALUE.iter().any(|known| known.as_bytes() == name);
    if takes_value(word) {
        return match next {
            Some(value) => Meaning::Value { name: word, value, at: 0, next: true },
            None => Meaning::Flag(word),
        };
    }
    if let Some(equals) = word.iter().position(|byte| *byte == b'=')
        && takes_value(&word[..equals])
    {
        return Meaning::Value { name: &word[..equals], value: &word[equals + 1..], at: equals + 1, next: false };
    }
    if word[1] != b'-' && JOINED.contains(&word[1]) && takes_value(&word[..2]) {
        return Meaning::Value { name: &word[..2], value: &word[2..], at: 2, next: false };
    }
    Meaning::Flag(word)
}

/// Deepest chain of options files that name each other.
const DEEPEST: usize = 16;

/// The words with those of options files in place of the files' names. A file that can't be read is nvcc's to complain of.
pub(super) fn expand(mut words: Vec<OsString>) -> Vec<OsString> {
    for _ in 0..DEEPEST {
        let expanded = expand_once(&words);
        if expanded == words {
            break;
        }
        words = expanded;
    }
    words
}

fn expand_once(arguments: &[OsString]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut at = 0;
    while at < arguments.len() {
        let word = arguments[at].as_bytes();
        let (names, length) = match meaning(word, arguments.get(at + 1).map(|next| next.as_bytes())) {
            Meaning::Value { name: b"-optf" | b"--options-file", value, next, .. } => (Some(value), 1 + usize::from(next)),
            Meaning::Value { next: true, .. } => (None, 2),
            _ => (word.strip_prefix(b"@"), 1),
        };
        let texts: Option<Vec<_>> =
            names.and_then(|names| names.split(|byte| *byte == b',').map(|name| std::fs::read(from_bytes(name)).ok()).collect());
        match texts {
            Some(texts) => words.extend(texts.iter().flat_map(|text| split(text))),
            None => words.extend(arguments[at..at + length].iter().cloned()),
        }
        at += length;
    }
    words
}

/// Where inputs stand among the words that are PTX by their names.
pub(super) fn ptx_inputs(words: &[OsString]) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let meaning = meaning(words[at].as_bytes(), words.get(at + 1).map(|next| next.as_bytes()));
        if matches!(meaning, Meaning::Input(name) if name.ends_with(b".ptx")) {
            found.push(at);
        }
        at += 1 + usize::from(matches!(meaning, Meaning::Value { next: true, .. }));
    }
    found
}

/// Words as a shell splits them. Text that a shell would refuse (a quote without its partner) is split at blanks.
pub(super) fn split(text: &[u8]) -> Vec<OsString> {
    let words = shlex::bytes::split(text)
        .unwrap_or_else(|| text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect());
    words.into_iter().map(OsString::from_vec).collect()
}

fn from_bytes(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What words say beside those of one variable.
    fn read_with(words: &str, (name, value): (&str, &str)) -> CommandLine {
        CommandLine::read(&split(words.as_bytes()), |asked| (asked == name).then(|| value.into()))
    }

    fn read(words: &str) -> CommandLine {
        read_with(words, ("", ""))
    }

    #[test]
    fn a_value_is_no_input_and_no_option_in_each_of_its_forms() {
        let plain = read("-c a.cu");
        assert_eq!((plain.sources.as_slice(), plain.product, plain.keeps), (&["a.cu".into()][..], Product::Object, false));
        assert!(plain.names_cuda && plain.may_hold_cuda && plain.preprocesses);
        // These mean something themselves.
        let are_known = ["-x", "--x", "-o", "--output-file", "-odir", "--output-directory", "-ccbin", "--compiler-bindir", "-optf"];
        let others =
            WITH_VALUE.iter().filter(|name| !are_known.contains(name) && !name.ends_with("keep-dir") && **name != "--options-file");
        for name in others {
            for value in ["b", "-ptx", "--keep", "-h"] {
                for form in [format!("{name} {value}"), format!("{name}={value}")] {
                    let line = read(&format!("-c {form} a.cu"));
                    assert_eq!((&line.sources, line.product, line.keeps), (&plain.sources, plain.product, false), "{form}");
                    assert!(line.preprocesses && line.output.is_none() && line.host_compilers.is_empty(), "{form}");
                }
            }
            // Without a value it is a word of nvcc's to complain of.
            assert_eq!(read(&format!("-c a.cu {name}")).sources, plain.sources, "{name}");
        }
        for letter in JOINED.iter().map(|letter| char::from(*letter)).filter(|letter| !"ox".contains(*letter)) {
            assert_eq!(read(&format!("-c -{letter}b a.cu")).sources, plain.sources, "{letter}");
        }
        assert_eq!(read("-c --include-pathb a.cu -Wb -").sources, ["a.cu", "-"]);
    }

    #[test]
    fn options_say_where_results_go_and_who_compiles_for_the_host() {
        for words in ["-o b", "-o=b", "--output-file b", "--output-file=b"] {
            let line = read(&format!("a.cu {words}"));
            assert_eq!((line.output, line.sources.len()), (Some("b".into()), 1), "{words}");
        }
        for words in ["-odir b", "-odir=b", "--output-directory b", "--output-directory=b"] {
            assert_eq!(read(words).output_folder, Some("b".into()), "{words}");
        }
        for (words, place) in
            [("-ccbin g++", (1, 0)), ("-ccbin=g++", (0, 7)), ("-c --compiler-bindir=g++", (1, 18)), ("-c -ccbin g++", (2, 0))]
        {
            let line = read(words);
            assert_eq!(line.host_compilers, [place], "{words}");
            assert_eq!(&line.words[place.0].as_bytes()[place.1..], b"g++", "{words}");
        }
        for (words, product) in [
            ("-ptx", Product::Ptx),
            ("--ptx", Product::Ptx),
            ("-c", Product::Object),
            ("--compile", Product::Object),
            ("-dc", Product::Object),
            ("-dw", Product::Object),
            ("-cubin", Product::Binary(Some("cubin"))),
            ("--fatbin", Product::Binary(Some("fatbin"))),
            ("-E", Product::Nothing),
            ("--cuda", Product::Nothing),
            ("--ltoir", Product::Nothing),
            ("-g", Product::Binary(None)),
            // What nvcc only answers makes nothing.
            ("-c --help", Product::Nothing),
        ] {
            assert_eq!(read(&format!("{words} a.cu")).product, product, "{words}");
        }
        for words in ["--keep", "-save-temps", "-keep-dir b", "--keep-dir=b"] {
            assert!(read(words).keeps, "{words}");
        }
        for words in ["-dryrun", "--dryrun", "-v", "--verbose"] {
            assert!(read(words).prints_commands, "{words}");
        }
        assert!(read("-V").asks_version && read("--version").asks_version && !read("-c a.cu").asks_version);
        assert!(!read("-c a.cu").prints_commands && !read("-lib a.o").keeps);
        for (words, may, names) in [
            ("-c a.cpp", false, false),
            ("-c a.CU", true, false),
            ("-c a.cup", true, false),
            ("-Xcompiler a.cu b.o", false, false),
            ("-Xcompiler=a.cu b.o", true, false),
            ("-x cu a.cpp", true, true),
            ("-x cu", true, false),
            ("-x c++ a.cpp", true, false),
            ("--x=cu a", true, true),
        ] {
            assert_eq!((read(words).may_hold_cuda, read(words).names_cuda), (may, names), "{words}");
        }
    }

    #[test]
    fn words_of_variables_count_as_those_of_the_command_line() {
        let facts = |line: &CommandLine| {
            (line.may_hold_cuda, line.names_cuda, line.preprocesses, line.asks_version, line.prints_commands, line.product, line.keeps)
        };
        for name in VARIABLES {
            for (words, own) in [
                ("a.cu", ""),
                ("-x cu", "a.cpp"),
                ("a.cpp", "-x cu"),
                ("--help", "a.cu"),
                ("--version", ""),
                ("-v", ""),
                ("-dryrun", ""),
                ("-ptx", "a.cu"),
                ("-c", ""),
                ("--keep", "a.cu"),
            ] {
                let (both, apart) = (read(&format!("{own} {words}")), read_with(own, (name, words)));
                assert_eq!(facts(&both), facts(&apart), "{name}={words}");
                assert_eq!(apart.variables, [(name, OsString::from(words))]);
                assert_ne!(facts(&apart), facts(&read(own)), "{name}={words}");
            }
            let line = read_with("-c -ccbin own a.cu", (name, "-O2 -ccbin=other -ccbin third"));
            assert_eq!((line.host_compilers, line.variable_compilers), (vec![(2, 0)], vec!["other".into(), "third".into()]));
            // The command line comes first.
            assert_eq!(read_with("-ptx", (name, "-c")).product, Product::Ptx);
            assert!(read_with("-c", (name, "")).variables.is_empty());
        }
    }

    #[test]
    fn files_of_options_stand_for_their_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_str().expect("it is text").to_owned();
        let (first, second, absent) = (path("first"), path("second"), path("absent"));
        std::fs::write(&first, "-c 'a b.cu'\n-ccbin g++").expect("a file");
        std::fs::write(&second, "-ptx").expect("a file");
        for words in [format!("-optf {first}"), format!("--options-file={first}"), format!("@{first}"), format!("-optf {first},{second}")] {
            let line = read(&format!("-v {words} -g"));
            assert_eq!((line.sources, line.product), (vec!["a b.cu".into()], Product::Object), "{words}");
            // A host compiler is replaced in its own word.
            assert_eq!(
                (line.host_compilers, line.words[1..5].to_vec()),
                (vec![(4, 0)], ["-c", "a b.cu", "-ccbin", "g++"].map(OsString::from).to_vec())
            );
            assert_eq!(line.words.last(), Some(&"-g".into()));
        }
        // Without one the words stay as they are.
        assert_eq!(read(&format!("-optf {second} a.cu")).words.len(), 3);
        assert_eq!(read(&format!("-optf {second} a.cu")).product, Product::Ptx);
        // One that can't be read is nvcc's to complain of, and so is one of several.
        for words in [format!("-optf {absent}"), format!("-optf {second},{absent}"), format!("-o @{second}")] {
            assert_eq!((read(&words).product, read(&words).words.len()), (Product::Binary(None), 2), "{words}");
        }
        assert_eq!(split(b"a 'b c' \"d\"  e"), ["a", "b c", "d", "e"]);
        assert_eq!(split(b" a  'b c "), ["a", "'b", "c"]);
    }
}
