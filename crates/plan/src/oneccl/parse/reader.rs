//! XML text as tags with their attributes, one after the other.
//!
//! Ordinary XML 1.0, without what no plan needs: document types and with them entities of one's own, text, CDATA and
//! processing instructions are refused. It knows nothing of what elements mean.

use std::borrow::Cow;

use quick_xml::events::{BytesDecl, BytesStart, Event};
use quick_xml::{Reader as XmlReader, XmlVersion};

use super::error::{ParseError, ParseFault, Position, shown};

/// Most attributes of an element: no element knows more than ten.
const ATTRIBUTES_MAX: usize = 16;

/// An element's start.
pub(crate) struct Tag<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) attributes: Vec<(String, String)>,
    /// Closed by itself (`/>`).
    pub(crate) is_empty: bool,
    pub(crate) position: Position,
}

/// A tag.
pub(crate) enum Node<'a> {
    Open(Tag<'a>),
    Close(Position),
    End(Position),
}

impl Node<'_> {
    pub(crate) fn position(&self) -> Position {
        match self {
            Self::Open(tag) => tag.position,
            Self::Close(position) | Self::End(position) => *position,
        }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Open(tag) => format!("<{}>", shown(&tag.name)),
            Self::Close(_) => "the end of the element".to_owned(),
            Self::End(_) => "the end of the text".to_owned(),
        }
    }
}

/// Walks over a text once.
pub(crate) struct Reader<'a> {
    text: &'a str,
    xml: XmlReader<&'a [u8]>,
    depth: usize,
    /// Up to where lines were counted, and the position there.
    counted: (usize, Position),
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let xml = XmlReader::from_str(text);
        Self { text, xml, depth: 0, counted: (0, Position { line: 1, column: 1 }) }
    }

    /// The next tag.
    pub(crate) fn next_node(&mut self) -> Result<Node<'a>, ParseError> {
        loop {
            let start = offset(self.xml.buffer_position());
            let event = self.xml.read_event();
            let event = event.map_err(|error| {
                let at = offset(self.xml.error_position());
                syntax(&error).at(self.position(at))
            })?;
            let refused = match event {
                Event::Start(tag) => {
                    self.depth += 1;
                    return self.open(&tag, false, start).map(Node::Open);
                }
                Event::Empty(tag) => return self.open(&tag, true, start).map(Node::Open),
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(Node::Close(self.position(start)));
                }
                Event::Eof if self.depth > 0 => ParseFault::Syntax { problem: "it ends inside an element".to_owned() },
                Event::Eof => return Ok(Node::End(self.position(start))),
                Event::Comment(_) => continue,
                Event::Text(text) if text.as_ref().bytes().all(|byte| byte.is_ascii_whitespace()) => continue,
                Event::Decl(declaration) if start == 0 => match declared(&declaration) {
                    None => continue,
                    Some(fault) => fault,
                },
                Event::DocType(_) => ParseFault::DocType,
                Event::Text(_) | Event::GeneralRef(_) => ParseFault::Content { what: "text between elements" },
                Event::CData(_) => ParseFault::Content { what: "CDATA" },
                Event::Decl(_) | Event::PI(_) => ParseFault::Content { what: "a processing instruction" },
            };
            return Err(refused.at(self.position(start)));
        }
    }

    fn open(&mut self, tag: &BytesStart<'_>, is_empty: bool, start: usize) -> Result<Tag<'a>, ParseError> {
        let position = self.position(start);
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            // Before the next one is read: the parser compares each with all before it.
            if attributes.len() == ATTRIBUTES_MAX {
                let fault = ParseFault::TooMany { what: "attributes of one element", limit: ATTRIBUTES_MAX };
                return Err(fault.at(position));
            }
            let attribute = attribute.map_err(|error| syntax(&error).at(position))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| syntax(&error).at(position))?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        let name = Cow::Owned(tag.name().as_ref().to_owned());
        Ok(Tag { name, attributes, is_empty, position })
    }

    /// Line and column of an offset that is not before the last one asked for. O(bytes) altogether.
    fn position(&mut self, offset: usize) -> Position {
        let (from, mut position) = self.counted;
        let passed = self.text.get(from..offset).unwrap_or_default();
        let lines = passed.bytes().filter(|byte| *byte == b'\n').count() as u64;
        let last = passed.rsplit('\n').next().unwrap_or_default().chars().count() as u64;
        position.column = if lines > 0 { 1 + last } else { position.column + last };
        position.line += lines;
        if offset > from {
            self.counted = (offset, position);
        }
        position
    }
}

/// What a declaration says that is not so.
fn declared(declaration: &BytesDecl<'_>) -> Option<ParseFault> {
    match declaration.version() {
        Ok(version) if version.as_ref() == "1.0" => {}
        Ok(version) => {
            let found = shown(version);
            return Some(ParseFault::Declaration { attribute: "version", found, expected: "1.0" });
        }
        Err(error) => return Some(syntax(&error)),
    }
    match declaration.encoding() {
        None => None,
        Some(Ok(encoding)) if encoding.eq_ignore_ascii_case("utf-8") => None,
        Some(Ok(encoding)) => {
            let found = shown(encoding);
            Some(ParseFault::Declaration { attribute: "encoding", found, expected: "UTF-8" })
        }
        Some(Err(error)) => Some(syntax(&error)),
    }
}

fn syntax(error: &impl std::fmt::Display) -> ParseFault {
    ParseFault::Syntax { problem: shown(error) }
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
