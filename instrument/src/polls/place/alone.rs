//! Loops that are left alone, since they have few trips.

use crate::polls::find::counted::Context;
use crate::polls::find::declared::Declared;
use crate::polls::find::{Cycles, Writers};
use cuinstr_ptx::{Code, Flow, Function};

/// Most statements that such a loop runs.
pub(super) const MOST_ALONE: u64 = 1024;

/// Whether a function has a loop that is not left alone.
pub(in crate::polls) fn pays(text: &str, function: &Function<'_>) -> bool {
    let Cycles { graph, loops, .. } = &Cycles::new(function);
    if loops.all.is_empty() {
        return false;
    }
    let code = Code::new(text, function);
    let (writers, declared) = (Writers::new(function, &code, graph, loops), Declared::new(function));
    let context = Context { text, function, code: &code, graph, loops, writers: &writers, declared: &declared, pins: None };
    left_alone(&context).contains(&None)
}

/// The loops that need no poll, with the most trips of each.
pub(super) fn left_alone(context: &Context<'_, '_>) -> Vec<Option<u64>> {
    let plain = plain(context);
    let mut alone = Vec::new();
    for number in 0..context.loops.all.len() as u32 {
        let trips = trips(context, number, &plain, &alone);
        alone.push(trips);
    }
    alone
}

fn trips(context: &Context<'_, '_>, number: u32, plain: &[bool], before: &[Option<u64>]) -> Option<u64> {
    let one = &context.loops.all[number as usize];
    if !one.is_natural || !plain[number as usize] {
        return None;
    }
    let (block, taken) = context.test_of(number)?;
    let trips = context.most_trips(number, block, taken, before)?;
    (trips.saturating_mul(one.statements.into()) <= MOST_ALONE).then_some(trips)
}

/// Loops without a call or another loop inside.
fn plain(context: &Context<'_, '_>) -> Vec<bool> {
    let mut plain: Vec<bool> = context.loops.all.iter().map(|one| one.is_innermost).collect();
    for (block, number) in context.graph.blocks.iter().zip(0..) {
        // A call ends its block.
        if context.function.statements[block.end as usize - 1].flow == Flow::Call
            && let Some(plain) = plain.get_mut(context.loops.innermost(number) as usize)
        {
            *plain = false;
        }
    }
    plain
}
