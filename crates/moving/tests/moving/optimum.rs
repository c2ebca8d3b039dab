//! The bound and the plan against the optimum of the whole linear program, over every route of the network.

use canopy_moving::{Fabric, Matrix, Network, PlanError, Prices, PricesError, Tiers, bound, check, plan, plan_at_ends};
use canopy_optimize::Fraction;
use canopy_topology::{Fault, Link, Topology, TopologyLimits, generate};
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, clarabel, constraint, variable};

use crate::chance::Chance;

/// Links of a network as arcs between ranks, switches of boxes or ends of their pairs, and the networks of NICs.
struct Arcs {
    nodes: usize,
    /// From, to, rate, price.
    arcs: Vec<(usize, usize, u64, u64)>,
    /// Rates of about this size, for floats.
    unit: f64,
}

impl Arcs {
    fn new(tiers: &Tiers, prices: &Prices) -> Self {
        let (ranks, size, boxes) = (tiers.ranks(), tiers.box_size(), tiers.boxes());
        let ends = ranks + boxes + size;
        let rates = tiers.rates();
        let mut arcs = Vec::new();
        let mut add = |from: usize, to: usize, rate: u64, price: u64| {
            if rate > 0 {
                arcs.push((from, to, rate, price));
            }
        };
        for rank in 0..ranks {
            let switch = ranks + rank / size;
            let hub = ranks + boxes + if tiers.fabric() == Fabric::Rails { rank % size } else { 0 };
            if tiers.pairs().is_empty() {
                add(rank, switch, rates.inner_out[rank], prices.inner_out[rank].into());
                add(switch, rank, rates.inner_in[rank], prices.inner_in[rank].into());
            } else {
                // All pairs of a rank together have what it has to its box.
                let [start, end] = [ends + rank, ends + ranks + rank];
                add(rank, start, rates.inner_out[rank], prices.inner_out[rank].into());
                add(end, rank, rates.inner_in[rank], prices.inner_in[rank].into());
                for place in 0..size {
                    let to = ends + ranks + rank / size * size + place;
                    let pair = rank * size + place;
                    add(start, to, tiers.pairs()[pair], prices.pairs[pair].into());
                }
            }
            add(rank, hub, rates.outer_out[rank], prices.outer_out[rank].into());
            add(hub, rank, rates.outer_in[rank], prices.outer_in[rank].into());
        }
        Self { nodes: ends + 2 * ranks, arcs, unit: 1.0 }
    }

    /// The links of a topology, free.
    fn of(topology: &Topology) -> Self {
        let arc = |link: &Link| (link.from.index(), link.to.index(), link.capacity.bytes_per_sec(), 0);
        Self { nodes: topology.nodes().len(), arcs: topology.links().iter().map(arc).collect(), unit: 1e9 }
    }

    /// Distances from a node; none to nodes that it does not reach (Bellman and Ford).
    fn distances(&self, from: usize) -> Vec<Option<u64>> {
        let mut distances = vec![None; self.nodes];
        distances[from] = Some(0);
        for _ in 0..self.nodes {
            for &(start, end, _, price) in &self.arcs {
                let Some(way) = distances[start].map(|way| way + price) else { continue };
                if distances[end].is_none_or(|known| way < known) {
                    distances[end] = Some(way);
                }
            }
        }
        distances
    }

    /// What prices prove: all bytes times their distances, over all rates times prices.
    fn proven(&self, matrix: &Matrix) -> Option<Fraction> {
        let mut pays = 0_u128;
        for from in 0..matrix.ranks() {
            let distances = self.distances(from);
            for (to, &bytes) in matrix.row(from).iter().enumerate().filter(|&(to, &bytes)| to != from && bytes > 0) {
                pays += u128::from(bytes) * u128::from(distances[to]?);
            }
        }
        Fraction::new(pays, self.arcs.iter().map(|&(_, _, rate, price)| u128::from(rate) * u128::from(price)).sum())
    }
}

