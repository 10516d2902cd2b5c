//! Attacks on the proof, by number: each is the same for the same number and the same bases.

use clap::Parser;
use cuinstr_differential::injection::base::{self, Base};
use cuinstr_differential::injection::run::{Injected, Judged, inject, judge};
use cuinstr_differential::injection::{edit, same};
use cuinstr_harness::random::Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Puts hangs into proved PTX by chance, changes instructions of it, and changes what means nothing. Exits with 1 if the proof accepts a hang,
/// or if its verdict depends on what means nothing.
#[derive(Parser)]
struct Arguments {
    /// Files of proved PTX, or folders of these [default: those of the tests].
    ptx: Vec<PathBuf>,
    /// Number of attacks of each kind.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Number of the first.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Kinds of attacks.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Attack::Hang, Attack::Edit, Attack::Same])]
    attack: Vec<Attack>,
    /// Without odd comments and line ends in what is put in.
    #[arg(long)]
    plain: bool,
    /// Ask this ptxas about one text of so many.
    #[arg(long, value_name = "N", default_value_t = 0)]
    ptxas_each: u64,
    /// The ptxas.
    #[arg(long, default_value = ".cuda/bin/ptxas")]
    ptxas: PathBuf,
    /// Write texts that something is wrong with into this folder.
    #[arg(long, value_name = "FOLDER", default_value = "target/attack")]
    keep: PathBuf,
    /// Write the attack of this number, of the first kind, and end.
    #[arg(long, value_name = "NUMBER")]
    show: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum Attack {
    /// A cycle without a poll.
    Hang,
    /// Single instructions changed by chance.
    Edit,
    /// What changes nothing.
    Same,
}

/// What came of one attack.
struct Done {
    kind: &'static str,
    text: String,
    /// Where it was made.
    place: String,
    result: String,
    /// The proof is wrong.
    is_wrong: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run(&arguments).unwrap_or_else(|why| {
        eprintln!("attack: {why}");
        ExitCode::from(2)
    })
}

fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let bases = bases(&arguments.ptx)?;
    if let Some(seed) = arguments.show {
        let attack = arguments.attack.first().copied().unwrap_or(Attack::Hang);
        print!("{}", done(attack, &bases, seed, arguments.plain).map_or(String::new(), |done| done.text));
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} kernels, {} places", bases.len(), bases.iter().map(|base| base.sites.len()).sum::<usize>());
    std::fs::create_dir_all(&arguments.keep).map_err(|error| format!("{}: {error}", arguments.keep.display()))?;
    let mut tally: BTreeMap<(Attack, String, &str), u64> = BTreeMap::new();
    let mut wrong = 0;
    for &attack in &arguments.attack {
        for seed in arguments.seed..arguments.seed + arguments.count {
            let Some(done) = done(attack, &bases, seed, arguments.plain) else { continue };
            let path = arguments.keep.join(format!("{attack:?}-{seed}.ptx").to_lowercase());
            if done.is_wrong {
                wrong += 1;
                write(&path, &done.text)?;
                println!("{}: {}, {}, {}", path.display(), done.result, done.kind, done.place);
            }
            if arguments.ptxas_each > 0 && seed % arguments.ptxas_each == 0 && attack != Attack::Edit {
                write(&path, &done.text)?;
                if let Some(why) = refusal(&arguments.ptxas, &path)? {
                    println!("{}: ptxas refuses it ({}): {why}", path.display(), done.kind);
                } else if !done.is_wrong {
                    std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                }
            }
            *tally.entry((attack, done.result, done.kind)).or_default() += 1;
        }
    }
    for ((attack, result, kind), count) in &tally {
        println!("{count:7} {attack:?}: {result}: {kind}");
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn done(attack: Attack, bases: &[Base], seed: u64, plain: bool) -> Option<Done> {
    let judged = |injected: Injected, judged: Judged| {
        let (result, is_wrong) = match judged {
            Judged::Rejected => ("rejected".to_owned(), false),
            Judged::Hole => ("accepted a hang".to_owned(), true),
            Judged::NotShown(why) => (format!("no hang, {why}"), false),
        };
        Done { kind: injected.kind, text: injected.text, place: injected.base, result, is_wrong }
    };
    match attack {
        Attack::Hang => {
            let injected = inject(bases, seed, plain);
            let result = judge(&injected);
            Some(judged(injected, result))
        }
        Attack::Edit => {
            let injected = edit::edit(bases, seed)?;
            let result = edit::judge(&injected, seed % 700);
            Some(judged(injected, result))
        }
        Attack::Same => {
            let mut random = Random::new(seed ^ 0x7361_6d65);
            let base = &bases[random.below(bases.len())];
            let text = same::change(&base.text, &mut random);
            let is_wrong = same::verdicts(&text) != same::verdicts(&base.text);
            let result = if is_wrong { "another verdict" } else { "the same verdict" }.to_owned();
            Some(Done { kind: "the same", text, place: base.name.clone(), result, is_wrong })
        }
    }
}

fn bases(paths: &[PathBuf]) -> Result<Vec<Base>, String> {
    if paths.is_empty() {
        return Ok(base::kept());
    }
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
            files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
        } else {
            files.push(path.clone());
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (kernel, text) in base::split(&text) {
            match Base::new(&format!("{name}: {kernel}"), &text) {
                Ok(base) => found.push(base),
                Err(why) => eprintln!("left out: {why}"),
            }
        }
    }
    if found.is_empty() { Err("no proved kernel".into()) } else { Ok(found) }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Why ptxas refuses a text, if it does.
fn refusal(ptxas: &Path, path: &Path) -> Result<Option<String>, String> {
    let ran = Command::new(ptxas).args(["-arch=sm_90", "-O0", "-o", "/dev/null"]).arg(path).output();
    let ran = ran.map_err(|error| format!("{}: {error}", ptxas.display()))?;
    let said = String::from_utf8_lossy(&ran.stderr);
    let line = said.lines().find(|line| line.contains("error") || line.contains("fatal")).unwrap_or("").to_owned();
    Ok((!ran.status.success()).then_some(line))
}
