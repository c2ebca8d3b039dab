//! Errors of a generator expression.

use crate::error::TopologyError;
use crate::fault::FaultError;
use crate::quantity::QuantityError;

/// Each variant says where the error is (positions count characters from 1), what was found and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ExpressionError {
    #[error("the expression has {found} bytes, over the limit of {limit}; write the topology to a file instead")]
    TooLong { found: usize, limit: usize },
    #[error("the expression nests more than {limit} operators at position {position}; nest fewer")]
    TooDeep { position: usize, limit: usize },
    #[error("position {position}: found {found}, expected {expected}")]
    Syntax { position: usize, found: String, expected: &'static str },
    #[error("position {position}: unknown family `{name}`; {suggestion}")]
    UnknownFamily { name: String, position: usize, suggestion: String },
    #[error("position {position}: `{value}` has no key, which only the first argument may omit; write `key=value`")]
    LateBareValue { value: String, position: usize },
    #[error(
        "position {position}: `{family}` takes no value without a key, found `{value}`; write it as in `{example}`"
    )]
    BareValue { family: &'static str, value: String, position: usize, example: &'static str },
    #[error("`{family}` needs {what}, as in `{example}`")]
    Missing { family: &'static str, what: String, example: &'static str },
    #[error("position {position}: `{family}` has no key `{key}`; {suggestion}")]
    UnknownKey { family: &'static str, key: String, position: usize, suggestion: String },
    #[error("position {position}: `{key}` belongs to the whole network; write it after the last parenthesis")]
    KeyWithin { key: String, position: usize },
    #[error("position {position}: `{what}` {problem}")]
    Composition { what: &'static str, position: usize, problem: &'static str },
    #[error(
        "position {position}: node ids of this `{operator}` would have {found} bytes, over the limit of {limit}; \
         compose fewer networks"
    )]
    LongIds { operator: &'static str, position: usize, found: usize, limit: usize },
    #[error("position {position}: `{key}` is given twice; give it once")]
    DuplicateKey { key: String, position: usize },
    #[error("position {position}: `{key}` needs `{needed}`; give both")]
    KeyAlone { key: &'static str, position: usize, needed: &'static str },
    #[error("position {position}: `{key}` cannot be `{value}`; expected {expected}")]
    Value { key: String, position: usize, value: String, expected: &'static str },
    #[error("position {position}: {key}: {problem}")]
    Quantity { key: String, position: usize, problem: QuantityError },
    #[error("{numerator} bytes/s divided by {divisor} is not a whole rate for the {link}; change one of {keys}")]
    NotExact { link: &'static str, numerator: u128, divisor: u128, keys: &'static str },
    #[error("position {position}: {key}={item}: {problem}")]
    Fault { key: &'static str, position: usize, item: String, problem: Box<FaultError> },
    #[error("position {position}: faults={item}: {problem}")]
    Draw { position: usize, item: String, problem: DrawError },
    #[error("{0}")]
    Faults(FaultError),
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// Why random faults cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum DrawError {
    #[error("unknown kind of faults; {suggestion}")]
    UnknownKind { suggestion: String },
    #[error("not a count of faults; join items such as `nics:3`, `nics:3@1/2` and `seed:1` by `+`")]
    Unreadable,
    #[error("the seed is not a number below 2^64; write it as in `seed:1`")]
    Seed,
    #[error("given twice; give each kind and the seed once")]
    Twice,
    #[error("{kind} are gone or healthy, never slow; leave out the fraction")]
    NeverSlow { kind: &'static str },
    #[error("there are no {kind} to draw ({meaning}); leave this out")]
    NoneThere { kind: &'static str, meaning: &'static str },
    #[error("there are {found} {kind} to draw ({meaning}); ask for at most {found}")]
    TooMany { found: usize, kind: &'static str, meaning: &'static str },
    #[error("the draw leaves no path from {from} to {to}; use another `seed`, fewer faults or slow ones (`@1/2`)")]
    Split { from: String, to: String },
}

impl ExpressionError {
    /// Key of the expression at fault, where one key is; the bare first value has the key `size`.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::UnknownKey { key, .. }
            | Self::DuplicateKey { key, .. }
            | Self::KeyWithin { key, .. }
            | Self::Value { key, .. }
            | Self::Quantity { key, .. } => Some(key.clone()),
            Self::Draw { .. } => Some("faults".to_owned()),
            Self::Missing { what, .. } => Some(what.trim_matches('`').to_owned()),
            Self::KeyAlone { key, .. } | Self::Fault { key, .. } => Some((*key).to_owned()),
            _ => None,
        }
    }

    /// Whether the expression is refused for the size of its topology or of itself, not for what it says.
    pub fn is_over_limit(&self) -> bool {
        match self {
            Self::TooLong { .. } | Self::TooDeep { .. } | Self::LongIds { .. } => true,
            Self::Topology(error) => error.is_over_limit(),
            _ => false,
        }
    }
}
