//! The arguments of the host's compiler where it preprocesses CUDA source for nvcc.

use super::error::Error;
use super::overlay::Overlay;
use crate::options::GivenMacro;
use crate::project::config::is_identifier;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Folders that compilers search by themselves; naming them again changes nothing.
pub(super) const BUILT_IN: [&str; 3] = ["/usr/include", "/usr/local/include", "/usr/lib/gcc"];

/// The toolkit's libraries of device code, below its folder of headers: cooperative groups, CUB, Thrust and libcu++, which newer toolkits keep together.
pub(super) const LIBRARIES: [&str; 6] = ["cooperative_groups.h", "cooperative_groups", "cccl", "cub", "thrust", "cuda"];

/// Options whose value is the next word.
const SEPARATE: &[&str] = &[
    "-I",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-imacros",
    "-D",
    "-U",
    "-o",
    "-x",
    "-MF",
    "-MT",
    "-MQ",
    "-L",
    "-l",
    "-T",
    "-u",
    "-z",
    "-B",
    "-A",
    "-e",
    "-Xpreprocessor",
    "-Xassembler",
    "-Xlinker",
    "-Xclang",
    "--param",
    "-isysroot",
    "--sysroot",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-imultilib",
    "-cxx-isystem",
    "-target",
    "-arch",
    "-aux-info",
    "-dumpbase",
    "-dumpdir",
    "-dumpbase-ext",
];

/// One call.
pub(super) enum Call {
    /// A pass over CUDA source.
    Cuda(Box<Cuda>),
    /// Anything else, to be done as it is.
    Other(Vec<OsString>),
}

/// A pass over CUDA source.
#[derive(Debug, Clone, Default)]
pub(super) struct Cuda {
    words: Vec<OsString>,
    main_word: usize,
    /// Words that make up `-o FILE`, which this program writes itself.
    output_words: Vec<usize>,
    paths: Vec<Place>,
    /// The source as nvcc names it.
    pub(super) main: OsString,
    /// Where the result goes; standard output if absent.
    pub(super) output: Option<OsString>,
    /// Folders for `#include "…"` alone, in order.
    pub(super) quote: Vec<OsString>,
    /// Folders for both kinds of `#include`, in order; those of `CPATH` behind the others, as the compiler has it.
    pub(super) include: Vec<OsString>,
    /// Folders of the system.
    pub(super) system: Vec<OsString>,
    /// Files that are included before the source.
    pub(super) forced: Vec<OsString>,
    /// Whether the text goes to the host's side of a compilation, which runs none of the device's code.
    pub(super) for_host: bool,
    /// Whether the text is what nvcc itself was asked for, as by `-E`, and no step of a compilation.
    pub(super) is_answer: bool,
    from_environment: usize,
}

/// A path among the words, that another may take the place of.
#[derive(Debug, Clone)]
struct Place {
    word: usize,
    at: usize,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Quote(usize),
    Include(usize),
    System(usize),
    Forced(usize),
}

