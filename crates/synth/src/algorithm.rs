//! The names under which users choose a synthesizer.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

use canopy_schedule::CollectiveKind;

use crate::tolerance::Tolerance;

/// A way to find a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// The one of greatest rate among those that plan the collective: forest or flow where one does, else the better of
    /// direct and ring by exact load.
    Auto,
    /// ForestColl: optimal spanning-tree packing (Zhao 2026, chapter 4).
    Forest,
    /// One maximum flow from or to the root, or concurrent flows between all ranks (Basu 2024).
    Flow,
    /// Breadth-first broadcasts in steps, on networks without switches (Zhao 2026, chapter 3).
    Bfb,
    /// All-to-all in steps, by a time-stepped multi-commodity flow, on networks without switches (Basu 2024, section 3.1.3).
    Tsmcf,
    /// Chunk by chunk in time, each where it is lacked most (Won et al.).
    Tacos,
    /// The same, proven to be fastest by integer programs on small networks (Won et al., section 3).
    TacosIlp,
    /// The same by requests in random order, as published (Won et al., section 4), to compare with.
    TacosPublished,
    /// Messages straight to everyone in queues of links (Won et al., section 8), to compare with.
    DirectXy,
    /// Messages from rank to next rank in queues of links (Won et al., section 8), to compare with.
    RingXy,
    /// Composed along the expression that made the network (Zhao 2026, section 3.5).
    Expansion,
    /// Messages combined on the trees of a Kautz network (Pham 2026, section 3.2.2).
    Kautz,
    /// The same trees with one share or block at a time where trees meet (Pham 2026, section 3.2.3).
    KautzM,
    /// Along all dimensions of a grid with fully joined lines at once (Pham 2026, section 4.2.2, MD).
    Dfc2,
    /// Along one dimension after the other (Pham 2026, section 4.2.2, DO).
    Dfc2Do,
    /// Trees of all ranks that grow together, on any network without switches (Huang et al.).
    Multitree,
    /// Every transfer on one shortest physical route.
    Direct,
    /// Around a ring of all ranks, both ways where the links allow.
    Ring,
    /// One shortest path for each pair of an all-to-all, source after source (Basu 2024, section 5).
    Sssp,
    /// Every pair of an all-to-all divided equally among all shortest paths (Basu 2024, section 5).
    Ewsp,
    /// One path for each pair of an all-to-all, through the dimensions of a grid in their order.
    Dor,
    /// The best use of most paths without a common link for each pair of an all-to-all (Basu 2024, section 3.1.4).
    Pmcf,
    /// The same with all shortest paths.
    PmcfShortest,
    /// One of most paths without a common link for each pair of an all-to-all, by an integer program (Basu 2024, section 5).
    IlpDisjoint,
    /// The same with all shortest paths.
    IlpShortest,
    /// Textbook exchanges: each rank with each other, one after the other (Thakur 2005).
    Pairwise,
    /// Textbook exchanges over distances that double (Bruck 1997).
    Bruck,
    /// Textbook exchanges with ranks whose numbers differ in one bit (Thakur 2005).
    RecursiveDoubling,
    /// Textbook trees over distances that double.
    Binomial,
    /// Two binary trees, each for half of the data (Sanders 2009).
    DoubleTree,
    /// Rings of groups, and rings within them.
    LocalRing,
}

impl Algorithm {
    /// All algorithms, in the order messages list them.
    pub const ALL: [Self; 31] = [
        Self::Auto,
        Self::Forest,
        Self::Flow,
        Self::Bfb,
        Self::Tsmcf,
        Self::Tacos,
        Self::TacosIlp,
        Self::TacosPublished,
        Self::DirectXy,
        Self::RingXy,
        Self::Expansion,
        Self::Kautz,
        Self::KautzM,
        Self::Dfc2,
        Self::Dfc2Do,
        Self::Multitree,
        Self::Direct,
        Self::Ring,
        Self::Sssp,
        Self::Ewsp,
        Self::Dor,
        Self::Pmcf,
        Self::PmcfShortest,
        Self::IlpDisjoint,
        Self::IlpShortest,
        Self::Pairwise,
        Self::Bruck,
        Self::RecursiveDoubling,
        Self::Binomial,
        Self::DoubleTree,
        Self::LocalRing,
    ];

