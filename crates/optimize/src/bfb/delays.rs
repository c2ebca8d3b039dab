//! Links with delays: latencies in addition to capacities.
//!
//! Within time λ a link of width b and delay δ carries b·(λ − δ), or nothing where λ ≤ δ. A step is done when everything
//! has come, so its least time is the least λ at which links with this much room carry what arrives:
//!
//! * **Which links are used** needs no search. (A.12) bounds λ from below by the delay of every link, and says that a link
//!   whose delay alone determines λ, although it carries nothing, is to be dropped before solving again. A link with no
//!   room carries nothing and has no say, which is the same; one without which a share could not come at all gets room,
//!   because λ rises until that share fits.
//! * **A maximum over sets.** By max-flow and min-cut the amounts fit if and only if, for every set P of in-links, what can
//!   only come over P has room there: `amount(P) ≤ Σ_P b·max(0, λ − δ)`. The right side rises with λ, so each set has a
//!   least time of its own, and the largest of these is the answer. It is the greatest of `Σ_Q b·(λ − δ)` over the subsets
//!   Q of P, so the least time of P is `min_Q (amount(P) + Σ_Q b·δ) / Σ_Q b`, reached by a Q of the shortest delays.
//!   For equal delays Q is P: theorem 19.
//! * **Whole chunks** count the whole part of each room instead (A.11).
//!
//! Source: Zhao 2026, (A.12), whose text gives the program and the rule to drop links; the maximum is derived here, and tested
//! against the program over all subsets of links.

use num_integer::Integer;

use super::arrivals::Arrivals;
use super::assign::{ClassAssignment, assign_classes};
use super::load::{ENUMERATED_MAX, whole};
use super::{BfbError, BfbGraph, ratio};
use crate::fraction::Fraction;
use crate::stop::{Stop, Stopped};

/// Most chunks for each unit of an amount where links have delays.
const CHUNKS_MAX: u64 = u32::MAX as u64;

/// What the greatest numerator may be, without a number of chunks: with it, 126 bits.
const NUMERATOR_MAX: u128 = 1 << 94;

impl BfbGraph {
    /// The same graph with a delay for each arc: while it lasts, a link without one carries `delays[arc] / per` of an amount
    /// for each width.
    ///
    /// For messages of M bytes in A units of an amount, links of `width · unit` bytes per second and latencies of α ns that
    /// is `α · A · unit / (10⁹ · M)`. Only differences matter: the same for all adds as much to every load.
    ///
    /// # Errors
    /// [`BfbError::TooFewDelays`]; [`BfbError::InexactDelays`] where exact times would not fit 128 bits. O(arcs).
    ///
    /// # Panics
    /// `per` is zero.
    pub fn with_delays(mut self, delays: &[u64], per: u64) -> Result<Self, BfbError> {
        assert!(per > 0, "a delay is a fraction");
        let mut delay_max = 0;
        for link in &mut self.links {
            let found = delays.len();
            link.delay = *delays.get(link.arc as usize).ok_or(BfbError::TooFewDelays { found, arc: link.arc })?;
            delay_max = delay_max.max(u128::from(link.delay));
        }
        let width_of = |node| self.in_links(node).iter().map(|link| u128::from(link.width)).sum::<u128>();
        let width = (0..self.node_count()).map(width_of).max().unwrap_or(0);
        let wide = u128::from(per);
        let sum = (self.amount_total + width).checked_mul(wide).and_then(|sum| sum.checked_add(delay_max));
        let product = [wide, width, width].into_iter().try_fold(sum.unwrap_or(u128::MAX), u128::checked_mul);
        match product.filter(|&product| product <= NUMERATOR_MAX) {
            Some(_) => Ok(Self { delayed_per: Some(per), ..self }),
            None => Err(BfbError::InexactDelays { per }),
        }
    }
}

/// An in-link as time sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipe {
    width: u128,
    /// In parts of `per`.
    delay: u128,
    per: u128,
}

impl Pipe {
    /// Whole chunks that come within a time.
    fn whole_within(self, load: Fraction) -> u128 {
        let Self { width, delay, per } = self;
        let room = (load.numerator * per).saturating_sub(delay * load.denominator);
        room * width / (load.denominator * per)
    }

    /// The least time within which so many whole chunks come.
    fn time_for(self, chunks: u128) -> Fraction {
        ratio(self.delay * self.width + chunks * self.per, self.per * self.width)
    }
}

