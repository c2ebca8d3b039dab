//! Texts that may hold a `*`.

use std::fmt;

use serde::Deserialize;

/// A text; a `*` in it stands for any text, also an empty one, but never for one with a `/` unless it is the last.
///
/// So `spiffe://prod/ns/*/sa/trainer` names trainers of each namespace, and `spiffe://prod/*` whatever is in `prod`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Pattern(String);

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pattern {
    /// Whether it is a `*` alone.
    pub(crate) fn is_any(&self) -> bool {
        self.0 == "*"
    }

    /// The text before its first `*`; all of it where it has none.
    pub(crate) fn fixed_start(&self) -> &str {
        self.0.split('*').next().unwrap_or_default()
    }

    /// Whether it names this text. Cost: the product of both lengths at most.
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                // The last `*`: the text ends with what follows it; only at the very end it passes over `/`.
                let Some(between) = rest.strip_suffix(part) else { return false };
                return part.is_empty() || !between.contains('/');
            }
            let Some(at) = rest.find(part).filter(|&at| !rest[..at].contains('/')) else { return false };
            rest = &rest[at + part.len()..];
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_a_part_and_at_the_end_for_the_rest() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("", "", true),
            ("", "a", false),
            ("a*", "abc", true),
            ("a*", "a/b/c", true),
            ("*", "a/b", true),
            ("a*c", "abc", true),
            ("a*c", "a/c", false),
            ("a*c", "ab", false),
            ("ab*ba", "aba", false),
            ("spiffe://p/ns/*/sa/t", "spiffe://p/ns/x/sa/t", true),
            ("spiffe://p/ns/*/sa/t", "spiffe://p/ns/x/y/sa/t", false),
            ("spiffe://p/ns/*/sa/*", "spiffe://p/ns/x/sa/y", true),
            ("*.example", "a.example", true),
            ("*.example", "example", false),
            ("system:serviceaccount:*:planner", "system:serviceaccount:kueue:planner", true),
        ] {
            assert_eq!(Pattern::from(pattern.to_owned()).matches(text), expected, "{pattern} {text}");
        }
    }
}