impl Call {
    /// Understands the words.
    ///
    /// # Errors
    /// If a file of further words can't be read.
    pub(super) fn read(arguments: Vec<OsString>) -> Result<Self, Error> {
        let is = |option: &str| arguments.iter().any(|word| word == option);
        if !is("-E") || !arguments.iter().any(|word| word == "-D__CUDACC__" || word == "__CUDACC__") {
            return Ok(Self::Other(arguments));
        }
        let words = expand(arguments)?;
        let mut call = Cuda::default();
        let mut at = 0;
        let mut main = None;
        while at < words.len() {
            let word = words[at].as_bytes();
            if word.first() != Some(&b'-') || word.len() == 1 {
                main = Some(at);
                at += 1;
                continue;
            }
            // The longest option wins: `-include` is no `-I`, and `-isystem` no `-i`.
            let separate = SEPARATE.iter().find(|option| option.as_bytes() == word);
            let (name, value_word, start) = match separate {
                Some(option) if at + 1 < words.len() => (option.as_bytes(), at + 1, 0),
                Some(option) => (option.as_bytes(), at, word.len()),
                None => {
                    let joined = ["-isystem", "-iquote", "-idirafter", "-include", "-I", "-o"];
                    let joined = joined.iter().find(|option| word.starts_with(option.as_bytes()));
                    joined.map_or((word, at, word.len()), |option| (option.as_bytes(), at, option.len()))
                }
            };
            let value = OsStr::from_bytes(&words[value_word].as_bytes()[start..]).to_owned();
            let place = |what| Place { word: value_word, at: start, what };
            match name {
                b"-I" if value != "-" => {
                    call.paths.push(place(What::Include(call.include.len())));
                    call.include.push(value);
                }
                b"-iquote" => {
                    call.paths.push(place(What::Quote(call.quote.len())));
                    call.quote.push(value);
                }
                b"-isystem" | b"-idirafter" | b"-cxx-isystem" => {
                    call.paths.push(place(What::System(call.system.len())));
                    call.system.push(value);
                }
                b"-include" => {
                    call.paths.push(place(What::Forced(call.forced.len())));
                    call.forced.push(value);
                }
                b"-o" => {
                    call.output_words = (at..=value_word).collect();
                    call.output = Some(value).filter(|value| value != "-");
                }
                _ => {}
            }
            at = value_word + 1;
        }
        let Some(main) = main else { return Ok(Self::Other(words)) };
        call.main_word = main;
        call.main.clone_from(&words[main]);
        // nvcc's own name for what `cudafe++` reads. By any other name it may be a text for somebody to look at, or to compile for both sides.
        let is_step = |name: &[u8]| call.output.as_ref().is_some_and(|path| path.as_bytes().ends_with(name));
        call.for_host = is_step(b".cpp4.ii") && !words.iter().any(|word| word.as_bytes().starts_with(b"-D__CUDA_ARCH__="));
        // A list of dependencies is no text.
        call.is_answer = !is_step(b".cpp1.ii") && !is_step(b".cpp4.ii") && !words.iter().any(|word| word == "-M" || word == "-MM");
        call.words = words;
        if let Some(path) = std::env::var_os("CPATH").filter(|path| !path.is_empty()) {
            // An empty entry is the current folder.
            let folders =
                std::env::split_paths(&path).map(|path| if path.as_os_str().is_empty() { ".".into() } else { path.into_os_string() });
            call.include.extend(folders);
            call.from_environment = call.include.len() - call.paths.iter().filter(|path| matches!(path.what, What::Include(_))).count();
        }
        Ok(Self::Cuda(Box::new(call)))
    }
}

impl Cuda {
    /// All words, as nvcc gave them.
    pub(super) fn words(&self) -> &[OsString] {
        &self.words
    }

    /// The words without those that name the output.
    pub(super) fn words_without_output(&self) -> impl Iterator<Item = &OsString> {
        self.words.iter().enumerate().filter(|(index, _)| !self.output_words.contains(index)).map(|(_, word)| word)
    }

    /// Whether the text is what the device's side of a compilation reads.
    pub(super) fn is_device_step(&self) -> bool {
        self.output.as_ref().is_some_and(|path| path.as_bytes().ends_with(b".cpp1.ii"))
    }

    /// What the words define, as the text of a file that would.
    pub(super) fn definitions(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut words = self.words.iter().map(|word| word.as_bytes());
        while let Some(word) = words.next() {
            let Some(defined) = (if word == b"-D" { words.next() } else { word.strip_prefix(b"-D") }) else { continue };
            let (name, value) = match defined.iter().position(|byte| *byte == b'=') {
                Some(at) => (&defined[..at], &defined[at + 1..]),
                None => (defined, &b"1"[..]),
            };
            let line = [b"#define ", name, b" ", value].concat();
            text.extend(line.into_iter().map(|byte| if byte == b'\n' { b' ' } else { byte }));
            text.push(b'\n');
        }
        text
    }

