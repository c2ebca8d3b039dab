//! Rows of `src,dst,bandwidth_GBps,latency_ns`: directed links between ranks and switches.

use std::collections::HashMap;

use canopy_topology::{Capacity, Latency, TopologyDraft, shorten};

use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::names::id_of;
use crate::report::Report;
use crate::source::Source;

const KIND: FileKind = FileKind::Csv;

/// What marks a switch.
const SWITCH: &str = "switch:";

/// Whether a file that begins like this is one: a line is the header.
pub(crate) fn begins(start: &str) -> bool {
    start.lines().any(|line| line.contains(',') && columns(line).is_some())
}

/// Positions of source, destination, bandwidth and latency in a header.
fn columns(line: &str) -> Option<([usize; 3], Option<usize>)> {
    let names: Vec<String> = line.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
    let place = |name: &str| names.iter().position(|found| found == name);
    let needed = [place("src")?, place("dst")?, place("bandwidth_gbps")?];
    Some((needed, place("latency_ns")))
}

/// Reads the links; nodes are ranked in the order in which they come first.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let mut rows = Rows { draft: TopologyDraft::default(), known: HashMap::new(), source };
    let mut header = None;
    for line in source.lines() {
        let (number, line) = line?;
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        match header {
            None => {
                let found = columns(line);
                let problem = "the header is not `src,dst,bandwidth_GBps,latency_ns`";
                header = Some(found.ok_or_else(|| FileError::at(KIND, number, problem))?);
            }
            Some((needed, latency)) => rows.add(number, line, needed, latency)?,
        }
    }
    let draft = rows.draft;
    let mut report = Report::default();
    report.understood.push(format!("{} nodes and {} directed links", draft.nodes.len(), draft.links.len()));
    Ok(Content::Network(draft, report))
}

struct Rows<'a> {
    draft: TopologyDraft,
    /// Nodes, and whether each is a switch.
    known: HashMap<String, bool>,
    source: Source<'a>,
}

impl Rows<'_> {
    fn add(
        &mut self,
        number: usize,
        line: &str,
        [from, to, rate]: [usize; 3],
        latency: Option<usize>,
    ) -> Result<(), ImportError> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let field = |place: usize, name: &str| {
            let missing =
                || FileError::at(KIND, number, format!("the row has no {name}; write src,dst,bandwidth,latency"));
            fields.get(place).copied().filter(|field| !field.is_empty()).ok_or_else(missing)
        };
        let (from, to) = (field(from, "src")?, field(to, "dst")?);
        if from.trim_start_matches(SWITCH) == to.trim_start_matches(SWITCH) {
            let problem = format!("the link leads from `{}` to itself; name two nodes", shorten(from));
            return Err(FileError::at(KIND, number, problem).into());
        }
        let unreadable = |what: &str, found: &str, expected: &str| {
            FileError::at(KIND, number, format!("{what} is `{}`; write {expected}", shorten(found))).of_field(what)
        };
        let text = field(rate, "bandwidth_GBps")?;
        let capacity: Capacity = format!("{text}GB/s")
            .parse()
            .map_err(|_| unreadable("bandwidth_GBps", text, "a number of GB/s such as 25 or 12.5"))?;
        let latency = match latency.and_then(|place| fields.get(place)).filter(|text| !text.is_empty()) {
            None => Latency::default(),
            Some(text) => format!("{text}ns")
                .parse()
                .map_err(|_| unreadable("latency_ns", text, "a whole number of nanoseconds"))?,
        };
        self.source.require(self.draft.nodes.len() + 2, self.draft.links.len() + 1)?;
        let (from, to) = (self.node(number, from)?, self.node(number, to)?);
        self.draft.add_link(from, to, capacity, latency);
        Ok(())
    }

    /// The id of a node, which is added when it comes first. What is a switch once may be named without the prefix later.
    fn node(&mut self, number: usize, text: &str) -> Result<String, ImportError> {
        let (id, is_switch) = text.strip_prefix(SWITCH).map_or((text, false), |id| (id, true));
        if id.is_empty() || id.len() > 255 || id_of(id) != id {
            let problem = format!("`{}` is no name of a node; use no white space and none of `: > = ,`", shorten(text));
            return Err(FileError::at(KIND, number, problem).into());
        }
        match self.known.get(id) {
            None => {
                self.known.insert(id.to_owned(), is_switch);
                match is_switch {
                    true => self.draft.add_switch(id),
                    false => self.draft.add_compute(id),
                }
            }
            Some(false) if is_switch => {
                let id = shorten(id);
                let problem = format!("`{id}` is a rank in a row before; write `{SWITCH}{id}` where it comes first");
                return Err(FileError::at(KIND, number, problem).into());
            }
            Some(_) => {}
        }
        Ok(id.to_owned())
    }
}
