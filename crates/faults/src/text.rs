//! Texts from outside: as much of them as a message shows, and the numbers in them.

use std::str::FromStr;

use canopy_topology::is_invisible;

/// Characters of a text that a message shows.
const SHOWN_MAX: usize = 80;

/// As much of a text from outside as a message shows, without what a terminal would obey.
pub(crate) fn shown(text: &str) -> String {
    let plain = |c: char| if is_invisible(c) { char::REPLACEMENT_CHARACTER } else { c };
    let mut shown: String = text.chars().take(SHOWN_MAX).map(plain).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// A number of digits alone, without sign or white space, if it fits.
pub(crate) fn digits<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
