//! A loop of a function, and what is proved of it.

use crate::domain::state::State;
use crate::interpret::edge_cost::Count;
use crate::rank::nest_phases;

/// What is proved of a loop, without what loops inside add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// No round goes on once the flag says stop.
    Polled,
    /// At most so many rounds go on after that.
    PolledWithin(Count),
    /// At most so many rounds, whatever the flag says.
    Counted(Count),
    /// A clock ends it: once it has gone on for so many ticks at most so many rounds come back.
    Clock { ticks: u64, rounds: u64 },
    /// Threads go on when the flag says stop, but under `trap` they trap.
    TrapOnly,
    /// Nothing.
    None(Why),
}

/// Why there is no proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Some round neither asks nor counts.
    NoPoll,
    /// Some round asks for the flag and goes on.
    GoesOn,
    /// The proof was given up: too large.
    TooLarge,
    /// Something was not tried to its end, as a later look may need less.
    CutShort,
    /// Too deep in other loops to be looked at, with all loops inside.
    TooDeep,
    /// It ends by itself, but ptxas counts it by another rule.
    Unrolled,
}

/// A loop of the function.
#[derive(Debug)]
pub(crate) struct LoopProof {
    /// The block that rounds begin at.
    pub(crate) head: u32,
    /// All blocks of it, sorted.
    pub(crate) blocks: Vec<u32>,
    /// Those that a round without end may pass, sorted; empty if there is none.
    pub(crate) left: Vec<u32>,
    /// A register that is not zero where such a round begins, as a slot: see [`remaining`].
    pub(crate) not_zero: Option<u32>,
    /// See [`Remaining::together`].
    pub(crate) together: Option<nest_phases::Paid>,
    /// See [`Remaining::begun`].
    pub(crate) begun: bool,
    /// Index of the loop around it.
    pub(crate) parent: Option<usize>,
    pub(crate) proof: Proof,
    /// At most how many of its rounds come back whatever the flag says, if that was asked and is known.
    pub(crate) ends: Option<u64>,
    /// Loops inside whose rounds one register counts together with those of this one.
    pub(crate) shared: Option<Shared>,
    /// Slots that do not rise in any of its rounds, if that is known: others pay for nothing.
    pub(crate) falls: Option<Vec<u32>>,
    /// Depth of nesting, from 0.
    pub(crate) depth: usize,
}

/// See [`Known::again_of`].
pub(crate) type AgainOf<'k> = dyn Fn(u32, &[u32]) -> Option<State> + 'k;

/// What registers hold, whatever the flag says.
pub(crate) struct Known<'k> {
    /// The blocks that were followed for it, in a reverse postorder.
    pub(crate) order: &'k [u32],
    /// At the beginning of a block.
    pub(crate) base_of: &'k dyn Fn(u32) -> Option<State>,
    /// At the head of a loop of these blocks where it comes round; where that is not known, whenever it is reached.
    pub(crate) again_of: &'k AgainOf<'k>,
}

/// At most how many rounds of a loop are paid for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paid {
    /// In rounds of the outer loop that come back.
    pub(crate) again: u64,
    /// In all of its rounds, the last one too, if the register pays there.
    pub(crate) whole: Option<u64>,
    /// Together with rounds of the outer loop, where one of these costs as much, from the same register.
    pub(crate) joint: Option<u64>,
}

/// Rounds that are counted together.
#[derive(Debug)]
pub(crate) struct Shared {
    /// At most so many of the loop itself.
    pub(crate) own: u64,
    /// Heads of the loops inside, and how many rounds of each are paid for.
    pub(crate) inside: Vec<(u32, Paid)>,
    /// Rounds of the loop itself that need not pay: the last one; one that comes back with a zero that ends the next; and the first, or that in which
    /// a poll lies, where it may go by other ways.
    pub(crate) unpaid: u64,
}

impl Shared {
    /// What holds by either.
    pub(crate) fn and(mut self, other: Self) -> Self {
        for (head, rounds) in other.inside {
            match self.inside.iter_mut().find(|(known, _)| *known == head) {
                Some((_, known)) => {
                    let least = |one: Option<u64>, two: Option<u64>| one.into_iter().chain(two).min();
                    *known = Paid {
                        again: rounds.again.min(known.again),
                        whole: least(rounds.whole, known.whole),
                        joint: least(rounds.joint, known.joint),
                    };
                }
                None => self.inside.push((head, rounds)),
            }
        }
        Self { own: self.own.min(other.own), unpaid: self.unpaid.max(other.unpaid), ..self }
    }

    /// What is paid for of the loop with that head.
    pub(crate) fn paid_of(&self, head: u32) -> Option<Paid> {
        self.inside.iter().find(|(of, _)| *of == head).map(|(_, rounds)| *rounds)
    }
}
