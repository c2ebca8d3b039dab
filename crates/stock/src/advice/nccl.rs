//! Formats of NCCL and its relatives.

mod coll_config;
mod csv;
mod ncclx;

use canopy_schedule::CollectiveKind;

use crate::nccl::{Algorithm, Choice, Stock};

pub use coll_config::{CollConfig, coll_config_header, coll_config_json, coll_configs};
pub use csv::{ADVICE_BYTES_MIN, nccl_csv, rccl_csv};
pub use ncclx::ncclx_csv;

/// Collectives that NCCL tunes: of others it has one algorithm.
pub const TUNED: [CollectiveKind; 5] = [
    CollectiveKind::Allreduce,
    CollectiveKind::Allgather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
];

/// NCCL's word for a collective that its tuner is asked about; `None` for one it is not.
pub const fn tuner_word(collective: CollectiveKind) -> Option<&'static str> {
    match collective {
        CollectiveKind::Allgather => Some("allgather"),
        CollectiveKind::ReduceScatter => Some("reducescatter"),
        CollectiveKind::Allreduce => Some("allreduce"),
        CollectiveKind::Broadcast => Some("broadcast"),
        CollectiveKind::Reduce => Some("reduce"),
        CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll => None,
    }
}

/// NCCL's algorithms for a collective that run on any network, without switches that add up.
pub const fn nccl_algorithms(collective: CollectiveKind) -> &'static [Algorithm] {
    match collective {
        CollectiveKind::Allreduce => &[Algorithm::Ring, Algorithm::Tree],
        _ => &[Algorithm::Ring],
    }
}

/// The word for an algorithm in tables of tuners.
const fn csv_word(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::NvlsTree => "nvls_tree",
        Algorithm::CollNetDirect => "collnet_direct",
        Algorithm::CollNetChain => "collnet_chain",
        other => other.name(),
    }
}

/// Channels that an algorithm has at most on these machines.
fn channels_of(stock: &Stock, algorithm: Algorithm) -> u32 {
    match algorithm {
        Algorithm::Nvls | Algorithm::NvlsTree => stock.nvls_channels(),
        _ => stock.channels(),
    }
}

/// What is chosen for a call on these machines: first of all algorithms. If some of them need switches that add up or a
/// single GPU in each machine, what would be chosen without them follows, for the same sizes.
fn choices_with_fallback(stock: &Stock, collective: CollectiveKind) -> Vec<Choice> {
    let mut choices = stock.choices(collective);
    let plain = nccl_algorithms(collective);
    if choices.iter().any(|choice| !plain.contains(&choice.algorithm)) {
        choices.extend(stock.choices_of(collective, plain));
    }
    choices
}
