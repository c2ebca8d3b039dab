//! The least load of the busiest in-link in one step, in fractions of a share or in whole chunks.

use super::arrivals::{Arrivals, Class};
use super::assign::{ClassAssignment, assign_classes};
use super::ratio;
use crate::fraction::Fraction;
use crate::stop::{Stop, Stopped};

/// Most in-links whose sets are all looked at; with more, flows find the sets that matter.
pub(super) const ENUMERATED_MAX: usize = 10;

impl Arrivals<'_> {
    /// Least load of the busiest in-link in a step: amounts per width, `U` of linear program (3.1). Zero if nothing arrives.
    /// Where links have delays, the least time until everything has come, as amounts per width in which a link without
    /// delay could have carried: `U` of (A.12).
    ///
    /// What can only come over links of a set P has to: `U = max amount(P)/width(P)`, and a flow shows that no more is needed.
    /// With few in-links all sets are looked at; with more, the set that a flow for the largest ratio so far does not
    /// satisfy has a larger one (Dinkelbach).
    ///
    /// * **Source.** Zhao 2026, proof of theorem 19, for links of any width and shares of any size.
    /// * **Errors.** Stopped.
    /// * **Cost.** O(sources + d·2^d) for d in-links up to ten; else a few flows of O(sources · d) arcs.
    pub fn load(&mut self, step: u32, stop: &dyn Stop) -> Result<Fraction, Stopped> {
        if self.sources(step).is_empty() {
            return Ok(Fraction::ZERO);
        }
        if let Some(pipes) = self.pipes(1) {
            return self.delayed_load(step, &pipes, stop);
        }
        if self.widths().len() > ENUMERATED_MAX {
            return self.load_by_flows(step, stop);
        }
        let widths = self.widths();
        self.sum_up(step);
        let (mut most, mut of) = (0_u128, 1_u128);
        for (set, &amount) in self.sums.iter().enumerate().skip(1) {
            let width = width_of(set, &widths);
            if u128::from(amount) * of > most * width {
                (most, of) = (amount.into(), width);
            }
        }
        Ok(ratio(most, of))
    }

    /// Least load of the busiest in-link in a step if every share is divided into whole chunks, `chunks` for each unit of
    /// its amount: chunks per width, no less than `floor`.
    ///
    /// With links of width 1 it is `W = max ⌈chunks·amount(P)/|P|⌉`, the optimum of integral transportation problem (A.11);
    /// with others the least ratio λ at which the whole parts of λ·width add up to enough in every set P.
    ///
    /// * **Errors.** Stopped.
    /// * **Cost.** As [`load`](Self::load), and O(d²) for each set by which the ratio rises.
    /// * **Panics.** All amounts times `chunks` exceed 2⁶³.
    pub fn chunk_load(
        &mut self,
        step: u32,
        chunks: u64,
        floor: Fraction,
        stop: &dyn Stop,
    ) -> Result<Fraction, Stopped> {
        self.graph.require_countable(chunks);
        if self.sources(step).is_empty() {
            return Ok(floor);
        }
        if let Some(pipes) = self.pipes(chunks) {
            return self.delayed_chunk_load(step, chunks, floor, &pipes, stop);
        }
        let widths = self.widths();
        let mut load = floor;
        if widths.len() <= ENUMERATED_MAX {
            self.sum_up(step);
            for (set, &amount) in self.sums.iter().enumerate().skip(1) {
                let need = u128::from(amount) * u128::from(chunks);
                let inside = || widths.iter().enumerate().filter(|&(link, _)| set >> link & 1 == 1).map(|(_, &w)| w);
                if inside().map(|width| whole(load, width)).sum::<u128>() < need {
                    load = least_ratio(need, &inside().collect::<Vec<_>>());
                }
            }
            return Ok(load);
        }
        self.chunk_load_by_flows(step, chunks, load, stop)
    }

    pub(super) fn chunk_load_by_flows(
        &mut self,
        step: u32,
        chunks: u64,
        floor: Fraction,
        stop: &dyn Stop,
    ) -> Result<Fraction, Stopped> {
        let bound = self.load_by_flows(step, stop)?;
        let floor = floor.max(ratio(bound.numerator * u128::from(chunks), bound.denominator));
        least_chunk_load(&self.classes(step), chunks, &Carriers::links(self.widths()), floor, stop)
    }

    pub(super) fn load_by_flows(&mut self, step: u32, stop: &dyn Stop) -> Result<Fraction, Stopped> {
        let carriers = Carriers::links(self.widths());
        let classes = self.classes(step);
        let floor = first_guess(&classes, &carriers.widths);
        least_load(&classes, &carriers, floor, stop)
    }

    /// Widths of the visited node's in-links.
    pub(super) fn widths(&self) -> Vec<u128> {
        self.graph.in_links(self.node).iter().map(|link| link.width.into()).collect()
    }

    /// Fills `sums`: by set of in-links, the amounts that can come over links of the set only.
    pub(super) fn sum_up(&mut self, step: u32) {
        let link_count = self.widths().len();
        self.sums.clear();
        self.sums.resize(1 << link_count, 0);
        let mut sums = std::mem::take(&mut self.sums);
        for &source in self.sources(step) {
            sums[self.small_mask(source)] += self.graph.amount(source);
        }
        for link in 0..link_count {
            for set in 0..sums.len() {
                if set >> link & 1 == 1 {
                    sums[set] += sums[set ^ 1 << link];
                }
            }
        }
        self.sums = sums;
    }
}

