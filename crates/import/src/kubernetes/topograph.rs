//! Models of Topograph: switches by name, and the nodes below them in blocks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use canopy_topology::{HostsError, expand_hosts};
use serde::Deserialize;

use super::tree::Tree;
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::machine::listed;
use crate::source::Source;
use crate::yaml::{Pairs, documents};

const KIND: FileKind = FileKind::Topograph;

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    start.contains("\nswitches:") && (start.contains("\nblocks:") || start.contains("\n    switches:"))
}

#[derive(Deserialize)]
struct Model {
    switches: Pairs<Option<Switch>>,
    #[serde(default)]
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
struct Switch {
    #[serde(default)]
    switches: Vec<String>,
    #[serde(default)]
    nodes: Vec<String>,
}

#[derive(Deserialize)]
struct Block {
    switch: String,
    #[serde(default)]
    nodes: Vec<String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Reads switches and blocks; switches that are named only where others are above or below them are there, too.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let mut builder = Builder { tree: Tree::new(KIND, source), switch_at: HashMap::new() };
    let mut domains = BTreeSet::new();
    for Model { switches, blocks } in documents::<Model>(KIND, source)? {
        for (name, _) in &switches.0 {
            builder.switch(name)?;
        }
        for (name, switch) in switches.0 {
            source.ask()?;
            let Some(Switch { switches, nodes }) = switch else { continue };
            let upper = builder.switch(&name)?;
            for lower in expanded(&switches)? {
                let lower = builder.switch(&lower)?;
                builder.tree.put(lower, upper)?;
            }
            builder.join(&nodes, upper)?;
        }
        for Block { switch, nodes, annotations } in blocks {
            source.ask()?;
            let switch = builder.switch(&switch)?;
            builder.join(&nodes, switch)?;
            let is_domain = |key: &str| key.starts_with("accelerator.") && key.ends_with("/domain");
            domains.extend(annotations.into_iter().filter(|(key, _)| is_domain(key)).map(|(_, domain)| domain));
        }
    }
    let mut fabric = builder.tree.finish()?;
    if !domains.is_empty() {
        let names = listed(domains.iter().map(String::as_str));
        let said = format!("NVLink domains of the nodes, which dumps of machines describe: {names}");
        fabric.report.left_out.push(said);
    }
    Ok(Content::Fabric(fabric))
}

struct Builder<'a> {
    tree: Tree<'a>,
    switch_at: HashMap<String, usize>,
}

impl Builder<'_> {
    fn switch(&mut self, name: &str) -> Result<usize, ImportError> {
        if let Some(&switch) = self.switch_at.get(name) {
            return Ok(switch);
        }
        let switch = self.tree.add_switch(name, name)?;
        self.switch_at.insert(name.to_owned(), switch);
        Ok(switch)
    }

    fn join(&mut self, nodes: &[String], switch: usize) -> Result<(), ImportError> {
        expanded(nodes)?.iter().try_for_each(|node| self.tree.join(node, switch))
    }
}

/// Names of lists such as `node[1101-1118]`.
fn expanded(lists: &[String]) -> Result<Vec<String>, ImportError> {
    if lists.is_empty() {
        return Ok(Vec::new());
    }
    let refused = |error: HostsError| {
        let is_over_limit = error == HostsError::TooMany;
        FileError { is_over_limit, ..FileError::whole(KIND, error.to_string()) }
    };
    Ok(expand_hosts(&lists.join(",")).map_err(refused)?)
}
