//! All-to-all with blocks of different sizes: against a linear program of its own, and against gather, scatter and maximum
//! flows, which are special cases of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use canopy_schedule::{Bound, Collective, CollectiveKind, Schedule, Shares, SharesError, certified_bound, judge_until};
use canopy_synth::{Algorithm, AllToAllError, Never, Silent, SynthesisError, SynthesisRequest, bound, synthesize};
use canopy_topology::{Rank, Rate, Topology, TopologyLimits, generate};
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, constraint, microlp, variable};
use proptest::prelude::*;

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn all_to_all(topology: &Topology) -> Collective {
    Collective::new(CollectiveKind::AllToAll, None, topology.rank_count()).unwrap()
}

fn blocks(topology: &Topology, weights: &[u64]) -> Result<Shares, SharesError> {
    Shares::in_proportion(all_to_all(topology), topology.rank_count(), weights.to_vec())
}

fn plan(topology: &Topology, shares: &Shares, algorithm: Algorithm) -> Result<Schedule, SynthesisError> {
    let request = SynthesisRequest { shares: shares.clone(), ..SynthesisRequest::new(all_to_all(topology), algorithm) };
    synthesize(topology, &request, &Never, &Silent)
}

/// The bound, whose certificate proves it.
#[track_caller]
fn proven(topology: &Topology, shares: &Shares) -> Bound {
    let collective = all_to_all(topology);
    let found = bound(topology, collective, shares, &Never).unwrap();
    assert_eq!(certified_bound(topology, collective, shares, &found.certificate).as_ref(), Ok(&found.upper));
    assert!(found.lower <= found.upper);
    found
}

/// algbw by the checker, of a plan for these very blocks.
#[track_caller]
fn reached(topology: &Topology, shares: &Shares, algorithm: Algorithm) -> Rate {
    let schedule = plan(topology, shares, algorithm).unwrap();
    assert_eq!(schedule.shares, *shares);
    judge_until(topology, &schedule, &|| false).unwrap().algbw
}

fn times(rate: &Rate, numerator: u64, denominator: u64) -> Rate {
    let (top, bottom) = rate.parts();
    Rate::new(top * numerator, bottom * denominator).unwrap()
}

/// The greatest algbw by the program of a flow for each pair: `(W/N)·F`.
///
/// Source: Basu 2024, equations (1)–(5), with demands.
#[expect(clippy::cast_precision_loss, reason = "a program in floating point")]
fn optimum(topology: &Topology, shares: &Shares) -> f64 {
    let unit = topology.links().iter().map(|link| link.capacity.bytes_per_sec()).max().unwrap() as f64;
    let pairs: Vec<(Rank, Rank)> = topology
        .ranks()
        .flat_map(|source| topology.ranks().map(move |rank| (source, rank)))
        .filter(|&(source, rank)| source != rank && shares.block(source, rank) > 0)
        .collect();
    let mut variables = ProblemVariables::new();
    let rate = variables.add(variable().min(0));
    let flows: Vec<Vec<Variable>> =
        pairs.iter().map(|_| topology.links().iter().map(|_| variables.add(variable().min(0))).collect()).collect();
    let mut model = variables.maximise(rate).using(microlp);
    for (index, link) in topology.links().iter().enumerate() {
        let load: Expression = flows.iter().map(|flow| flow[index]).sum();
        model = model.with(constraint!(load <= link.capacity.bytes_per_sec() as f64 / unit));
    }
    for (&(source, destination), flow) in pairs.iter().zip(&flows) {
        let demand = shares.block(source, destination) as f64;
        for node in 0..u32::try_from(topology.nodes().len()).unwrap() {
            let mut surplus = Expression::from(0);
            for (link, &flow) in topology.links().iter().zip(flow) {
                if link.to.number() == node {
                    surplus += flow;
                }
                if link.from.number() == node {
                    surplus -= flow;
                }
            }
            if node == destination.number() {
                model = model.with(constraint!(surplus >= demand * rate));
            } else if node != source.number() {
                model = model.with(constraint!(surplus >= 0));
            }
        }
    }
    let total = shares.weight_total(topology.rank_count()) as f64;
    let total = if *shares == Shares::Equal { total * total } else { total };
    model.solve().unwrap().value(rate) * unit * total / f64::from(topology.rank_count())
}

/// Small networks of one-way links, with switches, and lines.
fn networks() -> impl Strategy<Value = Topology> {
    prop_oneof![
        (3..5_u32, 0..1_000_u32).prop_map(|(n, seed)| topology(&format!("random-regular:n={n},d=2,seed={seed}"))),
        (2..4_u32, 0..1_000_u32).prop_map(|(n, seed)| topology(&format!("random-euler:n={n},switches=2,seed={seed}"))),
        (2..5_u32).prop_map(|n| topology(&format!("mesh:1x{n}"))),
    ]
}

