//! What is known of an algorithm without running it.

use canopy_schedule::CollectiveKind;

use super::{Algorithm, Synthesized, Task};
use crate::error::SynthesisError;

/// The row of an algorithm: all that the rest of the program asks of it.
#[derive(Debug)]
pub struct Synthesizer {
    /// The name used everywhere in canopy's text.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What it plans, in the order that messages list it.
    pub collectives: &'static [CollectiveKind],
    /// The limits that it keeps to; stating others is an error.
    pub limits: HeededLimits,
    /// Whether it chooses at random, and so takes a seed.
    pub has_seed: bool,
    /// Whether it asks what the network is made of.
    pub construction: ConstructionUse,
    /// What its plans take up, for estimates made beforehand.
    pub memory: Memory,
    /// Whether its schedules are kept for later requests.
    pub kept: Kept,
    /// What it claims of a schedule that no file repeats and no check proves again.
    pub claim: Option<&'static str>,
    /// When `auto` compares its plan with that of the best rate.
    pub rival: Option<Rival>,
    /// Of `auto`: what it takes first, by collective.
    pub stands_for: Option<fn(CollectiveKind) -> Algorithm>,
    /// Plans; what applies to every algorithm was asked before.
    pub plan: fn(&Task<'_>) -> Result<Synthesized, SynthesisError>,
}

/// Every collective.
pub const ALL_COLLECTIVES: &[CollectiveKind] = &CollectiveKind::ALL;

/// The collectives whose data or sums spread from roots.
pub const SPREADING: &[CollectiveKind] = &[
    CollectiveKind::Allgather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Allreduce,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
];

impl Synthesizer {
    /// A row of which nothing else is to be said: no limits, seed or construction, a plan of few chunks that is not kept, and no part in `auto`.
    pub const fn new(
        name: &'static str,
        help: &'static str,
        collectives: &'static [CollectiveKind],
        plan: fn(&Task<'_>) -> Result<Synthesized, SynthesisError>,
    ) -> Self {
        Self {
            name,
            help,
            collectives,
            limits: HeededLimits::None,
            has_seed: false,
            construction: ConstructionUse::None,
            memory: Memory::USUAL,
            kept: Kept::No,
            claim: None,
            rival: None,
            stands_for: None,
            plan,
        }
    }

    /// Whether its schedules are chunk by chunk in time, so that after faults what can be sent when it was may stay.
    pub fn is_in_time(&self) -> bool {
        self.kept == Kept::InOwnLabels
    }

    /// That it does not plan a collective.
    pub const fn unsupported(&self, collective: CollectiveKind) -> SynthesisError {
        SynthesisError::Unsupported { algorithm: self.name, plans: self.collectives, collective }
    }
}

/// Which of the [`TreeLimits`](crate::TreeLimits) are heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeededLimits {
    /// None.
    None,
    /// All but `chunks`: it packs trees.
    Trees,
    /// `chunks` and `max_chunks`: it chooses the number of chunks.
    Chunks,
    /// `chunks`; if nothing is stated, there is one.
    StatedChunks,
    /// Of an all-to-all, `chunks`, `max_chunks` and `tolerance`; none of other collectives.
    Paths,
}

/// Whether an algorithm asks what the network is made of ([`Composition`](super::Composition)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstructionUse {
    /// No.
    None,
    /// As the expression that generates the network says.
    Stated,
    /// The same, and for other networks as it can be found out.
    StatedOrFound,
}

/// What the plans of an algorithm take up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Whether each send is by itself rather than a hop of a tree.
    pub has_plain_sends: bool,
    /// The paths of an all-to-all.
    pub paths: Paths,
    /// What it solves for an all-to-all before there are paths.
    pub solver: Solver,
}

impl Memory {
    /// Trees, several paths for each pair, and nothing to solve.
    pub const USUAL: Self = Self { has_plain_sends: false, paths: Paths::Several, solver: Solver::None };
}

/// How many paths each pair of an all-to-all has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// A few.
    Several,
    /// One or two, around a ring of all ranks.
    AroundRing,
    /// A shortest one.
    OneShortest,
    /// All shortest ones.
    AllShortest,
}

