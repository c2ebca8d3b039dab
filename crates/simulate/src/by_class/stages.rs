//! What one box of an exchange in stages stands for: the programs of its ranks, put together.

mod pairs;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use canopy_schedule::{Action, ByClass, LinkKind, Move, ProgramStep, Seating, Stages, Way, Ways};
use canopy_topology::{Latency, LinkIndex, Rank, Topology};

use super::Representative;
use super::graph::{Copied, Lane, representative as graph_of};
use crate::options::SimulateError;
use pairs::{Pair, pairs};

/// Those of some classes, given a box of each.
pub(super) fn representatives(
    topology: &Topology,
    stages: &Stages,
    classes: &ByClass,
    chosen: &[(usize, u32)],
) -> Result<Vec<Representative>, SimulateError> {
    let seating = stages.grid.seating(topology.rank_count()).map_err(|_| NO_PROGRAM)?;
    let copy = Stages { actions: vec![Action::Copy], ..stages.clone() };
    let mut ways = Ways::of(topology);
    let between = busiest_between(topology, classes);
    let mut one = |&(class, of_box): &(usize, u32)| {
        let programs = Programs::of(&copy, &seating, of_box, topology.rank_count())?;
        let moved = Merged::of(&programs).all()?;
        let mut lanes =
            Lanes { topology, ways: &mut ways, known: HashMap::new(), middles: HashMap::new(), lanes: Vec::new() };
        let copied = lanes.transfers(&programs, &moved)?;
        lanes.slow_down(&copied, &stages.actions, between);
        graph_of(class, &copied, &lanes.lanes, &stages.actions)
    };
    chosen.iter().map(&mut one).collect()
}

const NO_PROGRAM: SimulateError = SimulateError::Rule { what: "has no program for a rank; check it first" };

/// The busiest link between switches outside the boxes, with its chunks and its capacity.
type Between = Option<(LinkIndex, u128, u64)>;

fn busiest_between(topology: &Topology, classes: &ByClass) -> Between {
    let kinds = [LinkKind::LeafToSpine, LinkKind::SpineToLeaf, LinkKind::BetweenSwitches];
    let first = classes.busiest_first().into_iter().find(|&class| kinds.contains(&classes.links[class].kind))?;
    let class = &classes.links[first];
    let capacity = topology.link(class.busiest).capacity.bytes_per_sec();
    (class.chunks_max > 0).then_some((class.busiest, class.chunks_max, capacity))
}

/// The programs of the ranks of one box.
struct Programs {
    ranks: Vec<u32>,
    steps: Vec<Vec<ProgramStep>>,
}

impl Programs {
    fn of(copy: &Stages, seating: &Seating, of_box: u32, rank_count: u32) -> Result<Self, SimulateError> {
        let ranks: Vec<u32> = seating.live(of_box).map(|(_, rank)| rank).collect();
        let steps = ranks.iter().map(|&rank| {
            let program = copy.program(rank, rank_count).map_err(|_| NO_PROGRAM)?;
            Ok(program.phases.into_iter().next().ok_or(NO_PROGRAM)?.steps)
        });
        let steps = steps.collect::<Result<_, SimulateError>>()?;
        Ok(Self { ranks, steps })
    }

    /// Moves of a step with the positions of their ranks.
    fn moves(&self, step: usize, of: fn(&ProgramStep) -> &Vec<Move>) -> impl Iterator<Item = (usize, &Move)> {
        let steps = self.steps.iter().enumerate();
        steps.flat_map(move |(rank, steps)| steps.get(step).map(of).into_iter().flatten().map(move |one| (rank, one)))
    }
}

/// Something that the box moves: over its links, or out of it and into it at once.
struct Moved {
    step: u32,
    is_inside: bool,
    chunks: u64,
    owner: Option<u32>,
    waits: Vec<u32>,
    /// Who sends, by position, and the other rank's number; none for what only enters.
    sends: Option<(usize, u32)>,
    receives: Option<(usize, u32)>,
}

/// Chunks that arrive at a rank, by position, and the transfers that bring them.
type Arriving = (usize, Vec<Range<u64>>, u32);

/// What has arrived at one rank.
#[derive(Default)]
struct Arrived {
    /// By first chunk: the end, and the transfers that brought the chunks.
    ranges: BTreeMap<u64, (u64, u32)>,
}

impl Arrived {
    /// Finds what brought chunks; whether some of them were there from the start.
    fn bring(&self, chunks: &Range<u64>, groups: &mut Vec<u32>) -> bool {
        let mut at = chunks.start;
        let mut has_own = false;
        let before = self.ranges.range(..=at).next_back().filter(|(_, (end, _))| *end > at);
        let after = self.ranges.range(at.saturating_add(1)..chunks.end);
        for (&start, &(end, group)) in before.into_iter().chain(after) {
            has_own |= start > at;
            at = at.max(end);
            groups.push(group);
        }
        has_own | (at < chunks.end)
    }
}

