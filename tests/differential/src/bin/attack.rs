//! Attacks on the proof, by number: each is the same for the same number and the same bases.

use clap::Parser;
use cuinstr_differential::functions::{Functions, compile};
use cuinstr_differential::injection::base::{self, Base};
use cuinstr_differential::injection::run::{Injected, Judged, inject, judge};
use cuinstr_differential::injection::{edit, same};
use cuinstr_harness::random::Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Puts hangs into proved PTX by chance, changes instructions of it, and changes what means nothing. Simulates random functions. Exits with 1 if the
/// proof accepts a hang, if its verdict depends on what means nothing, or if a loop iterates more often than it says. Each ten seconds it says on
/// stderr what it has done.
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
    /// End after so many seconds, with what was done by then.
    #[arg(long)]
    seconds: Option<f64>,
    /// `tests/data/functions/functions.cpp` as a program [default: it is compiled].
    #[arg(long)]
    functions: Option<PathBuf>,
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
    /// Modules of 50 functions, simulated.
    Functions,
}

/// What came of one attack.
struct Done {
    kind: &'static str,
    text: String,
    /// Where it was made.
    place: String,
    result: String,
    /// How often that is to be counted.
    count: u64,
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
    let mut attacker = Attacker::new(arguments)?;
    if let Some(seed) = arguments.show {
        let attack = arguments.attack.first().copied().unwrap_or(Attack::Hang);
        print!("{}", attacker.done(attack, seed)?.map_or(String::new(), |done| done.text));
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} kernels, {} places", attacker.bases.len(), attacker.bases.iter().map(|base| base.sites.len()).sum::<usize>());
    std::fs::create_dir_all(&arguments.keep).map_err(|error| format!("{}: {error}", arguments.keep.display()))?;
    let mut tally = Tally::default();
    let (started, mut said) = (Instant::now(), 0);
    for &attack in &arguments.attack {
        for seed in arguments.seed..arguments.seed + arguments.count {
            let past = started.elapsed();
            if arguments.seconds.is_some_and(|most| past.as_secs_f64() >= most) {
                break;
            }
            if past.as_secs() / 10 > said {
                said = past.as_secs() / 10;
                eprintln!("after {} s: {attack:?} {seed}, {} wrong", past.as_secs(), tally.wrong);
            }
            *tally.tried.entry(attack).or_default() += 1;
            let Some(done) = attacker.done(attack, seed)? else { continue };
            tally.add(arguments, attack, seed, done)?;
        }
    }
    for ((attack, result, kind), count) in &tally.results {
        println!("{count:7} {attack:?}: {result}: {kind}");
    }
    for (attack, count) in &tally.tried {
        println!("{count:7} {attack:?} done");
    }
    Ok(if tally.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What came of all attacks.
#[derive(Default)]
struct Tally {
    results: BTreeMap<(Attack, String, &'static str), u64>,
    tried: BTreeMap<Attack, u64>,
    wrong: u64,
}

impl Tally {
    fn add(&mut self, arguments: &Arguments, attack: Attack, seed: u64, done: Done) -> Result<(), String> {
        let path = arguments.keep.join(format!("{attack:?}-{seed}.ptx").to_lowercase());
        if done.is_wrong {
            self.wrong += 1;
            write(&path, &done.text)?;
            println!("{}: {}, {}, {}", path.display(), done.result, done.kind, done.place);
        }
        if arguments.ptxas_each > 0 && seed.is_multiple_of(arguments.ptxas_each) && attack != Attack::Edit {
            write(&path, &done.text)?;
            if let Some(why) = refusal(&arguments.ptxas, &path)? {
                println!("{}: ptxas refuses it ({}): {why}", path.display(), done.kind);
            } else if !done.is_wrong {
                std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        *self.results.entry((attack, done.result, done.kind)).or_default() += done.count;
        Ok(())
    }
}

/// What attacks are made of.
struct Attacker {
    bases: Vec<Base>,
    functions: Option<Functions>,
    is_plain: bool,
}

impl Attacker {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        let is_wanted = |attack: Attack| arguments.attack.contains(&attack);
        let functions = if is_wanted(Attack::Functions) {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            let program = arguments.functions.clone().map_or_else(|| compile(folder.path()), Ok)?;
            Some(Functions::start(&program)?)
        } else {
            None
        };
        let has_bases = [Attack::Hang, Attack::Edit, Attack::Same].into_iter().any(is_wanted);
        let bases = if has_bases { bases(&arguments.ptx)? } else { Vec::new() };
        Ok(Self { bases, functions, is_plain: arguments.plain })
    }

    fn done(&mut self, attack: Attack, seed: u64) -> Result<Option<Done>, String> {
        let judged = |injected: Injected, judged: Judged| {
            let (result, is_wrong) = match judged {
                Judged::Rejected => ("rejected".to_owned(), false),
                Judged::Hole => ("accepted a hang".to_owned(), true),
                Judged::NotShown(why) => (format!("no hang, {why}"), false),
            };
            Done { kind: injected.kind, text: injected.text, place: injected.base, result, count: 1, is_wrong }
        };
        Ok(match attack {
            Attack::Hang => {
                let injected = inject(&self.bases, seed, self.is_plain);
                let result = judge(&injected);
                Some(judged(injected, result))
            }
            Attack::Edit => edit::edit(&self.bases, seed).map(|injected| {
                let result = edit::judge(&injected, seed % 700);
                judged(injected, result)
            }),
            Attack::Same => {
                let mut random = Random::new(seed ^ 0x7361_6d65);
                let base = &self.bases[random.below(self.bases.len())];
                let text = same::change(&base.text, &mut random);
                let is_wrong = same::verdicts(&text) != base.verdicts;
                let result = if is_wrong { "another verdict" } else { "the same verdict" }.to_owned();
                Some(Done { kind: "the same", text, place: base.name.clone(), result, count: 1, is_wrong })
            }
            Attack::Functions => {
                let functions = self.functions.as_mut().ok_or("functions were not asked for")?;
                let simulated = functions.simulate(seed, |rounds| rounds).map_err(|error| format!("functions: {error}"))?;
                let is_wrong = simulated.wrong.is_some();
                let result = if is_wrong { "more often than is claimed" } else { "loops proved" }.to_owned();
                let place = simulated.wrong.unwrap_or_default();
                Some(Done { kind: "functions", text: simulated.text, place, result, count: simulated.proved, is_wrong })
            }
        })
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
