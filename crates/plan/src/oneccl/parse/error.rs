//! What is wrong with a text, and where.

use std::fmt;

/// Why a text is not a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct ParseError {
    /// From 1.
    pub line: u64,
    /// From 1, in characters.
    pub column: u64,
    /// What is wrong there.
    pub fault: ParseFault,
}

/// What is wrong with a text. The messages say what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ParseFault {
    #[error("the text has {bytes} bytes, over the limit of {limit}; plan for fewer ranks or chunks")]
    TooLarge { bytes: usize, limit: usize },
    #[error("the text is not XML: {problem}")]
    Syntax { problem: String },
    #[error("the text has a document type declaration; remove it")]
    DocType,
    #[error("{what} does not belong in a plan; remove it")]
    Content { what: &'static str },
    #[error("the declaration says {attribute}=\"{found}\"; use {expected}")]
    Declaration { attribute: &'static str, found: String, expected: &'static str },
    #[error("found {found}, expected {expected}")]
    Unexpected { found: String, expected: &'static str },
    #[error("<{element}> has no attribute `{attribute}`; add it")]
    Missing { element: &'static str, attribute: &'static str },
    #[error("<{element}> has the unknown attribute `{attribute}`; remove it")]
    UnknownAttribute { element: &'static str, attribute: String },
    #[error("{attribute}=\"{value}\" of <{element}> is not valid; use {expected}")]
    Value { element: &'static str, attribute: &'static str, value: String, expected: &'static str },
    #[error("{what} are over the limit of {limit}")]
    TooMany { what: &'static str, limit: usize },
    #[error("stopped on request before the text was read")]
    Stopped,
}

/// Where a piece of text begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl ParseFault {
    pub(crate) fn at(self, position: Position) -> ParseError {
        ParseError { line: position.line, column: position.column, fault: self }
    }
}

/// A piece of somebody's text for a message: short, without control characters.
pub(crate) fn shown(text: impl fmt::Display) -> String {
    text.to_string().chars().map(|letter| if letter.is_control() { '?' } else { letter }).take(80).collect()
}
