//! XML text to a tree of elements, within limits.
//!
//! Declarations, comments and processing instructions are skipped, and so is a document type declaration where the
//! kind of file has one: nothing is fetched, and there are no entities but the five of XML itself. It knows nothing of
//! what the elements mean.

use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use canopy_topology::{shorten, shorten_to};

use crate::error::{ImportError, XmlError};
use crate::kind::FileKind;
use crate::source::Source;

/// Elements between two questions whether to stop.
const ELEMENTS_BETWEEN_STOPS: usize = 4096;
/// Deepest nesting: PCI switches nest a few levels.
const DEPTH_MAX: usize = 64;
/// Most elements: the largest hosts have some thousand, and a torus of 10,000 nodes some 100,000.
const ELEMENTS_MAX: usize = 200_000;
/// Most attributes of an element: the largest has about twenty.
const ATTRIBUTES_MAX: usize = 64;

/// Most characters of what the parser says; it may repeat the document.
const PROBLEM_MAX: usize = 400;

/// An element and what it holds.
#[derive(Debug)]
pub(crate) struct Element {
    kind: FileKind,
    pub(crate) name: String,
    /// Line of its start tag, from 1.
    pub(crate) line: usize,
    attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Element>,
    /// What stands directly inside it, where files of the kind say something so.
    pub(crate) text: String,
}

impl Element {
    /// Value of an attribute; an empty one says nothing.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Value of an attribute that must be there.
    pub(crate) fn required(&self, attribute: &'static str) -> Result<&str, XmlError> {
        let missing = || {
            let (kind, line, element) = (self.kind, self.line, self.name.clone());
            XmlError::MissingAttribute { kind, line, element, attribute }
        };
        self.attribute(attribute).ok_or_else(missing)
    }

    /// Value of an attribute as a whole number, if it is there. Negative numbers mean "unknown" and become `None`.
    pub(crate) fn number(&self, attribute: &'static str) -> Result<Option<u64>, XmlError> {
        let Some(value) = self.attribute(attribute) else { return Ok(None) };
        let unusable = |_| self.unusable(attribute, value, "a whole number");
        let number: i64 = value.parse().map_err(unusable)?;
        Ok(u64::try_from(number).ok())
    }

    /// Says that the value of an attribute is not usable.
    pub(crate) fn unusable(&self, attribute: &'static str, value: &str, expected: &'static str) -> XmlError {
        let (element, value) = (self.name.clone(), shorten(value));
        XmlError::Attribute { line: self.line, element, attribute, value, expected }
    }

    /// Elements of this name directly inside.
    pub(crate) fn children_named(&self, name: &'static str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Parses a document to its root element. O(bytes).
pub(crate) fn parse(kind: FileKind, source: Source<'_>) -> Result<Element, ImportError> {
    let text = source.text;
    let lines = LineCounter { text, counted: 0, line: 1 };
    let mut parser = Parser { kind, lines, open: Vec::new(), root: None, elements: 0 };
    let syntax = |text: &str, at: usize, problem: &str| syntax(kind, text, at, problem);
    let mut reader = Reader::from_str(text);
    loop {
        let at = offset(reader.buffer_position());
        let event =
            reader.read_event().map_err(|error| syntax(text, offset(reader.error_position()), &error.to_string()))?;
        if parser.elements.is_multiple_of(ELEMENTS_BETWEEN_STOPS) {
            source.ask()?;
        }
        match event {
            Event::Start(tag) => parser.start(&tag, at)?,
            Event::Empty(tag) => {
                parser.start(&tag, at)?;
                parser.end();
            }
            Event::End(_) => parser.end(),
            Event::DocType(_) if kind == FileKind::NcclXml => {
                return Err(XmlError::DocType { line: parser.lines.at(at) }.into());
            }
            Event::Text(text) if says_in_text(kind) => parser.text(&text),
            Event::CData(text) if says_in_text(kind) => parser.text(&text),
            Event::GeneralRef(reference) if says_in_text(kind) => parser.reference(&reference, at)?,
            Event::Eof => break,
            Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_)
            | Event::GeneralRef(_) => {}
        }
    }
    match parser.root {
        Some(root) if parser.open.is_empty() => Ok(root),
        _ => Err(syntax(text, text.len(), "the document ends before its root element does").into()),
    }
}

/// Whether files of a kind say something in the text between tags.
fn says_in_text(kind: FileKind) -> bool {
    matches!(kind, FileKind::Hwloc | FileKind::GraphMl)
}

struct Parser<'a> {
    kind: FileKind,
    lines: LineCounter<'a>,
    /// Elements whose end tag has not come, outermost first.
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl Parser<'_> {
    fn start(&mut self, tag: &BytesStart<'_>, at: usize) -> Result<(), XmlError> {
        let line = self.lines.at(at);
        let (kind, text) = (self.kind, self.lines.text);
        let syntax = |problem: &str| syntax(kind, text, at, problem);
        if self.open.is_empty() && self.root.is_some() {
            return Err(syntax("a second root element begins"));
        }
        self.elements += 1;
        let over = |what, limit| XmlError::TooLarge { line, what, limit };
        if self.elements > ELEMENTS_MAX {
            return Err(over("elements", ELEMENTS_MAX));
        }
        if self.open.len() == DEPTH_MAX {
            return Err(over("elements within each other", DEPTH_MAX));
        }
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            // Before the next one is read: the parser compares each with all before it.
            if attributes.len() == ATTRIBUTES_MAX {
                return Err(over("attributes on one element", ATTRIBUTES_MAX));
            }
            let attribute = attribute.map_err(|error| syntax(&error.to_string()))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| syntax(&error.to_string()))?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        let name = tag.name().as_ref().to_owned();
        self.open.push(Element { kind, name, line, attributes, children: Vec::new(), text: String::new() });
        Ok(())
    }

    /// White space alone says nothing, but behind other text it parts what follows from it.
    fn text(&mut self, text: &str) {
        let says = |element: &&mut Element| !element.text.is_empty() || !text.trim().is_empty();
        if let Some(element) = self.open.last_mut().filter(says) {
            element.text.push_str(text);
        }
    }

    /// A character that is written as `&lt;` or `&#60;`.
    fn reference(&mut self, reference: &BytesRef<'_>, at: usize) -> Result<(), XmlError> {
        let (kind, text) = (self.kind, self.lines.text);
        let named = || resolve_xml_entity(reference).and_then(|found| found.chars().next());
        let resolved = reference.resolve_char_ref().map_err(|error| syntax(kind, text, at, &error.to_string()))?;
        let unknown = || {
            let name = shorten(reference);
            syntax(kind, text, at, &format!("the entity `&{name};` is not known; write what it stands for"))
        };
        let character = resolved.or_else(named).ok_or_else(unknown)?;
        if let Some(element) = self.open.last_mut() {
            element.text.push(character);
        }
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

fn syntax(kind: FileKind, text: &str, at: usize, problem: &str) -> XmlError {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    XmlError::Syntax { kind, line, column, problem: shorten_to(problem, PROBLEM_MAX) }
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
