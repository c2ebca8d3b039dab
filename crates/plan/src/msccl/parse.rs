//! Reads a program from text, accepting exactly what the runtime's reader accepts and canopy can vouch for.
//!
//! Stricter than the runtimes in what they pass over in silence: unknown elements and attributes, repeated
//! attributes, numbers that are not plain decimals. Whether the program makes sense is the proof's business.
//!
//! [`read_msccl_xml_as_runtime`] passes over unknown elements and attributes as they do, and lists them.
//! [`read_foreign_msccl_xml`] reads the same text more leniently, so that it can be repaired: it passes over what
//! the runtimes pass over and takes any runtime's spelling, and says so.

mod attributes;
mod error;
mod foreign;
mod reader;

use attributes::Attributes;
pub use error::{ParseError, ParseFault};
pub use foreign::{Deviation, ForeignFile, read_foreign_msccl_xml, read_msccl_xml_as_runtime};
use reader::{Element, Node, Reader};

use super::profile::Profile;
use super::program::{Operation, Program, Protocol, Purpose, RankProgram, Step, ThreadBlock};
use crate::proof::Stop;

/// Most bytes of a text that anybody may have written: a program is several times as large as the shortest text of it.
pub const MSCCL_BYTES_MAX: usize = 64 << 20;

/// Most bytes of a text that canopy has written, or that somebody vouches for: 1,024 ranks fill half of it.
pub const MSCCL_OWN_BYTES_MAX: usize = 512 << 20;

/// Reads one `<algo>` element of at most [`MSCCL_BYTES_MAX`] bytes with everything in it; see [`parse_msccl_xml_until`],
/// which it calls without ever stopping.
///
/// # Errors
/// As there.
pub fn parse_msccl_xml(text: &str, profile: Profile) -> Result<Program, ParseError> {
    parse_msccl_xml_until(text, profile, MSCCL_BYTES_MAX, &|| false)
}

/// Reads one `<algo>` element of at most so many bytes with everything in it.
///
/// # Errors
/// The first thing the runtime's reader would refuse, or would accept without doing what it says, with its line and
/// column and what to write instead; or `stop`, asked at every tag, returned true. Never panics; O(bytes), memory about
/// that of the text.
pub fn parse_msccl_xml_until(
    text: &str,
    profile: Profile,
    bytes_max: usize,
    stop: Stop<'_>,
) -> Result<Program, ParseError> {
    Parser::new(text, profile, Leniency::None, bytes_max, stop)?.file()
}

/// What is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leniency {
    /// Nothing: a file of canopy's own has nothing to pass over.
    None,
    /// What the runtime passes over.
    Runtime,
    /// What any runtime passes over, another one's spelling, and attributes that are missing.
    Repair,
}

struct Parser<'a, 's> {
    reader: Reader<'a>,
    profile: Profile,
    leniency: Leniency,
    /// What was passed over.
    deviations: Vec<Deviation>,
    stop: Stop<'s>,
}

impl<'a, 's> Parser<'a, 's> {
    fn new(
        text: &'a str,
        profile: Profile,
        leniency: Leniency,
        bytes_max: usize,
        stop: Stop<'s>,
    ) -> Result<Self, ParseError> {
        let reader = Reader::new(text);
        if text.len() > bytes_max {
            return Err(ParseFault::TooLarge { bytes: text.len(), limit: bytes_max }.at(reader.position()));
        }
        Ok(Self { reader, profile, leniency, deviations: Vec::new(), stop })
    }

