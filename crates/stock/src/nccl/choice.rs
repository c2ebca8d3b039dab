//! What is taken for a call, and the time that it is said to take.

use canopy_schedule::CollectiveKind;
use num_rational::Ratio;

use crate::nccl::channels::{Channels, Heads, collnet, nvls, rings, trees};
use crate::nccl::machine::{Generation, Machine};
use crate::nccl::rccl::{Known, RcclCall};
use crate::nccl::tables;
use crate::nccl::tuning::{Algorithm, Call, Cost, Protocol};
use crate::nccl::version::Version;

/// An algorithm and protocol with the time that formulas give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Which.
    pub algorithm: Algorithm,
    /// How.
    pub protocol: Protocol,
    /// In picoseconds.
    pub time_ps: u128,
}

/// What is taken for some sizes, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Smallest message, in bytes.
    pub first: u64,
    /// Largest.
    pub last: u64,
    /// Which algorithm.
    pub algorithm: Algorithm,
    /// How.
    pub protocol: Protocol,
}

/// A release of NCCL or RCCL on some machines that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stock {
    version: Version,
    machine: Machine,
    nodes: u32,
    known: Option<Known>,
}

/// First and last power of two at which times are compared: below and above nothing changes.
const POWERS: std::ops::RangeInclusive<u32> = 6..=40;

/// Least and most channels of a communicator.
const CHANNELS_MIN: u32 = 2;
const CHANNELS_MAX: u32 = 64;
/// Class, in MB/s, above which few channels are doubled twice.
const FAST_CHANNEL: u64 = 45_000;
const FEW_CHANNELS: u32 = 16;

impl Stock {
    /// NCCL on `nodes` machines. For RCCL's version it takes the default release of NCCL; use [`Self::rccl`] for RCCL.
    pub fn nccl(version: Version, machine: Machine, nodes: u32) -> Self {
        let version = if version.release().is_some() { version } else { Version::default() };
        Self { version, machine, nodes: nodes.max(1), known: None }
    }

    /// RCCL on `nodes` machines of a kind that it knows. Only GPUs and NICs of `machine` count.
    pub fn rccl(known: Known, machine: Machine, nodes: u32) -> Self {
        Self { version: Version::Rccl2_21, machine, nodes: nodes.max(1), known: Some(known) }
    }

