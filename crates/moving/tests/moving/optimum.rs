//! The bound and the plan against the optimum of the whole linear program, with all relays in all boxes.

use canopy_moving::{Fabric, Matrix, PlanError, Tiers, bound, check, plan};
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, clarabel, constraint, variable};

use crate::chance::Chance;

/// Links of a network as arcs between ranks, switches of boxes, and the networks of NICs: from, to, rate.
fn arcs(tiers: &Tiers) -> (usize, Vec<(usize, usize, u64)>) {
    let (ranks, size, boxes) = (tiers.ranks(), tiers.box_size(), tiers.boxes());
    let rates = tiers.rates();
    let mut arcs = Vec::new();
    for rank in 0..ranks {
        let switch = ranks + rank / size;
        let hub = ranks + boxes + if tiers.fabric() == Fabric::Rails { rank % size } else { 0 };
        arcs.push((rank, switch, rates.inner_out[rank]));
        arcs.push((switch, rank, rates.inner_in[rank]));
        arcs.push((rank, hub, rates.outer_out[rank]));
        arcs.push((hub, rank, rates.outer_in[rank]));
    }
    (ranks + boxes + size, arcs)
}

/// Boxes that relay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relays {
    All,
    /// Those of sender and receiver.
    Ends,
}

/// The least time by the linear program: one commodity for each sender, what stays in boxes as a fixed load.
fn optimum(tiers: &Tiers, matrix: &Matrix, relays: Relays) -> Option<f64> {
    let (nodes, arcs) = arcs(tiers);
    let (ranks, size) = (tiers.ranks(), tiers.box_size());
    let mut problem = ProblemVariables::new();
    let time = problem.add(variable().min(0.0));
    let flows: Vec<Vec<Variable>> =
        (0..ranks).map(|_| arcs.iter().map(|_| problem.add(variable().min(0.0))).collect()).collect();
    let hubs = ranks + tiers.boxes();
    // Only the sender's box sends, and only other boxes receive.
    let is_closed = |source: usize, from: usize, to: usize| {
        relays == Relays::Ends
            && ((to >= hubs && from / size != source / size) || (from >= hubs && to / size == source / size))
    };
    let mut model = problem.minimise(time).using(clarabel);
    let inside = |from: usize, to: usize| if from / size == to / size && from != to { matrix.row(from)[to] } else { 0 };
    for (arc, &(from, to, rate)) in arcs.iter().enumerate() {
        let fixed: u64 = if to >= ranks && to < ranks + tiers.boxes() {
            (0..ranks).map(|other| inside(from, other)).sum()
        } else if from >= ranks && from < ranks + tiers.boxes() {
            (0..ranks).map(|other| inside(other, to)).sum()
        } else {
            0
        };
        let load: Expression = flows.iter().map(|flow| flow[arc]).sum();
        model = model.with(constraint!(load + fixed as f64 / 1e6 <= rate as f64 * time));
    }
    for (source, flow) in flows.iter().enumerate() {
        let mut balances = vec![Expression::from(0.0); nodes];
        for (&(from, to, _), &flow) in arcs.iter().zip(flow) {
            if is_closed(source, from, to) {
                model = model.with(constraint!(flow <= 0.0));
            }
            balances[from] -= flow;
            balances[to] += flow;
        }
        for (node, balance) in balances.into_iter().enumerate().filter(|(node, _)| *node != source) {
            let demand = if node < ranks && node / size != source / size { matrix.row(source)[node] } else { 0 };
            model = model.with(constraint!(balance == demand as f64 / 1e6));
        }
    }
    model.solve().ok().map(|solution| solution.value(time) * 1e6)
}

/// Gaps of some cases.
#[derive(Default)]
struct Gaps {
    bound: f64,
    plan: f64,
    unplanned: usize,
}

/// The greatest gaps over 50 networks with traffic: of the bound to the optimum with all relays, and of the plan to
/// that with relays in the boxes of sender and receiver.
fn gaps(fabric: Fabric, wildness: u64) -> Gaps {
    let mut chance = Chance(0x1234_5678_9abc + wildness);
    let mut gaps = Gaps::default();
    let mut cases = 0;
    while cases < 50 {
        let tiers = chance.network(fabric, wildness);
        let matrix = chance.matrix(tiers.ranks());
        let Ok(found) = bound(&tiers, &matrix) else { continue };
        let Some(best) = optimum(&tiers, &matrix, Relays::All) else { continue };
        cases += 1;
        assert_eq!(found.prices.least_time(&tiers, &matrix), Ok(found.time));
        let least = found.time.to_float();
        assert!(least <= best * (1.0 + 1e-6), "{least} {best}");
        gaps.bound = gaps.bound.max(1.0 - least / best);
        match plan(&tiers, &matrix, None) {
            Ok(planned) => {
                let time = check(&tiers, &matrix, &planned.parts).expect("a plan that is right").time.to_float();
                let best = optimum(&tiers, &matrix, Relays::Ends).expect("an optimum");
                gaps.plan = gaps.plan.max(1.0 - best / time);
            }
            Err(PlanError::NoRail { .. }) => gaps.unplanned += 1,
            Err(error) => panic!("{error}"),
        }
    }
    eprintln!("{fabric:?}, {wildness}: bound {:.6}, plan {:.6}, unplanned {}", gaps.bound, gaps.plan, gaps.unplanned);
    gaps
}

/// On one fabric, cuts are the optimum, and plans reach it.
#[test]
fn cuts_are_the_optimum_on_one_fabric() {
    for wildness in 0..3 {
        let gaps = gaps(Fabric::Full, wildness);
        assert!(gaps.bound < 1e-6 && gaps.plan < 1e-5 && gaps.unplanned == 0);
    }
}

/// On rails, too, if no NIC is dead and links to switches are six times as fast as NICs; else prices that follow loads
/// come near it.
#[test]
fn prices_come_near_the_optimum_on_rails() {
    for (wildness, bound_gap) in [(0, 1e-6), (1, 0.002), (2, 0.005)] {
        let gaps = gaps(Fabric::Rails, wildness);
        assert!(gaps.bound < bound_gap, "bound {}", gaps.bound);
        assert!(gaps.plan < 1e-3, "plan {}", gaps.plan);
    }
}
