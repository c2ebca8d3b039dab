//! Plans with one algorithm and has the checker judge.

use canopy_schedule::{Collective, CollectiveKind, Schedule, Shares, certified_bound, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, bound, synthesize};
use canopy_topology::{Rank, Rate, Topology, TopologyLimits, generate};

pub(crate) fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// A schedule and what the checker says it reaches.
pub(crate) struct Judged {
    pub(crate) schedule: Schedule,
    pub(crate) algbw: Rate,
    /// What no schedule can exceed.
    pub(crate) bound: Rate,
}

/// A collective on a topology; the root counts where there is one.
pub(crate) fn collective(topology: &Topology, kind: CollectiveKind, root: u32) -> Collective {
    Collective::new(kind, kind.has_root().then(|| Rank::new(root)), topology.rank_count()).unwrap()
}

/// Plans a collective and has it judged.
#[track_caller]
pub(crate) fn plan(topology: &Topology, algorithm: Algorithm, kind: CollectiveKind, root: u32) -> Judged {
    plan_shares(topology, algorithm, kind, root, Shares::Equal)
}

/// The same with shares of these sizes.
#[track_caller]
pub(crate) fn plan_shares(
    topology: &Topology,
    algorithm: Algorithm,
    kind: CollectiveKind,
    root: u32,
    shares: Shares,
) -> Judged {
    let request = SynthesisRequest { shares, ..SynthesisRequest::new(collective(topology, kind, root), algorithm) };
    judge(topology, synthesize(topology, &request, &Never, &Silent).unwrap())
}

/// Has a schedule judged: accepted, and no better than the bound.
#[track_caller]
pub(crate) fn judge(topology: &Topology, schedule: Schedule) -> Judged {
    let name = format!("{} of {}", schedule.collective.kind(), schedule.algorithm);
    let graph = compile(topology, &schedule).unwrap_or_else(|error| panic!("{name}: {error}"));
    let verdict = check(topology, &graph).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (collective, shares) = (schedule.collective, &schedule.shares);
    let bound = bound(topology, collective, shares, &Never).unwrap_or_else(|error| panic!("{name}: {error}"));
    let proven = certified_bound(topology, collective, shares, &bound.certificate);
    assert_eq!(proven, Ok(bound.upper.clone()), "{name}");
    let bound = bound.upper;
    assert!(verdict.algbw <= bound, "{name}: {} beats the bound {bound}", verdict.algbw);
    Judged { schedule, algbw: verdict.algbw, bound }
}
