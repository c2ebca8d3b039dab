//! How the time of a call follows from the links of machines: the hops of a message, and its passes over links.
//!
//! [`Stock::time_ps`] gives a time for rates in classes, with latencies that are made to choose. Here rates and latencies are
//! left open, so that they can be found from measured times: a call takes
//!
//! > hops · latency + bytes · max(inside / rate inside, across / rate across, 1 / most)
//!
//! where the *rate inside* is what the links of a GPU inside its machine carry together, and the *rate across* is what the
//! links of a machine to others carry together, one way each.
//!
//! Source: the formulas of `tuning` and `rccl`, before rates are rounded to classes. All-to-all, gather and scatter are sends
//! between pairs, one after the other for each rank.

use canopy_schedule::CollectiveKind;
use num_rational::Ratio;

use crate::nccl::choice::Stock;
use crate::nccl::rccl::Known;
use crate::nccl::tables::{NVLS_HUNDREDTHS, NVLS_TREE_MAX, RING_128, TREE_128, TREE_MAX};
use crate::nccl::tuning::{Algorithm, Call, Protocol, tenths};
use crate::nccl::version::Release;

/// What the time of a call depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// Hops that follow one another.
    pub hops: u32,
    /// Those of them that are between machines.
    pub hops_across: u32,
    /// How often the whole message passes the links of a GPU inside its machine.
    pub inside: f64,
    /// How often it passes the links of a machine to others.
    pub across: f64,
    /// Bytes per second of the whole message that the library's kernels carry at most, whatever links do.
    pub bytes_per_sec_max: f64,
}

impl Stock {
    /// What a call depends on by an algorithm and protocol; `None` where the library does not have them for it.
    pub fn reach(&self, kind: CollectiveKind, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> Option<Reach> {
        self.time_ps(kind, algorithm, protocol, bytes)?;
        let of = Of { stock: self, kind, protocol, bytes };
        match (self.known(), algorithm) {
            (Some(known), Algorithm::Ring) => Some(of.ring(1.0, f64::INFINITY, known == Known::Mi300x)),
            (Some(known), Algorithm::Tree) => Some(of.rccl_tree(known)),
            (None, Algorithm::Ring) => of.nccl_ring(),
            (None, Algorithm::Tree) => of.nccl_tree(),
            (None, Algorithm::Nvls) if self.nodes() == 1 => of.nvls(),
            (None, Algorithm::NvlsTree) => of.nvls_tree(),
            (None, Algorithm::Pat) => Some(of.ring(0.75, f64::INFINITY, true)),
            _ => None,
        }
    }

    /// What rings carry inside a machine, if the links of a GPU carry `described` together, both in bytes per second: RCCL's pass
    /// only some links of an MI250.
    pub fn inside_bytes_per_sec(&self, described: f64) -> f64 {
        self.known().map_or(described, |known| known.bus(described))
    }

    /// What a call depends on of which sends between pairs are made: all-to-all, gather and scatter. `None` of others, and of one rank.
    pub fn reach_of_sends(&self, kind: CollectiveKind) -> Option<Reach> {
        let ranks = self.ranks();
        let gpus = self.gpus();
        let nodes = f64::from(self.nodes());
        let is_of_pairs = matches!(kind, CollectiveKind::AllToAll | CollectiveKind::Gather | CollectiveKind::Scatter);
        if !is_of_pairs || ranks < 2 {
            return None;
        }
        // The links of a machine carry what all its GPUs send at once, those of one GPU what a root has.
        let senders = if kind == CollectiveKind::AllToAll { 1.0 } else { 1.0 / f64::from(self.nics().clamp(1, gpus)) };
        let gpus = f64::from(gpus);
        let others = u32::try_from(ranks - 1).ok()?;
        Some(Reach {
            hops: others,
            hops_across: others + 1 - self.gpus(),
            inside: (gpus - 1.0) / ranks as f64,
            across: if senders < 1.0 { (nodes - 1.0) / nodes / senders } else { gpus * (nodes - 1.0) / nodes },
            bytes_per_sec_max: f64::INFINITY,
        })
    }
}

/// A call.
struct Of<'a> {
    stock: &'a Stock,
    kind: CollectiveKind,
    protocol: Protocol,
    bytes: u64,
}

