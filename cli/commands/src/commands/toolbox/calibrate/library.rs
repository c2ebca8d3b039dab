//! Runs that NCCL or RCCL made by itself: what it takes for each size, and how that depends on rates and latencies.

use canopy_calibrate::{Parameters, Point, inside};
use canopy_schedule::{Collective, CollectiveKind, LinkLoads, Shares, check, compile};
use canopy_stock::nccl::{Algorithm, Protocol, Reach, Stock, Timed, Version};
use canopy_synth::nic_rings;
use canopy_topology::{LinkIndex, NodeIndex, Topology};

use crate::clock::Deadline;
use crate::stock::{Library, stock_of};

/// Most transfers of the rings of which links are looked at.
const TRANSFERS_MAX: u64 = 1 << 20;
/// A link of less than this part of a GPU's fastest one inside its box is not one that the library takes: it leads to NICs.
const SLOW_PART: f64 = 0.25;

/// What a library would do on a network.
pub(super) struct Machines {
    stock: Stock,
    /// What the links of a GPU inside its box carry together, and those of a box to others, as described, in bytes per second.
    inside: f64,
    across: f64,
}

/// A run, by what each of its times depends on.
pub(super) struct Calls {
    calls: Vec<(u64, Reach)>,
    inside: f64,
    across: f64,
}

/// How the library was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// By what it chooses for each size.
    Choice,
    /// By an algorithm, with the protocol that it chooses, or the simple one.
    Only(Algorithm, Option<Protocol>),
}

impl Taken {
    /// As it is printed: `nccl`, `nccl-ring`.
    pub(super) fn name(self) -> String {
        match self {
            Self::Choice => "nccl".to_owned(),
            Self::Only(algorithm, None) => format!("nccl-{}", algorithm.name()),
            Self::Only(algorithm, Some(protocol)) => format!("nccl-{} {}", algorithm.name(), protocol.name()),
        }
    }
}

impl Machines {
    /// The library of runs on a network. Errors say in words why there is no model.
    pub(super) fn of(
        topology: &Topology,
        version: Option<Version>,
        is_rccl: bool,
        deadline: Deadline,
    ) -> Result<Self, String> {
        let library = |version| Library { version, has_collnet: false };
        let stated = version.or(is_rccl.then_some(Version::Rccl2_21));
        let (stock, seen) = match stock_of(library(stated), topology) {
            // A file that names GPUs of AMD does not decide what machines the network has.
            Err(_) if version.is_none() && stated.is_some() => stock_of(library(None), topology)?,
            found => found?,
        };
        let across = f64::from(seen.machine.nics) * seen.machine.nic as f64 * 1e6;
        let by_rings = if seen.nodes > 1 { across_by_rings(topology, deadline) } else { None };
        let inside = stock.inside_bytes_per_sec(inside_of_a_gpu(topology));
        Ok(Self { stock, inside, across: by_rings.map_or(across, |rings| rings.min(across)) })
    }

    /// `NCCL 2.30`.
    pub(super) fn name(&self) -> String {
        self.stock.version().to_string()
    }

    /// Ways in which runs of a collective can be taken, the likeliest first.
    pub(super) fn ways(&self, kind: CollectiveKind, forced: Option<Algorithm>) -> Vec<Taken> {
        let simple = |algorithm| Taken::Only(algorithm, Some(Protocol::Simple));
        match forced {
            Some(algorithm) => vec![Taken::Only(algorithm, None), simple(algorithm)],
            None if self.stock.choice(kind, 1 << 30).is_none() => vec![Taken::Choice],
            None => vec![Taken::Choice, simple(Algorithm::Ring)],
        }
    }

    /// A run; in words why the library does not make it.
    pub(super) fn calls(&self, kind: CollectiveKind, taken: Taken, points: &[Point]) -> Result<Calls, String> {
        let reach = |bytes: u64| {
            let timed = || self.stock.timed(kind, bytes);
            let found = match taken {
                Taken::Choice => self.stock.choice(kind, bytes),
                Taken::Only(algorithm, Some(protocol)) => Some(Timed { algorithm, protocol, time_ps: 0 }),
                Taken::Only(algorithm, None) => timed().into_iter().find(|timed| timed.algorithm == algorithm),
            };
            let by_choice = found.and_then(|one| self.stock.reach(kind, one.algorithm, one.protocol, bytes));
            let found = by_choice.or_else(|| self.stock.reach_of_sends(kind).filter(|_| taken == Taken::Choice));
            let has_none = || format!("{} has no {kind} by {} on these machines", self.name(), taken.name());
            found.map(|reach| (bytes, reach)).ok_or_else(has_none)
        };
        let calls = points.iter().map(|point| reach(point.bytes)).collect::<Result<_, _>>()?;
        Ok(Calls { calls, inside: self.inside, across: self.across })
    }
}

impl Calls {
    /// Times in microseconds.
    pub(super) fn times(&self, at: &Parameters) -> Vec<f64> {
        let rate = |passes: f64, rate: f64| if passes > 0.0 { passes / rate.max(1.0) } else { 0.0 };
        let time = |&(bytes, reach): &(u64, Reach)| {
            let inside = rate(reach.inside, self.inside * at.inside);
            let across = rate(reach.across, self.across * at.across);
            let per_byte = inside.max(across).max(1.0 / reach.bytes_per_sec_max);
            let latency_ns = f64::from(reach.hops) * at.message_ns + f64::from(reach.hops_across) * at.across_ns;
            (at.launch_ns + latency_ns) / 1e3 + bytes as f64 * per_byte * 1e6
        };
        self.calls.iter().map(time).collect()
    }
}

/// What the fast links of a GPU inside its box carry together, of the GPU that has least, in bytes per second.
fn inside_of_a_gpu(topology: &Topology) -> f64 {
    let is_inside = inside(topology);
    let of_rank = |rank: u32| {
        let links = topology.links_from(NodeIndex::new(rank)).filter(|link| is_inside[link.index()]);
        let rates: Vec<f64> = links.map(|link| topology.link(link).capacity.bytes_per_sec() as f64).collect();
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        rates.into_iter().filter(|&rate| rate >= fastest * SLOW_PART).sum::<f64>()
    };
    (0..topology.rank_count()).map(of_rank).fold(f64::INFINITY, f64::min)
}

/// What the links between boxes carry of rings over all NICs, whatever they are joined by, in bytes per second of a box; `None`
/// where there are no such rings.
fn across_by_rings(topology: &Topology, deadline: Deadline) -> Option<f64> {
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count()).ok()?;
    let stop = || deadline.is_past();
    let rings = nic_rings(topology, collective, &Shares::Equal, TRANSFERS_MAX, &stop).ok()?;
    let graph = compile(topology, &rings.schedule).ok()?;
    let rate = check(topology, &graph).ok()?.algbw;
    let loads = LinkLoads::of(topology, &graph).ok()?;
    let is_inside = inside(topology);
    let busy = |number: u32| loads.busy(LinkIndex::new(number)).to_f64();
    let across = (0..).zip(&is_inside).filter(|(_, is_inside)| !**is_inside).map(|(number, _)| busy(number));
    let busiest = across.fold(0.0, f64::max);
    let ranks = f64::from(topology.rank_count());
    // A ring brings every rank all shares but its own.
    (busiest > 0.0).then(|| rate.gigabytes_per_sec() * 1e9 / busiest * (ranks - 1.0) / ranks)
}
