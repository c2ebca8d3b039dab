//! Assigns the chunks of shares to in-links.

use std::ops::Range;

use super::arrivals::{Arrivals, Class};
use crate::flow::{ArcId, FlowNetwork, FlowUnit};
use crate::fraction::Fraction;
use crate::stop::{Stop, Stopped};

/// Consecutive chunks of one share on one in-link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The owner of the share.
    pub source: u32,
    /// Position of the in-link.
    pub link: u32,
    /// Chunks of the share, from 0, not empty.
    pub chunks: Range<u64>,
}

impl Arrivals<'_> {
    /// Divides the shares that arrive in a step among the in-links so that none carries more than `load` chunks per width,
    /// less its delay: `chunks` chunks for each unit of a share's amount. By the set of links that sources can use, then source, then link.
    ///
    /// Sources that can use the same links are served together by one integral flow, and laid one after the other on each
    /// link: so few shares are cut, at most one more piece per link and set of links than there are sources.
    ///
    /// * **Source.** Zhao 2026 (A.11), which is an integral transportation problem.
    /// * **None.** The load is less than [`chunk_load`](Self::chunk_load).
    /// * **Errors.** Stopped.
    /// * **Cost.** A flow on a network of one arc for each class and link it can use.
    /// * **Panics.** All amounts times `chunks` exceed 2⁶³.
    pub fn assign(
        &mut self,
        step: u32,
        chunks: u64,
        load: Fraction,
        stop: &dyn Stop,
    ) -> Result<Option<Vec<Piece>>, Stopped> {
        self.graph.require_countable(chunks);
        let classes = self.classes(step);
        let room = self.rooms(load, chunks);
        let ClassAssignment::All(flows) = assign_classes(&classes, chunks.into(), &room, stop)? else {
            return Ok(None);
        };
        let mut pieces = Vec::with_capacity(self.sources(step).len());
        for (class, flows) in classes.iter().zip(flows) {
            self.lay(class, chunks, &flows, &mut pieces);
        }
        Ok(Some(pieces))
    }

    /// Lays the shares of a class on its links, of which each takes so many chunks.
    fn lay(&self, class: &Class, chunks: u64, flows: &[u64], pieces: &mut Vec<Piece>) {
        let mut links = class.links.iter().zip(flows.iter().copied()).filter(|&(_, flow)| flow > 0);
        let mut room = links.next();
        for &source in &class.sources {
            let total = self.graph.amount(source) * chunks;
            let mut start = 0;
            while start < total {
                let (link, left) = room.expect("the links carry all chunks of the class");
                let end = total.min(start + left);
                let link_index = u32::try_from(*link).expect("links are counted in u32");
                pieces.push(Piece { source, link: link_index, chunks: start..end });
                room = if end - start == left { links.next() } else { Some((link, left - (end - start))) };
                start = end;
            }
        }
    }
}

/// What came of serving classes.
pub(super) enum ClassAssignment {
    /// Everything fits: by class, chunks on each of its links.
    All(Vec<Vec<u64>>),
    /// These amounts can only come over these links, which lack room.
    Short { amount: u128, links: Vec<usize> },
}

/// Serves all classes, each with `chunks` for each unit of its amount, over links with so much room.
///
/// One greatest flow; where it falls short, the classes that could still send and the links that they can use are a set
/// that lacks room.
pub(super) fn assign_classes(
    classes: &[Class],
    chunks: u128,
    room: &[u128],
    stop: &dyn Stop,
) -> Result<ClassAssignment, Stopped> {
    let total: u128 = classes.iter().map(|class| class.amount * chunks).sum();
    match i64::try_from(total) {
        Ok(total) if total < i64::MAX => assign_classes_in::<i64>(classes, chunks, room, total, stop),
        _ => {
            let total = i128::try_from(total).expect("amounts times chunks are at most 2^126");
            assign_classes_in::<i128>(classes, chunks, room, total, stop)
        }
    }
}

fn assign_classes_in<C: FlowUnit>(
    classes: &[Class],
    chunks: u128,
    room: &[u128],
    total: C,
    stop: &dyn Stop,
) -> Result<ClassAssignment, Stopped> {
    let fit = |value: u128| C::try_from_u128(value.min(total.to_u128())).expect("at most the total");
    // Nodes: classes, links, the source, the sink.
    let node = |index: usize| u32::try_from(index).expect("fewer classes than nodes");
    let (source, sink) = (node(classes.len() + room.len()), node(classes.len() + room.len() + 1));
    let mut network = FlowNetwork::<C>::new(sink + 1);
    for (link, &room) in room.iter().enumerate() {
        network.add_arc(node(classes.len() + link), sink, fit(room));
    }
    let mut uses: Vec<Vec<ArcId>> = Vec::with_capacity(classes.len());
    for (index, class) in classes.iter().enumerate() {
        let demand = fit(class.amount * chunks);
        network.add_arc(source, node(index), demand);
        uses.push(
            class.links.iter().map(|link| network.add_arc(node(index), node(classes.len() + link), demand)).collect(),
        );
    }
    if network.max_flow(source, sink, total, stop)? == total {
        let flow = |&arc: &ArcId| super::narrow(network.flow(arc).to_u128());
        return Ok(ClassAssignment::All(uses.iter().map(|arcs| arcs.iter().map(flow).collect()).collect()));
    }
    let is_short = network.min_cut_source_side(source);
    let links = (0..room.len()).filter(|link| is_short[classes.len() + link]).collect();
    let amount = classes.iter().enumerate().filter(|&(index, _)| is_short[index]).map(|(_, class)| class.amount).sum();
    Ok(ClassAssignment::Short { amount, links })
}