    /// The macros of the user's that the words define, or of which they say that they are none. Names with an underscore in front are the compilers' own:
    /// these have other values in other passes, or change on the way.
    pub(super) fn given(&self) -> Vec<GivenMacro> {
        let mut given: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        let mut words = self.words.iter().map(|word| word.to_str().unwrap_or_default());
        while let Some(word) = words.next() {
            let Some(option) = ["-D", "-U"].into_iter().find(|option| word.starts_with(option)) else { continue };
            let text = if word == option { words.next().unwrap_or_default() } else { &word[2..] };
            let (name, value) = text.split_once('=').unwrap_or((text, "1"));
            given.insert(name.split('(').next().unwrap_or_default(), Some(value).filter(|_| option == "-D"));
            if name.contains('(') {
                given.remove(name.split('(').next().unwrap_or_default());
            }
        }
        let given = given.into_iter().filter(|(name, _)| is_identifier(name) && !name.starts_with('_'));
        given.map(|(name, value)| GivenMacro { name: name.to_owned(), value: value.map(str::to_owned) }).collect()
    }

    /// The words of a call that reads the overlay; on the host's side, of one that reads the user's own files.
    pub(super) fn arguments(&self, overlay: &Overlay) -> Vec<OsString> {
        let mut words = Vec::with_capacity(self.words.len() + 4);
        let mut prelude = overlay.prelude();
        let own = self.for_host;
        // Words of `-Xcompiler` stand in front of nvcc's own.
        let runtime = self.forced.iter().position(|name| is_runtime_header(name));
        // Without CUDA's own names in front, ours come before whatever is first.
        let first_forced = self.paths.iter().find(|path| path.what == What::Forced(0)).filter(|_| runtime.is_none());
        let first = first_forced.map_or(self.main_word, |path| path.word - usize::from(path.at == 0)).min(self.main_word);
        for (index, word) in self.words.iter().enumerate() {
            if self.output_words.contains(&index) {
                continue;
            }
            if index == first && first_forced.is_some() {
                words.extend(prelude.take().into_iter().flat_map(|path| [OsString::from("-include"), path.into()]));
            }
            if index == self.main_word {
                // Without a forced include of nvcc's, the source itself comes first.
                words.extend(prelude.take().into_iter().flat_map(|path| [OsString::from("-include"), path.into()]));
                words.push(if own { word.clone() } else { overlay.main().into() });
                continue;
            }
            let path = self.paths.iter().find(|path| path.word == index);
            let replacement = path.filter(|_| !own).and_then(|path| match path.what {
                What::Quote(index) => overlay.quote(index),
                What::Include(index) => overlay.include(index),
                What::System(index) => overlay.system(index),
                What::Forced(index) => overlay.forced(index),
            });
            match (path, replacement) {
                (Some(path), Some(replacement)) => {
                    let mut bytes = word.as_bytes()[..path.at].to_vec();
                    bytes.extend_from_slice(replacement.as_os_str().as_bytes());
                    words.push(OsString::from_vec(bytes));
                }
                _ => words.push(word.clone()),
            }
            // CUDA's own names come first, then ours, then what the user has included before the source.
            if path.is_some_and(|path| runtime.is_some_and(|index| path.what == What::Forced(index))) {
                words.extend(prelude.take().into_iter().flat_map(|path| [OsString::from("-include"), path.into()]));
            }
        }
        let first = self.include.len() - self.from_environment;
        for index in first..self.include.len() {
            words.push("-I".into());
            words.push(overlay.include(index).filter(|_| !own).map_or_else(|| self.include[index].clone(), Into::into));
        }
        if !own {
            words.extend(self.prefix_maps(&overlay.places()));
        }
        words
    }

