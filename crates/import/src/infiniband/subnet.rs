//! What a listing says of a subnet, and the fabric that it makes.

use std::collections::{BTreeMap, HashMap};

use canopy_topology::{Capacity, Latency, shorten};

use crate::error::{FileError, ImportError};
use crate::fabric::{Attachment, Fabric, FabricHost, FabricLink, FabricSwitch, PortName};
use crate::kind::FileKind;
use crate::machine::listed;
use crate::names::id_of;
use crate::source::Source;

/// What a device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Switch,
    Adapter,
    /// A router, or what the listing does not know.
    Other,
}

/// A device; adapters are the ports of one card, or one port of it, as the listing has it.
#[derive(Clone, Debug)]
struct Device {
    key: String,
    role: Option<Role>,
    description: String,
    /// The port that was seen first, and whether there are others.
    port: Option<u32>,
    has_several_ports: bool,
}

impl Device {
    /// Of devices that the listing does not call by their role, switches are those with several ports.
    fn role(&self) -> Role {
        self.role.unwrap_or(if self.has_several_ports { Role::Switch } else { Role::Adapter })
    }

    fn is_sharp(&self) -> bool {
        self.description.to_ascii_lowercase().contains("aggregation node")
    }

    /// The machine and the device that the description names. Adapters without a name carry that of their vendor.
    fn machine_and_device(&self) -> Option<(&str, &str)> {
        let is_of_vendor = |word: &str| ["mellanox", "technologies"].iter().any(|name| word.eq_ignore_ascii_case(name));
        let mut words = self.description.split_whitespace();
        if words.clone().any(is_of_vendor) {
            return None;
        }
        words.next().zip(words.next())
    }

    /// The name of a switch in `MF0;NAME:MODEL/U1`, or all of it.
    fn switch_name(&self) -> &str {
        let inside = self.description.split_once(';').and_then(|(_, rest)| rest.split_once(':'));
        inside.map(|(name, _)| name.trim()).filter(|name| !name.is_empty()).unwrap_or(self.description.trim())
    }
}

/// A port of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct End {
    pub(super) device: usize,
    pub(super) port: u32,
}

#[derive(Clone, Debug)]
struct Cable {
    ends: (End, End),
    rate: Option<Capacity>,
}

/// A subnet as far as it has been read.
#[derive(Clone, Debug)]
pub(super) struct Subnet {
    kind: FileKind,
    devices: Vec<Device>,
    by_key: HashMap<String, usize>,
    cables: Vec<Cable>,
    /// By port, the cable in it and its GUID.
    at: HashMap<End, usize>,
    guids: HashMap<End, u64>,
}

impl Subnet {
    pub(super) fn new(kind: FileKind) -> Self {
        let (devices, cables) = (Vec::new(), Vec::new());
        Self { kind, devices, by_key: HashMap::new(), cables, at: HashMap::new(), guids: HashMap::new() }
    }

    /// The device of this key, with what is known of it.
    pub(super) fn device(&mut self, key: &str, role: Option<Role>, description: &str) -> usize {
        let position = match self.by_key.get(key) {
            Some(&position) => position,
            None => {
                let (key, description) = (key.to_owned(), String::new());
                self.by_key.insert(key.clone(), self.devices.len());
                self.devices.push(Device { key, role, description, port: None, has_several_ports: false });
                self.devices.len() - 1
            }
        };
        let device = &mut self.devices[position];
        device.role = device.role.or(role);
        if device.description.is_empty() {
            description.trim().clone_into(&mut device.description);
        }
        position
    }

    /// Says that a device has a port, with this GUID if it is known.
    pub(super) fn port(&mut self, end: End, guid: Option<u64>) {
        let device = &mut self.devices[end.device];
        device.has_several_ports |= *device.port.get_or_insert(end.port) != end.port;
        if let Some(guid) = guid {
            self.guids.insert(end, guid);
        }
    }

