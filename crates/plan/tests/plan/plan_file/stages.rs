//! Plans by a rule: of a network that is written down, and of one that an expression makes.

use std::error::Error as _;

use canopy_plan::{PlanFile, read_plan, read_rule};
use canopy_schedule::{CollectiveKind, Seats, Shape};
use canopy_synth::Algorithm;
use canopy_topology::{Fault, TopologyLimits};

use crate::plan_file::samples::{RULE_KINDS as KINDS, comes_back, synthesized_by, text};
use crate::support::approved::check_approved;

fn stages(expression: &str, kind: CollectiveKind) -> PlanFile {
    synthesized_by(Algorithm::Stages, expression, kind)
}

#[test]
fn rules_of_small_networks_come_back_with_all_their_links() {
    for network in ["dgx-h100:boxes=4", "rail:boxes=6,gpus=4", "mi250:boxes=4", "pod:boxes=8,su=2,rails=8,oversub=2"] {
        for kind in KINDS {
            let written = comes_back(&stages(network, kind));
            assert!(written.contains(r#""topology":{"#) && written.contains(r#"{"canopy":7,"#), "{network}");
        }
    }
}

/// Boxes that are slow for what their NICs bring.
#[test]
fn what_goes_in_the_box_first_comes_back() {
    for network in
        ["rail:boxes=6,gpus=4,nv=60GB/s,nic=50GB/s", "rail:boxes=128,gpus=8,nv=60GB/s,nic=50GB/s,faults=gpus:1+seed:1"]
    {
        for kind in KINDS {
            let plan = stages(network, kind);
            let Shape::Stages(rule) = &plan.schedule.shape else { panic!("no rule") };
            assert!(rule.inside_first.iter().any(|&chunks| chunks > 0), "{network}");
            let written = comes_back(&plan);
            assert!(written.contains(r#""inside":["star"],"inside_first":["#), "{written:.600}");
            assert_eq!(read_rule(written.as_bytes()).unwrap().stages, *rule);
        }
    }
    let plan = text(&stages("dgx-h100:boxes=4", CollectiveKind::Allgather));
    assert!(!plan.contains("inside_first"), "{plan:.600}");
}

/// The rule of a plan, as it is written.
#[test]
fn the_rule_of_slow_boxes_is_approved() {
    let rule = |kind| {
        let written = text(&stages("rail:boxes=128,gpus=8,nv=60GB/s,nic=50GB/s", kind));
        let rule = written.split_once(r#""stages":"#).unwrap().1.split_once(r#""bound""#).unwrap().0;
        format!("{} {rule}\n", kind.name())
    };
    check_approved("inside-first.txt", &KINDS.map(rule).concat());
}

/// Pieces of boxes that faults have touched, seats without ranks, classes of boxes, boxes without ranks.
#[test]
fn what_differs_from_a_rule_comes_back() {
    let networks = [
        "dgx-h100:boxes=12,faults=nics:2+gpus:2+seed:1",
        "mi250:boxes=4,faults=nics:1+seed:1",
        "dgx-h100:boxes=263,gpus=2",
        "rail:boxes=16,gpus=4,faults=nics:2@1/2+seed:3",
    ];
    for network in networks {
        for kind in KINDS {
            let plan = stages(network, kind);
            let Shape::Stages(rule) = &plan.schedule.shape else { panic!("no rule") };
            let is_sound = rule.exceptions.is_empty() && rule.classes.is_empty();
            assert!(!is_sound || rule.grid.seats != Seats::InOrder { empty: Vec::new() }, "{network}");
            comes_back(&plan);
        }
    }
}

#[test]
fn a_network_that_an_expression_makes_is_told_by_it() {
    for kind in KINDS {
        let plan = stages("dgx-h100:boxes=128", kind);
        assert!(comes_back(&plan).len() < 1000);
        // Whoever took a NIC and a rank away said nothing of it in an expression.
        let faults = [
            Fault::Link { from: "b3g2".to_owned(), to: "ib".to_owned(), both_ways: true },
            Fault::Node { id: "b9g0".to_owned() },
        ];
        let left = plan.topology.punctured(&faults).unwrap();
        let written = comes_back(&PlanFile { topology: left, ..plan });
        assert!(written.contains(r#""without":[{"node":"b9g0"},{"link":["b3g2","ib"]},{"link":["ib","b3g2"]}]"#));
    }
    // Nobody can know what this one was made of.
    let plan = stages("dgx-h100:boxes=128", CollectiveKind::Allgather);
    let topology = plan.topology.clone().with_name(Some("ours".to_owned()));
    assert!(comes_back(&PlanFile { topology, ..plan }).contains(r#""name":"ours""#));
}

#[test]
fn refusals_of_rules() {
    let plan = text(&stages("dgx-h100:boxes=128,faults=nics:1+seed:1", CollectiveKind::Allgather));
    let refusal = |from: &str, to: &str| {
        assert!(plan.contains(from), "{from}");
        let error = read_plan(plan.replacen(from, to, 1).as_bytes(), &TopologyLimits::STANDARD).unwrap_err();
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        (format!("{error}: {cause}"), error.field().unwrap_or_default())
    };
    let check = |(from, to): (&str, &str), expected: &str, field: &str| {
        let (message, found) = refusal(from, to);
        assert!(message.contains(expected), "{message}");
        assert_eq!(found, field, "{message}");
    };
    check(("dgx-h100:boxes=128", "dgx-h101:boxes=128"), "unknown family", "network.expression");
    check(("dgx-h100:boxes=128", "dgx-h100:boxes=127"), "network.identity is", "network.identity");
    check((r#""network":"#, r#""networks":"#), "neither topology nor network", "topology");
    check((r#""identity":""#, r#""without":[{"node":"x"}],"identity":""#), "no node `x`", "network.without");
    check((r#""stages":{"#, r#""stage":{"#), "schedule.stages is missing", "schedule.stages");
    check((r#""routes":[],"#, r#""routes":[],"sends":[],"#), "schedule.sends does not belong", "schedule.sends");
    let piece = plan.split_once(r#""pieces":["#).unwrap().1.split_once("]],").map(|(piece, _)| piece).unwrap();
    let twice = format!(r#""pieces":[{piece}]],{piece}]],"#);
    check((&format!(r#""pieces":[{piece}]],"#), &twice), "twice", "schedule.stages.pieces");
    check(
        (r#""certificate":{"kind":"cut""#, r#""certificate":{"kind":"partition""#),
        "certificate.sets",
        "certificate.sets",
    );
    check((r#""outside":"#, r#""inside":"#), "certificate.nodes", "certificate.nodes");
    check((r#""star""#, r#""ring""#), "unknown variant `ring`", "");
}

/// What one rank does needs no network, and the rule is read without it.
#[test]
fn the_rule_is_read_without_its_network() {
    for network in ["dgx-h100:boxes=12,faults=nics:2+gpus:2+seed:1", "pod:boxes=8,su=2,rails=8,oversub=2"] {
        let plan = stages(network, CollectiveKind::Allreduce);
        let rule = read_rule(text(&plan).as_bytes()).unwrap();
        assert_eq!((rule.collective, rule.rank_count), (plan.schedule.collective, plan.topology.rank_count()));
        assert_eq!(Shape::Stages(rule.stages), plan.schedule.shape);
    }
    let plan = text(&stages("dgx-h100:boxes=4", CollectiveKind::Allgather));
    for (from, to, field) in [
        (r#""digits":[4]"#, r#""digits":[4000000]"#, "schedule.stages.digits"),
        (r#""digits":[4]"#, r#""digits":[4000000000,4000000000]"#, "schedule.stages.digits"),
        (r#""digits":[4]"#, r#""digits":[0]"#, "schedule.stages.digits"),
        (r#""stages":{"#, r#""stage":{"#, "schedule.shape"),
        (r#""collective":"allgather""#, r#""collective":"allgathers""#, "collective"),
    ] {
        let error = read_rule(plan.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert_eq!(error.field().as_deref(), Some(field), "{error}");
    }
}
