//! The device's clock in terms of the host's.
//!
//! Each time the host sees a time that the device has just written, it learns that the two clocks differ by at most so much; the smallest
//! difference seen is the nearest to the truth. The clocks drift, so an old difference is trusted less and less.

use std::time::{Duration, Instant};

/// How fast two clocks may part, in parts of a million.
const DRIFT: u64 = 50;

/// What is known of the difference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockMap {
    seen: Instant,
    device_ns: u64,
}

impl ClockMap {
    /// The host saw the device's time at `seen`, at some moment after the device wrote it.
    pub(crate) fn new(seen: Instant, device_ns: u64) -> Self {
        Self { seen, device_ns }
    }

    /// Another such pair, later than the first.
    pub(crate) fn note(&mut self, seen: Instant, device_ns: u64) {
        let Some(expected) = self.host_time(device_ns) else { return };
        let age = seen.saturating_duration_since(self.seen);
        let slack = Duration::from_nanos((age.as_nanos() as u64).saturating_mul(DRIFT) / 1_000_000);
        if seen <= expected + slack {
            *self = Self { seen, device_ns };
        }
    }

    /// When the device's clock showed this.
    pub(crate) fn host_time(&self, device_ns: u64) -> Option<Instant> {
        match device_ns.checked_sub(self.device_ns) {
            Some(later) => self.seen.checked_add(Duration::from_nanos(later)),
            None => self.seen.checked_sub(Duration::from_nanos(self.device_ns - device_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    #[test]
    fn the_promptest_sight_wins_and_a_late_one_changes_nothing() {
        let begin = Instant::now() + Duration::from_secs(10);
        let mut map = ClockMap::new(begin + 30 * US, 1_000_000);
        map.note(begin + 105 * US, 1_100_000);
        assert_eq!(map.host_time(1_000_000), Some(begin + 5 * US));
        map.note(begin + 400 * US, 1_200_000);
        assert_eq!(map.host_time(1_000_000), Some(begin + 5 * US));
        assert_eq!(map.host_time(1_300_000), Some(begin + 305 * US));
    }

    #[test]
    fn an_old_sight_gives_way_to_what_drift_explains() {
        let begin = Instant::now();
        let mut map = ClockMap::new(begin, 0);
        let late = Duration::from_secs(100);
        // After 100 s two clocks may have parted by 5 ms.
        map.note(begin + late + Duration::from_millis(4), late.as_nanos() as u64);
        assert_eq!(map.host_time(late.as_nanos() as u64), Some(begin + late + Duration::from_millis(4)));
    }
}
