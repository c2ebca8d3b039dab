//! Words as people type them: case, hyphens, underscores and dots do not count, and a near miss gets a suggestion.

/// Least similarity of a suggestion, from 0 to 1 (Jaro–Winkler): one or two letters off in a short word.
const SIMILAR: f64 = 0.8;

/// The letters and digits of a word in lower case.
fn letters(word: &str) -> impl Iterator<Item = char> {
    word.chars().filter(|c| !matches!(c, '-' | '_' | '.' | ' ')).flat_map(char::to_lowercase)
}

/// Whether two words differ in nothing but case, hyphens, underscores, dots and blanks. O(length).
pub fn same_word(a: &str, b: &str) -> bool {
    letters(a).eq(letters(b))
}

/// The candidate that was probably meant: one that contains the word or is most similar to it, the first of equals.
///
/// `None` if no candidate is similar. O(candidates × length²).
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| letters(word).take(64).collect::<String>();
    let typed = plain(word);
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let known = plain(candidate);
        let contains = typed.len() >= 3 && (known.contains(&typed) || (known.len() >= 3 && typed.contains(&known)));
        let similarity = strsim::jaro_winkler(&typed, &known).max(if contains { SIMILAR } else { 0.0 });
        if similarity >= SIMILAR && best.is_none_or(|(most, _)| similarity > most) {
            best = Some((similarity, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// `did you mean X?`, or the other text if no candidate is similar.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, otherwise: &str) -> String {
    closest(word, candidates).map_or_else(|| otherwise.to_owned(), |candidate| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_separators_do_not_count() {
        for typed in ["dgx-a100", "DGX-A100", "dgxa100", "Dgx_A100", "dgx.a100"] {
            assert!(same_word(typed, "dgx-a100"), "{typed}");
        }
        assert!(!same_word("dgx-a10", "dgx-a100"));
        assert!(!same_word("", "ring"));
    }

    #[test]
    fn near_misses_get_a_suggestion() {
        let families = ["ring", "mesh", "torus", "dgx-a100", "dgx-h100", "fat-tree"];
        for (typed, meant) in
            [("rings", "ring"), ("h100", "dgx-h100"), ("tourus", "torus"), ("fattrees", "fat-tree"), ("rnig", "ring")]
        {
            assert_eq!(closest(typed, families), Some(meant), "{typed}");
        }
        for typed in ["", "x", "nvl72", "tpu", "zzzzzzzzzzzzzzzz"] {
            assert_eq!(closest(typed, families), None, "{typed}");
        }
        assert_eq!(did_you_mean("rings", families, "see the list"), "did you mean `ring`?");
        assert_eq!(did_you_mean("", families, "see the list"), "see the list");
    }

    #[test]
    fn long_words_cost_little() {
        assert_eq!(closest(&"r".repeat(1 << 20), ["ring"]), None);
    }
}