    /// The name used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Forest => "forest",
            Self::Flow => "flow",
            Self::Bfb => "bfb",
            Self::Tsmcf => "tsmcf",
            Self::Tacos => "tacos",
            Self::TacosIlp => "tacos-ilp",
            Self::TacosPublished => "tacos-published",
            Self::DirectXy => "direct-xy",
            Self::RingXy => "ring-xy",
            Self::Expansion => "expansion",
            Self::Kautz => "kautz",
            Self::KautzM => "kautz-m",
            Self::Dfc2 => "dfc2",
            Self::Dfc2Do => "dfc2-do",
            Self::Multitree => "multitree",
            Self::Direct => "direct",
            Self::Ring => "ring",
            Self::Sssp => "sssp",
            Self::Ewsp => "ewsp",
            Self::Dor => "dor",
            Self::Pmcf => "pmcf",
            Self::PmcfShortest => "pmcf-shortest",
            Self::IlpDisjoint => "ilp-disjoint",
            Self::IlpShortest => "ilp-shortest",
            Self::Pairwise => "pairwise",
            Self::Bruck => "bruck",
            Self::RecursiveDoubling => "recursive-doubling",
            Self::Binomial => "binomial",
            Self::DoubleTree => "double-tree",
            Self::LocalRing => "local-ring",
        }
    }
}

impl Algorithm {
    /// What plans a collective: of [`Self::Auto`] the algorithm that it always takes, if there is one.
    pub(crate) const fn resolved(self, kind: CollectiveKind) -> Self {
        match (self, kind) {
            (Self::Auto, CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll) => Self::Flow,
            (Self::Auto, _) => Self::Forest,
            (algorithm, _) => algorithm,
        }
    }

    /// The collectives it plans, in words.
    pub(crate) const fn plans(self) -> &'static str {
        match self {
            Self::Forest | Self::Bfb | Self::TacosPublished | Self::RingXy => {
                "allgather, reduce-scatter, allreduce, broadcast and reduce"
            }
            Self::Flow => "gather, scatter and all-to-all",
            Self::Tsmcf => "all-to-all",
            Self::Expansion => "allgather, reduce-scatter and allreduce",
            Self::Sssp
            | Self::Ewsp
            | Self::Dor
            | Self::Pmcf
            | Self::PmcfShortest
            | Self::IlpDisjoint
            | Self::IlpShortest => "all-to-all",
            Self::Pairwise => "all-to-all, reduce-scatter and allgather",
            Self::Bruck => "allgather and all-to-all",
            Self::RecursiveDoubling | Self::LocalRing => "allgather, reduce-scatter and allreduce",
            Self::DoubleTree => "broadcast, reduce and allreduce",
            Self::Binomial => "broadcast, reduce, gather and scatter",
            Self::Auto
            | Self::Tacos
            | Self::TacosIlp
            | Self::DirectXy
            | Self::Kautz
            | Self::KautzM
            | Self::Dfc2
            | Self::Dfc2Do
            | Self::Multitree
            | Self::Direct
            | Self::Ring => "all collectives",
        }
    }
}

impl Algorithm {
    /// Whether its schedules are chunk by chunk in time, so that after faults what can be sent when it was may stay.
    pub const fn is_in_time(self) -> bool {
        matches!(self, Self::Tacos | Self::TacosIlp | Self::TacosPublished)
    }

    /// Refuses a seed where nothing is chosen at random.
    ///
    /// # Errors
    /// [`LimitsError::NoSeed`].
    pub const fn require_seed(self, seed: u64) -> Result<(), LimitsError> {
        match self {
            Self::Tacos | Self::TacosPublished => Ok(()),
            _ if seed == 0 => Ok(()),
            algorithm => Err(LimitsError::NoSeed { algorithm }),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an algorithm; use {}", known_names())]
pub struct UnknownAlgorithm {
    /// What was found, cut to 80 characters.
    pub name: String,
}

/// All names as a message lists them.
fn known_names() -> String {
    let [first @ .., last] = Algorithm::ALL.map(Algorithm::name);
    format!("{} or {last}", first.join(", "))
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let error = || UnknownAlgorithm { name: name.chars().take(80).collect() };
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name).ok_or_else(error)
    }
}

/// What the trees of a schedule must keep to, at the expense of its rate. [`Algorithm::Forest`] heeds all but `chunks`,
/// [`Algorithm::Bfb`], [`Algorithm::Tsmcf`], [`Algorithm::Tacos`] and [`Algorithm::TacosIlp`] that and `max_chunks`, [`Algorithm::Flow`] these and the tolerance for all-to-all; whatever else is
/// stated is refused.
///
/// An allreduce whose sums are made anywhere has as many trees in all, however many of them are rooted at one rank; it is
/// planned that way where that is faster than two phases of as many trees per rank.
///
/// At most one of `trees_per_root`, `chunks` and `max_chunks` may be stated: the others say what the last leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TreeLimits {
    /// Trees rooted at each root, exactly: k. The rate is the best there is for it.
    pub trees_per_root: Option<NonZeroU64>,
    /// Chunks that a share is divided into, exactly, for schedules in steps, and blocks of an all-to-all for its paths: each
    /// of them moves whole.
    pub chunks: Option<NonZeroU64>,
    /// Most chunks that a share is divided into, which are as many as there are trees per root: the best k up to it.
    pub max_chunks: Option<NonZeroU64>,
    /// Most hops from rank to rank between the root of a tree and any rank. An allreduce passes two trees, one after the
    /// other. Where the trees of the best rate are deeper, it is the best rate found for flatter ones.
    pub max_depth: Option<NonZeroU32>,
    /// Part of the best rate within the other limits that may be given up for trees that are found sooner. A permission
    /// only: the rate may well be better. Trees flattened for `max_depth` make no use of it, nor does an allreduce whose
    /// sums are made anywhere.
    pub tolerance: Option<Tolerance>,
}

