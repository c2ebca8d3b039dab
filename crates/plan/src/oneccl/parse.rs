//! Reads a program from text. Unknown elements and attributes are errors: strictness finds mistakes early.
//!
//! Whether the program makes sense is the proof's business.

mod attributes;
mod document;
mod error;
mod reader;

use canopy_schedule::CollectiveKind;

pub(super) use attributes::VALUE_MAX;
pub(crate) use attributes::{Attributes, RANKS_MAX, RankLimit, is_label, plain};
pub(crate) use document::Document;
pub(crate) use reader::Tag;

pub use error::{ParseError, ParseFault};

use super::program::{Completion, Local, Meta, Program, RankProgram, Receive, Route, Scope, Send, Step};
use crate::proof::Stop;

/// Most bytes of a text that anybody may have written: a program is several times as large as the shortest text of it.
pub const BYTES_MAX: usize = 64 << 20;

/// Most bytes of a text that canopy has written, or that somebody vouches for.
pub const OWN_BYTES_MAX: usize = 512 << 20;

/// Most statements about a plan.
const META_MAX: usize = 64;

/// Whether a text is meant to be such a plan: its first element, after declaration and comments, is `<onecclplan`.
pub fn is_plan(text: &str) -> bool {
    Document::begins_with(text, "onecclplan")
}

/// Reads one plan of at most [`BYTES_MAX`] bytes; see [`parse_until`], which it calls without ever stopping.
///
/// # Errors
/// As there.
pub fn parse(text: &str) -> Result<Program, ParseError> {
    parse_until(text, BYTES_MAX, &|| false)
}

/// Reads one plan of at most so many bytes.
///
/// # Errors
/// The first thing that the format does not know or allow, with its line and column and what to write instead; or
/// `stop`, asked at every tag, returned true. Never panics; O(bytes), memory several times that of the text.
pub fn parse_until(text: &str, bytes_max: usize, stop: Stop<'_>) -> Result<Program, ParseError> {
    let mut document = Document::new(text, bytes_max, stop)?;
    let root = document.root("onecclplan", "<onecclplan>")?;
    let program = document.plan(&root)?;
    document.end()?;
    Ok(program)
}

/// Reads the plan of one rank alone, of at most [`BYTES_MAX`] bytes: version 2 of the format.
///
/// # Errors
/// As those of [`parse_until`]. Never panics; O(bytes), memory several times that of the text.
pub fn parse_rank_plan(text: &str) -> Result<Program, ParseError> {
    let mut document = Document::new(text, BYTES_MAX, &|| false)?;
    let root = document.root("onecclplan", "<onecclplan>")?;
    let program = document.version(&root, &ONE_RANK)?;
    document.end()?;
    Ok(program)
}

/// What tells a version of the format from others.
struct Version {
    number: &'static str,
    expected: &'static str,
    ranks: RankLimit,
    /// Most `<rank>` elements.
    listed_max: usize,
}

const ALL_RANKS: Version = Version {
    number: "1",
    expected: "1, a plan of all ranks; 2 is one of a single rank",
    ranks: RankLimit::LISTED,
    listed_max: RANKS_MAX as usize,
};

/// Has a number for each chunk, and so for each rank, that sums of two fit in.
const ONE_RANK: Version = Version {
    number: "2",
    expected: "2, a plan of a single rank; 1 is one of all ranks",
    ranks: RankLimit { most: 1 << 30, expected: "2 to 1073741824" },
    listed_max: 1,
};

