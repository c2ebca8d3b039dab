//! All algorithms, in the order that messages list them: a new one is a line here and the module that has its row.

use std::str::FromStr;

use crate::algorithm::Algorithm;
use crate::all_to_all;
use crate::auto;
use crate::bfb;
use crate::direct;
use crate::expansion;
use crate::flow;
use crate::forest;
use crate::multiport;
use crate::ring;
use crate::stepped;
use crate::stepped_flow;
use crate::tacos;

/// Lists rows, and gives each a name in code.
macro_rules! algorithms {
    ($($name:ident = $row:path,)*) => {
        #[expect(non_upper_case_globals, reason = "they are written like the variants that they would be in an enum")]
        impl Algorithm {
            $(#[doc = concat!("The algorithm of `", stringify!($row), "`.")] pub const $name: Self = Self::of(&$row);)*

            /// All algorithms, in the order messages list them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

algorithms! {
    Auto = auto::AUTO,
    Forest = forest::FOREST,
    Flow = flow::FLOW,
    Bfb = bfb::BFB,
    Tsmcf = stepped_flow::TSMCF,
    Tacos = tacos::TACOS,
    TacosIlp = tacos::TACOS_ILP,
    TacosPublished = tacos::TACOS_PUBLISHED,
    DirectXy = tacos::DIRECT_XY,
    RingXy = tacos::RING_XY,
    Expansion = expansion::EXPANSION,
    Kautz = multiport::KAUTZ,
    KautzM = multiport::KAUTZ_M,
    Dfc2 = multiport::DFC2,
    Dfc2Do = multiport::DFC2_DO,
    Multitree = multiport::MULTITREE,
    Direct = direct::DIRECT,
    Ring = ring::RING,
    Sssp = all_to_all::SSSP,
    Ewsp = all_to_all::EWSP,
    Dor = all_to_all::DOR,
    Pmcf = all_to_all::PMCF,
    PmcfShortest = all_to_all::PMCF_SHORTEST,
    IlpDisjoint = all_to_all::ILP_DISJOINT,
    IlpShortest = all_to_all::ILP_SHORTEST,
    Pairwise = stepped::PAIRWISE,
    Bruck = stepped::BRUCK,
    RecursiveDoubling = stepped::RECURSIVE_DOUBLING,
    Binomial = stepped::BINOMIAL,
    DoubleTree = stepped::DOUBLE_TREE,
    LocalRing = stepped::LOCAL_RING,
}

/// A name that is no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an algorithm; use {}", known_names())]
pub struct UnknownAlgorithm {
    /// What was found, cut to 80 characters.
    pub name: String,
}

/// All names as a message lists them.
fn known_names() -> String {
    let names: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    let (last, first) = names.split_last().expect("there are algorithms");
    format!("{} or {last}", first.join(", "))
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let error = || UnknownAlgorithm { name: name.chars().take(80).collect() };
        Self::ALL.iter().copied().find(|algorithm| algorithm.name() == name).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for &algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = "rings".parse::<Algorithm>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`rings` is not an algorithm; use auto, forest, flow, bfb, tsmcf, tacos, tacos-ilp, tacos-published, direct-xy, ring-xy, expansion, \
             kautz, kautz-m, dfc2, dfc2-do, multitree, direct, ring, sssp, ewsp, dor, pmcf, pmcf-shortest, ilp-disjoint, ilp-shortest, pairwise, bruck, recursive-doubling, binomial, double-tree or local-ring"
        );
    }
}
