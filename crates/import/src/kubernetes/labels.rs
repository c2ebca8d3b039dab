//! Manifests of nodes, with labels that say where each is, and of Kueue's topologies, which say what labels to go by; or of
//! Volcano's [`HyperNode`](super::hypernodes)s, which name nodes themselves.
//!
//! A domain is known by the values of its level and of all above: a rack of one name may be in several blocks.

use std::collections::{BTreeMap, HashMap, HashSet};

use canopy_topology::shorten;
use serde::Deserialize;

use super::hypernodes::{self, HyperNode};
use super::levels::{Labels, Levels};
use super::tree::Tree;
use crate::content::Content;
use crate::error::ImportError;
use crate::fabric::Fabric;
use crate::kind::FileKind;
use crate::machine::listed;
use crate::names::id_of;
use crate::source::Source;
use crate::yaml::documents;

const KIND: FileKind = FileKind::KubernetesLabels;

/// Most levels, as in Kueue.
const LEVELS_MAX: usize = 16;

/// Whether a file that begins like this is one: YAML or JSON.
pub(crate) fn begins(start: &str) -> bool {
    const KINDS: [&str; 6] = ["node", "nodelist", "list", "topology", "hypernode", "hypernodelist"];
    let is_line = |line: &str| {
        let plain = line.replace(['"', '\'', ','], "");
        let (key, value) = plain.trim_start_matches(['-', ' ', '\t', '{']).split_once(':').unwrap_or_default();
        key.trim() == "kind" && KINDS.contains(&value.trim())
    };
    let is_manifest =
        start.contains("\napiversion:") || start.contains("\"apiversion\"") || start.contains("- apiversion");
    is_manifest
        && (start.lines().any(is_line) || KINDS.iter().any(|kind| start.contains(&format!("\"kind\":\"{kind}\""))))
}

#[derive(Deserialize)]
struct Document {
    kind: Option<String>,
    #[serde(rename = "apiVersion")]
    version: Option<String>,
    metadata: Option<Metadata>,
    spec: Option<Spec>,
    #[serde(default)]
    items: Vec<Document>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    name: Option<String>,
    labels: Option<Labels>,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    levels: Vec<Level>,
    /// Of other shapes in documents of other kinds.
    members: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Level {
    #[serde(rename = "nodeLabel")]
    label: String,
}

/// What the documents of a file are.
#[derive(Default)]
struct Found {
    nodes: Vec<(String, Labels)>,
    topologies: Vec<(String, Vec<String>)>,
    hypernodes: Vec<HyperNode>,
    /// Documents of other kinds, by kind.
    others: BTreeMap<String, usize>,
}

impl Found {
    fn add(&mut self, Document { kind, version, metadata, spec, items }: Document) {
        let Metadata { name, labels } = metadata.unwrap_or_default();
        let is_of_kueue = version.is_some_and(|version| version.starts_with("kueue.x-k8s.io/"));
        match kind.as_deref() {
            Some("Node") => self.nodes.push((name.unwrap_or_default(), labels.unwrap_or_default())),
            Some("Topology") if is_of_kueue => {
                let levels = spec.into_iter().flat_map(|spec| spec.levels).map(|level| level.label);
                self.topologies.push((name.unwrap_or_default(), levels.collect()));
            }
            Some("HyperNode") => {
                let members = spec.and_then(|spec| spec.members);
                self.hypernodes.push(HyperNode { name: name.unwrap_or_default(), members });
            }
            Some("List" | "NodeList" | "HyperNodeList") | None => {}
            Some(kind) => *self.others.entry(shorten(kind)).or_default() += 1,
        }
        items.into_iter().for_each(|item| self.add(item));
    }
}

/// Reads nodes and puts them below the domains of their labels.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let mut found = Found::default();
    documents::<Option<Document>>(KIND, source)?.into_iter().flatten().for_each(|document| found.add(document));
    let Found { nodes, mut topologies, hypernodes, others } = found;
    let mut tree = Tree::new(KIND, source);
    if !hypernodes.is_empty() {
        hypernodes::build(&mut tree, hypernodes, &nodes, source)?;
        return Ok(Content::Fabric(with_others(tree.finish()?, &others)));
    }
    if topologies.len() > 1 {
        let names = listed(topologies.iter().map(|(name, _)| name.as_str()));
        return Err(tree.error(format!("the file has several topologies, {names}; leave one")));
    }
    let given = topologies.pop();
    if nodes.is_empty() {
        let what = if given.is_some() { "levels of a topology, but no nodes" } else { "no nodes" };
        let problem = format!("the file has {what}; add the output of `kubectl get nodes -o yaml` below a line `---`");
        return Err(tree.error(problem));
    }
    let is_given = given.is_some();
    let levels = match given {
        Some((_, labels)) => Levels::given(labels),
        None => Levels::known(nodes.iter().map(|(_, labels)| labels)),
    };
    if levels.labels.is_empty() || levels.labels.len() > LEVELS_MAX {
        let problem = "the nodes have no label that is known to say where they are; put a Topology of Kueue into the \
                       file, whose `levels` name 1 to 16 labels";
        return Err(tree.error(problem));
    }
    build(&mut tree, &levels, &nodes, source)?;
    let mut fabric = tree.finish()?;
    fabric.report.understood.push(format!("levels: {}", levels.words()));
    if !is_given && levels.is_blind() {
        let said = "no label that is known says where in the network nodes are: all of a place are on one switch; put a \
                    Topology of Kueue into the file, whose `levels` name labels";
        fabric.report.assumed.push(said.to_owned());
    }
    if !levels.unused.is_empty() {
        let names = listed(levels.unused.iter().map(String::as_str));
        fabric.report.left_out.push(format!("labels that may say more of the network: {names}"));
    }
    Ok(Content::Fabric(with_others(fabric, &others)))
}

