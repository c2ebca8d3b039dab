//! `topology.yaml`: a list of topologies, of which one is for the cluster.

use serde::Deserialize;

use super::shapes::{Builder, GroupLine, SwitchLine};
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::source::Source;
use crate::yaml::documents;

const KIND: FileKind = FileKind::SlurmYaml;

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    start.lines().any(|line| line.trim_start().starts_with("- topology:"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    topology: String,
    #[serde(default)]
    cluster_default: bool,
    tree: Option<Tree>,
    block: Option<Blocks>,
    ring: Option<Rings>,
    torus3d: Option<Tori>,
    flat: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tree {
    switches: Vec<Switch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    switch: String,
    children: Option<String>,
    nodes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Blocks {
    #[serde(default)]
    block_sizes: Vec<u64>,
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    block: String,
    nodes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rings {
    rings: Vec<Ring>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ring {
    ring: String,
    nodes: Option<String>,
}

#[derive(Deserialize)]
struct Tori {
    toruses: Vec<Torus>,
}

/// Placements and regions are for jobs, not for the network.
#[derive(Deserialize)]
struct Torus {
    name: String,
    dims: Extents,
    nodes: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
struct Extents {
    x: usize,
    y: usize,
    z: usize,
}

/// The groups that have nodes; the others are left out.
fn with_nodes(builder: &mut Builder<'_>, groups: impl Iterator<Item = (String, Option<String>)>) -> Vec<GroupLine> {
    let (mut lines, mut empty) = (Vec::new(), Vec::new());
    for (name, nodes) in groups {
        match nodes.filter(|nodes| !nodes.trim().is_empty()) {
            Some(nodes) => lines.push(GroupLine { line: None, name, nodes }),
            None => empty.push(name),
        }
    }
    builder.leave_out(empty);
    lines
}

/// Reads the topology of the cluster: the one that says so, else the first.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let lists: Vec<Vec<Entry>> = documents(KIND, source)?;
    let mut entries: Vec<Entry> = lists.into_iter().flatten().collect();
    let chosen = entries.iter().position(|entry| entry.cluster_default).unwrap_or(0);
    if entries.is_empty() {
        return Err(FileError::whole(KIND, "the file has no topology").into());
    }
    let entry = entries.remove(chosen);
    let mut builder = Builder::new(KIND, source);
    let Entry { topology: name, tree, block, ring, torus3d, flat, .. } = entry;
    let kinds = [tree.is_some(), block.is_some(), ring.is_some(), torus3d.is_some(), flat.is_some()];
    if kinds.into_iter().filter(|&is_there| is_there).count() != 1 {
        let problem = format!("topology `{name}` needs one of tree, block, ring, torus3d and flat");
        return Err(FileError::whole(KIND, problem).into());
    }
    if flat.is_some() {
        let problem = format!(
            "topology `{name}` is flat, which says nothing of switches; use `canopy network replicate` with a layout"
        );
        return Err(FileError::whole(KIND, problem).into());
    }
    if let Some(Tree { switches }) = tree {
        let line =
            |Switch { switch, children, nodes }| SwitchLine { line: None, name: switch, switches: children, nodes };
        builder.tree(&switches.into_iter().map(line).collect::<Vec<_>>())?;
    }
    if let Some(Blocks { block_sizes, blocks }) = block {
        let blocks = with_nodes(&mut builder, blocks.into_iter().map(|Block { block, nodes }| (block, nodes)));
        builder.blocks(&blocks, &block_sizes)?;
    }
    if let Some(Rings { rings }) = ring {
        let rings = with_nodes(&mut builder, rings.into_iter().map(|Ring { ring, nodes }| (ring, nodes)));
        builder.rings(&rings)?;
    }
    for Torus { name, dims, nodes } in torus3d.map(|tori| tori.toruses).unwrap_or_default() {
        let Some(nodes) = nodes else {
            let problem = format!("torus `{name}` has no `nodes`; name them in order, x fastest, instead of regions");
            return Err(FileError::whole(KIND, problem).into());
        };
        builder.torus(&name, [dims.x, dims.y, dims.z], &nodes)?;
    }
    let mut fabric = builder.finish()?;
    if !entries.is_empty() {
        let names: Vec<&str> = entries.iter().map(|entry| entry.topology.as_str()).collect();
        fabric.report.left_out.push(format!("other topologies of the file: {}", names.join(" ")));
    }
    Ok(Content::Fabric(fabric))
}
