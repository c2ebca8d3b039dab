//! GraphML: nodes and edges whose attributes say what is a switch and how fast links are.
//!
//! A `<key>` names an attribute and may have a default; `<data>` of a node or an edge gives its value.
//! Source: the GraphML primer (graphml.graphdrawing.org).

mod keys;

use std::collections::{BTreeSet, HashMap, HashSet};

use canopy_topology::{Capacity, Latency, QuantityError, TopologyDraft, shorten};

use self::keys::{Keys, Said};
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::machine::listed;
use crate::names::id_of;
use crate::report::Report;
use crate::source::Source;
use crate::xml::{self, Element};

const KIND: FileKind = FileKind::GraphMl;

/// What marks a switch in an id, as in lists of links.
const SWITCH: &str = "switch:";

/// Values of `kind`, `type` or `role` of a switch.
const SWITCHES: [&str; 4] = ["switch", "spine", "leaf", "router"];

/// Values of a rank; others are taken for a rank, too, which the report says.
const RANKS: [&str; 9] = ["rank", "compute", "gpu", "tpu", "npu", "accelerator", "host", "server", "node"];

/// Elements between two questions whether to stop.
const ELEMENTS_BETWEEN_STOPS: usize = 4096;

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    start.contains("<graphml")
}

/// Reads the graph; nodes are ranked in the order of the file.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let root = xml::parse(KIND, source)?;
    if root.name != "graphml" {
        let found = shorten(&root.name);
        let problem = format!("the root element is `{found}`, not `graphml`; give a GraphML file without prefixes");
        return Err(FileError::whole(KIND, problem).into());
    }
    let keys = Keys::read(&root)?;
    let mut graphs = root.children_named("graph");
    let graph = graphs.next().ok_or_else(|| FileError::whole(KIND, "the file has no <graph>; give one network"))?;
    if let Some(second) = graphs.next() {
        let problem = "a second <graph> begins; give each network its own file";
        return Err(FileError::at(KIND, second.line, problem).into());
    }
    let directed = match graph.required("edgedefault")? {
        "directed" => true,
        "undirected" => false,
        other => return Err(graph.unusable("edgedefault", other, "`directed` or `undirected`").into()),
    };
    let known = |child: &&Element| !matches!(child.name.as_str(), "node" | "edge" | "data" | "desc");
    if let Some(child) = graph.children.iter().find(known) {
        return Err(refused(child).into());
    }
    let nodes = graph.children_named("node").count();
    source.require(nodes, graph.children_named("edge").count())?;
    let notes = Notes { left_out: keys.left_out.clone(), ..Notes::default() };
    let mut reader =
        Network { keys, source, draft: TopologyDraft::default(), id_of: HashMap::new(), used: HashSet::new(), notes };
    reader
        .notes
        .left_out
        .extend(graph.children_named("data").filter_map(|data| reader.keys.name(data)).map(|name| ("graph", name)));
    for (number, node) in graph.children_named("node").enumerate() {
        reader.ask(number)?;
        reader.add_node(node)?;
    }
    for (number, edge) in graph.children_named("edge").enumerate() {
        reader.ask(number)?;
        reader.add_edge(edge, directed)?;
    }
    let report = reader.notes.report(&reader.draft);
    Ok(Content::Network(reader.draft, report))
}

/// Says that an element is not read, and what to write instead.
fn refused(element: &Element) -> FileError {
    let instead = match element.name.as_str() {
        "hyperedge" => "write a node of the kind `switch` with an edge to each of its nodes",
        "port" => "join edges to the node itself, and remove the ports",
        "graph" => "write all nodes and edges into one graph",
        "locator" => "write the nodes and edges into this file",
        _ => "remove it; nodes and edges are read, with their <data>",
    };
    FileError::at(KIND, element.line, format!("<{}> is not read; {instead}", shorten(&element.name)))
}

/// What people should know, by what it is about.
#[derive(Default)]
struct Notes<'a> {
    /// Attributes that mean nothing here: of nodes, of edges or of the graph.
    left_out: BTreeSet<(&'static str, &'a str)>,
    /// Values of a kind that is neither that of a switch nor that of a rank.
    kinds: BTreeSet<String>,
    /// Whether an id has another character for one that ids cannot have.
    renamed: bool,
}

impl Notes<'_> {
    fn report(&self, draft: &TopologyDraft) -> Report {
        let mut report = Report::default();
        report.understood.push(format!("{} nodes and {} directed links", draft.nodes.len(), draft.links.len()));
        if !self.kinds.is_empty() {
            let kinds: Vec<&str> = self.kinds.iter().map(String::as_str).collect();
            let kinds = listed(kinds.into_iter());
            report.assumed.push(format!("nodes of these kinds are ranks: {kinds}; write `switch` for a switch"));
        }
        if self.renamed {
            report.assumed.push("ids have `-` for white space and each of `: > = ,`".to_owned());
        }
        for of in ["graph", "nodes", "edges"] {
            let names: Vec<String> =
                self.left_out.iter().filter(|(found, _)| *found == of).map(|(_, name)| shorten(name)).collect();
            if !names.is_empty() {
                let of = if of == "graph" { "the graph" } else { of };
                report.left_out.push(format!("attributes of {of}: {}", listed(names.iter().map(String::as_str))));
            }
        }
        report
    }
}

struct Network<'a> {
    keys: Keys<'a>,
    source: Source<'a>,
    draft: TopologyDraft,
    /// Ids in canopy by those in the file.
    id_of: HashMap<&'a str, String>,
    /// All ids in canopy.
    used: HashSet<String>,
    notes: Notes<'a>,
}