/// Says which documents were not used.
fn with_others(mut fabric: Fabric, others: &BTreeMap<String, usize>) -> Fabric {
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(|(kind, count)| format!("{kind} x{count}")).collect();
        let names = listed(names.iter().map(String::as_str));
        fabric.report.left_out.push(format!("documents that describe no nodes: {names}"));
    }
    fabric
}

/// Adds a switch for each domain, and one above all if several are outermost.
fn build(
    tree: &mut Tree<'_>,
    levels: &Levels,
    nodes: &[(String, Labels)],
    source: Source<'_>,
) -> Result<(), ImportError> {
    let (mut placed, mut paths) = (Vec::with_capacity(nodes.len()), Vec::with_capacity(nodes.len()));
    let mut without: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, labels) in nodes {
        source.ask()?;
        if name.is_empty() {
            return Err(tree.error("a node has no `metadata.name`; send what `kubectl get nodes -o yaml` writes"));
        }
        match levels.path(labels) {
            Ok(path) => {
                placed.push(name.as_str());
                paths.push(path);
            }
            Err(label) => without.entry(label).or_default().push(name),
        }
    }
    if let (true, Some((label, nodes))) = (placed.is_empty(), without.first_key_value()) {
        let (name, label) = (shorten(nodes.first().copied().unwrap_or_default()), shorten(label));
        let problem =
            format!("node `{name}` has no label `{label}`, nor has any other all that are levels; label them");
        return Err(tree.error(problem));
    }
    for (label, nodes) in without {
        let (count, label, names) = (nodes.len(), shorten(label), listed(nodes.into_iter()));
        tree.fabric.report.left_out.push(format!("{count} nodes without the label `{label}`: {names}"));
    }
    let names = Names::of(nodes, &paths);
    let mut domains: HashMap<&[&str], usize> = HashMap::new();
    for (name, path) in placed.into_iter().zip(&paths) {
        source.ask()?;
        let mut above = None;
        for depth in 1..=path.len() {
            let domain = &path[..depth];
            let switch = match domains.get(domain) {
                Some(&switch) => switch,
                None => {
                    let switch = tree.add_switch(&names.id(domain), path[depth - 1])?;
                    above.into_iter().try_for_each(|upper| tree.put(switch, upper))?;
                    domains.insert(domain, switch);
                    switch
                }
            };
            above = Some(switch);
        }
        above.into_iter().try_for_each(|switch| tree.join(name, switch))?;
    }
    let roots = tree.roots();
    if roots.len() > 1 {
        let id = names.id(&["top"]);
        let top = tree.add_switch(&id, &id)?;
        roots.iter().try_for_each(|&root| tree.put(root, top))?;
        let said = format!("the {} outermost domains are joined by one switch, `{id}`", roots.len());
        tree.fabric.report.assumed.push(said);
    }
    Ok(())
}

/// Names that ids must be told from.
struct Names {
    nodes: HashSet<String>,
    /// Domains that end in each value.
    uses: HashMap<String, usize>,
}

impl Names {
    fn of(nodes: &[(String, Labels)], paths: &[Vec<&str>]) -> Self {
        let domains: HashSet<&[&str]> =
            paths.iter().flat_map(|path| (1..=path.len()).map(|depth| &path[..depth])).collect();
        let mut uses = HashMap::new();
        for value in domains.into_iter().filter_map(<[&str]>::last) {
            *uses.entry(id_of(value)).or_default() += 1;
        }
        Self { nodes: nodes.iter().map(|(name, _)| id_of(name)).collect(), uses }
    }

    /// A domain is called by its value alone where no other is, else by all values of its path.
    fn id(&self, domain: &[&str]) -> String {
        let (value, path) = (id_of(domain.last().copied().unwrap_or_default()), id_of(&domain.join(".")));
        let is_free = |id: &String, uses_max: usize| {
            !self.nodes.contains(id) && self.uses.get(id).copied().unwrap_or_default() <= uses_max
        };
        // An outermost domain has no more than its value; others of the same value have longer paths.
        let uses_of_path = if domain.len() == 1 { usize::MAX } else { 0 };
        let found = [(&value, 1), (&path, uses_of_path)].into_iter().find(|(id, uses_max)| is_free(id, *uses_max));
        found.map_or_else(|| format!("domain-{path}"), |(id, _)| id.clone())
    }
}
