//! Networks of ASTRA-sim's analytical back end: a grid with one kind of line for each dimension.
//!
//! Source: astra-sim/astra-network-analytical `input/`. The first dimension counts fastest, and 1 of `bandwidth` is 2³⁰
//! bytes per second.

use canopy_topology::{Capacity, DraftLink, Latency, TopologyDraft, shorten};
use serde::Deserialize;

use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::report::Report;
use crate::source::Source;
use crate::yaml::documents;

const KIND: FileKind = FileKind::AstraNetwork;

/// Most dimensions of a grid.
const DIMENSIONS_MAX: usize = 32;

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    start.contains("\nnpus_count:")
}

/// Numbers are read as text, since floats would not be exact.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    topology: Vec<String>,
    npus_count: Vec<usize>,
    bandwidth: Vec<String>,
    latency: Vec<String>,
}

/// What joins the ranks of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Ring,
    FullyConnected,
    Switch,
}

struct Dimension {
    block: Block,
    extent: usize,
    capacity: Capacity,
    latency: Latency,
}

/// Reads a network; ranks are called by their numbers, switches `switchD.N` by dimension and line.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let mut all: Vec<Document> = documents(KIND, source)?;
    let document = all.pop().filter(|_| all.is_empty());
    let document = document.ok_or_else(|| FileError::whole(KIND, "the file is not one document; give one network"))?;
    let mut report = Report::default();
    let dimensions = dimensions(&document, &mut report)?;
    let ranks = dimensions.iter().try_fold(1_usize, |product, dimension| product.checked_mul(dimension.extent));
    let ranks = ranks.unwrap_or(usize::MAX);
    let mut counts = (ranks, 0_usize);
    for Dimension { block, extent, .. } in &dimensions {
        let per_rank = match block {
            Block::Ring | Block::Switch => 2,
            Block::FullyConnected => extent - 1,
        };
        counts.0 = counts.0.saturating_add(if *block == Block::Switch { ranks / extent } else { 0 });
        counts.1 = counts.1.saturating_add(ranks.saturating_mul(per_rank));
    }
    source.require(counts.0, counts.1)?;
    let mut draft = TopologyDraft::default();
    (0..ranks).for_each(|rank| draft.add_compute(rank.to_string()));
    let mut stride = 1;
    for (number, dimension) in dimensions.iter().enumerate() {
        source.ask()?;
        add_lines(&mut draft, (number, dimension), ranks, stride);
        stride *= dimension.extent;
    }
    let extents: Vec<String> = dimensions.iter().map(|dimension| dimension.extent.to_string()).collect();
    report.understood.push(format!("{ranks} ranks in a grid of {}", extents.join("x")));
    Ok(Content::Network(draft, report))
}

/// Adds what joins the ranks of all lines of a dimension.
fn add_lines(draft: &mut TopologyDraft, (number, dimension): (usize, &Dimension), ranks: usize, stride: usize) {
    let &Dimension { block, extent, capacity, latency } = dimension;
    if extent < 2 {
        return;
    }
    let mut add = |from: String, to: String| draft.links.push(DraftLink { from, to, capacity, latency, count: 1 });
    for rank in 0..ranks {
        let own = rank / stride % extent;
        let other = |place: usize| (rank - own * stride + place * stride).to_string();
        match block {
            // Two ranks are neighbours once.
            Block::Ring if extent == 2 => add(rank.to_string(), other(1 - own)),
            Block::Ring => {
                add(rank.to_string(), other((own + 1) % extent));
                add(rank.to_string(), other((own + extent - 1) % extent));
            }
            Block::FullyConnected => {
                (0..extent).filter(|&place| place != own).for_each(|place| add(rank.to_string(), other(place)));
            }
            Block::Switch => {
                let switch = format!("switch{number}.{}", rank / (stride * extent) * stride + rank % stride);
                add(rank.to_string(), switch.clone());
                add(switch, rank.to_string());
            }
        }
    }
    if block == Block::Switch {
        (0..ranks / extent).for_each(|line| draft.add_switch(format!("switch{number}.{line}")));
    }
}

fn dimensions(document: &Document, report: &mut Report) -> Result<Vec<Dimension>, ImportError> {
    let Document { topology, npus_count, bandwidth, latency } = document;
    let count = topology.len();
    if !(1..=DIMENSIONS_MAX).contains(&count) || [npus_count.len(), bandwidth.len(), latency.len()] != [count; 3] {
        let problem = "topology, npus_count, bandwidth and latency need one entry for each of 1 to 32 dimensions";
        return Err(FileError::whole(KIND, problem).into());
    }
    let mut dimensions = Vec::with_capacity(count);
    for (number, name) in topology.iter().enumerate() {
        let error =
            |field: &str, problem: String| FileError::whole(KIND, problem).of_field(format!("{field}[{number}]"));
        let block = match name.as_str() {
            "Ring" => Block::Ring,
            "FullyConnected" => Block::FullyConnected,
            "Switch" => Block::Switch,
            _ => {
                let found = shorten(name);
                let problem = format!("topology[{number}] is `{found}`; use Ring, FullyConnected or Switch");
                return Err(error("topology", problem).into());
            }
        };
        let extent = npus_count[number];
        if extent == 0 {
            return Err(error("npus_count", format!("npus_count[{number}] is 0; write at least 1")).into());
        }
        let text = &bandwidth[number];
        let capacity = format!("{text}GiB/s").parse().map_err(|_| {
            error("bandwidth", format!("bandwidth[{number}] is `{}`; write a positive number of GB/s", shorten(text)))
        })?;
        let text = &latency[number];
        // Only digits may be cut off: of an exponent or a unit, the rest would be another number.
        let decimal = text.split_once('.').filter(|(_, part)| part.bytes().all(|byte| byte.is_ascii_digit()));
        let nanos = decimal.map_or(text.as_str(), |(nanos, _)| nanos);
        if decimal.is_some_and(|(_, part)| part.bytes().any(|byte| byte != b'0')) {
            report.assumed.push(format!("latency[{number}] of {} ns is rounded down to {nanos} ns", shorten(text)));
        }
        let latency = format!("{nanos}ns").parse().map_err(|_| {
            error(
                "latency",
                format!("latency[{number}] is `{}`; write a number of nanoseconds such as 936.25", shorten(text)),
            )
        })?;
        dimensions.push(Dimension { block, extent, capacity, latency });
    }
    Ok(dimensions)
}