impl TreeLimits {
    /// Nothing but the rate counts.
    pub const NONE: Self =
        Self { trees_per_root: None, chunks: None, max_chunks: None, max_depth: None, tolerance: None };

    /// The same without a tolerance.
    #[must_use]
    pub const fn without_tolerance(self) -> Self {
        Self { tolerance: None, ..self }
    }

    /// Refuses limits that contradict each other, and any where there will be no trees.
    ///
    /// # Errors
    /// [`LimitsError`], which names the limit as requests do.
    pub fn require_applicable(&self, algorithm: Algorithm, kind: CollectiveKind) -> Result<(), LimitsError> {
        let algorithm = algorithm.resolved(kind);
        let of_trees = algorithm == Algorithm::Forest;
        let has_choice = matches!(
            algorithm,
            Algorithm::Bfb | Algorithm::Tsmcf | Algorithm::Tacos | Algorithm::TacosIlp | Algorithm::TacosPublished
        );
        let of_steps = has_choice || matches!(algorithm, Algorithm::DirectXy | Algorithm::RingXy);
        let of_paths = algorithm == Algorithm::Flow && kind == CollectiveKind::AllToAll;
        if self.chunks.is_some() && !of_steps && !of_paths {
            return Err(LimitsError::NoSteps { algorithm, collective: kind });
        }
        let stated = [
            ("trees_per_root", self.trees_per_root.is_some(), of_trees),
            ("max_chunks", self.max_chunks.is_some(), of_trees || has_choice || of_paths),
            ("max_depth", self.max_depth.is_some(), of_trees),
            ("tolerance", self.tolerance.is_some(), of_trees || of_paths),
        ];
        if let Some((limit, ..)) = stated.into_iter().find(|&(_, is_stated, is_heeded)| is_stated && !is_heeded) {
            return Err(LimitsError::NotApplicable { algorithm, collective: kind, limit });
        }
        match (self.trees_per_root, self.chunks, self.max_chunks) {
            (Some(trees_per_root), _, Some(max_chunks)) => {
                Err(LimitsError::Contradiction { trees_per_root: trees_per_root.get(), max_chunks: max_chunks.get() })
            }
            (_, Some(chunks), Some(max_chunks)) => {
                Err(LimitsError::TwiceChunks { chunks: chunks.get(), max_chunks: max_chunks.get() })
            }
            _ => Ok(()),
        }
    }
}

/// Why limits on trees are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LimitsError {
    #[error(
        "{limit} limits trees, and {collective} by {algorithm} has none; leave it out, or plan {} by forest",
        Algorithm::Forest.plans()
    )]
    NotApplicable { algorithm: Algorithm, collective: CollectiveKind, limit: &'static str },
    #[error("trees_per_root {trees_per_root} says what max_chunks {max_chunks} leaves open; state one of them")]
    Contradiction { trees_per_root: u64, max_chunks: u64 },
    #[error(
        "chunks counts those of schedules in steps, and {collective} by {algorithm} has no choice of them; leave it out, plan by bfb or, all-to-all, tsmcf, \
         or state max_chunks"
    )]
    NoSteps { algorithm: Algorithm, collective: CollectiveKind },
    #[error(
        "{algorithm} chooses nothing at random, and needs no seed; leave it out, or plan by tacos or tacos-published"
    )]
    NoSeed { algorithm: Algorithm },
    #[error("chunks {chunks} says what max_chunks {max_chunks} leaves open; state one of them")]
    TwiceChunks { chunks: u64, max_chunks: u64 },
}

impl LimitsError {
    /// The limit at fault, as requests name it.
    pub const fn limit(&self) -> &'static str {
        match self {
            Self::NotApplicable { limit, .. } => limit,
            Self::NoSteps { .. } => "chunks",
            Self::NoSeed { .. } => "seed",
            Self::Contradiction { .. } | Self::TwiceChunks { .. } => "max_chunks",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = "rings".parse::<Algorithm>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`rings` is not an algorithm; use auto, forest, flow, bfb, tsmcf, tacos, tacos-ilp, tacos-published, direct-xy, ring-xy, expansion, \
             kautz, kautz-m, dfc2, dfc2-do, multitree, direct, ring, sssp, ewsp, dor, pmcf, pmcf-shortest, ilp-disjoint, ilp-shortest, pairwise, bruck, recursive-doubling, binomial, double-tree or local-ring"
        );
    }
}
