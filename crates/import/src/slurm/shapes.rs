//! The shapes that Slurm knows, as fabrics: trees of switches, blocks, rings and tori.

use std::collections::{BTreeMap, HashMap};

use canopy_topology::{Latency, expand_hosts, is_invisible, shorten};

use crate::error::{FileError, ImportError};
use crate::fabric::{Attachment, Fabric, FabricHost, FabricLink, FabricSwitch, PortName};
use crate::kind::FileKind;
use crate::machine::listed;
use crate::source::Source;

/// A switch as a file states it, on this line.
#[derive(Clone, Debug, Default)]
pub(super) struct SwitchLine {
    pub(super) line: Option<usize>,
    pub(super) name: String,
    /// Lists of switches and of machines below it.
    pub(super) switches: Option<String>,
    pub(super) nodes: Option<String>,
}

/// A block, or a ring, of machines.
#[derive(Clone, Debug)]
pub(super) struct GroupLine {
    pub(super) line: Option<usize>,
    pub(super) name: String,
    pub(super) nodes: String,
}

/// A fabric being built from a file.
pub(super) struct Builder<'a> {
    kind: FileKind,
    source: Source<'a>,
    fabric: Fabric,
    switch_at: HashMap<String, usize>,
    host_at: HashMap<String, usize>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(kind: FileKind, source: Source<'a>) -> Self {
        Self { kind, source, fabric: Fabric::default(), switch_at: HashMap::new(), host_at: HashMap::new() }
    }

    fn error(&self, line: Option<usize>, problem: String) -> ImportError {
        FileError { line, ..FileError::whole(self.kind, problem) }.into()
    }

    fn add_switch(&mut self, line: Option<usize>, name: &str) -> Result<usize, ImportError> {
        let bad = |c: char| c.is_whitespace() || is_invisible(c) || matches!(c, ':' | '>' | '=' | ',');
        if name.is_empty() || name.len() > 255 || name.contains(bad) {
            let problem = format!("`{}` is no name of a switch; use letters, digits and `-`", shorten(name));
            return Err(self.error(line, problem));
        }
        let position = self.fabric.switches.len();
        if self.switch_at.insert(name.to_owned(), position).is_some() {
            return Err(self.error(line, format!("`{}` is given twice; give each its own name", shorten(name))));
        }
        self.source.require(position + 1 + self.fabric.hosts.len(), 0)?;
        self.fabric.switches.push(FabricSwitch { id: name.to_owned(), ..FabricSwitch::default() });
        Ok(position)
    }

    fn expand(&self, line: Option<usize>, list: &str) -> Result<Vec<String>, ImportError> {
        expand_hosts(list).map_err(|error| {
            let is_over_limit = matches!(error, canopy_topology::HostsError::TooMany);
            FileError { line, is_over_limit, ..FileError::whole(self.kind, error.to_string()) }.into()
        })
    }

    /// Joins a machine to a switch; it may be joined to one only.
    fn join(&mut self, line: Option<usize>, name: &str, switch: usize) -> Result<(), ImportError> {
        if let Some(&known) = self.host_at.get(name) {
            let first = &self.fabric.switches[self.fabric.hosts[known].attachments[0].switch].id;
            let second = &self.fabric.switches[switch].id;
            let problem = format!(
                "node `{name}` is below `{first}` and below `{second}`; leave it below one, or describe its ports with \
                 the output of ibnetdiscover"
            );
            return Err(self.error(line, problem));
        }
        self.source.require(self.fabric.switches.len() + self.fabric.hosts.len() + 1, 0)?;
        self.host_at.insert(name.to_owned(), self.fabric.hosts.len());
        let attachments = vec![Attachment { switch, port: PortName::Others, rate: None }];
        self.fabric.hosts.push(FabricHost { name: name.to_owned(), attachments });
        Ok(())
    }

    fn link(&mut self, ends: (usize, usize)) -> Result<(), ImportError> {
        self.source.require(0, 2 * (self.fabric.links.len() + 1))?;
        self.fabric.links.push(FabricLink { ends, rate: None, count: None, latency: Latency::default() });
        Ok(())
    }

    /// Switches above switches and machines.
    pub(super) fn tree(&mut self, lines: &[SwitchLine]) -> Result<(), ImportError> {
        for line in lines {
            self.add_switch(line.line, &line.name)?;
        }
        let mut empty = Vec::new();
        for SwitchLine { line, name, switches, nodes } in lines {
            self.source.ask()?;
            let switch = self.switch_at[name];
            match (switches, nodes) {
                (Some(_), Some(_)) => {
                    let problem = format!("switch `{name}` needs `Switches` or `Nodes`, one of them; remove the other");
                    return Err(self.error(*line, problem));
                }
                (None, None) => empty.push(name.clone()),
                _ => {}
            }
            for below in switches.iter().map(|list| self.expand(*line, list)).collect::<Result<Vec<_>, _>>()?.concat() {
                let Some(&lower) = self.switch_at.get(&below) else {
                    let problem =
                        format!("switch `{name}` is above `{below}`, which is no switch of the file; add its line");
                    return Err(self.error(*line, problem));
                };
                self.link((lower, switch))?;
            }
            for node in nodes.iter().map(|list| self.expand(*line, list)).collect::<Result<Vec<_>, _>>()?.concat() {
                self.join(*line, &node, switch)?;
            }
        }
        self.leave_out(empty);
        self.refuse_loops()
    }

    /// Says what has no nodes: tools write such lines for places that are not filled yet.
    pub(super) fn leave_out(&mut self, names: Vec<String>) {
        if !names.is_empty() {
            let (count, names) = (names.len(), listed(names.iter().map(String::as_str)));
            self.fabric.report.left_out.push(format!("{count} without nodes: {names}"));
        }
    }

    /// A switch must not be above itself.
    fn refuse_loops(&self) -> Result<(), ImportError> {
        let mut above_count = vec![0_usize; self.fabric.switches.len()];
        let mut above = vec![Vec::new(); self.fabric.switches.len()];
        for link in &self.fabric.links {
            above[link.ends.0].push(link.ends.1);
            above_count[link.ends.1] += 1;
        }
        let mut open: Vec<usize> = (0..above.len()).filter(|&switch| above_count[switch] == 0).collect();
        let mut left = above.len();
        while let Some(switch) = open.pop() {
            left -= 1;
            for &upper in &above[switch] {
                above_count[upper] -= 1;
                if above_count[upper] == 0 {
                    open.push(upper);
                }
            }
        }
        match above_count.iter().position(|&count| count > 0) {
            Some(switch) if left > 0 => {
                let name = &self.fabric.switches[switch].id;
                Err(self.error(None, format!("switch `{name}` is above itself; remove one of its `Switches`")))
            }
            _ => Ok(()),
        }
    }

    /// Blocks of machines, each on a switch of its own; switches above join as many as each size says, and the last joins
    /// all.
    pub(super) fn blocks(&mut self, lines: &[GroupLine], sizes: &[u64]) -> Result<(), ImportError> {
        let mut level = Vec::new();
        for GroupLine { line, name, nodes } in lines {
            self.source.ask()?;
            let switch = self.add_switch(*line, name)?;
            for node in self.expand(*line, nodes)? {
                self.join(*line, &node, switch)?;
            }
            level.push(switch);
        }
        let base = sizes.first().copied().unwrap_or(1).max(1);
        let mut counts: Vec<usize> = sizes
            .iter()
            .skip(1)
            .filter_map(|size| usize::try_from(size / base).ok())
            .filter(|&count| count > 1)
            .collect();
        counts.push(usize::MAX);
        let mut before = 1;
        for (number, count) in (1..).zip(counts) {
            if level.len() < 2 {
                break;
            }
            let group = (count / before).max(2);
            before = count;
            let mut next = Vec::new();
            for members in level.chunks(group) {
                let upper = self.add_switch(None, &format!("blocks{number}.{}", next.len()))?;
                members.iter().try_for_each(|&member| self.link((member, upper)))?;
                next.push(upper);
            }
            level = next;
        }
        let rates = "machines of a block, and blocks, are joined by one switch each, as Slurm says nothing else";
        self.fabric.report.assumed.push(rates.to_owned());
        Ok(())
    }

    /// Machines in rings, each on a switch of its own that leads to those of its neighbours.
    pub(super) fn rings(&mut self, lines: &[GroupLine]) -> Result<(), ImportError> {
        for GroupLine { line, name, nodes } in lines {
            let hosts = self.expand(*line, nodes)?;
            let ports = self.ports(*line, name, &hosts)?;
            let pairs = if ports.len() > 2 { ports.len() } else { ports.len().saturating_sub(1) };
            for place in 0..pairs {
                self.link((ports[place], ports[(place + 1) % ports.len()]))?;
            }
        }
        Ok(())
    }

    /// Machines in a grid with wrap-around, the first coordinate fastest.
    pub(super) fn torus(&mut self, name: &str, extents: [usize; 3], nodes: &str) -> Result<(), ImportError> {
        let hosts = self.expand(None, nodes)?;
        let places = extents.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
        if places != Some(hosts.len()) {
            let [x, y, z] = extents;
            let problem = format!("torus `{name}` of {x}x{y}x{z} has {} nodes; name one for each place", hosts.len());
            return Err(self.error(None, problem));
        }
        let ports = self.ports(None, name, &hosts)?;
        let mut stride = 1;
        for extent in extents {
            for place in 0..hosts.len() {
                let at = place / stride % extent;
                // Of two places there is one link, of one none.
                if extent > 2 || extent == 2 && at == 0 {
                    let next = place - at * stride + (at + 1) % extent * stride;
                    self.link((ports[place], ports[next]))?;
                }
            }
            stride *= extent;
        }
        Ok(())
    }

    /// A switch for each machine, which stands for its ports.
    fn ports(&mut self, line: Option<usize>, name: &str, hosts: &[String]) -> Result<Vec<usize>, ImportError> {
        let mut ports = Vec::with_capacity(hosts.len());
        for host in hosts {
            let port = self.add_switch(line, &format!("{name}.{host}"))?;
            self.join(line, host, port)?;
            ports.push(port);
        }
        Ok(ports)
    }

    /// The fabric, with a sentence on what it has.
    pub(super) fn finish(mut self) -> Result<Fabric, ImportError> {
        if self.fabric.hosts.is_empty() {
            return Err(self.error(None, "the file names no nodes; give lines with Nodes=gpu[01-04]".to_owned()));
        }
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        let mut below = vec![0; self.fabric.switches.len()];
        self.fabric.hosts.iter().for_each(|host| below[host.attachments[0].switch] += 1);
        below.into_iter().filter(|&count| count > 0).for_each(|count| *sizes.entry(count).or_default() += 1);
        let sizes: Vec<String> = sizes.iter().rev().map(|(size, count)| format!("{count} with {size} nodes")).collect();
        self.fabric.report.understood.push(format!(
            "{} nodes and {} switches, {}",
            self.fabric.hosts.len(),
            self.fabric.switches.len(),
            sizes.join(", ")
        ));
        Ok(self.fabric)
    }
}
