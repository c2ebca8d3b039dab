//! Plans with one algorithm and has the checker judge.

use canopy_schedule::{Collective, CollectiveKind, Schedule, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, TreeLimits, bound, synthesize};
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
    let request =
        SynthesisRequest { collective: collective(topology, kind, root), algorithm, limits: TreeLimits::NONE };
    judge(topology, synthesize(topology, &request, &Never, &Silent).unwrap())
}

/// Has a schedule judged: accepted, and no better than the bound.
#[track_caller]
pub(crate) fn judge(topology: &Topology, schedule: Schedule) -> Judged {
    let name = format!("{} of {}", schedule.collective.kind(), schedule.algorithm);
    let graph = compile(topology, &schedule).unwrap_or_else(|error| panic!("{name}: {error}"));
    let verdict = check(topology, &graph).unwrap_or_else(|error| panic!("{name}: {error}"));
    let bound = bound(topology, schedule.collective, &Never).unwrap_or_else(|error| panic!("{name}: {error}")).upper;
    assert!(verdict.algbw <= bound, "{name}: {} beats the bound {bound}", verdict.algbw);
    Judged { schedule, algbw: verdict.algbw, bound }
}
