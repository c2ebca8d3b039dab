//! Writing topologies as YAML and JSON: one node or link per line, stable.

use std::fmt::Write as _;

use crate::document::schema::{KindName, LinkDocument, NodeDocument, TopologyDocument};
use crate::model::Topology;
use crate::quantity::Quantity;

/// The topology as YAML that [`read_document`](crate::read_document) reads back to an equal topology. O(nodes + links).
pub fn to_yaml(topology: &Topology) -> String {
    let document = TopologyDocument::from(topology);
    let mut out = format!("canopy: {}\n", document.canopy);
    for (key, value) in [("name", &document.name), ("cluster", &document.cluster)] {
        if let Some(value) = value {
            out.push_str(key);
            out.push_str(": ");
            push_scalar(&mut out, value);
            out.push('\n');
        }
    }
    push_list(&mut out, "nodes", &document.nodes, node_fields);
    push_list(&mut out, "links", &document.links, link_fields);
    out
}

/// The topology as JSON that [`read_document`](crate::read_document) reads back to an equal topology. O(nodes + links).
pub fn to_json(topology: &Topology) -> String {
    let TopologyDocument { canopy, name, cluster, defaults: _, nodes, links } = TopologyDocument::from(topology);
    let mut out = format!("{{\"canopy\": {canopy},\n");
    for (key, value) in [("name", &name), ("cluster", &cluster)] {
        if let Some(value) = value {
            let _ = write!(out, "\"{key}\": ");
            push_json(&mut out, value);
            out.push_str(",\n");
        }
    }
    for (key, entries) in [("nodes", json_lines(&nodes)), ("links", json_lines(&links))] {
        out.push_str(if key == "nodes" { "" } else { ",\n" });
        out.push_str(&format!("\"{key}\": [{entries}]"));
    }
    out.push_str("}\n");
    out
}

fn json_lines<T: serde::Serialize>(entries: &[T]) -> String {
    let mut out = String::new();
    for (position, entry) in entries.iter().enumerate() {
        out.push_str(if position == 0 { "\n  " } else { ",\n  " });
        push_json(&mut out, entry);
    }
    out
}

fn push_json<T: serde::Serialize>(out: &mut String, value: &T) {
    out.push_str(&serde_json::to_string(value).expect("text, numbers and flags are always JSON"));
}

/// Fields of a flow mapping, in the order they are written.
type Fields<'a> = Vec<(&'static str, Scalar<'a>)>;

/// A value of a flow mapping.
enum Scalar<'a> {
    /// Must read back as this very text, so it is quoted where YAML would see something else.
    Text(&'a str),
    /// A number, flag or quantity.
    Plain(String),
}

fn push_list<T>(out: &mut String, key: &str, entries: &[T], fields: fn(&T) -> Fields<'_>) {
    if entries.is_empty() {
        let _ = writeln!(out, "{key}: []");
        return;
    }
    let _ = writeln!(out, "{key}:");
    for entry in entries {
        for (position, (name, value)) in fields(entry).into_iter().enumerate() {
            out.push_str(if position == 0 { "  - {" } else { ", " });
            out.push_str(name);
            out.push_str(": ");
            match value {
                Scalar::Text(text) => push_scalar(out, text),
                Scalar::Plain(text) => out.push_str(&text),
            }
        }
        out.push_str("}\n");
    }
}

fn plain(quantity: &Quantity) -> Scalar<'static> {
    match quantity {
        Quantity::Whole(number) => Scalar::Plain(number.to_string()),
        Quantity::Text(text) => Scalar::Plain(text.clone()),
    }
}

fn node_fields(node: &NodeDocument) -> Fields<'_> {
    let flag = |set: bool| set.then(|| Scalar::Plain("true".to_owned()));
    let fields = [
        ("id", Some(Scalar::Text(&node.id))),
        ("kind", (node.kind == KindName::Switch).then(|| Scalar::Plain("switch".to_owned()))),
        ("rank", node.rank.map(|rank| Scalar::Plain(rank.to_string()))),
        ("forwards", flag(node.forwards)),
        ("multicast", flag(node.multicast)),
        ("aggregate", flag(node.aggregate)),
        ("host", node.host.as_deref().map(Scalar::Text)),
        ("box", node.box_name.as_deref().map(Scalar::Text)),
        ("rail", node.rail.as_deref().map(Scalar::Text)),
        ("label", node.label.as_deref().map(Scalar::Text)),
        ("loops", node.loops.as_ref().map(plain)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn link_fields(link: &LinkDocument) -> Fields<'_> {
    let fields = [
        ("from", Some(Scalar::Text(&link.from))),
        ("to", Some(Scalar::Text(&link.to))),
        ("bandwidth", Some(plain(&link.bandwidth))),
        ("latency", link.latency.as_ref().map(plain)),
        ("both", link.both.then(|| Scalar::Plain("true".to_owned()))),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Text as a YAML scalar that every reader takes for this text: plain where that is safe, else in double quotes.
fn push_scalar(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ if c.is_alphanumeric() => out.push(c),
            _ => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
}

/// Whether YAML 1.1 and 1.2 both read the bare word as text: it starts with a letter, holds only harmless characters
/// and is none of the words that mean a flag, nothing or a number.
fn is_plain(text: &str) -> bool {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '~');
    let reserved = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity"];
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(harmless)
        && !reserved.iter().any(|word| word.eq_ignore_ascii_case(text))
}
