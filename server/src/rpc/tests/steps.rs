//! Plans in steps: what the size of messages and the room of runtimes do to them.

use canopy_plan::{Format, Profile, Target};

use super::*;

fn document(yaml: &str) -> TopologyInput {
    TopologyInput::Document {
        kind: Some(FileKind::Own(DocumentFormat::Yaml)),
        content: bytes::Bytes::from(yaml.to_owned()),
    }
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

fn by_steps(topology: TopologyInput, size_bytes_max: u64, output: Target) -> Result<StoredPlan, PlanFailure> {
    let order = order(topology, CollectiveKind::Allgather, vec![output]);
    let order = Order { algorithm: Algorithm::Bfb, size_bytes_max, ..order };
    produce(&order, &Witness::default()).map(|produced| produced.plan)
}

/// A share of 1 kB takes 1 µs. From across, half of it comes either way; all of it the sooner way where the other is later
/// by more than that; again half each way where shares take long.
#[test]
fn latencies_count_at_the_size_that_was_asked_for() {
    let chunks = |latencies, size_bytes_max| {
        let plan = by_steps(around([1000, 1000], latencies), size_bytes_max, Format::Json.usual()).unwrap().plan;
        (plan.chunks_per_rank, plan.step_cost.unwrap().bandwidth.exact().to_owned())
    };
    assert_eq!(chunks(["1us", "1us"], 4_000), (2, "3/4".to_owned()));
    assert_eq!(chunks(["1us", "9us"], 4_000), (1, "1/1".to_owned()));
    assert_eq!(chunks(["1us", "9us"], 1 << 30), (2, "3/4".to_owned()));
}

/// From across, 20,011 and 19,997 parts of 40,008 come either way in equal times. MSCCL files name 32,767 chunks in all: the plan
/// has the best number of them that was tried instead, and says so.
#[test]
fn a_plan_in_steps_too_large_for_its_runtime_gets_fewer_chunks() {
    let network = || around([20_011, 19_997], ["0us", "0us"]);
    let json = by_steps(network(), 1 << 30, Format::Json.usual()).unwrap();
    assert_eq!((json.plan.chunks_per_rank % 40_008, json.warnings.len()), (0, 0));
    let msccl = by_steps(network(), 1 << 30, Target::from(Profile::Msccl)).unwrap();
    assert_eq!(msccl.plan.chunks_per_rank, 7_629);
    let fewer = msccl.warnings.iter().find(|warning| warning.code == "FEWER_TREES").unwrap();
    let expected = "the msccl profile allows 32767 chunks as an offset, and the best plan needs 160031: planned with 7629 chunks \
                    per share instead of 800039976, at 3053532819865/3053576873256 of their rate; set chunks to choose the number";
    assert_eq!(fewer.text, expected);
}

#[test]
fn a_number_of_chunks_that_was_stated_is_never_changed() {
    let exactly = |chunks| {
        let limits = TreeLimits { chunks: NonZeroU64::new(chunks), ..TreeLimits::NONE };
        let outputs = vec![Target::from(Profile::Msccl)];
        let order = order(around([20_011, 19_997], ["0us", "0us"]), CollectiveKind::Allgather, outputs);
        let order = Order { algorithm: Algorithm::Bfb, limits, ..order };
        produce(&order, &Witness::default()).map(|produced| produced.plan)
    };
    match exactly(40_008) {
        Err(failure) => {
            assert!(
                matches!(file_error(&failure), Some((0, LowerError::OverLimit { limit: 32_767, .. }))),
                "{failure}"
            );
        }
        Ok(_) => panic!("there is room"),
    }
    assert_eq!(exactly(3).unwrap().plan.chunks_per_rank, 3);
}

/// A network of a file is composed like that of the expression which makes it, whatever its nodes are called; what is not
/// made of anything known is refused.
#[test]
fn files_are_composed_as_what_they_are_found_to_be() {
    let listed = |expression: &str, turn: u32| {
        let network = canopy_topology::generate(expression, &TopologyLimits::STANDARD).unwrap();
        let count = network.rank_count();
        let name = |node: u32| format!("m{:03}", (node * turn + 1) % count);
        let nodes: Vec<String> = (0..count).map(|node| format!("{{id: {}}}", name(node))).collect();
        let links = network.links().iter().map(|link| {
            format!("- {{from: {}, to: {}, bandwidth: 25GB/s}}\n", name(link.from.number()), name(link.to.number()))
        });
        document(&format!("canopy: 1\nnodes: [{}]\nlinks:\n{}", nodes.join(", "), links.collect::<String>()))
    };
    let by_expansion = |topology| {
        let order = order(topology, CollectiveKind::Allreduce, vec![Format::Json.usual()]);
        produce(&Order { algorithm: Algorithm::Expansion, ..order }, &Witness::default())
    };
    for text in ["line:1(bipartite:4x4)", "power:2(diamond)", "genkautz:n=11,d=4"] {
        let cost = |topology| by_expansion(topology).unwrap().plan.plan.step_cost.unwrap();
        assert_eq!(cost(listed(text, 3)), cost(expression(text)), "{text}");
    }
    let unknown = by_expansion(listed("product(diamond;ring:3)", 5)).unwrap_err();
    assert!(
        canopy_planner::chain(&unknown).contains("nor is a known composition; give an expression without switches")
    );
}
