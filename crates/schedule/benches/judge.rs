//! Times of compiling and judging schedules, as a table.
//!
//! `cargo bench -p canopy-schedule --bench judge`. Growth is linear in hops; 1,024 ranks (1,047,552 hops) should be
//! compiled and judged within a second and a gibibyte.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::disallowed_methods, reason = "measuring time is what this program is for")]

use std::time::Instant;

use canopy_schedule::{
    Action, Carrier, Collective, CollectiveKind, Flow, Forest, Hop, Pace, Path, Phase, RouteIndex, RouteInterner,
    Schedule, Send, Shape, Shares, Steps, Tree, check, check_flow, compile,
};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology, TopologyLimits, generate};

const BOX_RANKS: u32 = 8;

fn main() {
    println!("schedule                                       hops   compile ms   check ms   peak MiB");
    for boxes in [16, 64, 128] {
        let topology = generate(&format!("dgx-a100:boxes={boxes}"), &TopologyLimits::STANDARD).expect("a known family");
        for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce] {
            let schedule = two_levels(&topology, kind);
            measure(&format!("{kind}, forest, {boxes} boxes"), &topology, &schedule);
        }
    }
    for ranks in [128, 512] {
        let topology = generate(&format!("ring:{ranks}"), &TopologyLimits::STANDARD).expect("a known family");
        measure(&format!("allgather, steps, ring of {ranks}"), &topology, &ring(&topology));
    }
    println!("flow, judged by its paths alone                hops                check ms   peak MiB");
    for side in [16, 32] {
        let topology = generate(&format!("torus:{side}x{side}"), &TopologyLimits::STANDARD).expect("a known family");
        let schedule = by_dimensions(&topology, side);
        let Shape::Flow(flow) = &schedule.shape else { unreachable!("it is made as a flow") };
        let start = Instant::now();
        check_flow(&topology, &schedule).expect("a sound schedule");
        let checked = start.elapsed().as_secs_f64() * 1e3;
        let (name, hops) = (format!("all-to-all, flow, torus of {}", side * side), flow.hops.len());
        println!("{name:40} {hops:10} {checked:23.1} {:10.0}", peak_mebibytes());
    }
}

/// Every block first along its column, then along its row, the shorter way round.
fn by_dimensions(topology: &Topology, side: u32) -> Schedule {
    let mut routes = RouteInterner::default();
    let mut next = |from: u32, to: u32| {
        let mut links = topology.links_from(NodeIndex::new(from));
        routes.intern(&[links.find(|&link| topology.link(link).to.number() == to).expect("neighbours")])
    };
    let ways: Vec<[RouteIndex; 4]> = (0..side * side)
        .map(|rank| {
            let (row, column) = (rank / side, rank % side);
            let at = |row: u32, column: u32| row % side * side + column % side;
            [at(row + 1, column), at(row + side - 1, column), at(row, column + 1), at(row, column + side - 1)]
                .map(|to| next(rank, to))
        })
        .collect();
    let (mut hops, mut paths) = (Vec::new(), Vec::new());
    let pairs = (0..side * side).flat_map(|from| (0..side * side).map(move |to| (from, to)));
    for (source, destination) in pairs.filter(|(from, to)| from != to) {
        let start = number(hops.len());
        let (mut row, mut column) = (source / side, source % side);
        while row != destination / side {
            let is_up = (destination / side + side - row) % side <= side / 2;
            hops.push(ways[(row * side + column) as usize][usize::from(!is_up)]);
            row = (row + if is_up { 1 } else { side - 1 }) % side;
        }
        while column != destination % side {
            let is_up = (destination % side + side - column) % side <= side / 2;
            hops.push(ways[(row * side + column) as usize][2 + usize::from(!is_up)]);
            column = (column + if is_up { 1 } else { side - 1 }) % side;
        }
        let (source, destination) = (Rank::new(source), Rank::new(destination));
        paths.push(Path { source, destination, chunk_count: 1, hops: start..number(hops.len()) });
    }
    let flow = Flow { chunks_per_share: 1, routes: routes.finish(), hops, paths };
    schedule(topology, CollectiveKind::AllToAll, Shape::Flow(flow))
}

fn measure(name: &str, topology: &Topology, schedule: &Schedule) {
    let start = Instant::now();
    let graph = compile(topology, schedule).expect("a sound schedule");
    let compiled = start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    check(topology, &graph).expect("a sound schedule");
    let checked = start.elapsed().as_secs_f64() * 1e3;
    let hops = graph.transfers.len();
    println!("{name:40} {hops:10} {compiled:12.1} {checked:10.1} {:10.0}", peak_mebibytes());
}

/// Greatest resident size of this process so far, where the system says it.
fn peak_mebibytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kibibytes.map_or(f64::NAN, |kibibytes| kibibytes / 1024.0)
}

