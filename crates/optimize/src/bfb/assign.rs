//! Assigns the chunks of shares to in-links.

use std::ops::Range;

use super::arrivals::{Arrivals, Class};
use super::{BfbGraph, narrow};
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
        let ClassAssignment::All(flows) = assign_classes(&classes, chunks.into(), &room, &[], stop)? else {
            return Ok(None);
        };
        let mut pieces = Vec::with_capacity(self.sources(step).len());
        for (class, flows) in classes.iter().zip(flows) {
            self.graph.lay(class, chunks, &flows, &mut pieces);
        }
        Ok(Some(pieces))
    }
}

impl BfbGraph {
    /// Lays the shares of a class on its links, of which each takes so many chunks.
    pub(super) fn lay(&self, class: &Class, chunks: u64, flows: &[u128], pieces: &mut Vec<Piece>) {
        let mut links = class.links.iter().zip(flows.iter().map(|&flow| narrow(flow))).filter(|&(_, flow)| flow > 0);
        let mut room = links.next();
        for &source in &class.sources {
            let total = self.amount(source) * chunks;
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
    All(Vec<Vec<u128>>),
    /// These amounts can only come through these links and hosts, by position in `room`, which lack room.
    Short { amount: u128, carriers: Vec<usize> },
}

/// Serves all classes, each with `chunks` for each unit of its amount, over links with so much room. Where `hosts` has
/// an entry for a link, what the link carries also takes room of that host, whose room follows those of the links.
///
/// One greatest flow; where it falls short, the classes that could still send, and the least links and hosts that all
/// they send passes, are a set that lacks room.
pub(super) fn assign_classes(
    classes: &[Class],
    chunks: u128,
    room: &[u128],
    hosts: &[Option<u32>],
    stop: &dyn Stop,
) -> Result<ClassAssignment, Stopped> {
    let total: u128 = classes.iter().map(|class| class.amount * chunks).sum();
    match i64::try_from(total) {
        Ok(total) if total < i64::MAX => assign_classes_in::<i64>((classes, chunks), (room, hosts), total, stop),
        _ => {
            let total = i128::try_from(total).expect("amounts times chunks are at most 2^126");
            assign_classes_in::<i128>((classes, chunks), (room, hosts), total, stop)
        }
    }
}

fn assign_classes_in<C: FlowUnit>(
    (classes, chunks): (&[Class], u128),
    (room, hosts): (&[u128], &[Option<u32>]),
    total: C,
    stop: &dyn Stop,
) -> Result<ClassAssignment, Stopped> {
    let fit = |value: u128| C::try_from_u128(value.min(total.to_u128())).expect("at most the total");
    // Nodes: classes, links and hosts, the source, the sink.
    let node = |index: usize| u32::try_from(index).expect("fewer classes than nodes");
    let (source, sink) = (node(classes.len() + room.len()), node(classes.len() + room.len() + 1));
    let next = |carrier: usize| match hosts.get(carrier) {
        Some(&Some(host)) => node(classes.len()) + host,
        _ => sink,
    };
    let mut network = FlowNetwork::<C>::new(sink + 1);
    for (carrier, &room) in room.iter().enumerate() {
        network.add_arc(node(classes.len() + carrier), next(carrier), fit(room));
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
        let flow = |&arc: &ArcId| network.flow(arc).to_u128();
        return Ok(ClassAssignment::All(uses.iter().map(|arcs| arcs.iter().map(flow).collect()).collect()));
    }
    let is_short = network.min_cut_source_side(source);
    let is_full = |&carrier: &usize| is_short[classes.len() + carrier] && !is_short[next(carrier) as usize];
    let carriers = (0..room.len()).filter(is_full).collect();
    let amount = classes.iter().enumerate().filter(|&(index, _)| is_short[index]).map(|(_, class)| class.amount).sum();
    Ok(ClassAssignment::Short { amount, carriers })
}
