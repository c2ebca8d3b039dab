//! How much of the runs goes in the box first, where NICs are almost as fast as boxes.

use canopy_schedule::BoxGrid;
use canopy_topology::{NodeIndex, Topology};

use crate::symmetric::network::BoxNetwork;

/// Most chunks of a share that are chosen; a caller may state more.
const CHUNKS_MAX: u64 = 64;
/// Fewer chunks are chosen where they take longer than both could by this part at most.
const LOSS: u128 = 400;
/// Most hops of trees that programs of all ranks are made from; while trees are possible, they stay so.
const HOPS_MAX: u64 = 1 << 25;
/// How far below the most a stage is looked at, to leave others what they can take.
const BELOW_MAX: u64 = 8;

/// Bytes per second that a rank takes at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    /// From other boxes, and to them.
    pub(crate) nic: u64,
    /// In its box.
    pub(crate) inside: u64,
}

/// Chunks of a share, and by stage those of a run that go in the box first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) chunks_per_share: u64,
    pub(crate) inside_first: Vec<u64>,
}

/// The rates of the slowest rank of a box with a rank on each place; `None` where some have none. O(links).
pub(crate) fn rates(topology: &Topology, network: &BoxNetwork, of_box: usize) -> Option<Rates> {
    let own = Some(u32::try_from(of_box).ok()?);
    let is_own = |node: NodeIndex| network.homes.get(node.index()).copied() == own;
    let ranks = network.ranks.get(of_box)?;
    let place = |node: NodeIndex| ranks.iter().position(|&rank| rank == node.number());
    let mut inside = vec![(0_u64, 0_u64); ranks.len()];
    for link in topology.links().iter().filter(|link| is_own(link.from) && is_own(link.to)) {
        let rate = link.capacity.bytes_per_sec();
        if let Some((out, _)) = place(link.from).and_then(|place| inside.get_mut(place)) {
            *out = out.saturating_add(rate);
        }
        if let Some((_, into)) = place(link.to).and_then(|place| inside.get_mut(place)) {
            *into = into.saturating_add(rate);
        }
    }
    let nics = (0..ranks.len()).map(|place| network.nic(of_box, place));
    let slowest = |all: &mut dyn Iterator<Item = (u64, u64)>| all.map(|(out, into)| out.min(into)).min();
    let rates = Rates { nic: slowest(&mut nics.into_iter())?, inside: slowest(&mut inside.into_iter())? };
    (rates.nic > 0 && rates.inside > 0).then_some(rates)
}

/// What an exchange is chosen for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) grid: &'a BoxGrid,
    /// Stages before this one have nothing in the box first: their links between boxes are those of pods.
    pub(crate) first_stage: usize,
    pub(crate) rates: Rates,
    /// Chunks of a share, where they are stated.
    pub(crate) chunks: Option<u64>,
    pub(crate) phases: u64,
}

impl Question<'_> {
    /// What makes NICs and boxes take equally long, as well as whole chunks can. `None`: boxes are fast enough, but for
    /// one part in 400 at most.
    ///
    /// With B boxes of P places and k chunks of a share, a rank gets k(B − 1) + (P − 1)S chunks over its NIC, and from
    /// each of the P − 1 others of its box kB − S, where S adds up (nₗ − 1)·xₗ if P·xₗ chunks of the runs of stage l go
    /// in the box first.
    ///
    /// * **Source.** Design of plans for tens of thousands of ranks, section 2 C.
    /// * **Out.** The smallest k of those up to 64 that are as fast as any k, but for one part in 400; without one, the
    ///   fastest.
    /// * **Cost.** O(64 · 8^(stages − 1)).
    pub(crate) fn answer(&self) -> Option<Choice> {
        let (boxes, places) = (u128::from(self.grid.box_count()?), u128::from(self.grid.places));
        let Rates { nic, inside } = self.rates;
        let (nic, inside) = (u128::from(nic), u128::from(inside));
        let others = places.checked_sub(1).filter(|&others| others > 0)?;
        // Per chunk of a share, S is (P − 1)·B·nic − (B − 1)·inside over (P − 1)·(nic + inside).
        let whole = (others * boxes).checked_mul(nic)?.checked_sub((boxes - 1).checked_mul(inside)?)?;
        let all = others.checked_mul(nic + inside)?;
        // All N − 1 shares over all links of a rank, and a little more.
        let enough = Time { load: (boxes * places - 1) * (LOSS + 1), rate: (nic + inside) * LOSS };
        let plain = Time { load: others * boxes, rate: inside };
        if !plain.is_longer(enough) {
            return None;
        }
        let mut best: Option<(Time, Choice)> = None;
        for k in self.candidates() {
            let stages = self.stages(k)?;
            let most = u64::try_from(u128::from(k).checked_mul(whole)? / all).ok()?;
            let least = stages.iter().filter(|(_, room)| *room > 0).map(|(weight, _)| *weight).min()?;
            // As much as does not make NICs slower than boxes, or a little more.
            for most in [most, most + least] {
                let mut shares = vec![0; stages.len()];
                let sum = u128::from(filled(&stages, most, &mut shares));
                let k_wide = u128::from(k);
                let over_nic = Time { load: k_wide * (boxes - 1) + others * sum, rate: nic * k_wide };
                let in_box = Time { load: others * (k_wide * boxes - sum), rate: inside * k_wide };
                let time = if in_box.is_longer(over_nic) { in_box } else { over_nic };
                if best.as_ref().map_or(plain, |(least, _)| *least).is_longer(time) {
                    let inside_first = shares.into_iter().map(|share| share * u64::from(self.grid.places)).collect();
                    best = Some((time, Choice { chunks_per_share: k, inside_first }));
                }
            }
            if best.as_ref().is_some_and(|(time, _)| !time.is_longer(enough)) {
                break;
            }
        }
        best.map(|(_, choice)| choice)
    }

    fn candidates(&self) -> std::ops::RangeInclusive<u64> {
        if let Some(chunks) = self.chunks {
            return chunks..=chunks;
        }
        let ranks = u64::from(self.grid.box_count().unwrap_or(0)) * u64::from(self.grid.places);
        let hops = ranks.saturating_mul(ranks).saturating_mul(self.phases).max(1);
        let most = match HOPS_MAX / hops {
            0 => CHUNKS_MAX,
            room => room.min(CHUNKS_MAX),
        };
        1..=most
    }

    /// By stage, nₗ − 1 and the greatest xₗ.
    fn stages(&self, k: u64) -> Option<Vec<(u64, u64)>> {
        let of = |(stage, &size): (usize, &u32)| {
            let is_left_out = stage < self.first_stage || size < 2;
            let room = if is_left_out { 0 } else { u64::from(self.grid.unit(stage)).checked_mul(k)? };
            Some((u64::from(size.max(1) - 1), room))
        };
        self.grid.digits.iter().enumerate().map(of).collect()
    }
}

