//! Composed schedules, judged by the checker: steps and the bandwidth term are its word, not the planner's.

use canopy_direct::{Bases, Exactness, Family};
use canopy_optimize::Never;
use canopy_schedule::{Schedule, check, compile};
use canopy_topology::{Ratio, TopologyLimits, generate};

use super::*;
use crate::progress::Silent;

const LIMIT: Limit = Limit { order_max: 4096, edges_max: 1 << 16 };

/// The network of a construction, as its expression generates it.
fn topology(construction: &Construction) -> Topology {
    generate(&construction.to_string(), &TopologyLimits::STANDARD).unwrap()
}

fn collective(kind: CollectiveKind, topology: &Topology) -> Collective {
    Collective::new(kind, None, topology.rank_count()).unwrap()
}

fn composition(construction: &Construction) -> Composition {
    Composition { construction: construction.clone(), ranks: None }
}

fn planned(topology: &Topology, kind: CollectiveKind, construction: &Construction) -> Result<Schedule, SynthesisError> {
    planned_as(topology, kind, &composition(construction))
}

fn planned_as(
    topology: &Topology,
    kind: CollectiveKind,
    composition: &Composition,
) -> Result<Schedule, SynthesisError> {
    let collective = collective(kind, topology);
    let shape = plan(topology, collective, &Shares::Equal, Some(composition), &Never, &Silent)?;
    Ok(Schedule { collective, algorithm: "expansion".to_owned(), shares: Shares::Equal, shape })
}

/// Collectives by a construction that the checker accepts cost what is predicted.
#[track_caller]
fn agree(construction: &Construction, kinds: &[CollectiveKind]) {
    let topology = topology(construction);
    let predicted = construction.predict(&mut Bases::new(LIMIT), &Never).unwrap();
    for &kind in kinds {
        let (stated, exactness) = match kind {
            CollectiveKind::Allgather => (predicted.allgather.cost, predicted.allgather.exactness),
            CollectiveKind::ReduceScatter => (predicted.reduce_scatter.cost, predicted.reduce_scatter.exactness),
            _ => predicted.allreduce().unwrap(),
        };
        let schedule = planned(&topology, kind, construction).unwrap();
        let graph = compile(&topology, &schedule).unwrap();
        let found = check(&topology, &graph).unwrap().steps.expect("sends in steps");
        let bandwidth = Ratio::new(stated.bandwidth.numerator, stated.bandwidth.denominator).unwrap();
        match exactness {
            Exactness::Exact => {
                assert_eq!((found.count, found.bandwidth), (stated.steps, bandwidth), "{construction}: {kind}")
            }
            Exactness::AtMost => {
                assert!(
                    found.count <= stated.steps && found.bandwidth <= bandwidth,
                    "{construction}: {kind} over {stated}"
                );
            }
        }
    }
}

#[track_caller]
fn agrees(construction: &Construction) {
    agree(construction, &[CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce]);
}

fn base(family: Family) -> Construction {
    Construction::Base(family)
}

fn uni_ring(n: u64) -> Construction {
    base(Family::UniRing { n, d: 1 })
}

fn bipartite(d: u64) -> Construction {
    base(Family::Bipartite { left: d, right: d })
}

/// Of tables 3.5 and A.1, and one graph whose two collectives differ.
#[test]
fn published_constructions_are_accepted_at_the_published_cost() {
    agrees(&base(Family::Complete { n: 3 }).degree(2));
    agrees(&base(Family::Complete { n: 3 }).power(2));
    agrees(&bipartite(4).line(1));
    agrees(&base(Family::ModifiedDeBruijn { d: 4, n: 2 }).line(1));
    agrees(&base(Family::Diamond).power(2));
    agrees(&base(Family::GenKautz { n: 11, d: 4 }));
    for family in [
        Family::Diamond,
        Family::ModifiedDeBruijn { d: 2, n: 3 },
        Family::ModifiedDeBruijn { d: 2, n: 4 },
        Family::ModifiedDeBruijn { d: 4, n: 2 },
    ] {
        agrees(&base(family));
    }
}

/// Of table A.1 what has 128 and 256 nodes: the costs are in the tests of `canopy-direct`, as fractions.
#[test]
fn large_published_constructions_are_accepted_at_the_published_cost() {
    let allgather = &[CollectiveKind::Allgather];
    agree(&bipartite(4).line(2), allgather);
    agree(&base(Family::Diamond).power(2).line(1), allgather);
    agree(&base(Family::ModifiedDeBruijn { d: 4, n: 2 }).line(2), allgather);
    agree(&base(Family::ModifiedDeBruijn { d: 2, n: 4 }).power(2), allgather);
    agree(&Construction::Product(vec![base(Family::BiRing { n: 8, d: 2 }), uni_ring(4).power(2)]), allgather);
}

