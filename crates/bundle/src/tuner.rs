//! Advice for a runtime that cannot load external plans: which of its own algorithms to use at which sizes.
//!
//! The format is that of the configuration of NCCL's example tuner plugin (`ext-tuner/example`, NCCL 2.27 to 2.31): one row for
//! each range, the first that matches and whose algorithm NCCL has counts. The plugin answers one channel to every call
//! before it looks for a row, and -1 leaves it at that: so each row names channels, and the last rows of the table are there
//! for every collective, size and communicator. NCCL takes channels as a limit, and never more than it has set up.
//!
//! A row must name a protocol, but simulations do not distinguish protocols: they advise on messages large enough for
//! Simple. For all others the rows are what NCCL's own formulas choose (`crates/nccl`).

use canopy_nccl::{Algorithm, Choice, Stock};
use canopy_schedule::CollectiveKind;

use crate::range::ByteRange;

/// Smallest message that is advised on, in bytes: protocols decide over smaller ones.
pub const ADVICE_BYTES_MIN: u64 = 1 << 20;

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
    pub algorithm: Algorithm,
    /// Channels of the communicator, at most.
    pub channels: u32,
}

/// Channels of NVLink SHARP.
const NVLS_CHANNELS: u32 = 16;
/// Smallest allreduce for which it is named, in bytes.
const NVLS_BYTES_MIN: u64 = 4 << 20;
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
pub const fn nccl_algorithms(collective: CollectiveKind) -> &'static [Algorithm] {
    match collective {
        CollectiveKind::Allreduce => &[Algorithm::Ring, Algorithm::Tree],
        _ => &[Algorithm::Ring],
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
/// the machines, and a ring of each collective for all sizes.
pub fn tuner_csv(advice: &[Advice], stock: &Stock) -> String {
    let channels = stock.channels();
    let mut text = format!(
        "# tuner advice for NCCL's own algorithms: NCCL cannot load external plans, so this folder has none\n\
         # for NVIDIA's example tuner plugin (ext-tuner/example) of NCCL 2.27 to 2.31: set NCCL_TUNER_PLUGIN to the plugin\n\
         # the plugin gives a call without a row, or with -1 channels, one channel: so every call has a row with channels\n\
         # channels are an upper limit: {channels} for {} ranks on {} nodes; NCCL uses at most those it has set up\n\
         # rows with nodes and ranks come from simulation, the others from NCCL's formulas; leave NCCL_ALGO unset\n\
         # collective,min,max,algorithm,protocol,channels,nodes,ranks,pipe ops,reg\n",
        stock.ranks(),
        stock.nodes(),
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
    let most = stock.on(1).channels().max(channels);
    for kind in ASKED {
        let Some(word) = tuner_word(kind) else { continue };
        for Choice { first, last, algorithm, protocol } in stock.choices_of(kind, nccl_algorithms(kind)) {
            let (algorithm, protocol) = (algorithm.name(), protocol.name());
            text.push_str(&format!("{word},{first},{last},{algorithm},{protocol},{most},-1,-1,-1,-1\n"));
        }
        text.push_str(&format!("{word},0,{},ring,simple,{most},-1,-1,-1,-1\n", u64::MAX));
    }
    text
}

#[cfg(test)]
mod tests;
