//! Plans by a rule, simulated by class: beside the run of all their trees, and never below what links demand.

use canopy_schedule::{Collective, CollectiveKind, Schedule, by_class, compile};
use canopy_simulate::{
    ClassModel, ClassOutcome, Pieces, Sharing, SimulateError, SimulateOptions, Sync, least_time_ps, simulate,
};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Rate, Topology, TopologyLimits, generate};

use CollectiveKind::{Allgather, Allreduce, ReduceScatter};

const WORK_MAX: u64 = 4_000_000_000;

struct Case {
    topology: Topology,
    schedule: Schedule,
    model: ClassModel,
    algbw: Rate,
}

fn case(expression: &str, kind: CollectiveKind, algorithm: Algorithm) -> Case {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let schedule = synthesize(&topology, &SynthesisRequest::new(collective, algorithm), &Never, &Silent).unwrap();
    let classes = by_class(&topology, collective, &schedule.shape, &|| false).unwrap().unwrap();
    let algbw = classes.verdict.algbw.clone();
    let model = ClassModel::of(&topology, collective, &schedule.shape, &classes).unwrap();
    Case { topology, schedule, model, algbw }
}

impl Case {
    fn run(&self, options: &SimulateOptions<'_>) -> ClassOutcome {
        self.model.run(&self.algbw, options, &|| false).unwrap().unwrap()
    }

    /// Times by class and of all trees.
    fn times(&self, size_bytes: u64) -> (u64, u64) {
        let options = SimulateOptions::usual(size_bytes, WORK_MAX);
        let graph = compile(&self.topology, &self.schedule).unwrap();
        let whole = simulate(&self.topology, &graph, &options, &|| false).unwrap();
        (self.run(&options).reached.time_ps, whole.time_ps)
    }
}

/// Where a share has one stage to take, or one rank is like all others, it is the same run.
#[test]
fn plans_of_one_class_take_as_long_as_all_of_their_trees() {
    for (expression, kind, algorithm) in [
        ("dgx-h100:boxes=8", Allgather, Algorithm::Stages),
        ("dgx-h100:boxes=4", ReduceScatter, Algorithm::Stages),
        ("dgx-a100:boxes=4", Allreduce, Algorithm::Stages),
        ("mi250:boxes=4", Allgather, Algorithm::Stages),
        ("torus:8x8", Allgather, Algorithm::Orbits),
        ("torus:6x8", ReduceScatter, Algorithm::Orbits),
        ("torus:4x4x4", Allreduce, Algorithm::Orbits),
    ] {
        let case = case(expression, kind, algorithm);
        for size_bytes in [1 << 10, 1 << 20, 1 << 24, 1 << 28] {
            let (by_class, whole) = case.times(size_bytes);
            let off = by_class.abs_diff(whole);
            assert!(off <= whole / 200, "{expression} {kind} {size_bytes}: {by_class} by class, {whole} of all trees");
        }
    }
}

/// Elsewhere it is an estimate: within 2 % of large messages, and within 40 % of any.
#[test]
fn faults_and_several_stages_are_estimated() {
    for (expression, kind, algorithm) in [
        ("dgx-h100:boxes=8,faults=nics:2+gpus:1+seed:1", Allgather, Algorithm::Stages),
        ("dgx-h100:boxes=8,faults=nics:1+seed:1", Allreduce, Algorithm::Stages),
        ("pod:boxes=8,su=4,rails=8,oversub=2", Allgather, Algorithm::Stages),
        ("torus:8x8,faults=gpus:1+seed:1", Allgather, Algorithm::Orbits),
    ] {
        let case = case(expression, kind, algorithm);
        for (size_bytes, percent) in [(1 << 10, 40), (1 << 20, 40), (1 << 24, 40), (1 << 30, 2)] {
            let (by_class, whole) = case.times(size_bytes);
            let off = by_class.abs_diff(whole);
            assert!(
                off * 100 <= whole * percent,
                "{expression} {kind} {size_bytes}: {by_class} by class, {whole} of all trees"
            );
        }
    }
}

#[test]
fn no_time_is_below_that_of_the_busiest_link() {
    for expression in ["dgx-h100:boxes=32,faults=nics:3+seed:2", "pod:boxes=16,su=4,rails=8,oversub=2"] {
        let case = case(expression, Allgather, Algorithm::Stages);
        let mut before = 0;
        for size_bytes in (10..36).step_by(5).map(|power| 1_u64 << power) {
            let usual = SimulateOptions::usual(size_bytes, WORK_MAX);
            let limit_ps = least_time_ps(size_bytes, &case.algbw).unwrap();
            let deps = case.run(&usual);
            let whole = case.run(&SimulateOptions { pieces: Pieces::Whole, sharing: Sharing::Fifo, ..usual });
            let steps = case.run(&SimulateOptions { sync: Sync::Steps(&[]), ..usual });
            for found in [&deps, &whole, &steps] {
                assert!(found.reached.time_ps >= limit_ps && found.reached.limit_ps == limit_ps);
                assert!(!found.links.is_empty() && !found.critical_path.is_empty());
            }
            assert!(deps.reached.time_ps > before, "larger sizes take longer");
            before = deps.reached.time_ps;
        }
    }
}

#[test]
fn legs_and_links_are_those_of_the_network() {
    let case = case("dgx-h100:boxes=8,faults=nics:2+seed:1", Allgather, Algorithm::Stages);
    let found = case.run(&SimulateOptions::usual(1 << 30, WORK_MAX));
    for leg in &found.critical_path {
        assert!(leg.from != leg.to && leg.link.index() < case.topology.links().len());
    }
    let busiest = found.links.iter().map(|(_, of)| of.busy_ps).max().unwrap();
    assert!(busiest <= found.reached.time_ps && busiest * 100 >= found.reached.time_ps * 90);
}

#[test]
fn rules_that_were_not_judged_are_refused() {
    let [one, other] = ["dgx-h100:boxes=4", "torus:4x4"].map(|expression| {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let collective = Collective::new(Allgather, None, topology.rank_count()).unwrap();
        let algorithm = if expression.starts_with("torus") { Algorithm::Orbits } else { Algorithm::Stages };
        let schedule = synthesize(&topology, &SynthesisRequest::new(collective, algorithm), &Never, &Silent).unwrap();
        let classes = by_class(&topology, collective, &schedule.shape, &|| false).unwrap().unwrap();
        (topology, collective, schedule, classes)
    });
    let refused = ClassModel::of(&one.0, one.1, &one.2.shape, &other.3).map(drop);
    assert_eq!(refused, Err(SimulateError::Rule { what: "is not the one that was judged" }));
}
