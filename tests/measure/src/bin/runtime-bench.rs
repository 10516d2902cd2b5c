//! Measures the runtime's figures on this machine's GPU.

use clap::Parser;
use cuinstr_gpu_tests::checks::timing::clocks;
use cuinstr_gpu_tests::manifest::Manifest;
use cuinstr_harness::{prepared, process};
use cuinstr_measure::bench::figure::Row;
use cuinstr_measure::bench::page::{Measured, Page};
use cuinstr_measure::bench::{self, FIGURES, Figure, LONG, Rig};
use cuinstr_measure::machine;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Measures the runtime's figures on this machine's GPU. Exits with 0 if all were measured and every target is met, 1 if not, 2 if nothing
/// could be measured.
#[derive(Parser)]
struct Arguments {
    /// The prepared folder [default: where this program lies].
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Folder for runtime-bench.json and runtime-bench.md [default: out in the prepared folder].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Only this figure; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// A tenth of the samples.
    #[arg(long)]
    quick: bool,
    /// Seconds after which no further figure is begun.
    #[arg(long, default_value_t = 240)]
    budget: u64,
    /// Print the names of the figures and measure none.
    #[arg(long)]
    list: bool,
    /// Measure this figure in this process; how the program calls itself.
    #[arg(long, hide = true)]
    figure: Option<String>,
    /// Another process that a figure needs; how the program calls itself.
    #[arg(long, hide = true)]
    role: Option<String>,
}

/// Begins the line that holds a child's result.
const RESULT: &str = "rows ";

/// Counts what this process allocates.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator as it is; the counter is no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn main() -> ExitCode {
    // The runtime's workers are this program, too.
    cuinstr_runtime::worker::serve_if_asked();
    let arguments = Arguments::parse();
    let outcome = match (&arguments.figure, &arguments.role) {
        (Some(name), _) => child(&arguments, name).map(|()| ExitCode::SUCCESS),
        (None, Some(role)) => play(&arguments, role).map(|()| ExitCode::SUCCESS),
        (None, None) => run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("runtime-bench: {error}");
        ExitCode::from(2)
    })
}

fn rig(arguments: &Arguments) -> Result<Rig, String> {
    Rig::open(&prepared::folder(arguments.folder.clone()), arguments.quick, || ALLOCATIONS.load(Ordering::Relaxed))
}

/// Measures one figure, says so, and waits to be killed: the one way out that a hanging kernel can't block.
fn child(arguments: &Arguments, name: &str) -> Result<(), String> {
    let figure = bench::find(name).ok_or("there is no such figure")?;
    let rows = figure.measure(&rig(arguments)?)?;
    println!("{RESULT}{}", serde_json::to_string(&rows).map_err(|error| error.to_string())?);
    let _ = std::io::stdout().flush();
    thread::sleep(Duration::from_secs(10));
    Ok(())
}

fn play(arguments: &Arguments, role: &str) -> Result<(), String> {
    match role {
        "victim" => bench::victim(&rig(arguments)?),
        "fresh" => bench::fresh(&rig(arguments)?),
        _ => Err(format!("there is no role {role}")),
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    if arguments.list {
        for figure in FIGURES.iter().chain(LONG) {
            println!("{:16} {}", figure.name, figure.title);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = arguments.only.iter().find(|name| bench::find(name).is_none()) {
        return Err(format!("there is no figure {unknown}; --list prints them"));
    }
    let folder = prepared::folder(arguments.folder.clone());
    let manifest = Manifest::read(&folder)?;
    // Without a GPU there is nothing to measure, and the reason is one for all.
    drop(cuinstr_runtime::open(0).map_err(|error| error.to_string())?);
    let is_named = |figure: &&Figure| arguments.only.iter().any(|name| name == figure.name);
    let wanted = |figure: &&Figure| arguments.only.is_empty() || is_named(figure);
    let until = Instant::now() + Duration::from_secs(arguments.budget);
    let before = clocks();
    let mut figures = Vec::new();
    for figure in FIGURES.iter().filter(wanted).chain(LONG.iter().filter(is_named)) {
        let since = Instant::now();
        let measured =
            if since > until { Err("the time for the whole run was used up".into()) } else { measure(arguments, &folder, figure) };
        let (rows, error) = measured.map_or_else(|why| (Vec::new(), Some(why)), |rows| (rows, None));
        let seconds = since.elapsed().as_secs_f64();
        eprintln!("{seconds:6.1} s  {}{}", figure.title, error.as_ref().map_or(String::new(), |why| format!(": {why}")));
        figures.push(Measured { name: figure.name.into(), title: figure.title.into(), seconds, rows, error });
    }
    let command = std::env::args()
        .skip(1)
        .filter(|argument| argument.starts_with("--only") || argument == "--quick" || bench::find(argument).is_some());
    let page = Page {
        command: ["scripts/runtime-bench".to_owned()].into_iter().chain(command).collect::<Vec<_>>().join(" "),
        date: machine::date(),
        host: machine::processor(),
        before,
        after: clocks(),
        compiler: manifest.compiler,
        quick: arguments.quick,
        figures,
    };
    let out = arguments.out.clone().unwrap_or_else(|| folder.join("out"));
    prepared::write(&out, "runtime-bench", &page, ("md", &page.markdown()))?;
    println!("{}", page.markdown());
    Ok(if page.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Has a child measure a figure.
fn measure(arguments: &Arguments, folder: &Path, figure: &Figure) -> Result<Vec<Row>, String> {
    let told = |error: std::io::Error| error.to_string();
    let mut command = Command::new(std::env::current_exe().map_err(told)?);
    command.arg("--folder").arg(folder).args(["--figure", figure.name]).args(arguments.quick.then_some("--quick"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(told)?;
    let (sender, lines) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    }
    let stderr = child.stderr.take().map(|mut stderr| {
        thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).trim().to_owned()
        })
    });
    let until = Instant::now() + figure.limit;
    let answer = loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some(rows) = line.strip_prefix(RESULT) {
                    break serde_json::from_str(rows).map_err(|error| error.to_string());
                }
            }
            Err(RecvTimeoutError::Timeout) => break Err(format!("no answer within {:?}; the process was killed", figure.limit)),
            Err(RecvTimeoutError::Disconnected) => break Err("the process ended".into()),
        }
    };
    process::kill_group(&mut child);
    let said = stderr.and_then(|reader| reader.join().ok()).unwrap_or_default();
    answer.map_err(|why: String| match said.lines().last() {
        Some(last) => format!("{why}; its last words: {}", last.trim_start_matches("runtime-bench: ")),
        None => why,
    })
}