/// Chooses the xₗ so that S is as great as it can be up to `most`, the last stage first; returns S.
fn filled(stages: &[(u64, u64)], most: u64, shares: &mut [u64]) -> u64 {
    let (Some((&(weight, room), before)), Some((last, rest))) = (stages.split_last(), shares.split_last_mut()) else {
        return 0;
    };
    let top = most.checked_div(weight).unwrap_or(0).min(room);
    let mut best = None;
    for share in (top.saturating_sub(BELOW_MAX)..=top).rev() {
        let mut others = vec![0; rest.len()];
        let sum = share * weight + filled(before, most - share * weight, &mut others);
        if best.is_none_or(|best| sum > best) {
            best = Some(sum);
            *last = share;
            rest.copy_from_slice(&others);
        }
        if sum == most || before.iter().all(|&(weight, room)| weight == 0 || room == 0) {
            break;
        }
    }
    best.unwrap_or(0)
}

/// `load / rate`, in any unit that all have.
#[derive(Clone, Copy, Debug)]
struct Time {
    load: u128,
    rate: u128,
}

impl Time {
    /// Whether it is longer than another one. Products fit up to some millions of chunks for a share; beyond, times are
    /// equal, and nothing goes in the box first.
    fn is_longer(self, other: Self) -> bool {
        self.load.saturating_mul(other.rate) > other.load.saturating_mul(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use canopy_schedule::Seats;

    use super::*;

    fn chosen(digits: &[u32], nic: u64, inside: u64, chunks: Option<u64>) -> Option<Choice> {
        let grid = BoxGrid { places: 8, digits: digits.to_vec(), seats: Seats::InOrder { empty: Vec::new() } };
        Question { grid: &grid, first_stage: 0, rates: Rates { nic, inside }, chunks, phases: 1 }.answer()
    }

    fn of(chunks_per_share: u64, inside_first: &[u64]) -> Option<Choice> {
        Some(Choice { chunks_per_share, inside_first: inside_first.to_vec() })
    }

    #[test]
    fn boxes_that_carry_what_their_nics_bring_have_nothing_inside_first() {
        assert_eq!(chosen(&[32, 64], 50, 450, None), None);
        // 7·2048/2047 NICs.
        assert_eq!(chosen(&[32, 64], 2047, 7 * 2048, None), None);
        assert_eq!(chosen(&[32, 64], 2047, 7 * 2047, None), None);
        assert!(chosen(&[32, 64], 2047, 7 * 2000, None).is_some());
        assert_eq!(chosen(&[1], 50, 60, None), None);
    }

    #[test]
    fn few_chunks_are_enough_where_there_are_several_stages() {
        // The design: three chunks of eight.
        assert_eq!(chosen(&[128], 50, 60, Some(8)), of(8, &[24]));
        assert_eq!(chosen(&[32, 64], 50, 60, None), of(2, &[8, 192]));
        assert_eq!(chosen(&[16, 32, 32], 50, 60, None), of(1, &[0, 0, 1592]));
        assert_eq!(chosen(&[32, 64], 50, 60, Some(1)), of(1, &[0, 96]));
    }

    #[test]
    fn stages_of_pods_are_left_out() {
        let grid = BoxGrid { places: 8, digits: vec![64, 32], seats: Seats::InOrder { empty: Vec::new() } };
        let rates = Rates { nic: 50, inside: 60 };
        let question = Question { grid: &grid, first_stage: 1, rates, chunks: Some(1), phases: 1 };
        let choice = question.answer().unwrap();
        assert_eq!((choice.inside_first[0], choice.inside_first.len()), (0, 2));
    }
}
