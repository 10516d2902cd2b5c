//! Watching a launch in flight: when its time is up, when to look again, when waiting makes no sense any more.

use super::{LaunchSlot, State, Subject};
use crate::cause::{Cause, Tier};
use crate::error::Error;
use crate::limits::{Clock, Limits};
use crate::outcome::Outcome;
use crate::timer::Timer;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How much later than the device's own deadline the host's flag follows, should the device have missed it.
const BACKUP: Duration = Duration::from_millis(1);
/// For how long a waiting thread asks without a pause, around a moment that may end the launch.
const HOT: Duration = Duration::from_micros(200);
/// Longest pause between two looks of a thread that waits.
const PAUSE: Duration = Duration::from_micros(200);
/// When a slot that nothing can happen to is looked at again.
const LATER: Duration = Duration::from_secs(3600);
/// For how long the driver may fail to say how a launch fares before who waits is told.
const TROUBLE: Duration = Duration::from_millis(100);
/// Longest that a trap takes to be seen.
const TRAP: Duration = Duration::from_secs(5);

/// Whether the host raises the flag of a launch that was told to stop. The device's own clock comes first, where it is armed.
fn is_ours_to_raise(limits: &Limits, (told, cause): (Instant, Cause), now: Instant) -> bool {
    let has_own = limits.clock == Clock::Device && limits.deadline.is_none_or(|deadline| deadline > now);
    cause == Cause::Cancelled || !has_own || now >= told + BACKUP
}

impl LaunchSlot {
    /// The launch is in flight: is its time up, or its grace?
    pub(super) fn watch(&self, state: &mut State, now: Instant) -> Option<Result<Outcome, Error>> {
        let (limits, context) = (state.limits?, state.context.clone()?);
        if state.began.is_none() {
            let by_event = || limits.clock == Clock::Host && state.is_submitted && self.begin.is_reached().unwrap_or(false);
            let began = match self.start_ns() {
                0 => by_event().then_some(now),
                start => {
                    context.note_clock(state.launched, now, start);
                    Some(context.host_time(start).unwrap_or(now))
                }
            };
            // The next part of a paused launch may have been made since this look began.
            state.began = began.map(|began| began.clamp(state.launched.min(now), now));
        }
        let due = [state.began.zip(limits.timeout).map(|(began, timeout)| began + timeout), limits.deadline].into_iter().flatten().min();
        if let Some(due) = due.filter(|due| *due <= now) {
            state.told.get_or_insert((due, Cause::Deadline));
        }
        let (told, cause) = state.told?;
        if state.raised.is_none() && is_ours_to_raise(&limits, (told, cause), now) {
            match self.flip(state) {
                Ok(()) => state.raised = Some(Instant::now()),
                Err(fault) => return self.failed(state, now, fault),
            }
        }
        if state.raised.is_none_or(|raised| now < raised + limits.grace) {
            return None;
        }
        if let Some(watchdog) = state.watchdog.as_ref().filter(|_| state.tier == Tier::Leave) {
            watchdog.trap();
            state.tier = Tier::Watchdog;
        }
        None
    }

    /// When to look again, if no thread waits.
    pub(super) fn next_look(state: &State, now: Instant) -> Instant {
        let Some(limits) = state.limits else { return now + LATER };
        if state.paused().is_some() {
            return limits.deadline.unwrap_or(now + LATER);
        }
        let soon = now + ((now - state.launched) / 16).clamp(Duration::from_micros(20), Duration::from_millis(1));
        if state.ended.is_some() || state.trouble.is_some() || state.is_pausing().is_some() {
            return soon;
        }
        // The timeout that a paused launch has left counts from the moment at which its last part began.
        let needs_start = limits.timeout.is_some() && (limits.clock == Clock::Host || state.pausing.is_some());
        if state.waker.is_some() || (needs_start && state.began.is_none()) {
            return soon;
        }
        if let Some((told, _)) = state.told {
            let grace = state.raised.unwrap_or(told).max(told) + limits.grace;
            // Past its grace it is looked at only so that its memory can be used again.
            let seldom = (now.saturating_duration_since(grace) / 16).clamp(Duration::from_millis(20), Duration::from_secs(1));
            return if now < grace { grace.min(now + Duration::from_millis(1)) } else { now + seldom };
        }
        let timeout = limits.timeout.map(|timeout| match state.began {
            Some(began) => (began + timeout + BACKUP).max(now + Duration::from_micros(50)),
            None => (state.launched + timeout).max(soon),
        });
        [timeout, limits.deadline].into_iter().flatten().min().unwrap_or(now + LATER)
    }

