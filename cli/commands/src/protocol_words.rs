//! Values of enumerations of the protocol, as commands write them.

/// What stands for a value of an enumeration that is not stated.
pub(crate) const UNKNOWN: &str = "unknown";

/// A value of an enumeration of the protocol as commands write it: `stand-in` of `REPLAN_STAGE_STAND_IN`, where `REPLAN_STAGE` is how
/// all its names begin; none where it is not stated.
pub(crate) fn stated(name: &str, start: &str) -> Option<String> {
    let word = name.strip_prefix(start)?.trim_start_matches('_').to_lowercase().replace('_', "-");
    (word != "unspecified").then_some(word)
}

/// The same, with a word for what is not stated.
pub(crate) fn word(name: &str, start: &str) -> String {
    stated(name, start).unwrap_or_else(|| UNKNOWN.to_owned())
}
