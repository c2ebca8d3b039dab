//! Which devices the ranks of a plan are: as the command line says it, and as the nodes of a job come to.

mod devices;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use canopy_proto::v1;
use canopy_topology::{Slot, Topology, expand_hosts, host_items, hosts_named, own_slots};

use crate::input::{file_text, range};
use devices::Devices;

/// Most ranks that are placed.
const RANKS_MAX: usize = 1 << 16;
/// Longest file of a placement in bytes: some hundred for each rank.
const FILE_BYTES_MAX: usize = 8 << 20;

/// Arguments that say where ranks are.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct PlacementArgs {
    /// Devices of the ranks, by rank, such as gpu[001-002]:0-7 or a:0+2,b:1, or @FILE with such items; if the file lists the GPUs of machines, also by UUID or PCI address
    #[arg(long, value_name = "NODES:DEVICES,...", value_parser = read)]
    pub(crate) placement: Option<v1::Placement>,
}

/// Reads `gpu[001-002]:0-7,login1:0+2`, or `@FILE` with such items, separated by commas or lines; `#` begins a comment.
///
/// Nodes are a hostlist, devices are numbers and ranges joined by `+`. Ranks count through the devices of a node first. A
/// file may also list the GPUs of machines (see [`Devices`]); then devices may be UUIDs or PCI addresses.
pub(crate) fn read(text: &str) -> Result<v1::Placement, String> {
    let mut devices = Devices::default();
    let Some(path) = text.strip_prefix('@') else { return parse(text, &devices) };
    let content = file_text(path, FILE_BYTES_MAX, "name each rank's device once")?;
    let lines = content.lines().map(|line| line.split('#').next().unwrap_or_default().trim().trim_end_matches(','));
    let mut items = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        if !devices.take(line)? {
            items.push(line);
        }
    }
    parse(&items.join(","), &devices)
}

fn parse(text: &str, devices: &Devices) -> Result<v1::Placement, String> {
    let mut slots = Vec::new();
    for item in host_items(text).map_err(|error| error.to_string())? {
        let shown: String = item.chars().take(80).collect();
        let error = || format!("`{shown}` places no rank; write nodes and devices such as gpu[001-002]:0-7 or a:0+2");
        let numbered = item.rsplit_once(':').and_then(|(nodes, devices)| Some((nodes, numbers(devices)?)));
        // Names of devices have colons, too, those of nodes have none.
        let (nodes, names) = item.split_once(':').filter(|(_, names)| !names.is_empty()).ok_or_else(error)?;
        let nodes = numbered.as_ref().map_or(nodes, |(nodes, _)| *nodes);
        for node in expand_hosts(nodes).map_err(|error| error.to_string())? {
            let of_node = match &numbered {
                Some((_, numbers)) => numbers.clone(),
                None => names.split('+').map(|name| devices.index(&node, name)).collect::<Result<_, _>>()?,
            };
            if slots.len() + of_node.len() > RANKS_MAX {
                return Err(format!("more than {RANKS_MAX} ranks are placed"));
            }
            slots.extend(of_node.into_iter().map(|device| v1::RankSlot { node: node.clone(), device, count: Some(1) }));
        }
    }
    Ok(v1::Placement { slots })
}

