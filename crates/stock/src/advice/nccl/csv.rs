//! The table of NVIDIA's example tuner plugin, which RCCL reads without a plugin.
//!
//! The format is that of the configuration of NCCL's example tuner plugin (`ext-tuner/example`, NCCL 2.27 to 2.31): one row for
//! each range, the first that matches and whose algorithm NCCL has counts. The plugin answers one channel to every call
//! before it looks for a row, and -1 leaves it at that: so each row names channels, and the last rows of the table are there
//! for every collective, size and communicator. NCCL takes channels as a limit, and never more than it has set up.
//!
//! RCCL from 2.28.3 on reads the same ten columns without a plugin. There, -1 keeps its own channels, and a call without a
//! row is left to RCCL.
//!
//! Rows are what the library's own formulas choose ([`crate::nccl`]).

use std::fmt;

use canopy_schedule::CollectiveKind;

use super::{TUNED, channels_of, choices_with_fallback, csv_word, nccl_algorithms, tuner_word};
use crate::nccl::{Algorithm, Choice, Protocol, Stock};

/// Smallest message that RCCL is advised on, in bytes: of smaller ones protocols decide, and one alone is modelled.
pub const ADVICE_BYTES_MIN: u64 = 1 << 20;

/// A row of the ten columns. Where a number is `None`, the row has -1.
struct Row {
    word: &'static str,
    first: u64,
    last: u64,
    algorithm: Algorithm,
    protocol: Protocol,
    channels: Option<u32>,
    nodes: Option<u32>,
    ranks: Option<u64>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { word, first, last, algorithm, protocol, .. } = self;
        let number = |number: Option<u64>| number.map_or("-1".to_owned(), |number| number.to_string());
        let [channels, nodes, ranks] =
            [self.channels.map(u64::from), self.nodes.map(u64::from), self.ranks].map(number);
        let (algorithm, protocol) = (csv_word(*algorithm), protocol.name());
        writeln!(f, "{word},{first},{last},{algorithm},{protocol},{channels},{nodes},{ranks},-1,-1")
    }
}

/// Rows for every collective, size and communicator, by the formulas on these machines.
fn rest(stock: &Stock) -> String {
    // Whatever the communicator: one inside a machine may have more channels than one across several.
    let most = Some(stock.on(1).channels().max(stock.channels()));
    let mut text = String::new();
    for kind in TUNED {
        let Some(word) = tuner_word(kind) else { continue };
        let any = Row {
            word,
            first: 0,
            last: u64::MAX,
            algorithm: Algorithm::Ring,
            protocol: Protocol::Simple,
            channels: most,
            nodes: None,
            ranks: None,
        };
        for Choice { first, last, algorithm, protocol } in stock.choices_of(kind, nccl_algorithms(kind)) {
            text.push_str(&Row { first, last, algorithm, protocol, ..any }.to_string());
        }
        text.push_str(&any.to_string());
    }
    text
}

/// A table for the example tuner plugin by formulas alone: what is chosen for these collectives on each of the communicators,
/// then for every other call what is chosen on the largest of them. Upper sizes are inclusive.
pub fn nccl_csv(collectives: &[CollectiveKind], communicators: &[Stock]) -> String {
    let Some(widest) = communicators.iter().max_by_key(|stock| stock.ranks()) else { return String::new() };
    let mut text = format!(
        "# algorithms by the formulas of {}, on the machines of this network\n\
         # for NVIDIA's example tuner plugin (ext-tuner/example) of NCCL 2.27 to 2.31: set NCCL_TUNER_PLUGIN to the plugin\n\
         # the plugin gives a call without a row, or with -1 channels, one channel: so every call has a row with channels\n\
         # channels are an upper limit: NCCL uses at most those it has set up; leave NCCL_ALGO unset\n\
         # collective,min,max,algorithm,protocol,channels,nodes,ranks,pipe ops,reg\n",
        widest.version(),
    );
    for stock in communicators {
        for &kind in collectives {
            let Some(word) = tuner_word(kind) else { continue };
            for Choice { first, last, algorithm, protocol } in choices_with_fallback(stock, kind) {
                let (nodes, ranks) = (Some(stock.nodes()), Some(stock.ranks()));
                let channels = Some(channels_of(stock, algorithm));
                text.push_str(&Row { word, first, last, algorithm, protocol, channels, nodes, ranks }.to_string());
            }
        }
    }
    text.push_str(&rest(widest));
    text
}

/// A table for RCCL by its formulas, which cover its simple protocol: rows begin at [`ADVICE_BYTES_MIN`], keep RCCL's own
/// channels, and are for these communicators alone. Upper sizes are inclusive.
pub fn rccl_csv(collectives: &[CollectiveKind], communicators: &[Stock]) -> String {
    let mut text = "# algorithms by RCCL's own formulas, on the machines of this network: set NCCL_TUNER_CONFIG_FILE to this file\n\
         # it takes the place of AMD's table for these GPUs; smaller messages and other calls are left to RCCL\n\
         # collective,min,max,algorithm,protocol,channels,nodes,ranks,pipe ops,reg\n"
        .to_owned();
    for stock in communicators {
        for &kind in collectives {
            let Some(word) = tuner_word(kind) else { continue };
            for Choice { first, last, algorithm, protocol } in stock.choices(kind) {
                let first = first.max(ADVICE_BYTES_MIN);
                if first > last {
                    continue;
                }
                let (channels, nodes, ranks) = (None, Some(stock.nodes()), Some(stock.ranks()));
                text.push_str(&Row { word, first, last, algorithm, protocol, channels, nodes, ranks }.to_string());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
