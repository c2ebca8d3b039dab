//! Keys of attributes, and what the data of an element says by them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use canopy_topology::shorten;

use super::KIND;
use crate::error::{FileError, ImportError};
use crate::xml::Element;

/// Attributes that say how fast an edge is, and the unit of their numbers where the text has none.
pub(super) const RATES: [(&str, &str); 4] =
    [("bandwidth", ""), ("capacity", ""), ("bandwidth_GBps", "GB/s"), ("capacity_GBps", "GB/s")];

/// The same for latencies.
pub(super) const LATENCIES: [(&str, &str); 2] = [("latency", ""), ("latency_ns", "ns")];

/// Attributes that say what a node is.
const KINDS: [&str; 3] = ["kind", "type", "role"];

/// The attribute of nodes or edges that a name stands for. In `GBps`, the case tells bytes from bits.
fn known(is_edge: bool, name: &str) -> Option<&'static str> {
    let same = |known: &&str| known.eq_ignore_ascii_case(name) && (!known.contains("GBps") || name.ends_with("GBps"));
    match is_edge {
        true => RATES.iter().chain(&LATENCIES).map(|(known, _)| *known).find(|known| same(known)),
        false => KINDS.into_iter().find(|known| same(known)),
    }
}

/// What the data of an element says.
#[derive(Clone, Default)]
pub(super) struct Said<'a> {
    /// Values of attributes that mean something.
    pub(super) known: BTreeMap<&'static str, &'a str>,
    /// Names of others.
    pub(super) left_out: BTreeSet<&'a str>,
}

/// All keys of a file.
pub(super) struct Keys<'a> {
    /// Names by ids.
    names: HashMap<&'a str, &'a str>,
    /// Defaults of nodes and of edges.
    defaults: [BTreeMap<&'static str, &'a str>; 2],
    /// Names of defaults that mean nothing, and of what.
    pub(super) left_out: BTreeSet<(&'static str, &'a str)>,
}

impl<'a> Keys<'a> {
    pub(super) fn read(root: &'a Element) -> Result<Self, ImportError> {
        let mut keys = Self { names: HashMap::new(), defaults: Default::default(), left_out: BTreeSet::new() };
        for key in root.children_named("key") {
            let id = key.required("id")?;
            let name = key.attribute("attr.name").unwrap_or(id);
            if keys.names.insert(id, name).is_some() {
                let problem = format!("two keys have the id `{}`; give each its own", shorten(id));
                return Err(FileError::at(KIND, key.line, problem).into());
            }
            let Some(default) = key.children_named("default").next() else { continue };
            for (is_edge, domain) in [(false, "node"), (true, "edge")] {
                if key.attribute("for").is_none_or(|found| found == "all" || found == domain) {
                    keys.add_default(key, default, is_edge)?;
                }
            }
        }
        Ok(keys)
    }

    fn add_default(&mut self, key: &'a Element, default: &'a Element, is_edge: bool) -> Result<(), ImportError> {
        let Some(name) = self.name_of(key, "id") else { return Ok(()) };
        let of = if is_edge { "edges" } else { "nodes" };
        let Some(known) = known(is_edge, name) else {
            self.left_out.insert((of, name));
            return Ok(());
        };
        if self.defaults[usize::from(is_edge)].insert(known, text_of(default, name)?).is_some() {
            let problem = format!("two keys of {of} give `{known}` a default; keep one of them");
            return Err(FileError::at(KIND, key.line, problem).into());
        }
        Ok(())
    }

    fn name_of(&self, element: &Element, attribute: &str) -> Option<&'a str> {
        self.names.get(element.attribute(attribute)?).copied()
    }

    /// The name of the attribute that `<data>` is about.
    pub(super) fn name(&self, data: &Element) -> Option<&'a str> {
        self.name_of(data, "key")
    }

    pub(super) fn of_node(&self, node: &'a Element) -> Result<Said<'a>, ImportError> {
        self.of(node, false)
    }

    pub(super) fn of_edge(&self, edge: &'a Element) -> Result<Said<'a>, ImportError> {
        self.of(edge, true)
    }

    fn of(&self, element: &'a Element, is_edge: bool) -> Result<Said<'a>, ImportError> {
        let mut said = Said { known: self.defaults[usize::from(is_edge)].clone(), left_out: BTreeSet::new() };
        let mut own = BTreeSet::new();
        for data in element.children_named("data") {
            let key = data.required("key")?;
            let unknown = || {
                let problem = format!("the key `{}` is not declared; add <key id=… attr.name=…>", shorten(key));
                FileError::at(KIND, data.line, problem).of_field("data@key")
            };
            let name = self.names.get(key).copied().ok_or_else(unknown)?;
            let Some(known) = known(is_edge, name) else {
                said.left_out.insert(name);
                continue;
            };
            if !own.insert(known) {
                let problem = format!("`{known}` is given twice; keep one of them");
                return Err(FileError::at(KIND, data.line, problem)
                    .of_field(format!("{}@{known}", element.name))
                    .into());
            }
            said.known.insert(known, text_of(data, name)?);
        }
        Ok(said)
    }
}

/// The text of a value.
fn text_of<'a>(value: &'a Element, name: &str) -> Result<&'a str, FileError> {
    match value.children.first() {
        None => Ok(value.text.trim()),
        Some(child) => {
            let (name, child) = (shorten(name), shorten(&child.name));
            let problem = format!("`{name}` holds <{child}>; write its value as text");
            Err(FileError::at(KIND, value.line, problem))
        }
    }
}
