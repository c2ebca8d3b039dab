//! What was checked, with which outcome, and what to do about a problem.

use canopy_topology::is_invisible;
use serde::Serialize;

/// Most characters of a foreign text that are shown.
const SHOWN_MAX: usize = 200;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// The rule holds.
    Ok,
    /// The rule makes the runtime ignore a plan, or fail.
    Problem,
    /// A fact that may explain what the job does.
    Note,
    /// A fact is missing.
    Unknown,
}

impl Outcome {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Problem => "problem",
            Self::Note => "note",
            Self::Unknown => "unknown",
        }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) check: &'static str,
    pub(super) outcome: Outcome,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) help: Option<String>,
}

/// All checks, in the order in which a runtime comes to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    list: Vec<Check>,
}

impl Checks {
    pub(super) fn ok(&mut self, check: &'static str, message: impl Into<String>) {
        self.list.push(Check { check, outcome: Outcome::Ok, message: message.into(), help: None });
    }

    pub(super) fn problem(&mut self, check: &'static str, message: impl Into<String>, help: impl Into<String>) {
        let (message, help) = (message.into(), Some(help.into()));
        self.list.push(Check { check, outcome: Outcome::Problem, message, help });
    }

    pub(super) fn note(&mut self, check: &'static str, message: impl Into<String>, help: impl Into<String>) {
        let (message, help) = (message.into(), Some(help.into()));
        self.list.push(Check { check, outcome: Outcome::Note, message, help });
    }

    pub(super) fn unknown(&mut self, check: &'static str, message: impl Into<String>, help: impl Into<String>) {
        let (message, help) = (message.into(), Some(help.into()));
        self.list.push(Check { check, outcome: Outcome::Unknown, message, help });
    }

    pub(super) fn list(&self) -> &[Check] {
        &self.list
    }

    /// Number of problems.
    pub(super) fn problems(&self) -> usize {
        self.list.iter().filter(|check| check.outcome == Outcome::Problem).count()
    }

    /// One line per check, and one for what to do.
    pub(super) fn text(&self) -> String {
        let mut lines = Vec::new();
        for Check { check, outcome, message, help } in &self.list {
            lines.push(format!("{:<8} {check}: {message}", outcome.word()));
            lines.extend(help.as_ref().map(|help| format!("help:    {help}")));
        }
        lines.join("\n")
    }
}

/// A foreign text as it can be shown: one line of bounded length, without characters that are not shown.
pub(super) fn shown(text: &str) -> String {
    let mut line: String = text.chars().take(SHOWN_MAX).map(|c| if is_invisible(c) { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_a_line_and_its_help_another() {
        let mut checks = Checks::default();
        checks.ok("runtime", "NCCL");
        checks.problem("ranks", "8, not 16", "plan for 8");
        assert_eq!(checks.text(), "ok       runtime: NCCL\nproblem  ranks: 8, not 16\nhelp:    plan for 8");
        assert_eq!(checks.problems(), 1);
    }

    #[test]
    fn foreign_text_cannot_move_the_cursor() {
        assert_eq!(shown("a\u{1b}[2Jb\n"), "a [2Jb ");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), SHOWN_MAX + 1);
    }
}
