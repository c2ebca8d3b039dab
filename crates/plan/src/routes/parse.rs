//! Reads a program from text. Unknown elements and attributes are errors: strictness finds mistakes early.
//!
//! Whether the program makes sense is the proof's business.

use canopy_schedule::CollectiveKind;
use canopy_topology::Rate;

use super::program::{Node, Port, Program, QueuePair, RankProgram, Role};
use crate::oneccl::{Attributes, Document, ParseError, RankLimit, Tag, plain};
use crate::proof::Stop;

/// Most bytes of a text: a thousand ranks have a hundred million. The program takes as many again at most.
pub const OWN_BYTES_MAX: usize = 1 << 30;

/// Most layers of a plan: far more than any fabric has.
pub(super) const LAYERS_MAX: u32 = 4096;

/// Most characters of a rate.
const RATE_MAX: usize = 256;

/// Whether a text is meant to be such a plan: its first element, after declaration and comments, is `<routeplan`.
pub fn is_plan(text: &str) -> bool {
    Document::begins_with(text, "routeplan")
}

/// Reads one plan; see [`parse_until`], which it calls without ever stopping.
///
/// # Errors
/// As there.
pub fn parse(text: &str) -> Result<Program, ParseError> {
    parse_until(text, &|| false)
}

/// Reads one plan of at most [`OWN_BYTES_MAX`] bytes.
///
/// # Errors
/// The first thing that the format does not know or allow, with its line and column and what to write instead; or
/// `stop`, asked at every tag, returned true. Never panics; O(bytes).
pub fn parse_until(text: &str, stop: Stop<'_>) -> Result<Program, ParseError> {
    let mut document = Document::new(text, OWN_BYTES_MAX, stop)?;
    let root = document.root("routeplan", "<routeplan>")?;
    let mut program = head(&root)?;
    if !root.is_empty {
        while let Some(tag) = document.next_if("node")? {
            program.nodes.push(node(&mut document, &tag)?);
        }
        while let Some(tag) = document.next_if("rank")? {
            program.ranks.push(rank(&mut document, &tag)?);
        }
    }
    document.close(&root, "<node>, <rank> in this order, or </routeplan>")?;
    document.end()?;
    Ok(program)
}

fn node(document: &mut Document<'_, '_>, tag: &Tag<'_>) -> Result<Node, ParseError> {
    let mut attributes = Attributes::new("node", tag);
    let mut node = Node {
        id: attributes.count("id")?,
        name: attributes.text("name")?,
        role: attributes
            .word("kind", "rank, switch or forwarder", |word| Role::ALL.into_iter().find(|role| role.name() == word))?,
        ports: Vec::new(),
    };
    attributes.finish()?;
    if !tag.is_empty {
        while let Some(tag) = document.next_if("port")? {
            let mut attributes = Attributes::new("port", &tag);
            node.ports.push(Port {
                id: attributes.count("id")?,
                to: attributes.count("to")?,
                parallel: attributes.count("parallel")?,
                rate: attributes.word("rate", "bytes per second: a whole number of 64 bits, at least 1", |text| {
                    plain(text).filter(|rate| *rate > 0)
                })?,
            });
            attributes.finish()?;
            document.close(&tag, "</port>")?;
        }
    }
    document.close(tag, "<port> or </node>")?;
    Ok(node)
}

fn rank(document: &mut Document<'_, '_>, tag: &Tag<'_>) -> Result<RankProgram, ParseError> {
    let mut attributes = Attributes::new("rank", tag);
    let mut rank = RankProgram {
        rank: attributes.count("id")?,
        input_chunks: attributes.count("i_chunks")?,
        output_chunks: attributes.count("o_chunks")?,
        queue_pairs: Vec::new(),
        ports: Vec::new(),
    };
    attributes.finish()?;
    if !tag.is_empty {
        while let Some(tag) = document.next_if("qp")? {
            let pair = queue_pair(&tag, &mut rank.ports)?;
            rank.queue_pairs.push(pair);
            document.close(&tag, "</qp>")?;
        }
    }
    document.close(tag, "<qp> or </rank>")?;
    Ok(rank)
}

/// A queue pair; its ports go to those of its rank.
fn queue_pair(tag: &Tag<'_>, ports: &mut Vec<u32>) -> Result<QueuePair, ParseError> {
    let mut attributes = Attributes::new("qp", tag);
    // A text of 2³⁰ bytes has fewer numbers.
    let length = |ports: &Vec<u32>| u32::try_from(ports.len()).unwrap_or(u32::MAX);
    let start = length(ports);
    let pair = QueuePair {
        id: attributes.count("id")?,
        destination: attributes.count("dst")?,
        layer: attributes.count("layer")?,
        ports: attributes.word("ports", "numbers of ports, one space between them", |text| {
            text.split(' ').try_for_each(|port| plain(port).map(|port| ports.push(port)))?;
            Some(start..length(ports))
        })?,
        input_first: attributes.count("i_off")?,
        output_first: attributes.count("o_off")?,
        chunk_count: attributes.count("cnt")?,
    };
    attributes.finish()?;
    Ok(pair)
}

/// The attributes of the root element.
fn head(tag: &Tag<'_>) -> Result<Program, ParseError> {
    let mut attributes = Attributes::new("routeplan", tag);
    attributes.word("version", "1, the only version there is", |version| (version == "1").then_some(()))?;
    let name = attributes.label("name")?;
    let kinds = [CollectiveKind::Gather, CollectiveKind::Scatter, CollectiveKind::AllToAll];
    let (collective, rank_count) = attributes.collective(
        RankLimit::LISTED,
        &kinds,
        "gather, scatter or alltoall",
        "one of the ranks, and only for gather and scatter",
    )?;
    let program = Program {
        name,
        collective,
        rank_count,
        block_chunks: attributes
            .word("blockchunks", "1 to 4294967295", |value| plain(value).filter(|chunks| *chunks > 0))?,
        layer_count: attributes
            .word("nlayers", "1 to 4096", |value| plain(value).filter(|layers| (1..=LAYERS_MAX).contains(layers)))?,
        routes_max: attributes.count("maxroutes")?,
        algbw: attributes.word("algbw", "bytes per second as a whole number or a fraction such as 7/3", rate)?,
        bytes_min: attributes.bytes("minbytes")?,
        bytes_max: attributes.bytes("maxbytes")?,
        nodes: Vec::new(),
        ranks: Vec::new(),
    };
    attributes.finish()?;
    Ok(program)
}

/// A rate as it is written, and in no other way.
fn rate(text: &str) -> Option<Rate> {
    let rate: Rate = Some(text).filter(|text| text.len() <= RATE_MAX)?.parse().ok()?;
    (rate.to_string() == text).then_some(rate)
}

#[cfg(test)]
mod tests;
