//! How long collectives take that share a network, by the bytes that they put on its links.

use std::collections::HashMap;
use std::num::NonZeroU64;

use canopy_topology::{LinkIndex, Ratio, Topology};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero as _;

use crate::check::{CheckError, StructureError, link_loads};
use crate::transfer::TransferGraph;

/// A collective on a part of the network.
#[derive(Clone, Copy, Debug)]
pub struct SharedPart<'a> {
    /// What it sends.
    pub graph: &'a TransferGraph,
    /// The network that it was made for: nodes of the whole one, by their ids. Its rates do not count.
    pub topology: &'a Topology,
    /// *Size* of the collective in bytes.
    pub size_bytes: NonZeroU64,
}

/// Why collectives do not share a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SharedTimeError {
    #[error("part {part} sends from {from} to {to}, between which the network has no link")]
    NoLink { part: usize, from: String, to: String },
    #[error("part {part}: {error}")]
    Loads { part: usize, error: Box<CheckError> },
    #[error("nothing is sent")]
    Nothing,
}

/// The seconds that the busiest link needs for the bytes of all collectives: what they take together in the bandwidth
/// limit.
///
/// Parallel links count as one, and bytes as if they were spread over them evenly.
///
/// * **In.** Graphs that [`check`](crate::check) accepted for their networks.
/// * **Errors.** [`SharedTimeError`].
/// * **Cost.** O(carriers of all transfers + links of all routes).
pub fn shared_time(network: &Topology, parts: &[SharedPart<'_>]) -> Result<Ratio, SharedTimeError> {
    let all: Vec<(usize, SharedPart<'_>)> = parts.iter().map(|&part| (0, part)).collect();
    let sums = Sums::of(network, &all, 1)?;
    let longest = sums.longest().ok_or(SharedTimeError::Nothing)?;
    Ratio::new(longest.numer().magnitude().clone(), longest.denom().magnitude().clone()).ok_or(SharedTimeError::Nothing)
}

/// What parts put on the links of a network, added up by class of parts.
pub(crate) struct Sums<'a> {
    /// By the ids of its ends, the bytes per second of all parallel links.
    pub(crate) room: HashMap<(&'a str, &'a str), BigInt>,
    /// By the ids of its ends, the bytes of each class. Links that carry nothing are absent.
    pub(crate) bytes: HashMap<(&'a str, &'a str), Vec<BigRational>>,
}

impl<'a> Sums<'a> {
    /// Adds up parts, each with its class, a number below `classes`. O(carriers of all transfers + links of all routes).
    pub(crate) fn of(
        network: &'a Topology,
        parts: &[(usize, SharedPart<'a>)],
        classes: usize,
    ) -> Result<Self, SharedTimeError> {
        let mut room: HashMap<(&str, &str), BigInt> = HashMap::new();
        for link in (0..).map(LinkIndex::new).take(network.links().len()) {
            *room.entry(ends(network, link)).or_default() += network.link(link).capacity.bytes_per_sec();
        }
        let mut bytes: HashMap<(&str, &str), Vec<BigRational>> = HashMap::new();
        for (number, (class, part)) in parts.iter().enumerate() {
            let failed = |error: CheckError| SharedTimeError::Loads { part: number, error: Box::new(error) };
            let layout = part.graph.layout().map_err(|error| failed(StructureError::from(error).into()))?;
            let loads = link_loads(part.topology, part.graph).map_err(|error| failed(error.into()))?;
            let size = layout.size();
            let chunk = BigInt::from(part.size_bytes.get()) * size.divisor;
            let chunk = BigRational::new(chunk, size.chunks.into());
            for (link, load) in (0..).map(LinkIndex::new).zip(loads).filter(|(_, load)| *load > 0) {
                let ends = ends(part.topology, link);
                if !room.contains_key(&ends) {
                    let (from, to) = (ends.0.to_owned(), ends.1.to_owned());
                    return Err(SharedTimeError::NoLink { part: number, from, to });
                }
                let sums = bytes.entry(ends).or_insert_with(|| vec![BigRational::zero(); classes]);
                sums.iter_mut().skip(*class).take(1).for_each(|sum| *sum += &chunk * BigInt::from(load));
            }
        }
        Ok(Self { room, bytes })
    }

    /// Seconds of the busiest link; `None` if nothing is sent.
    pub(crate) fn longest(&self) -> Option<BigRational> {
        let seconds =
            |(ends, bytes): (_, &Vec<BigRational>)| Some(bytes.iter().sum::<BigRational>() / self.room.get(ends)?);
        self.bytes.iter().filter_map(seconds).max()
    }
}

/// Ids of the ends of a link.
pub(crate) fn ends(topology: &Topology, link: LinkIndex) -> (&str, &str) {
    let link = topology.link(link);
    (&topology.node(link.from).id, &topology.node(link.to).id)
}
