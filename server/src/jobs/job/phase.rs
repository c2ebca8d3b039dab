//! The phases of a job, and the table of their transitions.

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In the first line: waits for a reader.
    Arrived,
    /// A reader reads its topology and looks into the store.
    Reading,
    /// In the second line: waits for a planning worker.
    Queued,
    /// Another job makes the same plan.
    Following,
    /// A planning worker makes its plan.
    Planning,
    /// Ended with a plan.
    Succeeded,
    /// Ended without a plan.
    Failed,
    /// Ended because nobody waits for it any more, or an operator said so.
    Cancelled,
}

impl Phase {
    /// Every phase, in the order above.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 8] = [
        Self::Arrived,
        Self::Reading,
        Self::Queued,
        Self::Following,
        Self::Planning,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The table: what may come next. Whatever ends a job may do so from any phase before the end, but a plan comes
    /// only from the store (`Reading`), from a worker (`Planning`) or from the job that is followed.
    const fn next(self) -> &'static [Self] {
        match self {
            Self::Arrived => &[Self::Reading, Self::Failed, Self::Cancelled],
            Self::Reading => &[Self::Queued, Self::Following, Self::Succeeded, Self::Failed, Self::Cancelled],
            Self::Queued => &[Self::Planning, Self::Failed, Self::Cancelled],
            Self::Following | Self::Planning => &[Self::Succeeded, Self::Failed, Self::Cancelled],
            Self::Succeeded | Self::Failed | Self::Cancelled => &[],
        }
    }

    /// Whether the table allows this step.
    pub(crate) fn may_become(self, next: Self) -> bool {
        self.next().contains(&next)
    }

    /// Whether nothing comes after it.
    pub(crate) const fn is_end(self) -> bool {
        self.next().is_empty()
    }

    /// Whether a job in this phase counts as waiting: no planning worker has taken it, and it follows none.
    pub(crate) const fn waits(self) -> bool {
        matches!(self, Self::Arrived | Self::Reading | Self::Queued)
    }

    /// Whether a worker is on it.
    pub(crate) const fn runs(self) -> bool {
        matches!(self, Self::Reading | Self::Planning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_leads_to_every_bad_end_and_an_end_is_the_end() {
        for phase in Phase::ALL {
            for end in [Phase::Failed, Phase::Cancelled] {
                assert_eq!(phase.may_become(end), !phase.is_end(), "{phase:?} to {end:?}");
            }
            assert!(Phase::ALL.iter().all(|&next| !phase.is_end() || !phase.may_become(next)), "{phase:?}");
        }
    }

    #[test]
    fn no_phase_comes_twice() {
        // With `next` without cycles, a job ends after at most as many steps as there are phases.
        fn longest(phase: Phase, depth: usize) -> usize {
            assert!(depth < Phase::ALL.len(), "a cycle through {phase:?}");
            phase.next().iter().map(|&next| 1 + longest(next, depth + 1)).max().unwrap_or(0)
        }
        assert_eq!(longest(Phase::Arrived, 0), 4);
    }

    #[test]
    fn a_plan_comes_only_from_where_plans_are() {
        let sources: Vec<Phase> = Phase::ALL.into_iter().filter(|phase| phase.may_become(Phase::Succeeded)).collect();
        assert_eq!(sources, [Phase::Reading, Phase::Following, Phase::Planning]);
    }
}
