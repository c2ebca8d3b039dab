//! When to retry, and how long to wait before.
//!
//! The contract with servers: UNAVAILABLE, ABORTED, RESOURCE_EXHAUSTED with a delay, and a lost connection are worth a
//! retry. Nothing else is.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::ClientError;

/// Shortest deadline of a try whose time is almost over, so that the server reports it.
const LIMIT_MIN: Duration = Duration::from_millis(1);

/// How often to try, and how long to wait between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Most tries of one call, including the first; at least 1.
    pub tries_max: u32,
    /// Pause after the first try; it doubles with each further try.
    pub pause_min: Duration,
    /// Longest pause that doubling leads to. A server may ask for a longer one.
    pub pause_max: Duration,
}

impl RetryPolicy {
    /// The documented policy: 5 tries, pauses of 100 ms to 5 s.
    pub const STANDARD: Self =
        Self { tries_max: 5, pause_min: Duration::from_millis(100), pause_max: Duration::from_secs(5) };
    /// One try.
    pub const NEVER: Self = Self { tries_max: 1, ..Self::STANDARD };
}

/// A random generator (SplitMix64), so that callers that failed together do not retry together.
#[derive(Clone, Debug)]
pub struct Jitter {
    state: u64,
}

impl Jitter {
    /// The sequence of this seed. Use a different seed for every process and task.
    pub const fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any 64 bits. Steele, Lea and Flood 2014, figure 17.
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Half the duration, and a random part of the other half.
    fn shorten(&mut self, pause: Duration) -> Duration {
        let half = pause / 2;
        let share = u32::try_from(self.bits() >> 32).expect("32 bits are left");
        half + half.mul_f64(f64::from(share) / f64::from(u32::MAX))
    }
}

/// The tries of one call.
#[derive(Clone, Debug)]
pub struct Retries {
    policy: RetryPolicy,
    jitter: Jitter,
    tries: u32,
}

impl Retries {
    /// No try has been made.
    pub const fn new(policy: RetryPolicy, jitter: Jitter) -> Self {
        Self { policy, jitter, tries: 0 }
    }

    /// Counts a failed try and returns the wait before the next one. `None` if there is no next one: the error is
    /// permanent, the tries are used up, or the wait would outlast the time `left`.
    ///
    /// The wait is between half and all of a pause that doubles with each try, and at least what the server asked for.
    pub fn pause_after(&mut self, error: &ClientError, left: Option<Duration>) -> Option<Duration> {
        self.tries += 1;
        if !error.may_be_retried() || self.tries >= self.policy.tries_max {
            return None;
        }
        let doubled = self.policy.pause_min.saturating_mul(1 << (self.tries - 1).min(30));
        let pause = self.jitter.shorten(doubled.min(self.policy.pause_max));
        let pause = error.retry_after().map_or(pause, |asked| asked.saturating_add(pause / 8).max(pause));
        left.is_none_or(|left| pause < left).then_some(pause)
    }

    /// The last try made progress: counting starts again.
    pub const fn forget(&mut self) {
        self.tries = 0;
    }

    /// Calls until success or until a retry is pointless. Each call receives the rest of `deadline`.
    ///
    /// # Errors
    /// The error of the last try.
    pub async fn run<T, F>(&mut self, deadline: Option<Duration>, mut call: F) -> Result<T, ClientError>
    where
        F: AsyncFnMut(Option<Duration>) -> Result<T, ClientError>,
    {
        let end = deadline.and_then(|limit| Instant::now().checked_add(limit));
        let left = || end.map(|end| end.saturating_duration_since(Instant::now()));
        self.forget();
        loop {
            match call(left().map(|left| left.max(LIMIT_MIN))).await {
                Ok(answer) => return Ok(answer),
                Err(error) => match self.pause_after(&error, left()) {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return Err(error),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::ErrorClass;
    use crate::error::Refusal;

    fn busy(retry_after: Option<Duration>) -> ClientError {
        ClientError::Refused(Box::new(Refusal {
            class: ErrorClass::Busy,
            message: "queue full".to_owned(),
            reason: None,
            violations: Vec::new(),
            retry_after,
            known_for: None,
            may_be_retried: true,
        }))
    }

    fn wrong() -> ClientError {
        ClientError::Protocol { what: "nothing helps" }
    }

    fn retries(seed: u64) -> Retries {
        Retries::new(RetryPolicy::STANDARD, Jitter::seeded(seed))
    }

    #[test]
    fn pauses_double_within_their_half_and_end_with_the_tries() {
        for seed in 0..100 {
            let mut retries = retries(seed);
            for base_ms in [100, 200, 400, 800] {
                let pause = retries.pause_after(&busy(None), None).unwrap();
                assert!((base_ms / 2..=base_ms).contains(&pause.as_millis()), "{pause:?} of {base_ms} ms");
            }
            assert_eq!(retries.pause_after(&busy(None), None), None, "the fifth try was the last");
        }
        let mut patient = Retries::new(RetryPolicy { tries_max: 100, ..RetryPolicy::STANDARD }, Jitter::seeded(1));
        let longest = (0..99).filter_map(|_| patient.pause_after(&busy(None), None)).max().unwrap();
        assert!(longest <= RetryPolicy::STANDARD.pause_max && longest > Duration::from_secs(4), "{longest:?}");
    }

    #[test]
    fn the_server_is_given_the_time_it_asks_for() {
        let asked = Duration::from_secs(7);
        assert!(retries(3).pause_after(&busy(Some(asked)), None).unwrap() >= asked);
        assert_eq!(retries(3).pause_after(&busy(Some(asked)), Some(asked)), None, "it would outlast the deadline");
        assert_eq!(retries(3).pause_after(&wrong(), None), None);
    }

    #[test]
    fn a_seed_gives_one_sequence() {
        let pauses = |seed| (0..4).map(|_| retries(seed).pause_after(&busy(None), None)).collect::<Vec<_>>();
        assert_eq!(pauses(1), pauses(1));
        assert_ne!(pauses(1), pauses(2));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_repeated_within_the_deadline() {
        let (started, mut calls) = (Instant::now(), 0);
        let third = retries(1)
            .run(None, async |_| {
                calls += 1;
                if calls < 3 { Err(busy(None)) } else { Ok(calls) }
            })
            .await;
        assert_eq!(third.unwrap(), 3);
        assert!(started.elapsed() >= Duration::from_millis(150));

        let (started, limit) = (Instant::now(), Duration::from_millis(250));
        let mut limits = Vec::new();
        let never: Result<(), _> = retries(1)
            .run(Some(limit), async |left| {
                limits.push(left.unwrap());
                Err(busy(None))
            })
            .await;
        assert!(never.is_err() && started.elapsed() < limit);
        assert!(limits.len() >= 2 && limits.is_sorted_by(|before, after| before > after), "{limits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_will_stay_wrong_is_tried_once() {
        let mut calls = 0;
        let outcome: Result<(), _> = retries(1)
            .run(None, async |_| {
                calls += 1;
                Err(wrong())
            })
            .await;
        assert!(outcome.is_err());
        assert_eq!(calls, 1);
    }
}
