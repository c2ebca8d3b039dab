//! Text from outside inside a message: never more of it than a person reads.
//!
//! Documents may hold keys and ids of many megabytes; a message goes into a log line and a reply's header.

use crate::invisible::is_invisible_in_lines;

/// Characters of one text that a message shows.
const SHOWN_MAX: usize = 80;

/// The text, or its beginning and `…`.
pub fn shorten(text: &str) -> String {
    shorten_to(text, SHOWN_MAX)
}

/// The text, or its first `chars_max` characters and `…`; `\u{fffd}` replaces each character that is not shown.
pub fn shorten_to(text: &str, chars_max: usize) -> String {
    let seen = |c: char| if is_invisible_in_lines(c) { char::REPLACEMENT_CHARACTER } else { c };
    let mut shown: String = text.chars().take(chars_max).map(seen).collect();
    if text.chars().nth(chars_max).is_some() {
        shown.push('…');
    }
    shown
}
