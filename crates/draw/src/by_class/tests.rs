use std::collections::BTreeMap;

use canopy_schedule::{
    Action, BoxGrid, Collective, CollectiveKind, Generator, Inside, Motion, Orbits, Seats, Stages, Template, Turn,
    by_class,
};
use canopy_topology::{TopologyLimits, generate};
use quick_xml::Reader;
use quick_xml::events::Event;

use super::*;
use crate::words::width_of;

fn drawn(expression: &str, shape: &Shape, faults: &[String]) -> String {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count()).unwrap();
    let classes = by_class(&topology, collective, shape, &|| false).unwrap().unwrap();
    let notes = ["by class".to_owned()];
    let drawing =
        ByClassDrawing { title: "a plan", notes: &notes, topology: &topology, shape, classes: &classes, faults };
    draw_by_class(&drawing)
}

fn stages(places: u32, digits: &[u32], empty: Vec<u32>) -> Shape {
    Shape::Stages(Stages {
        chunks_per_share: 1,
        actions: vec![Action::Copy],
        grid: BoxGrid { places, digits: digits.to_vec(), seats: Seats::InOrder { empty } },
        inside: vec![Inside::Star],
        classes: BTreeMap::new(),
        inside_first: Vec::new(),
        exceptions: BTreeMap::new(),
    })
}

/// Rings in the first dimension, then in the second: one tree for all.
fn torus(width: u32, height: u32) -> Shape {
    let count = width * height;
    let turn = |unit, size| Motion::Turns(vec![Turn { first: 0, count, unit, size, step: 1 }]);
    let parent = |seat: u32| match (seat / width, seat % width) {
        (0, 0) => 0,
        (0, column) => column - 1,
        (row, column) => (row - 1) * width + column,
    };
    Shape::Orbits(Orbits {
        chunks_per_share: 1,
        actions: vec![Action::Copy],
        seat_count: count,
        seats: Seats::InOrder { empty: Vec::new() },
        generators: vec![
            Generator { order: width, motion: turn(1, width) },
            Generator { order: height, motion: turn(width, height) },
        ],
        templates: vec![Template {
            root: 0,
            weight: 1,
            parents: (0..count).map(parent).collect(),
            over: BTreeMap::new(),
        }],
        patches: Vec::new(),
    })
}

/// Where each text stands: left, right, baseline and size.
fn texts(drawn: &str) -> Vec<(f64, f64, f64, f64, String)> {
    let mut reader = Reader::from_str(drawn);
    let (mut found, mut open) = (Vec::new(), None);
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Eof => return found,
            Event::Start(element) if element.name().as_ref() == "text" => {
                let attributes: BTreeMap<String, String> = element
                    .attributes()
                    .map(|attribute| {
                        let attribute = attribute.unwrap();
                        (attribute.key.0.to_owned(), attribute.value.to_string())
                    })
                    .collect();
                open = Some(attributes);
            }
            Event::Text(words) => {
                let Some(attributes) = open.take() else { continue };
                let words = words.as_ref().to_owned();
                let number = |key: &str| attributes.get(key).map(|value| value.parse::<f64>().unwrap());
                let (x, y) = (number("x").unwrap(), number("y").unwrap());
                let size = number("font-size").unwrap_or(12.0);
                let width = width_of(&words, 12) * size / 12.0;
                let left = match attributes["text-anchor"].as_str() {
                    "start" => x,
                    "middle" => x - width / 2.0,
                    _ => x - width,
                };
                found.push((left, left + width, y, size, words));
            }
            _ => {}
        }
    }
}

/// No text lies over another or beyond the sheet.
#[track_caller]
fn check_texts(drawn: &str) {
    let all = texts(drawn);
    for (number, one) in all.iter().enumerate() {
        assert!(one.0 >= 0.0 && one.1 <= WIDTH, "{} is beyond the sheet", one.4);
        for other in &all[..number] {
            let is_beside = one.1 <= other.0 || other.1 <= one.0;
            let is_above = (one.2 - other.2).abs() >= one.3.min(other.3) * 0.9;
            assert!(is_beside || is_above, "`{}` lies over `{}`", one.4, other.4);
        }
    }
}

#[test]
fn boxes_stages_and_links_are_drawn_beside_each_other() {
    let healthy = drawn("dgx-a100:boxes=12", &stages(8, &[3, 4], Vec::new()), &[String::new()]);
    for words in ["12 boxes of 8 ranks", "NIC up: 96 links of 25 GB/s", "to 3 peers, 3 shares of 96 each", "100.0 %"] {
        assert!(healthy.contains(words), "`{words}` is missing from\n{healthy}");
    }
    check_texts(&healthy);
    let faults = ["", "1 rank missing", "NIC of place 0 at 12.5 GB/s, not 25, NIC of place 1 at 12.5 GB/s, not 25"];
    let faults = faults.map(str::to_owned);
    let expression = "dgx-a100:boxes=40,nodes-down=b1g3,degrade=b2g0-ib*1/2";
    let faulty = drawn(expression, &stages(8, &[40], vec![11]), &faults);
    assert!(faulty.contains("38 boxes of 8 ranks") && faulty.contains("1 box of 7 ranks"), "{faulty}");
    assert!(faulty.contains("missing") && faulty.contains("1 rank missing"), "{faulty}");
    check_texts(&faulty);
    assert_eq!(faulty, drawn(expression, &stages(8, &[40], vec![11]), &faults), "the same bytes");
}

#[test]
fn tori_are_drawn_by_dimension() {
    let found = drawn("torus:6x4", &torus(4, 6), &[]);
    for words in ["Dimension 1, of 4", "Dimension 2, of 6", "1: weight 1, depth 8", "up 100.0 %", "down 0.0 %"] {
        assert!(found.contains(words), "`{words}` is missing from\n{found}");
    }
    check_texts(&found);
}
