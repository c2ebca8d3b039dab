//! The way that data takes between two ranks of a network, where a rule states ranks alone.

use canopy_topology::{LinkIndex, Rank, Topology};

use super::far::Far;
use super::lanes::{Lane, Lanes, common};

/// Links from one rank to another, in order.
pub type Way = Vec<LinkIndex>;

/// The ways between ranks of a network.
///
/// A link from one rank to the other, or a switch that both are at: the fastest of these, by the slower of two links;
/// of equally fast ones the link, then the switch of smallest index. Without any, a way over as few switches as
/// possible, up to eight. Where several next links lead to such ways, those to the wider ones take turns, in the order
/// of their switches: the n-th way takes link n modulo their number, and then counts as n divided by that number. What
/// is less than half as wide as the widest is not used; where the others differ, they are used in proportion to their
/// widths. A link is as wide as its rate, or as the ways behind it to the last switch together if that is less.
#[derive(Clone, Debug)]
pub struct Ways {
    pub(super) lanes: Lanes,
    far: Far,
}

impl Ways {
    /// Those of a network. O(nodes + links).
    pub fn of(topology: &Topology) -> Self {
        Self { lanes: Lanes::of(topology), far: Far::default() }
    }

    /// Puts the way from one rank to another into `way`, which it clears. `None`: each takes more than eight switches.
    ///
    /// * **Cost.** Asked for ways to the same rank one after the other, the links near it once, and then the links of
    ///   each way.
    pub fn between(&mut self, from: Rank, to: Rank, turn: u64, way: &mut Way) -> Option<()> {
        way.clear();
        let (from, to) = (from.number(), to.number());
        let mut best: Option<(u64, [Option<u32>; 2])> = None;
        let mut see = |capacity: u64, links: [Option<u32>; 2]| {
            if best.is_none_or(|(most, _)| capacity > most) {
                best = Some((capacity, links));
            }
        };
        if let Some(lane) = self.lanes.between(from, to) {
            see(lane.capacity, [Some(lane.link), None]);
        }
        for (up, down) in common(self.lanes.up(from), self.lanes.down(to)) {
            see(up.capacity.min(down.capacity), [Some(up.link), Some(down.link)]);
        }
        if let Some((_, links)) = best {
            way.extend(links.into_iter().flatten().map(LinkIndex::new));
            return Some(());
        }
        match *self.lanes.down(to) {
            // Ranks at one switch share the ways that lead to it.
            [down] => self.over(from, down, turn, way),
            _ => self.far.add(&self.lanes, from, to, turn, way),
        }
    }

    /// The links of each of these ranks to and from the switch over which all ways between them lead. `None`: they lead
    /// over several, or it takes a longer look. O(links of these ranks).
    pub(crate) fn over_one_switch(&self, ranks: &[u32]) -> Option<Vec<[LinkIndex; 2]>> {
        let lanes = &self.lanes;
        let widest = |rank: &u32| lanes.up(*rank).iter().max_by_key(|lane| lane.capacity);
        let switch = widest(ranks.first()?)?.other;
        let (mut least, mut most) = (u64::MAX, 0);
        let mut links = Vec::with_capacity(ranks.len());
        for &rank in ranks {
            let (up, down) = (lanes.between(rank, switch)?, lanes.between(switch, rank)?);
            least = least.min(up.capacity).min(down.capacity);
            // No way over another switch is wider than the link to it.
            for lane in lanes.out(rank).iter().filter(|lane| lane.other != switch) {
                most = most.max(if lane.other < lanes.rank_count { u64::MAX } else { lane.capacity });
            }
            links.push([up, down].map(|lane| LinkIndex::new(lane.link)));
        }
        (least > most).then_some(links)
    }

    /// The way from a rank that reaches others over one switch alone to one that is reached over another alone.
    pub(super) fn between_ports(&mut self, up: Lane, down: Lane, turn: u64, way: &mut Way) -> Option<()> {
        way.clear();
        way.push(LinkIndex::new(up.link));
        self.over(up.other, down, turn, way)
    }

    fn over(&mut self, from: u32, down: Lane, turn: u64, way: &mut Way) -> Option<()> {
        self.far.add(&self.lanes, from, down.other, turn, way)?;
        way.push(LinkIndex::new(down.link));
        Some(())
    }
}
