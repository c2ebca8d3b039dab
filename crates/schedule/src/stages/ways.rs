//! The way that data takes between two ranks of a network, where a rule states ranks alone.

use canopy_topology::{LinkIndex, NodeIndex, NodeKind, Rank, Topology};

/// Links from one rank to another, in order; at most four.
pub type Way = [Option<LinkIndex>; 4];

/// A link and its capacity in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    other: u32,
    pub(super) link: u32,
    capacity: u64,
}

/// The ways between ranks of a network.
///
/// A link from one rank to the other, or a switch that both are at: the fastest of these, by the slower of two links;
/// of equally fast ones the link, then the switch of smallest index. Without any, a way over two switches, or else over
/// three: of the fastest, which are in the order of their switches, the one whose turn it is.
#[derive(Clone, Debug)]
pub struct Ways {
    rank_count: u32,
    /// Links that leave and that enter a node, by the node at their other end: one for each, the fastest.
    out: Vec<Vec<Lane>>,
    into: Vec<Vec<Lane>>,
}

impl Ways {
    /// Those of a network. O(nodes + links).
    pub fn of(topology: &Topology) -> Self {
        let empty = || vec![Vec::<Lane>::new(); topology.nodes().len()];
        let (mut out, mut into) = (empty(), empty());
        let passes = |node: NodeIndex| {
            topology.rank_of(node).is_some() || matches!(topology.node(node).kind, NodeKind::Switch { .. })
        };
        // Links come by (from, to), so both lists are sorted by the other end.
        for (link, of) in (0..).zip(topology.links()).filter(|(_, link)| passes(link.from) && passes(link.to)) {
            let lane = |other: NodeIndex| Lane { other: other.number(), link, capacity: of.capacity.bytes_per_sec() };
            add(&mut out[of.from.index()], lane(of.to));
            add(&mut into[of.to.index()], lane(of.from));
        }
        Self { rank_count: topology.rank_count(), out, into }
    }

    pub(super) const fn rank_count(&self) -> u32 {
        self.rank_count
    }

    /// Nodes that a link leads to or from; some twice.
    pub(super) fn neighbours(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let lanes = [&self.out, &self.into].into_iter().filter_map(move |of| of.get(node as usize));
        lanes.flatten().map(|lane| lane.other)
    }

    /// The fastest link from one node to another.
    pub(super) fn out_of(&self, from: u32, to: u32) -> Option<Lane> {
        find(self.out.get(from as usize)?, to).copied()
    }

    /// The way from one rank to another. `None`: each takes more than three switches.
    pub fn between(&self, from: Rank, to: Rank, turn: u64) -> Option<Way> {
        let (out, into) = (self.out.get(from.index())?, self.into.get(to.index())?);
        let mut best: Option<(u64, Way)> = None;
        let mut see = |capacity: u64, way: Way| {
            if best.as_ref().is_none_or(|(most, _)| capacity > *most) {
                best = Some((capacity, way));
            }
        };
        if let Some(lane) = find(out, to.number()) {
            see(lane.capacity, [Some(LinkIndex::new(lane.link)), None, None, None]);
        }
        for (up, down) in common(out, into).filter(|(up, _)| up.other >= self.rank_count) {
            let links = [up, down].map(|lane| Some(LinkIndex::new(lane.link)));
            see(up.capacity.min(down.capacity), [links[0], links[1], None, None]);
        }
        best.map(|(_, way)| way).or_else(|| self.over_several(out, into, turn))
    }

    /// What joins two different switches: links from the one to the other, or else over a switch in between.
    pub(super) fn middles(&self, from: u32, to: u32) -> Middles {
        let (Some(out), Some(into)) = (self.out.get(from as usize), self.into.get(to as usize)) else {
            return Middles::default();
        };
        if let Some(lane) = find(out, to) {
            return Middles::new(vec![Middle { capacity: lane.capacity, links: [Some(lane.link), None] }]);
        }
        let between = common(out, into).filter(|(one, _)| one.other >= self.rank_count);
        let middle = |(one, other): (&Lane, &Lane)| Middle {
            capacity: one.capacity.min(other.capacity),
            links: [Some(one.link), Some(other.link)],
        };
        Middles::new(between.map(middle).collect())
    }

