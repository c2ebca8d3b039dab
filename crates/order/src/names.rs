//! Names by the numbers in them.

use std::cmp::Ordering;

/// Names with numbers in them, by number: `gpu2` before `gpu10`.
pub fn by_number(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    loop {
        match (digits(a), digits(b)) {
            (0, _) | (_, 0) => {
                let (first, second) = (a.chars().next(), b.chars().next());
                match first.cmp(&second) {
                    Ordering::Equal if first.is_none() => return Ordering::Equal,
                    Ordering::Equal => {
                        let length = first.map_or(0, char::len_utf8);
                        (a, b) = (&a[length..], &b[length..]);
                    }
                    unequal => return unequal,
                }
            }
            (of_a, of_b) => {
                let (number, other) = (a[..of_a].trim_start_matches('0'), b[..of_b].trim_start_matches('0'));
                match number.len().cmp(&other.len()).then(number.cmp(other)).then(of_a.cmp(&of_b)) {
                    Ordering::Equal => (a, b) = (&a[of_a..], &b[of_b..]),
                    unequal => return unequal,
                }
            }
        }
    }
}
