//! Draws take as many elements as asked for, each once, and say what they cannot do.

use crate::fault_kind::FaultKind;
use crate::generate::generate;
use crate::limits::TopologyLimits;
use crate::model::Topology;

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// Directed links of a rate.
fn links_at(topology: &Topology, rate: u64) -> usize {
    topology.links().iter().filter(|link| link.capacity.bytes_per_sec() == rate).count()
}

#[test]
fn so_many_ranks_are_gone_and_so_many_nics_slower_both_ways() {
    for seed in 1..20 {
        let faulty = topology(&format!("dgx-a100:boxes=4,faults=nics:3@1/2+gpus:2+seed:{seed}"));
        assert_eq!(faulty.rank_count(), 30);
        assert_eq!(links_at(&faulty, 12_500_000_000), 6, "seed {seed}");
        assert_eq!(faulty.first_unbalanced(), None);
    }
    let down = topology("mi250:boxes=2,faults=nics:5");
    assert_eq!(topology("mi250:boxes=2").links().len() - down.links().len(), 10);
    let all = topology("rail:boxes=2,faults=nics:16@3/5");
    assert_eq!(links_at(&all, 30_000_000_000), 32);
}

#[test]
fn every_kind_breaks_what_it_says() {
    let (box_link, nic) = (300_000_000_000, 25_000_000_000);
    let four = "dgx-a100:boxes=4";
    let boxes = topology(&format!("{four},faults=boxes:1+seed:2"));
    assert_eq!((boxes.rank_count(), links_at(&boxes, box_link), links_at(&boxes, nic)), (24, 48, 48));
    assert_eq!(boxes.nodes().iter().filter(|node| node.id.ends_with("nv")).count(), 3);
    let slow = topology(&format!("{four},faults=switches:5@1/5"));
    assert_eq!((links_at(&slow, box_link / 5), links_at(&slow, nic / 5)), (64, 64));
    let inside = topology(&format!("{four},faults=links-inside:7@1/3"));
    assert_eq!((links_at(&inside, box_link / 3), links_at(&inside, nic)), (14, 64));
    let outside = topology(&format!("{four},faults=links-outside:7"));
    assert_eq!((links_at(&outside, box_link), links_at(&outside, nic)), (64, 50));
    let links = topology("torus:4x4,faults=links:3@1/5");
    assert_eq!(links_at(&links, 5_000_000_000), 6);
    let directed = topology("genkautz:n=9,d=4,faults=links:3@1/5");
    assert!((3..=6).contains(&links_at(&directed, 5_000_000_000)));
}

/// Plans are found again by their expression: a draw of GPUs and NICs never changes.
#[test]
fn the_seed_decides_and_nothing_else() {
    let missing = |healthy: &Topology, faulty: &Topology| -> Vec<String> {
        let ids = healthy.nodes().iter().map(|node| node.id.clone());
        ids.filter(|id| faulty.find_node(id).is_none()).collect()
    };
    let healthy = topology("dgx-a100:boxes=4");
    let faulty = topology("dgx-a100:boxes=4,faults=nics:3@1/2+gpus:4+seed:7");
    assert_eq!(missing(&healthy, &faulty), ["b0g1", "b1g4", "b2g3", "b3g5"]);
    let slow = faulty.links().iter().filter(|link| link.capacity.bytes_per_sec() == 12_500_000_000);
    let mut slow: Vec<&str> = slow.map(|link| faulty.node(link.from.min(link.to)).id.as_str()).collect();
    slow.sort_unstable();
    slow.dedup();
    assert_eq!(slow, ["b1g0", "b1g6", "b2g0"]);
    let faulty = topology("mi250:boxes=3,faults=nics:5+gpus:3");
    assert_eq!(missing(&topology("mi250:boxes=3"), &faulty), ["b1g11", "b2g4", "b2g14"]);
    let ib = faulty.find_node("ib").unwrap();
    let without = faulty.ranks().filter(|rank| !faulty.has_link(rank.node(), ib));
    let without: Vec<&str> = without.map(|rank| faulty.node(rank.node()).id.as_str()).collect();
    assert_eq!(without, ["b1g3", "b1g4", "b1g9", "b2g3", "b2g9"]);

    let drawn = |seed: u64| missing(&healthy, &topology(&format!("dgx-a100:boxes=4,faults=gpus:9+seed:{seed}")));
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
    assert_eq!(missing(&healthy, &topology("dgx-a100:boxes=4,faults=gpus:9")), drawn(1));
}

