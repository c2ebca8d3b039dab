//! From YAML or JSON text to a [`TopologyDocument`], within budgets.
//!
//! Depth, aliases and the numbers of nodes and links are bounded while reading, so that a small hostile document
//! cannot cost much memory, time or stack.

use std::cell::Cell;

use serde::de::{DeserializeSeed, Deserializer};
use serde_path_to_error::{Path, Segment, Track};

use crate::document::schema::{DocumentSeed, Refusal, TopologyDocument};
use crate::document::{DocumentFormat, ReadError};
use crate::error::TopologyError;
use crate::limits::TopologyLimits;
use crate::shorten::{shorten, shorten_to};
use crate::wording::{in_words, yaml_in_words};

/// Deepest nesting of a document: the schema needs three levels.
const DEPTH_MAX: usize = 16;
/// Most characters of what a parser says; it may repeat the document.
const PROBLEM_MAX: usize = 400;
/// YAML nodes of one entry of `nodes`: a mapping of nine fields.
const YAML_NODES_PER_NODE: usize = 19;
/// YAML nodes of one entry of `links`: a mapping of six fields.
const YAML_NODES_PER_LINK: usize = 13;

/// How far a document may go, where reading it failed, and whether the document as a whole was the reason.
struct Trace<'a> {
    limits: &'a TopologyLimits,
    stop: &'a dyn Fn() -> bool,
    track: Track,
    refusal: Cell<Option<Refusal>>,
}

impl<'a> Trace<'a> {
    fn new(limits: &'a TopologyLimits, stop: &'a dyn Fn() -> bool) -> Self {
        Self { limits, stop, track: Track::new(), refusal: Cell::new(None) }
    }

    fn read<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<TopologyDocument, D::Error> {
        let seed = DocumentSeed { limits: self.limits, stop: self.stop, refusal: &self.refusal };
        seed.deserialize(serde_path_to_error::Deserializer::new(deserializer, &mut self.track))
    }

    /// Why the document was refused as a whole, or what is wrong at a place.
    fn error(self, format: DocumentFormat, line: u64, column: u64, problem: String) -> ReadError {
        match self.refusal.get() {
            Some(Refusal::TooMany { what, limit }) => {
                TopologyError::TooLarge { what, found: format!("more than {limit}"), limit }.into()
            }
            Some(Refusal::Version { found }) => ReadError::Version { found },
            Some(Refusal::Stopped) => ReadError::Stopped,
            None => {
                let (path, problem) = (shown(&self.track.path()), shorten_to(&problem, PROBLEM_MAX));
                ReadError::Syntax { format, path, line, column, problem }
            }
        }
    }
}

/// The path as far as it is known, unless that is the whole document.
fn shown(path: &Path) -> Option<String> {
    let mut shown = String::new();
    for segment in path.iter().take_while(|segment| !matches!(segment, Segment::Unknown)) {
        if !shown.is_empty() && !matches!(segment, Segment::Seq { .. }) {
            shown.push('.');
        }
        shown.push_str(&segment.to_string());
    }
    (!shown.is_empty()).then(|| shorten(&shown))
}

/// Reads JSON; its parser bounds depth itself.
pub(super) fn parse_json(
    text: &str,
    limits: &TopologyLimits,
    stop: &dyn Fn() -> bool,
) -> Result<TopologyDocument, ReadError> {
    let mut trace = Trace::new(limits, stop);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let document = trace.read(&mut deserializer);
    document.and_then(|document| deserializer.end().map(|()| document)).map_err(|error| {
        let (line, column) = (error.line() as u64, error.column() as u64);
        let message = error.to_string();
        // The place is told by its own fields.
        let problem = message.rsplit_once(" at line ").map_or(message.as_str(), |(problem, _)| problem);
        trace.error(DocumentFormat::Json, line, column, in_words(problem))
    })
}

/// Reads YAML under a budget derived from the limits: whatever fits them is admitted.
pub(super) fn parse_yaml(
    text: &str,
    limits: &TopologyLimits,
    stop: &dyn Fn() -> bool,
) -> Result<TopologyDocument, ReadError> {
    let mut trace = Trace::new(limits, stop);
    let read = |deserializer: serde_saphyr::Deserializer<'_, '_>| trace.read(deserializer);
    let document = serde_saphyr::with_deserializer_from_str_with_options(text, yaml_options(limits), read);
    document.map_err(|error| {
        let error = error.without_snippet();
        let location = error.location();
        let (line, column) = location.map_or((1, 1), |location| (location.line(), location.column()));
        let format = DocumentFormat::Yaml;
        match yaml_excess(error) {
            Some(problem) => ReadError::TooComplex { format, line, column, problem: problem.to_owned() },
            None => trace.error(format, line, column, yaml_problem(error)),
        }
    })
}

fn yaml_options(limits: &TopologyLimits) -> serde_saphyr::Options {
    let of_nodes = limits.nodes_max.saturating_mul(YAML_NODES_PER_NODE);
    let of_links = limits.links_max.saturating_mul(YAML_NODES_PER_LINK);
    // One entry more of each than allowed is read, so that the limit itself and not the budget is reported.
    let nodes_max = of_nodes.saturating_add(of_links).saturating_add(64);
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: nodes_max,
            // Every node opens, and every collection closes; a stream has a few more events.
            max_events: nodes_max.saturating_mul(2),
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_documents: 1,
            max_total_scalar_bytes: limits.bytes_max,
            // One anchor used by every node and link is fine; what aliases repeat is bounded by itself.
            max_aliases: limits.nodes_max.saturating_add(limits.links_max),
            enforce_alias_anchor_ratio: false,
        },
        with_snippet: false,
    }
}

/// What a YAML document has too much of, if that is why it was refused.
fn yaml_excess(error: &serde_saphyr::Error) -> Option<&'static str> {
    use serde_saphyr::Error;
    use serde_saphyr::budget::BudgetBreach;
    match error {
        // One document too many is no matter of size.
        Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => None,
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => Some("nested too deeply"),
        Error::Budget { breach: BudgetBreach::ScalarBytes { .. }, .. } => Some("aliases expand to too much text"),
        Error::Budget { breach: BudgetBreach::Aliases { .. } | BudgetBreach::AliasAnchorRatio { .. }, .. } => {
            Some("too many aliases")
        }
        Error::Budget { breach: BudgetBreach::MergeKeys { .. }, .. } => Some("too many merge keys"),
        Error::Budget {
            breach:
                BudgetBreach::Anchors { .. }
                | BudgetBreach::RecordedAnchorEvents { .. }
                | BudgetBreach::RecordedAnchorBytes { .. },
            ..
        } => Some("anchors hold too much"),
        Error::Budget { .. } => Some("too many fields and entries"),
        // The scanner bounds flow collections itself and tells so by text alone.
        Error::ExternalMessage { msg, .. } | Error::Message { msg, .. } if msg.contains("recursion limit") => {
            Some("nested too deeply")
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => Some("aliases repeat too much"),
        // Where an alias leads to the place of the error.
        Error::AliasError { error, .. } => yaml_excess(error),
        _ => None,
    }
}

/// What is wrong, in words for people who write topologies, without the place.
fn yaml_problem(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    match error {
        Error::AliasError { error, .. } => yaml_problem(error),
        Error::Budget { .. } => "a second document starts; put one topology in one file".to_owned(),
        Error::Eof { .. } => "the document ends early; give `canopy: 1`, `nodes` and `links`".to_owned(),
        Error::Unexpected { expected: "sequence start", .. } => "expected a list, as in `[{…}, {…}]`".to_owned(),
        _ => yaml_in_words(error),
    }
}
