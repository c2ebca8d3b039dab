//! Advice for a runtime that cannot load external plans: which of its own algorithms to use at which sizes.
//!
//! The format is that of the configuration of NCCL's example tuner plugin (`ext-tuner/example`, NCCL 2.27 to 2.31): one row for
//! each range, the first that matches and whose algorithm NCCL has counts. The plugin answers one channel to every call
//! before it looks for a row, and -1 leaves it at that: so each row names channels, and the last rows of the table are there
//! for every collective, size and communicator. NCCL takes channels as a limit, and never more than it has set up.
//!
//! A row must name a protocol, but simulations do not distinguish protocols: they advise on messages large enough for
//! Simple. For all others the rows are what NCCL's own formulas choose (`own`).

mod own;

use canopy_schedule::CollectiveKind;

use crate::range::ByteRange;

/// Smallest message that is advised on, in bytes: protocols decide over smaller ones.
pub const ADVICE_BYTES_MIN: u64 = 1 << 20;

/// An algorithm of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NcclAlgorithm {
    /// One ring through all ranks.
    Ring,
    /// Two trees, up and down.
    Tree,
}

impl NcclAlgorithm {
    /// NCCL's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Tree => "tree",
        }
    }
}

/// What to take for some sizes of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What is called.
    pub collective: CollectiveKind,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Its machines, where they are known.
    pub nodes: Option<u32>,
    /// The sizes.
    pub range: ByteRange,
    /// What to take.
    pub algorithm: NcclAlgorithm,
    /// Channels of the communicator, at most.
    pub channels: u32,
}

/// What NCCL sees of a communicator's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcclNetwork {
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Its machines, ≥ 1; each rank is one where boxes are not known.
    pub nodes: u32,
    /// NICs of a machine.
    pub nics: u32,
    /// Rate of a NIC in bytes per second.
    pub nic_bytes_per_sec: u64,
    /// Rate of a GPU's links inside its machine in bytes per second; 0 where it has none.
    pub inside_bytes_per_sec: u64,
}

/// Most channels of a communicator that NCCL has ever.
const CHANNELS_MAX: u32 = 64;
/// Channels of NVLink SHARP.
const NVLS_CHANNELS: u32 = 16;
/// Smallest allreduce for which it is named, in bytes.
const NVLS_BYTES_MIN: u64 = 4 << 20;
/// Rate of a ring inside a box, and most rings there, on GPUs of the A100's generation and of the next.
const RING_BYTES_PER_SEC: u64 = 20_000_000_000;
const RINGS_INSIDE_MAX: u64 = 12;
/// NICs that are faster have their few channels doubled twice.
const FAST_NIC_BYTES_PER_SEC: u64 = 45_000_000_000;
const FEW_CHANNELS: u32 = 16;

impl NcclNetwork {
    /// Channels that NCCL sets up: two for each ring. Inside one machine there are as many rings as the links of a GPU carry,
    /// across machines one for each NIC: 24 in a DGX A100 or H100, 16 across several.
    pub fn channels(&self) -> u32 {
        let channels = if self.nodes <= 1 {
            let rings = (self.inside_bytes_per_sec / RING_BYTES_PER_SEC).clamp(1, RINGS_INSIDE_MAX);
            2 * u32::try_from(rings).unwrap_or(1)
        } else {
            let twice = self.nics.max(1).saturating_mul(2);
            let is_doubled = self.nic_bytes_per_sec > FAST_NIC_BYTES_PER_SEC && twice < FEW_CHANNELS;
            if is_doubled { twice * 2 } else { twice }
        };
        channels.clamp(2, CHANNELS_MAX)
    }

    /// What all rings carry together, in bytes per second.
    fn bus_bytes_per_sec(&self) -> u64 {
        let across = u64::from(self.nics.max(1)).saturating_mul(self.nic_bytes_per_sec);
        let rate = match (self.nodes <= 1, self.inside_bytes_per_sec) {
            (true, 0) | (false, 0) => across,
            (true, inside) => inside,
            (false, inside) => across.min(inside),
        };
        rate.max(1)
    }
}

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

/// NCCL's algorithms for a collective that simulations cover.
pub const fn nccl_algorithms(collective: CollectiveKind) -> &'static [NcclAlgorithm] {
    match collective {
        CollectiveKind::Allreduce => &[NcclAlgorithm::Ring, NcclAlgorithm::Tree],
        _ => &[NcclAlgorithm::Ring],
    }
}

/// Collectives that the tuner is asked about.
const ASKED: [CollectiveKind; 5] = [
    CollectiveKind::Allreduce,
    CollectiveKind::Allgather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
];

/// The rows of a tuner configuration after a comment header. Upper sizes are inclusive.
///
/// Advice comes first, for communicators of its ranks and machines. Then follow, for every other call, what NCCL's formulas choose on
/// `network`, and a ring of each collective for all sizes.
pub fn tuner_csv(advice: &[Advice], network: &NcclNetwork) -> String {
    let channels = network.channels();
    let mut text = format!(
        "# tuner advice for NCCL's own algorithms: NCCL cannot load external plans, so this folder has none\n\
         # for NVIDIA's example tuner plugin (ext-tuner/example) of NCCL 2.27 to 2.31: set NCCL_TUNER_PLUGIN to the plugin\n\
         # the plugin gives a call without a row, or with -1 channels, one channel: so every call has a row with channels\n\
         # channels are an upper limit: {channels} for {} ranks on {} nodes; NCCL uses at most those it has set up\n\
         # rows with nodes and ranks come from simulation, the others from NCCL's formulas; leave NCCL_ALGO unset\n\
         # collective,min,max,algorithm,protocol,channels,nodes,ranks,pipe ops,reg\n",
        network.ranks, network.nodes,
    );
    // Where switches of NVLink add up, nothing else comes near; elsewhere NCCL has no such algorithm, and the plugin passes on.
    for (nodes, algorithm) in [(1, "nvls"), (2, "nvls_tree")] {
        text.push_str(&format!(
            "allreduce,{NVLS_BYTES_MIN},{},{algorithm},simple,{NVLS_CHANNELS},{nodes},-1,-1,-1\n",
            u64::MAX
        ));
    }
    for Advice { collective, ranks, nodes, range, algorithm, channels } in advice {
        let first = range.first().max(ADVICE_BYTES_MIN);
        let Some(word) = tuner_word(*collective).filter(|_| first <= range.last()) else { continue };
        let nodes = nodes.map_or("-1".to_owned(), |nodes| nodes.to_string());
        let (last, algorithm) = (range.last(), algorithm.name());
        text.push_str(&format!("{word},{first},{last},{algorithm},simple,{channels},{nodes},{ranks},-1,-1\n"));
    }
    // Whatever the communicator: one inside a machine may have more channels than one across several.
    let most = NcclNetwork { nodes: 1, ..*network }.channels().max(channels);
    for kind in ASKED {
        let Some(word) = tuner_word(kind) else { continue };
        for own::Choice { first, last, algorithm, protocol } in own::choices(kind, network) {
            let (algorithm, protocol) = (algorithm.name(), protocol.name());
            text.push_str(&format!("{word},{first},{last},{algorithm},{protocol},{most},-1,-1,-1,-1\n"));
        }
        text.push_str(&format!("{word},0,{},ring,simple,{most},-1,-1,-1,-1\n", u64::MAX));
    }
    text
}

#[cfg(test)]
mod tests;
