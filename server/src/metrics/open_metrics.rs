//! The page in the OpenMetrics format, for readers that ask for it: it alone carries exemplars.

use std::collections::HashSet;

use super::exemplars::Exemplars;

/// Its content type.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A page of the older text format in this one: families of counters bear their name without `_total`, lines of buckets
/// have exemplars, and the end is marked. O(length).
pub(super) fn rewritten(page: &str, exemplars: &Exemplars) -> String {
    let mut counters = HashSet::new();
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter")) {
            counters.insert(name);
        }
    }
    let mut written = String::with_capacity(page.len() + page.len() / 8);
    for line in page.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("# ").and_then(family) {
            Some((keyword, name, rest)) => {
                let bare = if counters.contains(name) { name.trim_end_matches("_total") } else { name };
                written.extend(["# ", keyword, " ", bare, " ", rest]);
            }
            None => {
                written.push_str(line);
                exemplars.add(line, &mut written);
            }
        }
        written.push('\n');
    }
    written.push_str("# EOF\n");
    written
}

/// A line such as `TYPE name counter`.
fn family(line: &str) -> Option<(&str, &str, &str)> {
    let mut words = line.splitn(3, ' ');
    let (keyword, name, rest) = (words.next()?, words.next()?, words.next()?);
    matches!(keyword, "HELP" | "TYPE").then_some((keyword, name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_lose_their_ending_and_the_end_is_marked() {
        let page = "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"y\"} 3\n\n\
            # HELP b_total Not a counter.\n# TYPE b_total gauge\nb_total 1\n";
        let expected = "# HELP a Things.\n# TYPE a counter\na_total{x=\"y\"} 3\n\
            # HELP b_total Not a counter.\n# TYPE b_total gauge\nb_total 1\n# EOF\n";
        assert_eq!(rewritten(page, &Exemplars::default()), expected);
        assert_eq!(rewritten("", &Exemplars::default()), "# EOF\n");
    }
}
