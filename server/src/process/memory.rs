//! Gives back the memory that a burst of large requests leaves free.

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use crate::metrics::resident_bytes;

/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Growth below this size is not worth a walk over the heap.
const SMALL_BYTES: u64 = 4 << 20;
/// After this many looks memory is given back in any case: what was in use the last time may be free, and looks the same.
const MOST_LOOKS: u32 = 4;

/// Looks again and again, for as long as the process lives.
pub(super) async fn give_back_what_is_free() {
    let mut looks = Looks::default();
    let mut ticks = interval(LOOK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Not known: the system has no such file, and another allocator.
        let Some(resident) = resident_bytes() else { return };
        if !looks.is_time(resident) {
            continue;
        }
        let _ended = spawn_blocking(canopy_allocator::give_back).await;
        let left = resident_bytes().unwrap_or(resident);
        looks.gave_back(left);
        tracing::debug!(before = resident, after = left, "free memory was given back");
    }
}

/// The resident memory at the looks before.
#[derive(Debug, Default)]
struct Looks {
    last: u64,
    /// The least since the last time that memory was given back.
    least: u64,
    /// Looks since then.
    count: u32,
}

impl Looks {
    /// Whether memory has grown by more than a little since the last time and no longer grows, or that was long ago.
    fn is_time(&mut self, resident: u64) -> bool {
        let grows = resident > self.last.saturating_add(SMALL_BYTES);
        self.last = resident;
        self.least = self.least.min(resident);
        self.count += 1;
        let burst_is_over = !grows && resident > self.least.saturating_add(SMALL_BYTES.max(self.least / 32));
        burst_is_over || self.count >= MOST_LOOKS
    }

    fn gave_back(&mut self, left: u64) {
        *self = Self { last: left, least: left, count: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn free_memory_goes_back_once_it_no_longer_grows() {
        let mut looks = Looks::default();
        assert!(!looks.is_time(50 * MB), "a start is a burst, too");
        assert!(looks.is_time(51 * MB));
        looks.gave_back(45 * MB);
        for growing in [46, 300, 700] {
            assert!(!looks.is_time(growing * MB), "{growing}");
        }
        assert!(looks.is_time(400 * MB));
        // Less is in use, without a walk; then more again.
        looks.gave_back(390 * MB);
        for other in [60, 66] {
            assert!(!looks.is_time(other * MB), "{other}");
        }
        assert!(looks.is_time(66 * MB));
    }

    #[test]
    fn what_was_in_use_the_last_time_goes_back_later() {
        let mut looks = Looks::default();
        looks.gave_back(400 * MB);
        let walks = (0..12).filter(|_| {
            let is_time = looks.is_time(400 * MB);
            if is_time {
                looks.gave_back(400 * MB);
            }
            is_time
        });
        assert_eq!(walks.count(), 3);
    }
}
