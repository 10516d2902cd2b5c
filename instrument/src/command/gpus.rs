//! `cuinstr gpus`: each GPU, its score, and why it is or is not taken.

use super::cli::{ChoiceArgs, GpusArgs};
use super::output;
use super::report::to_stderr;
use super::status::Status;
use anyhow::Context as _;
use cuinstr::project::config;
use cuinstr_gpus::{Choice, Gpu, Leases, Preferences, Probe, Rank, Refusal, Request, Visible, Wanted, choose, look, probe, rank};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Set for the child of `--probe`, with the UUID that it sees.
const PROBE: &str = "CUINSTR_PROBE_CHILD";

/// Chooses and leases the GPUs that a program asks for; none if it does not ask.
///
/// # Errors
/// If the GPUs can't be listed, none is free, or the configuration is wrong.
pub(crate) fn chosen(args: &ChoiceArgs) -> anyhow::Result<Option<Choice>> {
    let Some(wanted) = args.gpu.clone() else { return Ok(None) };
    anyhow::ensure!(wanted == Wanted::Auto || args.gpu_count == 1, "--gpu-count goes with `--gpu auto`: a name means one GPU");
    let (count, least_free) = (args.gpu_count.into(), args.min_free);
    let mut request = Request { wanted, count, least_free, preferences: preferences(None)?, ..Request::default() };
    let leases = Leases::of_machine();
    let mut choice = choose(&request, &leases, look);
    if let (Err(error @ cuinstr_gpus::Error::TooFew { .. }), Some(wait)) = (&choice, args.wait) {
        to_stderr(&format!("{error}\nwaiting for one, at most {:.0} s\n", Duration::from_nanos(wait).as_secs_f64()));
        request.wait = Duration::from_nanos(wait);
        choice = choose(&request, &leases, look);
    }
    let choice = choice?;
    choice.outlive_exec().context("the lease can't be handed to the program")?;
    Ok(Some(choice))
}

/// A line of the answer.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    gpu: Gpu,
    score: f64,
    /// Whether `--gpu auto` would take it.
    free_to_take: bool,
    /// Why not.
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<Result<Probe, String>>,
}

/// Runs the command.
///
/// # Errors
/// If the GPUs can't be listed, or a file or standard output fails.
pub(crate) fn run(args: &GpusArgs) -> anyhow::Result<Status> {
    let preferences = preferences(args.config.as_deref())?;
    let leases = Leases::of_machine();
    let gpus = Visible::of_environment().keep(look()?)?;
    let mut rows = Vec::with_capacity(gpus.len());
    for Rank { gpu, score, refusal } in rank(gpus, &preferences, args.min_free) {
        let refusal = match refusal {
            None => leases.refusal(&gpu.uuid)?,
            known => known,
        };
        let probe = args.probe.then(|| probed(&gpu, Duration::from_nanos(args.probe_limit)));
        rows.push(Row { score, free_to_take: refusal.is_none(), reason: refusal.as_ref().map(Refusal::to_string), probe, gpu });
    }
    let text = if args.json { serde_json::to_string_pretty(&rows)? + "\n" } else { table(&rows) };
    output::to_stdout(text.as_bytes()).context("standard output can't be written")?;
    Ok(Status::Done)
}

/// Answers as the child of a probe, if this process is one.
pub(crate) fn answer() -> Option<u8> {
    std::env::var_os(PROBE)?;
    let text = serde_json::to_string(&probe()).unwrap_or_default();
    Some(u8::from(output::to_stdout(text.as_bytes()).is_err()))
}

/// The part `[gpu]` of the configuration that holds here.
///
/// # Errors
/// If the file can't be read, or is wrong.
pub(crate) fn preferences(file: Option<&std::path::Path>) -> anyhow::Result<Preferences> {
    let folder = std::env::current_dir()?;
    let Some(path) = file.map(PathBuf::from).or_else(|| config::find(&folder)) else { return Ok(Preferences::default()) };
    config::load(&path).map(|config| config.gpu).map_err(|bad| {
        let messages: Vec<String> = bad.diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect();
        anyhow::anyhow!("{}: {}", bad.name, messages.join("; "))
    })
}

/// Times a GPU in a child that is killed when the time is over.
fn probed(gpu: &Gpu, limit: Duration) -> Result<Probe, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .env(PROBE, &gpu.uuid)
        .env("CUDA_VISIBLE_DEVICES", &gpu.uuid)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let end = Instant::now() + limit;
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if Instant::now() >= end {
            // A process that the driver holds in the kernel can't be reaped, so nothing waits for it here.
            let _ = child.kill();
            return Err(format!("no answer within {:.0} s", limit.as_secs_f64()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| Err(format!("the probe ended with {}", output.status)))
}

fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let probed = rows.iter().any(|row| row.probe.is_some());
    let head = if probed { "   context    launch" } else { "" };
    let _ = writeln!(text, "score  gpu  {:>9}  {:>9}   busy  processes{head}  taken by --gpu auto", "free GiB", "of GiB");
    for row in rows {
        let busy = row.gpu.busy.map_or("?".to_owned(), |busy| format!("{:.0} %", busy * 100.0));
        let times = match &row.probe {
            Some(Ok(probe)) => format!("  {:5.0} ms  {:5.0} us", probe.context_ms, probe.launch_us),
            Some(Err(_)) => "         -         -".to_owned(),
            None => String::new(),
        };
        let gib = |bytes: u64| bytes >> 30;
        let (score, gpu) = (row.score, &row.gpu);
        let (free, total, processes) = (gib(gpu.free), gib(gpu.total), gpu.processes);
        let taken = row.reason.as_ref().map_or("yes".to_owned(), |reason| format!("no: {reason}"));
        let _ = writeln!(text, "{score:5.3}  {:3}  {free:9}  {total:9}  {busy:>5}  {processes:9}{times}  {taken}", gpu.index);
        let _ = writeln!(text, "            {} {}", gpu.name, gpu.uuid);
        if let Some(Err(error)) = &row.probe {
            let _ = writeln!(text, "            probe: {error}");
        }
    }
    text
}
