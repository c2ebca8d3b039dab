//! The integer program of a horizon.
//!
//! Source: Won et al., section 3, as completed in our notes: held(c, n, t) and sent(c, l, t) with (a) what is held at first, (c) only
//! what is held is sent, (d) one chunk on a link at a time, for as long as it is busy, (e) what is held was held before or has
//! just come, (g) and stays. Instead of the objective (b), all that is wanted is to be held at the horizon. Beyond the source, a node
//! gets a chunk once, and a variable is made only for times at which its node can have the chunk, and still be of use to somebody.

use std::collections::BTreeMap;

use canopy_optimize::{BinaryProgram, Literal};

use super::demands::{ChunkDemands, NEVER, arrivals};
use crate::bound::distances;
use crate::network::TimedNetwork;
use crate::sends::Sent;

/// Horizons up to which a send is compared with all earlier ones of its chunk on its link: that makes the relaxation tight, and
/// rows as long as the horizon.
const COMPARED_HORIZON_MAX: u64 = 64;

/// What keeps a program from being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoModel {
    /// Somebody who is to have a chunk is too far from it.
    TooFar,
    /// More variables than allowed: at least so many.
    TooLarge(u64),
}

/// By node, the first and the last time at which it can usefully have a chunk.
type Spans = Vec<Option<(u64, u64)>>;

/// Programs of one task.
pub(super) struct Models<'a> {
    network: &'a TimedNetwork,
    demands: &'a ChunkDemands,
    /// By audience, by node, the way to the nearest of it.
    ways_on: Vec<Vec<u64>>,
    variables_max: u32,
}

/// A program, and what its variables mean.
pub(super) struct Model {
    pub(super) program: BinaryProgram,
    /// By variable that is a send, in order.
    sends: Vec<(u32, Sent)>,
}

impl Model {
    /// What a choice sends.
    pub(super) fn sends(&self, choice: &[bool]) -> Vec<Sent> {
        let chosen = self.sends.iter().filter(|&&(variable, _)| choice[variable as usize]);
        chosen.map(|&(_, sent)| sent).collect()
    }

    /// What fractions send, with how much of it.
    pub(super) fn weighted(&self, values: &[f64]) -> Vec<(Sent, f64)> {
        self.sends.iter().map(|&(variable, sent)| (sent, values[variable as usize])).collect()
    }
}

impl<'a> Models<'a> {
    pub(super) fn new(network: &'a TimedNetwork, demands: &'a ChunkDemands, variables_max: u32) -> Self {
        let transposed = network.transposed();
        let ways = |audience: &Vec<u32>| distances(&transposed, audience, |link| link.latency);
        Self { network, demands, ways_on: demands.audiences.iter().map(ways).collect(), variables_max }
    }

    /// The program of a horizon.
    ///
    /// # Errors
    /// [`NoModel`]. O(variables · in-degree, times the horizon where sends are compared).
    pub(super) fn of(&self, horizon: u64) -> Result<Model, NoModel> {
        let spans = self.spans(horizon)?;
        let mut draft = Draft { network: self.network, horizon, ..Draft::new(self.network) };
        for (chunk, spans) in (0..).zip(&spans) {
            draft.add(chunk, spans, self.demands);
        }
        Ok(draft.finish())
    }

    /// By chunk.
    fn spans(&self, horizon: u64) -> Result<Vec<Spans>, NoModel> {
        let mut needed = 0_u64;
        let mut all = Vec::with_capacity(self.demands.held.len());
        for (chunk, held) in (0..).zip(&self.demands.held) {
            let early = arrivals(self.network, held);
            if self.demands.audience(chunk).iter().any(|&node| early[node as usize] > horizon) {
                return Err(NoModel::TooFar);
            }
            let ways_on = &self.ways_on[self.demands.audience_of[chunk as usize] as usize];
            let spans: Spans = early
                .into_iter()
                .zip(ways_on)
                .map(|(early, &way)| {
                    let late = if way == NEVER { None } else { horizon.checked_sub(way) };
                    late.filter(|&late| early <= late).map(|late| (early, late))
                })
                .collect();
            let holds = spans.iter().flatten().map(|(early, late)| late - early + 1);
            let sends = self.network.links().iter().map(|link| {
                let starts = spans[link.from as usize].zip(spans[link.to as usize]);
                let starts = starts.filter(|_| !held.contains_key(&link.to));
                starts.map_or(0, |((early, _), (_, late))| (late + 1).saturating_sub(early + link.latency))
            });
            needed = holds.chain(sends).fold(needed, u64::saturating_add);
            if needed > self.variables_max.into() {
                return Err(NoModel::TooLarge(needed));
            }
            all.push(spans);
        }
        Ok(all)
    }
}

