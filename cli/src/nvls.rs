//! Bounds if switches do more than a network has plans count on: multicast and add up for a runtime.

use canopy_nccl::{Algorithm, with_collnet, with_nvls};
use canopy_planner::{PlanError, proven_bound};
use canopy_schedule::{Bound, Collective, CollectiveKind, Shares};
use canopy_synth::Stop;
use canopy_topology::{Rate, Topology};

/// Says how a network is planned for switches that add up.
pub(crate) const NVLS_REMEDY: &str =
    "plan for it with `nvls=true`, or `multicast: true, aggregate: true` of the switches in a file";

/// The bound if NVSwitches multicast and add up, as runtimes from NVLink 4 on have them do (NVLS); `None` if that is no
/// faster than the bound `plain`, or there are no such switches.
///
/// # Errors
/// As [`proven_bound`].
pub(crate) fn bound_with_nvls(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    plain: &Rate,
    stop: &dyn Stop,
) -> Result<Option<Bound>, PlanError> {
    // All others are bounded by cuts, over which everything passes once, whatever switches do.
    if collective.kind() != CollectiveKind::Allreduce {
        return Ok(None);
    }
    let Some(capable) = with_nvls(topology) else { return Ok(None) };
    let found = proven_bound(&capable, collective, shares, stop)?;
    Ok(Some(found).filter(|found| found.upper > *plain))
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
