use canopy_plan::Format;
use canopy_schedule::{CollectiveKind, compile};
use canopy_simulate::least_time_ps;

use super::*;
use crate::{Context, NoSchedules, Planner, Request};

const VALID: RangeInclusive<u64> = 1..=(1 << 30);

fn question(sizes: &[u64]) -> SimulationQuestion {
    SimulationQuestion { sizes: sizes.to_vec(), timeline: None, alpha: Latency::from_nanos(1_000), valid: VALID }
}

fn file(expression: &str, kind: CollectiveKind) -> Vec<u8> {
    let request = Request { outputs: vec![Format::Json.usual()], ..Request::on(expression, kind) };
    let planned = Planner::new(TopologyLimits::STANDARD).plan(&request, Context::new(&NoSchedules)).unwrap();
    planned.files.files[0].content.clone()
}

fn simulated(content: &[u8], question: &SimulationQuestion) -> Result<Simulation, SimulationError> {
    simulate_file(content, question, &TopologyLimits::STANDARD, &|| false)
}

#[test]
fn figures_are_those_of_each_size_by_itself() {
    let content = file("dgx-a100:boxes=2", CollectiveKind::Allreduce);
    let asked = SimulationQuestion { timeline: Some(5 << 20), ..question(&[1 << 24, 1 << 12]) };
    let found = simulated(&content, &asked).unwrap();
    let plan = read_plan(&content, &TopologyLimits::STANDARD).unwrap();
    let graph = compile(&plan.topology, &plan.schedule).unwrap();
    let alone = |size: u64| {
        let options = SimulateOptions::usual(size, 1_000_000_000);
        simulate(&plan.topology, &graph, &options, &|| false).unwrap()
    };
    let sizes: Vec<(u64, u64)> = found.sizes.iter().map(|one| (one.size_bytes, one.time_ps)).collect();
    assert_eq!(sizes, [1 << 12, 1 << 24].map(|size| (size, alone(size).time_ps)));
    assert_eq!(found.bound, plan.bound.upper);
    assert_eq!(found.sizes[1].least_ps, least_time_ps(1 << 24, &plan.bound.upper));
    let (timeline, outcome) = (found.timeline.unwrap(), alone(5 << 20));
    assert_eq!((timeline.size_bytes, timeline.time_ps), (5 << 20, outcome.time_ps));
    assert_eq!(timeline.links.len(), 32);
    assert!(timeline.links_used > 32 && timeline.links.iter().any(|link| link.is_critical));
    for link in &timeline.links {
        assert_eq!(link.busy_ps.len(), 64);
        assert_eq!(link.busy_ps.iter().sum::<u64>(), link.link_use.busy_ps);
    }
}

#[test]
fn usual_sizes_are_those_that_the_plan_is_for() {
    let powers = [12, 14, 16, 18, 20, 22, 24, 26, 28, 30].map(|power| 1_u64 << power);
    assert_eq!(usual_sizes(&VALID), powers);
    assert_eq!(usual_sizes(&(0..=u64::MAX)), powers);
    assert_eq!(usual_sizes(&(5_000..=70_000)), [1 << 14, 1 << 16]);
    assert_eq!(usual_sizes(&(1..=100)), [100]);
    assert_eq!(usual_sizes(&((2 << 30)..=(3 << 30))), [3 << 30]);
}

