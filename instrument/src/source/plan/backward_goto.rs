//! Jumps back. Each makes a loop, and takes units from the budget.

use super::planner::{Known, Owner, Planner};
use crate::common::diagnostic::Code;
use crate::common::poll_interval::{MOST_INTERVAL, NEST_BUDGET};
use crate::common::site::Kind as SiteKind;
use crate::source::plan::insertion::{Insertion, Poll, PollKind};
use crate::source::plan::loop_form::{Decision, LoopForm};
use crate::source::plan::weight::Weight;
use crate::source::syntax::statement::{Body, Simple};
use crate::source::syntax::token::Kind;

/// Whether the label stands below the jump and nowhere else. One that can't be found may be a macro's, and above.
pub(crate) fn is_ahead(body: &Body, jump: usize, name: &[u8]) -> bool {
    body.label_places.get(name).is_some_and(|first| *first > jump)
}

/// The units that loops of a body may run without paying, summed up in the order of their keywords.
pub(crate) struct Unpaid {
    /// Keywords, and the sum in front of each and behind the last.
    keywords: Vec<usize>,
    sums: Vec<u64>,
}

impl Unpaid {
    pub(crate) fn of(body: &Body, decisions: &[Decision]) -> Self {
        let unpaid = |decision: &Decision| match (&decision.form, decision.cost.left_alone) {
            (_, Some(trips)) => trips.saturating_mul(decision.cost.weight().into()),
            (LoopForm::Foldable(_), None) => NEST_BUDGET.into(),
            // As much as a budget holds at its largest.
            (LoopForm::Shared(_), None) => 1 << MOST_INTERVAL,
            (LoopForm::Strip(..) | LoopForm::Chunk(..) | LoopForm::CountDown, None) => 0,
        };
        let mut sums = vec![0_u64];
        sums.extend(decisions.iter().map(unpaid).scan(0, |sum: &mut u64, next| {
            *sum = sum.saturating_add(next);
            Some(*sum)
        }));
        Self { keywords: body.loops.iter().map(|loop_| loop_.keyword).collect(), sums }
    }

    /// What the jump at the token `jump` to the label `name` above it takes, in units: one, and all that loops between the two may run without
    /// paying, for nothing else pays for that.
    pub(crate) fn weight(&self, body: &Body, jump: usize, name: &[u8]) -> u32 {
        let from = body.label_places.get(name).copied().filter(|label| *label < jump).unwrap_or(0);
        let sum = |at: usize| self.sums[self.keywords.partition_point(|keyword| *keyword < at)];
        let units = sum(jump).saturating_sub(sum(from)).saturating_add(1);
        u32::try_from(units).map_or(1 << MOST_INTERVAL, |units| units.min(1 << MOST_INTERVAL))
    }
}

impl Planner<'_> {
    /// A jump: polled, unless its label stands below it.
    pub(super) fn goto(&mut self, known: &Known, owner: &Owner, body: &Body, unpaid: &Unpaid, goto: &Simple, budget: &mut bool) {
        let (source, fragment) = (self.input.source, known.fragment);
        let label = fragment.text(source, goto.token + 1);
        if owner.untouched.is_some() || is_ahead(body, goto.token, label) {
            return;
        }
        self.plan.summary.loops += 1;
        if fragment.kind(goto.token + 1) != Some(Kind::Ident) || !fragment.is(goto.token + 2, b';') {
            return self.gap(Code::NotPolled, "this jump has no place for a poll", fragment, goto.token, owner, SiteKind::Goto);
        }
        let at = fragment.tokens[goto.token].start as usize;
        let site = self.site(SiteKind::Goto, at, owner, owner.style.form(), None);
        *budget = true;
        self.plan.summary.polled += 1;
        let weight = Weight::Units(unpaid.weight(body, goto.token, label));
        let statement = at..fragment.tokens[goto.token + 2].end as usize;
        self.insert(Insertion::Goto { statement, poll: Poll { style: owner.style, site, weight, kind: PollKind::Counted } });
    }
}
