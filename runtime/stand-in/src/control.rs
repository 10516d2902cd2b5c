//! The commands that a test gives, and what the stand-in counts for it.
//!
//! NAME is the symbol that programs ask for, such as `cuMemAlloc_v2`, or `*` for any call. A command answers 0 if nothing
//! else is said. A wrong command answers -1.
//!
//! Rules for calls:
//!
//! - `fail NAME N CODE`: the N-th call of NAME from now on does nothing and returns CODE. N may be `always`.
//! - `lose NAME N CODE`: the same, and all contexts are lost with this error.
//! - `block NAME N`: the N-th call of NAME from now on waits for `release` before it does anything.
//! - `release`: lets all blocked calls go on. The answer is how many were blocked.
//! - `forget`: drops all rules.
//!
//! Questions, whose answer is a number:
//!
//! - `blocked`: calls that are blocked.
//! - `calls NAME`: calls of NAME so far.
//! - `live KIND`: contexts, streams and so on that exist. KIND is `contexts`, `streams`, `events`, `modules`, `device`,
//!   `mapped`, `pinned` or `managed`. The last four are counted in bytes.
//! - `running`: kernels that have begun and not ended.
//! - `begun`: kernels of the program that have begun.
//! - `written`: words that were written to memory by `cuStreamBatchMemOp`.
//!
//! The device:
//!
//! - `clock PPM STEP`: the device's clock jumps by STEP nanoseconds. From now on it runs PPM faster than the host's.
//! - `depth N`: a stream holds N operations. A call that adds one more waits.
//! - `hold 1`, `hold 0`: kernels do not begin; they begin again.
//! - `busy 1`, `busy 0`: copies between device memory and pinned memory do not begin; they begin again.
//! - `exclusive 1`: while a thread frees memory or loads a module, or waits for a copy in the legacy default stream, launches
//!   and copies of other threads wait, as with a driver. Written words and events get through.
//! - `lazy 1`: a kernel's code is loaded when it is first needed. What comes later in any stream waits for all that came
//!   before, as with a driver.
//! - `late CODE`, `late 0`: code with polls is loaded, but the answer is CODE where something of it is needed in a context,
//!   as from a driver that compiles no sooner; it is good again.
//! - `end`: running `deaf` kernels come to their end.
//! - `blocks NS`: each block of a `blocks` kernel takes NS nanoseconds. That holds for running ones, too.
//! - `stuck COUNT`: the first COUNT running blocks of each launch of a `blocks` kernel do not end.
//! - `pace NS`: a block of a `blocks` kernel begins NS nanoseconds after the one before.
//! - `gate PATH`: until this file exists, a running block of a `blocks` kernel ends only if a pause of its launch is asked for.
//!   So a test sees the grid before it is over, however slow the machine is.
//! - `open`: as if that file existed.
//! - `site ID`: threads stop at this site.
//! - `lose CODE`: the current context is lost with this error.
//! - `reset`: destroys all contexts.
//! - `destroy`: destroys the calling thread's context.
//! - `version N`: the driver is of this version of CUDA, such as 12040.
//! - `name WORD`: the device's name.
//!
//! Files:
//!
//! - `processes DIR`: processes can be checkpointed. The files of this folder say what is known of them.
//! - `log PATH`: appends the name of each call to a file.

use crate::calls;
use crate::client::VARIABLE;
use crate::machine::{self, Kind};
use crate::processes;
use crate::raw;
use std::collections::HashMap;
use std::ffi::c_char;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy)]
enum Action {
    Fail(u32),
    Lose(u32),
    Block,
}

struct Rule {
    name: String,
    // Calls until it applies; nothing if it applies to each.
    left: Option<u64>,
    action: Action,
}

#[derive(Default)]
struct Script {
    is_read: bool,
    rules: Vec<Rule>,
    counts: HashMap<&'static str, u64>,
    all: u64,
    blocked: u64,
    releases: u64,
    log: Option<File>,
    processes: Option<PathBuf>,
    name: Option<String>,
}

static SCRIPT: Mutex<Option<Script>> = Mutex::new(None);
static RELEASED: Condvar = Condvar::new();

fn script() -> MutexGuard<'static, Option<Script>> {
    let mut script = SCRIPT.lock().unwrap_or_else(PoisonError::into_inner);
    script.get_or_insert_default();
    script
}

/// Reads the environment's commands, once.
fn begin() {
    let is_read = script().as_mut().is_none_or(|script| std::mem::replace(&mut script.is_read, true));
    if !is_read {
        for command in std::env::var(VARIABLE).unwrap_or_default().split(';').filter(|command| !command.trim().is_empty()) {
            assert!(perform(command) >= 0, "CUINSTR_STAND_IN: `{command}` is no command of the stand-in driver");
        }
    }
}

/// The folder of what is known of processes, if there is one.
pub(crate) fn processes() -> Option<PathBuf> {
    script().as_ref()?.processes.clone()
}

/// What the device is called.
pub(crate) fn name() -> String {
    script().as_ref().and_then(|script| script.name.clone()).unwrap_or_else(|| "stand-in".to_owned())
}

