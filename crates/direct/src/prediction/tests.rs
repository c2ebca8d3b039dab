//! What the tables of the dissertation say, as fractions: table and row are those of Zhao 2026, chapter 3 and appendix A.

use canopy_optimize::{Fraction, Never};

use super::*;
use crate::bases::Bases;
use crate::construction::Construction;
use crate::error::PredictError;
use crate::families::Family;
use crate::size::Limit;

const LIMIT: Limit = Limit { order_max: 4096, edges_max: 1 << 16 };

impl Side {
    /// Whether it is known to reach `(N−1)/N`, less than which is impossible.
    pub(crate) fn is_bandwidth_optimal(&self, order: u64) -> bool {
        self.cost.bandwidth == least_bandwidth(order)
    }
}

fn base(family: Family) -> Construction {
    Construction::Base(family)
}

fn predicted(construction: &Construction) -> Prediction {
    construction.predict(&mut Bases::new(LIMIT), &Never).unwrap()
}

/// Both collectives cost exactly this.
#[track_caller]
fn check(construction: &Construction, order: u64, degree: u32, steps: u32, bandwidth: (u128, u128)) {
    let found = predicted(construction);
    assert_eq!((found.order, found.degree), (order, degree), "{construction}");
    let bandwidth = Fraction::new(bandwidth.0, bandwidth.1).unwrap();
    for side in [found.allgather, found.reduce_scatter] {
        assert_eq!((side.cost, side.exactness), (Cost { steps, bandwidth }, Exactness::Exact), "{construction}");
    }
}

fn uni_ring(n: u64) -> Construction {
    base(Family::UniRing { n, d: 1 })
}

fn bipartite(d: u64) -> Construction {
    base(Family::Bipartite { left: d, right: d })
}

#[test]
fn table_3_4_at_1024_nodes_of_degree_4() {
    check(&base(Family::Diamond).power(2).line(2), 1024, 4, 8, (257, 256));
    check(&base(Family::ModifiedDeBruijn { d: 2, n: 4 }).power(2).line(1), 1024, 4, 11, (1, 1));
    let kautz = predicted(&base(Family::GenKautz { n: 1024, d: 4 }));
    assert_eq!(kautz.allgather.cost, Cost { steps: 5, bandwidth: Fraction::new(341, 256).unwrap() });
}

#[test]
fn table_3_5_of_the_best_of_degree_4() {
    check(&base(Family::Complete { n: 5 }), 5, 4, 1, (4, 5));
    check(&base(Family::Complete { n: 3 }).degree(2), 6, 4, 2, (5, 6));
    check(&bipartite(4), 8, 4, 2, (7, 8));
    check(&base(Family::Complete { n: 3 }).power(2), 9, 4, 2, (8, 9));
    check(&base(Family::Circulant { n: 12, offsets: vec![2, 3], copies: 1 }), 12, 4, 2, (11, 12));
}

#[test]
fn table_a_1_of_degree_4() {
    check(&bipartite(4).line(1), 32, 4, 3, (1, 1));
    check(&base(Family::ModifiedDeBruijn { d: 4, n: 2 }).line(1), 64, 4, 4, (1, 1));
    check(&base(Family::Diamond).power(2), 64, 4, 6, (63, 64));
    check(&bipartite(4).line(2), 128, 4, 4, (33, 32));
    let ring = base(Family::BiRing { n: 8, d: 2 });
    check(&Construction::Product(vec![ring, uni_ring(4).power(2)]), 128, 4, 10, (127, 128));
    check(&base(Family::ModifiedDeBruijn { d: 4, n: 2 }).line(2), 256, 4, 5, (65, 64));
    check(&base(Family::Diamond).power(2).line(1), 256, 4, 7, (1, 1));
    check(&base(Family::ModifiedDeBruijn { d: 2, n: 4 }).power(2), 256, 4, 10, (255, 256));
    check(&bipartite(4).line(3), 512, 4, 5, (133, 128));
    let rings = Construction::Product(vec![uni_ring(4).power(3), uni_ring(2)]);
    check(&rings.clone().line(1), 512, 4, 11, (1, 1));
    check(&rings, 128, 4, 10, (127, 128));
}

#[test]
fn stored_schedules_cost_what_is_published() {
    check(&base(Family::Diamond), 8, 2, 3, (7, 8));
    check(&base(Family::ModifiedDeBruijn { d: 2, n: 3 }), 8, 2, 4, (7, 8));
    check(&base(Family::ModifiedDeBruijn { d: 2, n: 4 }), 16, 2, 5, (15, 16));
    check(&base(Family::ModifiedDeBruijn { d: 4, n: 2 }), 16, 4, 3, (15, 16));
    assert!(!predicted(&base(Family::Diamond)).is_reverse_symmetric);
    assert!(predicted(&base(Family::ModifiedDeBruijn { d: 2, n: 3 })).is_reverse_symmetric);
    assert!(!predicted(&base(Family::ModifiedDeBruijn { d: 2, n: 4 })).is_reverse_symmetric);
}

