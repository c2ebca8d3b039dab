//! How fast a connection may send: its plan's rate, with a short memory of what it could not use.

/// A token bucket in bytes and nanoseconds.
///
/// Without it connections of unequal loads that meet at a port share it equally: the light ones run ahead, links behind
/// them starve at first and are overloaded later. A connection that came late may catch up by `burst` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    bytes_per_sec: u64,
    /// In billionths of a byte.
    burst: u128,
    tokens: u128,
    updated_ns: u64,
}

const NANOS: u128 = 1_000_000_000;

impl Pace {
    /// Bytes of one full frame on the lab's links: sent at once while that much waits.
    pub const QUANTUM_BYTES: usize = 8948;

    /// A pace of this many bytes per second, 0 for none, that remembers `memory_ns` of it, and two quanta at least.
    pub fn new(bytes_per_sec: u64, memory_ns: u64) -> Self {
        let burst = (u128::from(bytes_per_sec) * u128::from(memory_ns)).max(2 * Self::QUANTUM_BYTES as u128 * NANOS);
        Self { bytes_per_sec, burst, tokens: 0, updated_ns: 0 }
    }

    /// Begins anew, with one quantum to send.
    pub fn start(&mut self, now_ns: u64) {
        self.tokens = Self::QUANTUM_BYTES as u128 * NANOS;
        self.updated_ns = now_ns;
    }

    /// How many of `waiting` bytes may be sent now: whole quanta, or all of what waits. Frames that are not full would
    /// take more of a link.
    pub fn allowed(&mut self, now_ns: u64, waiting: usize) -> usize {
        if self.bytes_per_sec == 0 {
            return waiting;
        }
        let passed = now_ns.saturating_sub(self.updated_ns);
        self.updated_ns = self.updated_ns.max(now_ns);
        self.tokens = self.burst.min(self.tokens + u128::from(passed) * u128::from(self.bytes_per_sec));
        let bytes = usize::try_from(self.tokens / NANOS).unwrap_or(usize::MAX);
        if bytes >= waiting { waiting } else { bytes - bytes % Self::QUANTUM_BYTES }
    }

    /// Counts bytes that were sent, at most those that were allowed.
    pub fn sent(&mut self, bytes: usize) {
        self.tokens = self.tokens.saturating_sub(bytes as u128 * NANOS);
    }

    /// Nanoseconds until a quantum of `waiting` bytes may be sent, counted from the last call of
    /// [`allowed`](Self::allowed).
    pub fn wait_ns(&self, waiting: usize) -> u64 {
        if self.bytes_per_sec == 0 {
            return 0;
        }
        let missing = (waiting.min(Self::QUANTUM_BYTES) as u128 * NANOS).saturating_sub(self.tokens);
        u64::try_from(missing.div_ceil(self.bytes_per_sec.into())).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: usize = Pace::QUANTUM_BYTES;

    /// Bytes that leave until `end_ns` if there is always something to send.
    fn greedy(pace: &mut Pace, start_ns: u64, end_ns: u64) -> u64 {
        let (mut now, mut sent) = (start_ns, 0);
        while now < end_ns {
            let bytes = pace.allowed(now, 10 * FRAME);
            pace.sent(bytes);
            sent += bytes as u64;
            now += pace.wait_ns(10 * FRAME).max(1);
        }
        sent
    }

    #[test]
    fn a_greedy_connection_keeps_its_pace() {
        let mut pace = Pace::new(1_000_000, 20_000_000);
        pace.start(0);
        let sent = greedy(&mut pace, 0, 1_000_000_000);
        assert!((991_000..=1_009_000).contains(&sent), "{sent}");
    }

    #[test]
    fn who_was_late_catches_up_a_little_and_no_more() {
        let mut pace = Pace::new(1_000_000, 20_000_000);
        pace.start(0);
        // Nothing to send for half a second: 20 ms are remembered.
        let sent = greedy(&mut pace, 500_000_000, 1_000_000_000);
        assert!((511_000..=529_000).contains(&sent), "{sent}");
    }

    #[test]
    fn the_last_bytes_need_no_whole_quantum_and_no_pace_means_no_limit() {
        let mut pace = Pace::new(1_000, 1_000);
        pace.start(7);
        assert_eq!(pace.allowed(7, FRAME), FRAME);
        pace.sent(FRAME);
        assert_eq!(pace.allowed(7, 10), 0);
        assert_eq!(pace.wait_ns(10), 10_000_000);
        assert_eq!(pace.allowed(10_000_007, 10), 10);
        let mut free = Pace::new(0, 1);
        assert_eq!((free.allowed(0, 1 << 20), free.wait_ns(5)), (1 << 20, 0));
    }

    #[test]
    fn frames_are_full_as_long_as_there_is_enough() {
        let mut pace = Pace::new(1_000_000_000, 20_000_000);
        pace.start(0);
        assert_eq!(pace.allowed(0, 3 * FRAME), FRAME);
        assert_eq!(pace.allowed(13_000, 3 * FRAME), 2 * FRAME);
        assert_eq!(pace.allowed(13_000, 2 * FRAME + 100), 2 * FRAME + 100);
    }
}
