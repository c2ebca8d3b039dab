//! Commands for the system's own programs, as data.

use serde::{Deserialize, Serialize};

/// The programs that make a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// `ip` of iproute2.
    Ip,
    /// `tc` of iproute2.
    Tc,
    /// `nsenter` of util-linux.
    Nsenter,
}

impl Program {
    /// Its name on the search path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Tc => "tc",
            Self::Nsenter => "nsenter",
        }
    }
}

/// A program to run, with its arguments and what it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program.
    pub program: Program,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its standard input; empty for a program that reads none.
    #[serde(default)]
    pub input: String,
}

impl Command {
    pub(crate) fn new(program: Program, args: &[&str]) -> Self {
        Self { program, args: args.iter().map(|&arg| arg.to_owned()).collect(), input: String::new() }
    }

    /// One run of `ip` or `tc` in a namespace for many lines; `None` if there are no lines.
    pub(crate) fn batch(program: Program, namespace: &str, lines: &[String]) -> Option<Self> {
        if lines.is_empty() {
            return None;
        }
        let input = lines.iter().fold(String::new(), |text, line| text + line + "\n");
        Some(Self { input, ..Self::new(program, &["-n", namespace, "-batch", "-"]) })
    }
}