/// A call has come: notes it and applies the rules. The error is what the call must return.
pub(crate) fn enter(name: &'static str) -> Result<(), u32> {
    begin();
    if let Some(folder) = processes() {
        processes::wait_until_unlocked(&folder);
    }
    let mut guard = script();
    let Some(script) = guard.as_mut() else { return Ok(()) };
    *script.counts.entry(name).or_default() += 1;
    script.all += 1;
    if let Some(log) = &mut script.log {
        let _ = writeln!(log, "{name}");
    }
    let mut fired = None;
    script.rules.retain_mut(|rule| {
        if fired.is_some() || (rule.name != "*" && rule.name != name) {
            return true;
        }
        let is_now = rule.left.as_mut().is_none_or(|left| {
            *left -= 1;
            *left == 0
        });
        if is_now {
            fired = Some(rule.action);
        }
        !is_now || rule.left.is_none()
    });
    match fired {
        None => Ok(()),
        Some(Action::Fail(code)) => Err(code),
        Some(Action::Lose(code)) => {
            drop(guard);
            let mut machine = machine::lock();
            let all: Vec<usize> = machine.contexts.keys().copied().collect();
            for context in all {
                machine.lose(context, code);
            }
            Err(code)
        }
        Some(Action::Block) => {
            let before = script.releases;
            script.blocked += 1;
            while guard.as_ref().is_some_and(|script| script.releases == before) {
                guard = RELEASED.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            if let Some(script) = guard.as_mut() {
                script.blocked -= 1;
            }
            Ok(())
        }
    }
}

fn perform(command: &str) -> i64 {
    let words: Vec<&str> = command.split_whitespace().collect();
    let answer = rule(&words).or_else(|| question(&words)).or_else(|| setting(&words));
    answer.unwrap_or(-1)
}

fn rule(words: &[&str]) -> Option<i64> {
    let (name, left, action) = match words {
        ["fail", name, left, code] => (name, left, Action::Fail(code.parse().ok()?)),
        ["lose", name, left, code] => (name, left, Action::Lose(code.parse().ok()?)),
        ["block", name, left] => (name, left, Action::Block),
        _ => return None,
    };
    let left = if *left == "always" { None } else { Some(left.parse().ok().filter(|left| *left > 0)?) };
    script().as_mut()?.rules.push(Rule { name: (*name).to_owned(), left, action });
    Some(0)
}

fn question(words: &[&str]) -> Option<i64> {
    let answer = match words {
        ["blocked"] => script().as_ref()?.blocked,
        ["calls", "*"] => script().as_ref()?.all,
        ["calls", name] => script().as_ref()?.counts.get(name).copied().unwrap_or(0),
        ["running"] => machine::lock().running() as u64,
        ["begun"] => machine::lock().begun,
        ["written"] => machine::lock().written,
        ["live", "contexts"] => machine::lock().contexts.len() as u64,
        // A context's own default streams are not counted.
        ["live", "streams"] => machine::lock().streams.values().filter(|stream| !stream.is_default).count() as u64,
        ["live", "events"] => machine::lock().events.len() as u64,
        ["live", "modules"] => machine::lock().modules.len() as u64,
        ["live", "device"] => machine::lock().bytes(Kind::Device),
        ["live", "mapped"] => machine::lock().bytes(Kind::Mapped),
        ["live", "pinned"] => machine::lock().bytes(Kind::Pinned),
        ["live", "managed"] => machine::lock().bytes(Kind::Managed),
        _ => return None,
    };
    i64::try_from(answer).ok()
}

fn setting(words: &[&str]) -> Option<i64> {
    match words {
        ["release"] => {
            let mut script = script();
            let script = script.as_mut()?;
            script.releases += 1;
            RELEASED.notify_all();
            return i64::try_from(script.blocked).ok();
        }
        ["forget"] => script().as_mut()?.rules.clear(),
        ["log", path] => script().as_mut()?.log = Some(OpenOptions::new().append(true).create(true).open(path).ok()?),
        ["processes", path] => script().as_mut()?.processes = Some(PathBuf::from(path)),
        ["name", name] => script().as_mut()?.name = Some((*name).to_owned()),
        ["version", version] => machine::lock().version = version.parse().ok()?,
        ["clock", ppm, step] => machine::lock().clock.set(ppm.parse().ok()?, step.parse().ok()?),
        ["depth", depth] => machine::lock().depth = depth.parse().ok()?,
        ["hold", is_held] => machine::lock().is_held = *is_held == "1",
        ["busy", is_busy] => machine::lock().is_busy = *is_busy == "1",
        ["exclusive", is_exclusive] => machine::lock().is_exclusive = *is_exclusive == "1",
        ["lazy", is_lazy] => machine::lock().is_lazy = *is_lazy == "1",
        ["late", code] => machine::lock().late = Some(code.parse().ok()?).filter(|code| *code != 0),
        ["end"] => machine::lock().ends += 1,
        ["blocks", ns] => machine::lock().block_ns = Some(ns.parse().ok()?),
        ["pace", ns] => machine::lock().block_pace = ns.parse().ok()?,
        ["stuck", count] => machine::lock().stuck_blocks = count.parse().ok()?,
        ["gate", path] => machine::lock().gate = Some(PathBuf::from(path)),
        ["open"] => machine::lock().gate = None,
        ["site", site] => machine::lock().site = site.parse().ok()?,
        ["reset"] => {
            let mut machine = machine::lock();
            while let Some(context) = machine.contexts.keys().next().copied() {
                machine.destroy_context(context);
            }
        }
        ["destroy"] => machine::lock().destroy_context(calls::thread_context()),
        ["lose", code] => {
            let code = code.parse().ok()?;
            machine::lock().lose(calls::thread_context(), code);
        }
        _ => return None,
    }
    machine::changed();
    Some(0)
}

/// The names of the calls that were made, each with a zero at its end, and an empty one behind the last. They live as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_stand_in_names() -> *const c_char {
    let mut names: Vec<&str> = script().as_ref().map(|script| script.counts.keys().copied().collect()).unwrap_or_default();
    names.sort_unstable();
    let text: &'static str = Box::leak(format!("{}\0\0", names.join("\0")).into_boxed_str());
    text.as_ptr().cast()
}

/// Performs one command and gives its answer.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_stand_in(command: *const c_char) -> i64 {
    begin();
    perform(&raw::text(command))
}
