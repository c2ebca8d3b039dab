//! Neighbours that machines see by LLDP (`lldpcli show neighbors -f json`): the switch of each port, without rates.
//!
//! The output does not say whose it is. A file is one output, or a list of `{"host": NAME, "lldp": …}`; `devices` may
//! say which device an interface is, as dumps of machines know `mlx5_0` and not `eth2`. Switches that run lldpd can be
//! in the list as `{"switch": NAME, "lldp": …}`, which gives the cables between switches.
//! Source: lldpd `src/client/json_writer.c`.

mod json;

use std::collections::{BTreeMap, HashMap, HashSet};

use canopy_topology::{Latency, shorten, shorten_to};

use self::json::{Chassis, Entry, Lldp, Many};
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::fabric::{Attachment, Fabric, FabricHost, FabricLink, FabricSwitch, PortName};
use crate::kind::FileKind;
use crate::names::id_of;
use crate::source::Source;

const KIND: FileKind = FileKind::Lldp;

/// What the machine is called whose name the file does not have.
const UNNAMED: &str = "host";
/// Most characters of what the parser says.
const PROBLEM_MAX: usize = 400;

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    start.contains("\"lldp\"")
}

/// Reads one output, several, or a list of them with names.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let mut builder = Builder::default();
    let mut on_switches = Vec::new();
    for entries in serde_json::Deserializer::from_str(source.text).into_iter::<Many<Entry>>() {
        source.ask()?;
        let Many(entries) = entries.map_err(|error| {
            let problem = format!("{}; send what `lldpcli show neighbors -f json` writes", error);
            FileError::at(KIND, error.line(), shorten_to(&problem, PROBLEM_MAX))
        })?;
        for Entry { host, switch, devices, lldp } in entries {
            let seen = lldp.0.into_iter().flat_map(Lldp::seen).collect();
            match (host, switch) {
                (Some(_), Some(_)) => return Err(refused("an entry has `host` and `switch`; give one of them")),
                (None, Some(switch)) => on_switches.push((builder.named_switch(&switch)?, seen)),
                (host, None) => builder.add_host(host, devices, seen)?,
            }
        }
    }
    let hosts = std::mem::take(&mut builder.waiting);
    for (host, devices, seen) in hosts {
        source.ask()?;
        builder.attach(host, &devices, seen);
        source.require(builder.fabric.hosts.len() + builder.fabric.switches.len(), 2 * builder.attachments)?;
    }
    builder.join_switches(on_switches);
    source.require(0, 2 * (builder.attachments + builder.fabric.links.len()))?;
    builder.finish().map(Content::Fabric)
}

fn refused(problem: &str) -> ImportError {
    FileError::whole(KIND, problem).into()
}

/// What interfaces of a device see.
type Seen = Vec<(String, Chassis)>;

/// A fabric being built.
#[derive(Default)]
struct Builder {
    fabric: Fabric,
    /// Machines whose neighbours wait until all switches with a name are known.
    waiting: Vec<(usize, BTreeMap<String, String>, Seen)>,
    host_names: HashSet<String>,
    has_unnamed: bool,
    /// Switches of the file, and those that others see, by name and identity.
    by_name: HashMap<String, usize>,
    by_identity: HashMap<(Option<String>, Option<String>), usize>,
    /// Identities by switch.
    identities: Vec<(Option<String>, Option<String>)>,
    attachments: usize,
    stations: usize,
    more: usize,
    strangers: usize,
}

impl Builder {
    fn add_switch(&mut self, name: Option<String>, id: Option<String>) -> usize {
        self.fabric.switches.push(FabricSwitch::default());
        self.identities.push((name, id));
        self.identities.len() - 1
    }

    /// A switch whose neighbours the file has.
    fn named_switch(&mut self, name: &str) -> Result<usize, ImportError> {
        if self.by_name.contains_key(name) {
            return Err(refused(&format!("switch `{}` is given twice; give it once", shorten(name))));
        }
        let switch = self.add_switch(Some(name.to_owned()), None);
        self.by_name.insert(name.to_owned(), switch);
        Ok(switch)
    }

    fn add_host(
        &mut self,
        host: Option<String>,
        devices: BTreeMap<String, String>,
        seen: Seen,
    ) -> Result<(), ImportError> {
        if host.is_none() && std::mem::replace(&mut self.has_unnamed, true) {
            return Err(refused(
                "several outputs have no machine; write a list such as [{\"host\": \"gpu001\", \"lldp\": …}, …]",
            ));
        }
        let name = id_of(host.as_deref().unwrap_or(UNNAMED));
        if name.is_empty() || !self.host_names.insert(name.clone()) {
            let problem = format!("machine `{}` has no name or is given twice; give each its own", shorten(&name));
            return Err(refused(&problem));
        }
        self.waiting.push((self.fabric.hosts.len(), devices, seen));
        self.fabric.hosts.push(FabricHost { name, ..FabricHost::default() });
        Ok(())
    }

