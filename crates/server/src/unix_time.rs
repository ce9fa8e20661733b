//! The system's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time since 1970 UTC; zero if the clock shows an earlier one.
pub(crate) fn unix_time() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}