impl Of<'_> {
    fn call<'a>(&'a self, release: &'a Release) -> Call<'a> {
        Call { machine: self.stock.machine(), nodes: self.stock.nodes(), kind: self.kind, release }
    }

    fn is_across(&self) -> bool {
        self.stock.nodes() > 1
    }

    /// Steps of rings, and how many of them are between machines.
    fn steps(&self) -> (u64, u64) {
        let ranks = self.stock.ranks();
        let nodes = u64::from(self.stock.nodes());
        match self.kind {
            CollectiveKind::Allreduce => (2 * (ranks - 1), 2 * (nodes - 1)),
            CollectiveKind::Broadcast | CollectiveKind::Reduce => (ranks, nodes - 1),
            _ => (ranks - 1, nodes - 1),
        }
    }

    /// Rings that have this part of the rate of links, and these bytes per second of the bus at most. Across machines, a ring
    /// leaves a machine from one of its GPUs, which needs no link inside for it.
    fn ring(&self, part: f64, bus_max: f64, leaves: bool) -> Reach {
        let (steps, hops_across) = self.steps();
        let passes = steps as f64 / self.stock.ranks() as f64;
        let gpus = f64::from(self.stock.gpus());
        let inside = if self.is_across() && leaves { passes * (1.0 - 1.0 / gpus) } else { passes };
        Reach {
            hops: count(steps),
            hops_across: count(hops_across),
            inside: inside / part,
            across: if self.is_across() { passes / part } else { 0.0 },
            bytes_per_sec_max: bus_max / passes,
        }
    }

    fn nccl_ring(&self) -> Option<Reach> {
        let release = self.stock.version().release()?;
        let call = self.call(release);
        let channels = f64::from(self.stock.rings()?.count);
        let (part, most) = match self.protocol {
            Protocol::LowLatency => {
                let adds_up = matches!(self.kind, CollectiveKind::Allreduce | CollectiveKind::Reduce);
                let (numerator, denominator) = release.ring_ll[usize::from(!self.is_across() && !adds_up)];
                (numerator as f64 / denominator as f64, megabytes(call.low_latency_max()))
            }
            Protocol::LowLatency128 => {
                let of_channel = RING_128[call.machine.generation.column()][call.column()];
                (0.92, channels * of_channel as f64 * 1e6)
            }
            Protocol::Simple => (1.0, f64::INFINITY),
        };
        Some(self.ring(part, most, true))
    }

    /// Two binary trees over machines, each with half of the message, and a chain through the GPUs of each: a message passes
    /// a GPU up and down. Of two machines, each is the root of one tree; of more, one sends to a parent and two children.
    fn nccl_tree(&self) -> Option<Reach> {
        let release = self.stock.version().release()?;
        let call = self.call(release);
        let channels = f64::from(self.stock.trees()?.count);
        let generation = call.machine.generation.column();
        let column = call.column();
        let of_channels = channels * TREE_MAX[generation][column] as f64 * 1e6;
        let (part, most) = match self.protocol {
            Protocol::LowLatency => (10.0 / 38.0, megabytes(call.low_latency_max()).min(of_channels * 10.0 / 38.0)),
            Protocol::LowLatency128 => {
                let reached = if self.is_across() { 15.0 / 16.0 } else { 7.0 / 9.0 };
                let channels_max = channels * TREE_128[generation][column] as f64 * 1e6;
                (reached, channels_max.min(of_channels * reached))
            }
            Protocol::Simple => (1.0, of_channels),
        };
        let at_size = part_at(self.protocol, self.bytes);
        let part = part * 0.92 * at_size;
        let (hops, hops_across) = self.tree_hops();
        let across = match self.stock.nodes() {
            0 | 1 => 0.0,
            2 => 1.0,
            _ => 2.0,
        };
        let bytes_per_sec_max = most * at_size / 2.0;
        Some(Reach { hops, hops_across, inside: 2.0 / part, across: across / part, bytes_per_sec_max })
    }

    /// Down and up again, through the GPUs of a machine and over machines.
    fn tree_hops(&self) -> (u32, u32) {
        let across = 2 * self.stock.nodes().max(1).ilog2();
        (2 * (self.stock.gpus() - 1) + across, across)
    }

    fn rccl_tree(&self, known: Known) -> Reach {
        let part = known.tree_part(self.stock.nodes(), self.bytes);
        let (hops, hops_across) = self.tree_hops();
        let across = if self.is_across() { 2.0 / part } else { 0.0 };
        Reach { hops, hops_across, inside: 2.0 / part, across, bytes_per_sec_max: f64::INFINITY }
    }

    /// What heads reach of a rate.
    fn heads(&self, count: u32, release: &Release) -> f64 {
        let gpus = f64::from(self.stock.gpus());
        if !release.has_nvls_efficiency {
            return 5.0 / 6.0;
        }
        let reached = NVLS_HUNDREDTHS[self.stock.machine().generation.column()] as f64 / 100.0;
        let others = (f64::from(count) - 1.0) / f64::from(count);
        let of_bus = if self.kind == CollectiveKind::Allreduce { 2.0 } else { (gpus - 1.0) / gpus };
        reached * others * of_bus
    }

    /// What an allreduce has of a rate of the bus.
    fn of_bus(&self) -> f64 {
        let ranks = self.stock.ranks() as f64;
        if self.kind == CollectiveKind::Allreduce { ranks / (2.0 * (ranks - 1.0)) } else { 1.0 }
    }

    fn nvls(&self) -> Option<Reach> {
        let release = self.stock.version().release()?;
        let heads = self.stock.nvls_heads()?.count;
        let part = part_of_heads(heads) * self.heads(heads, release);
        let of_bus = if release.has_nvls_efficiency { self.of_bus() } else { 1.0 };
        let bytes_per_sec_max = f64::INFINITY;
        Some(Reach { hops: 2, hops_across: 0, inside: 1.0 / (part * of_bus), across: 0.0, bytes_per_sec_max })
    }

    fn nvls_tree(&self) -> Option<Reach> {
        let release = self.stock.version().release()?;
        let heads = self.stock.nvls_heads()?.count;
        let reached = self.heads(heads, release);
        let part = part_of_heads(heads) * reached;
        let across = 2 * self.stock.nodes().ilog2();
        let is_two = self.stock.nodes() == 2;
        let has_efficiency = release.has_nvls_efficiency;
        let call = self.call(release);
        let generation = call.machine.generation.column();
        let of_head = NVLS_TREE_MAX[generation][call.column()] as f64 * 1e6;
        let (of_bus, outside, most) = match (has_efficiency, is_two) {
            (true, true) => (self.of_bus(), 2.0_f64, f64::from(heads) * of_head),
            (true, false) => (self.of_bus(), 1.0, f64::from(heads) * of_head),
            (false, true) => (1.0, 5.0 / 6.0, f64::INFINITY),
            (false, false) => (1.0, 5.0 / 12.0, f64::INFINITY),
        };
        let at_size = if generation == 3 { part_at(Protocol::Simple, self.bytes) } else { 1.0 };
        Some(Reach {
            hops: 2 + across,
            hops_across: across,
            inside: 1.0 / (part * of_bus * at_size),
            // Heads are not faster inside than the class of their NICs.
            across: 1.0 / (outside.min(reached) * of_bus * at_size),
            bytes_per_sec_max: most * of_bus * at_size,
        })
    }
}

