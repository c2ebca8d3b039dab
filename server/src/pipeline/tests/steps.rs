//! Plans in steps: what the size of messages and the room of runtimes do to them.

use super::*;

fn document(yaml: &str) -> TopologyInput {
    TopologyInput::Document { format: DocumentFormat::Yaml, content: bytes::Bytes::from(yaml.to_owned()) }
}

/// Four ranks around, whose links have these rates in MB/s and latencies one way and the other.
fn around(rates: [u32; 2], latencies: [&str; 2]) -> TopologyInput {
    let mut yaml = "canopy: 1\nnodes: [{id: a}, {id: b}, {id: c}, {id: d}]\nlinks:\n".to_owned();
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")] {
        for (from, to, way) in [(from, to, 0), (to, from, 1)] {
            let (rate, latency) = (rates[way], latencies[way]);
            yaml += &format!("- {{from: {from}, to: {to}, bandwidth: {rate}MB/s, latency: {latency}}}\n");
        }
    }
    document(&yaml)
}

fn by_steps(topology: TopologyInput, size_bytes_max: u64, output: Output) -> Result<StoredPlan, PlanFailure> {
    let order = order(topology, CollectiveKind::Allgather, vec![output]);
    let order = Order { algorithm: Algorithm::Bfb, size_bytes_max, ..order };
    produce(&order, &Witness::default()).map(|produced| produced.plan)
}

/// A share of 1 kB takes 1 µs. From across, half of it comes either way; all of it the sooner way where the other is later
/// by more than that; again half each way where shares take long.
#[test]
fn latencies_count_at_the_size_that_was_asked_for() {
    let chunks = |latencies, size_bytes_max| {
        let plan = by_steps(around([1000, 1000], latencies), size_bytes_max, Output::Json).unwrap().plan;
        (plan.chunks_per_rank, plan.step_cost.unwrap().bandwidth)
    };
    assert_eq!(chunks(["1us", "1us"], 4_000), (2, "3/4".to_owned()));
    assert_eq!(chunks(["1us", "9us"], 4_000), (1, "1/1".to_owned()));
    assert_eq!(chunks(["1us", "9us"], 1 << 30), (2, "3/4".to_owned()));
}
