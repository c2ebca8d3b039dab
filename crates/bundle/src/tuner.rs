//! Advice for a runtime that runs no plan of anybody else's: which of its own algorithms to take at which sizes.
//!
//! The format is that of the configuration of NCCL's example tuner plugin (`ext-tuner/example`): one row for each range, the
//! first that matches counts; -1 leaves a choice to NCCL, and sizes without a row, too. A row has to name a protocol, and
//! simulations know none: so rows begin where messages are large enough for Simple, which is then NCCL's own choice.

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

/// Algorithms that NCCL has for a collective, as far as simulations know them.
pub const fn nccl_algorithms(collective: CollectiveKind) -> &'static [NcclAlgorithm] {
    match collective {
        CollectiveKind::Allreduce => &[NcclAlgorithm::Ring, NcclAlgorithm::Tree],
        _ => &[NcclAlgorithm::Ring],
    }
}

/// The rows of a tuner's configuration, with a head that says what they are. Greatest sizes are inclusive there.
pub fn tuner_csv(advice: &[Advice]) -> String {
    let mut text = String::from(
        "# advice for NCCL's own algorithms: it runs no plan of anybody else's, and none is here\n\
         # sizes without a row are left to NCCL; NCCL_ALGO must not be set, or this is not read\n\
         # collective,min,max,algorithm,protocol,channels,nodes,ranks,pipe ops,reg\n",
    );
    for Advice { collective, ranks, nodes, range, algorithm } in advice {
        let first = range.first().max(ADVICE_BYTES_MIN);
        let Some(word) = tuner_word(*collective).filter(|_| first <= range.last()) else { continue };
        let nodes = nodes.map_or("-1".to_owned(), |nodes| nodes.to_string());
        let (last, algorithm) = (range.last(), algorithm.name());
        text.push_str(&format!("{word},{first},{last},{algorithm},simple,-1,{nodes},{ranks},-1,-1\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_ten_columns_and_begin_where_protocols_do_not_decide() {
        let advice = |collective, first, end, algorithm| Advice {
            collective,
            ranks: 16,
            nodes: Some(2),
            range: ByteRange::new(first, end).unwrap(),
            algorithm,
        };
        let rows = [
            advice(CollectiveKind::Allreduce, 1, 1 << 20, NcclAlgorithm::Tree),
            advice(CollectiveKind::Allreduce, 1 << 10, (1 << 23) + 1, NcclAlgorithm::Tree),
            advice(CollectiveKind::Allreduce, (1 << 23) + 1, 1 << 30, NcclAlgorithm::Ring),
            Advice { nodes: None, ..advice(CollectiveKind::ReduceScatter, 1 << 21, 1 << 22, NcclAlgorithm::Ring) },
            advice(CollectiveKind::Gather, 1 << 21, 1 << 22, NcclAlgorithm::Ring),
        ];
        let text = tuner_csv(&rows);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "allreduce,1048576,8388608,tree,simple,-1,2,16,-1,-1",
                "allreduce,8388609,1073741823,ring,simple,-1,2,16,-1,-1",
                "reducescatter,2097152,4194303,ring,simple,-1,-1,16,-1,-1",
            ]
        );
        assert!(lines.iter().all(|line| line.split(',').count() == 10));
    }
}
