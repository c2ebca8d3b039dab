//! What is refused, and how; stopping; progress.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use canopy_schedule::{Collective, CollectiveKind};
use canopy_synth::{Algorithm, Never, Progress, Silent, Stage, SynthesisError, SynthesisRequest, synthesize};
use canopy_topology::{Capacity, Latency, Rate, Topology, TopologyDraft, TopologyLimits, generate};

use crate::forest::validator::plan;

fn request(topology: &Topology, kind: CollectiveKind) -> SynthesisRequest {
    SynthesisRequest::new(Collective::new(kind, None, topology.rank_count()).unwrap(), Algorithm::Forest)
}

#[track_caller]
fn refusal(topology: &Topology, kind: CollectiveKind) -> SynthesisError {
    synthesize(topology, &request(topology, kind), &Never, &Silent).unwrap_err()
}

/// Directed links; ids that start with `s` are switches.
fn directed(nodes: &str, links: &[(&str, &str, u64)]) -> Topology {
    let mut draft = TopologyDraft::default();
    for id in nodes.split(' ') {
        if id.starts_with('s') { draft.add_switch(id) } else { draft.add_compute(id) }
    }
    for (from, to, capacity) in links {
        draft.add_link(*from, *to, Capacity::from_bytes_per_sec(*capacity).unwrap(), Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

#[test]
fn ranks_out_of_reach_are_named() {
    let topology = directed("a b c", &[("a", "b", 1), ("b", "a", 1), ("c", "a", 1)]);
    let error = refusal(&topology, CollectiveKind::Allgather);
    let expected = SynthesisError::Disconnected { from: "a".into(), from_rank: 0, to: "c".into(), to_rank: 2 };
    assert_eq!(error, expected);
    assert_eq!(error.to_string(), "no path leads from rank 0 (a) to rank 2 (c); add links that connect them");
}

/// Nothing can pass a switch with one neighbour, or without a way out, so its sums mean nothing.
#[test]
fn dead_ends_may_be_unbalanced() {
    let links =
        [("a", "b", 5), ("b", "a", 5), ("a", "s0", 1), ("s0", "s1", 9), ("s2", "a", 4), ("b", "s3", 2), ("s3", "b", 7)];
    let judged = plan(&directed("a b s0 s1 s2 s3", &links), CollectiveKind::Allgather);
    assert_eq!(judged.algbw.to_string(), "10");
}

/// Two shares must enter `c` by a link of 2⁶⁴ − 1 that shares no factor with all others: as many trees for each rank.
#[test]
fn more_trees_than_can_be_counted_are_refused_with_a_remedy() {
    let most = u64::MAX;
    let links = [("b", "a", 1 << 63), ("c", "a", (1 << 63) + 1), ("a", "b", most), ("b", "c", most), ("c", "b", most)];
    let error = refusal(&directed("a b c", &links), CollectiveKind::Allgather);
    assert_eq!(error, SynthesisError::TooManyTrees { trees_per_rank: most.into(), rank_count: 3 });
    assert!(error.to_string().contains("round bandwidths to multiples of a common unit"), "{error}");
}

/// Two shares must enter `a` by two links that have 2⁶¹ − 1 together, a prime: as many trees for each rank, two to a unit
/// of capacity. Beyond 63 bits on the way, the wide integers take over.
#[test]
fn numbers_beyond_64_bits_are_exact() {
    let most = (1 << 61) - 1;
    let half = 1 << 60;
    let links = [("b", "a", half), ("c", "a", most - half), ("a", "b", most), ("b", "c", most), ("c", "b", most)];
    let judged = plan(&directed("a b c", &links), CollectiveKind::Allgather);
    assert_eq!(judged.chunks_per_share(), most);
    assert_eq!(judged.algbw, Rate::new(u128::from(most) * 3, 2_u32).unwrap());
    assert!(judged.batches() < 10, "{} different trees", judged.batches());
}

#[test]
fn what_forests_do_not_do_is_refused_by_name() {
    let topology = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
    for kind in [CollectiveKind::Gather, CollectiveKind::Scatter, CollectiveKind::AllToAll] {
        let error = refusal(&topology, kind);
        assert_eq!(error, Algorithm::Forest.unsupported(kind));
    }
}

/// A request to stop is honoured whenever it comes: in the optimum, at a switch, between trees.
#[test]
fn a_request_to_stop_is_honoured_at_any_moment() {
    let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
    let request = request(&topology, CollectiveKind::Allgather);
    let mut questions = 0;
    loop {
        let asked = AtomicU64::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= questions;
        match synthesize(&topology, &request, &stop, &Silent) {
            Err(error) => assert_eq!(error, SynthesisError::Stopped),
            Ok(_) => break,
        }
        questions = questions * 3 / 2 + 1;
    }
    assert!(questions > 100, "asked {questions} times at most");
}

/// Notes every report.
#[derive(Default)]
struct Notes(Mutex<Vec<(Stage, u64, u64)>>);

impl Progress for Notes {
    fn report(&self, stage: Stage, done: u64, total: u64) {
        self.0.lock().unwrap().push((stage, done, total));
    }
}

#[test]
fn progress_runs_through_all_stages_to_their_ends() {
    let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
    let notes = Notes::default();
    let schedule = synthesize(&topology, &request(&topology, CollectiveKind::Allreduce), &Never, &notes).unwrap();
    let notes = notes.0.into_inner().unwrap();
    assert!(notes.is_sorted_by_key(|&(stage, done, _)| (stage, done)), "forwards only");
    for (stage, total) in [(Stage::Optimum, 1), (Stage::Switches, 3), (Stage::Trees, 16 * 13)] {
        assert_eq!(notes.iter().rfind(|note| note.0 == stage), Some(&(stage, total, total)));
    }
    let canopy_schedule::Shape::Forest(forest) = schedule.shape else { panic!("not a forest") };
    let batches = forest.phases[1].trees.len() as u64;
    assert_eq!(notes.last(), Some(&(Stage::Routes, batches, batches)));
}
