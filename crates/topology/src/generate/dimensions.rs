//! Networks of one building block per dimension, as simulators of training clusters describe them.

use std::num::NonZeroU64;

use crate::draft::TopologyDraft;
use crate::generate::arguments::{Arguments, count, quantity_error, value_error};
use crate::generate::catalogue::{ID_BYTES_MAX, coordinate_ids};
use crate::generate::error::ExpressionError;
use crate::generate::grammar::Argument;
use crate::generate::size::Size;
use crate::limits::TopologyLimits;
use crate::units::{Capacity, Latency};

/// Rate of a link where nothing is said: a 200 Gbps port.
const DEFAULT_RATE: u64 = 25_000_000_000;
/// What stands for the coordinate in the dimension of a switch.
const SWITCH_LETTER: &str = "s";

/// What joins the ranks of a line of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Each with the next, both ways.
    Ring,
    /// Each with every other.
    Complete,
    /// Each with one switch.
    Switch,
    /// Each one way to so many next ones, which share the rate.
    Unwound { next: usize },
}

/// One dimension.
#[derive(Clone, Copy, Debug)]
struct Dimension {
    block: Block,
    extent: usize,
    rate: Capacity,
}

const BLOCKS: &str =
    "ring, fc or switch, each with a number of ranks from 1, joined by `+`, such as `ring2+fc4+switch64`";

/// `dims:ring2+fc4+switch64,bw=200GB/s+100GB/s+50GB/s`: a grid with one kind of line for each dimension, the first slowest.
///
/// `bw` is the rate of a link of each dimension, or one for all; a switch has one link both ways to each rank of its line,
/// and the id of the line with `s` in the place of the coordinate. `unwind=7+1`, a number for each dimension of switches,
/// has each rank send to so many next ones of its line instead, with that part of the rate each.
pub(super) fn dims(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let dimensions = dimensions(arguments)?;
    size(&dimensions).check(limits)?;
    if 2 * dimensions.len() > ID_BYTES_MAX {
        return Err(value_error(arguments.bare()?, "at most 127 dimensions, for ids of at most 255 bytes"));
    }
    let rates = dimensions.iter().map(link_rate).collect::<Result<Vec<_>, _>>()?;
    let letters: Vec<Vec<String>> = dimensions
        .iter()
        .map(|dimension| (0..dimension.extent).map(|coordinate| coordinate.to_string()).collect())
        .collect();
    let ids = coordinate_ids(&letters);
    let mut draft = TopologyDraft::default();
    ids.iter().for_each(|id| draft.add_compute(id.as_str()));
    let mut stride = ids.len();
    for (position, (&Dimension { block, extent, .. }, rate)) in dimensions.iter().zip(rates).enumerate() {
        stride /= extent;
        if block == Block::Switch && extent > 1 {
            let mut letters = letters.clone();
            // As many as there were, so that coordinates are separated alike.
            letters[position] = vec![SWITCH_LETTER.to_owned(); extent];
            let lines = coordinate_ids(&letters);
            for (rank, id) in ids.iter().enumerate() {
                if (rank / stride).is_multiple_of(extent) {
                    draft.add_switch(lines[rank].as_str());
                }
                draft.add_both(id, &lines[rank], rate, Latency::default());
            }
            continue;
        }
        for (rank, id) in ids.iter().enumerate() {
            let own = rank / stride % extent;
            let other = |coordinate: usize| &ids[rank - own * stride + coordinate * stride];
            match block {
                Block::Ring if own + 1 < extent || extent > 2 => {
                    draft.add_both(id, other((own + 1) % extent), rate, Latency::default());
                }
                Block::Complete => {
                    (own + 1..extent).for_each(|to| draft.add_both(id, other(to), rate, Latency::default()));
                }
                Block::Unwound { next } => {
                    for ahead in 1..=next {
                        draft.add_link(id.as_str(), other((own + ahead) % extent).as_str(), rate, Latency::default());
                    }
                }
                Block::Ring | Block::Switch => {}
            }
        }
    }
    Ok(draft)
}

