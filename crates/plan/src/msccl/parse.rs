//! Reads a program from text, accepting exactly what the runtime's reader accepts and canopy can vouch for.
//!
//! Stricter than the runtimes in what they pass over in silence: unknown elements and attributes, repeated
//! attributes, numbers that are not plain decimals. Whether the program makes sense is the proof's business.

mod error;
mod reader;

use canopy_schedule::CollectiveKind;

pub use error::{ParseError, ParseFault};
use reader::{Element, Node, Reader};

use super::profile::Profile;
use super::program::{Buffer, Chunks, Operation, Program, Protocol, RankProgram, Step, ThreadBlock};

/// Most bytes of a text.
const BYTES_MAX: usize = 64 << 20;

/// Reads one `<algo>` element with everything in it.
///
/// # Errors
/// The first thing the runtime's reader would refuse, or would accept without doing what it says, with its line and
/// what to write instead. Never panics; O(bytes), memory about that of the text.
pub fn parse_msccl_xml(text: &str, profile: Profile) -> Result<Program, ParseError> {
    if text.len() > BYTES_MAX {
        return Err(ParseFault::TooLarge { bytes: text.len(), limit: BYTES_MAX }.at(1));
    }
    let mut parser = Parser { reader: Reader::new(text), profile };
    let program = match parser.reader.next_node()? {
        Some(Node::Open(element)) if element.name == "algo" => parser.algo(&element)?,
        Some(node) => return Err(ParseFault::Unexpected { found: node.describe(), expected: "<algo>" }.at(node.line())),
        None => return Err(ParseFault::Ended { expected: "<algo>" }.at(parser.reader.line())),
    };
    match parser.reader.next_node()? {
        None => Ok(program),
        Some(node) => Err(ParseFault::Unexpected { found: node.describe(), expected: "the end" }.at(node.line())),
    }
}

struct Parser<'a> {
    reader: Reader<'a>,
    profile: Profile,
}

impl<'a> Parser<'a> {
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
            collective: self.collective(&mut attributes)?,
            in_place: attributes.flag("inplace")?,
            out_of_place: attributes.optional_flag("outofplace")?,
            bytes_min: attributes.optional_bytes("minBytes")?,
            bytes_max: attributes.optional_bytes("maxBytes")?,
            thread_count: attributes.optional_count("nthreads")?,
            ranks: Vec::new(),
        };
        attributes.finish()?;
        program.ranks = self.children(element, "gpu", Self::rank)?;
        Ok(program)
    }

    fn collective(&self, attributes: &mut Attributes<'_, 'a>) -> Result<CollectiveKind, ParseError> {
        let spellings = "allgather, reduce_scatter, allreduce, broadcast, reduce or alltoall";
        attributes.word("coll", spellings, |word| self.profile.read_spelling(word))
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
        attributes.finish()?;
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
        attributes.finish()?;
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
        attributes.finish()?;
        self.children(element, "no element", |_, _| Ok(()))?;
        Ok(step)
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
            match self.reader.next_node()? {
                Some(Node::Open(element)) if element.name == name => {
                    if children.len() >= limit as usize {
                        let parent = parent.name.to_owned();
                        return Err(ParseFault::TooManyChildren { parent, child: name, limit }.at(element.line));
                    }
                    children.push(read(self, &element)?);
                }
                Some(Node::Close { name, .. }) if name == parent.name => return Ok(children),
                Some(node) => {
                    return Err(ParseFault::Misplaced {
                        found: node.describe(),
                        parent: parent.name.to_owned(),
                        child: name,
                    }
                    .at(node.line()));
                }
                None => return Err(ParseFault::Unclosed { element: parent.name.to_owned() }.at(self.reader.line())),
            }
        }
    }
}

/// Attributes of one element, each to be taken once.
struct Attributes<'e, 'a> {
    element: &'e Element<'a>,
    taken: u32,
}

impl<'e, 'a> Attributes<'e, 'a> {
    fn new(element: &'e Element<'a>) -> Self {
        Self { element, taken: 0 }
    }