/// The least time by the linear program, with one commodity for each sender; none for bytes that have no way.
fn optimum(network: &Arcs, matrix: &Matrix) -> Option<f64> {
    let reaches = |from: usize| {
        let distances = network.distances(from);
        matrix.row(from).iter().zip(distances).all(|(bytes, distance)| *bytes == 0 || distance.is_some())
    };
    if !(0..matrix.ranks()).all(reaches) {
        return None;
    }
    let mut problem = ProblemVariables::new();
    let time = problem.add(variable().min(0.0));
    let is_sender = |rank: &usize| matrix.row(*rank).iter().any(|bytes| *bytes > 0);
    let senders: Vec<usize> = (0..matrix.ranks()).filter(is_sender).collect();
    let flows: Vec<Vec<Variable>> =
        senders.iter().map(|_| network.arcs.iter().map(|_| problem.add(variable().min(0.0))).collect()).collect();
    let mut model = problem.minimise(time).using(clarabel);
    for (arc, &(_, _, rate, _)) in network.arcs.iter().enumerate() {
        let load: Expression = flows.iter().map(|flow| flow[arc]).sum();
        model = model.with(constraint!(load <= rate as f64 / network.unit * time));
    }
    for (&sender, flow) in senders.iter().zip(&flows) {
        let mut balances = vec![Expression::from(0.0); network.nodes];
        for (&(from, to, _, _), &flow) in network.arcs.iter().zip(flow) {
            balances[from] -= flow;
            balances[to] += flow;
        }
        for (node, balance) in balances.into_iter().enumerate().filter(|(node, _)| *node != sender) {
            let demand = if node < matrix.ranks() { matrix.row(sender)[node] } else { 0 };
            model = model.with(constraint!(balance == demand as f64 / 1e6));
        }
    }
    model.solve().ok().map(|solution| solution.value(time) * 1e6 / network.unit)
}

/// The least parts of the optimum that bounds and plans reached.
#[derive(Debug)]
struct Least {
    bound: f64,
    plan: f64,
}

/// Compares bound and plan of a case with the optimum over some arcs.
fn compare(tiers: &Tiers, matrix: &Matrix, arcs: &Arcs, least: &mut Least) {
    let Some(best) = optimum(arcs, matrix) else {
        assert!(matches!(plan(tiers, matrix, None), Err(PlanError::NoWay { .. })), "{tiers:?} {matrix:?}");
        assert!(matches!(bound(tiers, matrix), Err(PricesError::Unreachable { .. })));
        return;
    };
    if (0..tiers.ranks()).all(|rank| matrix.row(rank).iter().all(|bytes| *bytes == 0)) {
        return;
    }
    let planned = plan(tiers, matrix, None).unwrap();
    let proven = planned.prices.least_time(tiers, matrix).unwrap();
    assert_eq!(Arcs::new(tiers, &planned.prices).proven(matrix), Some(proven));
    let time = check(tiers, matrix, &planned.parts).unwrap().time.to_float();
    let proven = proven.to_float();
    let case = format!("time {time}, optimum {best}, bound {proven}\n{tiers:?}\n{matrix:?}");
    assert!(proven <= best * (1.0 + 1e-6) && time >= best * (1.0 - 1e-6), "{case}");
    assert!(time <= best / 0.97 && proven >= 0.97 * best, "{case}");
    if let Ok(ends) = plan_at_ends(tiers, matrix, None) {
        let time = check(tiers, matrix, &ends.parts).unwrap().time.to_float();
        let proven = ends.prices.least_time(tiers, matrix).unwrap().to_float();
        assert!(proven <= best * (1.0 + 1e-6) && time >= best * (1.0 - 1e-6), "{case}");
    }
    *least = Least { bound: least.bound.min(proven / best), plan: least.plan.min(best / time) };
}

/// Networks that are compared in each test: `CANOPY_CASES`, or so many.
fn cases(default: usize) -> usize {
    std::env::var("CANOPY_CASES").map_or(default, |text| text.parse().expect("CANOPY_CASES is a number"))
}

/// No bound is above the optimum over all routes, and every plan comes near it.
#[test]
fn no_bound_is_above_the_optimum_over_every_route_and_plans_come_near_it() {
    let count = cases(60);
    let mut chance = Chance(0x1234_5678_9abc);
    for fabric in [Fabric::Rails, Fabric::Full] {
        for wildness in 0..3 {
            for is_mesh in [false, true] {
                let mut least = Least { bound: 1.0, plan: 1.0 };
                for case in 0..count.div_ceil(12) {
                    let tiers = chance.network(fabric, wildness);
                    let tiers = if is_mesh { chance.mesh(tiers, wildness) } else { tiers };
                    let matrix = chance.traffic(&tiers, case);
                    compare(&tiers, &matrix, &Arcs::new(&tiers, &Prices::free(&tiers)), &mut least);
                }
                eprintln!("{fabric:?}, {wildness}, mesh {is_mesh}: {least:?}");
            }
        }
    }
}

