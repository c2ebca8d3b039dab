//! What is too large is refused before memory is spent on it, and stopping is noticed in every stage.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Forest, Shares};
use canopy_topology::{Topology, TopologyLimits, generate};

use crate::error::SynthesisError;
use crate::forest::plan;
use crate::limits::TreeLimits;
use crate::progress::{Progress, Silent, Stage};

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn collective(kind: CollectiveKind, topology: &Topology) -> Collective {
    Collective::new(kind, None, topology.rank_count()).unwrap()
}

/// Plans with equal shares, without limits on trees, and to the end.
fn plan_alone(topology: &Topology, kind: CollectiveKind) -> Result<Forest, SynthesisError> {
    plan(topology, collective(kind, topology), &Shares::Equal, TreeLimits::NONE, &Never, &Silent)
}

#[test]
fn trees_that_would_fill_the_memory_are_refused_at_once() {
    let topology = topology("mesh:6000");
    let error = plan_alone(&topology, CollectiveKind::Allgather).unwrap_err();
    assert_eq!(error, SynthesisError::TooManyHops { needed: 6000 * 5999, limit: 1 << 25 });
    // One tree is no trouble.
    plan_alone(&topology, CollectiveKind::Broadcast).unwrap();
}

#[test]
fn a_switch_with_too_many_neighbours_is_named() {
    let topology = topology("dgx-a100:boxes=1,gpus=4097");
    let error = plan_alone(&topology, CollectiveKind::Broadcast).unwrap_err();
    assert_eq!(error, SynthesisError::TooManyNeighbours { node: "b0nv".to_owned(), neighbours: 4097, limit: 4096 });
}

/// Asks for a stop as soon as a stage reports, and counts how often it is asked after that.
struct StopAt {
    stage: Stage,
    stopped: AtomicBool,
    asked: AtomicU64,
}

impl Progress for StopAt {
    fn report(&self, stage: Stage, _: u64, _: u64) {
        self.stopped.fetch_or(stage == self.stage, Ordering::Relaxed);
    }
}

#[test]
fn every_stage_notices_a_stop_at_the_first_question() {
    let topology = topology("dgx-a100:boxes=2");
    for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce, CollectiveKind::Reduce] {
        for stage in [Stage::Optimum, Stage::Switches, Stage::Trees, Stage::Routes] {
            let at = StopAt { stage, stopped: AtomicBool::new(false), asked: AtomicU64::new(0) };
            let stop = || {
                let stopped = at.stopped.load(Ordering::Relaxed);
                at.asked.fetch_add(u64::from(stopped), Ordering::Relaxed);
                stopped
            };
            let error =
                plan(&topology, collective(kind, &topology), &Shares::Equal, TreeLimits::NONE, &stop, &at).unwrap_err();
            assert_eq!((error, at.asked.into_inner()), (SynthesisError::Stopped, 1), "{kind} in {stage:?}");
        }
    }
}

/// Asks for a stop at the question of this number, and counts them all.
struct StopAfter {
    questions: u64,
    asked: AtomicU64,
}

impl StopAfter {
    fn is_due(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.questions
    }
}

/// Networks that take every way there is: pieces, groups joined directly, translations, trees that are tested.
#[test]
fn a_stop_at_any_moment_is_the_end() {
    for expression in [
        "mi250:boxes=4,nodes-down=b1g3",
        "dragonfly-router:p=2,a=4,h=2",
        "torus:8x8",
        "random-regular:n=64,d=4,seed=1",
        "random-euler:n=64,switches=8,seed=1",
    ] {
        let topology = topology(expression);
        let collective = collective(CollectiveKind::Allgather, &topology);
        let counted = StopAfter { questions: u64::MAX, asked: AtomicU64::new(0) };
        plan(&topology, collective, &Shares::Equal, TreeLimits::NONE, &|| counted.is_due(), &Silent).unwrap();
        let all = counted.asked.into_inner();
        for questions in (0..24).map(|part| part * all / 24) {
            let stop = StopAfter { questions, asked: AtomicU64::new(0) };
            let error =
                plan(&topology, collective, &Shares::Equal, TreeLimits::NONE, &|| stop.is_due(), &Silent).unwrap_err();
            // Nothing is begun once a stop was asked for.
            assert_eq!((error, stop.asked.into_inner()), (SynthesisError::Stopped, questions + 1), "{expression}");
        }
    }
}
