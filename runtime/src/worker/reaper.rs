//! Kills processes, and takes note of their ends, so that none stays a zombie. A process whose kernel hangs needs a
//! tenth of a second to end. No other thread waits for that.

use crate::thread;
use std::process::Child;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// How often those that are going are looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// Kills a process, and returns at once.
pub(super) fn kill(mut child: Child) {
    static REAPER: OnceLock<Option<Sender<Child>>> = OnceLock::new();
    // One that is already dead can't be killed, which is as good.
    let _ = child.kill();
    let start = || {
        let (sender, receiver) = mpsc::channel();
        thread::spawn("cuinstr-reaper", move || reap(&receiver)).ok()?;
        Some(sender)
    };
    if let Some(sender) = REAPER.get_or_init(start) {
        // The thread lives as long as this process.
        let _ = sender.send(child);
    }
}

fn reap(dying: &Receiver<Child>) {
    let mut children: Vec<Child> = Vec::new();
    loop {
        let next = if children.is_empty() { dying.recv().map_err(|_| RecvTimeoutError::Disconnected) } else { dying.recv_timeout(PAUSE) };
        match next {
            Ok(child) => children.push(child),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}