#[test]
fn what_does_not_fit_is_refused_by_its_field() {
    let content = file("ring:4", CollectiveKind::Allgather);
    let refused = |question: SimulationQuestion, words: &str| {
        let error = simulated(&content, &question).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    };
    refused(question(&[4096; 17]), "sizes_bytes has 17 sizes, over the limit of 16");
    refused(question(&[1, 2, 1]), "sizes_bytes[2] repeats 1 bytes");
    refused(question(&[1, 0]), "sizes_bytes[1] is 0 bytes, but the plan is valid for 1 to 1073741824");
    refused(question(&[u64::MAX]), "sizes_bytes[0] is 18446744073709551615 bytes");
    refused(SimulationQuestion { timeline: Some(0), ..question(&[]) }, "timeline_size_bytes is 0 bytes");
    let slow = Latency::from_nanos(1_000_000_001);
    refused(
        SimulationQuestion { alpha: slow, ..question(&[]) },
        "alpha_ns is 1000000001, over the limit of 1000000000",
    );
    let endless = SimulationQuestion { valid: 1..=u64::MAX, ..question(&[1, 1 << 50]) };
    refused(endless, "sizes_bytes[1]: 1125899906842624 bytes travel in ");
    let uncounted = SimulationQuestion { valid: 1..=u64::MAX, ..question(&[u64::MAX]) };
    refused(uncounted, "sizes_bytes[0]: 18446744073709551615 bytes ");
    assert!(matches!(simulated(b"{}", &question(&[])), Err(SimulationError::File(_))));
    let long = vec![b' '; SIMULATED_FILE_BYTES_MAX + 1];
    assert!(matches!(simulated(&long, &question(&[])), Err(SimulationError::FileTooLarge { .. })));
    let stopped = simulate_file(&content, &question(&[]), &TopologyLimits::STANDARD, &|| true);
    assert!(matches!(stopped, Err(SimulationError::Stopped)), "{stopped:?}");
}

/// Only sizes that somebody states are worth a refusal.
#[test]
fn usual_sizes_that_take_too_much_work_are_left_out() {
    let plan = read_plan(&file("ring:4", CollectiveKind::Allgather), &TopologyLimits::STANDARD).unwrap();
    let subject = || {
        let graph = compile(&plan.topology, &plan.schedule).unwrap();
        let kind = plan.schedule.collective.kind();
        Subject { topology: plan.topology.clone(), graph, kind, bound: plan.bound.upper.clone() }
    };
    let simulated = |question: &SimulationQuestion, work_max| {
        subject().simulated(question, question.wanted().unwrap(), work_max, &|| false)
    };
    let usual = question(&[]);
    let found = simulated(&usual, 1_000).unwrap();
    let left_out = found.left_out.unwrap();
    assert_eq!(found.sizes.last().unwrap().size_bytes * 4, left_out);
    assert_eq!(simulated(&usual, WORK_MAX).unwrap().left_out, None);
    let [stated, drawn] = [question(&[left_out]), SimulationQuestion { timeline: Some(left_out), ..usual.clone() }];
    for question in [stated, drawn] {
        let error = simulated(&question, 1_000).unwrap_err();
        assert!(matches!(error, SimulationError::TooMuchWork { size_bytes, .. } if size_bytes == left_out), "{error}");
    }
    assert!(matches!(simulated(&usual, 1), Err(SimulationError::TooMuchWork { .. })));
}

/// 5,824 ranks in stages have 34 million hops, which are not written down.
#[test]
fn plans_by_a_rule_are_simulated_by_class() {
    let content = file("dgx-h100:boxes=728", CollectiveKind::Allgather);
    let found = simulated(&content, &question(&[1 << 30, 1 << 20])).unwrap();
    let sizes: Vec<u64> = found.sizes.iter().map(|one| one.size_bytes).collect();
    assert_eq!((sizes, found.left_out), (vec![1 << 20, 1 << 30], None));
    for one in &found.sizes {
        assert!(one.time_ps >= one.limit_ps && one.message_count > 0, "{one:?}");
        assert_eq!(Some(one.limit_ps), least_time_ps(one.size_bytes, &found.bound), "it is optimal");
    }
    let timeline = SimulationQuestion { timeline: Some(1 << 20), ..question(&[]) };
    let refused = simulated(&content, &timeline);
    assert!(matches!(refused, Err(SimulationError::NoTimeline { ranks: 5_824 })), "{refused:?}");
}
