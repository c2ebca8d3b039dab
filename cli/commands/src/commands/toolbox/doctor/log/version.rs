//! A version, as a banner states it.

/// A version: its numbers, and the whole word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Version {
    pub(in super::super) numbers: [u32; 3],
    pub(in super::super) text: String,
}

impl Version {
    /// Reads the version that a text begins with: `2.20.5+cuda12.4`, `0.8`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let word: String = text.chars().take_while(|c| c.is_ascii_graphic()).take(80).collect();
        let mut numbers = [0; 3];
        let mut rest = word.as_str();
        for (position, number) in numbers.iter_mut().enumerate() {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at_checked(end)?;
            match digits.parse() {
                Ok(found) => *number = found,
                // The first two are always there.
                Err(_) if position < 2 => return None,
                Err(_) => break,
            }
            match after.strip_prefix('.') {
                Some(after) => rest = after,
                None if position == 0 => return None,
                None => break,
            }
        }
        Some(Self { numbers, text: word })
    }

    /// The numbers alone.
    pub(in super::super) fn short(&self) -> String {
        let [major, minor, patch] = self.numbers;
        format!("{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_end_where_their_numbers_end() {
        let read = |text: &str| Version::read(text).map(|version| version.numbers);
        assert_eq!(read("2.20.5+cuda12.4"), Some([2, 20, 5]));
        assert_eq!(read("2.12.12.MSCCL.0.7.4+cuda11.8"), Some([2, 12, 12]));
        assert_eq!(read("0.8"), Some([0, 8, 0]));
        assert_eq!(read("2.27.7-HEAD:1"), Some([2, 27, 7]));
        for bad in ["", "x", "2", "2.", ".2", "99999999999.1", "é"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
