//! The algorithms of this crate, in the order that messages list them: a new one is a line here and the module that has its row.

use crate::algorithm::Algorithm;
use crate::auto;
use crate::bfb;
use crate::direct;
use crate::expansion;
use crate::flow;
use crate::forest;
use crate::multiport;
use crate::orbits;
use crate::ring;
use crate::stages;
use crate::stepped;
use crate::stepped_flow;
use crate::tacos;

/// Lists rows, and gives each a name in code.
macro_rules! algorithms {
    ($($name:ident = $row:path,)*) => {
        #[expect(non_upper_case_globals, reason = "they are written like the variants that they would be in an enum")]
        impl Algorithm {
            $(#[doc = concat!("The algorithm of `", stringify!($row), "`.")] pub const $name: Self = Self::of(&$row);)*

            /// The algorithms of this crate, in the order of messages.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

algorithms! {
    Auto = auto::AUTO,
    Forest = forest::FOREST,
    Stages = stages::STAGES,
    Orbits = orbits::ORBITS,
    Flow = flow::FLOW,
    Bfb = bfb::BFB,
    Tsmcf = stepped_flow::TSMCF,
    Tacos = tacos::TACOS,
    TacosIlp = tacos::TACOS_ILP,
    Expansion = expansion::EXPANSION,
    Kautz = multiport::KAUTZ,
    KautzM = multiport::KAUTZ_M,
    Dfc2 = multiport::DFC2,
    Dfc2Do = multiport::DFC2_DO,
    Multitree = multiport::MULTITREE,
    Direct = direct::DIRECT,
    Ring = ring::RING,
    Pairwise = stepped::PAIRWISE,
    Bruck = stepped::BRUCK,
    RecursiveDoubling = stepped::RECURSIVE_DOUBLING,
    Binomial = stepped::BINOMIAL,
    DoubleTree = stepped::DOUBLE_TREE,
}