impl<'a> Network<'a> {
    fn ask(&self, number: usize) -> Result<(), ImportError> {
        if number.is_multiple_of(ELEMENTS_BETWEEN_STOPS) { self.source.ask() } else { Ok(()) }
    }

    fn add_node(&mut self, node: &'a Element) -> Result<(), ImportError> {
        self.check_children(node)?;
        let given = node.required("id")?;
        let (name, prefixed) = given.strip_prefix(SWITCH).map_or((given, false), |name| (name, true));
        let id = id_of(name);
        if id.is_empty() || id.len() > 255 {
            return Err(node.unusable("id", given, "1 to 255 bytes").into());
        }
        self.notes.renamed |= id != name;
        let is_new = self.used.insert(id.clone());
        if self.id_of.insert(given, id.clone()).is_some() || !is_new {
            let problem = format!("a node before has the id `{}`, too; give each its own", shorten(&id));
            return Err(FileError::at(KIND, node.line, problem).into());
        }
        let said = self.keys.of_node(node)?;
        self.notes.left_out.extend(said.left_out.iter().map(|name| ("nodes", *name)));
        let is_switch = prefixed || said.known.values().any(|kind| is_one_of(&SWITCHES, kind));
        if is_switch {
            self.draft.add_switch(id);
        } else {
            let unknown = said.known.values().filter(|kind| !kind.is_empty() && !is_one_of(&RANKS, kind));
            self.notes.kinds.extend(unknown.map(|kind| format!("`{}`", shorten(kind))));
            self.draft.add_compute(id);
        }
        Ok(())
    }

    fn add_edge(&mut self, edge: &'a Element, directed: bool) -> Result<(), ImportError> {
        self.check_children(edge)?;
        let directed = match edge.attribute("directed") {
            None => directed,
            Some("true" | "1") => true,
            Some("false" | "0") => false,
            Some(other) => return Err(edge.unusable("directed", other, "`true` or `false`").into()),
        };
        let (from, to) = (self.end(edge, "source")?, self.end(edge, "target")?);
        if from == to {
            let problem = format!("the edge leads from `{}` to itself; name two nodes", shorten(&from));
            return Err(FileError::at(KIND, edge.line, problem).into());
        }
        let said = self.keys.of_edge(edge)?;
        self.notes.left_out.extend(said.left_out.iter().map(|name| ("edges", *name)));
        for ports in ["sourceport", "targetport"] {
            self.notes.left_out.extend(edge.attribute(ports).map(|_| ("edges", ports)));
        }
        let ends = format!("edge `{}` to `{}`", shorten(&from), shorten(&to));
        let capacity = rate(edge, &ends, &said)?;
        let latency = latency(edge, &ends, &said)?;
        self.source.require(self.draft.nodes.len(), self.draft.links.len() + if directed { 1 } else { 2 })?;
        self.draft.add_link(from.as_str(), to.as_str(), capacity, latency);
        if !directed {
            self.draft.add_link(to, from, capacity, latency);
        }
        Ok(())
    }

    /// The id of an end of an edge.
    fn end(&self, edge: &Element, attribute: &'static str) -> Result<String, ImportError> {
        let id = edge.required(attribute)?;
        let unknown = || {
            let problem = format!("{attribute} is `{}`, which is no node of the file; add <node id=…>", shorten(id));
            FileError::at(KIND, edge.line, problem).of_field(format!("edge@{attribute}"))
        };
        Ok(self.id_of.get(id).cloned().ok_or_else(unknown)?)
    }

    /// Refuses what is inside a node or an edge and would change the network.
    fn check_children(&self, element: &Element) -> Result<(), FileError> {
        let unread = element.children.iter().find(|child| !matches!(child.name.as_str(), "data" | "desc"));
        unread.map_or(Ok(()), |child| Err(refused(child)))
    }
}

fn is_one_of(words: &[&str], value: &str) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// The one value of attributes that say the same thing in several ways.
fn one<T: PartialEq>(
    edge: &Element,
    ends: &str,
    said: &Said<'_>,
    ways: &[(&'static str, &str)],
    read: impl Fn(String) -> Result<T, QuantityError>,
) -> Result<Option<T>, FileError> {
    let mut found: Option<(&str, T)> = None;
    for (name, unit) in ways {
        let Some(text) = said.known.get(name) else { continue };
        let unreadable = |error: QuantityError| {
            FileError::at(KIND, edge.line, format!("{name} of {ends}: {error}")).of_field(format!("edge@{name}"))
        };
        let value = read(format!("{text}{unit}")).map_err(unreadable)?;
        match &found {
            Some((other, before)) if *before != value => {
                let problem = format!("{other} and {name} of {ends} differ; keep one of them");
                return Err(FileError::at(KIND, edge.line, problem).of_field(format!("edge@{name}")));
            }
            _ => found = Some((name, value)),
        }
    }
    Ok(found.map(|(_, value)| value))
}

fn rate(edge: &Element, ends: &str, said: &Said<'_>) -> Result<Capacity, FileError> {
    let missing = || {
        let problem = format!(
            "{ends} has no bandwidth; add <data> of a key with attr.name=\"bandwidth\", such as `400Gb/s`, or \
             \"bandwidth_GBps\", such as `50`"
        );
        FileError::at(KIND, edge.line, problem).of_field("edge@bandwidth")
    };
    one(edge, ends, said, &keys::RATES, |text| text.parse::<Capacity>())?.ok_or_else(missing)
}

fn latency(edge: &Element, ends: &str, said: &Said<'_>) -> Result<Latency, FileError> {
    Ok(one(edge, ends, said, &keys::LATENCIES, |text| text.parse::<Latency>())?.unwrap_or_default())
}