/// All 64 links in a box or to InfiniBand, once each, beside a dead box and a slow switch.
#[test]
fn an_element_is_drawn_once_and_not_with_what_it_is_part_of() {
    for seed in 1..10 {
        let all = topology(&format!(
            "dgx-a100:boxes=4,faults=links:12@1/2+links-outside:8@1/5+links-inside:12@1/3+nics:16@1/4+boxes:1+seed:{seed}"
        ));
        let found =
            [2, 5, 3, 4].map(|part| (links_at(&all, 300_000_000_000 / part), links_at(&all, 25_000_000_000 / part)));
        assert_eq!(found, [(24, 0), (0, 16), (24, 0), (0, 32)], "seed {seed}");
    }
}

/// A switch that is gone takes the only way out of its boxes along, or only that of one box.
#[test]
fn a_draw_that_splits_the_network_is_refused_with_what_helps() {
    let mut answers = [0, 0];
    for seed in 1..60 {
        let expression = format!("dgx-a100:boxes=4,faults=switches:1+seed:{seed}");
        match generate(&expression, &TopologyLimits::STANDARD) {
            Ok(left) => {
                answers[0] += 1;
                let found = (left.rank_count(), links_at(&left, 300_000_000_000), links_at(&left, 25_000_000_000));
                assert_eq!(found, (32, 48, 64));
            }
            Err(error) => {
                answers[1] += 1;
                let text = error.to_string();
                assert!(text.contains("no path from b0g0 to b1g0") && text.contains("another `seed`"), "{text}");
                assert_eq!(error.field().as_deref(), Some("faults"));
            }
        }
    }
    assert!(answers.iter().all(|&count| count > 0), "{answers:?}");
    // What is split by what it names is not the draw's fault.
    let named = topology("ring:8,down=0-1+4-5,faults=gpus:0");
    assert!(named.first_unreachable().is_some());
}

#[test]
fn what_cannot_be_drawn_is_refused_with_what_can() {
    for (value, words) in [
        ("nics", "join items such as"),
        ("nics:", "join items such as"),
        ("nics:1@2", "join items such as"),
        ("nics:-1", "join items such as"),
        ("nics:+1", "join items such as"),
        ("nics:1++gpus:1", "faults=: not a count"),
        ("nics:1+nics:2", "faults=nics:2: given twice"),
        ("seed:1+seed:1", "given twice"),
        ("seed:x", "below 2^64"),
        ("seed:18446744073709551616", "below 2^64"),
        ("gpus:1@1/2", "gpus are gone or healthy, never slow"),
        ("boxes:1@1/2", "boxes are gone or healthy, never slow"),
        ("nic:1", "did you mean `nics`?"),
        ("links-insid:1", "did you mean `links-inside`?"),
        ("fans:1", "use boxes, switches, gpus, nics, links-inside, links-outside, links, seed"),
        ("gpus:17", "there are 16 gpus to draw (ranks); ask for at most 16"),
        (
            "nics:17",
            "there are 16 nics to draw (links between a rank and a switch outside its box); ask for at most 16",
        ),
        ("nics:99999999999999999999", "ask for at most 16"),
        ("switches:4", "there are 3 switches"),
        ("boxes:3", "there are 2 boxes"),
        ("gpus:15", "leave at least two"),
        ("boxes:2", "leave at least two"),
        ("gpus:9+boxes:1", "there are 8 gpus"),
        ("nics:1@3/2", "3/2"),
        ("nics:1@0/2", "0/2"),
        ("switches:1@1/0", "1/0"),
    ] {
        let expression = format!("dgx-a100:boxes=2,faults={value}");
        let error = generate(&expression, &TopologyLimits::STANDARD).unwrap_err().to_string();
        assert!(error.contains(words), "{expression}: {error}");
    }
    for kind in ["nics", "boxes", "switches", "links-inside"] {
        let error = generate(&format!("ring:8,faults={kind}:1"), &TopologyLimits::STANDARD).unwrap_err().to_string();
        assert!(error.contains(&format!("no {kind} to draw")), "{error}");
    }
    for kind in FaultKind::ALL {
        let none = topology(&format!("ring:8,faults={}:0", kind.word()));
        assert_eq!(none.links(), topology("ring:8").links());
    }
}