fn weighed() -> impl Strategy<Value = (Topology, Vec<u64>)> {
    networks().prop_flat_map(|topology| {
        let count = topology.rank_count() as usize;
        let weight = prop_oneof![Just(0_u64), 0..7_u64, 0..1_000_u64];
        (Just(topology), prop::collection::vec(weight, count * count))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The bound is the optimum of the program, nothing that any algorithm plans is above it, and flow comes as near as
    /// whole chunks and floats allow.
    #[test]
    fn bounds_are_optima_and_plans_keep_to_them((topology, weights) in weighed()) {
        let Ok(shares) = blocks(&topology, &weights) else { return Ok(()) };
        let found = proven(&topology, &shares);
        let optimum = optimum(&topology, &shares);
        let upper = found.upper.gigabytes_per_sec() * 1e9;
        prop_assert!((upper / optimum - 1.0).abs() < 1e-6, "{upper} for {optimum}");
        prop_assert!(found.lower >= times(&found.upper, 99_999, 100_000), "{} of {}", found.lower, found.upper);
        let flow = reached(&topology, &shares, Algorithm::Flow);
        prop_assert_eq!(&flow, &found.lower);
        prop_assert_eq!(&reached(&topology, &shares, Algorithm::Auto), &flow);
        for algorithm in [
            Algorithm::Direct, Algorithm::Ring, canopy_baselines::SSSP, canopy_baselines::EWSP, canopy_baselines::PMCF, canopy_baselines::PMCF_SHORTEST,
            Algorithm::Pairwise,
        ] {
            prop_assert!(reached(&topology, &shares, algorithm) <= found.upper, "{algorithm}");
        }
    }

    /// Chunks of unequal blocks are fitted into steps, where ranks are linked with each other.
    #[test]
    fn steps_of_blocks_keep_to_the_bound((topology, weights) in weighed()) {
        let weights: Vec<u64> = weights.iter().map(|weight| weight % 4).collect();
        let Ok(shares) = blocks(&topology, &weights) else { return Ok(()) };
        match plan(&topology, &shares, Algorithm::Tsmcf) {
            Ok(schedule) => {
                let verdict = judge_until(&topology, &schedule, &|| false).unwrap();
                prop_assert!(verdict.algbw <= proven(&topology, &shares).upper);
            }
            Err(SynthesisError::NotDirect { .. }) => {
                prop_assert!(topology.nodes().len() > topology.rank_count() as usize);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

/// One row alone is a scatter, one column a gather: with the bounds of these, whose size is that of all ranks together.
#[test]
fn scatters_and_gathers_are_special_cases() {
    for expression in
        ["torus:3x3", "mesh:2x3", "dgx-a100:boxes=2,gpus=2", "genkautz:n=9,d=2", "random-regular:n=7,d=2,seed=3"]
    {
        let topology = topology(expression);
        let (ranks, root) = (topology.rank_count() as usize, 2);
        let weights: Vec<u64> = (0..ranks as u64).map(|rank| rank * 5 % 7).collect();
        for kind in [CollectiveKind::Scatter, CollectiveKind::Gather] {
            let mut square = vec![0; ranks * ranks];
            for (rank, &weight) in weights.iter().enumerate() {
                square[if kind == CollectiveKind::Scatter { root * ranks + rank } else { rank * ranks + root }] =
                    weight;
            }
            let shares = blocks(&topology, &square).unwrap();
            let found = proven(&topology, &shares);
            let collective = Collective::new(kind, Some(Rank::new(2)), topology.rank_count()).unwrap();
            let expected = bound(&topology, collective, &Shares::Weighted(weights.clone()), &Never).unwrap();
            assert_eq!(
                times(&found.upper, u64::from(topology.rank_count()), 1),
                expected.upper,
                "{kind} on {expression}"
            );
            assert_eq!(reached(&topology, &shares, Algorithm::Flow), found.upper, "{kind} on {expression}");
        }
    }
}

/// One block alone is a maximum flow: four links out of a rank of a torus, two at the corner of a mesh; over 16 or 9 ranks.
#[test]
fn one_block_takes_a_maximum_flow() {
    for (expression, ranks, links) in [("torus:4x4,bw=1GB/s", 16_u32, 4_u64), ("mesh:3x3,bw=1GB/s", 9, 2)] {
        let topology = topology(expression);
        let mut square = vec![0; (ranks * ranks) as usize];
        square[ranks as usize - 1] = 35;
        let shares = blocks(&topology, &square).unwrap();
        let found = proven(&topology, &shares);
        assert_eq!(found.upper, Rate::new(links * 1_000_000_000, ranks).unwrap());
        assert_eq!(reached(&topology, &shares, Algorithm::Auto), found.upper);
        assert!(reached(&topology, &shares, Algorithm::Direct) < found.upper);
    }
}

/// Ranks that have nothing for themselves have a mean of N−1 blocks instead of N: all else is the plain all-to-all, its
/// symmetry included.
#[test]
fn equal_blocks_without_a_diagonal_are_planned_as_equal_blocks() {
    for expression in ["torus:4x4", "genkautz:n=10,d=4", "hypercube:4"] {
        let topology = topology(expression);
        let ranks = u64::from(topology.rank_count());
        let square: Vec<u64> = (0..ranks * ranks).map(|block| if block % (ranks + 1) == 0 { 0 } else { 12 }).collect();
        let shares = blocks(&topology, &square).unwrap();
        assert!(matches!(shares, Shares::Blocks(_)));
        let (found, plain) = (proven(&topology, &shares), proven(&topology, &Shares::Equal));
        assert_eq!(found.upper, times(&plain.upper, ranks - 1, ranks));
        assert_eq!(found.certificate, plain.certificate);
        let shape = |shares: &Shares| plan(&topology, shares, Algorithm::Flow).unwrap().shape;
        assert_eq!(shape(&shares), shape(&Shares::Equal));
    }
}

/// Only those that have something for each other must reach each other.
#[test]
fn pairs_without_a_block_may_be_out_of_reach() {
    let line = topology("mesh:1x3,down=00>01");
    let algorithms = [
        Algorithm::Auto,
        Algorithm::Flow,
        Algorithm::Direct,
        canopy_baselines::SSSP,
        canopy_baselines::EWSP,
        canopy_baselines::PMCF,
        Algorithm::Tsmcf,
    ];
    let within = blocks(&line, &[0, 0, 0, 2, 0, 1, 1, 4, 0]).unwrap();
    let beyond = blocks(&line, &[0, 0, 1, 2, 0, 1, 1, 4, 0]).unwrap();
    let upper = proven(&line, &within).upper;
    for algorithm in algorithms {
        assert!(reached(&line, &within, algorithm) <= upper, "{algorithm}");
        let refused = plan(&line, &beyond, algorithm).unwrap_err();
        assert!(
            matches!(refused, SynthesisError::Disconnected { from_rank: 0, to_rank: 2, .. }),
            "{algorithm}: {refused}"
        );
    }
    assert!(bound(&line, all_to_all(&line), &beyond, &Never).is_err());
    assert_eq!(reached(&line, &within, Algorithm::Flow), upper);
}

/// Bytes as they are counted in production, some a million times others.
#[test]
fn large_and_skewed_weights_are_planned_near_their_bound() {
    let topology = topology("torus:3x3");
    let square: Vec<u64> = (0..81_u64).map(|block| 1_000_003 * (1 << (block * 7 % 20)) + block).collect();
    let shares = blocks(&topology, &square).unwrap();
    let found = proven(&topology, &shares);
    for algorithm in [Algorithm::Flow, canopy_baselines::PMCF] {
        let least = times(&found.upper, if algorithm == Algorithm::Flow { 99_999 } else { 70_000 }, 100_000);
        let reached = reached(&topology, &shares, algorithm);
        assert!(reached >= least && reached <= found.upper, "{algorithm}: {reached} of {}", found.upper);
    }
}

#[test]
fn textbook_schedules_leave_out_what_is_empty() {
    let topology = topology("complete:4");
    // Each has something for the next alone: its own link is half of the way there is, over two links the other half.
    let ring: Vec<u64> = (0..16).map(|block| u64::from(block % 4 == (block / 4 + 1) % 4)).collect();
    let shares = blocks(&topology, &ring).unwrap();
    // Pairwise, ranks that differ in one bit come in another step than those that differ in two.
    for (algorithm, part) in [(Algorithm::Pairwise, 4), (Algorithm::Bruck, 2), (Algorithm::Direct, 2)] {
        let upper = proven(&topology, &shares).upper;
        assert_eq!(reached(&topology, &shares, algorithm), times(&upper, 1, part), "{algorithm}");
    }
    let refused = plan(&topology, &shares, canopy_baselines::ILP_DISJOINT).unwrap_err();
    let unequal = AllToAllError::UnequalBlocks { algorithm: canopy_baselines::ILP_DISJOINT.name() };
    assert_eq!(refused, SynthesisError::AllToAll(unequal));
    let refused = plan(&topology, &shares, Algorithm::Forest).unwrap_err();
    assert!(matches!(refused, SynthesisError::Unsupported { .. }), "{refused}");
}