    /// Adds a cable, or sees that it is the one that was listed from the other end. The slower rate counts.
    pub(super) fn cable(&mut self, line: usize, (a, b): (End, End), rate: Option<Capacity>) -> Result<(), ImportError> {
        self.port(a, None);
        self.port(b, None);
        let known = [a, b].map(|end| self.at.get(&end).copied());
        if let [Some(first), Some(second)] = known
            && first == second
        {
            let cable = &mut self.cables[first];
            cable.rate = [cable.rate, rate].into_iter().flatten().min();
            return Ok(());
        }
        if let Some((end, _)) = [a, b].into_iter().zip(known).find(|(_, cable)| cable.is_some()) {
            let Device { key, description, .. } = &self.devices[end.device];
            let problem = format!(
                "port {} of {key}, `{}`, is joined to two other ports; list the subnet again",
                end.port,
                shorten(description)
            );
            return Err(FileError::at(self.kind, line, problem).into());
        }
        for end in [a, b] {
            self.at.insert(end, self.cables.len());
        }
        self.cables.push(Cable { ends: (a, b), rate });
        Ok(())
    }

    /// The fabric of its switches and machines. O(devices + cables).
    pub(super) fn finish(self, source: Source<'_>) -> Result<Fabric, ImportError> {
        source.ask()?;
        let kind = self.kind;
        let mut parts = Parts::of(&self);
        self.cables.iter().for_each(|cable| parts.add(cable));
        source.require(parts.fabric.switches.len() + parts.fabric.hosts.len(), parts.directed_links())?;
        source.ask()?;
        let fabric = parts.finish();
        if fabric.hosts.is_empty() {
            let problem = format!(
                "no adapter with a machine and a device in its description, such as `gpu001 mlx5_0`, is joined to a \
                 switch; run {} as root on a machine of the subnet, and start rdma-ndd on all, which sets descriptions",
                kind.name()
            );
            return Err(FileError::whole(kind, problem).into());
        }
        Ok(fabric)
    }
}

/// A fabric being put together.
struct Parts<'a> {
    subnet: &'a Subnet,
    fabric: Fabric,
    /// By device, its position among the switches.
    switch_of: Vec<Option<usize>>,
    host_at: HashMap<&'a str, usize>,
    /// Cables between the same switches of one rate.
    link_at: HashMap<(usize, usize, Option<Capacity>), usize>,
    /// By machine and device, the adapter.
    adapter_of: HashMap<(&'a str, &'a str), usize>,
    /// Cables by their rate.
    rates: BTreeMap<Option<Capacity>, usize>,
    sharp_count: usize,
    nameless: Vec<&'a str>,
    shared: Vec<String>,
    others: usize,
}

impl<'a> Parts<'a> {
    fn of(subnet: &'a Subnet) -> Self {
        let mut parts = Self {
            subnet,
            fabric: Fabric::default(),
            switch_of: vec![None; subnet.devices.len()],
            host_at: HashMap::new(),
            link_at: HashMap::new(),
            adapter_of: HashMap::new(),
            rates: BTreeMap::new(),
            sharp_count: 0,
            nameless: Vec::new(),
            shared: Vec::new(),
            others: 0,
        };
        for (position, device) in subnet.devices.iter().enumerate().filter(|(_, device)| device.role() == Role::Switch)
        {
            parts.switch_of[position] = Some(parts.fabric.switches.len());
            let label = Some(device.description.clone()).filter(|description| !description.is_empty());
            parts.fabric.switches.push(FabricSwitch { label, ..FabricSwitch::default() });
        }
        parts
    }

    fn add(&mut self, cable: &Cable) {
        let (a, b) = cable.ends;
        match (self.switch_of[a.device], self.switch_of[b.device]) {
            (Some(from), Some(to)) if from != to => {
                *self.rates.entry(cable.rate).or_default() += 1;
                let key = (from.min(to), from.max(to), cable.rate);
                if let Some(&link) = self.link_at.get(&key) {
                    let count = &mut self.fabric.links[link].count;
                    *count = count.map(|count| count + 1);
                    return;
                }
                self.link_at.insert(key, self.fabric.links.len());
                let (ends, rate) = ((from, to), cable.rate);
                self.fabric.links.push(FabricLink { ends, rate, count: Some(1), latency: Latency::default() });
            }
            (Some(switch), None) => self.attach(switch, b, cable.rate),
            (None, Some(switch)) => self.attach(switch, a, cable.rate),
            _ => self.others += 1,
        }
    }

