//! Plans that others were compared with, and that were left out by a fault of the planner's own.
//!
//! The request has its plan all the same, so nobody would hear of them: each is logged for a person to look at, counted, and kept on the
//! plan, which names its request.

use canopy_proto::v1;
use canopy_synth::Algorithm;

use crate::failure::PlanFailure;
use crate::key::PlanKey;
use crate::planner::Watch;

/// Most that are kept of one plan, and the most bytes of what was wrong with each.
const KEPT_MAX: usize = 16;
const PROBLEM_BYTES_MAX: usize = 500;

/// What was left out of the choice of one plan.
#[derive(Debug)]
pub(super) struct Rejections {
    plan: PlanKey,
    kept: Vec<v1::RejectedRival>,
}

impl Rejections {
    pub(super) const fn of(plan: PlanKey) -> Self {
        Self { plan, kept: Vec::new() }
    }

    /// Notes why an algorithm has no part in the plan. That a runtime has no room, or that a network is none of its kind, is ordinary.
    pub(super) fn note(&mut self, algorithm: Algorithm, failure: &PlanFailure, watch: &dyn Watch) {
        let (plan, name) = (self.plan.plan_id(), algorithm.name());
        let Some(problem) = failure.fault() else {
            tracing::debug!(%plan, algorithm = name, %failure, "a plan to compare with cannot be made");
            return;
        };
        let reason = match failure {
            PlanFailure::Rejected { check, .. } => check,
            _ => "broken",
        };
        tracing::error!(%plan, algorithm = name, reason, problem, "a plan to compare with is wrong; it is left out");
        watch.rejected(name, reason);
        if self.kept.len() < KEPT_MAX {
            let problem = problem[..problem.floor_char_boundary(PROBLEM_BYTES_MAX)].to_owned();
            self.kept.push(v1::RejectedRival { algorithm: name.to_owned(), reason: reason.to_owned(), problem });
        }
    }

    /// What is kept, in the order in which it was found.
    pub(super) fn into_kept(self) -> Vec<v1::RejectedRival> {
        self.kept
    }

    /// Takes over what is kept of another choice for the same plan.
    pub(super) fn append(&mut self, others: Self) {
        self.kept.extend(others.kept);
        self.kept.truncate(KEPT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use canopy_synth::SynthesisError;
    use canopy_topology::Rate;

    use super::*;

    #[derive(Default)]
    struct Counted(Mutex<Vec<(&'static str, &'static str)>>);

    impl Watch for Counted {
        fn stage(&self, _: &'static str, _: u64, _: u64) {}
        fn bound(&self, _: &Rate) {}
        fn incumbent(&self, _: &Rate) {}
        fn rejected(&self, algorithm: &'static str, reason: &'static str) {
            self.0.lock().unwrap().push((algorithm, reason));
        }
    }

    #[test]
    fn faults_are_counted_and_kept_and_nothing_else_is() {
        let (watch, mut rejections) = (Counted::default(), Rejections::of(PlanKey::from_bytes([7; 32])));
        let rejected = PlanFailure::Rejected { check: "meaning", problem: "ü".repeat(400) };
        let broken = SynthesisError::Broken { what: "no way".to_owned() };
        rejections.note(Algorithm::Tacos, &rejected, &watch);
        rejections.note(Algorithm::Bfb, &PlanFailure::Synthesis(broken), &watch);
        rejections.note(Algorithm::Ring, &PlanFailure::NotCached, &watch);
        assert_eq!(*watch.0.lock().unwrap(), [("tacos", "meaning"), ("bfb", "broken")]);
        let kept = rejections.into_kept();
        let brief: Vec<_> = kept.iter().map(|kept| (kept.algorithm.as_str(), kept.reason.as_str())).collect();
        assert_eq!(brief, [("tacos", "meaning"), ("bfb", "broken")]);
        assert!(kept[0].problem.len() <= PROBLEM_BYTES_MAX && kept[0].problem.starts_with("meaning: ü"));
        assert_eq!(kept[1].problem, "no way");
    }

    #[test]
    fn a_plan_keeps_the_first_of_them() {
        let (watch, mut rejections) = (Counted::default(), Rejections::of(PlanKey::from_bytes([7; 32])));
        let rejected = |number: usize| PlanFailure::Rejected { check: "load", problem: number.to_string() };
        (0..KEPT_MAX + 4).for_each(|number| rejections.note(Algorithm::Direct, &rejected(number), &watch));
        let mut others = Rejections::of(PlanKey::from_bytes([7; 32]));
        others.note(Algorithm::Tacos, &rejected(0), &watch);
        rejections.append(others);
        assert_eq!(watch.0.lock().unwrap().len(), KEPT_MAX + 5);
        let kept = rejections.into_kept();
        assert_eq!((kept.len(), kept[15].problem.as_str()), (KEPT_MAX, "load: 15"));
    }
}
