//! Volcano's HyperNodes: switches by name, each with the nodes or the switches below it.
//!
//! Source: volcano-sh/apis `pkg/apis/topology/v1alpha1`.

use std::collections::{BTreeMap, HashMap};

use canopy_topology::shorten;
use serde::Deserialize;

use super::levels::Labels;
use super::tree::Tree;
use crate::error::ImportError;
use crate::source::Source;

/// A HyperNode of a file.
pub(super) struct HyperNode {
    pub(super) name: String,
    /// As the file has them.
    pub(super) members: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Member {
    #[serde(rename = "type")]
    kind: String,
    selector: Selector,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    exact_match: Option<Exact>,
    label_match: Option<LabelMatch>,
}

#[derive(Deserialize)]
struct Exact {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LabelMatch {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<serde_json::Value>,
}

/// Adds a switch for each HyperNode, with what is below it. O(members, and nodes for each that is picked by labels).
pub(super) fn build(
    tree: &mut Tree<'_>,
    hypernodes: Vec<HyperNode>,
    nodes: &[(String, Labels)],
    source: Source<'_>,
) -> Result<(), ImportError> {
    let mut switches = HashMap::new();
    for HyperNode { name, .. } in &hypernodes {
        switches.insert(name.clone(), tree.add_switch(name, name)?);
    }
    for HyperNode { name, members } in hypernodes {
        source.ask()?;
        let switch = switches.get(&name).copied().unwrap_or_default();
        let name = shorten(&name);
        let unreadable = |error: serde_json::Error| {
            let problem = format!("HyperNode `{name}`: {error}; send what `kubectl get hypernodes -o yaml` writes");
            tree.error(problem)
        };
        let members: Vec<Member> =
            members.map(serde_json::from_value).transpose().map_err(unreadable)?.unwrap_or_default();
        for Member { kind, selector } in members {
            let below = picked(selector, nodes, kind == "Node").ok_or_else(|| {
                let problem = format!(
                    "HyperNode `{name}` picks members in a way that is not read; name each by `exactMatch`, or pick nodes \
                     of the file by `labelMatch` with `matchLabels`"
                );
                tree.error(problem)
            })?;
            for member in below {
                match switches.get(&member) {
                    _ if kind == "Node" => tree.join(&member, switch)?,
                    Some(&lower) => tree.put(lower, switch)?,
                    None => {
                        let member = shorten(&member);
                        let problem = format!(
                            "HyperNode `{name}` has the member `{member}`, which is none of the file; add it to the file"
                        );
                        return Err(tree.error(problem));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Names that a selector picks; `None` if it picks by what is not read.
fn picked(selector: Selector, nodes: &[(String, Labels)], is_of_nodes: bool) -> Option<Vec<String>> {
    match selector {
        Selector { exact_match: Some(Exact { name }), .. } => Some(vec![name]),
        Selector { label_match: Some(LabelMatch { match_labels, match_expressions }), .. }
            if is_of_nodes && !match_labels.is_empty() && match_expressions.is_empty() && !nodes.is_empty() =>
        {
            let has = |labels: &Labels| match_labels.iter().all(|(key, value)| labels.get(key) == Some(value));
            Some(nodes.iter().filter(|(_, labels)| has(labels)).map(|(name, _)| name.clone()).collect())
        }
        _ => None,
    }
}
