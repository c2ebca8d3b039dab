//! What `direct` and `ring` refuse, and how; stopping; progress.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use canopy_schedule::CollectiveKind::{self, AllToAll, Allgather, Broadcast, Gather, Reduce, Scatter};
use canopy_synth::{Algorithm, Never, Progress, Silent, Stage, SynthesisError, SynthesisRequest, synthesize};
use canopy_topology::{Capacity, Latency, Topology, TopologyDraft, TopologyLimits};

use crate::named::judge::{collective, plan, topology};

#[track_caller]
fn refusal(topology: &Topology, algorithm: Algorithm, kind: CollectiveKind) -> SynthesisError {
    let request = SynthesisRequest::new(collective(topology, kind, 0), algorithm);
    synthesize(topology, &request, &Never, &Silent).unwrap_err()
}

/// a ⇄ b → c: rank 0 reaches everyone, rank 2 nobody.
fn dead_end() -> Topology {
    let mut draft = TopologyDraft::default();
    ["a", "b", "c"].into_iter().for_each(|id| draft.add_compute(id));
    for (from, to) in [("a", "b"), ("b", "a"), ("b", "c")] {
        draft.add_link(from, to, Capacity::from_bytes_per_sec(1).unwrap(), Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

#[test]
fn only_what_data_needs_must_be_connected() {
    let topology = dead_end();
    for kind in [Broadcast, Scatter] {
        assert!(!plan(&topology, Algorithm::Direct, kind, 0).algbw.is_zero(), "{kind}");
        assert!(!plan(&topology, Algorithm::Auto, kind, 0).algbw.is_zero(), "{kind}");
    }
    let lost = SynthesisError::Disconnected { from: "c".to_owned(), from_rank: 2, to: "a".to_owned(), to_rank: 0 };
    for (algorithm, kind) in [
        (Algorithm::Direct, Gather),
        (Algorithm::Direct, Reduce),
        (Algorithm::Direct, Allgather),
        (Algorithm::Ring, AllToAll),
        (Algorithm::Ring, Gather),
    ] {
        assert_eq!(refusal(&topology, algorithm, kind), lost, "{algorithm}, {kind}");
    }
}

#[test]
fn a_ring_must_come_back() {
    let error = refusal(&dead_end(), Algorithm::Ring, Broadcast);
    assert_eq!(
        error.to_string(),
        "ring needs a path between any two ranks, and none leads from rank 2 (c) to rank 0 (a); use direct or forest, \
         or add links"
    );
}

#[test]
fn forest_says_who_plans_the_others() {
    for kind in [Gather, Scatter, AllToAll] {
        let error = refusal(&topology("ring:4"), Algorithm::Forest, kind);
        assert_eq!(error, Algorithm::Forest.unsupported(kind));
        assert!(error.to_string().contains("direct and ring plan all collectives"));
    }
}

#[test]
fn flow_plans_what_is_different_for_everyone() {
    let error = refusal(&topology("ring:4"), Algorithm::Flow, Allgather);
    assert_eq!(
        error.to_string(),
        "flow does not plan allgather; it plans gather, scatter and all-to-all, and direct and ring plan all collectives"
    );
}

#[test]
fn flows_beyond_counting_are_refused() {
    // No common measure: k is the product of two large primes, beyond what a chunk number holds.
    let mut draft = TopologyDraft::default();
    ["a", "b", "c"].into_iter().for_each(|id| draft.add_compute(id));
    for (from, to, capacity) in [("a", "b", u64::MAX - 58), ("b", "c", u64::MAX - 82), ("a", "c", u64::MAX - 94)] {
        draft.add_link(from, to, Capacity::from_bytes_per_sec(capacity).unwrap(), Latency::from_nanos(0));
    }
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let error = refusal(&topology, Algorithm::Flow, Scatter);
    assert!(matches!(error, SynthesisError::TooManyTrees { rank_count: 3, .. }), "{error}");
}

#[test]
fn more_hops_than_there_is_room_for_are_refused_at_once() {
    let topology = topology("complete:2");
    assert!(!plan(&topology, Algorithm::Direct, Allgather, 0).algbw.is_zero());
    let star = {
        let mut draft = TopologyDraft::default();
        draft.add_switch("s");
        for rank in 0..6000 {
            draft.add_compute(format!("r{rank}"));
            let capacity = Capacity::from_bytes_per_sec(1).unwrap();
            draft.add_both(&format!("r{rank}"), "s", capacity, Latency::from_nanos(0));
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    };
    for (algorithm, kind) in [(Algorithm::Direct, Allgather), (Algorithm::Direct, AllToAll)] {
        let error = refusal(&star, algorithm, kind);
        assert!(matches!(error, SynthesisError::TooManyHops { needed: 36_000_000, .. }), "{error}");
    }
}

/// However late the request, it is seen: each run is allowed one more question than the one before.
#[test]
fn stopping_is_noticed_at_every_question() {
    let topology = topology("torus:3x3");
    for algorithm in [Algorithm::Direct, Algorithm::Ring, Algorithm::Auto] {
        for kind in [Allgather, AllToAll] {
            let request = SynthesisRequest::new(collective(&topology, kind, 0), algorithm);
            let mut patience = 0;
            loop {
                let asked = AtomicU64::new(0);
                let stop = || asked.fetch_add(1, Ordering::Relaxed) >= patience;
                match synthesize(&topology, &request, &stop, &Silent) {
                    Err(error) => assert_eq!(error, SynthesisError::Stopped),
                    Ok(_) => break,
                }
                patience += 1;
                assert!(patience < 10_000, "bounded work asks a bounded number of times");
            }
            assert!(patience > 8, "{algorithm} asks more than {patience} times");
        }
    }
}

#[derive(Default)]
struct Notes(Mutex<Vec<(Stage, u64, u64)>>);

impl Progress for Notes {
    fn report(&self, stage: Stage, done: u64, total: u64) {
        self.0.lock().unwrap().push((stage, done, total));
    }
}

#[test]
fn progress_only_grows() {
    let topology = topology("torus:3x3");
    for algorithm in [Algorithm::Direct, Algorithm::Ring, Algorithm::Auto] {
        for kind in [AllToAll, Gather, CollectiveKind::Allreduce] {
            let notes = Notes::default();
            let request = SynthesisRequest::new(collective(&topology, kind, 0), algorithm);
            synthesize(&topology, &request, &Never, &notes).unwrap();
            let notes = notes.0.into_inner().unwrap();
            assert!(notes.is_sorted_by_key(|&(stage, done, _)| (stage, done)), "{algorithm}, {kind}: {notes:?}");
            assert!(notes.last().is_some_and(|&(stage, done, total)| stage == Stage::Routes && done == total));
        }
    }
}
