//! The plans that are compared for an item: the best for large messages, flatter ones, and those of few steps.

use std::num::NonZeroU32;

use canopy_proto::v1;
use canopy_schedule::CollectiveKind;
use canopy_synth::{Algorithm, TreeLimits};

/// A way to ask for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The name in answers.
    pub(super) name: &'static str,
    algorithm: Algorithm,
    /// 0: any.
    trees_per_root: u32,
    /// 0: any.
    max_depth: u32,
    form: v1::AllreduceForm,
}

const AUTO: Candidate = Candidate {
    name: "auto",
    algorithm: Algorithm::Auto,
    trees_per_root: 0,
    max_depth: 0,
    form: v1::AllreduceForm::Unspecified,
};
/// What is always asked for, first those that are preferred among equals.
const ALWAYS: [Candidate; 3] = [
    AUTO,
    Candidate { name: "direct", algorithm: Algorithm::Direct, ..AUTO },
    Candidate { name: "ring", algorithm: Algorithm::Ring, ..AUTO },
];
/// Of trees: one tree starts least messages, and flat ones wait for each other least; without switches nothing takes fewer
/// steps than breadth-first broadcasts, and with them what is planned in time waits least.
const OF_TREES: [Candidate; 5] = [
    Candidate { name: "trees=1", trees_per_root: 1, ..AUTO },
    Candidate { name: "max-depth=2", max_depth: 2, ..AUTO },
    Candidate { name: "max-depth=4", max_depth: 4, ..AUTO },
    Candidate { name: "bfb", algorithm: Algorithm::Bfb, ..AUTO },
    Candidate { name: "tacos", algorithm: Algorithm::Tacos, ..AUTO },
];

/// Those of a collective, in order of preference among equals; `family`: what is made for networks of this one's family.
pub(super) fn of(kind: CollectiveKind, family: &[Algorithm]) -> Vec<Candidate> {
    let flat = TreeLimits { max_depth: Some(NonZeroU32::MIN), ..TreeLimits::NONE };
    let has_trees = flat.require_applicable(Algorithm::Auto, kind).is_ok();
    let family = family.iter().map(|&algorithm| Candidate { name: algorithm.name(), algorithm, ..AUTO });
    ALWAYS.into_iter().chain(family).chain(OF_TREES.into_iter().filter(|_| has_trees)).collect()
}

impl Candidate {
    /// The candidate by the algorithm that `auto` took for large messages: for a range of sizes, it could take another.
    pub(super) fn found_by(self, name: &str) -> Self {
        match canopy_baselines::algorithm(name) {
            Ok(algorithm) if self == AUTO => Self { algorithm, ..self },
            _ => self,
        }
    }

    /// A request for it.
    pub(super) fn on(self, request: v1::PlanSpec) -> v1::PlanSpec {
        v1::PlanSpec {
            algorithm: Some(self.algorithm.name().to_owned()),
            trees_per_root: (self.trees_per_root > 0).then_some(self.trees_per_root),
            max_depth: (self.max_depth > 0).then_some(self.max_depth),
            form: self.form.into(),
            ..request
        }
    }
}

/// Whether an item combines elements.
pub(super) fn reduces(item: &v1::BundleItem) -> bool {
    let kind = item.collective.as_ref().map(v1::CollectiveSpec::kind);
    matches!(kind, Some(v1::Collective::Allreduce | v1::Collective::ReduceScatter | v1::Collective::Reduce))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_candidates_of_their_own() {
        let names = |kind, family: &[Algorithm]| of(kind, family).iter().map(|one| one.name).collect::<Vec<_>>();
        let own = [Algorithm::Kautz, Algorithm::KautzM];
        assert_eq!(names(CollectiveKind::Gather, &own), ["auto", "direct", "ring", "kautz", "kautz-m"]);
        assert_eq!(names(CollectiveKind::AllToAll, &[]), ["auto", "direct", "ring"]);
        assert_eq!(names(CollectiveKind::Allgather, &own).len(), names(CollectiveKind::Allgather, &[]).len() + 2);
    }
}