    /// Joins a machine to the first switch that each of its interfaces sees.
    fn attach(&mut self, host: usize, devices: &BTreeMap<String, String>, seen: Seen) {
        let mut joined = HashSet::new();
        for (interface, chassis) in seen {
            if chassis.is_station() || chassis.name.is_none() && chassis.id.is_none() {
                self.stations += 1;
                continue;
            }
            if !joined.insert(interface.clone()) {
                self.more += 1;
                continue;
            }
            let switch = self.known(&chassis).unwrap_or_else(|| {
                let switch = self.add_switch(chassis.name.clone(), chassis.id.clone());
                self.by_identity.insert((chassis.name, chassis.id), switch);
                switch
            });
            let device = devices.get(&interface).cloned().unwrap_or(interface);
            let attachment = Attachment { switch, port: PortName::Device(device, None), rate: None };
            self.fabric.hosts[host].attachments.push(attachment);
            self.attachments += 1;
        }
    }

    /// The switch that a chassis is.
    fn known(&self, chassis: &Chassis) -> Option<usize> {
        let named = chassis.name.as_ref().and_then(|name| self.by_name.get(name));
        named.or_else(|| self.by_identity.get(&(chassis.name.clone(), chassis.id.clone()))).copied()
    }

    /// Adds as many cables between two switches as the one sees that sees more.
    fn join_switches(&mut self, on_switches: Vec<(usize, Seen)>) {
        let mut counts: BTreeMap<(usize, usize), [u64; 2]> = BTreeMap::new();
        for (switch, seen) in on_switches {
            for (_, chassis) in seen {
                match self.known(&chassis) {
                    Some(other) if other == switch => {}
                    Some(other) => {
                        let pair = (switch.min(other), switch.max(other));
                        counts.entry(pair).or_default()[usize::from(switch > other)] += 1;
                    }
                    None if chassis.name.as_deref().is_some_and(|name| self.host_names.contains(&id_of(name))) => {}
                    None => self.strangers += 1,
                }
            }
        }
        self.fabric.links.extend(counts.into_iter().map(|(ends, [a, b])| FabricLink {
            ends,
            rate: None,
            count: Some(a.max(b)),
            latency: Latency::default(),
        }));
    }

    fn finish(mut self) -> Result<Fabric, ImportError> {
        if self.attachments == 0 {
            return Err(refused("no machine sees a switch; start lldpd on the machines, and LLDP on the switches"));
        }
        self.name_switches();
        let Fabric { switches, links, hosts, report } = &mut self.fabric;
        report.understood.push(format!(
            "{} machines with {} ports, {} switches, {} cables between switches",
            hosts.len(),
            self.attachments,
            switches.len(),
            links.iter().filter_map(|link| link.count).sum::<u64>()
        ));
        if self.has_unnamed {
            report.assumed.push(format!(
                "the machine is `{UNNAMED}`, as the file does not name it; write [{{\"host\": NAME, \"lldp\": …}}]"
            ));
        }
        let mut leave_out = |count: usize, what: &str| {
            if count > 0 {
                report.left_out.push(format!("{count} {what}"));
            }
        };
        leave_out(self.stations, "neighbours that forward nothing or have no name");
        leave_out(self.more, "neighbours of ports that see another one first");
        leave_out(self.strangers, "neighbours of switches that are neither switches nor machines of the file");
        Ok(self.fabric)
    }

    /// A switch is called by its name where no other is, else with its chassis id.
    fn name_switches(&mut self) {
        let name = |(name, id): &(Option<String>, Option<String>)| {
            id_of(name.as_deref().or(id.as_deref()).unwrap_or_default())
        };
        let mut uses: HashMap<String, usize> = self.host_names.iter().map(|name| (name.clone(), 1)).collect();
        self.identities.iter().for_each(|identity| *uses.entry(name(identity)).or_default() += 1);
        for (number, (switch, identity)) in self.fabric.switches.iter_mut().zip(&self.identities).enumerate() {
            let name = name(identity);
            let is_unique = uses.get(&name) == Some(&1);
            let id = identity.1.as_deref().map_or_else(|| format!("switch{number}"), id_of);
            switch.label = identity.0.clone().filter(|label| *label != name || !is_unique);
            switch.id = if is_unique && !name.is_empty() { name } else { format!("{name}-{id}") };
        }
    }
}

#[cfg(test)]
mod tests;