/// The part of a GPU's links that heads have, as each pulls from every GPU, and once from itself.
fn part_of_heads(count: u32) -> f64 {
    f64::from(count) / f64::from(count + 1)
}

fn count(steps: u64) -> u32 {
    u32::try_from(steps).unwrap_or(u32::MAX)
}

/// MB/s in bytes per second.
fn megabytes(rate: Ratio<u128>) -> f64 {
    *rate.numer() as f64 / *rate.denom() as f64 * 1e6
}

/// The part of its bandwidth that a tree reaches with messages of `bytes`.
fn part_at(protocol: Protocol, bytes: u64) -> f64 {
    megabytes(tenths(protocol as usize, bytes)) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nccl::machine::Machine;
    use crate::nccl::version::Version;

    /// What a large call has by its passes, at the rates that NCCL counts, beside its own formulas: classes round down, by 7 % at most.
    #[test]
    fn passes_agree_with_the_formulas() {
        let kinds = [CollectiveKind::Allreduce, CollectiveKind::Allgather, CollectiveKind::Broadcast];
        for machine in [Machine::DGX_A100, Machine::DGX_H100, Machine::DGX_B200] {
            for (version, nodes) in
                Version::ALL.into_iter().flat_map(|version| [1, 2, 4, 7].map(|nodes| (version, nodes)))
            {
                let stock = Stock::nccl(version, machine, nodes);
                let [inside, across] =
                    [machine.inside, u64::from(machine.nics) * machine.outside()].map(|rate| rate as f64 * 1e6);
                for timed in kinds
                    .iter()
                    .flat_map(|&kind| stock.timed(kind, 64 << 30).into_iter().map(move |timed| (kind, timed)))
                {
                    let (kind, timed) = timed;
                    let reach = stock.reach(kind, timed.algorithm, timed.protocol, 64 << 30).unwrap();
                    let per_byte =
                        (reach.inside / inside).max(reach.across / across).max(1.0 / reach.bytes_per_sec_max);
                    let model = per_byte * (64_u64 << 30) as f64 * 1e12;
                    let part = model / timed.time_ps as f64;
                    assert!((0.9..1.02).contains(&part), "{version} {nodes} {kind} {timed:?}: {part}");
                }
            }
        }
    }

    /// Half of what a rank of two machines sends to all goes to the other machine: 48 GB/s take 24 of each of 8 NICs.
    #[test]
    fn sends_between_pairs_pass_each_link_once() {
        let stock = Stock::nccl(Version::default(), Machine::DGX_H100, 2);
        let reach = stock.reach_of_sends(CollectiveKind::AllToAll).unwrap();
        assert_eq!((reach.hops, reach.hops_across, reach.inside, reach.across), (15, 8, 7.0 / 16.0, 4.0));
        assert_eq!(stock.reach_of_sends(CollectiveKind::Allreduce), None);
        assert_eq!(stock.reach(CollectiveKind::AllToAll, Algorithm::Ring, Protocol::Simple, 1 << 20), None);
    }
}
