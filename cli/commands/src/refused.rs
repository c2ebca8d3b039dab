//! Refusals of plans that are made in this process: callers are told what a server would tell them.

use canopy_client::{ClientError, Refusal as Told};
use canopy_planner::chain;
use canopy_service::ServiceError;
use canopy_wire::{Refusal, in_short};

/// Tells why there is no plan.
pub(crate) fn told(error: &ServiceError) -> ClientError {
    in_words(&error.refusal(), &chain(error))
}

/// Tells a refusal in these words, as a client reads it from a server's status.
pub(crate) fn in_words(refusal: &Refusal, words: &str) -> ClientError {
    let message = in_short(words);
    let violations = refusal.violations(&message);
    let reason = Some(refusal.reason.to_string());
    let told = Told::new(refusal.code.into(), reason, message, violations, refusal.retry_after());
    ClientError::Refused(Box::new(told))
}

#[cfg(test)]
mod tests {
    use canopy_client::ErrorClass;
    use canopy_planner::{Parts, PlanError};
    use canopy_synth::{BoundError, LimitsError, SynthesisError};
    use canopy_topology::TopologyError;
    use canopy_wire::RequestError;

    use super::*;

    fn refusal(error: ClientError) -> Told {
        let ClientError::Refused(refusal) = error else { panic!("a refusal") };
        *refusal
    }

    /// Class and reason of a refusal, and its violations, of which the first has the words of the whole.
    #[track_caller]
    fn check(error: ClientError, class: ErrorClass, reason: &str, violations: &[(&str, &str)]) {
        let found = refusal(error);
        assert_eq!((found.class, found.reason.as_deref()), (class, Some(reason)));
        let listed = found.violations.iter().map(|(place, what)| (place.as_str(), what.as_str()));
        assert_eq!(listed.collect::<Vec<_>>(), violations);
        assert!(violations.first().is_none_or(|(_, what)| *what == found.message), "{found}");
        assert_eq!((found.retry_after, found.known_for, found.may_be_retried), (None, None, false));
    }

    fn disconnected() -> PlanError {
        let ids = |id: &str| id.to_owned();
        PlanError::Bound(BoundError::Disconnected { from: ids("a"), from_rank: 0, to: ids("b"), to_rank: 1 })
    }

    #[test]
    fn a_refusal_names_who_has_to_act_and_where() {
        let size = RequestError::Size { found: 0, limit: 9 };
        let words = size.to_string();
        check(told(&size.into()), ErrorClass::Input, "SIZE_INVALID", &[("size_bytes_max", &words)]);
        let trees = ServiceError::Plan(PlanError::Synthesis(SynthesisError::NoTrees));
        check(told(&trees), ErrorClass::Infeasible, "FORM_INFEASIBLE", &[("form", &trees.to_string())]);
        let large = TopologyError::TooLarge { what: "nodes", found: "9".to_owned(), limit: 8 };
        let field = large.field().map_or("topology.inline".to_owned(), |field| format!("topology.inline.{field}"));
        let words = large.to_string();
        check(told(&PlanError::Inline(large).into()), ErrorClass::Input, "TOPOLOGY_TOO_LARGE", &[(&field, &words)]);
        let rejected = PlanError::Rejected { check: "load", problem: "secret detail".to_owned() }.into();
        check(told(&rejected), ErrorClass::Fault, "VERIFIER_REJECTED", &[]);
        assert!(!refusal(told(&rejected)).message.contains("secret"));
    }

    #[test]
    fn the_components_of_a_network_follow_what_is_wrong() {
        let parts = Parts { count: 2, listed: vec!["a".to_owned(), "b, c".to_owned()] };
        let apart = PlanError::Apart { failure: Box::new(disconnected()), parts };
        let words = apart.to_string();
        let violations = [("rank 0 to rank 1", words.as_str()), ("component 0", "a"), ("component 1", "b, c")];
        check(told(&apart.into()), ErrorClass::Infeasible, "TOPOLOGY_DISCONNECTED", &violations);
    }

    #[test]
    fn one_of_several_collectives_is_named() {
        let limits = LimitsError::Contradiction { trees_per_root: 2, max_chunks: 3 };
        let failure = Box::new(PlanError::Synthesis(SynthesisError::Limits(limits)));
        let joint = PlanError::InJoint { position: 2, failure };
        let words = joint.to_string();
        let violations = [("joint.collectives[2].max_chunks", words.as_str())];
        check(told(&joint.into()), ErrorClass::Input, "LIMITS_CONTRADICT", &violations);
    }

    #[test]
    fn a_very_long_message_is_cut() {
        let long = TopologyError::UnknownNode { position: 0, end: "from", id: "x".repeat(100_000) };
        let found = refusal(told(&PlanError::Document(long.into()).into()));
        assert_eq!(found.message.chars().count(), 1500);
        assert_eq!(found.violations[0].1, found.message);
    }
}