/// A program in the making.
struct Draft<'a> {
    network: &'a TimedNetwork,
    horizon: u64,
    program: BinaryProgram,
    sends: Vec<(u32, Sent)>,
    /// By link, by start, the sends.
    starts: Vec<BTreeMap<u64, Vec<Literal>>>,
}

impl<'a> Draft<'a> {
    fn new(network: &'a TimedNetwork) -> Self {
        Self {
            network,
            horizon: 0,
            program: BinaryProgram::default(),
            sends: Vec::new(),
            starts: vec![BTreeMap::new(); network.links().len()],
        }
    }

    /// Variables and rows of a chunk.
    fn add(&mut self, chunk: u32, spans: &[Option<(u64, u64)>], demands: &ChunkDemands) {
        let held = &demands.held[chunk as usize];
        // By node, what it holds from its first moment on.
        let mut holds: Vec<Vec<u32>> = vec![Vec::new(); spans.len()];
        for (node, span) in (0..).zip(spans) {
            if let Some((early, late)) = span.filter(|_| !held.contains_key(&node)) {
                holds[node as usize] = (early..=late).map(|_| self.program.variable()).collect();
            }
        }
        // By node, by moment after its first, what comes.
        let mut coming: Vec<Vec<Vec<Literal>>> = holds.iter().map(|holds| vec![Vec::new(); holds.len()]).collect();
        for (number, link) in (0..).zip(self.network.links()) {
            let ends = spans[link.from as usize].zip(spans[link.to as usize]);
            let Some(((from_early, _), (to_early, to_late))) = ends.filter(|_| !held.contains_key(&link.to)) else {
                continue;
            };
            let mut before: Vec<Literal> = Vec::new();
            for start in from_early..(to_late + 1).saturating_sub(link.latency).max(from_early) {
                let variable = self.program.variable();
                let literal = Literal::is_one(variable);
                self.sends.push((variable, Sent { start, link: number, chunk }));
                self.starts[number as usize].entry(start).or_default().push(literal);
                coming[link.to as usize][moment(start + link.latency - to_early)].push(literal);
                if self.horizon > COMPARED_HORIZON_MAX {
                    before.clear();
                }
                before.push(literal);
                // A sender that has the chunk from the first has no variables.
                if let Some(&held) = holds[link.from as usize].get(moment(start - from_early)) {
                    let both = before.iter().copied().chain([Literal::is_zero(held)]);
                    self.program.at_most(1, both.collect());
                }
            }
        }
        for (holds, coming) in holds.iter().zip(coming) {
            let mut before: Option<u32> = None;
            for (&held, coming) in holds.iter().zip(coming) {
                let causes: Vec<Literal> = before.map(Literal::is_one).into_iter().chain(coming).collect();
                self.program.implies(Literal::is_one(held), causes.iter().copied());
                self.program.at_most(1, causes.into_iter().chain([Literal::is_zero(held)]).collect());
                before = Some(held);
            }
        }
        for &node in demands.audience(chunk) {
            if let Some(&last) = holds[node as usize].last() {
                self.program.want(last, 1);
            }
        }
    }

    /// The program, with one send at a time on each link.
    fn finish(mut self) -> Model {
        for (link, starts) in self.network.links().iter().zip(&self.starts) {
            for &last in starts.keys() {
                let first = (last + 1).saturating_sub(link.occupancy);
                let together = starts.range(first..=last).flat_map(|(_, sends)| sends).copied();
                self.program.at_most(1, together.collect());
            }
        }
        Model { program: self.program, sends: self.sends }
    }
}

/// A place in a list of moments, of which there are no more than variables.
fn moment(ticks: u64) -> usize {
    usize::try_from(ticks).expect("counted by variables")
}