impl<'a> Document<'a, '_> {
    fn plan(&mut self, tag: &Tag<'a>) -> Result<Program, ParseError> {
        self.version(tag, &ALL_RANKS)
    }

    fn version(&mut self, tag: &Tag<'a>, version: &Version) -> Result<Program, ParseError> {
        let mut program = head(tag, version)?;
        if !tag.is_empty {
            while let Some(tag) = self.next_if("meta")? {
                let meta = self.meta(&tag)?;
                if program.meta.len() == META_MAX {
                    return Err(ParseFault::TooMany { what: "<meta> of a plan", limit: META_MAX }.at(tag.position));
                }
                program.meta.push(meta);
            }
            if let Some(tag) = self.next_if("routes")? {
                program.routes = self.routes(&tag)?;
            }
            while let Some(tag) = self.next_if("rank")? {
                if program.ranks.len() == version.listed_max {
                    let limit = version.listed_max;
                    return Err(ParseFault::TooMany { what: "<rank> of a plan", limit }.at(tag.position));
                }
                program.ranks.push(self.rank(&tag)?);
            }
        }
        if version.listed_max == 1 && program.ranks.iter().all(|rank| rank.rank >= program.rank_count) {
            let found = program.ranks.first().map_or("no <rank>".to_owned(), |rank| format!("rank {}", rank.rank));
            return Err(
                ParseFault::Unexpected { found, expected: "one <rank> with an id below nranks" }.at(tag.position)
            );
        }
        self.close(tag, "<meta>, <routes>, <rank> in this order, or </onecclplan>")?;
        Ok(program)
    }

    fn meta(&mut self, tag: &Tag<'a>) -> Result<Meta, ParseError> {
        let mut attributes = Attributes::new("meta", tag);
        let meta = Meta { key: attributes.label("key")?, value: attributes.statement("value")? };
        attributes.finish()?;
        self.close(tag, "</meta>")?;
        Ok(meta)
    }

    fn routes(&mut self, tag: &Tag<'a>) -> Result<Vec<Route>, ParseError> {
        Attributes::new("routes", tag).finish()?;
        let mut routes = Vec::new();
        if !tag.is_empty {
            while let Some(tag) = self.next_if("route")? {
                let mut attributes = Attributes::new("route", &tag);
                routes.push(Route {
                    id: attributes.count("id")?,
                    source: attributes.count("src")?,
                    destination: attributes.count("dst")?,
                    layer: attributes.count("layer")?,
                    hops: attributes.word("hops", "numbers of nodes, one space between them", |text| {
                        text.split(' ').map(plain).collect()
                    })?,
                });
                attributes.finish()?;
                self.close(&tag, "</route>")?;
            }
        }
        self.close(tag, "<route> or </routes>")?;
        Ok(routes)
    }

    fn rank(&mut self, tag: &Tag<'a>) -> Result<RankProgram, ParseError> {
        let mut attributes = Attributes::new("rank", tag);
        let mut rank = RankProgram {
            rank: attributes.count("id")?,
            input_chunks: attributes.count("i_chunks")?,
            output_chunks: attributes.count("o_chunks")?,
            scratch_chunks: attributes.count("s_chunks")?,
            steps: Vec::new(),
        };
        attributes.finish()?;
        if !tag.is_empty {
            while let Some(tag) = self.next_if("step")? {
                rank.steps.push(self.step(&tag)?);
            }
        }
        self.close(tag, "<step> or </rank>")?;
        Ok(rank)
    }

    fn step(&mut self, tag: &Tag<'a>) -> Result<Step, ParseError> {
        let mut attributes = Attributes::new("step", tag);
        let index = attributes.count("t")?;
        attributes.finish()?;
        let mut step = Step { index, sends: Vec::new(), receives: Vec::new(), completion: None };
        if !tag.is_empty {
            while let Some(tag) = self.next_if("send")? {
                step.sends.push(self.send(&tag)?);
            }
            while let Some(tag) = self.next_if("recv")? {
                step.receives.push(self.receive(&tag)?);
            }
            if let Some(tag) = self.next_if("sync")? {
                let scope = self.sync(&tag)?;
                step.completion = Some(self.completion(scope)?);
            }
        }
        let expected = match &step.completion {
            None => "<send>, <recv>, <sync> in this order, or </step>; local work needs a <sync> before it",
            Some(_) => "<copy> or <reduce>, a last <sync>, or </step>",
        };
        self.close(tag, expected)?;
        Ok(step)
    }

    fn send(&mut self, tag: &Tag<'a>) -> Result<Send, ParseError> {
        let mut attributes = Attributes::new("send", tag);
        let (peer, span) = (attributes.count("peer")?, attributes.span("buf", "off")?);
        let route = attributes.optional_count("route")?;
        attributes.finish()?;
        self.close(tag, "</send>")?;
        Ok(Send { peer, span, route })
    }

    fn receive(&mut self, tag: &Tag<'a>) -> Result<Receive, ParseError> {
        let mut attributes = Attributes::new("recv", tag);
        let (peer, span) = (attributes.count("peer")?, attributes.span("buf", "off")?);
        attributes.finish()?;
        self.close(tag, "</recv>")?;
        Ok(Receive { peer, span })
    }

    fn sync(&mut self, tag: &Tag<'a>) -> Result<Scope, ParseError> {
        let mut attributes = Attributes::new("sync", tag);
        let scope = attributes
            .optional("scope", "local or all", |word| Scope::ALL.into_iter().find(|scope| scope.name() == word))?;
        attributes.finish()?;
        self.close(tag, "</sync>")?;
        Ok(scope.unwrap_or(Scope::Local))
    }

    fn completion(&mut self, scope: Scope) -> Result<Completion, ParseError> {
        let mut completion = Completion { scope, locals: Vec::new(), after: None };
        loop {
            let (element, tag) = match self.next_if("copy")? {
                Some(tag) => ("copy", tag),
                None => match self.next_if("reduce")? {
                    Some(tag) => ("reduce", tag),
                    None => break,
                },
            };
            let mut attributes = Attributes::new(element, &tag);
            let source = attributes.span("src", "srcoff")?;
            let destination = attributes.span("dst", "dstoff")?;
            attributes.finish()?;
            self.close(&tag, "its end")?;
            completion.locals.push(Local { is_reduction: element == "reduce", source, destination });
        }
        if let Some(tag) = self.next_if("sync")? {
            completion.after = Some(self.sync(&tag)?);
        }
        Ok(completion)
    }
}

/// The attributes of the root element.
fn head(tag: &Tag<'_>, version: &Version) -> Result<Program, ParseError> {
    let mut attributes = Attributes::new("onecclplan", tag);
    attributes.word("version", version.expected, |found| (found == version.number).then_some(()))?;
    let name = attributes.label("name")?;
    let (collective, rank_count) = attributes.collective(
        version.ranks,
        &CollectiveKind::ALL,
        "allgather, reducescatter, allreduce, broadcast, reduce, gather, scatter or alltoall",
        "one of the ranks, and only for broadcast, reduce, gather and scatter",
    )?;
    let program = Program {
        name,
        collective,
        rank_count,
        chunk_count: attributes
            .word("nchunks", "1 to 4294967295", |value| plain(value).filter(|chunks| *chunks > 0))?,
        in_place: attributes.word("inplace", "0 or 1", |value| match value {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })?,
        instances: attributes
            .optional("instances", "1 to 64", |value| plain(value).filter(|times| (1..=64).contains(times)))?
            .unwrap_or(1),
        bytes_min: attributes.bytes("minbytes")?,
        bytes_max: Some(attributes.bytes("maxbytes")?).filter(|bytes| *bytes > 0),
        meta: Vec::new(),
        routes: Vec::new(),
        ranks: Vec::new(),
    };
    attributes.finish()?;
    Ok(program)
}

#[cfg(test)]
mod tests;
