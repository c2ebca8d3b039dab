//! Names of other programs as ids.

/// A text with `-` for each character that an id cannot have.
pub(crate) fn id_of(text: &str) -> String {
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ':' | '>' | '=' | ',');
    text.trim().chars().map(|c| if bad(c) { '-' } else { c }).collect()
}
