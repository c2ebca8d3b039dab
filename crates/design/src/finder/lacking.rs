//! Published networks that the catalogue does not offer.

use canopy_direct::Cost;
use canopy_optimize::Fraction;

use crate::finder::candidate::Candidate;
use crate::finder::query::Query;
use crate::finder::search::Links;

/// A published network for which no equally good one was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// Its published name.
    pub name: &'static str,
    /// The published cost of its allgather.
    pub cost: Cost,
}

/// Rows of table A.1 of the dissertation, and of table 3.4, for degree 4: nodes, name, steps, bandwidth.
const PUBLISHED: [(u32, &str, u32, (u128, u128)); 13] = [
    (32, "L(K_{4,4})", 3, (1, 1)),
    (64, "L(DBJMod(4,2))", 4, (1, 1)),
    (64, "Diamond^2", 6, (63, 64)),
    (128, "L^2(K_{4,4})", 4, (33, 32)),
    (128, "BiRing(2,8) x UniRing(1,4)^2", 10, (127, 128)),
    (256, "L^2(DBJMod(4,2))", 5, (65, 64)),
    (256, "L(Diamond^2)", 7, (1, 1)),
    (256, "DBJMod(2,4)^2", 10, (255, 256)),
    (512, "L^3(K_{4,4})", 5, (133, 128)),
    (512, "L(UniRing(1,4)^3 x UniRing(1,2))", 11, (1, 1)),
    (1024, "Pi_{4,1024}", 5, (341, 256)),
    (1024, "L^2(Diamond^2)", 8, (257, 256)),
    (1024, "L(DBJMod(2,4)^2)", 11, (1, 1)),
];

/// Those of the query that no candidate equals or beats in steps and bandwidth of the allgather.
pub(crate) fn lacking(query: Query, candidates: &[Candidate]) -> Vec<Lacking> {
    let rows = PUBLISHED.iter().filter(|row| query.degree == 4 && row.0 == query.nodes);
    let published = rows.map(|&(_, name, steps, (numerator, denominator))| {
        let bandwidth = Fraction::new(numerator, denominator).expect("a table of constants");
        Lacking { name, cost: Cost { steps, bandwidth } }
    });
    let is_reached = |lacking: &Lacking| {
        candidates.iter().any(|candidate| candidate.known.prediction.allgather.cost.is_within(&lacking.cost))
    };
    published.filter(|published| query.links == Links::Any && !is_reached(published)).collect()
}