    /// Waits until the outcome is known, at most until `until`, and takes it.
    pub(crate) fn wait(&self, number: u32, until: Option<Instant>) -> Option<Result<Outcome, Error>> {
        let mut pause = Duration::from_micros(10);
        loop {
            let now = Instant::now();
            self.advance(now);
            let mut state = self.state();
            if self.number() != number {
                return Some(Err(Error::Order("the outcome of this launch was taken before")));
            }
            // This thread or the timer has moved the slot on last and left the outcome here.
            if let Some(outcome) = state.outcome.take() {
                self.number.store(0, Ordering::Release);
                return Some(outcome);
            }
            if let Some(paused) = state.paused() {
                return Some(Ok(paused));
            }
            if until.is_some_and(|until| now >= until) {
                return None;
            }
            if let Some(error) = Self::hopeless(&state, now) {
                return Some(Err(error));
            }
            if Self::is_hot(&state, now) {
                drop(state);
                std::hint::spin_loop();
                continue;
            }
            let mut rest = pause;
            if let Some(until) = until {
                rest = rest.min(until - now);
            }
            if let (Some(began), Some(timeout)) = (state.began, state.limits.and_then(|limits| limits.timeout)) {
                // Awake in time for the deadline.
                rest = rest.min((began + timeout).saturating_duration_since(now + HOT / 4).max(Duration::from_micros(1)));
            }
            pause = (pause * 2).min(PAUSE);
            let (state, _) = self.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner);
            drop(state);
        }
    }

    /// Why waiting on makes no sense, if it does not.
    pub(crate) fn overdue(&self, number: u32) -> Option<Error> {
        let state = self.state();
        if self.number() == number && state.outcome.is_none() { Self::hopeless(&state, Instant::now()) } else { None }
    }

    /// Whether waiting on makes no sense, or the launch is paused.
    pub(super) fn is_answered(&self, now: Instant) -> bool {
        let state = self.state();
        state.paused().is_some() || Self::hopeless(&state, now).is_some()
    }

    /// Whether waiting on makes no sense.
    pub(super) fn hopeless(state: &State, now: Instant) -> Option<Error> {
        if let Some((since, fault)) = &state.trouble
            && now.saturating_duration_since(*since) > TROUBLE
        {
            return Some(fault.clone().into());
        }
        if state.ended.is_some() {
            return None;
        }
        let (limits, subject) = (state.limits?, state.subject.as_ref()?);
        if let Some((told, _)) = state.told {
            let limit = state.raised? + limits.grace + if state.tier == Tier::Leave { Duration::ZERO } else { TRAP };
            let is_begun = state.began.is_some();
            return (is_begun && now > limit && (state.watchdog.is_none() || state.tier != Tier::Leave))
                .then(|| Error::Undrained { kernel: subject.kernel.to_string(), after: now - told })
                .or_else(|| (!is_begun && now > limit + limits.begin_within).then(|| Self::not_begun(subject, state, now)));
        }
        (state.began.is_none() && now > state.submitted + limits.begin_within).then(|| Self::not_begun(subject, state, now))
    }

    pub(super) fn not_begun(subject: &Subject, state: &State, now: Instant) -> Error {
        Error::NotBegun { kernel: subject.kernel.to_string(), after: now.saturating_duration_since(state.submitted) }
    }

    /// Whether the launch may end at any moment, so that a pause would be felt.
    pub(super) fn is_hot(state: &State, now: Instant) -> bool {
        let since = |moment: Instant| now.saturating_duration_since(moment);
        let near_deadline = state.began.zip(state.limits.and_then(|limits| limits.timeout)).is_some_and(|(began, timeout)| {
            let due = began + timeout;
            now + HOT >= due && since(due) < 20 * HOT
        });
        since(state.submitted) < HOT
            || near_deadline
            || state.ended.is_some_and(|ended| since(ended) < 5 * HOT)
            || state.told.is_some_and(|(told, _)| since(told) < 20 * HOT)
            || state.is_pausing().is_some_and(|asked| since(asked) < 20 * HOT)
    }

    /// Has a task woken when the outcome is known. False if it is known already.
    pub(crate) fn register(&self, number: u32, waker: &Waker) -> Result<bool, Error> {
        let mut state = self.state();
        if self.number() != number || state.outcome.is_some() || state.paused().is_some() {
            return Ok(false);
        }
        if !state.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            state.waker = Some(waker.clone());
        }
        if let Some(key) = state.timer {
            let next = Self::next_look(&state, Instant::now());
            Timer::of_process().map_err(Error::Environment)?.hasten(key, next);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pausable;
    use super::super::pause::{Pausing, Phase};
    use super::*;
    use crate::fault::DriverFault;
    use std::sync::Arc;

    const US: Duration = Duration::from_micros(1);
    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);

    /// A launch that was made at this moment, with a timeout of 10 ms, a grace of 3 ms and 40 ms to begin.
    fn launch(at: Instant, set: impl FnOnce(&mut State)) -> State {
        let limits = Limits { grace: MS * 3, begin_within: MS * 40, ..Limits::timeout(MS * 10) };
        let subject = Subject {
            kernel: "gemm".into(),
            sites: Arc::new([]),
            sources: Arc::new(crate::sources::NoSources),
            grid: [1; 3],
            block: [1; 3],
        };
        let mut state = State::new();
        (state.limits, state.subject) = (Some(limits), Some(subject));
        (state.launched, state.submitted, state.is_submitted) = (at, at, true);
        set(&mut state);
        state
    }

    fn limits(state: &mut State) -> &mut Limits {
        state.limits.as_mut().expect("it has limits")
    }

    fn pausing(phase: Phase) -> Pausing {
        let mut pausing = Pausing::new(Pausable { block: 0, blocks: 1 }, 0, None);
        pausing.phase = phase;
        pausing
    }

    fn fault() -> DriverFault {
        DriverFault { call: "cuEventQuery", code: 2, name: "CUDA_ERROR_OUT_OF_MEMORY".into() }
    }

    /// From its launch, 8 ms after which it is looked at, until the next look.
    #[track_caller]
    fn looks(expected: Duration, set: impl FnOnce(&mut State, Instant)) {
        let at = Instant::now() + S * 3600;
        let state = launch(at, |state| set(state, at));
        assert_eq!(LaunchSlot::next_look(&state, at + MS * 8).checked_duration_since(at), Some(expected));
    }

    #[test]
    fn a_launch_is_looked_at_when_something_may_have_come() {
        // A sixteenth of the time that has passed, where its end may come at any moment.
        let soon = US * 8500;
        looks(MS * 10, |_, _| {});
        looks(soon, |state, at| state.ended = Some(at));
        looks(soon, |state, at| state.trouble = Some((at, fault())));
        looks(soon, |state, at| state.pausing = Some(pausing(Phase::Asked(at))));
        looks(soon, |state, at| state.pausing = Some(pausing(Phase::Counting(at))));
        looks(soon, |state, _| state.waker = Some(Waker::noop().clone()));
        looks(soon, |state, _| limits(state).clock = Clock::Host);
        looks(soon, |state, _| state.pausing = Some(pausing(Phase::Runs)));
        // It has begun: when the timeout is over, and the device has missed it.
        looks(MS * 12, |state, at| (state.began, limits(state).clock) = (Some(at + MS), Clock::Host));
        looks(MS * 12, |state, at| state.began = Some(at + MS));
        looks(US * 8050, |state, at| (state.began, limits(state).timeout) = (Some(at), Some(MS * 6)));
        // No timeout: at the moment that it was given, or where no thread waits, hardly ever.
        looks(MS * 8 + LATER, |state, _| limits(state).timeout = None);
        looks(MS * 9, |state, at| (limits(state).timeout, limits(state).deadline) = (None, Some(at + MS * 9)));
        looks(MS * 9, |state, at| limits(state).deadline = Some(at + MS * 9));
        looks(MS * 10, |state, at| limits(state).deadline = Some(at + MS * 11));
        looks(MS * 8 + LATER, |state, _| (limits(state).timeout, limits(state).clock) = (None, Clock::Host));
        looks(soon, |state, _| limits(state).timeout = Some(MS));
        looks(MS * 8 + LATER, |state, _| state.limits = None);
        // A paused one rests until its moment comes.
        looks(MS * 8 + LATER, |state, _| state.pausing = Some(pausing(Phase::Paused(MS))));
        looks(S, |state, at| (state.pausing, limits(state).deadline) = (Some(pausing(Phase::Paused(MS))), Some(at + S)));
    }

    #[test]
    fn a_launch_that_was_told_to_stop_is_looked_at_within_its_grace_and_seldom_later() {
        let told = |state: &mut State, at: Instant| state.told = Some((at, Cause::Deadline));
        // Each millisecond, and when the grace is over.
        looks(MS * 9, |state, at| told(state, at + MS * 7));
        looks(US * 8500, |state, at| told(state, at + US * 5500));
        looks(US * 8500, |state, at| (state.told, state.raised) = (Some((at, Cause::Deadline)), Some(at + US * 5500)));
        looks(MS * 28, |state, at| told(state, at + MS * 5));
        looks(MS * 28, |state, at| told(state, at));
        let long = |after: Duration| {
            let at = Instant::now();
            let state = launch(at, |state| state.told = Some((at, Cause::Cancelled)));
            LaunchSlot::next_look(&state, at + MS * 3 + after) - (at + MS * 3 + after)
        };
        assert_eq!((long(MS * 640), long(S * 8), long(S * 100)), (MS * 40, MS * 500, S));
    }

    #[test]
    fn the_first_looks_are_close_together_and_later_ones_a_millisecond_apart() {
        let at = Instant::now();
        let state = launch(at, |state| state.waker = Some(Waker::noop().clone()));
        for (after, pause) in [(US, US * 20), (US * 320, US * 20), (US * 1600, US * 100), (MS * 16, MS), (S, MS)] {
            assert_eq!(LaunchSlot::next_look(&state, at + after), at + after + pause);
        }
    }

    /// Whether waiting is given up so long after the launch, and why.
    fn gives_up(after: Duration, set: impl FnOnce(&mut State, Instant)) -> Option<Error> {
        let at = Instant::now();
        let state = launch(at, |state| set(state, at));
        LaunchSlot::hopeless(&state, at + after)
    }

    #[test]
    fn waiting_makes_sense_until_a_launch_is_overdue() {
        let not_begun = |error: Option<Error>, wanted: Duration| matches!(error, Some(Error::NotBegun { after, .. }) if after == wanted);
        assert!(gives_up(MS * 40, |_, _| {}).is_none());
        assert!(not_begun(gives_up(MS * 41, |_, _| {}), MS * 41));
        assert!(not_begun(gives_up(MS * 46, |state, at| state.submitted = at + MS * 5), MS * 41));
        assert!(gives_up(MS * 45, |state, at| state.submitted = at + MS * 5).is_none());
        assert!(gives_up(S, |state, at| state.began = Some(at)).is_none());
        assert!(gives_up(S, |state, at| state.ended = Some(at)).is_none());
        let trouble = |state: &mut State, at: Instant| (state.trouble, state.began) = (Some((at, fault())), Some(at));
        assert!(gives_up(TROUBLE, trouble).is_none());
        assert!(gives_up(TROUBLE + US, trouble).is_some());
    }

    #[test]
    fn a_launch_that_was_told_to_stop_has_its_grace_and_a_trap_its_time() {
        // Told at 1 ms, its flag was raised at 2 ms: its grace of 3 ms counts from then.
        let told = |state: &mut State, at: Instant| {
            (state.told, state.raised, state.began) = (Some((at + MS, Cause::Deadline)), Some(at + MS * 2), Some(at));
        };
        assert!(gives_up(MS * 5, told).is_none());
        assert!(matches!(gives_up(MS * 6, told), Some(Error::Undrained { after, .. }) if after == MS * 5));
        let trapped = |state: &mut State, at: Instant| {
            told(state, at);
            state.tier = Tier::Watchdog;
        };
        assert!(gives_up(MS * 5 + TRAP, trapped).is_none());
        assert!(matches!(gives_up(MS * 6 + TRAP, trapped), Some(Error::Undrained { .. })));
        // One that has not begun has its time for that, too.
        let waits = |state: &mut State, at: Instant| {
            told(state, at);
            state.began = None;
        };
        assert!(gives_up(MS * 45, waits).is_none());
        assert!(matches!(gives_up(MS * 46, waits), Some(Error::NotBegun { after, .. }) if after == MS * 46));
        // No thread could tell it yet.
        assert!(gives_up(S, |state, at| (state.told, state.began) = (Some((at, Cause::Deadline)), Some(at))).is_none());
    }

    #[test]
    fn the_host_raises_a_flag_where_the_device_has_no_clock_or_missed_it() {
        let at = Instant::now();
        let (device, host) = (Limits::timeout(MS), Limits { clock: Clock::Host, ..Limits::timeout(MS) });
        let by_moment = |deadline: Duration| Limits { deadline: Some(at + deadline), ..device };
        for (limits, cause, after, wanted) in [
            (device, Cause::Deadline, Duration::ZERO, false),
            (device, Cause::Deadline, BACKUP.saturating_sub(US), false),
            (device, Cause::Deadline, BACKUP, true),
            (device, Cause::Cancelled, Duration::ZERO, true),
            (host, Cause::Deadline, Duration::ZERO, true),
            (by_moment(BACKUP * 2), Cause::Deadline, US, false),
            (by_moment(US), Cause::Deadline, US, true),
        ] {
            assert_eq!(is_ours_to_raise(&limits, (at, cause), at + after), wanted, "{limits:?} {cause:?} {after:?}");
        }
    }

    #[test]
    fn a_wait_does_not_sleep_around_a_moment_that_may_end_the_launch() {
        let is_hot = |after: Duration, set: &dyn Fn(&mut State, Instant)| {
            let at = Instant::now();
            let state = launch(at, |state| set(state, at));
            LaunchSlot::is_hot(&state, at + after)
        };
        let nothing: &dyn Fn(&mut State, Instant) = &|_, _| {};
        assert!(is_hot(US * 199, nothing) && !is_hot(HOT, nothing) && !is_hot(S, nothing));
        // Each with the first and the last moment.
        let timeout: &dyn Fn(&mut State, Instant) = &|state, at| state.began = Some(at + MS);
        let ended: &dyn Fn(&mut State, Instant) = &|state, at| state.ended = Some(at + MS);
        let told: &dyn Fn(&mut State, Instant) = &|state, at| state.told = Some((at + MS, Cause::Cancelled));
        let asked: &dyn Fn(&mut State, Instant) = &|state, at| state.pausing = Some(pausing(Phase::Asked(at + MS)));
        for (set, from, until) in [(timeout, US * 10_800, MS * 15), (ended, MS, MS * 2), (told, MS, MS * 5), (asked, MS, MS * 5)] {
            assert!(is_hot(from, set) && is_hot(until.saturating_sub(US), set) && !is_hot(until, set), "{from:?} {until:?}");
        }
        assert!(
            !is_hot(US * 10_799, timeout)
                && !is_hot(MS * 12, &|state, at| {
                    (state.began, limits(state).timeout) = (Some(at), None);
                })
        );
    }
}