/// Each root sends its share to one rank of each other box, and each of these to the others of its box.
fn two_levels(topology: &Topology, kind: CollectiveKind) -> Schedule {
    let mut builder = Builder { topology, routes: RouteInterner::default(), hops: Vec::new(), routes_of: Vec::new() };
    let trees = |builder: &mut Builder<'_>, action: Action| {
        topology.ranks().map(|root| builder.tree(root.number(), action)).collect::<Vec<Tree>>()
    };
    let copy = |builder: &mut Builder<'_>| Phase { action: Action::Copy, trees: trees(builder, Action::Copy) };
    let phases = match kind {
        CollectiveKind::Allreduce => {
            let reduce = Phase { action: Action::Reduce, trees: trees(&mut builder, Action::Reduce) };
            vec![reduce, copy(&mut builder)]
        }
        _ => vec![copy(&mut builder)],
    };
    let carriers = builder.routes_of.into_iter().map(|route| Carrier { route, chunk_count: 1 }).collect();
    let forest = Forest { chunks_per_share: 1, routes: builder.routes.finish(), carriers, hops: builder.hops, phases };
    schedule(topology, kind, Shape::Forest(forest))
}

fn schedule(topology: &Topology, kind: CollectiveKind, shape: Shape) -> Schedule {
    let collective = Collective::new(kind, None, topology.rank_count()).expect("no root is needed");
    Schedule { collective, algorithm: "by-hand".to_owned(), shares: Shares::Equal, shape }
}

struct Builder<'a> {
    topology: &'a Topology,
    routes: RouteInterner,
    hops: Vec<Hop>,
    /// By hop.
    routes_of: Vec<RouteIndex>,
}

impl Builder<'_> {
    fn tree(&mut self, root: u32, action: Action) -> Tree {
        let start = number(self.hops.len());
        let mut pairs = Vec::new();
        for box_first in (0..self.topology.rank_count()).step_by(BOX_RANKS as usize) {
            let head = box_first + root % BOX_RANKS;
            pairs.extend((head != root).then_some((root, head)));
            pairs.extend((box_first..box_first + BOX_RANKS).filter(|&rank| rank != head).map(|rank| (head, rank)));
        }
        if action == Action::Reduce {
            pairs = pairs.into_iter().rev().map(|(from, to)| (to, from)).collect();
        }
        for (from, to) in pairs {
            let links = route(self.topology, from, to);
            self.routes_of.push(self.routes.intern(&links));
            let position = number(self.hops.len());
            self.hops.push(Hop { from: Rank::new(from), to: Rank::new(to), carriers: position..position + 1 });
        }
        Tree { root: Rank::new(root), multiplicity: 1, hops: start..number(self.hops.len()) }
    }
}

/// Through the one switch that both ranks are linked to, the box's own before the common one.
fn route(topology: &Topology, from: u32, to: u32) -> Vec<LinkIndex> {
    let same_box = from / BOX_RANKS == to / BOX_RANKS;
    let out = topology.links_from(NodeIndex::new(from)).map(|link| (link, topology.link(link).to));
    let mut ways = out.filter_map(|(first, switch)| {
        let second = topology.links_from(switch).find(|&link| topology.link(link).to.number() == to)?;
        Some((topology.link(first).capacity, vec![first, second]))
    });
    let fastest = if same_box { ways.max_by_key(|(capacity, _)| *capacity) } else { ways.next() };
    fastest.expect("one switch joins all").1
}

/// Every share around a ring, one way.
fn ring(topology: &Topology) -> Schedule {
    let ranks = topology.rank_count();
    let mut routes = RouteInterner::default();
    let (mut carriers, mut sends) = (Vec::new(), Vec::new());
    for step in 0..ranks - 1 {
        for from in 0..ranks {
            let to = (from + 1) % ranks;
            let mut links = topology.links_from(NodeIndex::new(from));
            let link = links.find(|&link| topology.link(link).to.number() == to).expect("a ring");
            let chunk = u64::from((from + ranks - step) % ranks);
            let position = number(carriers.len());
            carriers.push(Carrier { route: routes.intern(&[link]), chunk_count: 1 });
            let (action, from, to) = (Action::Copy, Rank::new(from), Rank::new(to));
            sends.push(Send { step, action, from, to, chunks: chunk..chunk + 1, carriers: position..position + 1 });
        }
    }
    let steps = Steps { chunks_per_share: 1, pace: Pace::Barriers, routes: routes.finish(), carriers, sends };
    schedule(topology, CollectiveKind::Allgather, Shape::Steps(steps))
}

fn number(length: usize) -> u32 {
    u32::try_from(length).expect("these tables are small")
}
