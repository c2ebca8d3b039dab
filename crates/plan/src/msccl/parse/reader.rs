//! Tags and comments, as the runtimes' hand-made reader sees them.
//!
//! Not an XML parser, because the runtimes' reader is none: no declaration, no text, no entities, no single quotes,
//! no tabs; one space before each attribute and no line end within an element. A text that a real XML parser
//! accepts may fail there, and the other way round, so a library would answer the wrong question.

use super::error::{ParseError, ParseFault, Position};

const NAME_LENGTH_MAX: usize = 254;
const VALUE_LENGTH_MAX: usize = 255;
const ATTRIBUTES_MAX: usize = 16;

/// An opening tag.
pub(super) struct Element<'a> {
    pub(super) name: &'a str,
    pub(super) attributes: Vec<Attribute<'a>>,
    /// Closed by itself (`/>`).
    pub(super) is_empty: bool,
    /// Of its `<`.
    pub(super) position: Position,
}

/// An attribute with its value, and where its name starts.
#[derive(Clone, Copy)]
pub(super) struct Attribute<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
    pub(super) position: Position,
}

/// A tag.
pub(super) enum Node<'a> {
    Open(Element<'a>),
    Close { name: &'a str, position: Position },
}

impl Node<'_> {
    pub(super) fn position(&self) -> Position {
        match self {
            Self::Open(element) => element.position,
            Self::Close { position, .. } => *position,
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Open(element) => format!("<{}>", shorten(element.name)),
            Self::Close { name, .. } => format!("</{}>", shorten(name)),
        }
    }
}

/// Walks over a text once.
pub(super) struct Reader<'a> {
    rest: &'a str,
    /// Of the first character of the rest.
    position: Position,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, position: Position { line: 1, column: 1 } }
    }

    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// The next tag; `None` at the end of the text.
    pub(super) fn next_node(&mut self) -> Result<Option<Node<'a>>, ParseError> {
        loop {
            self.skip_space();
            let start = self.position;
            match self.take() {
                None => return Ok(None),
                Some('<') => {}
                Some('\t') => return Err(ParseFault::Tab.at(start)),
                Some(found) => return Err(ParseFault::Text { found }.at(start)),
            }
            if self.rest.starts_with("!--") {
                self.skip_comment()?;
                continue;
            }
            return match self.rest.chars().next() {
                Some(found @ ('?' | '!')) => Err(ParseFault::Declaration { start: found }.at(start)),
                Some('/') => {
                    self.take();
                    self.closing_tag(start).map(Some)
                }
                _ => self.opening_tag(start).map(Some),
            };
        }
    }

    fn skip_space(&mut self) {
        let trimmed = self.rest.trim_start_matches([' ', '\n', '\r']);
        self.advance(self.rest.len() - trimmed.len());
    }

    fn skip_comment(&mut self) -> Result<(), ParseError> {
        // The reader takes the first word for the name of an element, where `=` is an error.
        let word = self.rest.find([' ', '>', '/', '\n', '\r']).unwrap_or(self.rest.len());
        if self.rest[..word].contains('=') || word > NAME_LENGTH_MAX {
            return Err(ParseFault::CommentStart.at(self.position));
        }
        let body = "!--".len();
        match self.rest[body..].find("-->") {
            Some(length) => {
                self.advance(body + length + "-->".len());
                Ok(())
            }
            None => Err(ParseFault::OpenComment.at(self.position)),
        }
    }

    fn closing_tag(&mut self, start: Position) -> Result<Node<'a>, ParseError> {
        let name = self.name("element name", "")?;
        let end = self.position;
        match self.take() {
            Some('>') => Ok(Node::Close { name, position: start }),
            found => Err(tag_error(name, found, end)),
        }
    }

    fn opening_tag(&mut self, start: Position) -> Result<Node<'a>, ParseError> {
        let name = self.name("element name", "")?;
        let mut attributes = Vec::new();
        let element = |attributes, is_empty| Node::Open(Element { name, attributes, is_empty, position: start });
        loop {
            let position = self.position;
            match self.take() {
                Some('>') => return Ok(element(attributes, false)),
                Some('/') => {
                    let position = self.position;
                    return match self.take() {
                        Some('>') => Ok(element(attributes, true)),
                        found => Err(tag_error(name, found, position)),
                    };
                }
                // A space may also stand before the end of the tag.
                Some(' ') if self.rest.starts_with(['>', '/']) => {}
                Some(' ') => {
                    if attributes.len() >= ATTRIBUTES_MAX {
                        let fault = ParseFault::TooManyAttributes { element: shorten(name), limit: ATTRIBUTES_MAX };
                        return Err(fault.at(self.position));
                    }
                    attributes.push(self.attribute(name)?);
                }
                found => return Err(tag_error(name, found, position)),
            }
        }
    }

    fn attribute(&mut self, element: &'a str) -> Result<Attribute<'a>, ParseError> {
        let position = self.position;
        let attribute = self.name("attribute name", element)?;
        let unquoted =
            || ParseFault::Unquoted { element: shorten(element), attribute: shorten(attribute) }.at(position);
        let value = self.rest.strip_prefix("=\"").ok_or_else(unquoted)?;
        let length = value.find('"').ok_or_else(unquoted)?;
        let value = &value[..length];
        if value.len() > VALUE_LENGTH_MAX {
            let fault = ParseFault::TooLong { what: "value", start: shorten(value), limit: VALUE_LENGTH_MAX };
            return Err(fault.at(position));
        }
        self.advance("=\"".len() + length + "\"".len());
        Ok(Attribute { name: attribute, value, position })
    }

    /// A word of letters, digits and `_`: nothing else names an element or attribute here.
    fn name(&mut self, what: &'static str, element: &str) -> Result<&'a str, ParseError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let name = &self.rest[..length];
        if name.is_empty() {
            return Err(tag_error(element, self.rest.chars().next(), self.position));
        }
        if length > NAME_LENGTH_MAX {
            return Err(ParseFault::TooLong { what, start: shorten(name), limit: NAME_LENGTH_MAX }.at(self.position));
        }
        self.advance(length);
        Ok(name)
    }

    fn take(&mut self) -> Option<char> {
        let first = self.rest.chars().next()?;
        self.advance(first.len_utf8());
        Some(first)
    }

    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let lines = passed.bytes().filter(|&byte| byte == b'\n').count();
        if let Some((_, last)) = passed.rsplit_once('\n') {
            self.position.line = self.position.line.saturating_add(count(lines));
            self.position.column = count(last.chars().count()).saturating_add(1);
        } else {
            self.position.column = self.position.column.saturating_add(count(passed.chars().count()));
        }
        self.rest = rest;
    }
}

fn tag_error(element: &str, found: Option<char>, position: Position) -> ParseError {
    match found {
        Some(found) => ParseFault::Tag { element: shorten(element), found },
        None => ParseFault::Ended { expected: "the rest of a tag" },
    }
    .at(position)
}

pub(super) fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}