    /// A way over two switches, or else over three.
    fn over_several(&self, out: &[Lane], into: &[Lane], turn: u64) -> Option<Way> {
        let mut fastest = Fastest::default();
        let mut is_over_two = false;
        for (up, down) in self.pairs(out, into).filter(|(up, down)| up.other != down.other) {
            for &middle in &self.middles(up.other, down.other).all {
                let is_short = middle.links[1].is_none();
                if is_short && !is_over_two {
                    (fastest, is_over_two) = (Fastest::default(), true);
                }
                if is_short == is_over_two {
                    fastest.see(middle.capacity.min(up.capacity).min(down.capacity), middle.way(*up, *down));
                }
            }
        }
        fastest.take(turn)
    }

    /// Each switch of the one with each of the other.
    fn pairs<'a>(&self, out: &'a [Lane], into: &'a [Lane]) -> impl Iterator<Item = (&'a Lane, &'a Lane)> {
        let rank_count = self.rank_count;
        let switches = move |lanes: &'a [Lane]| lanes.iter().filter(move |lane| lane.other >= rank_count);
        switches(out).flat_map(move |up| switches(into).map(move |down| (up, down)))
    }
}

/// One of the ways between two switches.
#[derive(Clone, Copy, Debug)]
struct Middle {
    capacity: u64,
    links: [Option<u32>; 2],
}

impl Middle {
    fn way(self, up: Lane, down: Lane) -> Way {
        let [first, second] = self.links.map(|link| link.map(LinkIndex::new));
        let (up, down) = (Some(LinkIndex::new(up.link)), Some(LinkIndex::new(down.link)));
        match second {
            None => [up, first, down, None],
            Some(_) => [up, first, second, down],
        }
    }
}

/// All ways between two switches.
#[derive(Clone, Debug, Default)]
pub(super) struct Middles {
    all: Vec<Middle>,
    are_alike: bool,
}

impl Middles {
    fn new(all: Vec<Middle>) -> Self {
        let are_alike = all.windows(2).all(|pair| pair[0].capacity == pair[1].capacity);
        Self { all, are_alike }
    }

    /// The way over one of them: of the fastest, the one whose turn it is.
    pub(super) fn chosen(&self, up: Lane, down: Lane, turn: u64) -> Option<Way> {
        let nth = |number: u64| usize::try_from(number).ok();
        if self.are_alike {
            return self.all.get(nth(turn.checked_rem(self.all.len() as u64)?)?).map(|middle| middle.way(up, down));
        }
        let of = |middle: &Middle| middle.capacity.min(up.capacity).min(down.capacity);
        let most = self.all.iter().map(of).max()?;
        let fastest = || self.all.iter().filter(|middle| of(middle) == most);
        let number = turn.checked_rem(fastest().count() as u64)?;
        fastest().nth(nth(number)?).map(|middle| middle.way(up, down))
    }
}

/// The fastest ways so far, in their order.
#[derive(Default)]
struct Fastest {
    capacity: u64,
    ways: Vec<Way>,
}

impl Fastest {
    fn see(&mut self, capacity: u64, way: Way) {
        if capacity > self.capacity {
            self.capacity = capacity;
            self.ways.clear();
        }
        if capacity == self.capacity {
            self.ways.push(way);
        }
    }

    fn take(self, turn: u64) -> Option<Way> {
        let count = self.ways.len() as u64;
        let chosen = turn.checked_rem(count)?;
        self.ways.get(usize::try_from(chosen).ok()?).copied()
    }
}

/// Adds a link at the end, unless a link to the same node is as fast.
fn add(lanes: &mut Vec<Lane>, lane: Lane) {
    match lanes.last_mut().filter(|last| last.other == lane.other) {
        Some(last) if last.capacity < lane.capacity => *last = lane,
        Some(_) => {}
        None => lanes.push(lane),
    }
}

fn find(lanes: &[Lane], other: u32) -> Option<&Lane> {
    lanes.binary_search_by_key(&other, |lane| lane.other).ok().map(|at| &lanes[at])
}

/// Links to and from the same nodes, in order: one pass where both lists are short, a search for each where one is
/// long.
fn common<'a>(out: &'a [Lane], into: &'a [Lane]) -> impl Iterator<Item = (&'a Lane, &'a Lane)> {
    let is_out_shorter = out.len() <= into.len();
    let (short, long) = if is_out_shorter { (out, into) } else { (into, out) };
    short.iter().filter_map(move |lane| {
        let other = find(long, lane.other)?;
        Some(if is_out_shorter { (lane, other) } else { (other, lane) })
    })
}
