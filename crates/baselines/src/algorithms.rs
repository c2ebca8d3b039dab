//! All algorithms by name.

use canopy_synth::Algorithm;

use crate::all_to_all::{DOR, EWSP, ILP_DISJOINT, ILP_SHORTEST, PMCF, PMCF_SHORTEST, SSSP};
use crate::bine::BINE;
use crate::blink::BLINK;
use crate::local_ring::LOCAL_RING;
use crate::published::TACOS_PUBLISHED;
use crate::queued::{DIRECT_XY, RING_XY, TACCL_LIKE};
use crate::swing::SWING;

/// The algorithms of this crate, each after one of the planner's own: messages list them in this order.
const AFTER: [(Algorithm, &[Algorithm]); 4] = [
    (Algorithm::Multitree, &[BLINK]),
    (Algorithm::TacosIlp, &[TACOS_PUBLISHED, DIRECT_XY, RING_XY, TACCL_LIKE]),
    (Algorithm::Ring, &[SSSP, EWSP, DOR, PMCF, PMCF_SHORTEST, ILP_DISJOINT, ILP_SHORTEST]),
    (Algorithm::DoubleTree, &[LOCAL_RING, BINE, SWING]),
];

/// All algorithms, in the order messages list them.
pub fn algorithms() -> impl Iterator<Item = Algorithm> {
    let followers = |own: Algorithm| AFTER.iter().filter(move |(before, _)| *before == own).flat_map(|(_, all)| *all);
    Algorithm::ALL.iter().flat_map(move |&own| std::iter::once(own).chain(followers(own).copied()))
}

/// The algorithm of a name.
///
/// # Errors
/// There is none of this name.
pub fn algorithm(name: &str) -> Result<Algorithm, UnknownAlgorithm> {
    let error = || UnknownAlgorithm { name: name.chars().take(80).collect() };
    algorithms().find(|algorithm| algorithm.name() == name).ok_or_else(error)
}

/// A name that is no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown algorithm `{name}`; use {}", algorithm_names())]
pub struct UnknownAlgorithm {
    /// What was found, cut to 80 characters.
    pub name: String,
}

/// All names as a message lists them.
pub fn algorithm_names() -> String {
    let names: Vec<&str> = algorithms().map(Algorithm::name).collect();
    let (last, first) = names.split_last().expect("there are algorithms");
    format!("{} or {last}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for each in algorithms() {
            assert_eq!(algorithm(each.name()), Ok(each));
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = algorithm("rings").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown algorithm `rings`; use auto, forest, stages, orbits, flow, bfb, tsmcf, tacos, tacos-ilp, tacos-published, \
             direct-xy, ring-xy, taccl-like, expansion, kautz, kautz-m, dfc2, dfc2-do, multitree, blink, direct, ring, sssp, ewsp, dor, \
             pmcf, pmcf-shortest, ilp-disjoint, ilp-shortest, pairwise, bruck, recursive-doubling, binomial, \
             double-tree, local-ring, bine or swing"
        );
    }
}
