//! Parts of a whole, as people write them.

/// Reads `1/2`, `0.5` or `50%` exactly, as numerator and denominator, which need not be in lowest terms.
///
/// `None` if the text is none of these, or a number of it exceeds 64 bits. A whole number alone is none: `2` may be a
/// count. O(length).
pub fn read_part(text: &str) -> Option<(u64, u64)> {
    if let Some((numerator, denominator)) = text.split_once('/') {
        return Some((digits(numerator)?, digits(denominator)?));
    }
    let (number, hundred) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100),
        None if text.contains('.') => (text, 1),
        None => return None,
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let scale = 10_u64.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let numerator = digits(whole)?.checked_mul(scale)?.checked_add(digits(decimals)?)?;
    Some((numerator, scale.checked_mul(hundred)?))
}

/// Plain decimal digits, at least one.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_of_one_part_are_equal() {
        for text in ["1/2", "2/4", "0.5", "0.50", "50%", "50.0%"] {
            let (numerator, denominator) = read_part(text).unwrap();
            assert_eq!(2 * numerator, denominator, "{text}");
        }
        assert_eq!((read_part("0.25"), read_part("12.5%")), (Some((25, 100)), Some((125, 1000))));
        assert_eq!(
            (read_part("0%"), read_part("0.0"), read_part("1.0")),
            (Some((0, 1000)), Some((0, 10)), Some((10, 10)))
        );
    }

    #[test]
    fn what_is_no_part_is_none() {
        for text in [
            "",
            "1",
            "%",
            ".",
            ".5",
            "5.",
            "-0.5",
            "+0.5",
            "1/",
            "/2",
            "1/2/3",
            "1/2%",
            "0.5.5",
            "0,5",
            "0x1/2",
            "1e-1",
            " 0.5",
            "0.00000000000000000000001",
            "99999999999999999999%",
            "18446744073709551616/1",
        ] {
            assert_eq!(read_part(text), None, "{text}");
        }
    }
}