#[test]
fn operators_apply_to_what_operators_made() {
    agrees(&uni_ring(3).line(1).degree(2));
    agrees(&base(Family::UniRing { n: 3, d: 2 }).line(2));
    agrees(&base(Family::Kautz { d: 2, n: 2 }).line(1).bidirect());
    agrees(&Construction::Product(vec![uni_ring(3), base(Family::BiRing { n: 4, d: 2 })]).line(1));
    agrees(&base(Family::DeBruijn { d: 2, n: 2 }).power(2));
    agrees(&uni_ring(3).power(2).bidirect());
    agrees(&base(Family::UniRing { n: 4, d: 2 }).bidirect());
}

/// The same network with its ranks in another order: a schedule of the same cost, if it is said which rank is which.
#[test]
fn ranks_may_have_other_numbers_than_nodes() {
    for construction in [bipartite(2).line(1), base(Family::Diamond), base(Family::GenKautz { n: 11, d: 4 })] {
        let original = topology(&construction);
        let count = original.rank_count();
        let ranks: Vec<Rank> = (0..count).map(|node| Rank::new((5 * node + 3) % count)).collect();
        let mut draft = canopy_topology::TopologyDraft::default();
        (0..count).for_each(|rank| draft.add_compute(format!("n{rank}")));
        for link in original.links() {
            let [from, to] = [link.from, link.to].map(|node| format!("n{}", ranks[node.index()].number()));
            draft.add_link(from, to, link.capacity, link.latency);
        }
        let moved = draft.build(&TopologyLimits::STANDARD).unwrap();
        for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce] {
            let steps = |topology: &Topology, ranks| {
                let composition = Composition { construction: construction.clone(), ranks };
                let schedule = planned_as(topology, kind, &composition)?;
                let found = check(topology, &compile(topology, &schedule).unwrap()).unwrap();
                Ok::<_, SynthesisError>(found.steps.unwrap())
            };
            assert_eq!(steps(&moved, Some(ranks.clone())).unwrap().count, steps(&original, None).unwrap().count);
            let wrong = steps(&moved, None).unwrap_err().to_string();
            assert!(wrong.contains("this network has no link from rank"), "{wrong}");
            let twice = vec![Rank::new(0); count as usize];
            assert!(steps(&moved, Some(twice)).unwrap_err().to_string().contains("are not the ranks of this network"));
        }
    }
}

#[test]
fn only_the_network_of_the_construction_is_planned() {
    let construction = bipartite(2).line(1);
    let (line, other) = (topology(&construction), topology(&uni_ring(8)));
    let refused = |topology: &Topology, construction: &Construction| {
        let error = planned(topology, CollectiveKind::Allgather, construction).unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string);
        [Some(error.to_string()), source].into_iter().flatten().collect::<Vec<_>>().join(": ")
    };
    assert_eq!(
        refused(&other, &construction),
        "expansion composes a schedule for the whole of line:1(bipartite:2x2), and this network has no link from rank 0 to rank \
         4; plan for that network without faults and with all ranks, or use bfb"
    );
    assert!(refused(&line, &bipartite(2)).contains("it has 4 ranks while this network has 8"));
    assert!(refused(&line, &bipartite(4).line(2)).contains("over the limit of 8"));
    assert!(refused(&line, &base(Family::Diamond).bidirect()).contains("isomorphism"));
}

#[test]
fn what_expansion_does_not_plan_is_refused() {
    let construction = bipartite(2);
    let topology = topology(&construction);
    let asked = |kind, shares: &Shares, composition| {
        let root = (kind == CollectiveKind::Broadcast).then_some(Rank::new(0));
        let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
        plan(&topology, collective, shares, composition, &Never, &Silent).unwrap_err()
    };
    let known = composition(&construction);
    let known = Some(&known);
    let unsupported = asked(CollectiveKind::Broadcast, &Shares::Equal, known);
    assert!(matches!(unsupported, SynthesisError::Unsupported { .. }), "{unsupported}");
    let unknown = asked(CollectiveKind::Allgather, &Shares::Equal, None);
    assert!(unknown.to_string().contains("such as `line:2(bipartite:4x4)`, or use bfb"), "{unknown}");
    let weighted = asked(CollectiveKind::Allgather, &Shares::Weighted(vec![1, 2, 3, 4]), known);
    assert_eq!(weighted, ExpansionError::UnequalShares.into());
}