impl Arrivals<'_> {
    /// In-links of the visited node with the delays of so many chunks for each unit of an amount; none where delays are left
    /// out of account.
    pub(super) fn pipes(&self, chunks: u64) -> Option<Vec<Pipe>> {
        let per = self.graph.delayed_per?;
        assert!(chunks <= CHUNKS_MAX, "with delays, a share has at most 2^32 chunks for each unit of its amount");
        let pipe = |&super::InLink { width, delay, .. }: &super::InLink| Pipe {
            width: width.into(),
            delay: u128::from(delay) * u128::from(chunks),
            per: per.into(),
        };
        Some(self.graph.in_links(self.node).iter().map(pipe).collect())
    }

    /// Whole chunks that each in-link carries at a load.
    pub(super) fn rooms(&self, load: Fraction, chunks: u64) -> Vec<u128> {
        match self.pipes(chunks) {
            Some(pipes) => pipes.into_iter().map(|pipe| pipe.whole_within(load)).collect(),
            None => self.widths().into_iter().map(|width| whole(load, width)).collect(),
        }
    }

    /// [`load`](Self::load) with delays. **Cost.** The same, d times as much for the sets.
    pub(super) fn delayed_load(&mut self, step: u32, pipes: &[Pipe], stop: &dyn Stop) -> Result<Fraction, Stopped> {
        if pipes.len() > ENUMERATED_MAX {
            return self.delayed_load_by_flows(step, pipes, stop);
        }
        self.sum_up(step);
        let order = by_delay(pipes);
        let sets = self.sums.iter().enumerate().filter(|&(_, &amount)| amount > 0);
        let times = sets.map(|(set, &amount)| filled(amount.into(), inside(set, &order)));
        Ok(times.max().unwrap_or(Fraction::ZERO))
    }

    /// [`chunk_load`](Self::chunk_load) with delays. **Cost.** The same.
    pub(super) fn delayed_chunk_load(
        &mut self,
        step: u32,
        chunks: u64,
        floor: Fraction,
        pipes: &[Pipe],
        stop: &dyn Stop,
    ) -> Result<Fraction, Stopped> {
        if pipes.len() > ENUMERATED_MAX {
            return self.delayed_chunk_load_by_flows(step, chunks, floor, pipes, stop);
        }
        self.sum_up(step);
        let order = by_delay(pipes);
        let mut load = floor;
        for (set, &amount) in self.sums.iter().enumerate() {
            let need = u128::from(amount) * u128::from(chunks);
            if inside(set, &order).map(|pipe| pipe.whole_within(load)).sum::<u128>() < need {
                load = filled_whole(need, || inside(set, &order));
            }
        }
        Ok(load)
    }

    pub(super) fn delayed_load_by_flows(
        &mut self,
        step: u32,
        pipes: &[Pipe],
        stop: &dyn Stop,
    ) -> Result<Fraction, Stopped> {
        let classes = self.classes(step);
        let order = by_delay(pipes);
        let amount: u128 = classes.iter().map(|class| class.amount).sum();
        let is_used = |link: usize| classes.iter().any(|class| class.links.contains(&link));
        let used = order.iter().filter(|&&(link, _)| is_used(link)).map(|&(_, pipe)| pipe);
        // Everything over all links together.
        let mut load = filled(amount, used);
        while load != Fraction::ZERO {
            let units = load.denominator.lcm(&pipes[0].per);
            let room = |pipe: &Pipe| {
                let time = load.numerator * (units / load.denominator);
                time.saturating_sub(pipe.delay * (units / pipe.per)) * pipe.width
            };
            match assign_classes(&classes, units, &pipes.iter().map(room).collect::<Vec<_>>(), &[], stop)? {
                ClassAssignment::All(_) => break,
                ClassAssignment::Short { amount, carriers: links } => {
                    let short = order.iter().filter(|(link, _)| links.contains(link)).map(|&(_, pipe)| pipe);
                    let later = filled(amount, short);
                    assert!(later > load, "a set without room needs more time, so the method ends");
                    load = later;
                }
            }
        }
        Ok(load)
    }

    pub(super) fn delayed_chunk_load_by_flows(
        &mut self,
        step: u32,
        chunks: u64,
        floor: Fraction,
        pipes: &[Pipe],
        stop: &dyn Stop,
    ) -> Result<Fraction, Stopped> {
        let classes = self.classes(step);
        let order = by_delay(pipes);
        let mut load = floor;
        loop {
            let room: Vec<u128> = pipes.iter().map(|pipe| pipe.whole_within(load)).collect();
            match assign_classes(&classes, chunks.into(), &room, &[], stop)? {
                ClassAssignment::All(_) => return Ok(load),
                ClassAssignment::Short { amount, carriers: links } => {
                    let short = || order.iter().filter(|(link, _)| links.contains(link)).map(|&(_, pipe)| pipe);
                    let later = filled_whole(amount * u128::from(chunks), short);
                    assert!(later > load, "a set without room needs more time, so the method ends");
                    load = later;
                }
            }
        }
    }
}

/// Links with their positions, the shortest delays first.
fn by_delay(pipes: &[Pipe]) -> Vec<(usize, Pipe)> {
    let mut order: Vec<(usize, Pipe)> = pipes.iter().copied().enumerate().collect();
    order.sort_by_key(|&(_, pipe)| pipe.delay);
    order
}

/// Links of a set, in order.
fn inside(set: usize, order: &[(usize, Pipe)]) -> impl Iterator<Item = Pipe> {
    order.iter().filter(move |&&(link, _)| set >> link & 1 == 1).map(|&(_, pipe)| pipe)
}

/// The least time within which so much comes over links of rising delays; zero for nothing. O(links).
fn filled(need: u128, pipes: impl Iterator<Item = Pipe>) -> Fraction {
    if need == 0 {
        return Fraction::ZERO;
    }
    let (mut width, mut waiting) = (0, 0);
    let times = pipes.map(|pipe| {
        width += pipe.width;
        waiting += pipe.width * pipe.delay;
        ratio(need * pipe.per + waiting, pipe.per * width)
    });
    times.min().expect("what arrives has links to come over")
}

/// The least time within which so many whole chunks come over links of rising delays.
///
/// When that many would come undivided, fewer than one per link are missing; from there on from one time at which another
/// chunk is whole to the next. O(links²).
fn filled_whole<I: Iterator<Item = Pipe>>(need: u128, pipes: impl Fn() -> I) -> Fraction {
    let mut load = filled(need, pipes());
    while pipes().map(|pipe| pipe.whole_within(load)).sum::<u128>() < need {
        let grown = pipes().map(|pipe| pipe.time_for(pipe.whole_within(load) + 1));
        load = grown.min().expect("what arrives has links to come over");
    }
    load
}
