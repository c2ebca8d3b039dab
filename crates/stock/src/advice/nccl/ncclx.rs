//! The table of NCCLX's tuner, which is built into the library: `NCCLX_TUNER_CONFIG_FILE`.
//!
//! The first row that matches and whose algorithm the library has counts; a call without a row is left to the library. The
//! size of a row is an interval of bytes per rank: the whole message divided by the ranks and rounded down, for an
//! allreduce too. -1 keeps the library's own channels. A single bad row fails every communicator.

use canopy_schedule::CollectiveKind;

use super::{choices_with_fallback, csv_word, tuner_word};
use crate::nccl::{Choice, Stock};

/// A table for NCCLX by the formulas of NCCL: what is chosen for these collectives on each of the communicators.
///
/// Bounds are rounded up to whole bytes per rank. The name of the file must not end in `.json`.
pub fn ncclx_csv(collectives: &[CollectiveKind], communicators: &[Stock]) -> String {
    let mut text = "# algorithms by the formulas of NCCL, on the machines of this network: set NCCLX_TUNER_CONFIG_FILE to this file\n\
         # sizes are whole messages divided by the ranks; other calls are left to the library\n\
         # collective,bytes per rank,algorithm,protocol,channels,nodes,ranks per node\n"
        .to_owned();
    for stock in communicators {
        let ranks = stock.ranks().max(1);
        let (nodes, of_node) = (stock.nodes(), ranks / u64::from(stock.nodes().max(1)));
        for &kind in collectives {
            let Some(word) = tuner_word(kind) else { continue };
            for Choice { first, last, algorithm, protocol } in choices_with_fallback(stock, kind) {
                let first = first.div_ceil(ranks);
                let interval = match last {
                    u64::MAX => format!("[{first},)"),
                    _ => format!("[{first},{})", (last + 1).div_ceil(ranks)),
                };
                let (algorithm, protocol) = (csv_word(algorithm), protocol.name());
                // With so many ranks that a range is less than a byte of each, it is empty, which would be an error.
                if last == u64::MAX || first < (last + 1).div_ceil(ranks) {
                    text.push_str(&format!("{word},{interval},{algorithm},{protocol},-1,{nodes},{of_node}\n"));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
