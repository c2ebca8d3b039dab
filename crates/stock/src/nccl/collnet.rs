//! CollNet: switches of the network add up, as SHARP does.
//!
//! NCCL takes it where a plugin of the fabric offers it, `NCCL_COLLNET_ENABLE=1` is set, and machines have at most eight GPUs. Allgather and
//! reduce-scatter, and all of it from 2.31 on, take a NIC for each GPU.
//!
//! Source: `src/graph/tuning.cc` of NCCL 2.21 to 2.30 and `src/tuning/` of 2.31.

use canopy_schedule::CollectiveKind;

use crate::nccl::channels::{collnet, nvls, trees};
use crate::nccl::machine::Generation;
use crate::nccl::tuning::{Bandwidth, Call, Cost, part, whole};

/// Most GPUs of a machine.
const GPUS_MAX: u32 = 8;
/// Latencies in ns: a step inside, and the one between machines.
const DIRECT_NS: [u64; 2] = [3_700, 31_000];
const CHAIN_NS: [u64; 2] = [2_800, 30_000];
/// For each other GPU of a machine, as they take turns.
const TURN_NS: u64 = 400;
/// The step of NVLS between machines.
const NVLS_ACROSS_NS: u64 = 18_000;

impl Call<'_> {
    fn has_collnet(&self) -> bool {
        let machine = self.machine;
        let may_share_nics = self.kind == CollectiveKind::Allreduce && !self.release.collnet_takes_all_nics;
        let has_nics = machine.gpus <= machine.nics || may_share_nics;
        self.is_across() && machine.has_collnet && machine.gpus <= GPUS_MAX && has_nics
    }

    fn other_gpus(&self) -> u64 {
        u64::from(self.machine.gpus.max(1) - 1)
    }

    /// With the doubled latency that a plugin states.
    fn collnet_latency_ns(&self, inside_ns: u64, across_ns: u64) -> u64 {
        2 * inside_ns + across_ns + 2 * self.machine.network_ns
    }

    /// Allreduce, allgather and reduce-scatter; among several GPUs it takes an NVSwitch.
    pub(crate) fn collnet_direct(&self) -> Option<Cost> {
        let is_switched = self.machine.has_nvlink || self.machine.gpus <= 1;
        if !self.has_collnet() || !is_switched {
            return None;
        }
        let heads = collnet(self.machine, self.release)?;
        let algbw: Bandwidth = match self.kind {
            CollectiveKind::Allreduce => {
                let reached = if self.machine.generation >= Generation::Hopper { 85_u8 } else { 100 };
                // Where GPUs share NICs, half of what is missing counts.
                let shared = part(2 * heads.count, self.machine.gpus + heads.count);
                whole(heads.count) * whole(heads.inside) * shared * part(reached, 200_u8)
            }
            CollectiveKind::Allgather | CollectiveKind::ReduceScatter => {
                whole(heads.count) * whole(heads.inside).min(whole(heads.outside) * part(9_u8, 10_u8))
            }
            _ => return None,
        };
        let [inside_ns, across_ns] = DIRECT_NS;
        let others = self.other_gpus();
        let latency_ns = self.collnet_latency_ns(others.min(1) * inside_ns + others * TURN_NS, across_ns);
        Some(Cost { latency_ns, algbw })
    }

    /// Allreduce only; as many chains as rings.
    pub(crate) fn collnet_chain(&self) -> Option<Cost> {
        if !self.has_collnet() || self.kind != CollectiveKind::Allreduce {
            return None;
        }
        let chains = trees(self.machine, true, self.release)?;
        let algbw = whole(u64::from(chains.count) * chains.inside) * part(1_u8, 2_u8);
        let [inside_ns, across_ns] = CHAIN_NS;
        Some(Cost { latency_ns: self.collnet_latency_ns(self.other_gpus() * inside_ns, across_ns), algbw })
    }

    /// NVLS in each machine, and CollNet between them.
    pub(crate) fn nvls_collnet(&self) -> Option<Cost> {
        if !self.has_collnet() {
            return None;
        }
        let heads = nvls(self.machine, true, self.release)?;
        let (count, outside) = (whole(heads.count), whole(heads.outside));
        let is_allreduce = self.kind == CollectiveKind::Allreduce;
        let algbw = if !is_allreduce {
            let inside = whole(heads.inside) * part(self.other_gpus(), self.machine.gpus);
            count * inside.min(outside * part(9_u8, 10_u8))
        } else if self.release.has_nvls_efficiency {
            let of_head = self.nvls_inside(heads.count, heads.inside).min(outside);
            count * of_head * part(self.ranks(), self.steps().0)
        } else {
            count * whole(heads.inside).min(outside) * part(5_u8, 6_u8)
        };
        let across_ns = NVLS_ACROSS_NS + 2 * self.machine.network_ns;
        Some(Cost { latency_ns: self.release.nvls_base_ns + crate::nccl::tables::NVLS_NS + across_ns, algbw })
    }
}
