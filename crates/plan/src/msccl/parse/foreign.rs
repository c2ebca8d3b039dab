//! Reads files that no runtime, or another one, was meant to read, and says what is odd about them.

use std::fmt;

use super::error::{ParseError, ParseFault};
use super::reader::{Element, Node, shorten};
use super::{Leniency, MSCCL_BYTES_MAX, Parser, Profile, Program};
use crate::proof::Stop;

/// Most elements within one another that are passed over.
const DEPTH_MAX: usize = 64;

/// Most kinds of unknown things that are listed, and in a file to be repaired passed over.
const KINDS_MAX: usize = 64;

/// A file read leniently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignFile {
    /// The program as the runtimes read it; attributes that some runtimes require may be missing.
    pub program: Program,
    /// What was passed over, in file order, each kind once.
    pub deviations: Vec<Deviation>,
}

/// Something that every runtime silently ignores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Line of the first one.
    pub line: u32,
    /// The element it stands on or in.
    pub parent: String,
    /// Its name; all counted here have this name and parent.
    pub name: String,
    /// Whether it is an element, else an attribute.
    pub is_element: bool,
    /// How many there are.
    pub count: u64,
}

impl Deviation {
    pub(super) const fn attribute(line: u32, parent: String, name: String) -> Self {
        Self { line, parent, name, is_element: false, count: 1 }
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.is_element, &self.parent, &self.name) == (other.is_element, &other.parent, &other.name)
    }
}

/// `64 <copy> in <gpu>, the first in line 3`.
impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, parent, name, count, .. } = self;
        match self.is_element {
            true => write!(f, "{count} <{name}> in <{parent}>")?,
            false => write!(f, "{count} attribute `{name}` of <{parent}>")?,
        }
        write!(f, ", the first in line {line}")
    }
}

/// Reads a file for repair: unknown elements and attributes are passed over and noted, any runtime's spelling of the
/// collective is taken, and attributes that only some runtimes demand may be missing.
///
/// All else is read as by [`parse_msccl_xml`](super::parse_msccl_xml); `profile` says whose tables bound the text.
///
/// # Errors
/// As there, also for more than 64 unknown kinds of things. Never panics.
pub fn read_foreign_msccl_xml(text: &str, profile: Profile, stop: Stop<'_>) -> Result<ForeignFile, ParseError> {
    let mut parser = Parser::new(text, profile, Leniency::Repair, MSCCL_BYTES_MAX, stop)?;
    let program = parser.file()?;
    Ok(ForeignFile { program, deviations: parser.deviations })
}

/// Reads a file as the runtime of a profile does: it passes over unknown elements and attributes in silence, and here they
/// are noted, the first 64 kinds of them.
///
/// All else is read as by [`parse_msccl_xml_until`](super::parse_msccl_xml_until).
///
/// # Errors
/// As there. Never panics.
pub fn read_msccl_xml_as_runtime(
    text: &str,
    profile: Profile,
    bytes_max: usize,
    stop: Stop<'_>,
) -> Result<ForeignFile, ParseError> {
    let mut parser = Parser::new(text, profile, Leniency::Runtime, bytes_max, stop)?;
    let program = parser.file()?;
    Ok(ForeignFile { program, deviations: parser.deviations })
}

impl<'a> Parser<'a, '_> {
    /// Notes something that is passed over; false where a file to be repaired has too many kinds of such things.
    pub(super) fn note(&mut self, deviation: Deviation) -> bool {
        if let Some(known) = self.deviations.iter_mut().find(|known| known.is_like(&deviation)) {
            known.count += 1;
            return true;
        }
        let has_room = self.deviations.len() < KINDS_MAX;
        if has_room {
            self.deviations.push(deviation);
        }
        has_room || self.leniency == Leniency::Runtime
    }

    /// Skips an unknown element with all that is in it.
    pub(super) fn pass_over(&mut self, parent: &Element<'a>, element: &Element<'a>) -> Result<(), ParseError> {
        let deviation = Deviation {
            line: element.position.line,
            parent: parent.name.to_owned(),
            name: shorten(element.name),
            is_element: true,
            count: 1,
        };
        if !self.note(deviation) {
            let (found, parent) = (format!("<{}>", shorten(element.name)), parent.name.to_owned());
            return Err(ParseFault::Misplaced { found, parent, child: "known elements" }.at(element.position));
        }
        let mut open = if element.is_empty { Vec::new() } else { vec![element.name] };
        while let Some(&innermost) = open.last() {
            match self.next_node()? {
                Some(Node::Open(inner)) if inner.is_empty => {}
                Some(Node::Open(inner)) if open.len() < DEPTH_MAX => open.push(inner.name),
                Some(Node::Close { name, .. }) if name == innermost => drop(open.pop()),
                Some(node) => {
                    let fault = ParseFault::Misplaced {
                        found: node.describe(),
                        parent: shorten(innermost),
                        child: "what its kind holds",
                    };
                    return Err(fault.at(node.position()));
                }
                None => {
                    let fault = ParseFault::Unclosed { element: shorten(innermost) };
                    return Err(fault.at(self.reader.position()));
                }
            }
        }
        Ok(())
    }
}
