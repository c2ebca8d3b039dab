//! Fractions of requests.

use canopy_proto::v1;
use canopy_topology::Ratio;

use crate::fraction::{Unread, read, read_small};
use crate::refused::RequestError;

/// Reads a fraction of a request.
///
/// # Errors
/// The text is not a fraction, or the float is another number.
pub fn fraction_read(field: &'static str, stated: &v1::Fraction) -> Result<Ratio, RequestError> {
    read(stated).map_err(|why| refused(field, stated, why))
}

/// The same in numbers of 64 bits.
///
/// # Errors
/// The text is not a fraction, or its numbers are longer.
pub fn small_fraction_read(field: &'static str, stated: &v1::Fraction) -> Result<(u64, u64), RequestError> {
    read_small(stated).map_err(|why| refused(field, stated, why))
}

fn refused(field: &'static str, stated: &v1::Fraction, why: Unread) -> RequestError {
    let exact = stated.exact.chars().take(80).collect();
    match why {
        Unread::Text => RequestError::Fraction { field, found: exact },
        Unread::Value => RequestError::FractionValue { field, exact, value: stated.value.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fraction::{fraction, fraction_of};

    fn stated(exact: &str, value: f64) -> Result<Ratio, RequestError> {
        fraction_read("tolerance", &v1::Fraction::new(exact, value))
    }

    #[test]
    fn what_is_sent_is_read() {
        for text in ["1/1", "2/3", "7/1", "123456789012345678901234567890/7"] {
            let number: Ratio = text.parse().unwrap();
            assert_eq!(fraction_read("x", &fraction(&number).unwrap()), Ok(number), "{text}");
        }
        assert_eq!(stated("2/6", 0.0).unwrap().to_string(), "1/3");
        assert_eq!(small_fraction_read("x", &fraction_of(3, 12)), Ok((1, 4)));
    }

    #[test]
    fn what_is_no_fraction_or_contradicts_itself_is_refused() {
        for text in ["", "1/0", "-1/2", "0.5", "1/2/3", " 1/2", "x"] {
            assert!(matches!(stated(text, 0.0), Err(RequestError::Fraction { .. })), "{text}");
        }
        let long = "1".repeat(5000);
        assert!(matches!(stated(&long, 0.0), Err(RequestError::Fraction { .. })));
        for value in [0.4, f64::NAN, f64::INFINITY, -0.5] {
            assert!(matches!(stated("1/2", value), Err(RequestError::FractionValue { .. })), "{value}");
        }
        assert!(stated("1/3", 0.333_333_333_333).is_ok());
        let huge = v1::Fraction::new("99999999999999999999/3", 0.0);
        assert!(small_fraction_read("x", &huge).is_err());
    }
}