    fn attach(&mut self, switch: usize, end: End, rate: Option<Capacity>) {
        let device = &self.subnet.devices[end.device];
        if device.role() == Role::Other {
            self.others += 1;
            return;
        }
        if device.is_sharp() {
            self.sharp_count += 1;
            return;
        }
        let Some((machine, name)) = device.machine_and_device() else {
            self.nameless.push(&device.key);
            return;
        };
        *self.rates.entry(rate).or_default() += 1;
        if *self.adapter_of.entry((machine, name)).or_insert(end.device) != end.device {
            self.shared.push(format!("{machine}.{name}"));
        }
        let hosts = &mut self.fabric.hosts;
        let host = *self.host_at.entry(machine).or_insert(hosts.len());
        if host == hosts.len() {
            hosts.push(FabricHost { name: id_of(machine), ..FabricHost::default() });
        }
        let port = PortName::Device(name.to_owned(), self.subnet.guids.get(&end).copied());
        hosts[host].attachments.push(Attachment { switch, port, rate });
    }

    fn directed_links(&self) -> usize {
        let attachments: usize = self.fabric.hosts.iter().map(|host| host.attachments.len()).sum();
        (attachments + self.fabric.links.len()).saturating_mul(2)
    }

    fn finish(mut self) -> Fabric {
        self.name_switches();
        self.tell();
        self.fabric
    }

    /// A switch is called by its name alone where no other is, else by its description, else with its key.
    fn name_switches(&mut self) {
        let of_switches = self.subnet.devices.iter().filter(|device| device.role() == Role::Switch);
        let switches: Vec<&Device> = of_switches.collect();
        let mut uses: HashMap<String, usize> = HashMap::new();
        self.fabric.hosts.iter().for_each(|host| *uses.entry(host.name.clone()).or_default() += 1);
        for device in &switches {
            let mut names = vec![id_of(device.switch_name()), id_of(&device.description)];
            names.dedup();
            names.into_iter().for_each(|name| *uses.entry(name).or_default() += 1);
        }
        for (switch, device) in self.fabric.switches.iter_mut().zip(switches) {
            let name = id_of(device.switch_name());
            let fits = |name: &String| !name.is_empty() && uses.get(name) == Some(&1);
            let found = [name.clone(), id_of(&device.description)].into_iter().find(fits);
            switch.id = found.unwrap_or_else(|| {
                let key = id_of(&device.key);
                if name.is_empty() { key } else { format!("{name}-{key}") }
            });
            switch.label = switch.label.take().filter(|label| *label != switch.id);
        }
    }

    fn tell(&mut self) {
        let Fabric { switches, links, hosts, report } = &mut self.fabric;
        let ports: usize = hosts.iter().map(|host| host.attachments.len()).sum();
        let cables: u64 = links.iter().filter_map(|link| link.count).sum();
        report.understood.push(format!(
            "{} machines with {ports} ports, {} switches, {cables} cables between switches",
            hosts.len(),
            switches.len()
        ));
        let words = |rate: &Option<Capacity>| rate.map_or_else(|| "unknown".to_owned(), |rate| rate.to_string());
        let rates: Vec<String> =
            self.rates.iter().rev().map(|(rate, count)| format!("{} x{count}", words(rate))).collect();
        report.understood.push(format!("rates of the cables: {}", rates.join(", ")));
        if !self.shared.is_empty() {
            let names = listed(self.shared.iter().map(String::as_str));
            report.assumed.push(format!("adapters of one name are of one machine, but may be of several: {names}"));
        }
        if self.sharp_count > 0 {
            report.left_out.push(format!(
                "{} SHARP aggregation nodes: these switches can reduce, but the file does not say how much",
                self.sharp_count
            ));
        }
        if !self.nameless.is_empty() {
            report.left_out.push(format!(
                "{} adapters whose description names no machine and device: {}; rdma-ndd sets it",
                self.nameless.len(),
                listed(self.nameless.iter().copied())
            ));
        }
        if self.others > 0 {
            report.left_out.push(format!("{} cables to routers, between adapters, or within a switch", self.others));
        }
    }
}
