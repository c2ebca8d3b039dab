//! Errors of reading XML.

use crate::kind::FileKind;

/// Errors of XML files of any kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum XmlError {
    #[error("{} line {line}, column {column}: {problem}{}", kind.name(), kind.remedy(problem))]
    Syntax { kind: FileKind, line: usize, column: usize, problem: String },
    #[error("line {line}: document type declarations are not supported; remove the `<!DOCTYPE …>`")]
    DocType { line: usize },
    #[error(
        "line {line}: the XML document has more than {limit} {what}; send a smaller one: one host, or links as CSV"
    )]
    TooLarge { line: usize, what: &'static str, limit: usize },
    #[error("line {line}: <{element}> has no attribute `{attribute}`; write the file with {}", kind.made_with())]
    MissingAttribute { kind: FileKind, line: usize, element: String, attribute: &'static str },
    #[error("line {line}: <{element}> has {attribute}=\"{value}\"; expected {expected}")]
    Attribute { line: usize, element: String, attribute: &'static str, value: String, expected: &'static str },
}

impl XmlError {
    /// Element and attribute at fault, such as `xgmi@count`, where one is.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::MissingAttribute { element, attribute, .. } | Self::Attribute { element, attribute, .. } => {
                Some(format!("{element}@{attribute}"))
            }
            Self::Syntax { .. } | Self::DocType { .. } | Self::TooLarge { .. } => None,
        }
    }

    /// Whether the file is refused for its size, not for its content.
    pub fn is_over_limit(&self) -> bool {
        matches!(self, Self::TooLarge { .. })
    }
}