/// The same with the links of topologies as they are, some of them slow or dead.
#[test]
fn recognised_topologies_have_the_optimum_of_their_own_links() {
    let mut chance = Chance(0x5eed_5eed);
    let mut least = Least { bound: 1.0, plan: 1.0 };
    for case in 0..cases(33) {
        let expression = [
            "dgx-h100:boxes=2,gpus=2,nv=50GB/s,nic=50GB/s",
            "dgx-h100:boxes=2,gpus=4",
            "dgx-a100:boxes=3,gpus=3,nic=100GB/s",
            "rail:boxes=3,gpus=3,nv=100GB/s,nic=50GB/s",
            "rail:boxes=4,gpus=2,nv=60GB/s,nic=50GB/s",
            "mi300x:boxes=2,gpus=4",
            "mi300x:boxes=3,gpus=3",
            "pod:boxes=4,su=2,gpus=2",
            "leaf-spine:leaves=3,hosts=3,spines=3",
            "hgx:boxes=2,gpus=3,nics=6",
            "complete:5,bw=10GB/s",
        ][case % 11];
        let healthy = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let mut faults = Vec::new();
        for _ in 0..chance.below(5) {
            let link = healthy.links()[usize::try_from(chance.below(healthy.links().len() as u64)).unwrap()];
            let from = healthy.node(link.from).id.clone();
            let to = healthy.node(link.to).id.clone();
            let both_ways = chance.below(2) == 0;
            let numerator = 1 + chance.below(9);
            faults.push(match chance.below(3) {
                0 => Fault::Link { from, to, both_ways },
                _ => Fault::Degrade { from, to, both_ways, numerator, denominator: 10 },
            });
        }
        let found = Network::recognise(&healthy, &faults).ok().filter(|network| network.lost.is_empty());
        // Faults may leave no two tiers.
        let Network { tiers, topology, .. } = found.unwrap_or_else(|| Network::recognise(&healthy, &[]).unwrap());
        let matrix = chance.traffic(&tiers, case / 11);
        compare(&tiers, &matrix, &Arcs::of(&topology), &mut least);
    }
    eprintln!("{least:?}");
}

/// Bytes within a box leave it and come back where its links are slower than NICs with them.
#[test]
fn bytes_within_a_box_also_leave_it() {
    for (fabric, boxes, inner, outer, expected) in [
        // The sender has its link to the switch and its NIC.
        (Fabric::Full, 2, 50, 50, 10.0),
        (Fabric::Rails, 2, 50, 50, 10.0),
        (Fabric::Full, 2, 450, 50, 2.0),
        // A box alone has no way back.
        (Fabric::Full, 1, 50, 50, 10.0),
        (Fabric::Rails, 1, 50, 50, 20.0),
    ] {
        let tiers = Tiers::even(fabric, boxes, 2, inner, outer).unwrap();
        let mut bytes = vec![0; tiers.ranks() * tiers.ranks()];
        bytes[1] = 1_000_000;
        let matrix = Matrix::new(u32::try_from(tiers.ranks()).unwrap(), bytes).unwrap();
        let planned = plan(&tiers, &matrix, None).unwrap();
        let time = check(&tiers, &matrix, &planned.parts).unwrap().time.to_float() / 1_000.0;
        let least = planned.prices.least_time(&tiers, &matrix).unwrap().to_float() / 1_000.0;
        assert!((time / expected - 1.0).abs() < 1e-3, "{fabric:?} {boxes} {time}");
        assert!((least / expected - 1.0).abs() < 1e-3, "{fabric:?} {boxes} {least}");
    }
}

/// What prices prove is what a plain search for distances over all links adds up to, whatever the prices.
#[test]
fn what_prices_prove_is_added_up_over_all_links() {
    let mut chance = Chance(0x0bad_cafe);
    for case in 0..cases(200) {
        let fabric = if case % 2 == 0 { Fabric::Rails } else { Fabric::Full };
        let wildness = chance.below(3);
        let tiers = chance.network(fabric, wildness);
        let tiers = if chance.below(2) == 0 { chance.mesh(tiers, wildness) } else { tiers };
        let matrix = chance.traffic(&tiers, case);
        let mut prices = |count: usize| -> Vec<u32> {
            (0..count).map(|_| u32::try_from(chance.below(4) * chance.below(100)).unwrap()).collect()
        };
        let ranks = tiers.ranks();
        let prices = Prices {
            inner_out: prices(ranks),
            inner_in: prices(ranks),
            outer_out: prices(ranks),
            outer_in: prices(ranks),
            pairs: prices(tiers.pairs().len()),
        };
        let found = prices.least_time(&tiers, &matrix).ok();
        assert_eq!(found, Arcs::new(&tiers, &prices).proven(&matrix), "{tiers:?} {matrix:?} {prices:?}");
    }
}