    /// What `-fmacro-prefix-map` and `-ffile-prefix-map` say of the user's paths, said of the overlay's: they decide what `__FILE__` is. The last that fits
    /// holds, and those of the second kind come behind all of the first.
    fn prefix_maps(&self, places: &[(Vec<u8>, Vec<u8>)]) -> Vec<OsString> {
        let maps = |option: &'static [u8]| {
            let values = self.words.iter().filter_map(move |word| word.as_bytes().strip_prefix(option));
            values.filter_map(|map| map.iter().position(|byte| *byte == b'=').map(|equals| (&map[..equals], &map[equals + 1..])))
        };
        let maps: Vec<_> = maps(b"-fmacro-prefix-map=").chain(maps(b"-ffile-prefix-map=")).collect();
        let word = |from: &[u8], to: &[u8]| OsString::from_vec([b"-ffile-prefix-map=", from, b"=", to].concat());
        // None of them speaks of our own folder, where the user's may lie beside it.
        let mut words: Vec<_> = places.iter().filter(|_| !maps.is_empty()).map(|(place, _)| word(place, place)).collect();
        for (from, to) in maps {
            for (place, spelled) in places {
                if let Some(rest) = spelled.strip_prefix(from) {
                    words.push(word(place, &[to, rest].concat()));
                } else if let Some(rest) = from.strip_prefix(&spelled[..]) {
                    words.push(word(&[&place[..], rest].concat(), to));
                }
            }
        }
        words
    }
}

/// Whether it is the header that nvcc itself puts in front of all CUDA source.
pub(super) fn is_runtime_header(name: &OsStr) -> bool {
    Path::new(name) == Path::new("cuda_runtime.h")
}