fn dimensions(arguments: &Arguments<'_>) -> Result<Vec<Dimension>, ExpressionError> {
    let list = arguments.bare()?;
    let mut blocks = list.value.split('+').map(|text| read_block(list, text)).collect::<Result<Vec<_>, _>>()?;
    if let Some(argument) = arguments.find("unwind") {
        unwind(&mut blocks, argument)?;
    }
    let rates = rates(arguments, blocks.len())?;
    Ok(blocks.into_iter().zip(rates).map(|((block, extent), rate)| Dimension { block, extent, rate }).collect())
}

fn read_block(argument: &Argument<'_>, text: &str) -> Result<(Block, usize), ExpressionError> {
    let names = [("ring", Block::Ring), ("fc", Block::Complete), ("switch", Block::Switch)];
    let found = names.into_iter().find_map(|(name, block)| Some((block, text.strip_prefix(name)?)));
    let (block, digits) = found.ok_or_else(|| value_error(argument, BLOCKS))?;
    let extent = count(argument, digits).map_err(|_| value_error(argument, BLOCKS))?;
    Ok((block, extent))
}

/// Replaces each dimension of switches by links.
fn unwind(blocks: &mut [(Block, usize)], argument: &Argument<'_>) -> Result<(), ExpressionError> {
    const EXPECTED: &str = "for each switch dimension, a number of next ranks below its number of ranks, joined by `+`";
    let refused = || value_error(argument, EXPECTED);
    let mut given = argument.value.split('+').map(|text| count(argument, text).map_err(|_| refused()));
    for (block, extent) in blocks.iter_mut().filter(|(block, _)| *block == Block::Switch) {
        let next = given.next().ok_or_else(refused)??;
        if next >= *extent {
            return Err(refused());
        }
        *block = Block::Unwound { next };
    }
    if given.next().is_some() { Err(refused()) } else { Ok(()) }
}

/// The rate of each dimension.
fn rates(arguments: &Arguments<'_>, dimensions: usize) -> Result<Vec<Capacity>, ExpressionError> {
    let Some(argument) = arguments.find("bw") else {
        return Ok(vec![arguments.rate("bw", DEFAULT_RATE)?; dimensions]);
    };
    let read = |text: &str| text.parse().map_err(|problem| quantity_error(argument, problem));
    let rates: Vec<Capacity> = argument.value.split('+').map(read).collect::<Result<_, _>>()?;
    match rates.len() {
        1 => Ok(vec![rates[0]; dimensions]),
        found if found == dimensions => Ok(rates),
        _ => Err(value_error(argument, "one rate, or one for each dimension joined by `+`")),
    }
}

/// Nodes and links by formula, saturating.
fn size(dimensions: &[Dimension]) -> Size {
    let ranks = dimensions.iter().fold(1_u128, |ranks, dimension| ranks.saturating_mul(dimension.extent as u128));
    let (mut switches, mut links) = (0_u128, 0_u128);
    for &Dimension { block, extent, .. } in dimensions {
        let wide = extent as u128;
        let from_each = match block {
            Block::Ring => wide.min(3) - 1,
            Block::Complete => wide - 1,
            Block::Switch => 2 * u128::from(extent > 1),
            Block::Unwound { next } => next as u128,
        };
        links = links.saturating_add(ranks.saturating_mul(from_each));
        if block == Block::Switch && extent > 1 {
            switches = switches.saturating_add(ranks / wide);
        }
    }
    Size { ranks, switches, links }
}

/// The rate of a link, which must be whole.
fn link_rate(dimension: &Dimension) -> Result<Capacity, ExpressionError> {
    let Block::Unwound { next } = dimension.block else { return Ok(dimension.rate) };
    let (whole, divisor) = (dimension.rate.bytes_per_sec(), next as u64);
    let rate = NonZeroU64::new(divisor).filter(|_| whole.is_multiple_of(divisor)).map(|divisor| whole / divisor);
    rate.and_then(Capacity::from_bytes_per_sec).ok_or(ExpressionError::NotExact {
        link: "links of an unwound switch",
        numerator: whole.into(),
        divisor: divisor.into(),
        keys: "bw, unwind",
    })
}
