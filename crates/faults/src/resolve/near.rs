//! What somebody may have meant who wrote a name that is not there.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Names looked at on each side of the wrong one, in their order.
const LOOKED_AT: usize = 16;
/// Names that are offered.
const OFFERED_MAX: usize = 3;
/// Characters of a name that are compared.
const COMPARED_MAX: usize = 64;

/// The names beside one that is not among them: those that begin like it, so that a wrong name costs little on a network of
/// any size.
pub(super) fn beside<'a, V>(names: &BTreeMap<&'a str, V>, wrong: &str) -> Vec<&'a str> {
    let before = names.range::<str, _>((Bound::Unbounded, Bound::Excluded(wrong))).rev().take(LOOKED_AT);
    before
        .chain(names.range::<str, _>((Bound::Included(wrong), Bound::Unbounded)).take(LOOKED_AT))
        .map(|(&name, _)| name)
        .collect()
}

/// Words to end a message with: those of the names that are like the wrong one, or one of them.
pub(super) fn near(wrong: &str, names: &[&str]) -> String {
    let wrong: Vec<char> = wrong.chars().take(COMPARED_MAX).collect();
    let mut like: Vec<(usize, &str)> = names.iter().map(|&name| (distance(&wrong, name), name)).collect();
    like.sort_unstable();
    let close = like.iter().take_while(|(distance, _)| *distance <= 1 + wrong.len() / 4);
    let close: Vec<&str> = close.take(OFFERED_MAX).map(|&(_, name)| name).collect();
    match (close.as_slice(), like.first()) {
        ([], None) => "; it has no such elements".to_owned(),
        ([], Some((_, example))) => format!("; use one such as {example}"),
        (close, _) => format!("; did you mean {}?", close.join(" or ")),
    }
}

/// How many characters must be put in, left out or replaced to make the one of the other (Levenshtein), of the first
/// [`COMPARED_MAX`].
fn distance(one: &[char], other: &str) -> usize {
    let mut row: Vec<usize> = (0..=one.len()).collect();
    for (position, theirs) in other.chars().take(COMPARED_MAX).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], position + 1);
        for (index, ours) in one.iter().enumerate() {
            let replaced = diagonal + usize::from(*ours != theirs);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(row[index] + 1).min(diagonal + 1);
        }
    }
    row[one.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_changes() {
        let of = |one: &str, other| distance(&one.chars().collect::<Vec<_>>(), other);
        assert_eq!((of("kitten", "sitting"), of("", "abc"), of("b0g3", "b0g3"), of("b0g33", "b0g3")), (3, 3, 0, 1));
    }

    #[test]
    fn what_is_like_it_is_offered_else_something_there() {
        let names: BTreeMap<&str, ()> = ["b0g1", "b0g2", "b1g1", "ib"].into_iter().map(|name| (name, ())).collect();
        let offer = |wrong| near(wrong, &beside(&names, wrong));
        assert_eq!(offer("b0g3"), "; did you mean b0g1 or b0g2 or b1g1?");
        assert_eq!(offer("iB"), "; did you mean ib?");
        assert_eq!(offer("something-else"), "; use one such as b0g1");
        assert_eq!(near("x", &[]), "; it has no such elements");
    }
}
