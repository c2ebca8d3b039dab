//! What is refused, by name.

use std::cell::Cell;

use canopy_schedule::{CollectiveKind, RouteIndex, TransferGraph};
use canopy_simulate::{Outcome, Pieces, SimulateError, SimulateOptions, Sync, bandwidth_limit_ps, messages, simulate};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};

use crate::networks::{CAPACITY, broadcast, checked, collective, network, options};

fn chain() -> (Topology, TransferGraph) {
    let topology = network(3, 0, &[("0", "1", CAPACITY, 0), ("1", "2", CAPACITY, 0)]);
    let graph = checked(&topology, &broadcast(&topology, &[(0, 0, 1), (1, 1, 2)])).0;
    (topology, graph)
}

fn tried(change: impl FnOnce(&mut TransferGraph), options: &SimulateOptions<'_>) -> Result<Outcome, SimulateError> {
    let (topology, mut graph) = chain();
    change(&mut graph);
    simulate(&topology, &graph, options, &|| false)
}

fn limited(options: &SimulateOptions<'_>) -> Result<u64, SimulateError> {
    let (topology, graph) = chain();
    bandwidth_limit_ps(&topology, &graph, options)
}

#[test]
fn graphs_that_do_not_hold_together() {
    let malformed = |change: fn(&mut TransferGraph), transfer, words: &str| {
        let error = tried(change, &options(1)).unwrap_err();
        assert!(matches!(error, SimulateError::Malformed { transfer: found, .. } if found == transfer), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        // Their messages cannot be listed either, for the same reason.
        let (topology, mut graph) = chain();
        change(&mut graph);
        assert_eq!(messages(&topology, &graph, &options(1)), Err(error));
    };
    malformed(|graph| graph.carriers[1].route = RouteIndex::new(7), 1, "a route that does not exist");
    malformed(|graph| graph.transfers[1].to = Rank::new(3), 1, "a rank that does not exist");
    malformed(|graph| graph.dependencies[0] = 1, 1, "not before it");
    malformed(|graph| graph.transfers[1].dependencies = 0..9, 1, "not before it");
    malformed(|graph| graph.transfers[0].carriers = 0..0, 0, "nothing to travel on");
    malformed(|graph| graph.batches.truncate(1), 1, "belongs to no batch");
}

#[test]
fn steps_that_do_not_fit_the_graph() {
    let with = |numbers: &[u32]| tried(|_| (), &SimulateOptions { sync: Sync::Steps(numbers), ..options(1) });
    assert_eq!(with(&[0]), Err(SimulateError::StepCount { found: 1, expected: 2 }));
    assert_eq!(with(&[4, 3]), Err(SimulateError::StepOrder { transfer: 1, step: 3, later: 4 }));
    let limit = |numbers: &[u32]| limited(&SimulateOptions { sync: Sync::Steps(numbers), ..options(1) });
    assert_eq!(limit(&[0]), Err(SimulateError::StepCount { found: 1, expected: 2 }));
    assert_eq!(limit(&[4, 3]), Err(SimulateError::StepOrder { transfer: 1, step: 3, later: 4 }));
    assert!(matches!(limited(&options(u64::MAX)), Err(SimulateError::SizeTooLarge { .. })));
    // Equal and sparse numbers are fine.
    assert_eq!(with(&[7, 7]).unwrap().time_ps, with(&[3, 4_000_000_000]).unwrap().time_ps);
}

#[test]
fn too_much_is_refused_before_it_is_begun() {
    let too_large = |options| tried(|_| (), &options).unwrap_err();
    let pieces = Pieces::AtMost { bytes: 1 };
    let work_max = 1_000_000;
    let found = too_large(SimulateOptions { pieces, work_max, ..options(10_000_000) });
    assert_eq!(found, SimulateError::TooLarge { messages: 20_000_000, limit: 1_000_000 });
    assert!(found.to_string().contains("use larger pieces"), "{found}");
    let found = too_large(options(u64::MAX));
    assert!(matches!(found, SimulateError::SizeTooLarge { .. }), "{found}");
    let alpha = canopy_topology::Latency::from_nanos(u64::MAX);
    assert_eq!(too_large(SimulateOptions { alpha, ..options(1) }), SimulateError::TooLong);
}

/// The computing of shares counts as work, too, and the end is soon after it is asked for.
#[test]
fn work_is_bounded_and_can_be_stopped() {
    let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
    let request = SynthesisRequest::new(collective(&topology, CollectiveKind::Allgather), Algorithm::Forest);
    let graph = checked(&topology, &synthesize(&topology, &request, &Never, &Silent).unwrap()).0;
    let options = SimulateOptions { pieces: Pieces::Count(20), ..options(1 << 24) };
    let whole = simulate(&topology, &graph, &options, &|| false).unwrap();
    let limited = SimulateOptions { work_max: whole.event_count + 1_000, ..options };
    let found = simulate(&topology, &graph, &limited, &|| false);
    assert_eq!(found, Err(SimulateError::TooLarge { messages: whole.message_count, limit: limited.work_max }));
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    assert_eq!(simulate(&topology, &graph, &options, &stop), Err(SimulateError::Stopped));
    assert_eq!(asked.get(), 3);
}
