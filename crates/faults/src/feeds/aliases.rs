//! Aliases of devices: addresses, serial numbers and names of NICs that the network does not have.

use std::collections::BTreeMap;

use crate::feeds::labels::{normal, short_forms};
use crate::target::{Device, Target, TargetError};
use crate::text::shown;

/// Most names that are told.
const ALIASES_MAX: usize = 1_000_000;

/// Names and their targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases(pub(super) BTreeMap<String, Target>);

/// Errors of reading an alias.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum AliasError {
    #[error(
        "line {line}: `{found}` is not an alias; write a name, white space and its target, such as `10.0.0.7 \
         host:node7`"
    )]
    Form { line: usize, found: String },
    #[error("line {line}: {problem}")]
    Target { line: usize, problem: TargetError },
    #[error("line {line}: `{name}` is given twice; give it once")]
    Twice { line: usize, name: String },
    #[error("the file has more than {limit} aliases; give fewer")]
    TooMany { limit: usize },
}

impl Aliases {
    /// Reads lines of a name and a target, such as `10.0.0.7 host:node7` or `node7/mlx5_3 nic:node7:3`; `#` begins a comment.
    ///
    /// # Errors
    /// The first line that is neither empty nor an alias.
    pub fn read(text: &str) -> Result<Self, AliasError> {
        let mut aliases = BTreeMap::new();
        for (line, text) in (1_usize..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let parts = text.split_once(char::is_whitespace);
            let (name, target) = parts.ok_or_else(|| AliasError::Form { line, found: shown(text) })?;
            let target = target.trim().parse().map_err(|problem| AliasError::Target { line, problem })?;
            if aliases.insert(normal(name), target).is_some() {
                return Err(AliasError::Twice { line, name: shown(name) });
            }
            if aliases.len() > ALIASES_MAX {
                return Err(AliasError::TooMany { limit: ALIASES_MAX });
            }
        }
        Ok(Self(aliases))
    }

    /// What a machine's device is, by one of the machine's names and its own, or by its own alone.
    pub(super) fn device(&self, machine: &str, name: &str) -> Option<&Target> {
        let name = normal(name);
        let on_it = self.names(machine).find_map(|machine| self.0.get(&format!("{machine}/{name}")));
        on_it.or_else(|| self.0.get(&name))
    }

    /// What devices of a machine are that have names with one of the machine's.
    pub(super) fn devices<'a>(&'a self, machine: &'a str) -> impl Iterator<Item = &'a Target> {
        self.names(machine).flat_map(|machine| {
            let start = format!("{machine}/");
            let from = self.0.range(start.clone()..);
            from.take_while(move |(name, _)| name.starts_with(&start)).map(|(_, target)| target)
        })
    }

    /// Whether NICs of a machine have names of their own.
    pub(super) fn name_nics_of(&self, machine: &str) -> bool {
        self.devices(machine).any(|target| matches!(target, Target::Nic { device: Device::Nic { .. }, .. }))
    }

    /// A machine's names: the one that is said and the one that it means, whole and short.
    fn names<'a>(&'a self, machine: &'a str) -> impl Iterator<Item = &'a str> {
        let meant = self.machine(machine);
        short_forms(machine).chain(short_forms(meant).filter(move |_| meant != machine))
    }

    /// The machine of a name: another one where that is an alias of a host.
    pub(super) fn machine<'a>(&'a self, name: &'a str) -> &'a str {
        match self.0.get(name) {
            Some(Target::Host { name }) => name,
            _ => name,
        }
    }

    /// The GPU of this number on a machine: what `MACHINE/gpu3` means, or else the how-manieth rank of it.
    pub(super) fn gpu(&self, machine: &str, index: u32) -> Target {
        if let Some(target) = self.device(machine, &format!("gpu{index}")) {
            return target.clone();
        }
        Target::Gpu { device: Device::Slot { host: self.machine(machine).to_owned(), index } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_meanings_line_by_line() {
        let aliases =
            Aliases::read("# cards\n10.0.0.7\thost:node7\n\nnode7/mlx5_3  nic:node7:3 # third\nGPU-1 gpu:x\n").unwrap();
        assert_eq!((aliases.machine("10.0.0.7"), aliases.machine("other")), ("node7", "other"));
        let device = |machine, name| aliases.device(machine, name).map(ToString::to_string);
        assert_eq!(device("node7", "mlx5_3").as_deref(), Some("nic:node7:3"));
        assert_eq!((device("node8", "mlx5_3"), device("node8", "GPU-1").as_deref()), (None, Some("gpu:x")));
        assert_eq!(aliases.gpu("10.0.0.7", 3).to_string(), "gpu:node7:3");
        let other = Aliases::read("n7/gpu3 gpu:a\nn7/0000:3B:00 gpu:b\nn70/gpu3 gpu:c\nn7.east/gpu4 gpu:d").unwrap();
        assert_eq!(
            (other.gpu("n7", 3).to_string(), other.gpu("n7.east", 3).to_string()),
            ("gpu:a".into(), "gpu:a".into())
        );
        let named = |machine, name| other.device(machine, name).map(ToString::to_string);
        assert_eq!((named("n7", "00000000:3b:00.0").as_deref(), named("n7", "0000:3b:00.1")), (Some("gpu:b"), None));
        let both =
            Aliases::read("10.0.0.7 host:n7.east\nn7/a gpu:a\nn7.east/b gpu:b\n10.0.0.7/c gpu:c\nn70/d gpu:d").unwrap();
        let named: Vec<String> = both.devices("10.0.0.7").map(ToString::to_string).collect();
        assert_eq!(named, ["gpu:c", "gpu:b", "gpu:a"]);
        assert_eq!(both.device("10.0.0.7", "a").map(ToString::to_string).as_deref(), Some("gpu:a"));
        assert_eq!(other.devices("n7").map(ToString::to_string).collect::<Vec<_>>(), ["gpu:b", "gpu:a"]);
    }

    #[test]
    fn lines_that_are_none_are_named() {
        let refusal = |text: &str| Aliases::read(text).unwrap_err().to_string();
        assert!(refusal("\nalone").starts_with("line 2: `alone` is not an alias; write a name"));
        assert!(refusal("a fan:3").starts_with("line 1: unknown target `fan:3`"));
        assert_eq!(refusal("a gpu:x\na gpu:y"), "line 2: `a` is given twice; give it once");
    }
}