    fn optional(&mut self, name: &'static str) -> Option<&'a str> {
        let position = self.element.attributes.iter().position(|(known, _)| *known == name)?;
        self.taken |= 1 << position;
        self.element.attributes.get(position).map(|&(_, value)| value)
    }

    fn required(&mut self, name: &'static str) -> Result<&'a str, ParseError> {
        let fault = || ParseFault::Missing { element: self.element.name.to_owned(), attribute: name };
        let error = fault().at(self.element.line);
        self.optional(name).ok_or(error)
    }

    fn bad(&self, attribute: &'static str, value: &str, expected: &'static str) -> ParseError {
        let value = value.chars().take(80).collect();
        ParseFault::BadValue { element: self.element.name.to_owned(), attribute, value, expected }.at(self.element.line)
    }

    fn name(&mut self, profile: Profile) -> Result<String, ParseError> {
        let value = self.required("name")?;
        if profile.accepts_name(value) {
            Ok(value.to_owned())
        } else {
            Err(self.bad("name", value, "1 to 63 letters, digits, `_`, `-` and `.`"))
        }
    }

    fn word<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ParseError> {
        let value = self.required(name)?;
        find(value).ok_or_else(|| self.bad(name, value, expected))
    }

    fn count(&mut self, name: &'static str) -> Result<u32, ParseError> {
        let value = self.required(name)?;
        self.read_count(name, value)
    }

    fn optional_count(&mut self, name: &'static str) -> Result<Option<u32>, ParseError> {
        self.optional(name).map(|value| self.read_count(name, value)).transpose()
    }

    fn read_count(&self, name: &'static str, value: &str) -> Result<u32, ParseError> {
        let number = plain_decimal(value).filter(|&number| number <= i32::MAX as u64);
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.bad(name, value, "a plain decimal number from 0 to 2147483647"))
    }

    fn count_or_none(&mut self, name: &'static str) -> Result<Option<u32>, ParseError> {
        match self.required(name)? {
            "-1" => Ok(None),
            value => self
                .read_count(name, value)
                .map(Some)
                .map_err(|_| self.bad(name, value, "-1 or a plain decimal number from 0 to 2147483647")),
        }
    }

    fn optional_bytes(&mut self, name: &'static str) -> Result<Option<u64>, ParseError> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        let number = plain_decimal(value).filter(|&number| i64::try_from(number).is_ok());
        number.map(Some).ok_or_else(|| self.bad(name, value, "a plain decimal number from 0 to 9223372036854775807"))
    }

    fn flag(&mut self, name: &'static str) -> Result<bool, ParseError> {
        self.word(name, "0 or 1", read_flag)
    }

    fn optional_flag(&mut self, name: &'static str) -> Result<Option<bool>, ParseError> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        read_flag(value).map(Some).ok_or_else(|| self.bad(name, value, "0 or 1"))
    }

    fn chunks(&mut self, buffer: &'static str, offset: &'static str) -> Result<Chunks, ParseError> {
        let buffer = self.word(buffer, "i, o or s", |word| {
            [Buffer::Input, Buffer::Output, Buffer::Scratch].into_iter().find(|buffer| buffer.letter() == word)
        })?;
        Ok(Chunks { buffer, offset: self.count_or_none(offset)? })
    }

    /// Refuses attributes that nobody asked for, and repeated ones.
    fn finish(self) -> Result<(), ParseError> {
        for (position, (name, _)) in self.element.attributes.iter().enumerate() {
            if self.taken & (1 << position) == 0 {
                let repeated = self.element.attributes.iter().take(position).any(|(earlier, _)| earlier == name);
                let (element, attribute) = (self.element.name.to_owned(), (*name).to_owned());
                let fault = match repeated {
                    true => ParseFault::Repeated { element, attribute },
                    false => ParseFault::UnknownAttribute { element, attribute },
                };
                return Err(fault.at(self.element.line));
            }
        }
        Ok(())
    }
}

fn read_flag(word: &str) -> Option<bool> {
    match word {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Digits without sign or leading zero: a leading zero means octal to the runtimes.
fn plain_decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
