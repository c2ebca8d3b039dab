//! Machines that vendors sell: their sizes, and rates against sums by hand.

use super::*;

/// Bytes per second that leave a node, in tenths of GB/s.
fn leaving(topology: &Topology, id: &str) -> u128 {
    topology.degrees()[topology.find_node(id).unwrap().index()].1 / 100_000_000
}

#[test]
fn sizes_of_machines() {
    for (expression, ranks, switches, links) in [
        ("dgx-h200:boxes=2", 16, 3, 64),
        ("dgx-b200:boxes=4", 32, 5, 128),
        ("dgx-b300", 8, 1, 16),
        ("hgx:boxes=2,nics=16", 16, 3, 64),
        // Two boxes of four NICs, each a switch with two GPUs and the fabric.
        ("hgx:boxes=2,nics=4", 16, 2 + 8 + 1, 2 * (16 + 16 + 8)),
        ("hgx:boxes=1,nics=4", 8, 1, 16),
        ("gb200-nvl72", 72, 1, 144),
        ("gb200-nvl72:racks=4", 288, 5, 2 * (288 + 288)),
        ("gb300-nvl72:racks=2,gpus=36", 72, 3, 288),
        // 28 pairs in a box.
        ("mi300x", 8, 0, 56),
        ("mi300x:boxes=2", 16, 1, 2 * (56 + 16)),
        ("mi355x:boxes=2,nics=2", 16, 1 + 4, 2 * (56 + 16 + 4)),
        ("tpu-v4:4x4x8", 128, 0, 6 * 128),
        ("tpu-v5p:4x4x8,twist=true", 128, 0, 6 * 128),
        // Rows of two: each chip has one neighbour in each direction.
        ("tpu-v4:2x2x2", 8, 0, 24),
        ("trn2", 16, 0, 64),
        ("trn2:hosts=4", 64, 0, 6 * 64),
        ("trn2:boxes=2,hosts=4", 128, 1, 8 * 128),
        // Two units of two boxes, 8 rails each; every leaf with 8 spines.
        ("pod:boxes=4,su=2", 32, 4 + 16 + 8, 2 * (32 + 32 + 16 * 8)),
        ("pod:boxes=3,su=2,rails=2,spines=1", 24, 3 + 4 + 1, 2 * (24 + 24 + 4)),
        ("pod:boxes=2,su=4,rails=1", 16, 2 + 1, 2 * (16 + 16)),
        ("pod:boxes=1", 8, 1, 16),
    ] {
        check_size(expression, ranks, switches, links);
    }
}

#[test]
fn machines_have_the_rates_of_their_links() {
    for (expression, inside, nic) in [
        // 18 × 25, 18 × 50 GB/s of NVLink; 400 and 800 Gb/s.
        ("dgx-h200:boxes=2", 4500, 500),
        ("dgx-b200:boxes=2", 9000, 500),
        ("dgx-b300:boxes=2", 9000, 1000),
        ("gb200-nvl72:racks=2", 9000, 500),
        ("gb300-nvl72:racks=2", 9000, 1000),
        ("dgx-b200:boxes=2,nv=800GB/s,nic=200Gb/s,nics=16", 8000, 500),
        ("hgx:boxes=2,gpus=4,nics=4", 4500, 500),
    ] {
        let topology = topology(expression);
        let found = (rate(&topology, "b0g1", "b0nv"), rate(&topology, "ib", "b1g3"));
        assert_eq!(found, (inside, nic), "{expression}");
    }
    // 7 × 64 + 50 GB/s, and 7 × 76.8 + 50.
    assert_eq!(leaving(&topology("mi300x:boxes=2"), "b1g7"), 4980);
    assert_eq!(leaving(&topology("mi355x:boxes=2"), "b1g7"), 5876);
    // 6 × 50 GB/s; six times 800 Gb/s.
    assert_eq!(leaving(&topology("tpu-v4:4x4x4"), "000"), 3000);
    assert_eq!(leaving(&topology("tpu-v5p:4x4x4"), "000"), 6000);
    // 1.28 TB/s both ways are 640 GB/s one way; 3.2 Tb/s for 16 chips are 25 GB/s each.
    assert_eq!(leaving(&topology("trn2:hosts=4"), "b0g63"), 6400);
    assert_eq!(leaving(&topology("trn2:boxes=2,hosts=4"), "b0g63"), 6650);
    let host = topology("trn2");
    assert_eq!(
        (rate(&host, "b0g0", "b0g3"), rate(&host, "b0g0", "b0g12"), rate(&host, "b0g0", "b0g5")),
        (1280, 1280, 0)
    );
}