/// The words with those of `@FILE` in place of it, as the compiler reads them. What is no such file is a word.
fn expand(arguments: Vec<OsString>) -> Result<Vec<OsString>, Error> {
    let mut words = Vec::with_capacity(arguments.len());
    for word in arguments {
        match word.as_bytes().strip_prefix(b"@").map(|name| Path::new(OsStr::from_bytes(name))).filter(|path| path.is_file()) {
            Some(path) => {
                let text = std::fs::read(path).map_err(|error| Error::io("can't read", path, &error))?;
                words.extend(super::arguments::split(&text));
            }
            None => words.push(word),
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_line_defines_is_said_as_a_file_would() {
        let words = [
            "gcc",
            "-E",
            "-D__CUDACC__",
            "-DN=5",
            "-D",
            "M=(N * 2)",
            "-DFLAG",
            "-DAT(i)=((i) * N)",
            "-UN",
            "-x",
            "c++",
            "a.cu",
            "-o",
            "a.ii",
        ];
        let Ok(Call::Cuda(call)) = Call::read(words[1..].iter().map(OsString::from).collect()) else { panic!("a pass over CUDA source") };
        let said = "#define __CUDACC__ 1\n#define N 5\n#define M (N * 2)\n#define FLAG 1\n#define AT(i) ((i) * N)\n";
        assert_eq!(String::from_utf8_lossy(&call.definitions()), said);
        let given: Vec<_> = call.given().into_iter().map(|one| (one.name, one.value)).collect();
        let value = |text: &str| Some(text.to_owned());
        let expected = [("FLAG", value("1")), ("M", value("(N * 2)")), ("N", None)].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(given, expected, "the last word on a name holds, and one with arguments is no value");
    }

    fn cuda(words: &[&str]) -> Cuda {
        let words = ["-E", "-D__CUDACC__"].iter().chain(words).map(OsString::from).collect();
        let Ok(Call::Cuda(call)) = Call::read(words) else { panic!("a pass over CUDA source") };
        *call
    }

    #[test]
    fn the_source_is_told_from_values_and_folders_from_each_other() {
        for option in SEPARATE {
            let call = cuda(&["a.cu", option, "b"]);
            assert_eq!(call.main, "a.cu", "{option}");
            // Without a value it is the compiler's to complain of.
            assert_eq!(cuda(&["a.cu", option]).main, "a.cu", "{option}");
        }
        let folders = |call: &Cuda| [&call.quote, &call.include, &call.system, &call.forced].map(|list| list.join(OsStr::new(" ")));
        let none = folders(&cuda(&["a.cu"]));
        for (option, index) in [("-iquote", 0), ("-I", 1), ("-isystem", 2), ("-idirafter", 2), ("-include", 3)] {
            for words in [&[option, "b", "a.cu"][..], &[&format!("{option}b"), "a.cu"]] {
                let call = cuda(words);
                let mut wanted = none.clone();
                wanted[index] = if index == 1 && !none[1].is_empty() { format!("b {}", none[1].display()).into() } else { "b".into() };
                assert_eq!((folders(&call), call.main.to_str()), (wanted, Some("a.cu")), "{words:?}");
                let place = &call.paths[0];
                assert_eq!(&call.words[place.word].as_bytes()[place.at..], b"b", "{words:?}");
            }
        }
        assert_eq!(folders(&cuda(&["-cxx-isystem", "b", "a.cu"]))[2], "b");
        // What splits the two kinds of folders is none.
        assert!(cuda(&["-I-", "a.cu", "-x", "c++", "-"]).paths.is_empty());
        assert_eq!(cuda(&["a.cu", "-x", "c++", "-"]).main, "-");
        for words in [&["-E", "a.cu"][..], &["-D__CUDACC__", "a.cu"], &["-E", "-D__CUDACC__", "-I", "b"]] {
            assert!(matches!(Call::read(words.iter().map(OsString::from).collect()), Ok(Call::Other(_))), "{words:?}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("words"), "-I 'b c' a.cu").expect("a file");
        let call = cuda(&[&format!("@{}", folder.path().join("words").display()), "@none"]);
        assert_eq!((call.include[0].to_str(), call.main.to_str()), (Some("b c"), Some("@none")));
    }

    #[test]
    fn the_name_of_the_output_says_what_the_text_is_for() {
        for (words, is_device, for_host, is_answer) in [
            (&["-o", "t.cpp1.ii"][..], true, false, false),
            (&["-ot.cpp1.ii"], true, false, false),
            (&["-o", "t.cpp4.ii"], false, true, false),
            (&["-D__CUDA_ARCH__=900", "-o", "t.cpp4.ii"], false, false, false),
            (&["-o", "t.ii"], false, false, true),
            (&["-M", "-o", "t.d"], false, false, false),
            (&["-MM"], false, false, false),
            (&["-o", "-"], false, false, true),
            (&[], false, false, true),
        ] {
            let call = cuda(&[&["a.cu"][..], words].concat());
            assert_eq!((call.is_device_step(), call.for_host, call.is_answer), (is_device, for_host, is_answer), "{words:?}");
            let rest: Vec<_> =
                call.words_without_output().filter_map(|word| word.to_str()).filter(|word| word.starts_with(['t', '-'])).collect();
            assert!(!rest.iter().any(|word| word.starts_with("-o") || *word == "-" || word.starts_with('t')), "{rest:?}");
            assert_eq!(call.output.is_some(), words.last().is_some_and(|word| word.contains("t.")), "{words:?}");
        }
    }

    #[test]
    fn names_of_files_that_are_mapped_are_mapped_in_the_overlay_too() {
        let places = [("/v/r0/", "/top/u/p/"), ("/v/r1/", "own/")].map(|(place, spelled)| (place.into(), spelled.into()));
        assert!(cuda(&["a.cu", "-DX=-fmacro-prefix-map=/top=Y"]).prefix_maps(&places).is_empty());
        let call = cuda(&[
            "-ffile-prefix-map=/top=Y",
            "-fmacro-prefix-map=/top/u=X",
            "a.cu",
            "-ffile-prefix-map=/top/u/p/src=Z",
            "-ffile-prefix-map=o=A=B",
        ]);
        let maps = ["/v/r0/=/v/r0/", "/v/r1/=/v/r1/", "/v/r0/=X/p/", "/v/r0/=Y/u/p/", "/v/r0/src=Z", "/v/r1/=A=Bwn/"];
        assert_eq!(call.prefix_maps(&places), maps.map(|map| OsString::from(format!("-ffile-prefix-map={map}"))));
    }
}
