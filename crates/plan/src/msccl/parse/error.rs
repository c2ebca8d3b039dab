//! Why a text is not a program.

/// The first fault of a text, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct ParseError {
    /// Line of the fault, from 1.
    pub line: u32,
    /// Column in characters, from 1: of the character, attribute or tag that is at fault.
    pub column: u32,
    /// What was found, and what would be accepted.
    pub fault: ParseFault,
}

/// What is wrong with a text, and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ParseFault {
    #[error("the text has {bytes} bytes, over the limit of {limit}; plan for fewer ranks, or with fewer trees")]
    TooLarge { bytes: usize, limit: usize },
    #[error("stopped on request before the text was read")]
    Stopped,
    #[error("the text ends, expected {expected}")]
    Ended { expected: &'static str },
    #[error("<{element}> is not closed; add </{element}>")]
    Unclosed { element: String },
    #[error("found {found:?} between elements; use only spaces, line ends and comments there")]
    Text { found: char },
    #[error("found a tab between elements, which the runtime's reader rejects; use spaces")]
    Tab,
    #[error("found `<{start}`, but the runtime's reader knows no declaration, DOCTYPE or CDATA; remove it")]
    Declaration { start: char },
    #[error("the comment is not closed; end it with -->")]
    OpenComment,
    #[error("the first word of the comment holds `=` or is longer than 254 characters; put a space after <!--")]
    CommentStart,
    #[error(
        "found {found:?} in <{element}>, expected a space, `/` or `>`; keep an element on one line with exactly one \
         space before each attribute"
    )]
    Tag { element: String, found: char },
    #[error("attribute `{attribute}` of <{element}> has no value in double quotes; write {attribute}=\"…\"")]
    Unquoted { element: String, attribute: String },
    #[error("{what} `{start}…` is longer than {limit} characters; shorten it")]
    TooLong { what: &'static str, start: String, limit: usize },
    #[error("<{element}> has more than {limit} attributes; remove the extra ones")]
    TooManyAttributes { element: String, limit: usize },
    #[error("found {found}, expected {expected}")]
    Unexpected { found: String, expected: &'static str },
    #[error("found {found} in <{parent}>, which holds only <{child}>; remove it, since runtimes silently ignore it")]
    Misplaced { found: String, parent: String, child: &'static str },
    #[error("<{parent}> has more than {limit} <{child}>, which is the size of the runtime's table")]
    TooManyChildren { parent: String, child: &'static str, limit: u32 },
    #[error("<{element}> has no attribute `{attribute}`; add it")]
    Missing { element: String, attribute: &'static str },
    #[error("<{element}> has the unknown attribute `{attribute}`; remove it, since runtimes silently ignore it")]
    UnknownAttribute { element: String, attribute: String },
    #[error("<{element}> has the attribute `{attribute}` twice; keep one")]
    Repeated { element: String, attribute: String },
    #[error("`{attribute}` of <{element}> is `{value}`; write {expected}")]
    BadValue { element: String, attribute: &'static str, value: String, expected: &'static str },
}

/// A character of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl ParseFault {
    pub(super) fn at(self, position: Position) -> ParseError {
        ParseError { line: position.line, column: position.column, fault: self }
    }
}
