//! Watching a launch in flight: when its time is up, when to look again, when waiting makes no sense any more.

use super::{LaunchSlot, State, Subject};
use crate::cause::{Cause, Tier};
use crate::error::Error;
use crate::limits::Clock;
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

impl LaunchSlot {
    /// The launch is in flight: is its time up, or its grace?
    pub(super) fn watch(&self, state: &mut State, now: Instant) -> Option<Result<Outcome, Error>> {
        let (limits, context) = (state.limits?, state.context.clone()?);
        if state.began.is_none() {
            let start = self.start_ns();
            let by_event = limits.clock == Clock::Host && state.is_submitted && self.begin.is_reached().unwrap_or(false);
            if start != 0 {
                context.note_clock(state.launched, now, start);
            }
            if start != 0 || by_event {
                let began = if start == 0 { now } else { context.host_time(start).unwrap_or(now) };
                // The next part of a paused launch may have been made since this look began.
                state.began = Some(began.clamp(state.launched.min(now), now));
            }
        }
        let due = [state.began.zip(limits.timeout).map(|(began, timeout)| began + timeout), limits.deadline].into_iter().flatten().min();
        if let Some(due) = due.filter(|due| *due <= now) {
            state.told.get_or_insert((due, Cause::Deadline));
        }
        let (told, cause) = state.told?;
        // The device's own clock comes first, where it is armed.
        let own = limits.clock == Clock::Device && limits.deadline.is_none_or(|deadline| deadline > now);
        if state.raised.is_none() && (cause == Cause::Cancelled || !own || now >= told + BACKUP) {
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
        let soon = now + (now - state.launched).div_f32(16.0).clamp(Duration::from_micros(20), Duration::from_millis(1));
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
            let seldom = now.saturating_duration_since(grace).div_f32(16.0).clamp(Duration::from_millis(20), Duration::from_secs(1));
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
