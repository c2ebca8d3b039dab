//! What the search says of networks, against the networks themselves.

use canopy_design::finder::{Candidate, Finder, Links, Query};
use canopy_direct::{Bases, Limit, facts};
use canopy_optimize::Never;

const LIMIT: Limit = Limit { order_max: 4096, edges_max: 1 << 18 };

/// Every candidate of small sizes: nodes, ports, distances, loops, and the costs as the constructions are predicted.
#[test]
fn candidates_are_what_the_search_says() {
    let finder = Finder::new();
    let mut bases = Bases::new(LIMIT);
    let mut count = 0;
    for links in [Links::Any, Links::Bidirectional] {
        for degree in [1, 2, 3, 4, 5, 6, 8, 12] {
            for nodes in (2..=30).chain([32, 36, 48, 64, 72]) {
                let found = finder.find(Query { nodes, degree, links }, &Never).unwrap();
                for candidate in &found.candidates {
                    check(candidate, (nodes, degree), &mut bases);
                    assert!(links == Links::Any || candidate.known.is_bidirectional);
                    count += 1;
                }
                if let Some(bounds) = found.bounds {
                    for candidate in &found.candidates {
                        let cost = candidate.known.prediction.allgather.cost;
                        assert!(cost.steps >= bounds.steps && cost.bandwidth >= bounds.bandwidth);
                        assert!(candidate.known.all_to_all.rate <= bounds.all_to_all, "{}", candidate.construction);
                    }
                }
            }
        }
    }
    assert!(count > 700, "{count}");
}

fn check(candidate: &Candidate, (nodes, degree): (u32, u32), bases: &mut Bases) {
    let Candidate { construction, known, .. } = candidate;
    let graph = construction.graph(LIMIT).expect("a graph within the limit");
    let facts = facts(&graph);
    assert_eq!((graph.order(), facts.degree), (nodes, Some(degree)), "{construction}");
    let distances = facts.distances.expect("a connected graph");
    assert_eq!((distances.max, distances.sum), (known.diameter, known.distance_sum), "{construction}");
    assert_eq!(
        (u64::from(facts.self_loops), facts.bidirectional),
        (known.loop_count, known.is_bidirectional),
        "{construction}"
    );
    let predicted = construction.predict(bases, &Never).expect("a rule for every construction");
    let (found, own) = (predicted, known.prediction);
    assert_eq!(
        (found.allgather.cost, found.allgather.exactness),
        (own.allgather.cost, own.allgather.exactness),
        "{construction}"
    );
    assert_eq!(found.reduce_scatter.cost, own.reduce_scatter.cost, "{construction}");
    assert!(found.is_reverse_symmetric || !own.is_reverse_symmetric, "{construction}");
    let rate = construction.all_to_all_rate(LIMIT, &Never).expect("a connected graph");
    if rate.is_reached && known.all_to_all.proof.is_exact() {
        assert_eq!(rate.rate, known.all_to_all.rate, "{construction}");
    } else {
        assert!(known.all_to_all.rate <= rate.rate, "{construction}: {} against {}", known.all_to_all.rate, rate.rate);
    }
}