/// Reads `0-3+7`; none: it is no list of numbers, or one of too many.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.split('+') {
        let (first, last) = range(part)?;
        if (last - first) as usize >= RANKS_MAX - numbers.len() {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// A rank map as [`read`] takes it: `gpu1:0-7,gpu2:0+2`. O(ranks).
pub(crate) fn in_words(map: &v1::Placement) -> String {
    let mut items: Vec<(&str, Vec<(u32, u32)>)> = Vec::new();
    for slot in &map.slots {
        let end = slot.device.saturating_add(slot.count.unwrap_or(1).saturating_sub(1));
        match items.last_mut() {
            Some((node, runs)) if *node == slot.node => match runs.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(slot.device) => *last = end,
                _ => runs.push((slot.device, end)),
            },
            _ => items.push((&slot.node, vec![(slot.device, end)])),
        }
    }
    let run = |&(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let item = |(node, runs): &(&str, Vec<(u32, u32)>)| {
        format!("{node}:{}", runs.iter().map(run).collect::<Vec<_>>().join("+"))
    };
    items.iter().map(item).collect::<Vec<_>>().join(",")
}

/// The device of each rank, as `host:index`; `None` if the map has another number of ranks. O(ranks).
pub(crate) fn devices(map: &v1::Placement, ranks: u32) -> Option<Vec<String>> {
    let count: u64 = map.slots.iter().map(|slot| u64::from(slot.count.unwrap_or(1))).sum();
    let ends =
        |slot: &v1::RankSlot| Some((slot.device, slot.device.checked_add(slot.count.unwrap_or(1).saturating_sub(1))?));
    // A map from elsewhere may claim any number.
    if count != u64::from(ranks) || ranks as usize > 2 * RANKS_MAX {
        return None;
    }
    let mut devices = Vec::new();
    for slot in &map.slots {
        let (first, last) = ends(slot)?;
        devices.extend((first..=last).map(|device| format!("{}:{device}", slot.node)));
    }
    Some(devices)
}

/// Where the ranks of a job are on its nodes, which [`check`] has found to fit the topology: consecutive ranks on one
/// node, in the order of the nodes; ranks of one box on one node. O(ranks log ranks).
pub(crate) fn on_nodes(topology: &Topology, nodes: &[String]) -> v1::Placement {
    let slot = |node: &str, device: u32| v1::RankSlot { node: node.to_owned(), device, count: Some(1) };
    let machines = hosts(topology).and_then(|hosts| machines_of(&hosts, nodes).ok());
    let slots = match own_slots(topology) {
        // The topology names the machines itself: the placement picks its ranks in the order of the job.
        Some(own) if machines.is_some() => {
            let places: HashMap<&str, usize> =
                machines.iter().flatten().enumerate().map(|(at, &machine)| (machine, at)).collect();
            let mut ordered: Vec<&Slot> = own.iter().collect();
            ordered.sort_by_key(|own| places.get(own.node.as_str()));
            ordered.into_iter().map(|own| slot(&own.node, own.device)).collect()
        }
        Some(own) => {
            let mut places: HashMap<&str, usize> = HashMap::new();
            let place = |own: &Slot, at: usize| slot(nodes.get(at).map_or("", String::as_str), own.device);
            let mut slots = Vec::with_capacity(own.len());
            for own in &own {
                let next = places.len();
                slots.push(place(own, *places.entry(own.node.as_str()).or_insert(next)));
            }
            slots
        }
        None => {
            let each = (topology.rank_count() as usize / nodes.len().max(1)).max(1);
            let devices = (0..each).filter_map(|device| u32::try_from(device).ok());
            nodes.iter().flat_map(|node| devices.clone().map(|device| slot(node, device))).collect()
        }
    };
    v1::Placement { slots }
}

/// Nodes that cannot be those of the topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlacementError {
    #[error("the job has {nodes} nodes, the topology {boxes} boxes; name the topology of exactly these nodes")]
    Count { nodes: usize, boxes: usize },
    #[error("{ranks} ranks cannot be spread evenly over {nodes} nodes; name the topology of exactly these nodes")]
    Uneven { nodes: usize, ranks: u32 },
    #[error("{node} is not a machine of the topology; name the topology of exactly these nodes")]
    Host { node: String },
    #[error("two of the nodes are {host} of the topology; name each node once")]
    Twice { host: String },
}

/// Compares the nodes of a job, in the order in which the scheduler numbers them, with a topology.
///
/// If every rank of the topology names its machine, the machines must be the nodes, in any order. If ranks name only
/// their boxes, there must be as many boxes as nodes. Otherwise the ranks must divide evenly. O(ranks log ranks).
pub(crate) fn check(topology: &Topology, nodes: &[String]) -> Result<(), PlacementError> {
    let ranks = || topology.nodes().iter().take(topology.rank_count() as usize);
    if let Some(hosts) = hosts(topology) {
        return machines_of(&hosts, nodes).map(drop);
    }
    let boxes: Option<BTreeSet<&str>> = ranks().map(|node| node.attributes.box_name.as_deref()).collect();
    match boxes {
        Some(boxes) if boxes.len() != nodes.len() => {
            Err(PlacementError::Count { nodes: nodes.len(), boxes: boxes.len() })
        }
        None if !(topology.rank_count() as usize).is_multiple_of(nodes.len()) => {
            Err(PlacementError::Uneven { nodes: nodes.len(), ranks: topology.rank_count() })
        }
        _ => Ok(()),
    }
}

