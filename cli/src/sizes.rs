//! Sizes of messages: ranges of them, and how they are written.

use std::str::FromStr;

use crate::args::size_bytes;

/// Each size of a list is this many times the one before.
const FACTOR: u64 = 4;

/// From the first size to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Sizes {
    /// All of them; the last stands at the end whether or not it is a multiple of the one before. At most 33.
    pub(crate) fn list(self) -> Vec<u64> {
        let next = |size: &u64| size.checked_mul(FACTOR);
        let mut list: Vec<u64> =
            std::iter::successors(Some(self.first), next).take_while(|&size| size < self.last).collect();
        list.push(self.last);
        list
    }
}

impl FromStr for Sizes {
    type Err = String;

    /// Reads `1KiB..1GiB`; `1KiB-1GiB` is read, too.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((first, last)) = text.split_once("..").or_else(|| text.split_once('-')) else {
            return Err(format!("`{text}` is not a range of sizes; write the first and the last, such as 1KiB..1GiB"));
        };
        let (first, last) = (size_bytes(first)?, size_bytes(last)?);
        if first > last {
            return Err(format!("`{text}` ends before it begins; write the smaller size first"));
        }
        Ok(Self { first, last })
    }
}

/// Units of sizes, the greatest first.
pub(crate) const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// A size as people write it: in the largest unit of which it is a whole number.
pub(crate) fn in_words(size_bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, factor)| size_bytes.is_multiple_of(*factor) && size_bytes > 0);
    unit.map_or_else(|| format!("{size_bytes} B"), |(name, factor)| format!("{} {name}", size_bytes / factor))
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
        let list = |text: &str| text.parse::<Sizes>().map(Sizes::list);
        assert_eq!(list("1KiB..16KiB"), Ok(vec![1 << 10, 1 << 12, 1 << 14]));
        assert_eq!(list("1KiB..5KiB"), Ok(vec![1 << 10, 1 << 12, 5 << 10]));
        assert_eq!(list("7..7"), Ok(vec![7]));
        assert_eq!(list("1KiB-16KiB"), list("1KiB..16KiB"));
        assert_eq!(list("1..18446744073709551615").map(|list| list.len()), Ok(33));
        for bad in ["1KiB", "2KiB..1KiB", "0..1KiB", "..1KiB", "1KiB..x"] {
            assert!(list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_written_in_the_largest_whole_unit() {
        for (size, words) in [(1 << 10, "1 KiB"), (3 << 19, "1536 KiB"), (1_000_000, "1000000 B"), (1 << 40, "1 TiB")] {
            assert_eq!(in_words(size), words);
        }
    }
}
