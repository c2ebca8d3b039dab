//! Bounds if switches do more than a network has plans count on: multicast and add up for a runtime.

use canopy_planner::{PlanError, proven_bound};
use canopy_schedule::{Collective, Shares};
use canopy_stock::nccl::{Algorithm, with_collnet};
use canopy_synth::Stop;
use canopy_topology::{Rate, Topology};

use crate::output::AlgbwSummary;

/// Condition of a bound where switches could do more.
pub(crate) const IF_FORWARDING: &str = " if switches only forward";

/// The bound if NVSwitches multicast and add up, and how a network is planned for it.
pub(crate) fn bound_in_words(with_nvls: &AlgbwSummary) -> String {
    let gigabytes = with_nvls.gigabytes;
    format!(
        "{gigabytes} GB/s is the bound if NVSwitches multicast and add; plan for it with `nvls=true`, or `multicast: true, \
         aggregate: true` of the switches in a file"
    )
}

/// The most that stock algorithms can reach on a network, whatever their formulas say.
#[derive(Clone, Debug)]
pub(crate) struct Ceilings {
    /// Of switches as the network has them.
    plain: Rate,
    /// With NVSwitches that multicast and add up, where that is more.
    nvls: Option<Rate>,
    /// With all switches doing so, where a library has them.
    all: Option<Rate>,
}

impl Ceilings {
    /// Those of a collective whose bound is `plain`, and `nvls` with NVSwitches that add up, where that is more.
    ///
    /// # Errors
    /// As [`proven_bound`].
    pub(crate) fn of(
        topology: &Topology,
        (collective, shares): (Collective, &Shares),
        (plain, nvls): (&Rate, Option<&Rate>),
        has_collnet: bool,
        stop: &dyn Stop,
    ) -> Result<Self, PlanError> {
        let all = match with_collnet(topology).filter(|_| has_collnet) {
            Some(capable) => Some(proven_bound(&capable, collective, shares, stop)?.upper),
            None => None,
        };
        Ok(Self { plain: plain.clone(), nvls: nvls.cloned(), all })
    }

    /// That of an algorithm.
    pub(crate) fn of_algorithm(&self, algorithm: Algorithm) -> &Rate {
        let nvls = self.nvls.as_ref().unwrap_or(&self.plain);
        match algorithm {
            Algorithm::Nvls | Algorithm::NvlsTree => nvls,
            Algorithm::CollNetDirect | Algorithm::CollNetChain => self.all.as_ref().unwrap_or(nvls),
            Algorithm::Ring | Algorithm::Tree | Algorithm::Pat => &self.plain,
        }
    }
}
