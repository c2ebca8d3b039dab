//! Names of other programs as ids.

use canopy_topology::is_invisible;

/// A text with `-` for each character that an id cannot have.
pub(crate) fn id_of(text: &str) -> String {
    let bad = |c: char| c.is_whitespace() || is_invisible(c) || matches!(c, ':' | '>' | '=' | ',');
    text.trim().chars().map(|c| if bad(c) { '-' } else { c }).collect()
}