/// The program that is solved for an all-to-all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// None.
    None,
    /// Concurrent flows.
    Flow,
    /// Flows in steps.
    SteppedFlow,
    /// The best use of paths without a common link.
    DisjointPaths,
    /// The best use of all shortest paths.
    ShortestPaths,
}

/// Whether schedules are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// No.
    No,
    /// In the labels of the network's shape: one serves all networks of it.
    ByShape,
    /// In the caller's labels, for the repair of the same network: they are in time, and depend on the order of ranks and the size of messages.
    InOwnLabels,
}

/// When `auto` makes a plan to compare with that of the best rate.
#[derive(Clone, Copy, Debug)]
pub struct Rival {
    /// The order in which plans are made, the least first: of equally fast ones the first is taken.
    pub place: u8,
    /// On which networks.
    pub plans: Networks,
    /// What making a plan takes, roughly in microseconds of a processor; saturating.
    pub work: fn(Scale) -> u64,
    /// Messages of a phase of which each waits for the one before, by ranks: the least that there are.
    pub steps_min: fn(u32) -> u32,
}

/// Networks that an algorithm may have a plan for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Networks {
    /// All.
    All,
    /// Those without switches.
    Direct,
    /// Those without switches other than network cards of one rank each.
    Carded,
    /// Those with switches.
    Switched,
}

/// What the work of an algorithm depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Ranks.
    pub ranks: u64,
    /// Directed links.
    pub links: u64,
    /// The collective.
    pub kind: CollectiveKind,
}

impl Rival {
    /// Any network, in as little as one step for each phase, with a message or a few for each pair of ranks.
    pub const PAIRS: Self = Self { place: 0, plans: Networks::All, work: Scale::pairs, steps_min: |_| 1 };
    /// The same in steps in which distances double: data that goes by a distance whose binary digits are all ones goes
    /// by each of them in a message of its own. Beside that chain, what is one step more may wait for nothing.
    pub const DOUBLING: Self = Self { steps_min: |ranks| ranks.checked_ilog2().unwrap_or(0), ..Self::PAIRS };
    /// Networks without switches, with work for each rank and link.
    pub const LINKS: Self = Self { plans: Networks::Direct, work: Scale::ranks_by_links, ..Self::PAIRS };
}

/// Most variables of an integer program that is solved, as in [`canopy_tacos::IlpEffort::STANDARD`].
const INTEGER_VARIABLES_MAX: u64 = canopy_tacos::IlpEffort::STANDARD.variables_max as u64;

impl Scale {
    /// The work of what makes a message or a few for each pair of ranks.
    pub const fn pairs(self) -> u64 {
        self.ranks.saturating_mul(self.ranks).saturating_mul(16)
    }

    /// The work of what looks at every link for each rank.
    pub const fn ranks_by_links(self) -> u64 {
        self.ranks.saturating_mul(self.links).saturating_mul(4)
    }

    /// The work of what times each chunk on links between ranks. An all-to-all has a chunk for each pair.
    pub const fn chunks_in_time(self) -> u64 {
        let each = match self.kind {
            CollectiveKind::AllToAll => self.ranks.saturating_mul(self.ranks),
            _ => self.ranks.saturating_add(self.links),
        };
        self.ranks.saturating_mul(each).saturating_mul(4)
    }

    /// The work of integer programs with a variable for each chunk, link and unit of time: no bound is known, unless there
    /// are so many variables that none is solved.
    pub const fn integer_programs(self) -> u64 {
        let chunks = match self.kind {
            CollectiveKind::AllToAll => self.ranks.saturating_mul(self.ranks),
            _ => self.ranks,
        };
        let are_solved = chunks.saturating_mul(self.links) <= INTEGER_VARIABLES_MAX;
        if are_solved { u64::MAX } else { self.chunks_in_time() }
    }

    /// The work of a linear program with a variable for each rank and link, in several steps.
    pub const fn programs(self) -> u64 {
        let variables = self.ranks.saturating_mul(self.links);
        variables.saturating_pow(4) / 2_000_000
    }
}
