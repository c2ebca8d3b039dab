//! Sizes of messages: ranges of them, and how they are written.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::args::size_bytes;

/// Each size of a list is this many times the one before.
const FACTOR: u64 = 4;

/// Sizes that a list may name.
const LISTED_MAX: usize = 64;

/// Sizes of messages, rising, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(Vec<u64>);

impl Sizes {
    /// All of them.
    pub(crate) fn list(&self) -> &[u64] {
        &self.0
    }

    /// The first and the last.
    pub(crate) fn ends(&self) -> (u64, u64) {
        let ends = self.0.first().zip(self.0.last());
        ends.map_or((0, 0), |(first, last)| (*first, *last))
    }
}

/// From one size to another: each is [`FACTOR`] times the one before, and the last stands at the end whether or not it is. At
/// most 33.
fn range(first: u64, last: u64) -> impl Iterator<Item = u64> {
    let next = |size: &u64| size.checked_mul(FACTOR);
    std::iter::successors(Some(first), next).take_while(move |&size| size < last).chain([last])
}

impl FromStr for Sizes {
    type Err = String;

    /// Reads `1KiB..1GiB` (or `1KiB-1GiB`), `64MiB`, and several of them between commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut sizes = BTreeSet::new();
        for part in text.split(',') {
            match part.split_once("..").or_else(|| part.split_once('-')) {
                None => sizes.extend([size_bytes(part)?]),
                Some((first, last)) => {
                    let (first, last) = (size_bytes(first)?, size_bytes(last)?);
                    if first > last {
                        return Err(format!("`{part}` ends before it begins; write the smaller size first"));
                    }
                    sizes.extend(range(first, last));
                }
            }
            if sizes.len() > LISTED_MAX {
                return Err(format!(
                    "more than {LISTED_MAX} sizes are named; name fewer, or a range such as 1KiB..1GiB"
                ));
            }
        }
        Ok(Self(sizes.into_iter().collect()))
    }
}

/// Binary units of sizes, the greatest first.
pub(crate) const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
/// Decimal units of sizes, the greatest first.
const DECIMAL_UNITS: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];

/// A size as people write it: in the largest unit of which it is a whole number.
pub(crate) fn in_words(size_bytes: u64) -> String {
    let whole = |(_, factor): &&(&str, u64)| size_bytes >= *factor && size_bytes.is_multiple_of(*factor);
    let largest = UNITS.iter().chain(&DECIMAL_UNITS).filter(whole).max_by_key(|(_, factor)| *factor);
    let (name, factor) = largest.unwrap_or(&("B", 1));
    format!("{} {name}", size_bytes / factor)
}

/// So many of a number of positions at most, evenly spread, the last among them, and the first where there are several.
pub(crate) fn spread(length: usize, most: usize) -> Vec<usize> {
    let number = length.min(most);
    let last = length.saturating_sub(1);
    (0..number).map(|place| if number == 1 { last } else { place * last / (number - 1) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_both_ends() {
        let list = |text: &str| text.parse::<Sizes>().map(|sizes| sizes.list().to_vec());
        assert_eq!(list("1KiB..16KiB"), Ok(vec![1 << 10, 1 << 12, 1 << 14]));
        assert_eq!(list("1KiB..5KiB"), Ok(vec![1 << 10, 1 << 12, 5 << 10]));
        assert_eq!(list("7..7"), Ok(vec![7]));
        assert_eq!(list("1KiB-16KiB"), list("1KiB..16KiB"));
        assert_eq!(list("1..18446744073709551615").map(|list| list.len()), Ok(33));
        assert_eq!(list("64MiB"), Ok(vec![64 << 20]));
        assert_eq!(list("64MiB,1KiB,64MiB"), Ok(vec![1 << 10, 64 << 20]), "rising, and each once");
        assert_eq!(list("1KiB..5KiB,2KiB"), Ok(vec![1 << 10, 2 << 10, 4 << 10, 5 << 10]));
        for bad in ["", "2KiB..1KiB", "0..1KiB", "..1KiB", "1KiB..x", "1KiB,", "x", "1KiB,2KiB..1KiB"] {
            assert!(list(bad).is_err(), "{bad}");
        }
        let many: Vec<String> = (1..=100).map(|size| size.to_string()).collect();
        assert!(list(&many.join(",")).unwrap_err().contains("more than 64 sizes"));
    }

    #[test]
    fn sizes_are_written_in_the_largest_whole_unit() {
        for words in ["1 KiB", "1536 KiB", "1 MB", "6 GB", "1 GB", "1 TiB", "1000 GiB", "7 B", "999 kB", "512 MB"] {
            assert_eq!(in_words(size_bytes(words).unwrap()), words);
        }
        assert_eq!(in_words(0), "0 B");
    }
}
