//! Rates and times as SimGrid writes them, exactly: `25GBps`, `1Gbps`, `5.9904E-5` seconds.
//!
//! Source: the comments of `simgrid.dtd` of SimGrid 3.

use canopy_topology::{Capacity, Latency, shorten};

/// Prefixes of units of rates.
const PREFIXES: [(&str, u128); 13] = [
    ("", 1),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
];

/// Units of times, in picoseconds.
const TIMES: [(&str, u128); 10] = [
    ("", 1_000_000_000_000),
    ("w", 604_800_000_000_000_000),
    ("d", 86_400_000_000_000_000),
    ("h", 3_600_000_000_000_000),
    ("m", 60_000_000_000_000),
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
];

const PICOS_PER_NANO: u128 = 1_000;

/// Longest text of a number; the longest sensible one has some 25 characters.
const TEXT_MAX: usize = 64;

/// A rate; without a unit, it is in bytes per second. The error says what to write.
pub(super) fn rate(text: &str) -> Result<Capacity, String> {
    let shown = shorten(text);
    let unreadable = || format!("`{shown}` is no bandwidth; write a number and a unit such as 25GBps or 200Gbps");
    let (number, unit) = Number::read(text).ok_or_else(unreadable)?;
    let (prefix, bits) = match (unit.strip_suffix("Bps"), unit.strip_suffix("bps")) {
        (Some(prefix), _) => (prefix, 1),
        (None, Some(prefix)) => (prefix, 8),
        (None, None) if unit.is_empty() => ("", 1),
        (None, None) => return Err(unreadable()),
    };
    let &(_, size) = PREFIXES.iter().find(|(name, _)| *name == prefix).ok_or_else(unreadable)?;
    let (whole, is_exact) = number.times(size, bits).ok_or_else(unreadable)?;
    if !is_exact {
        return Err(format!("`{shown}` is no whole number of bytes per second; round it"));
    }
    let whole = u64::try_from(whole).map_err(|_| format!("`{shown}` is over 18446744073709551615 bytes per second"))?;
    Capacity::from_bytes_per_sec(whole).ok_or_else(|| format!("`{shown}` is zero; leave out links that carry nothing"))
}

/// A time in whole nanoseconds, rounded down, and whether that is exact; without a unit, it is in seconds.
pub(super) fn latency(text: &str) -> Result<(Latency, bool), String> {
    let shown = shorten(text);
    let unreadable = || format!("`{shown}` is no latency; write a number and a unit such as 1.5us");
    let (number, unit) = Number::read(text).ok_or_else(unreadable)?;
    let &(_, size) = TIMES.iter().find(|(name, _)| *name == unit).ok_or_else(unreadable)?;
    let (whole, is_exact) = number.times(size, PICOS_PER_NANO).ok_or_else(unreadable)?;
    let nanos = u64::try_from(whole).map_err(|_| format!("`{shown}` is over 18446744073709551615 nanoseconds"))?;
    Ok((Latency::from_nanos(nanos), is_exact))
}

/// `mantissa · 10^exponent`.
struct Number {
    mantissa: u128,
    exponent: i32,
}

impl Number {
    /// A number without sign, and the rest of the text.
    fn read(text: &str) -> Option<(Self, &str)> {
        let text = text.trim();
        if text.len() > TEXT_MAX {
            return None;
        }
        let (whole, rest) = digits(text);
        let (decimals, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
        if whole.is_empty() && decimals.is_empty() {
            return None;
        }
        let decimals = decimals.trim_end_matches('0');
        let mut mantissa = 0_u128;
        for digit in whole.bytes().chain(decimals.bytes()) {
            mantissa = mantissa.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
        }
        let (power, rest) = power_of_ten(rest)?;
        Some((Self { mantissa, exponent: power - i32::try_from(decimals.len()).ok()? }, rest.trim_start()))
    }

    /// The number times a fraction, rounded down, and whether that is exact; `None` if it is too large.
    fn times(&self, numerator: u128, denominator: u128) -> Option<(u128, bool)> {
        let scaled = self.mantissa.checked_mul(numerator)?;
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        if scaled == 0 {
            return Some((0, true));
        }
        if self.exponent >= 0 {
            let scaled = scaled.checked_mul(power?)?;
            return Some((scaled / denominator, scaled.is_multiple_of(denominator)));
        }
        // What no `u128` holds is larger than any that it divides.
        let Some(divisor) = power.and_then(|power| power.checked_mul(denominator)) else { return Some((0, false)) };
        Some((scaled / divisor, scaled.is_multiple_of(divisor)))
    }
}

/// The digits at the start of a text, and what follows.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The exponent at the start of a text, and what follows. An `E` without digits begins a unit.
fn power_of_ten(text: &str) -> Option<(i32, &str)> {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return Some((0, text)) };
    let (sign, rest) = match rest.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, rest.strip_prefix('+').unwrap_or(rest)),
    };
    let (power, rest) = digits(rest);
    if power.is_empty() {
        return Some((0, text));
    }
    let power: i32 = power.parse().ok().filter(|power| *power <= 100)?;
    Some((sign * power, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_exact() {
        for (text, bytes) in [
            ("125MBps", 125_000_000),
            ("1Gbps", 125_000_000),
            ("1.25E9Bps", 1_250_000_000),
            ("41.279125MBps", 41_279_125),
            ("41279125", 41_279_125),
            ("1KiBps", 1_024),
            ("8Kibps", 1_024),
            ("2EBps", 2_000_000_000_000_000_000),
            ("10 kBps", 10_000),
            (".5GBps", 500_000_000),
        ] {
            assert_eq!(rate(text).map(Capacity::bytes_per_sec), Ok(bytes), "{text}");
        }
        for text in
            ["", "fast", "-1GBps", "1KBps", "1gbps", "1GB", "0Bps", "1.5Bps", "1bps", "20EBps", "1E101Bps", "inf"]
        {
            assert!(rate(text).is_err(), "{text}");
        }
        assert!(rate(&"1".repeat(65)).is_err() && rate(&"1".repeat(40)).is_err());
    }

    #[test]
    fn times_are_rounded_down_to_nanoseconds() {
        for (text, nanos, is_exact) in [
            ("50us", 50_000, true),
            ("5.9904E-5", 59_904, true),
            ("0", 0, true),
            ("1.5ns", 1, false),
            ("900ps", 0, false),
            ("1e-99s", 0, false),
            ("0e-99s", 0, true),
            ("1m", 60_000_000_000, true),
            ("2e+1ms", 20_000_000, true),
        ] {
            assert_eq!(latency(text), Ok((Latency::from_nanos(nanos), is_exact)), "{text}");
        }
        for text in ["", "soon", "-1us", "1y", "1e40", "99999w"] {
            assert!(latency(text).is_err(), "{text}");
        }
    }
}
