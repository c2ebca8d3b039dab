//! Plans that others were compared with, and that were left out by a fault of the planner's own.
//!
//! The request has its plan all the same, so nobody would hear of them: each is told to whoever watches, and kept on the plan.

use canopy_synth::Algorithm;

use crate::context::{Note, Watch};
use crate::error::PlanError;
use crate::planned::Rejection;

/// Most that are kept of one plan, and the most bytes of what was wrong with each.
const KEPT_MAX: usize = 16;
const PROBLEM_BYTES_MAX: usize = 500;

/// What was left out of the choice of one plan.
#[derive(Debug)]
pub(crate) struct Rejections(Vec<Rejection>);

impl Rejections {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Notes why an algorithm has no part in the plan. That a runtime has no room, or that a network is none of its kind, is ordinary.
    pub(super) fn note(&mut self, algorithm: Algorithm, reason: &PlanError, watch: &dyn Watch) {
        let algorithm = algorithm.name();
        let Some((check, problem)) = reason.failed_check().zip(reason.fault()) else {
            watch.note(Note::NoRival { algorithm, reason });
            return;
        };
        let problem = problem[..problem.floor_char_boundary(PROBLEM_BYTES_MAX)].to_owned();
        let rejection = Rejection { algorithm, reason: check, problem };
        watch.note(Note::Rejected(&rejection));
        if self.0.len() < KEPT_MAX {
            self.0.push(rejection);
        }
    }

    /// The same for a plan that is not used because another is as good, where its failure is a bug.
    pub(super) fn note_bug(&mut self, algorithm: Algorithm, reason: &PlanError, watch: &dyn Watch) {
        if reason.failed_check().is_some() {
            self.note(algorithm, reason, watch);
        }
    }

    /// What is kept, in the order in which it was found.
    pub(crate) fn into_kept(self) -> Vec<Rejection> {
        self.0
    }

    /// Takes over what is kept of another choice for the same plan.
    pub(super) fn append(&mut self, others: Self) {
        self.0.extend(others.0);
        self.0.truncate(KEPT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use canopy_synth::SynthesisError;
    use canopy_topology::Rate;

    use super::*;

    /// What was noted: of a bug the check that failed, of anything else nothing.
    #[derive(Default)]
    struct Counted(Mutex<Vec<(&'static str, &'static str)>>);

    impl Watch for Counted {
        fn stage(&self, _: &'static str, _: u64, _: u64) {}
        fn bound(&self, _: &Rate) {}
        fn incumbent(&self, _: &Rate) {}
        fn note(&self, note: Note<'_>) {
            let noted = match note {
                Note::Rejected(Rejection { algorithm, reason, .. }) => (*algorithm, *reason),
                Note::NoRival { algorithm, .. } => (algorithm, ""),
                other => unreachable!("{other:?}"),
            };
            self.0.lock().unwrap().push(noted);
        }
    }

    #[test]
    fn faults_are_counted_and_kept_and_nothing_else_is() {
        let (watch, mut rejections) = (Counted::default(), Rejections::new());
        let rejected = PlanError::Rejected { check: "meaning", problem: "ü".repeat(400) };
        let broken = SynthesisError::Broken { what: "no way".to_owned() };
        rejections.note(Algorithm::Tacos, &rejected, &watch);
        rejections.note(Algorithm::Bfb, &PlanError::Synthesis(broken), &watch);
        rejections.note(Algorithm::Ring, &PlanError::NotKnown, &watch);
        assert_eq!(*watch.0.lock().unwrap(), [("tacos", "meaning"), ("bfb", "broken"), ("ring", "")]);
        let kept = rejections.into_kept();
        let brief: Vec<_> = kept.iter().map(|kept| (kept.algorithm, kept.reason)).collect();
        assert_eq!(brief, [("tacos", "meaning"), ("bfb", "broken")]);
        assert!(kept[0].problem.len() <= PROBLEM_BYTES_MAX && kept[0].problem.starts_with("meaning: ü"));
        assert_eq!(kept[1].problem, "no way");
    }

    #[test]
    fn of_what_is_not_used_only_bugs_are_noted() {
        let (watch, mut rejections) = (Counted::default(), Rejections::new());
        let rejected = PlanError::Rejected { check: "load", problem: "too slow".to_owned() };
        rejections.note_bug(Algorithm::Forest, &rejected, &watch);
        for ordinary in [SynthesisError::NoTrees, SynthesisError::Stopped] {
            rejections.note_bug(Algorithm::Forest, &PlanError::Synthesis(ordinary), &watch);
        }
        assert_eq!(*watch.0.lock().unwrap(), [("forest", "load")]);
        assert_eq!(rejections.into_kept().len(), 1);
    }

    #[test]
    fn a_plan_keeps_the_first_of_them() {
        let (watch, mut rejections) = (Counted::default(), Rejections::new());
        let rejected = |number: usize| PlanError::Rejected { check: "load", problem: number.to_string() };
        (0..KEPT_MAX + 4).for_each(|number| rejections.note(Algorithm::Direct, &rejected(number), &watch));
        let mut others = Rejections::new();
        others.note(Algorithm::Tacos, &rejected(0), &watch);
        rejections.append(others);
        assert_eq!(watch.0.lock().unwrap().len(), KEPT_MAX + 5);
        let kept = rejections.into_kept();
        assert_eq!((kept.len(), kept[15].problem.as_str()), (KEPT_MAX, "load: 15"));
    }
}
