//! Times as messages write them, in milliseconds since 1970.

/// Errors of reading a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Neither form.
    #[error("write it like 2026-01-31T13:07:07.250Z, or 2026-01-31 13:07:07 in local time")]
    Form,
    /// No such day, hour, minute or second, or before 1970.
    #[error("no such time since 1970 exists")]
    Range,
}

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 1_440 * MINUTE_MS;

/// Reads `2026-01-31T13:07:07.25Z`, with an offset instead of `Z` (RFC 3339) or with neither: then the time is local, this many
/// minutes ahead of UTC. A blank may stand for the `T`. Parts of a millisecond are dropped.
///
/// # Errors
/// Anything else, and days that are not in the calendar.
pub fn read_time(text: &str, utc_offset_minutes: i32) -> Result<u64, TimeError> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Result<i64, TimeError> {
        let digits = bytes.get(from..to).ok_or(TimeError::Form)?;
        digits.iter().try_fold(0, |sum, byte| {
            let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0')).ok_or(TimeError::Form)?;
            Ok(sum * 10 + digit)
        })
    };
    let is = |at: usize, allowed: &[u8]| bytes.get(at).is_some_and(|byte| allowed.contains(byte));
    let shape = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
    if !shape {
        return Err(TimeError::Form);
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let rest = text.get(19..).ok_or(TimeError::Form)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        None => ("", rest),
        Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
    };
    if rest.starts_with('.') && fraction.is_empty() {
        return Err(TimeError::Form);
    }
    let digit = |position: usize| fraction.as_bytes().get(position).map_or(0, |byte| i64::from(byte - b'0'));
    let millis = digit(0) * 100 + digit(1) * 10 + digit(2);
    let offset = offset_minutes(zone)?.unwrap_or(i64::from(utc_offset_minutes));
    // A leap second is the first of the next minute.
    let in_range = day >= 1 && day <= days_in(year, month)? && hour < 24 && minute < 60 && second <= 60;
    if !in_range {
        return Err(TimeError::Range);
    }
    let clock = (hour * 60 + minute - offset) * MINUTE_MS + second * 1_000 + millis;
    u64::try_from(days_since_1970(year, month, day) * DAY_MS + clock).map_err(|_| TimeError::Range)
}

/// Minutes ahead of UTC that `Z`, `+02:00` or nothing says.
fn offset_minutes(zone: &str) -> Result<Option<i64>, TimeError> {
    let (sign, digits) = match zone.as_bytes() {
        [] => return Ok(None),
        [b'Z' | b'z'] => return Ok(Some(0)),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return Err(TimeError::Form),
    };
    let [a @ b'0'..=b'9', b @ b'0'..=b'9', b':', c @ b'0'..=b'5', d @ b'0'..=b'9'] = digits else {
        return Err(TimeError::Form);
    };
    let [a, b, c, d] = [a, b, c, d].map(|digit| i64::from(digit - b'0'));
    Ok(Some(sign * ((a * 10 + b) * 60 + c * 10 + d)))
}

fn days_in(year: i64, month: i64) -> Result<i64, TimeError> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Ok(31),
        4 | 6 | 9 | 11 => Ok(30),
        2 => Ok(if is_leap { 29 } else { 28 }),
        _ => Err(TimeError::Range),
    }
}

/// Days from 1970 to a day of the Gregorian calendar, counted in eras of 400 years that begin in March (Hinnant 2013,
/// `days_from_civil`).
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_a_zone() {
        let read = |text: &str| read_time(text, 120);
        assert_eq!(read("1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(read("2025-12-19T13:07:07Z"), Ok(1_766_149_627_000));
        assert_eq!(read("2025-12-19 15:07:07"), Ok(1_766_149_627_000));
        assert_eq!(read("2025-12-19T08:37:07.2504-04:30"), Ok(1_766_149_627_250));
        assert_eq!(read("2024-02-29T23:59:60z"), Ok(1_709_251_200_000));
        assert_eq!(read("2000-03-01t00:00:00.5Z"), Ok(951_868_800_500));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2025-12-19",
            "2025-12-19T13:07:07.Z",
            "2025-12-19T13:07:07+2",
            "2025-12-19T13:07:0é",
            "25-12-19T13:07:07Z",
        ] {
            assert_eq!(read_time(text, 0), Err(TimeError::Form), "{text}");
        }
        for text in [
            "2025-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "1969-12-31T23:59:59Z",
            "2025-00-10T00:00:00Z",
        ] {
            assert_eq!(read_time(text, 0), Err(TimeError::Range), "{text}");
        }
    }
}
