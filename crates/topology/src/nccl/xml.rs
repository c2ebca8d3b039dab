//! XML text to a tree of elements, within limits.
//!
//! Declarations, comments, processing instructions and text are skipped; a document type declaration is refused, and
//! with it every entity but the five of XML itself. It knows nothing of what the elements mean.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::imported::NcclError;
use crate::imported::{DocumentFormat, ReadError};
use crate::shorten::{shorten, shorten_to};

/// Deepest nesting: PCI switches nest a few levels.
const DEPTH_MAX: usize = 64;
/// Most elements: the largest hosts have some thousand.
const ELEMENTS_MAX: usize = 200_000;
/// Most attributes of an element: the largest has about twenty.
const ATTRIBUTES_MAX: usize = 64;

/// Most characters of what the parser says; it may repeat the document.
const PROBLEM_MAX: usize = 400;

/// An element and what it holds.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: String,
    /// Line of its start tag, from 1.
    pub(super) line: usize,
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// Value of an attribute; an empty one says nothing.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Value of an attribute that must be there.
    pub(super) fn required(&self, attribute: &'static str) -> Result<&str, NcclError> {
        let missing = || NcclError::MissingAttribute { line: self.line, element: self.name.clone(), attribute };
        self.attribute(attribute).ok_or_else(missing)
    }

    /// Value of an attribute as a whole number, if it is there. Negative numbers mean "unknown" and become `None`.
    pub(super) fn number(&self, attribute: &'static str) -> Result<Option<u64>, NcclError> {
        let Some(value) = self.attribute(attribute) else { return Ok(None) };
        let unusable = |_| self.unusable(attribute, value, "a whole number");
        let number: i64 = value.parse().map_err(unusable)?;
        Ok(u64::try_from(number).ok())
    }

    /// Says that the value of an attribute is not usable.
    pub(super) fn unusable(&self, attribute: &'static str, value: &str, expected: &'static str) -> NcclError {
        let (element, value) = (self.name.clone(), shorten(value));
        NcclError::Attribute { line: self.line, element, attribute, value, expected }
    }

    /// Elements of this name directly inside.
    pub(super) fn children_named(&self, name: &'static str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Parses a document to its root element. O(bytes).
pub(super) fn parse(text: &str) -> Result<Element, ReadError> {
    let mut parser =
        Parser { lines: LineCounter { text, counted: 0, line: 1 }, open: Vec::new(), root: None, elements: 0 };
    let mut reader = Reader::from_str(text);
    loop {
        let at = offset(reader.buffer_position());
        let event =
            reader.read_event().map_err(|error| syntax(text, offset(reader.error_position()), &error.to_string()))?;
        match event {
            Event::Start(tag) => parser.start(&tag, at)?,
            Event::Empty(tag) => {
                parser.start(&tag, at)?;
                parser.end();
            }
            Event::End(_) => parser.end(),
            Event::DocType(_) => return Err(NcclError::DocType { line: parser.lines.at(at) }.into()),
            Event::Eof => break,
            Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::GeneralRef(_) => {}
        }
    }
    match parser.root {
        Some(root) if parser.open.is_empty() => Ok(root),
        _ => Err(syntax(text, text.len(), "the document ends before its root element does")),
    }
}

struct Parser<'a> {
    lines: LineCounter<'a>,
    /// Elements whose end tag has not come, outermost first.
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl Parser<'_> {
    fn start(&mut self, tag: &BytesStart<'_>, at: usize) -> Result<(), ReadError> {
        let line = self.lines.at(at);
        if self.open.is_empty() && self.root.is_some() {
            return Err(syntax(self.lines.text, at, "a second root element begins"));
        }
        self.elements += 1;
        let over = |what, limit| NcclError::TooLarge { line, what, limit };
        if self.elements > ELEMENTS_MAX {
            return Err(over("elements", ELEMENTS_MAX).into());
        }
        if self.open.len() == DEPTH_MAX {
            return Err(over("elements within each other", DEPTH_MAX).into());
        }
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            // Before the next one is read: the parser compares each with all before it.
            if attributes.len() == ATTRIBUTES_MAX {
                return Err(over("attributes on one element", ATTRIBUTES_MAX).into());
            }
            let attribute = attribute.map_err(|error| syntax(self.lines.text, at, &error.to_string()))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| syntax(self.lines.text, at, &error.to_string()))?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        self.open.push(Element { name: tag.name().as_ref().to_owned(), line, attributes, children: Vec::new() });
        Ok(())
    }

    fn end(&mut self) {
        let Some(element) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
    }
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

fn syntax(text: &str, at: usize, problem: &str) -> ReadError {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() as u64 + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1;
    ReadError::Syntax {
        format: DocumentFormat::NcclXml,
        path: None,
        line,
        column,
        problem: shorten_to(problem, PROBLEM_MAX),
    }
}

/// Line numbers of growing offsets, in O(bytes) altogether.
struct LineCounter<'a> {
    text: &'a str,
    counted: usize,
    line: usize,
}

impl LineCounter<'_> {
    fn at(&mut self, offset: usize) -> usize {
        let passed = self.text.as_bytes().get(self.counted..offset).unwrap_or_default();
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count();
        self.counted = self.counted.max(offset);
        self.line
    }
}
