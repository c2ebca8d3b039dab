//! Plans by trees of one rank and symmetries.

use canopy_plan::read_plan;
use canopy_schedule::{CollectiveKind, Motion, Shape};
use canopy_synth::Algorithm;
use canopy_topology::TopologyLimits;

use crate::plan_file::samples::{RULE_KINDS as KINDS, comes_back, synthesized_by, text};

const NETWORKS: [&str; 6] = [
    "torus:3x3",
    "torus:4x5,faults=links:1+seed:1",
    "torus:3x4x5",
    "torus:3x4x5,faults=links:1+gpus:1+seed:2",
    "torus:2x3x3x3",
    "torus:12x12x12",
];

#[test]
fn trees_of_one_rank_come_back_with_their_symmetries() {
    let mut patched = 0;
    for network in NETWORKS {
        for kind in KINDS {
            let plan = synthesized_by(Algorithm::Orbits, network, kind);
            let Shape::Orbits(orbits) = &plan.schedule.shape else { panic!("no orbits") };
            patched += usize::from(!orbits.patches.is_empty());
            let written = comes_back(&plan);
            assert!(written.starts_with(r#"{"canopy":7,"#));
            assert_eq!(written.contains(r#""network":"#), network == "torus:12x12x12", "{network}");
        }
    }
    assert_eq!(patched, 6);
}

/// Symmetries as tables, parents without a pattern, switches on the way: what no generator makes today.
#[test]
fn what_has_no_short_form_is_listed() {
    let mut plan = synthesized_by(Algorithm::Orbits, "torus:9x9", CollectiveKind::Allgather);
    let Shape::Orbits(orbits) = &mut plan.schedule.shape else { panic!("no orbits") };
    orbits.generators[0].motion = Motion::Table((0..81).map(|node| (node + 9) % 81).collect());
    orbits.templates[0].parents = (0..81).map(|seat| seat * 5 % 81).collect();
    orbits.templates[0].over.insert(3, vec![81, 82]);
    let written = comes_back(&plan);
    assert!(written.contains(r#""parents":{"listed":[0,5,"#) && written.contains(r#""over":[[3,[81,82]]]"#));
}

#[test]
fn letters_that_stand_for_nothing_are_refused() {
    let plan = text(&synthesized_by(Algorithm::Orbits, "torus:3x3", CollectiveKind::Allgather));
    let (before, rest) = plan.split_once(r#""steps":[["#).unwrap();
    let (steps, rest) = rest.split_once(r#"],""#).unwrap();
    for (steps, letters, seat) in
        [(steps, "A?", 1), (steps, "AAz", 2), ("-1", "A", 0), ("9223372036854775807", "AA", 0)]
    {
        let damaged = format!(r#"{before}"steps":[[{steps}],"{letters}{rest}"#);
        let error = read_plan(damaged.as_bytes(), &TopologyLimits::STANDARD).unwrap_err();
        assert_eq!(error.field().as_deref(), Some("schedule.orbits.templates"));
        assert!(error.to_string().contains(&format!("seat {seat} ")), "{error}");
    }
}