    /// The release.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Machines.
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    pub(crate) const fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) const fn known(&self) -> Option<Known> {
        self.known
    }

    /// GPUs of each, at least one.
    pub fn gpus(&self) -> u32 {
        self.machine.gpus.max(1)
    }

    /// NICs of each.
    pub const fn nics(&self) -> u32 {
        self.machine.nics
    }

    /// Channels that are set up: two for each that is found, four for fast ones across machines where those are few. 24 in a
    /// DGX A100 or H100, 16 across several.
    pub fn channels(&self) -> u32 {
        let Some(rings) = self.rings() else { return CHANNELS_MIN };
        let is_fast = self.nodes > 1 && self.machine.generation >= Generation::Hopper && rings.outside > FAST_CHANNEL;
        let twice = 2 * rings.count;
        let channels = if is_fast && twice < FEW_CHANNELS { 2 * twice } else { twice };
        channels.clamp(CHANNELS_MIN, CHANNELS_MAX)
    }

    /// Channels of NVLS at most: 16 on Hopper, 32 on newer GPUs.
    pub fn nvls_channels(&self) -> u32 {
        if self.machine.generation > Generation::Hopper { 32 } else { 16 }
    }

    /// The same library on `nodes` machines of the same kind.
    pub fn on(&self, nodes: u32) -> Self {
        Self { nodes: nodes.max(1), ..*self }
    }

    /// All GPUs.
    pub fn ranks(&self) -> u64 {
        u64::from(self.machine.gpus.max(1)) * u64::from(self.nodes)
    }

    /// Rings that are searched for; `None` for RCCL, whose rings are fixed, and where links are too slow for any.
    pub fn rings(&self) -> Option<Channels> {
        rings(&self.machine, self.nodes > 1, self.version.release()?)
    }

    /// Trees likewise.
    pub fn trees(&self) -> Option<Channels> {
        trees(&self.machine, self.nodes > 1, self.version.release()?)
    }

    /// Heads of NVLS likewise.
    pub fn nvls_heads(&self) -> Option<Heads> {
        nvls(&self.machine, self.nodes > 1, self.version.release()?)
    }

    /// Heads of CollNet likewise.
    pub fn collnet_heads(&self) -> Option<Heads> {
        collnet(&self.machine, self.version.release()?)
    }

    fn cost(&self, kind: CollectiveKind, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> Option<Cost> {
        let Self { machine, nodes, .. } = self;
        match (self.known, self.version.release()) {
            (Some(known), _) => {
                let outside = u64::from(machine.nics.max(1)).saturating_mul(machine.nic);
                let call = RcclCall { known, gpus: machine.gpus.max(1), nodes: *nodes, outside, kind };
                call.cost(algorithm, protocol, bytes)
            }
            (None, Some(release)) => Call { machine, nodes: *nodes, kind, release }.cost(algorithm, protocol, bytes),
            (None, None) => None,
        }
    }

    /// The time of a call by formulas, in picoseconds; `None` where the library does not have the algorithm for it, or
    /// does not tune the collective. `bytes` are those of the whole message, of an allgather what each rank receives.
    pub fn time_ps(&self, kind: CollectiveKind, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> Option<u128> {
        if !is_tuned(kind) {
            return None;
        }
        let Cost { latency_ns, algbw } = self.cost(kind, algorithm, protocol, bytes)?;
        if algbw == Ratio::from_integer(0) {
            return None;
        }
        // A byte at 1 MB/s takes a microsecond, 10⁶ ps.
        let transfer = Ratio::from_integer(u128::from(bytes) * 1_000_000) / algbw;
        Some(u128::from(latency_ns) * 1_000 + transfer.to_integer())
    }

    /// Latencies that another plan run by the same kernels would have, in ns: once, and for each hop from GPU to GPU, those
    /// between machines included, if there are several.
    pub fn latencies_ns(&self) -> (u64, u64) {
        let is_across = self.nodes > 1;
        match self.known {
            Some(known) => known.latencies_ns(is_across),
            None => tables::simple_latencies_ns(is_across),
        }
    }

    /// All that the library has for a call, fastest first.
    pub fn timed(&self, kind: CollectiveKind, bytes: u64) -> Vec<Timed> {
        let all = Algorithm::ALL.into_iter().flat_map(|algorithm| Protocol::ALL.map(|protocol| (algorithm, protocol)));
        let timed = all.filter_map(|(algorithm, protocol)| {
            let time_ps = self.time_ps(kind, algorithm, protocol, bytes)?;
            Some(Timed { algorithm, protocol, time_ps })
        });
        let mut timed: Vec<Timed> = timed.collect();
        timed.sort_by_key(|timed| timed.time_ps);
        timed
    }

    /// What the library takes for a call.
    pub fn choice(&self, kind: CollectiveKind, bytes: u64) -> Option<Timed> {
        self.timed(kind, bytes).into_iter().next()
    }

    /// What it takes for every size from 0 to 2⁶⁴ − 1, in rising order without gaps; empty for a collective that is not
    /// tuned. Compared at powers of two.
    pub fn choices(&self, kind: CollectiveKind) -> Vec<Choice> {
        self.choices_of(kind, &Algorithm::ALL)
    }

    /// The same if it had these algorithms alone.
    pub fn choices_of(&self, kind: CollectiveKind, algorithms: &[Algorithm]) -> Vec<Choice> {
        let mut found: Vec<Choice> = Vec::new();
        for size in POWERS.map(|power| 1_u64 << power) {
            let timed = self.timed(kind, size).into_iter().find(|timed| algorithms.contains(&timed.algorithm));
            let Some(Timed { algorithm, protocol, .. }) = timed else { continue };
            let first = match found.last_mut() {
                Some(last) if (last.algorithm, last.protocol) == (algorithm, protocol) => continue,
                Some(last) => {
                    last.last = size - 1;
                    size
                }
                None => 0,
            };
            found.push(Choice { first, last: u64::MAX, algorithm, protocol });
        }
        found
    }

    /// Bytes per second of the whole message that a time means, in MB/s.
    pub fn algbw(bytes: u64, time_ps: u128) -> Ratio<u128> {
        Ratio::new(u128::from(bytes) * 1_000_000, time_ps.max(1))
    }

    /// By what algbw is multiplied for busbw.
    pub fn bus_factor(&self, kind: CollectiveKind) -> Ratio<u128> {
        let ranks = u128::from(self.ranks());
        match kind {
            CollectiveKind::Allreduce => Ratio::new(2 * (ranks - 1), ranks),
            CollectiveKind::Broadcast | CollectiveKind::Reduce => Ratio::from_integer(1),
            _ => Ratio::new(ranks - 1, ranks),
        }
    }
}

/// Whether the library chooses an algorithm for it: of others it has one.
const fn is_tuned(kind: CollectiveKind) -> bool {
    matches!(
        kind,
        CollectiveKind::Allreduce
            | CollectiveKind::Allgather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::Broadcast
            | CollectiveKind::Reduce
    )
}