/// The programs of a box while they are put together.
struct Merged<'a> {
    programs: &'a Programs,
    place_of: HashMap<u32, usize>,
    arrived: Vec<Arrived>,
    /// Transfers that together bring one move.
    groups: Vec<Vec<u32>>,
    moved: Vec<Moved>,
}

impl<'a> Merged<'a> {
    fn of(programs: &'a Programs) -> Self {
        let place_of = programs.ranks.iter().copied().zip(0..).collect();
        let arrived = programs.ranks.iter().map(|_| Arrived::default()).collect();
        Self { programs, place_of, arrived, groups: Vec::new(), moved: Vec::new() }
    }

    fn all(mut self) -> Result<Vec<Moved>, SimulateError> {
        let steps = self.programs.steps.iter().map(Vec::len).max().unwrap_or(0);
        for step in 0..steps {
            let is_inside = self.programs.steps.iter().any(|of| of.get(step).is_some_and(|step| step.is_inside));
            let arriving = if is_inside { self.inside(step)? } else { self.outside(step) };
            for (rank, chunks, group) in arriving {
                for range in chunks {
                    self.arrived[rank].ranges.insert(range.start, (range.end, group));
                }
            }
        }
        Ok(self.moved)
    }

    /// What a send waits for, and whether it holds chunks that were there from the start.
    fn needs(&self, rank: usize, one: &Move) -> (Vec<u32>, bool) {
        let (mut groups, mut has_own) = (Vec::new(), false);
        for chunks in &one.chunks {
            has_own |= self.arrived[rank].bring(chunks, &mut groups);
        }
        groups.sort_unstable();
        groups.dedup();
        let waits = groups.iter().flat_map(|&group| self.groups[group as usize].iter().copied()).collect();
        (waits, has_own)
    }

    fn group(&mut self, transfers: Vec<u32>) -> u32 {
        self.groups.push(transfers);
        crate::workload::number_of(self.groups.len() - 1)
    }

    /// Moves between ranks of the box.
    fn inside(&mut self, step: usize) -> Result<Vec<Arriving>, SimulateError> {
        let programs = self.programs;
        let mut arriving = Vec::new();
        for (rank, one) in programs.moves(step, |step| &step.sends) {
            let (waits, has_own) = self.needs(rank, one);
            let to = *self.place_of.get(&one.peer).ok_or(NO_PROGRAM)?;
            let number = crate::workload::number_of(self.moved.len());
            self.moved.push(Moved {
                step: crate::workload::number_of(step),
                is_inside: true,
                chunks: chunk_count(one),
                owner: has_own.then_some(programs.ranks[rank]),
                waits,
                sends: Some((rank, one.peer)),
                receives: Some((to, programs.ranks[rank])),
            });
            arriving.push((to, one.chunks.clone(), self.group(vec![number])));
        }
        Ok(arriving)
    }

    /// Moves between boxes: what leaves with what enters.
    fn outside(&mut self, step: usize) -> Vec<Arriving> {
        let programs = self.programs;
        let sends: Vec<(usize, &Move)> = programs.moves(step, |step| &step.sends).collect();
        let receives: Vec<(usize, &Move)> = programs.moves(step, |step| &step.receives).collect();
        let needs: Vec<(Vec<u32>, bool)> = sends.iter().map(|&(rank, one)| self.needs(rank, one)).collect();
        let amounts = |moves: &[(usize, &Move)]| -> Vec<(usize, u64)> {
            moves.iter().map(|&(rank, one)| (rank, chunk_count(one))).collect()
        };
        let mut parts: Vec<Vec<u32>> = vec![Vec::new(); receives.len()];
        for Pair { send, receive, chunks } in pairs(&amounts(&sends), &amounts(&receives)) {
            let number = crate::workload::number_of(self.moved.len());
            // The partner of what only enters is as far as this box is.
            let like: Vec<usize> = match (send, receive) {
                (Some(send), _) => vec![send],
                (None, Some(receive)) => {
                    let same = |of: &usize| sends[*of].0 == receives[receive].0;
                    let same: Vec<usize> = (0..sends.len()).filter(same).collect();
                    if same.is_empty() { (0..sends.len()).collect() } else { same }
                }
                (None, None) => Vec::new(),
            };
            let owner = like.iter().find(|&&send| needs[send].1).map(|&send| programs.ranks[sends[send].0]);
            let waits = like.iter().flat_map(|&send| needs[send].0.iter().copied()).collect();
            if let Some(receive) = receive {
                parts[receive].push(number);
            }
            self.moved.push(Moved {
                step: crate::workload::number_of(step),
                is_inside: false,
                chunks,
                owner,
                waits,
                sends: send.map(|send| (sends[send].0, sends[send].1.peer)),
                receives: receive.map(|receive| (receives[receive].0, receives[receive].1.peer)),
            });
        }
        let arriving = receives.iter().zip(parts);
        arriving.map(|(&(rank, one), parts)| (rank, one.chunks.clone(), self.group(parts))).collect()
    }
}

