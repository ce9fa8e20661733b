//! The system's clock.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time since 1970 UTC; zero if the clock shows an earlier one.
pub(crate) fn unix_time() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

/// The system's clock, in microseconds since 1970.
pub(crate) fn unix_us() -> i64 {
    unix_time().as_micros() as i64
}

/// After this time the system's clock is read again. The system changes its rate by at most 500
/// parts in a million (adjtimex(2)), so the computed time differs by half a microsecond at most.
const REREAD: Duration = Duration::from_millis(1);

/// Computes the system's time from an [`Instant`], which its user has read already: on a busy
/// worker statements follow one another so closely that most need no look at a second clock.
pub(crate) struct UnixClock {
    /// Both clocks, read together: the time, and the microseconds since 1970 at that time.
    read: Cell<(Instant, i64)>,
}

impl UnixClock {
    pub fn new() -> UnixClock {
        UnixClock {
            read: Cell::new((Instant::now(), unix_us())),
        }
    }

    /// The microseconds from 1970 to `now`, which is a recent time.
    #[inline]
    pub fn at(&self, now: Instant) -> i64 {
        let (read, us) = self.read.get();
        match now.checked_duration_since(read) {
            Some(since) if since < REREAD => us + i64::from(since.subsec_micros()),
            _ => self.read_again(now),
        }
    }

    #[cold]
    fn read_again(&self, now: Instant) -> i64 {
        let (read, us) = (Instant::now(), unix_us());
        self.read.set((read, us));
        us - read.saturating_duration_since(now).as_micros() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_a_millisecond_the_time_is_computed() {
        let clock = UnixClock::new();
        let (read, _) = clock.read.get();
        clock.read.set((read, 5_000_000));
        assert_eq!(clock.at(read), 5_000_000);
        assert_eq!(clock.at(read + Duration::from_micros(999)), 5_000_999);
    }

    #[test]
    fn after_a_millisecond_the_clock_is_read_again() {
        let clock = UnixClock::new();
        let (read, _) = clock.read.get();
        clock.read.set((read, 5_000_000));
        std::thread::sleep(Duration::from_millis(2));
        let before = unix_us();
        let at = clock.at(Instant::now());
        assert!((before..=unix_us()).contains(&at), "{before} {at}");
    }

    #[test]
    fn a_time_before_the_last_reading_is_right_too() {
        let clock = UnixClock::new();
        let (earlier, us) = clock.read.get();
        std::thread::sleep(Duration::from_millis(3));
        let _ = clock.at(Instant::now());
        let at = clock.at(earlier);
        assert!((us - 100..=us + 100_000).contains(&at), "{us} {at}");
    }
}
