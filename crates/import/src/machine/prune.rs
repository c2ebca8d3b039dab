//! Leaves out devices that have no role in a network.
//!
//! CPUs go unless GPUs need them to reach each other, or a port that is of use: one without GPUs is no detour between
//! others. Then every switch with fewer than two neighbours goes, because it connects nothing. So NICs go, unless their
//! ports are joined to something: they matter between machines only.

use std::collections::{BTreeSet, HashMap};

use canopy_topology::NodeKind;

use super::{Machine, listed};
use crate::dead_ends::dead_ends;

impl Machine {
    /// Removes nodes and their links, and says so in the report. O(nodes log nodes + links log links).
    pub(crate) fn prune(&mut self, keeps_ports: bool) {
        let graph = Graph::of(self, keeps_ports);
        let mut gone = vec![false; graph.neighbours.len()];
        let (all, served) = (graph.devices_meet_without_cpus(), graph.served());
        let cpus = (0..gone.len()).filter(|&node| graph.is_cpu[node] && (all || !served[node])).collect::<Vec<_>>();
        self.remove(&mut gone, &cpus, "no path between GPUs needs them");
        let dead_ends = graph.dead_ends(&gone);
        self.remove(&mut gone, &dead_ends, "they connect no GPUs of the host");
        let position: HashMap<&str, usize> =
            self.draft.nodes.iter().enumerate().map(|(position, node)| (node.id.as_str(), position)).collect();
        let is_gone = |id: &str| position.get(id).is_none_or(|&position| gone[position]);
        self.draft.links.retain(|link| !is_gone(&link.from) && !is_gone(&link.to));
        self.cpus.retain(|cpu| !is_gone(cpu));
        if keeps_ports {
            self.ports.retain(|port| !is_gone(&port.node));
        }
        let mut gone = gone.into_iter();
        self.draft.nodes.retain(|_| !gone.next().unwrap_or(false));
    }

    fn remove(&mut self, gone: &mut [bool], nodes: &[usize], reason: &str) {
        if nodes.is_empty() {
            return;
        }
        nodes.iter().for_each(|&node| gone[node] = true);
        let ids = nodes.iter().map(|&node| self.draft.nodes[node].id.as_str());
        self.report.understood.push(format!("not needed, because {reason}: {}", listed(ids)));
    }
}

/// The machine by positions of nodes.
struct Graph {
    /// By node: where its links lead, and where links into it come from.
    neighbours: Vec<Vec<usize>>,
    sources: Vec<Vec<usize>>,
    is_cpu: Vec<bool>,
    is_gpu: Vec<bool>,
    /// Nodes with ports that are joined to something.
    is_joined: Vec<bool>,
}

impl Graph {
    fn of(machine: &Machine, keeps_ports: bool) -> Self {
        let nodes = &machine.draft.nodes;
        let position: HashMap<&str, usize> =
            nodes.iter().enumerate().map(|(position, node)| (node.id.as_str(), position)).collect();
        let mut graph = Self {
            neighbours: vec![Vec::new(); nodes.len()],
            sources: vec![Vec::new(); nodes.len()],
            is_cpu: vec![false; nodes.len()],
            is_gpu: nodes.iter().map(|node| node.kind == NodeKind::Compute).collect(),
            is_joined: vec![false; nodes.len()],
        };
        for link in &machine.draft.links {
            // Links to nodes that are none are refused when the network is built.
            let ends = (position.get(link.from.as_str()), position.get(link.to.as_str()));
            if let (Some(&from), Some(&to)) = ends {
                graph.neighbours[from].push(to);
                graph.sources[to].push(from);
            }
        }
        let marked = |marks: &mut Vec<bool>, id: &str| {
            if let Some(&node) = position.get(id) {
                marks[node] = true;
            }
        };
        machine.cpus.iter().for_each(|cpu| marked(&mut graph.is_cpu, cpu));
        if keeps_ports {
            machine.ports.iter().for_each(|port| marked(&mut graph.is_joined, &port.node));
        }
        graph
    }

    /// Whether every GPU, and every NIC that is joined, reaches every other on paths that meet no CPU.
    fn devices_meet_without_cpus(&self) -> bool {
        let Some(start) = self.is_gpu.iter().position(|&is_gpu| is_gpu) else { return false };
        let all_reached = |neighbours: &[Vec<usize>]| {
            let mut seen = vec![false; neighbours.len()];
            seen[start] = true;
            let mut stack = vec![start];
            while let Some(node) = stack.pop() {
                for &next in &neighbours[node] {
                    if !self.is_cpu[next] && !std::mem::replace(&mut seen[next], true) {
                        stack.push(next);
                    }
                }
            }
            (0..seen.len()).all(|node| seen[node] || !self.is_gpu[node] && !self.is_joined[node])
        };
        all_reached(&self.neighbours) && all_reached(&self.sources)
    }

    /// By node: whether a way leads from a GPU or a joined NIC to it that passes no CPU. O(nodes + links).
    fn served(&self) -> Vec<bool> {
        let mut served: Vec<bool> =
            self.is_gpu.iter().zip(&self.is_joined).map(|(gpu, joined)| *gpu || *joined).collect();
        let mut stack: Vec<usize> = (0..served.len()).filter(|&node| served[node]).collect();
        while let Some(node) = stack.pop() {
            for &next in self.neighbours[node].iter().chain(&self.sources[node]) {
                if !std::mem::replace(&mut served[next], true) && !self.is_cpu[next] {
                    stack.push(next);
                }
            }
        }
        served
    }

    /// Nodes other than GPUs that have fewer than two neighbours, or have when all such are gone. What is joined has one
    /// more.
    fn dead_ends(&self, gone: &[bool]) -> Vec<usize> {
        let around = |node: usize| self.neighbours[node].iter().chain(&self.sources[node]).copied();
        let neighbours: Vec<BTreeSet<usize>> =
            (0..gone.len()).map(|node| around(node).filter(|&other| !gone[node] && !gone[other]).collect()).collect();
        let others = (0..gone.len()).map(|node| match self.is_gpu[node] || gone[node] {
            true => 2,
            false => usize::from(self.is_joined[node]),
        });
        dead_ends(neighbours, &others.collect::<Vec<_>>())
    }
}