#[test]
fn gpus_that_share_a_nic_are_next_to_each_other() {
    let topology = topology("hgx:boxes=2,nics=4");
    for (gpu, nic) in [("b1g0", "b1nic0"), ("b1g1", "b1nic0"), ("b1g2", "b1nic1"), ("b1g7", "b1nic3")] {
        assert_eq!((rate(&topology, gpu, nic), rate(&topology, nic, "ib")), (500, 500), "{gpu}");
    }
    assert_eq!(rate(&topology, "b1g2", "b1nic0"), 0);
}

#[test]
fn leaves_of_pods_have_upwards_what_they_have_downwards() {
    // 16 boxes × 1 GPU × 50 GB/s over 8 spines, halved.
    let pod = topology("pod:boxes=32,su=16,rails=8,oversub=2");
    assert_eq!((rate(&pod, "su1rail3", "spine7"), rate(&pod, "b31g3", "su1rail3")), (500, 500));
    assert_eq!((rate(&pod, "b31g3", "su0rail3"), rate(&pod, "b15g3", "su0rail3")), (0, 500));
    // GPUs g and g + 4 are on rail g: 16 × 2 × 50 GB/s over 4 spines.
    let pod = topology("pod:boxes=32,su=16,rails=4");
    assert_eq!((rate(&pod, "su0rail3", "spine0"), rate(&pod, "b0g7", "su0rail3")), (4000, 500));
    let rail = &pod.node(pod.find_node("b0g7").unwrap()).attributes.rail;
    assert_eq!(rail.as_deref(), Some("rail3"));
}

#[test]
fn switches_reduce_where_it_is_said() {
    let kind = |topology: &Topology, id: &str| topology.node(topology.find_node(id).unwrap()).kind;
    let all = NodeKind::Switch { multicast: true, aggregate: true };
    let h100 = topology("dgx-h100:boxes=2,nvls=true,sharp=false");
    assert_eq!((kind(&h100, "b1nv"), kind(&h100, "ib")), (all, NodeKind::PLAIN_SWITCH));
    let pod = topology("pod:boxes=4,su=2,sharp=true");
    assert_eq!((kind(&pod, "b1nv"), kind(&pod, "su0rail0"), kind(&pod, "spine0")), (NodeKind::PLAIN_SWITCH, all, all));
}

#[test]
fn machines_refuse_what_they_are_not_made_of() {
    for (expression, words) in [
        ("hgx:boxes=2,nics=3", "a number of NICs that divides the number of GPUs of a box, or a multiple of it"),
        ("hgx:boxes=2,nics=0", "whole numbers from 1"),
        ("dgx-h100:boxes=2,nvls=yes", "`true` or `false`"),
        ("mi300x:nvls=true", "nvls"),
        ("gb200-nvl72:boxes=2", "boxes"),
        ("tpu-v4:4x4", "three sizes such as `4x4x8`"),
        ("tpu-v4:4x8x8,twist=true", "multiples of 4, such as `4x4x8`"),
        ("tpu-v4:2x2x4,twist=true", "multiples of 4, such as `4x4x8`"),
        ("trn2:hosts=2", "1 (Trn2) or 4 (Trn2 UltraServer)"),
        ("pod:su=4", "boxes"),
        ("pod:boxes=4,rails=3", "a number of rails that divides"),
        ("pod:boxes=4,su=2,nic=1B/s,spines=3", "uplinks of a leaf"),
        ("pod:boxes=18446744073709551616", "limit"),
        ("gb200-nvl72:racks=9999999999", "limit"),
        ("mi300x:gpus=4294967296", "limit"),
        ("trn2:boxes=18446744073709551615,hosts=4", "limit"),
        ("tpu-v4:4x4x18446744073709551615", "limit"),
    ] {
        let error = generate(expression, &LIMITS).unwrap_err().to_string();
        assert!(error.contains(words), "{expression}: {error}");
    }
}
