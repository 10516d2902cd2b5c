//! Attacks on the proof.

use clap::Parser;
use cuinstr_tests::injection::base::{Base, split};
use cuinstr_tests::injection::run::{Judged, inject, judge};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Puts hangs into proved PTX.
#[derive(Parser)]
struct Arguments {
    /// Files of proved PTX, or folders of these.
    #[arg(required = true)]
    ptx: Vec<PathBuf>,
    /// Number of attacks of each kind.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Number of the first.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Without odd comments and line ends.
    #[arg(long)]
    plain: bool,
    /// Ask this ptxas about each text of so many.
    #[arg(long, default_value_t = 0)]
    ptxas_each: u64,
    /// The ptxas.
    #[arg(long, default_value = ".cuda/bin/ptxas")]
    ptxas: PathBuf,
    /// Writes what is wrong into this folder.
    #[arg(long, default_value = "target/attack")]
    keep: PathBuf,
}

fn main() -> Result<ExitCode, String> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.keep).map_err(|error| error.to_string())?;
    let mut bases = Vec::new();
    let mut files = Vec::new();
    for path in &arguments.ptx {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).map_err(|e| e.to_string())?.filter_map(|entry| Some(entry.ok()?.path())));
        } else {
            files.push(path.clone());
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        for (kernel, text) in split(&text) {
            match Base::new(&format!("{} {kernel}", path.file_stem().unwrap_or_default().to_string_lossy()), &text) {
                Ok(base) => bases.push(base),
                Err(why) => eprintln!("left out: {why}"),
            }
        }
    }
    println!("{} bases, {} sites", bases.len(), bases.iter().map(|base| base.sites.len()).sum::<usize>());
    let mut tally: BTreeMap<(&str, String), u64> = BTreeMap::new();
    let mut holes = 0;
    for seed in arguments.seed..arguments.seed + arguments.count {
        let injected = inject(&bases, seed, arguments.plain);
        let judged = judge(&injected);
        let path = arguments.keep.join(format!("{seed}.ptx"));
        let write = || std::fs::write(&path, &injected.text).map_err(|error| error.to_string());
        let word = match &judged {
            Judged::Rejected => "rejected".to_owned(),
            Judged::Hole => {
                holes += 1;
                write()?;
                println!("HOLE {seed}: {}, {}", injected.kind, injected.base);
                "HOLE".to_owned()
            }
            Judged::NotShown(why) => {
                if std::env::var_os("SHOW").is_some() {
                    write()?;
                    println!("{seed}: {} {} {why}", injected.kind, injected.base);
                }
                why.clone()
            }
        };
        *tally.entry((injected.kind, word)).or_default() += 1;
        if arguments.ptxas_each > 0 && seed % arguments.ptxas_each == 0 {
            write()?;
            let ran = Command::new(&arguments.ptxas).args(["-arch=sm_90", "-O0", "-o", "/dev/null"]).arg(&path).output().map_err(|e| e.to_string())?;
            if !ran.status.success() {
                println!("ptxas {seed} {}: {}", injected.kind, String::from_utf8_lossy(&ran.stderr).lines().take(2).collect::<Vec<_>>().join(" | "));
            } else if judged != Judged::Hole {
                let _ = std::fs::remove_file(&path);
            }
        }
    }
    for ((kind, word), count) in &tally {
        println!("{count:6} {kind}: {word}");
    }
    Ok(if holes == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