    /// The whole text.
    fn file(&mut self) -> Result<Program, ParseError> {
        let unexpected = |node: Node<'_>, expected| {
            let fault = ParseFault::Unexpected { found: node.describe(), expected };
            fault.at(node.position())
        };
        let program = match self.next_node()? {
            Some(Node::Open(element)) if element.name == "algo" => self.algo(&element)?,
            Some(node) => return Err(unexpected(node, "<algo>")),
            None => return Err(ParseFault::Ended { expected: "<algo>" }.at(self.reader.position())),
        };
        match self.next_node()? {
            None => Ok(program),
            Some(node) => Err(unexpected(node, "the end")),
        }
    }

    fn next_node(&mut self) -> Result<Option<Node<'a>>, ParseError> {
        if (self.stop)() {
            return Err(ParseFault::Stopped.at(self.reader.position()));
        }
        self.reader.next_node()
    }

    fn algo(&mut self, element: &Element<'a>) -> Result<Program, ParseError> {
        let mut attributes = Attributes::new(element);
        let mut program = Program {
            name: attributes.name(self.profile)?,
            protocol: attributes.word("proto", "Simple, LL or LL128", |word| {
                Protocol::ALL.into_iter().find(|protocol| protocol.name() == word)
            })?,
            channel_count: attributes.count("nchannels")?,
            chunk_count: attributes.count("nchunksperloop")?,
            rank_count: attributes.count("ngpus")?,
            purpose: self.purpose(&mut attributes)?,
            in_place: attributes.flag("inplace")?,
            out_of_place: attributes.optional_flag("outofplace")?,
            bytes_min: attributes.optional_bytes("minBytes")?,
            bytes_max: attributes.optional_bytes("maxBytes")?,
            thread_count: attributes.optional_count("nthreads")?,
            ranks: Vec::new(),
        };
        self.demand(&attributes, &program)?;
        self.finish(element, attributes)?;
        program.ranks = self.children(element, "gpu", Self::rank)?;
        Ok(program)
    }

    /// Some runtimes refuse a file without attributes that others do not look at.
    fn demand(&self, attributes: &Attributes<'_, 'a>, program: &Program) -> Result<(), ParseError> {
        let given = [
            ("name", !program.name.is_empty()),
            ("outofplace", program.out_of_place.is_some()),
            ("minBytes", program.bytes_min.is_some()),
            ("maxBytes", program.bytes_max.is_some()),
        ];
        let required = self.profile.limits().required;
        match given.into_iter().find(|(name, is_given)| !is_given && required.contains(name)) {
            Some((name, _)) if self.leniency != Leniency::Repair => Err(attributes.missing(name)),
            _ => Ok(()),
        }
    }

    fn purpose(&mut self, attributes: &mut Attributes<'_, 'a>) -> Result<Purpose, ParseError> {
        let words = self.profile.limits().collective_words;
        match self.leniency {
            Leniency::None | Leniency::Runtime => {
                attributes.word("coll", words, |word| read_purpose(self.profile, word))
            }
            Leniency::Repair => attributes.word("coll", words, |word| {
                let others = Profile::ALL.into_iter().filter(|other| *other != self.profile);
                std::iter::once(self.profile).chain(others).find_map(|profile| read_purpose(profile, word))
            }),
        }
    }

    fn rank(&mut self, element: &Element<'a>) -> Result<RankProgram, ParseError> {
        let mut attributes = Attributes::new(element);
        let mut rank = RankProgram {
            rank: attributes.count("id")?,
            input_chunks: attributes.count("i_chunks")?,
            output_chunks: attributes.count("o_chunks")?,
            scratch_chunks: attributes.count("s_chunks")?,
            thread_blocks: Vec::new(),
        };
        self.finish(element, attributes)?;
        rank.thread_blocks = self.children(element, "tb", Self::thread_block)?;
        Ok(rank)
    }

    fn thread_block(&mut self, element: &Element<'a>) -> Result<ThreadBlock, ParseError> {
        let mut attributes = Attributes::new(element);
        let mut block = ThreadBlock {
            id: attributes.count("id")?,
            send: attributes.count_or_none("send")?,
            receive: attributes.count_or_none("recv")?,
            channel: attributes.count("chan")?,
            steps: Vec::new(),
        };
        self.finish(element, attributes)?;
        block.steps = self.children(element, "step", Self::step)?;
        Ok(block)
    }

    fn step(&mut self, element: &Element<'a>) -> Result<Step, ParseError> {
        let mut attributes = Attributes::new(element);
        let step = Step {
            index: attributes.count("s")?,
            operation: attributes.word("type", "s, r, rcs, rrs, rrc, rrcs, cpy, re or nop", |word| {
                Operation::ALL.into_iter().find(|operation| operation.name() == word)
            })?,
            source: attributes.chunks("srcbuf", "srcoff")?,
            destination: attributes.chunks("dstbuf", "dstoff")?,
            chunk_count: attributes.count("cnt")?,
            wait_block: attributes.count_or_none("depid")?,
            wait_step: attributes.count_or_none("deps")?,
            is_awaited: attributes.flag("hasdep")?,
        };
        self.finish(element, attributes)?;
        self.children(element, "no element", |_, _| Ok(()))?;
        Ok(step)
    }

    /// Refuses attributes that nobody asked for, or notes them.
    fn finish(&mut self, element: &Element<'a>, attributes: Attributes<'_, 'a>) -> Result<(), ParseError> {
        for unknown in attributes.unknown()? {
            let (element, attribute) = (element.name.to_owned(), unknown.name.to_owned());
            let deviation = Deviation::attribute(unknown.position.line, element.clone(), attribute.clone());
            if self.leniency == Leniency::None || !self.note(deviation) {
                return Err(ParseFault::UnknownAttribute { element, attribute }.at(unknown.position));
            }
        }
        Ok(())
    }

    /// Reads the children of an element up to its closing tag; all must have one name.
    fn children<T>(
        &mut self,
        parent: &Element<'a>,
        name: &'static str,
        mut read: impl FnMut(&mut Self, &Element<'a>) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut children = Vec::new();
        if parent.is_empty {
            return Ok(children);
        }
        let limit = self.profile.limits().children;
        loop {
            match self.next_node()? {
                Some(Node::Open(element)) if element.name == name => {
                    if children.len() >= limit as usize {
                        let parent = parent.name.to_owned();
                        return Err(ParseFault::TooManyChildren { parent, child: name, limit }.at(element.position));
                    }
                    children.push(read(self, &element)?);
                }
                Some(Node::Close { name, .. }) if name == parent.name => return Ok(children),
                Some(Node::Open(element)) if self.leniency != Leniency::None => self.pass_over(parent, &element)?,
                Some(node) => {
                    return Err(ParseFault::Misplaced {
                        found: node.describe(),
                        parent: parent.name.to_owned(),
                        child: name,
                    }
                    .at(node.position()));
                }
                None => {
                    let fault = ParseFault::Unclosed { element: parent.name.to_owned() };
                    return Err(fault.at(self.reader.position()));
                }
            }
        }
    }
}

/// What a word in `coll` stands for.
fn read_purpose(profile: Profile, word: &str) -> Option<Purpose> {
    let unjudged = || profile.limits().collectives_unjudged.iter().find(|known| **known == word);
    profile.read_spelling(word).map(Purpose::Collective).or_else(|| unjudged().map(|word| Purpose::Unjudged(word)))
}

#[cfg(test)]
mod tests;