/// What carries data: links, then hosts that several links leave from.
pub(super) struct Carriers {
    pub(super) widths: Vec<u128>,
    /// By link, the position of its host; empty if there are no hosts.
    pub(super) hosts: Vec<Option<u32>>,
}

impl Carriers {
    /// Links without hosts.
    pub(super) const fn links(widths: Vec<u128>) -> Self {
        Self { widths, hosts: Vec::new() }
    }
}

/// The least ratio of at least `floor`, which no division is below, at which carriers have room for all classes.
///
/// The set that a flow for the largest ratio so far does not satisfy has a larger one (Dinkelbach).
pub(super) fn least_load(
    classes: &[Class],
    carriers: &Carriers,
    floor: Fraction,
    stop: &dyn Stop,
) -> Result<Fraction, Stopped> {
    let mut load = floor;
    while load != Fraction::ZERO {
        // Units of 1/denominator: what a width carries is the numerator.
        let room: Vec<u128> = carriers.widths.iter().map(|&width| width * load.numerator).collect();
        match assign_classes(classes, load.denominator, &room, &carriers.hosts, stop)? {
            ClassAssignment::All(_) => break,
            ClassAssignment::Short { amount, carriers: short } => {
                let higher = ratio(amount, short.iter().map(|&carrier| carriers.widths[carrier]).sum());
                assert!(higher > load, "a set without room has a larger ratio, so the method ends");
                load = higher;
            }
        }
    }
    Ok(load)
}

/// [`least_load`] for whole chunks, `chunks` for each unit of an amount.
pub(super) fn least_chunk_load(
    classes: &[Class],
    chunks: u64,
    carriers: &Carriers,
    floor: Fraction,
    stop: &dyn Stop,
) -> Result<Fraction, Stopped> {
    let mut load = floor;
    loop {
        let room: Vec<u128> = carriers.widths.iter().map(|&width| whole(load, width)).collect();
        match assign_classes(classes, chunks.into(), &room, &carriers.hosts, stop)? {
            ClassAssignment::All(_) => return Ok(load),
            ClassAssignment::Short { amount, carriers: short } => {
                let inside: Vec<u128> = short.iter().map(|&carrier| carriers.widths[carrier]).collect();
                let higher = least_ratio(amount * u128::from(chunks), &inside);
                assert!(higher > load, "a set without room needs a larger ratio, so the method ends");
                load = higher;
            }
        }
    }
}

/// The largest ratio among: everything over all links together, and what has a single link.
pub(super) fn first_guess(classes: &[Class], widths: &[u128]) -> Fraction {
    let mut is_used = vec![false; widths.len()];
    let mut load = Fraction::ZERO;
    for class in classes {
        class.links.iter().for_each(|&link| is_used[link] = true);
        if let &[link] = &class.links[..] {
            load = load.max(ratio(class.amount, widths[link]));
        }
    }
    let amount: u128 = classes.iter().map(|class| class.amount).sum();
    let width: u128 = widths.iter().zip(is_used).filter(|&(_, used)| used).map(|(&width, _)| width).sum();
    if amount == 0 { Fraction::ZERO } else { load.max(ratio(amount, width)) }
}

/// The least ratio λ at which the whole parts of λ·width add up to `need`.
///
/// At `need / Σ widths` fewer than one per link are missing; from there on from one value of λ at which a whole part grows
/// to the next. O(links · different widths).
fn least_ratio(need: u128, widths: &[u128]) -> Fraction {
    let mut sorted = widths.to_vec();
    sorted.sort_unstable();
    let counted: Vec<(u128, u128)> = sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u128)).collect();
    let mut load = ratio(need, widths.iter().sum());
    while counted.iter().map(|&(width, count)| count * whole(load, width)).sum::<u128>() < need {
        let grown = counted.iter().map(|&(width, _)| ratio(whole(load, width) + 1, width));
        load = grown.min().expect("a set of links is not empty");
    }
    load
}

/// Whole chunks that a link of this width may carry.
pub(super) fn whole(load: Fraction, width: u128) -> u128 {
    load.numerator * width / load.denominator
}

fn width_of(set: usize, widths: &[u128]) -> u128 {
    widths.iter().enumerate().filter(|&(link, _)| set >> link & 1 == 1).map(|(_, &width)| width).sum()
}
