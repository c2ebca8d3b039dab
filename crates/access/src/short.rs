//! Texts of others in messages.

/// Characters of a text that are shown.
const CHARS_MAX: usize = 200;

/// A text for a message: its beginning, if it is long.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(short(&"é".repeat(CHARS_MAX)), "é".repeat(CHARS_MAX));
        assert_eq!(short(&"é".repeat(CHARS_MAX + 1)), format!("{}…", "é".repeat(CHARS_MAX)));
    }
}
