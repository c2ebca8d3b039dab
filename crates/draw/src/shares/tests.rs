use std::collections::BTreeMap;

use canopy_topology::{NodeIndex, TopologyLimits, generate};
use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::band::Band;
use super::*;
use crate::svg::Curve;

/// A rail network with this number of boxes.
fn rail(boxes: usize) -> Topology {
    generate(&format!("rail:boxes={boxes},gpus=8,nv=300GB/s,nic=25GB/s"), &TopologyLimits::STANDARD).unwrap()
}

fn class(name: &str) -> UseClass {
    UseClass { name: name.to_owned(), does: "allreduce".to_owned(), groups: 4, ranks: 8, size: "1 GiB".to_owned() }
}

fn named(number: usize) -> Vec<UseClass> {
    (0..number).map(|number| class(&format!("class{number}end"))).collect()
}

/// The links of a network by their ends, with what each class takes by the position of the link.
fn links(topology: &Topology, parts: impl Fn(usize) -> Vec<u32>) -> Vec<SharedLink> {
    let mut rates: BTreeMap<(NodeIndex, NodeIndex), (usize, u128)> = BTreeMap::new();
    for link in topology.links() {
        let sum = rates.entry((link.from, link.to)).or_default();
        *sum = (sum.0 + 1, sum.1 + u128::from(link.capacity.bytes_per_sec()));
    }
    let link = |(position, ((from, to), (links, bytes_per_sec)))| {
        let billionths: Vec<u32> = parts(position);
        let is_busiest = billionths.iter().sum::<u32>() == 1_000_000_000;
        SharedLink { from, to, links, bytes_per_sec, billionths, is_busiest }
    };
    rates.into_iter().enumerate().map(link).collect()
}

fn drawn(topology: &Topology, classes: &[UseClass], links: &[SharedLink]) -> String {
    let notes = ["A note.".to_owned()];
    draw_shares(&SharesDrawing { title: "Who uses which link", notes: &notes, topology, classes, links })
}

/// How many elements a drawing has, which must be well-formed.
fn elements(drawn: &str) -> usize {
    let mut reader = Reader::from_str(drawn);
    let mut found = 0;
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Eof => return found,
            Event::Start(_) | Event::Empty(_) => found += 1,
            _ => {}
        }
    }
}

/// Twice the area of a polygon.
fn area(corners: &[Point]) -> f64 {
    let next = corners.iter().cycle().skip(1);
    corners.iter().zip(next).map(|(a, b)| a.0 * b.1 - a.1 * b.0).sum::<f64>().abs()
}

#[test]
fn a_class_covers_its_part_of_a_band() {
    for curve in [
        Curve::Straight([(0.0, 0.0), (100.0, 0.0)]),
        Curve::Straight([(5.0, 7.0), (-60.0, 80.0)]),
        Curve::Cubic([(0.0, 0.0), (30.0, 0.0), (70.0, 40.0), (100.0, 40.0)]),
    ] {
        let band = Band::along(&curve, 8.0);
        let whole = area(&band.strip(0, 1_000_000_000));
        let parts = [(0, 250_000_000), (250_000_000, 750_000_000), (750_000_000, 1_000_000_000)];
        for (part, is) in parts.iter().zip([0.25, 0.5, 0.25]) {
            // Bends make the outer strip longer.
            let found = area(&band.strip(part.0, part.1)) / whole;
            assert!((found - is).abs() < 0.02, "{found} of {is}");
        }
        let sum: f64 = parts.iter().map(|(low, high)| area(&band.strip(*low, *high))).sum();
        assert!((sum / whole - 1.0).abs() < 1e-6, "strips neither overlap nor leave gaps: {sum} of {whole}");
    }
}

#[test]
fn the_legend_and_the_kinds_say_who_takes_what() {
    let topology = rail(4);
    let is_nic = |node: NodeIndex| topology.node(node).id.starts_with("rail");
    let mut found = links(&topology, |_| vec![0, 0, 0]);
    for link in &mut found {
        let is_nic = is_nic(link.from) || is_nic(link.to);
        link.billionths = if is_nic { vec![0, 1_000_000_000, 0] } else { vec![97_200_000, 0, 0] };
        link.is_busiest = is_nic;
    }
    let text = drawn(&topology, &[class("tp"), class("dp"), class("pp")], &found);
    for words in [
        ">tp<",
        ">dp<",
        ">pp<",
        ">9.7 %<",
        ">100.0 %<",
        ">0 %<",
        ">free<",
        "NIC out: rank → switch",
        "NIC in: switch → rank",
        "inside boxes: rank → switch in the box",
        "32 links of 25 GB/s, busy all the time",
        "outlined: busy all the time (64 links)",
        "b0g0 -&gt; rail0, 25 GB/s: dp 100.0 %; busy all the time",
    ] {
        assert!(text.contains(words), "`{words}` is missing from\n{text}");
    }
    assert!(!text.contains("Folded"), "{text}");
    assert_eq!(text, drawn(&topology, &[class("tp"), class("dp"), class("pp")], &found));
}

