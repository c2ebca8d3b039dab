//! Stock NCCL and RCCL on the machines that a network names.

use std::fmt;

use canopy_canonical::boxes;
use canopy_schedule::CollectiveKind;
use canopy_stock::nccl::{Algorithm, Maker, Protocol, Seen, Stock, Timed, Version};
use canopy_synth::Stop;
use canopy_topology::{Rate, Topology};

use crate::exit::{Failure, words};
use crate::material::Material;
use crate::nvls::Ceilings;

/// A message of which latencies are no part.
pub(crate) const LARGE_BYTES: u64 = 16 << 30;

/// Smallest message across machines for which RCCL's formulas give a time: what they take off smaller ones makes it choose,
/// and says nothing of times.
const RCCL_BYTES_MIN: u64 = 512 << 20;

const PS_PER_SEC: u64 = 1_000_000_000_000;

/// A library as it is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    /// `None`: the newest that runs on the machines, NCCL on those of NVIDIA and RCCL on those of AMD.
    pub(crate) version: Option<Version>,
    /// Whether it has switches of the network add up.
    pub(crate) has_collnet: bool,
}

impl Library {
    /// This release of it.
    pub(crate) fn of(self, stock: &Stock) -> Self {
        Self { version: Some(stock.version()), ..self }
    }
}

/// `NCCL 2.30`, `NCCL 2.30 with CollNet`, `NCCL or RCCL`.
impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{version}")?,
            None => f.write_str("NCCL or RCCL")?,
        }
        f.write_str(if self.has_collnet { " with CollNet" } else { "" })
    }
}

/// The model of a library, and the machines that it sees. Errors say in words why there is no model.
pub(crate) fn stock_of(library: Library, topology: &Topology) -> Result<(Stock, Seen), String> {
    let mut seen = Seen::of(topology, &boxes(topology)).map_err(|unseen| unseen.to_string())?;
    seen.machine.has_collnet = library.has_collnet;
    let stock = seen.stock(library.version).map_err(|missing| missing.to_string())?;
    Ok((stock, seen))
}

/// Why there is no model, and what to do about it.
pub(crate) fn no_model(library: Library, reason: &str, topology: &Topology) -> Failure {
    let is_of_amd = Seen::of(topology, &boxes(topology)).is_ok_and(|seen| matches!(seen.maker, Maker::Amd(_)));
    let help = if is_of_amd && library.version != Some(Version::Rccl2_21) {
        "use rccl-2.21, or `--to rccl` for a table"
    } else {
        "compose the network with `canopy network compose`, or add `box` to its ranks"
    };
    Failure::input(format!("{library} has no model of this network: {reason}")).help(help)
}

/// A library on the machines of a plan's network: what it takes for the plan's collective, and how long that takes.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) library: Library,
    pub(crate) stock: Stock,
    pub(crate) seen: Seen,
    ceilings: Ceilings,
    kind: CollectiveKind,
}

/// What is taken for a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) algorithm: Algorithm,
    pub(crate) protocol: Protocol,
    pub(crate) time_ps: u64,
    /// By formulas alone, where the network carries less.
    pub(crate) formula_ps: Option<u64>,
}

impl Model {
    /// The library beside a plan whose bound is `nvls` if NVSwitches add up, where that is more. Errors say in words why there is no model.
    pub(crate) fn of(library: Library, plan: &Material, nvls: Option<&Rate>, stop: &dyn Stop) -> Result<Self, String> {
        let (stock, seen) = stock_of(library, &plan.topology)?;
        let collective = plan.schedule.collective;
        let kind = collective.kind();
        if stock.choice(kind, LARGE_BYTES).is_none() {
            return Err(format!("it does not tune {kind}"));
        }
        let shares = plan.promised_shares();
        let bounds = (&plan.bound.upper, nvls);
        let ceilings = Ceilings::of(&plan.topology, (collective, &shares), bounds, library.has_collnet, stop);
        let ceilings = ceilings.map_err(|error| words(&error))?;
        Ok(Self { library: library.of(&stock), stock, seen, ceilings, kind })
    }

    /// What it takes for a message, and the time: by its formulas, but no shorter than the network allows. `None` where
    /// formulas give no time.
    pub(crate) fn taken(&self, bytes: u64) -> Option<Taken> {
        let is_rccl = self.stock.version() == Version::Rccl2_21;
        if is_rccl && self.seen.nodes > 1 && bytes < RCCL_BYTES_MIN {
            return None;
        }
        let Timed { algorithm, protocol, time_ps } = self.stock.choice(self.kind, bytes)?;
        let formula_ps = u64::try_from(time_ps).unwrap_or(u64::MAX);
        let least_ps = transfer_ps(self.ceilings.of_algorithm(algorithm), bytes).unwrap_or(0);
        let is_limited = least_ps > formula_ps;
        let time_ps = formula_ps.max(least_ps);
        Some(Taken { algorithm, protocol, time_ps, formula_ps: is_limited.then_some(formula_ps) })
    }

    /// The rate that it reaches with large messages.
    pub(crate) fn rate(&self) -> Option<Rate> {
        let picoseconds = self.taken(LARGE_BYTES)?.time_ps.max(1);
        Rate::new(u128::from(LARGE_BYTES) * u128::from(PS_PER_SEC), picoseconds)
    }

    /// The most that what it takes for large messages could reach.
    pub(crate) fn ceiling(&self) -> Option<&Rate> {
        Some(self.ceilings.of_algorithm(self.taken(LARGE_BYTES)?.algorithm))
    }

    /// The time of a plan if the library ran it: with its latencies for each hop, and the plan's rate. `None` of a plan that
    /// moves nothing.
    pub(crate) fn plan_time_ps(&self, rate: &Rate, depth: u32, bytes: u64) -> Option<u64> {
        let (base_ns, hop_ns) = self.stock.latencies_ns();
        let latency_ps = base_ns.saturating_add(u64::from(depth).saturating_mul(hop_ns)).saturating_mul(1_000);
        Some(latency_ps.saturating_add(transfer_ps(rate, bytes)?))
    }
}

/// The time of so many bytes at a rate.
fn transfer_ps(rate: &Rate, bytes: u64) -> Option<u64> {
    if rate.is_zero() {
        return None;
    }
    let (numerator, denominator) = rate.parts();
    Some(u64::try_from(denominator * bytes * PS_PER_SEC / numerator).unwrap_or(u64::MAX))
}
