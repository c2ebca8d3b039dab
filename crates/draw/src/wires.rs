//! What is drawn between two nodes: the links of both directions, and how busy a plan keeps them.

use std::collections::BTreeMap;

use canopy_schedule::LinkLoads;
use canopy_topology::{LinkIndex, NodeIndex, Ratio, Topology};

/// How busy a link is, of the time that the busiest one needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Busy {
    /// No plan is drawn.
    Unknown,
    Never,
    UpToHalf,
    UpToMost,
    AlmostAlways,
    Always,
}

impl Busy {
    /// Those of a plan, as the legend lists them.
    pub(crate) const OF_PLANS: [Self; 5] =
        [Self::Always, Self::AlmostAlways, Self::UpToMost, Self::UpToHalf, Self::Never];

    /// By exact comparison.
    pub(crate) fn of(busy: &Ratio) -> Self {
        let part = |numerator: u32, denominator: u32| Ratio::new(numerator, denominator).expect("not 0");
        match busy {
            busy if busy.is_one() => Self::Always,
            busy if *busy == part(0, 1) => Self::Never,
            busy if *busy <= part(1, 2) => Self::UpToHalf,
            busy if *busy <= part(9, 10) => Self::UpToMost,
            _ => Self::AlmostAlways,
        }
    }

    pub(crate) const fn colour(self) -> &'static str {
        match self {
            Self::Unknown => "#5b6b7b",
            Self::Never => "#c3c9d0",
            Self::UpToHalf => "#8cc3e0",
            Self::UpToMost => "#3f8fc5",
            Self::AlmostAlways => "#0b4f94",
            Self::Always => "#e6550d",
        }
    }

    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Unknown => "a link",
            Self::Never => "not used",
            Self::UpToHalf => "busy up to 50 % of the time",
            Self::UpToMost => "busy 50 to 90 %",
            Self::AlmostAlways => "busy 90 to 100 %",
            Self::Always => "busy all the time",
        }
    }
}

/// All links of one direction between two nodes.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) from: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) links: Vec<LinkIndex>,
    /// Bytes per second.
    pub(crate) capacity: u128,
    /// By link.
    pub(crate) each: Vec<Busy>,
    /// Of the busiest.
    pub(crate) busy: Busy,
    /// The same in words, for people.
    pub(crate) note: String,
}

/// The links between two nodes: of both directions, or of one.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) lanes: Vec<Lane>,
}

impl Wire {
    /// Whether one line can stand for both directions.
    pub(crate) fn is_alike(&self) -> bool {
        match self.lanes.as_slice() {
            [there, back] => there.capacity == back.capacity && there.busy == back.busy,
            _ => false,
        }
    }
}

/// All wires, by the places of their ends: links between nodes of one place are left out. O(links log links).
pub(crate) fn wires(topology: &Topology, loads: Option<&LinkLoads>, places: &[NodeIndex]) -> Vec<Wire> {
    let mut lanes: BTreeMap<(NodeIndex, NodeIndex, bool), Vec<LinkIndex>> = BTreeMap::new();
    for (index, link) in (0..).map(LinkIndex::new).zip(topology.links()) {
        let [from, to] = [link.from, link.to].map(|node| places.get(node.index()).copied().unwrap_or(node));
        if from != to {
            lanes.entry((from.min(to), from.max(to), from > to)).or_default().push(index);
        }
    }
    let mut wires: Vec<Wire> = Vec::new();
    let mut ends = None;
    for ((low, high, _), links) in lanes {
        if ends != Some((low, high)) {
            wires.push(Wire { lanes: Vec::new() });
            ends = Some((low, high));
        }
        if let Some(wire) = wires.last_mut() {
            wire.lanes.push(lane(topology, loads, links));
        }
    }
    wires
}

fn lane(topology: &Topology, loads: Option<&LinkLoads>, links: Vec<LinkIndex>) -> Lane {
    let first = topology.link(links[0]);
    let capacity = links.iter().map(|&link| u128::from(topology.link(link).capacity.bytes_per_sec())).sum();
    let each: Vec<Busy> = match loads {
        Some(loads) => links.iter().map(|&link| Busy::of(loads.busy(link))).collect(),
        None => vec![Busy::Unknown; links.len()],
    };
    let most = loads.and_then(|loads| links.iter().map(|&link| loads.busy(link)).max());
    let busy = most.map_or(Busy::Unknown, Busy::of);
    let [from, to] = [first.from, first.to].map(|node| topology.node(node).id.as_str());
    let others =
        links.iter().filter(|&&link| (topology.link(link).from, topology.link(link).to) != (first.from, first.to));
    let mut note = format!("{from} -> {to}");
    match others.count() {
        0 => {}
        others => note += &format!(" and {others} more"),
    }
    note += &format!(": {} GB/s", gigabytes(capacity));
    if let Some(most) = most {
        note += &format!(", busy {:.1} % of the time", most.to_f64() * 100.0);
    }
    Lane { from: first.from, to: first.to, links, capacity, each, busy, note }
}

/// Bytes per second in GB/s, with up to three decimals.
pub(crate) fn gigabytes(bytes_per_sec: u128) -> String {
    let thousandths = bytes_per_sec / 1_000_000;
    let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_exact() {
        let class = |text: &str| Busy::of(&text.parse().unwrap());
        assert_eq!(class("1/1"), Busy::Always);
        assert_eq!(class("99999999999999999999/100000000000000000000"), Busy::AlmostAlways);
        assert_eq!((class("9/10"), class("10/11")), (Busy::UpToMost, Busy::AlmostAlways));
        assert_eq!(
            (class("1/2"), class("501/1000"), class("1/99999999999")),
            (Busy::UpToHalf, Busy::UpToMost, Busy::UpToHalf)
        );
        assert_eq!(class("0/1"), Busy::Never);
    }

    #[test]
    fn rates_are_written_shortly() {
        let written = [25_000_000_000, 12_500_000_000, 332_000_000_000, 1_000_000, 1].map(gigabytes);
        assert_eq!(written, ["25", "12.5", "332", "0.001", "0"]);
    }
}