fn chunk_count(one: &Move) -> u64 {
    one.chunks.iter().map(|chunks| chunks.end - chunks.start).sum()
}

/// Links of a box, and of what is between boxes.
struct Lanes<'a> {
    topology: &'a Topology,
    ways: &'a mut Ways,
    known: HashMap<LinkIndex, usize>,
    /// By rank: what it sends between switches outside.
    middles: HashMap<u32, usize>,
    lanes: Vec<Lane>,
}

impl Lanes<'_> {
    fn transfers(&mut self, programs: &Programs, moved: &[Moved]) -> Result<Vec<Copied>, SimulateError> {
        let mut copied = Vec::with_capacity(moved.len());
        for one in moved {
            let (route, backwards) = match (one.is_inside, one.sends, one.receives) {
                (true, Some((rank, peer)), _) => {
                    let from = programs.ranks[rank];
                    (self.inner(from, peer)?, self.inner(peer, from)?)
                }
                (_, sends, receives) => {
                    let sends = sends.map(|(rank, peer)| (programs.ranks[rank], peer));
                    let receives = receives.map(|(rank, peer)| (programs.ranks[rank], peer));
                    (self.outer(sends, receives)?, self.outer(receives, sends)?)
                }
            };
            let ends = one.sends.map(|(rank, peer)| (programs.ranks[rank], peer));
            let ends = ends.or(one.receives.map(|(rank, peer)| (peer, programs.ranks[rank]))).ok_or(NO_PROGRAM)?;
            copied.push(Copied {
                step: one.step,
                chunks: one.chunks,
                piece_chunks: one.chunks,
                owner: one.owner,
                waits: one.waits.clone(),
                route,
                backwards,
                ends: (Rank::new(ends.0), Rank::new(ends.1)),
            });
        }
        Ok(copied)
    }

    fn way(&mut self, from: u32, to: u32) -> Result<Way, SimulateError> {
        let mut way = Way::new();
        self.ways.between(Rank::new(from), Rank::new(to), 0, &mut way).ok_or(NO_PROGRAM)?;
        Ok(way)
    }

    fn inner(&mut self, from: u32, to: u32) -> Result<Vec<usize>, SimulateError> {
        let way = self.way(from, to)?;
        Ok(way.into_iter().map(|link| self.lane(link)).collect())
    }

    /// The NIC of who sends, its part of what is between switches, and the NIC of who receives.
    fn outer(&mut self, sends: Option<(u32, u32)>, receives: Option<(u32, u32)>) -> Result<Vec<usize>, SimulateError> {
        let mut route = Vec::with_capacity(3);
        if let Some((rank, peer)) = sends {
            let way = self.way(rank, peer)?;
            route.extend(way.first().map(|&link| self.lane(link)));
            let middle = way.get(1..way.len().saturating_sub(1)).unwrap_or_default();
            if !middle.is_empty() {
                route.push(self.middle(rank, middle));
            }
        }
        if let Some((rank, peer)) = receives {
            let way = self.way(peer, rank)?;
            if way.len() > 1 || sends.is_none() {
                route.extend(way.last().map(|&link| self.lane(link)));
            }
        }
        Ok(route)
    }

    fn lane(&mut self, link: LinkIndex) -> usize {
        let of = self.topology.link(link);
        *self.known.entry(link).or_insert_with(|| {
            self.lanes.push(Lane { capacity: of.capacity.bytes_per_sec(), latency: of.latency, link });
            self.lanes.len() - 1
        })
    }

    fn middle(&mut self, rank: u32, links: &[LinkIndex]) -> usize {
        let nanos = links.iter().map(|&link| self.topology.link(link).latency.nanos()).sum();
        let link = links.first().copied().unwrap_or(LinkIndex::new(0));
        *self.middles.entry(rank).or_insert_with(|| {
            self.lanes.push(Lane { capacity: u64::MAX, latency: Latency::from_nanos(nanos), link });
            self.lanes.len() - 1
        })
    }

    /// Lets what passes between switches take as long as on the busiest of their links.
    fn slow_down(&mut self, copied: &[Copied], actions: &[Action], between: Between) {
        let Some((link, most, capacity)) = between else { return };
        let mut carried: HashMap<usize, u128> = self.middles.values().map(|&lane| (lane, 0)).collect();
        for action in actions {
            for one in copied {
                let route = if *action == Action::Copy { &one.route } else { &one.backwards };
                for lane in route {
                    if let Some(carried) = carried.get_mut(lane) {
                        *carried += u128::from(one.chunks);
                    }
                }
            }
        }
        for (lane, carried) in carried {
            let part = carried.saturating_mul(capacity.into()) / most.max(1);
            self.lanes[lane].capacity = u64::try_from(part).unwrap_or(u64::MAX).max(1);
            self.lanes[lane].link = link;
        }
    }
}
