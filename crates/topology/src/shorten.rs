//! Text from outside inside a message: never more of it than a person reads.
//!
//! Documents may hold keys and ids of many megabytes; a message goes into a log line and a reply's header.

/// Characters of one text that a message shows.
const SHOWN_MAX: usize = 80;

/// The text, or its beginning and `…`.
pub fn shorten(text: &str) -> String {
    shorten_to(text, SHOWN_MAX)
}

/// The text, or its first `chars_max` characters and `…`.
pub fn shorten_to(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
