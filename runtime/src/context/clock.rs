//! The device's clock in terms of the host's.
//!
//! Each time that the device has written lies between two moments of the host's: when the device can't have written it yet, and when the host saw it.
//! The earliest sight is the nearest to the truth. The clocks drift, or one of them is set, so an old sight is given up when a new one
//! contradicts it.

use std::time::{Duration, Instant};

/// How fast two clocks may part, in parts of a million, as far as that alone is no contradiction.
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

    /// The device wrote its time at some moment between `from` and `seen`.
    pub(crate) fn note(&mut self, from: Instant, seen: Instant, device_ns: u64) {
        let expected = self.host_time(device_ns);
        let age = seen.saturating_duration_since(self.seen);
        let slack = Duration::from_nanos((age.as_nanos() as u64).saturating_mul(DRIFT) / 1_000_000);
        // Out of the span what is known is wrong; within it, the earlier sight is the better one, and drift explains a later one.
        if expected.is_none_or(|expected| from > expected || seen <= expected + slack) {
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
        map.note(begin + 90 * US, begin + 105 * US, 1_100_000);
        assert_eq!(map.host_time(1_000_000), Some(begin + 5 * US));
        map.note(begin + 150 * US, begin + 400 * US, 1_200_000);
        assert_eq!(map.host_time(1_000_000), Some(begin + 5 * US));
        assert_eq!(map.host_time(1_300_000), Some(begin + 305 * US));
    }

    #[test]
    fn an_old_sight_gives_way_to_what_drift_explains() {
        let begin = Instant::now();
        let mut map = ClockMap::new(begin, 0);
        let late = Duration::from_secs(100);
        // After 100 s two clocks may have parted by 5 ms.
        map.note(begin + late, begin + late + Duration::from_millis(4), late.as_nanos() as u64);
        assert_eq!(map.host_time(late.as_nanos() as u64), Some(begin + late + Duration::from_millis(4)));
    }

    /// Errors of a map that hears of a launch each second. Its kernel begins as soon as it was armed, and is seen 30 us
    /// later. The host's clock runs `ppm` faster than the device's.
    fn errors(ppm: u64, seconds: u64) -> Vec<Duration> {
        let origin = Instant::now();
        let mut map = ClockMap::new(origin, 0);
        let launch = |second: u64| {
            let device = second * 1_000_000_000;
            let truth = origin + Duration::from_nanos(device + device / 1_000_000 * ppm);
            map.note(truth, truth + 30 * US, device);
            let told = map.host_time(device).expect("no overflow");
            truth.saturating_duration_since(told).max(told.saturating_duration_since(truth))
        };
        (1..=seconds).map(launch).collect()
    }

    #[test]
    fn a_host_that_drifts_faster_than_expected_is_followed() {
        for ppm in [0, 60, 500] {
            let worst = errors(ppm, 3600).into_iter().max().expect("some launches");
            assert!(worst <= 60 * US, "{ppm} ppm: {worst:?}");
        }
    }
}
