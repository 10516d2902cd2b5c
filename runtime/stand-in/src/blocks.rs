//! A grid whose blocks begin in a random order, each with the decision of docs/ABI.md (Pausing).

use crate::raw;
use cuinstr_abi::control::PauseBlock;

/// The blocks of a launch.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    count: u64,
    /// Those that have not begun; made when the first do.
    waiting: Option<Vec<u64>>,
    /// When those that run began.
    running: Vec<u64>,
    random: u64,
    /// When the latest one began, whether it ran or not.
    latest: u64,
}

/// How the device treats blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Habits {
    /// How long each takes.
    pub(crate) ns: u64,
    /// So many of those that run do not end.
    pub(crate) stuck: u64,
    /// Time between the beginnings of two.
    pub(crate) pace: u64,
    /// Those that run end only where a pause of theirs is asked for.
    pub(crate) stands: bool,
}

impl Blocks {
    pub(crate) fn new(count: u64, seed: u64) -> Self {
        Self { count, waiting: None, running: Vec::new(), random: seed | 1, latest: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % bound as u64) as usize
    }

    /// Ends those whose time is over, but for the first that are stuck, and begins others. Whether none is left.
    pub(crate) fn advance(&mut self, pause: Option<u64>, now: u64, slots: u64, habits: Habits, counts: u64) -> bool {
        let Habits { ns, stuck, pace, stands } = habits;
        let stands = stands && !pause.is_some_and(is_asked);
        let mut kept = 0;
        self.running.retain(|began| {
            let stays = stands || kept < stuck || now.saturating_sub(*began) < ns;
            kept += u64::from(stays);
            stays
        });
        let mut waiting = self.waiting.take().unwrap_or_else(|| (0..self.count).collect());
        while !waiting.is_empty() && (self.running.len() as u64) < slots && now.saturating_sub(self.latest) >= pace {
            self.latest = now;
            let at = self.below(waiting.len());
            let block = waiting.swap_remove(at);
            if pause.is_none_or(|pause| runs(pause, block, self.count)) {
                let word = counts + 4 * block;
                raw::store(word, raw::load::<u32>(word) + 1);
                if ns > 0 {
                    self.running.push(now);
                }
            }
        }
        let is_over = waiting.is_empty() && self.running.is_empty();
        self.waiting = Some(waiting);
        is_over
    }
}

/// Whether a pause of the launch is asked for.
fn is_asked(pause: u64) -> bool {
    let words: PauseBlock = raw::load(pause);
    words.launch != 0 && raw::load::<u32>(words.asked) == words.launch
}

/// A block begins: whether it runs.
fn runs(pause: u64, block: u64, count: u64) -> bool {
    let words: PauseBlock = raw::load(pause);
    let (word, bit) = (4 * (block / 32), 1_u32 << (block % 32));
    let set = |bitmap: u64| {
        let before = raw::load::<u32>(bitmap + word);
        raw::store(bitmap + word, before | bit);
        before & bit != 0
    };
    if words.launch == 0 {
        return true;
    }
    if words.missing != 0 && (block as u32).wrapping_sub(words.first) > words.span {
        return false;
    }
    if words.missing != 0 && raw::load::<u32>((words.missing & !1) + word) & bit == 0 {
        if words.missing & 1 == 1 && set(words.seen) {
            set(words.declined);
        }
        return false;
    }
    let declines = is_asked(pause) && u64::from(words.blocks) == count;
    if declines {
        set(words.declined);
    }
    !declines
}
