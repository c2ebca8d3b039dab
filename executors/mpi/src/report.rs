//! How often plans ran, and why calls ran without one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::reason::Reason;

/// Calls of one process.
#[derive(Debug, Default)]
pub(crate) struct Report {
    counts: BTreeMap<&'static str, BTreeMap<Outcome, Count>>,
}

/// What became of calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Plan(String),
    Fallback(Reason),
}

/// Calls and the bytes of their messages.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    calls: u64,
    bytes: u64,
}

impl Report {
    /// Counts a call that a plan served.
    pub(crate) fn count_plan(&mut self, function: &'static str, plan: &str, bytes: u64) {
        let outcomes = self.counts.entry(function).or_default();
        let found = outcomes.iter_mut().find(|(outcome, _)| matches!(outcome, Outcome::Plan(name) if name == plan));
        let count = match found {
            Some((_, count)) => count,
            None => outcomes.entry(Outcome::Plan(plan.to_owned())).or_default(),
        };
        count.calls += 1;
        count.bytes = count.bytes.saturating_add(bytes);
    }

    /// Counts a call that ran without a plan.
    pub(crate) fn count_fallback(&mut self, function: &'static str, reason: Reason) {
        self.counts.entry(function).or_default().entry(Outcome::Fallback(reason)).or_default().calls += 1;
    }

    fn sum(&self, is_counted: impl Fn(&Outcome) -> bool) -> u64 {
        let all = self.counts.values().flatten();
        all.filter(|(outcome, _)| is_counted(outcome)).map(|(_, count)| count.calls).sum()
    }

    fn planned(&self) -> u64 {
        self.sum(|outcome| matches!(outcome, Outcome::Plan(_)))
    }

    fn fallbacks(&self) -> u64 {
        self.sum(|outcome| matches!(outcome, Outcome::Fallback(_)))
    }

    /// Lines for a person.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("canopy-mpi: rank 0: {} calls by plans, {} without\n", self.planned(), self.fallbacks());
        for (function, outcomes) in &self.counts {
            for (outcome, count) in outcomes {
                let _infallible = match outcome {
                    Outcome::Plan(name) => writeln!(text, "  {function}: {} by {name}", count.calls),
                    Outcome::Fallback(reason) => {
                        writeln!(text, "  {function}: {} without a plan: {}", count.calls, reason.text())
                    }
                };
            }
        }
        text
    }

    /// The report for programs.
    pub(crate) fn json(&self) -> Value {
        let functions = self.counts.iter().map(|(function, outcomes)| {
            let (mut plans, mut fallbacks) = (Vec::new(), Vec::new());
            for (outcome, count) in outcomes {
                match outcome {
                    Outcome::Plan(name) => plans.push(json!({
                        "plan": name, "calls": count.calls, "bytes": count.bytes,
                    })),
                    Outcome::Fallback(reason) => fallbacks.push(json!({
                        "reason": reason.key(), "calls": count.calls,
                    })),
                }
            }
            json!({ "function": function, "plans": plans, "fallbacks": fallbacks })
        });
        let functions: Vec<Value> = functions.collect();
        json!({
            "canopy": 1, "kind": "mpi-report", "rank": 0, "plan_calls": self.planned(),
            "fallback_calls": self.fallbacks(), "functions": functions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_by_function_plan_and_reason() {
        let mut report = Report::default();
        report.count_plan("MPI_Bcast", "b", 8);
        report.count_plan("MPI_Bcast", "a", 4);
        report.count_plan("MPI_Bcast", "b", u64::MAX);
        report.count_fallback("MPI_Bcast", Reason::OtherRoot);
        report.count_fallback("MPI_Allreduce", Reason::Operator);
        report.count_fallback("MPI_Allreduce", Reason::Operator);
        assert_eq!(
            report.text(),
            "canopy-mpi: rank 0: 3 calls by plans, 3 without\n  \
             MPI_Allreduce: 2 without a plan: the operator is user-defined, MINLOC or MAXLOC\n  \
             MPI_Bcast: 1 by a\n  MPI_Bcast: 2 by b\n  MPI_Bcast: 1 without a plan: no plan for this root\n"
        );
        let json = report.json();
        assert_eq!((&json["plan_calls"], &json["fallback_calls"]), (&json!(3), &json!(3)));
        assert_eq!(json["functions"][1]["plans"][1], json!({"plan": "b", "calls": 2, "bytes": u64::MAX}));
        assert_eq!(json["functions"][0]["fallbacks"][0], json!({"reason": "operator", "calls": 2}));
    }
}
