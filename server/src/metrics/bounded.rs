//! Labels whose values callers choose: the first ones are kept, and all others count together.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use super::Value;

/// The label of all values after the first ones.
const OTHER: &str = "other";

/// The values of a label that have a series of their own.
#[derive(Debug)]
pub(super) struct Bounded {
    most: usize,
    seen: Mutex<BTreeSet<String>>,
}

impl Bounded {
    pub(super) fn new(most: usize) -> Self {
        Self { most, seen: Mutex::default() }
    }

    /// The value, or the one that others share.
    pub(super) fn label(&self, value: &str) -> Value {
        let mut seen = self.seen.lock();
        if !seen.contains(value) {
            if seen.len() >= self.most {
                return Value::Borrowed(OTHER);
            }
            seen.insert(value.to_owned());
        }
        value.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_have_a_series_of_their_own() {
        let bounded = Bounded::new(2);
        let labels = ["red", "blue", "red", "green", "blue", ""].map(|value| bounded.label(value).to_string());
        assert_eq!(labels, ["red", "blue", "red", "other", "blue", "other"]);
    }
}
