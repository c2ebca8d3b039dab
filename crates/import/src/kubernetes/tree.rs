//! Switches below switches, and machines below them.

use std::collections::{HashMap, HashSet};

use canopy_topology::{Latency, shorten};

use crate::error::{FileError, ImportError};
use crate::fabric::{Attachment, Fabric, FabricHost, FabricLink, FabricSwitch, PortName};
use crate::kind::FileKind;
use crate::names::id_of;
use crate::source::Source;

/// A tree being built; it may have several roots.
pub(super) struct Tree<'a> {
    kind: FileKind,
    source: Source<'a>,
    pub(super) fabric: Fabric,
    ids: HashSet<String>,
    above: Vec<Option<usize>>,
    /// By machine, its switch.
    switch_of: HashMap<String, usize>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(kind: FileKind, source: Source<'a>) -> Self {
        let (fabric, above) = (Fabric::default(), Vec::new());
        Self { kind, source, fabric, ids: HashSet::new(), above, switch_of: HashMap::new() }
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> ImportError {
        FileError::whole(self.kind, problem).into()
    }

    /// Adds a switch of this name, or of this id if the name is not one.
    pub(super) fn add_switch(&mut self, id: &str, name: &str) -> Result<usize, ImportError> {
        let id = id_of(id);
        let position = self.fabric.switches.len();
        self.source.require(position + 1 + self.fabric.hosts.len(), 0)?;
        if id.is_empty() || !self.ids.insert(id.clone()) {
            let problem = format!("switch `{}` has no name or is given twice; give each its own", shorten(name));
            return Err(self.error(problem));
        }
        let label = Some(name.to_owned()).filter(|name| *name != id);
        self.fabric.switches.push(FabricSwitch { id, label, ..FabricSwitch::default() });
        self.above.push(None);
        Ok(position)
    }

    /// Puts a switch below another.
    pub(super) fn put(&mut self, lower: usize, upper: usize) -> Result<(), ImportError> {
        if let Some(first) = self.above[lower].replace(upper) {
            let id = |switch: usize| &self.fabric.switches[switch].id;
            let problem = format!(
                "switch `{}` is below `{}` and below `{}`; leave it below one",
                id(lower),
                id(first),
                id(upper)
            );
            return Err(self.error(problem));
        }
        self.source.require(0, 2 * (self.fabric.links.len() + 1))?;
        let ends = (lower, upper);
        self.fabric.links.push(FabricLink { ends, rate: None, count: None, latency: Latency::default() });
        Ok(())
    }

    /// Joins a machine to a switch, with all of its ports.
    pub(super) fn join(&mut self, name: &str, switch: usize) -> Result<(), ImportError> {
        let name = id_of(name);
        self.source.require(self.fabric.switches.len() + self.fabric.hosts.len() + 1, 0)?;
        if let Some(first) = self.switch_of.insert(name.clone(), switch) {
            let id = |switch: usize| &self.fabric.switches[switch].id;
            let (first, second) = (id(first), id(switch));
            let problem = format!("node `{}` is below `{first}` and below `{second}`; give it once", shorten(&name));
            return Err(self.error(problem));
        }
        let attachments = vec![Attachment { switch, port: PortName::Others, rate: None }];
        self.fabric.hosts.push(FabricHost { name, attachments });
        Ok(())
    }

    /// Switches that are below no other.
    pub(super) fn roots(&self) -> Vec<usize> {
        (0..self.above.len()).filter(|&switch| self.above[switch].is_none()).collect()
    }

    /// The fabric, with a sentence on what it has. O(switches).
    pub(super) fn finish(mut self) -> Result<Fabric, ImportError> {
        if self.fabric.hosts.is_empty() {
            return Err(self.error("the file names no nodes"));
        }
        let mut below = vec![Vec::new(); self.above.len()];
        for (lower, upper) in self.above.iter().enumerate() {
            upper.iter().for_each(|&upper| below[upper].push(lower));
        }
        let mut is_seen = vec![false; self.above.len()];
        let mut open = self.roots();
        while let Some(switch) = open.pop() {
            is_seen[switch] = true;
            open.append(&mut below[switch]);
        }
        if let Some(switch) = is_seen.iter().position(|is_seen| !is_seen) {
            let problem =
                format!("switch `{}` is above itself; remove one of its `switches`", self.fabric.switches[switch].id);
            return Err(self.error(problem));
        }
        let Fabric { switches, hosts, report, .. } = &mut self.fabric;
        report.understood.push(format!("{} nodes and {} switches", hosts.len(), switches.len()));
        Ok(self.fabric)
    }
}
