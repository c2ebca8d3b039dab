//! Numbers of things, and what parsers of YAML and JSON say, in words of people who write such files and not of Rust.

use std::fmt::Display;

use serde_saphyr::{Error, MessageFormatter as _, UserMessageFormatter};

use crate::spelling::did_you_mean;

/// Rust's names of what is expected, and plain ones. The first row that the name begins with counts.
const EXPECTED: [(&str, &str); 15] = [
    ("u8", "a whole number from 0"),
    ("u16", "a whole number from 0"),
    ("u32", "a whole number from 0"),
    ("u64", "a whole number from 0"),
    ("usize", "a whole number from 0"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("a string", "text"),
    ("a boolean", "`true` or `false`"),
    ("a sequence", "a list, as in `[…, …]`"),
    ("sequence", "a list, as in `[…, …]`"),
    ("a map", "fields, as in `{key: value}`"),
    ("mapping", "fields, as in `{key: value}`"),
    ("struct ", "fields, as in `{key: value}`"),
    ("enum ", "a word"),
];

/// Rust's names of what was found, and plain ones.
const FOUND: [(&str, &str); 7] = [
    ("string ", "the text "),
    ("integer ", "the number "),
    ("floating point ", "the number "),
    ("boolean ", ""),
    ("unit", "nothing"),
    ("null", "nothing"),
    ("sequence", "a list"),
];

/// `1 rank`, `2 ranks`, of any kind of number.
#[must_use]
pub fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let ending = |endings: &[&str]| endings.iter().any(|ending| noun.ends_with(ending));
    match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        _ if number == N::from(1) => format!("1 {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None if ending(&["x", "ch", "s"]) => format!("{number} {noun}es"),
        None => format!("{number} {noun}s"),
    }
}

/// What is wrong with a YAML document, without the place.
#[must_use]
pub fn yaml_in_words(error: &Error) -> String {
    match error {
        Error::AliasError { error, .. } => yaml_in_words(error),
        Error::Budget { .. } => "more text, or deeper, than such a file may have".to_owned(),
        Error::Eof { .. } => "the document ends early".to_owned(),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("`{key}` is given twice; give it once"),
        Error::NullIntoString { .. } => "the value is missing; expected text".to_owned(),
        Error::InvalidScalar { ty, .. } => format!("expected {}", expected(ty)),
        Error::Unexpected { expected: name, .. } => format!("expected {}", expected(name)),
        _ => in_words(&UserMessageFormatter.format_message(error)),
    }
}

/// What serde says of a document, without the place.
#[must_use]
pub fn in_words(message: &str) -> String {
    let split = |mark: &str| message.strip_prefix(mark)?.split_once(", expected ");
    if let Some((found, name)) = split("invalid type: ").or_else(|| split("invalid value: ")) {
        return format!("expected {}, found {}", expected(name), found_in_words(found));
    }
    if let Some((value, options)) = split("unknown variant ") {
        let options = options.strip_prefix("one of ").unwrap_or(options);
        return format!("unknown value {value}, expected one of {options}{}", nearest(value, options));
    }
    if let Some((field, options)) = split("unknown field ").filter(|(_, options)| options.starts_with("one of ")) {
        return format!("unknown field {field}, expected {options}{}", nearest(field, options));
    }
    message.to_owned()
}

fn expected(name: &str) -> String {
    let found =
        EXPECTED.iter().find(|(rust, _)| if rust.ends_with(' ') { name.starts_with(rust) } else { begins(name, rust) });
    match found {
        Some((_, plain)) => (*plain).to_owned(),
        None if name == "boolean" || name == "bool" => "`true` or `false`".to_owned(),
        None => name.to_owned(),
    }
}

/// Whether a name is this one, with no more than a word about what ended or began.
fn begins(name: &str, rust: &str) -> bool {
    name.strip_prefix(rust).is_some_and(|rest| rest.is_empty() || rest == " start")
}

fn found_in_words(found: &str) -> String {
    let plain = FOUND.iter().find_map(|(rust, plain)| Some(format!("{plain}{}", found.strip_prefix(rust)?)));
    let plain = plain.unwrap_or_else(|| found.to_owned());
    match plain.as_str() {
        "map" => "fields".to_owned(),
        "nothing value" => "nothing".to_owned(),
        _ => plain,
    }
}

/// The option that is most like a word, as words that end a sentence.
fn nearest(word: &str, options: &str) -> String {
    let plain = |word: &str| word.trim_matches(['`', ' ', '"']).to_owned();
    let word = plain(word);
    let options: Vec<String> = options
        .trim_start_matches("one of ")
        .split([',', ' '])
        .map(plain)
        .filter(|option| !option.is_empty() && option != "or")
        .collect();
    let hint = did_you_mean(&word, options.iter().map(String::as_str), "");
    if hint.is_empty() { hint } else { format!("; {hint}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        for (number, noun, words) in [
            (0, "rank", "0 ranks"),
            (1, "topology", "1 topology"),
            (2, "topology", "2 topologies"),
            (2, "box", "2 boxes"),
            (3, "switch", "3 switches"),
            (2, "day", "2 days"),
            (2, "bus", "2 buses"),
        ] {
            assert_eq!(count(number, noun), words);
        }
    }

    #[test]
    fn rust_is_told_in_words() {
        for (message, words) in [
            ("invalid type: string \"x\", expected u32", "expected a whole number from 0, found the text \"x\""),
            ("invalid value: integer `-1`, expected u64", "expected a whole number from 0, found the number `-1`"),
            ("invalid type: integer `5`, expected a string", "expected text, found the number `5`"),
            ("invalid type: map, expected a list of nodes", "expected a list of nodes, found fields"),
            ("invalid type: null, expected a sequence", "expected a list, as in `[…, …]`, found nothing"),
            (
                "invalid type: integer `1`, expected struct NodeDocument",
                "expected fields, as in `{key: value}`, found the number `1`",
            ),
            ("invalid type: boolean `true`, expected f64", "expected a number, found `true`"),
            (
                "unknown variant `Switch`, expected one of compute, switch",
                "unknown value `Switch`, expected one of compute, switch; did you mean `switch`?",
            ),
            (
                "unknown variant `x`, expected `compute` or `switch`",
                "unknown value `x`, expected one of `compute` or `switch`",
            ),
            (
                "unknown field `king`, expected one of id, kind, rank",
                "unknown field `king`, expected one of id, kind, rank; did you mean `kind`?",
            ),
            ("missing field `canopy`", "missing field `canopy`"),
            ("", ""),
        ] {
            assert_eq!(in_words(message), words, "{message}");
        }
    }
}
