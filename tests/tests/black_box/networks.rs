//! The published networks, end to end through the real command line: optimal, written, read back, verified.

use canopy_prerequisites::samples;
use canopy_tests::Bench;

/// Plans as MSCCL XML and verifies the file; returns the stated optimality.
#[track_caller]
fn optimality(bench: &Bench, topology: &str, collective: &str) -> String {
    let reply = bench.plan(topology, collective, "msccl-xml", "plan.xml");
    let checked = reply["checked"].as_array().expect("checked is a list");
    for check in ["structure", "meaning", "load", "certificate", "file"] {
        assert!(checked.iter().any(|name| name == check), "{check} did not run: {reply}");
    }
    let verdict = bench.verify("plan.xml");
    assert_eq!(verdict["collective"], collective);
    assert_eq!(verdict["format"], "msccl-xml");
    reply["optimality"].as_str().expect("optimality is text").to_owned()
}

#[track_caller]
fn optimal(topology: &str, collectives: &[&str]) {
    let bench = Bench::default();
    for collective in collectives {
        assert_eq!(optimality(&bench, topology, collective), "1/1", "{collective} on {topology}");
    }
}

#[test]
fn two_a100_boxes_are_optimal() {
    optimal("dgx-a100:boxes=2", &["allgather", "reduce-scatter", "allreduce"]);
}

#[test]
fn two_h100_boxes_are_optimal() {
    optimal("dgx-h100:boxes=2", &["allgather", "reduce-scatter", "allreduce"]);
}

#[test]
fn two_half_mi250_boxes_are_optimal() {
    optimal("mi250:boxes=2,gpus=8", &["allgather", "reduce-scatter"]);
}

#[test]
fn two_mi250_boxes_fit_the_runtime_at_83_trees_a_rank() {
    let bench = Bench::default();
    let reply = bench.plan("mi250:boxes=2", "allgather", "msccl-xml", "plan.xml");
    assert_eq!(reply["optimality"], "1/1");
    assert_eq!(reply["chunks"], 83);
    assert_eq!(reply["trees"], 83 * 32);
    bench.verify("plan.xml");
}

#[test]
fn torus_and_ring_are_optimal() {
    optimal("torus:4x4", &["allgather", "reduce-scatter", "allreduce"]);
    optimal("ring:8", &["allgather", "reduce-scatter", "allreduce"]);
}

#[test]
fn a_real_dump_of_an_eight_gpu_box_is_optimal() {
    let Some(dump) = samples("nccl-topo/rccl-topo_8p_940vm.xml") else { return };
    let bench = Bench::default();
    for collective in ["allgather", "reduce-scatter"] {
        assert_eq!(optimality(&bench, dump.to_str().unwrap(), collective), "1/1");
    }
}

#[test]
fn uneven_networks_reach_their_own_allreduce_optimum() {
    let bench = Bench::default();
    for (network, algbw) in [
        ("mesh:4x4", "40000000000"),
        ("torus:4x4,down=00-01", "155000000000/3"),
        ("dgx-a100:boxes=2,degrade=b0g3-ib*1/2", "518750000000/3"),
    ] {
        for (format, file) in [("json", "plan.json"), ("msccl-xml", "plan.xml")] {
            let reply = bench.plan(network, "allreduce", format, file);
            assert_eq!((&reply["optimality"], &reply["algbw"]), (&"1/1".into(), &algbw.into()), "{network}: {reply}");
            bench.verify(file);
        }
    }
}

/// Independently computed: `tests/oracle/expected.json`. The three that are not Eulerian have no switches, so their
/// optima are reachable too (Edmonds).
#[test]
fn every_oracle_network_gets_a_certified_plan() {
    let folder = canopy_tests::workspace().join("tests/oracle");
    let expected = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let bench = Bench::default();
    let mut planned = 0;
    for (name, values) in expected.as_object().unwrap() {
        let path = folder.join(format!("{name}.yaml"));
        for collective in ["allgather", "reduce-scatter"] {
            let reply = bench.plan(path.to_str().unwrap(), collective, "json", "plan.json");
            assert_eq!(reply["optimality"], "1/1", "{collective} on {name}");
            assert_eq!(reply["algbw"], values[collective], "{collective} on {name}");
            let verdict = bench.verify("plan.json");
            assert_eq!(verdict["optimality"], "1/1");
            planned += 1;
        }
    }
    assert_eq!(planned, 66);
}

#[test]
fn the_same_request_gives_the_same_bytes_and_a_hit() {
    let bench = Bench::default();
    let first = bench.plan("dgx-a100:boxes=2", "allgather", "msccl-xml", "first.xml");
    let second = bench.plan("dgx-a100:boxes=2", "allgather", "msccl-xml", "second.xml");
    assert_eq!((&first["cache"], &second["cache"]), (&"miss".into(), &"hit".into()));
    let read = |name: &str| std::fs::read(bench.file(name)).unwrap();
    assert_eq!(read("first.xml"), read("second.xml"));

    let elsewhere = Bench::default();
    let third = elsewhere.plan("dgx-a100:boxes=2", "allgather", "msccl-xml", "third.xml");
    assert_eq!(third["cache"], "miss");
    assert_eq!(read("first.xml"), std::fs::read(elsewhere.file("third.xml")).unwrap());
    assert_eq!(first["plan"], third["plan"]);
}