/// The machine of each rank, if all of them name one.
fn hosts(topology: &Topology) -> Option<Vec<&str>> {
    let ranks = topology.nodes().iter().take(topology.rank_count() as usize);
    ranks.map(|node| node.attributes.host.as_deref()).collect()
}

/// The machine of the topology that each node of a job is: all of them, each once. O(ranks log ranks).
fn machines_of<'a>(hosts: &[&'a str], nodes: &[String]) -> Result<Vec<&'a str>, PlacementError> {
    let machines: BTreeMap<&str, ()> = hosts.iter().map(|&host| (host, ())).collect();
    if machines.len() != nodes.len() {
        return Err(PlacementError::Count { nodes: nodes.len(), boxes: machines.len() });
    }
    let mut taken = BTreeSet::new();
    let machine = |node: &String| {
        let &[machine] = hosts_named(&machines, node).as_slice() else {
            return Err(PlacementError::Host { node: node.clone() });
        };
        match taken.insert(machine) {
            true => Ok(machine),
            false => Err(PlacementError::Twice { host: machine.to_owned() }),
        }
    };
    nodes.iter().map(machine).collect()
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Attributes, Capacity, Latency, NodeKind, TopologyDraft, TopologyLimits, generate};

    use super::*;

    fn nodes(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn on_hosts(hosts: &[&str]) -> Topology {
        let mut draft = TopologyDraft::default();
        let id = |rank: usize| format!("g{rank}");
        for (rank, &host) in hosts.iter().enumerate() {
            let attributes = Attributes { host: Some(host.to_owned()), ..Attributes::default() };
            draft.add_node(id(rank), NodeKind::Compute, attributes);
        }
        for rank in 0..hosts.len() {
            let next = (rank + 1) % hosts.len();
            draft.add_link(id(rank), id(next), Capacity::from_bytes_per_sec(1).unwrap(), Latency::default());
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    }

    #[track_caller]
    fn reads(text: &str, words: &str) {
        let placement = read(text).unwrap();
        assert_eq!(in_words(&placement), words);
        assert_eq!(read(words), Ok(placement), "what is printed can be read");
    }

    #[test]
    fn placements_are_read_by_node_and_device() {
        reads("gpu[001-002]:0-1", "gpu001:0-1,gpu002:0-1");
        reads("b:3,a:0+2,a:1", "b:3,a:0+2+1");
        reads("a:1-2+0,b.x:4", "a:1-2+0,b.x:4");
        for text in ["", "a", "a:", "a:x", "a:1-0", "a:0,", ":0", "a b:0", "a:0-99999999", "a:4294967296", "@/no/such"]
        {
            assert!(read(text).is_err(), "{text}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# by rank\n\nn[1-2]:0-1,\nn3:7 # the last\n").unwrap();
        assert_eq!(in_words(&read(&format!("@{}", file.path().display())).unwrap()), "n1:0-1,n2:0-1,n3:7");
    }

    #[test]
    fn a_rank_map_lists_a_device_for_each_rank() {
        let map = read("gpu[1-2]:0-1,c:7").unwrap();
        let listed: Vec<String> = ["gpu1:0", "gpu1:1", "gpu2:0", "gpu2:1", "c:7"].map(str::to_owned).to_vec();
        assert_eq!(devices(&map, 5), Some(listed));
        assert_eq!(devices(&map, 4), None);
        let slot = |device, count| v1::RankSlot { node: "a".to_owned(), device, count };
        let wide = v1::Placement { slots: vec![slot(0, Some(u32::MAX))] };
        assert_eq!(devices(&wide, u32::MAX), None);
        let beyond = v1::Placement { slots: vec![slot(u32::MAX, Some(2))] };
        assert_eq!(devices(&beyond, 2), None);
        assert_eq!(devices(&v1::Placement { slots: vec![slot(3, None)] }, 1), Some(vec!["a:3".to_owned()]));
    }

    #[test]
    fn devices_have_names_where_they_are_listed() {
        for (text, words) in [
            ("gpu-1:MIG-41b35e2d-1", "is a MIG instance"),
            ("gpu-1:GPU-8f2d1c3a", "no GPU `GPU-8f2d1c3a` of gpu-1 is listed; put the lines of `nvidia-smi"),
            ("gpu-1:0000:1b:00.0", "or write the GPU's index"),
            ("gpu-1:x", "`x` is no index, UUID or PCI address of a GPU"),
            ("gpu-1:", "places no rank"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        reads("gpu-1:0-1", "gpu-1:0-1");
        let file = tempfile::NamedTempFile::new().unwrap();
        let list = "0, GPU-aa, 00000000:1B:00.0\n1, GPU-bb, 00000000:43:00.0\n";
        let of_one = "n3: 5, GPU-cc, 00000000:99:00.0 # another machine\n";
        std::fs::write(file.path(), format!("{list}{of_one}n[1-2]:43:00.0+1b:00.0\nn3:gpu-CC,n3:7\n")).unwrap();
        assert_eq!(in_words(&read(&format!("@{}", file.path().display())).unwrap()), "n1:1+0,n2:1+0,n3:5+7");
    }

    #[test]
    fn the_nodes_of_a_job_place_its_ranks() {
        let words = |topology: &Topology, names: &[&str]| {
            assert_eq!(check(topology, &nodes(names)), Ok(()));
            in_words(&on_nodes(topology, &nodes(names)))
        };
        let generated = |text: &str| generate(text, &TopologyLimits::STANDARD).unwrap();
        assert_eq!(words(&on_hosts(&["a.x", "a.x", "b.x"]), &["a", "b"]), "a.x:0-1,b.x:0");
        assert_eq!(words(&generated("dgx-a100:boxes=2,gpus=2"), &["x", "y"]), "x:0-1,y:0-1");
        assert_eq!(words(&generated("ring:6"), &["x", "y", "z"]), "x:0-1,y:0-1,z:0-1");
    }

    #[test]
    fn machines_must_be_the_nodes() {
        let topology = on_hosts(&["a", "a", "b", "b"]);
        assert_eq!(check(&topology, &nodes(&["a.example", "b"])), Ok(()));
        assert_eq!(check(&topology, &nodes(&["a", "c"])), Err(PlacementError::Host { node: "c".to_owned() }));
        assert_eq!(check(&topology, &nodes(&["a"])), Err(PlacementError::Count { nodes: 1, boxes: 2 }));
        let twice = check(&topology, &nodes(&["a", "a.example"]));
        assert_eq!(twice, Err(PlacementError::Twice { host: "a".to_owned() }));
        let ambiguous = check(&on_hosts(&["a.x", "a.y"]), &nodes(&["a", "a.y"]));
        assert_eq!(ambiguous, Err(PlacementError::Host { node: "a".to_owned() }));
    }

    #[test]
    fn machines_that_are_named_are_taken_in_the_order_of_the_job() {
        let words = |hosts: &[&str], order: &[&str]| {
            let topology = on_hosts(hosts);
            assert_eq!(check(&topology, &nodes(order)), Ok(()));
            in_words(&on_nodes(&topology, &nodes(order)))
        };
        assert_eq!(words(&["a", "a", "b", "b"], &["b", "a"]), "b:0-1,a:0-1");
        assert_eq!(words(&["a", "b", "a", "b"], &["a", "b"]), "a:0-1,b:0-1");
        assert_eq!(words(&["a.x", "b.x", "c.x"], &["c", "a", "b.x"]), "c.x:0,a.x:0,b.x:0");
    }

    #[test]
    fn boxes_are_counted() {
        let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
        assert_eq!(check(&topology, &nodes(&["x", "y"])), Ok(()));
        assert_eq!(check(&topology, &nodes(&["x", "y", "z"])), Err(PlacementError::Count { nodes: 3, boxes: 2 }));
    }

    #[test]
    fn without_either_the_ranks_must_divide() {
        let topology = generate("ring:8", &TopologyLimits::STANDARD).unwrap();
        assert_eq!(check(&topology, &nodes(&["x", "y"])), Ok(()));
        assert_eq!(check(&topology, &nodes(&["x", "y", "z"])), Err(PlacementError::Uneven { nodes: 3, ranks: 8 }));
    }
}
