//! How long a call may take.

use std::time::Duration;

use tonic::codegen::http::HeaderMap;
use tonic::metadata::MetadataMap;

/// What the server allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeadlinePolicy {
    /// For callers that state none.
    pub(crate) default: Duration,
    /// For everybody.
    pub(crate) max: Duration,
}

/// Longer than any call: a hundred years.
const FAR: Duration = Duration::from_secs(100 * 366 * 86_400);

/// The deadline of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    /// What was asked for, or the default; at most the maximum.
    pub(crate) stated: Duration,
    /// When work must end so that the answer arrives in time.
    pub(crate) work: Duration,
    /// Whether more was asked for than the server allows.
    pub(crate) clipped: bool,
}

impl DeadlinePolicy {
    /// The deadline of a call with these headers.
    ///
    /// The answer needs a share of the time to travel: a tenth, at least 50 ms, at most half.
    pub(crate) fn apply(&self, headers: &MetadataMap) -> Deadline {
        let asked = stated(headers.as_ref());
        let wanted = asked.unwrap_or(self.default);
        let stated = wanted.min(self.max);
        let share = (stated / 10).max(Duration::from_millis(50)).min(stated / 2);
        // Only the caller's own clock is stricter than ours.
        let work = if asked.is_some_and(|asked| asked <= self.max) { stated - share } else { stated };
        Deadline { stated, work, clipped: asked.is_some_and(|asked| asked > self.max) }
    }

    /// When a call with these headers ends at the latest: at its own deadline, or at the greatest one. Uploads that
    /// take longer than the default are not cut off.
    pub(crate) fn limit(&self, headers: &HeaderMap) -> Duration {
        stated(headers).map_or(self.max, |asked| asked.min(self.max))
    }

    /// When a conversation ends at the latest: at its own deadline, if it states one.
    pub(crate) fn of_conversation(headers: &HeaderMap) -> Duration {
        stated(headers).unwrap_or(FAR)
    }
}

/// The deadline that the headers state.
fn stated(headers: &HeaderMap) -> Option<Duration> {
    headers.get("grpc-timeout").and_then(|value| parse_timeout(value.to_str().ok()?))
}

/// Reads `grpc-timeout`: at most 8 digits and a unit of H, M, S, m, u or n.
fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: DeadlinePolicy = DeadlinePolicy { default: Duration::from_secs(30), max: Duration::from_secs(600) };

    fn deadline(timeout: Option<&'static str>) -> Deadline {
        let mut headers = MetadataMap::new();
        if let Some(timeout) = timeout {
            headers.insert("grpc-timeout", timeout.parse().unwrap());
        }
        POLICY.apply(&headers)
    }

    #[test]
    fn every_unit_is_read() {
        let units = [("1H", 3_600_000_000_000), ("2M", 120_000_000_000), ("3S", 3_000_000_000), ("4m", 4_000_000)];
        for (text, nanos) in
            units.into_iter().chain([("5u", 5_000), ("6n", 6), ("99999999H", 359_999_996_400_000_000_000)])
        {
            assert_eq!(parse_timeout(text).unwrap().as_nanos(), nanos, "{text}");
        }
    }

    #[test]
    fn what_is_no_timeout_is_as_good_as_none() {
        for text in ["", "S", "1", "1s", "-1S", "123456789S", "1.5S", "ä"] {
            assert_eq!(parse_timeout(text), None, "{text}");
        }
        assert_eq!(deadline(Some("soon")), deadline(None));
    }

    #[test]
    fn a_tenth_but_at_least_50_ms_and_at_most_half_is_kept_for_the_answer() {
        for (timeout, work_ms) in [("10S", 9_000), ("200m", 150), ("60m", 30), ("1m", 0)] {
            assert_eq!(deadline(Some(timeout)).work.as_millis(), work_ms, "{timeout}");
        }
    }

    #[test]
    fn no_deadline_means_the_default_and_too_much_is_clipped() {
        let default = Deadline { stated: POLICY.default, work: POLICY.default, clipped: false };
        assert_eq!(deadline(None), default);
        let clipped = Deadline { stated: POLICY.max, work: POLICY.max, clipped: true };
        assert_eq!(deadline(Some("2H")), clipped);
    }
}
