//! The reader beside ptxas: where ptxas sees the use of a name the reader sees it, and what ptxas takes has no fault.
//!
//! Texts that ptxas takes are changed in ways that mean nothing: comments, blanks, scopes, pragmas. Then one word of the text, wherever it stands, becomes
//! a name that nothing declares. `CUINSTR_READER=10000` asks for as many of them; `PTXAS` names the program, else it is looked for in `CUDA_HOME`, on
//! the path and in `.cuda`.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr_ptx::{Code, Graph, Kind, parse, tokens};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SEEDS: &[&str] = &[
    include_str!("../../../tests/data/ptx/forms.ptx"),
    include_str!("data/table_scope.ptx"),
    include_str!("data/register_shadows_function.ptx"),
    include_str!("data/loc_line.ptx"),
];

/// A name that no seed has.
const GONE: &str = "zz_gone";

const COMMENTS: &[&str] = &[
    "/* ; */",
    "/* { */",
    "// }\n",
    "/* \" */",
    "// \" \\\n",
    "/*/ x: */",
    "/***/",
    "// /*\n",
    "/* // */",
    "/* bra again; */",
    "// \r ret;\n",
    "/* count\n */",
];
const BLANKS: &[&str] = &[" ", "\n", "\r", "\t", "\r\n", "\u{c}", "/**/", " // \n", "\n\n"];
const PIECES: &[&str] = &[
    " .pragma \"a\\\"; ",
    " .pragma \"}; // count\"; ",
    " .pragma \"a\nb\", \"/*\"; ",
    " .loc 1 7 0",
    " .loc 1\n7/**/0 ",
    " {} ",
    " { .reg .b32 count; } ",
    " { .reg .b32 %r<3>; mov.u32 %r02, 0; } ",
    " @ /* ! */ ! %p1 /* */ nanosleep /**/ .u32 0; ",
];

/// A stream of random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Changes a text in a way that most likely means nothing.
fn change(text: &mut String, random: &mut Random) {
    let all: Vec<_> = tokens(text).collect();
    let statement_ends: Vec<usize> = {
        let body = text.rfind(".entry").and_then(|at| text[at..].find('{').map(|open| at + open)).unwrap_or(0);
        let ends = all.iter().filter(|token| token.kind == Kind::Mark(b';') && token.span.start as usize > body);
        ends.map(|token| token.span.end as usize).collect()
    };
    match random.below(5) {
        0 => {
            let at = random.of(&all).span.start as usize;
            text.insert_str(at, random.of(COMMENTS));
        }
        1 | 2 => {
            let blanks: Vec<_> = all.iter().filter(|token| token.kind == Kind::Blank).map(|token| token.span).collect();
            let blank = random.of(&blanks);
            let new = if random.below(4) == 0 { "" } else { random.of(BLANKS) };
            text.replace_range(blank.start as usize..blank.end as usize, new);
        }
        3 if !statement_ends.is_empty() => {
            let at = random.of(&statement_ends);
            text.insert_str(at, random.of(PIECES));
        }
        _ if !statement_ends.is_empty() => {
            let (one, two) = (random.of(&statement_ends), random.of(&statement_ends));
            text.insert_str(one.max(two), " } ");
            text.insert_str(one.min(two), " { ");
        }
        _ => {}
    }
}

/// Runs of bytes that names have, also in comments and strings.
fn words(text: &str) -> Vec<std::ops::Range<usize>> {
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%');
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = at + 1 + bytes[at + 1..].iter().take_while(|byte| is_inside(**byte)).count();
        if is_first(bytes[at]) && !(at > 0 && bytes[at - 1] == b'.') {
            found.push(at..end);
        }
        at = if is_inside(bytes[at]) || is_first(bytes[at]) { end } else { at + 1 };
    }
    found
}

/// Whether something is wrong with a text.
fn is_refused(text: &str) -> bool {
    let module = parse(text);
    !module.faults.is_empty() || module.functions.iter().any(|function| !Graph::new(function).lost.is_empty())
}

/// Whether the name is part of what the reader says of a text.
fn is_seen(text: &str) -> bool {
    let module = parse(text);
    is_refused(text)
        || format!("{module:?}").contains(GONE)
        || module.variables.iter().any(|variable| variable.initial_names(text).any(|name| name.contains(GONE)))
        || module.functions.iter().any(|function| {
            let code = Code::new(text, function);
            let mut statements = 0..function.statements.len() as u32;
            code.names().iter().any(|name| name.text.contains(GONE))
                || statements.any(|at| code.opcode(at).contains(GONE) || matches!(code.guard(at), Some((None, _))))
        })
}

fn ptxas() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PTXAS") {
        return Some(named.into());
    }
    let home = std::env::var_os("CUDA_HOME").filter(|home| !home.is_empty()).map(|home| Path::new(&home).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cuda/bin");
    home.into_iter().chain(std::env::split_paths(&path)).chain([fetched]).map(|folder| folder.join("ptxas")).find(|path| path.is_file())
}

fn takes(ptxas: &Path, file: &Path, text: &str) -> bool {
    std::fs::write(file, text).expect("the temporary folder can be written to");
    let mut command = Command::new(ptxas);
    command.args(["-arch", "sm_90", "-O0", "-o", "/dev/null"]).arg(file).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect("ptxas runs").success()
}

#[test]
fn the_reader_sees_what_ptxas_sees() {
    let ptxas = cuinstr_trial::or_ignore("nvcc", ptxas().ok_or_else(|| "there is no ptxas".into()));
    let count = std::env::var("CUINSTR_READER").ok().and_then(|count| count.parse().ok()).unwrap_or(50_usize);
    let first = std::env::var("CUINSTR_READER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0_usize);
    let file = std::env::temp_dir().join(format!("cuinstr-reader-{}.ptx", std::process::id()));
    let (mut taken, mut seen, mut hidden) = (0, 0, 0);
    for number in first..first + count {
        let mut random = Random(number as u64);
        let mut text = random.of(SEEDS).to_owned();
        for _ in 0..random.below(8) {
            change(&mut text, &mut random);
        }
        if !takes(&ptxas, &file, &text) {
            continue;
        }
        taken += 1;
        assert!(!is_refused(&text), "{number}: ptxas takes this, the reader does not: {:?}\n{text}", parse(&text).faults);
        let words = words(&text);
        text.replace_range(words[random.below(words.len())].clone(), GONE);
        if takes(&ptxas, &file, &text) {
            hidden += 1;
            assert!(!is_refused(&text), "{number}: ptxas takes this, the reader does not: {:?}\n{text}", parse(&text).faults);
        } else {
            seen += 1;
            assert!(is_seen(&text), "{number}: ptxas sees `{GONE}`, the reader does not\n{text}");
        }
    }
    let _ = std::fs::remove_file(&file);
    eprintln!("{count} texts: ptxas takes {taken}; of a name that is gone it sees {seen}, and takes {hidden}");
    assert!(taken * 4 > count && seen * 4 > taken && (hidden > 0 || count < 200), "{taken} of {count} taken, {seen} seen, {hidden} hidden");
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