/// The digest's table of exact loads, summed up.
#[test]
fn loads_of_breadth_first_broadcasts() {
    check(&bipartite(2), 4, 2, 2, (3, 4));
    check(&bipartite(3), 6, 3, 2, (5, 6));
    check(&base(Family::BiRing { n: 6, d: 2 }), 6, 2, 3, (5, 6));
    check(&base(Family::UniRing { n: 4, d: 2 }), 4, 2, 3, (3, 4));
    check(&base(Family::Kautz { d: 4, n: 2 }), 20, 4, 2, (1, 1));
    check(&base(Family::GenKautz { n: 20, d: 4 }), 20, 4, 2, (1, 1));
    check(&base(Family::Kautz { d: 2, n: 3 }), 12, 2, 3, (7, 6));
    check(&bipartite(2).line(1), 8, 2, 3, (1, 1));
    check(&base(Family::DeBruijn { d: 2, n: 3 }), 8, 2, 3, (7, 4));
    let cube = Construction::Product(vec![base(Family::Complete { n: 2 }), base(Family::Complete { n: 2 }).power(2)]);
    check(&cube, 8, 3, 3, (7, 8));
    let torus = [4, 6].map(|n| base(Family::BiRing { n, d: 2 })).to_vec();
    check(&Construction::Product(torus), 24, 4, 5, (23, 24));
    let mut torus = [3, 3].map(|n| base(Family::BiRing { n, d: 2 })).to_vec();
    torus.push(base(Family::Complete { n: 2 }));
    check(&Construction::Product(torus), 18, 5, 3, (17, 18));
}

/// Its two collectives differ, and allreduce takes both.
#[test]
fn a_graph_that_is_not_reverse_symmetric() {
    let found = predicted(&base(Family::GenKautz { n: 11, d: 4 }));
    let cost = |numerator| Cost { steps: 2, bandwidth: Fraction::new(numerator, 11).unwrap() };
    assert_eq!((found.allgather.cost, found.reduce_scatter.cost), (cost(14), cost(16)));
    let both = Cost { steps: 4, bandwidth: Fraction::new(30, 11).unwrap() };
    assert_eq!(found.allreduce(), Some((both, Exactness::Exact)));
}

#[test]
fn what_the_operators_keep() {
    let bipartite = predicted(&bipartite(4));
    assert!(bipartite.allgather.is_bandwidth_optimal(8) && bipartite.allgather.is_optimal_by_bfb);
    let line = bipartite.line(1).unwrap();
    assert!(!line.allgather.is_bandwidth_optimal(line.order));
    for kept in [bipartite.degree(3).unwrap(), bipartite.power(3).unwrap(), bipartite.bidirect().unwrap()] {
        assert!(kept.allgather.is_bandwidth_optimal(kept.order), "{kept:?}");
    }
    assert!(bipartite.power(3).unwrap().allgather.is_optimal_by_bfb);
    let ring = predicted(&uni_ring(4));
    assert_eq!(ring.line(u32::MAX), Ok(ring));
    assert!(!bipartite.degree(3).unwrap().allgather.is_optimal_by_bfb, "not known by any rule");
}

#[test]
fn rules_refuse_what_they_say_nothing_of() {
    let mut bases = Bases::new(LIMIT);
    let mut refused = |construction: Construction| construction.predict(&mut bases, &Never).unwrap_err();
    let rule = |error| PredictError::Rule(error);
    let loops = base(Family::DeBruijn { d: 2, n: 3 });
    assert_eq!(refused(loops.degree(2)), rule(RuleError::Loops));
    assert_eq!(refused(bipartite(4).line(0)), rule(RuleError::Zero { operator: "line" }));
    assert_eq!(refused(bipartite(4).line(70)), rule(RuleError::TooLarge { operator: "line" }));
    assert_eq!(refused(base(Family::Complete { n: 3 }).power(60)), rule(RuleError::TooLarge { operator: "power" }));
    assert_eq!(refused(base(Family::Diamond).bidirect()), rule(RuleError::NotReverseSymmetric));
    assert_eq!(refused(Construction::Product(vec![uni_ring(3)])), rule(RuleError::FewFactors { found: 1 }));
    let uneven = refused(base(Family::Bipartite { left: 2, right: 3 }));
    assert_eq!(
        uneven.to_string(),
        "node 2 has 2 links in one direction while others have 3; use a graph in which every node has the same number of links"
    );
}

/// No rule says what a product with a factor that is not optimal costs; it is looked at instead.
#[test]
fn a_product_without_a_rule_is_evaluated() {
    let product = Construction::Product(vec![base(Family::Kautz { d: 2, n: 3 }), uni_ring(2)]);
    let found = predicted(&product);
    assert_eq!((found.order, found.degree, found.allgather.cost.steps), (24, 3, 4));
    assert!(found.is_reverse_symmetric && !found.allgather.is_bandwidth_optimal(24));
}