#[test]
fn a_large_network_is_folded_and_says_so() {
    let topology = rail(128);
    let found = links(
        &topology,
        |position| {
            if position % 3 == 0 { vec![600_000_000, 400_000_000] } else { vec![100_000_000, 0] }
        },
    );
    let text = drawn(&topology, &named(2), &found);
    assert!(text.contains("Folded: of 128 boxes, the map shows") && text.contains("Folded: a column"), "{text}");
    assert!(elements(&text) < 1_000 && text.len() < 200_000, "{} elements, {} bytes", elements(&text), text.len());
    // Without boxes, there is no part to show.
    let topology = generate("torus:16x16", &TopologyLimits::STANDARD).unwrap();
    let text = drawn(&topology, &named(2), &links(&topology, |_| vec![1, 2]));
    assert!(
        text.contains("Folded: 256 nodes are too many for a map") && text.contains("< 0.1 %")
            || text.contains("&lt; 0.1 %")
    );
}

/// The most bands of a map, each with all colours, and more kinds of links and classes than are told apart.
#[test]
fn no_drawing_has_more_elements_than_the_limit() {
    let topology = generate("complete:23", &TopologyLimits::STANDARD).unwrap();
    let mut found = links(&topology, |_| vec![125_000_000; 8]);
    assert!(found.len() <= map::BANDS_MAX && found.len() + 2 * 23 > map::BANDS_MAX);
    for (position, link) in found.iter_mut().enumerate() {
        link.bytes_per_sec += (position % 40) as u128;
    }
    let most = elements(&drawn(&topology, &named(8), &found));
    assert!((6_000..=ELEMENTS_MAX).contains(&most), "{most}");
    found.iter_mut().for_each(|link| link.billionths = vec![50_000_000; 20]);
    let text = drawn(&topology, &named(20), &found);
    assert!(elements(&text) <= ELEMENTS_MAX && text.contains(">13 others<"), "{text}");
    assert!(text.contains("Folded: 13 classes share") && text.contains("Folded: of kinds of links"), "{text}");
}

#[test]
fn nothing_at_all_is_drawn_as_nothing() {
    let topology = rail(2);
    elements(&drawn(&topology, &[], &[]));
    elements(&drawn(&topology, &[class("</text><script>")], &[]));
    elements(&drawn(&topology, &[], &links(&topology, |_| vec![])));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the numbers say, the classes of a link take no more than all of it, each takes what it took, and each is in
    /// the drawing.
    #[test]
    fn classes_divide_links_and_none_is_lost(
        parts in proptest::collection::vec(proptest::collection::vec(0_u32..400_000_000, 0..12), 1..60),
        number in 0_usize..12,
        boxes in 1_usize..4,
    ) {
        let topology = rail(boxes);
        let numbers = |position: usize| parts.get(position % parts.len()).cloned().unwrap_or_default();
        let found: Vec<SharedLink> = links(&topology, |_| vec![])
            .into_iter()
            .enumerate()
            .map(|(position, link)| SharedLink { billionths: numbers(position), ..link })
            .collect();
        let classes = named(number);
        let (kept, divided) = fold::folded(&classes, &found);
        prop_assert!(kept.len() <= COLOURS.len() && kept.len() == number.min(COLOURS.len()));
        for (before, after) in found.iter().zip(&divided) {
            let sum = |parts: &[u32]| parts.iter().map(|&part| u64::from(part)).sum::<u64>();
            let own: Vec<u32> = before.billionths.iter().copied().take(number).collect();
            prop_assert_eq!(sum(&after.billionths), sum(&own).min(1_000_000_000));
            if number <= COLOURS.len() && sum(&own) <= 1_000_000_000 {
                prop_assert_eq!(&after.billionths[..own.len()], own.as_slice());
            }
        }
        let text = drawn(&topology, &classes, &found);
        prop_assert!(elements(&text) <= ELEMENTS_MAX);
        for class in &kept {
            let name = format!(">{}<", class.name);
            prop_assert!(text.contains(&name), "{}", name);
        }
    }
}
