//! The table of `nvidia-smi topo -m`: which way leads from each GPU and NIC to each other.
//!
//! [`table`] reads it, [`nvlink`] tells NVSwitches from direct links. The table has no names, rates or tree of PCIe:
//! GPUs are told by their number of links, and devices that meet below a host bridge are on one switch.
//! Source: the legend that `nvidia-smi` prints; NCCL's tables for rates.

mod nvlink;
mod table;

use canopy_topology::{Attributes, Capacity, Latency, NodeKind};

use self::nvlink::Board;
use self::table::{Cell, Table};
use super::groups::Groups;
use super::rates;
use crate::content::Content;
use crate::error::ImportError;
use crate::kind::FileKind;
use crate::machine::{Machine, Port};
use crate::source::Source;

const KIND: FileKind = FileKind::NvidiaSmi;

pub(crate) use table::begins;

/// Reads the table to the machine that it shows.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let table = table::read(source)?;
    let boards = nvlink::boards(&table);
    let pairs: usize = boards.iter().map(|board| board.pairs.len()).sum();
    let devices = table.devices.len();
    // Each device may have a switch and a CPU of its own.
    source.require(devices, 2 * pairs)?;
    let mut builder = Builder { table: &table, machine: Machine::default(), pcie: rates::PLAIN };
    if let Some(board) = boards.first() {
        builder.pcie = board.generation;
    }
    builder.add_devices();
    boards.iter().enumerate().for_each(|(number, board)| builder.add_board(number, board, boards.len()));
    builder.add_pcie(source)?;
    builder.tell(&boards);
    Ok(Content::Machine(builder.machine))
}

struct Builder<'a> {
    table: &'a Table,
    machine: Machine,
    /// The GPU whose slots all devices are taken to have.
    pcie: rates::Generation,
}

impl Builder<'_> {
    fn add_both(&mut self, a: &str, b: &str, rate: Capacity) {
        self.machine.draft.add_both(a, b, rate, Latency::default());
    }

    fn add_switch(&mut self, id: &str, label: Option<String>) {
        let attributes = Attributes { label, ..Attributes::default() };
        self.machine.draft.add_node(id, NodeKind::PLAIN_SWITCH, attributes);
    }

    fn add_devices(&mut self) {
        for device in &self.table.devices {
            let id = device.id.clone();
            if device.is_gpu {
                let label = (device.id != device.name).then(|| device.name.clone());
                self.machine.draft.add_node(id, NodeKind::Compute, Attributes { label, ..Attributes::default() });
                continue;
            }
            let known = self.table.legend.get(&device.name);
            // Older drivers write the device itself into the table.
            let port = known.or_else(|| (!device.is_numbered_nic()).then_some(&device.name)).cloned();
            self.machine.ports.push(Port { node: id.clone(), device: port.clone(), guid: None, rate: None });
            self.add_switch(&id, port.filter(|name| *name != id));
        }
    }

    /// GPUs at NVSwitches, or linked pair by pair.
    fn add_board(&mut self, number: usize, board: &Board, boards: usize) {
        let table = self.table;
        let link = board.generation.link.bytes_per_sec();
        let rate = |count: u64| Capacity::from_bytes_per_sec(count.saturating_mul(link));
        if board.is_switched {
            let id = if boards == 1 { "nvs".to_owned() } else { format!("nvs{number}") };
            self.add_switch(&id, Some("all NVSwitches".to_owned()));
            for &(gpu, count) in &board.links {
                if let Some(rate) = rate(count) {
                    self.add_both(&table.devices[gpu].id, &id, rate);
                }
            }
            return;
        }
        for &(a, b, count) in &board.pairs {
            if let Some(rate) = rate(count) {
                self.add_both(&table.devices[a].id, &table.devices[b].id, rate);
            }
        }
    }

    /// One switch for devices that meet below a host bridge, and a CPU for those that meet below a NUMA node.
    fn add_pcie(&mut self, source: Source<'_>) -> Result<(), ImportError> {
        let (table, pcie) = (self.table, self.pcie.pcie);
        let mut contradicts = false;
        let (mut switches, mut cpus) = (Groups::new(table.devices.len()), Groups::new(table.devices.len()));
        for (a, b, cell) in table.pairs() {
            // NVLink hides how two GPUs meet in PCIe.
            let hidden = || table.devices[a].place == table.devices[b].place;
            let shares_node = table.devices[a].shares_node(&table.devices[b]);
            contradicts |= cell == Cell::Far && shares_node;
            if cell == Cell::Near {
                switches.join(a, b);
            }
            if matches!(cell, Cell::Near | Cell::Host) || matches!(cell, Cell::NvLink(_)) && hidden() || shares_node {
                cpus.join(a, b);
            }
        }
        if contradicts {
            let text = "SYS stands between devices of one NUMA node: the NUMA column is taken to be right";
            self.machine.report.assumed.push(text.to_owned());
        }
        let cpus = cpus.members();
        source.require(table.devices.len() + cpus.len(), cpus.len().saturating_mul(cpus.len()))?;
        let mut cpu_of = vec![String::new(); table.devices.len()];
        for (number, members) in cpus.iter().enumerate() {
            let id = format!("cpu{number}");
            let place = members.iter().find_map(|&device| table.devices[device].place.clone());
            self.add_switch(&id, place);
            members.iter().for_each(|&device| cpu_of[device].clone_from(&id));
            self.machine.cpus.push(id);
        }
        let mut number = 0;
        for members in switches.members() {
            let Some(&first) = members.first() else { continue };
            let parent = if members.len() == 1 {
                cpu_of[first].clone()
            } else {
                let id = format!("pcie{number}");
                number += 1;
                self.add_switch(&id, None);
                self.add_both(&id, &cpu_of[first], pcie);
                id
            };
            members.iter().for_each(|&device| self.add_both(&table.devices[device].id, &parent, pcie));
        }
        let ids = self.machine.cpus.clone();
        for (place, a) in ids.iter().enumerate() {
            ids.iter().skip(place + 1).for_each(|b| self.add_both(a, b, rates::CPUS));
        }
        Ok(())
    }

    /// Says what was read and what was assumed.
    fn tell(&mut self, boards: &[Board]) {
        let (table, cpus, pcie) = (self.table, self.machine.cpus.len(), self.pcie);
        let report = &mut self.machine.report;
        let gpus = table.devices.iter().filter(|device| device.is_gpu).count();
        report.understood.push(format!("{gpus} GPUs, {} NICs", table.devices.len() - gpus));
        for board in boards {
            let (links, count) = (board.links_most, board.links.len());
            let how = if board.is_switched { "to NVSwitches, as to all others alike" } else { "to each other" };
            report.understood.push(format!("{count} GPUs with {links} NVLinks each {how}"));
            let taken = format!(
                "the table names no GPU: {links} NVLinks are taken for those of {}, {} a link",
                board.generation.gpus, board.generation.link
            );
            if !report.assumed.contains(&taken) {
                report.assumed.push(taken);
            }
        }
        report.assumed.push(format!(
            "PCIe slots and switches have 16 lanes of generation {}, {}; the table does not say",
            pcie.pcie_generation, pcie.pcie
        ));
        if cpus > 1 {
            report.assumed.push(format!("CPUs are joined at {}, the lowest rate NCCL takes", rates::CPUS));
        }
        let unnamed = self.machine.ports.iter().filter(|port| port.device.is_none()).count();
        if unnamed > 0 {
            report.assumed.push(format!(
                "the file names no device for {unnamed} NICs; keep the lines below `NIC Legend:` to match them by name"
            ));
        }
    }
}

#[cfg(test)]
mod tests;
