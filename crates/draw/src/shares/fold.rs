//! One class for each colour: further classes share the last one.

use canopy_schedule::SharedLink;

use super::UseClass;

/// Colours of classes, told apart by most eyes. Free capacity is grey.
pub(super) const COLOURS: [&str; 8] =
    ["#1f6fb4", "#e6550d", "#1a6b2f", "#d62790", "#5c4033", "#8c6bb1", "#000000", "#b2182b"];

/// Classes and what they take of links, each class with a colour of its own.
pub(super) fn folded(classes: &[UseClass], links: &[SharedLink]) -> (Vec<UseClass>, Vec<SharedLink>) {
    let kept = if classes.len() <= COLOURS.len() { classes.len() } else { COLOURS.len() - 1 };
    let (own, rest) = classes.split_at_checked(kept).unwrap_or((classes, &[]));
    let mut found = own.to_vec();
    if !rest.is_empty() {
        found.push(UseClass {
            name: format!("{} others", rest.len()),
            does: "several".to_owned(),
            groups: rest.iter().map(|class| class.groups).sum(),
            ranks: rest.iter().map(|class| class.ranks).max().unwrap_or(0),
            size: "several".to_owned(),
        });
    }
    let count = found.len();
    let parts = |link: &SharedLink| {
        let mut room = 1_000_000_000_u32;
        let mut parts = vec![0_u32; count];
        for (class, part) in link.billionths.iter().take(classes.len()).enumerate() {
            let part = (*part).min(room);
            room -= part;
            parts.iter_mut().skip(class.min(count.saturating_sub(1))).take(1).for_each(|sum| *sum += part);
        }
        SharedLink { billionths: parts, ..link.clone() }
    };
    (found, links.iter().map(parts).collect())
}
