//! A text as elements within each other, taken in order.

use super::error::{ParseError, ParseFault, Position};
use super::reader::{Node, Reader, Tag};
use crate::proof::Stop;

/// What is left of a text.
pub(crate) struct Document<'a, 's> {
    reader: Reader<'a>,
    /// Read, but not yet used.
    peeked: Option<Node<'a>>,
    stop: Stop<'s>,
}

fn unexpected(node: &Node<'_>, expected: &'static str) -> ParseError {
    ParseFault::Unexpected { found: node.describe(), expected }.at(node.position())
}

impl<'a, 's> Document<'a, 's> {
    /// A whole text of at most so many bytes.
    pub(crate) fn new(text: &'a str, bytes_max: usize, stop: Stop<'s>) -> Result<Self, ParseError> {
        if text.len() > bytes_max {
            let fault = ParseFault::TooLarge { bytes: text.len(), limit: bytes_max };
            return Err(fault.at(Position { line: 1, column: 1 }));
        }
        Ok(Self { reader: Reader::new(text), peeked: None, stop })
    }

    /// Whether the first element, after declaration and comments, is called so.
    pub(crate) fn begins_with(text: &str, name: &str) -> bool {
        matches!(Reader::new(text).next_node(), Ok(Node::Open(tag)) if tag.name == name)
    }

    /// The next element, which must be called so.
    pub(crate) fn root(&mut self, name: &str, expected: &'static str) -> Result<Tag<'a>, ParseError> {
        match self.next_node()? {
            Node::Open(tag) if tag.name == name => Ok(tag),
            node => Err(unexpected(&node, expected)),
        }
    }

    /// The next element if it is called so; everything else stays.
    pub(crate) fn next_if(&mut self, name: &str) -> Result<Option<Tag<'a>>, ParseError> {
        match self.next_node()? {
            Node::Open(tag) if tag.name == name => Ok(Some(tag)),
            node => {
                self.peeked = Some(node);
                Ok(None)
            }
        }
    }

    /// The end of an element.
    pub(crate) fn close(&mut self, tag: &Tag<'_>, expected: &'static str) -> Result<(), ParseError> {
        if tag.is_empty {
            return Ok(());
        }
        match self.next_node()? {
            Node::Close(_) => Ok(()),
            node => Err(unexpected(&node, expected)),
        }
    }

    /// The end of the text.
    pub(crate) fn end(&mut self) -> Result<(), ParseError> {
        match self.next_node()? {
            Node::End(_) => Ok(()),
            node => Err(unexpected(&node, "the end of the text")),
        }
    }

    fn next_node(&mut self) -> Result<Node<'a>, ParseError> {
        if let Some(node) = self.peeked.take() {
            return Ok(node);
        }
        let node = self.reader.next_node()?;
        if (self.stop)() { Err(ParseFault::Stopped.at(node.position())) } else { Ok(node) }
    }
}
