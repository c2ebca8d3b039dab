//! `canopy network hash | same`: what a network is, whatever its nodes are called.

use canopy_canonical::{Comparison, Difference, compare, form_hash};
use canopy_client::ErrorClass;
use canopy_topology::{Node, NodeKind, Topology};
use serde::Serialize;

use super::symmetry::{BUDGET, analysis, graph};
use crate::exit::Failure;
use crate::input;
use crate::output::{TopologySummary, print_json, stated_rate};
use crate::stdout::print;

/// JSON object of `hash`.
#[derive(Serialize)]
struct Hashed {
    /// With the hash that tells most: the canonical one where it is known.
    topology: TopologySummary,
    content: String,
    canonical: Option<String>,
}

/// Prints both hashes of a topology.
pub(super) fn hash(text: &str, json: bool) -> Result<(), Failure> {
    let topology = input::topology(text)?;
    let graph = graph(&topology)?;
    let canonical = analysis(&graph)?.solution().map(|solution| form_hash(&solution.form(&graph)).to_string());
    let summary = TopologySummary::by_content(&topology);
    let content = summary.hash.clone();
    let topology = match &canonical {
        Some(hash) => TopologySummary { hash: hash.clone(), hash_kind: "canonical".to_owned(), ..summary },
        None => summary,
    };
    if json {
        return print_json("topology hash", &Hashed { topology, content, canonical });
    }
    let canonical = canonical.unwrap_or_else(|| "not determined within the budget of work".to_owned());
    print(&format!("content    {content}\ncanonical  {canonical}"))
}

/// JSON object of `same`.
#[derive(Serialize)]
struct Compared {
    a: TopologySummary,
    b: TopologySummary,
    /// None where it is not known.
    same: Option<bool>,
    /// By rank of A: its counterpart in B.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<Vec<u32>>,
    /// Every node of A with its counterpart in B.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<[String; 2]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
}

/// Says how the nodes of two topologies correspond, or what tells them apart.
///
/// # Errors
/// They are different, or that is not known.
pub(super) fn same(texts: [&str; 2], json: bool) -> Result<(), Failure> {
    let (a, b) = (input::topology(texts[0])?, input::topology(texts[1])?);
    let comparison = compare(&graph(&a)?, &graph(&b)?, BUDGET).map_err(|error| Failure::input(error.to_string()))?;
    let (images, difference) = match &comparison {
        Comparison::Same(images) => (Some(images), None),
        Comparison::Different(difference) => (None, Some(in_words(difference, [&a, &b])?)),
        Comparison::Undetermined => (None, None),
    };
    if json {
        let id = |topology: &Topology, node: u32| topology.nodes()[node as usize].id.clone();
        let pairs =
            |images: &Vec<u32>| (0_u32..).zip(images).map(|(node, &image)| [id(&a, node), id(&b, image)]).collect();
        print_json(
            "topology same",
            &Compared {
                a: TopologySummary::of(&a),
                b: TopologySummary::of(&b),
                same: images.map(|_| true).or(difference.as_ref().map(|_| false)),
                ranks: images.map(|images| images[..a.rank_count() as usize].to_vec()),
                nodes: images.map(pairs),
                difference: difference.clone(),
            },
        )?;
    } else if let Some(images) = images {
        print(&readable(images, &a, &b))?;
    }
    match (images, difference) {
        (Some(_), _) => Ok(()),
        (None, Some(difference)) => Err(Failure::input(format!("not the same network: {difference}"))),
        (None, None) => Err(Failure::new(
            ErrorClass::Infeasible,
            "every count agrees, and whether the networks are the same is not determined within the budget of work",
        )),
    }
}

/// Rank by rank, then node by node.
fn readable(images: &[u32], a: &Topology, b: &Topology) -> String {
    let mut lines = vec!["same       yes: every node of A has a counterpart in B with the same links".to_owned()];
    for (node, &image) in images.iter().enumerate() {
        let (from, to) = (&a.nodes()[node].id, &b.nodes()[image as usize].id);
        lines.push(if from_rank(a, node) {
            format!("           rank {node} ({from}) -> rank {image} ({to})")
        } else {
            format!("           {from} -> {to}")
        });
    }
    lines.join("\n")
}

fn from_rank(topology: &Topology, node: usize) -> bool {
    node < topology.rank_count() as usize
}

/// What two topologies, A and B, differ in.
fn in_words(difference: &Difference, topologies: [&Topology; 2]) -> Result<String, Failure> {
    Ok(match difference {
        Difference::Colour { colour, counts: [a, b] } => {
            let mut kind = "nodes of a kind";
            for topology in topologies {
                let graph = graph(topology)?;
                if let Some(position) = graph.colours().iter().position(|other| other == colour) {
                    kind = kind_in_words(&topology.nodes()[position]);
                }
            }
            format!("A has {a} {kind}, B has {b}")
        }
        Difference::Weight { weight: [capacity, latency], counts: [a, b] } => {
            let capacity = stated_rate(&capacity.to_string());
            format!("A has {a} links of {capacity} and {latency} ns, B has {b}")
        }
        Difference::Cell { nodes, counts: [a, b] } => {
            let example = ["A", "B"].into_iter().zip(topologies).zip(nodes).find_map(|((name, topology), node)| {
                let node = (*node)? as usize;
                let id = &topology.nodes()[node].id;
                Some(if from_rank(topology, node) {
                    format!("rank {node} ({id}) of {name}")
                } else {
                    format!("{id} of {name}")
                })
            });
            let example = example.unwrap_or_default();
            format!("of nodes with such links to such nodes as {example} has, A has {a}, B has {b}")
        }
        Difference::Form => "every count agrees, but no matching of the nodes keeps all links".to_owned(),
    })
}

/// What nodes of the kind of this one are called.
const fn kind_in_words(node: &Node) -> &'static str {
    match node.kind {
        NodeKind::Compute => "ranks",
        NodeKind::Forwarder => "compute devices that only forward",
        NodeKind::Switch { multicast: false, aggregate: false } => "plain switches",
        NodeKind::Switch { multicast: true, aggregate: false } => "switches that multicast",
        NodeKind::Switch { multicast: false, aggregate: true } => "switches that aggregate",
        NodeKind::Switch { multicast: true, aggregate: true } => "switches that multicast and aggregate",
    }
}
