//! The tables of all profiles, from the sources of the runtimes.
//!
//! microsoft/msccl `b23e9cd`, Azure/msccl-executor-nccl `c6f6b36`, ROCm/rccl `0cbce2a`: limits from `msccl.h` and
//! `msccl_struct.h`, spellings and mandatory attributes from the parsers, selection from `msccl_lifecycle.cc`.

use canopy_schedule::CollectiveKind;

use super::{ByteRange, PlacementRule, ProfileLimits, Queue, Selection, SelectionOrder};
use crate::msccl::program::Operation;

/// Simple moves half of its eight 512 KiB slots at a time, LL and LL128 one slot.
const QUEUES: [Queue; 3] = [
    Queue { transfer_bytes: 2 << 20, slots: 2 },
    Queue { transfer_bytes: 32 << 10, slots: 8 },
    Queue { transfer_bytes: 576_000, slots: 8 },
];

/// Executor and RCCL read the same words.
const COLLECTIVES_LATER: &[(CollectiveKind, &str)] = &[
    (CollectiveKind::Allgather, "allgather"),
    (CollectiveKind::ReduceScatter, "reducescatter"),
    (CollectiveKind::Allreduce, "allreduce"),
    (CollectiveKind::Broadcast, "broadcast"),
    (CollectiveKind::Reduce, "reduce"),
    (CollectiveKind::Gather, "gather"),
    (CollectiveKind::Scatter, "scatter"),
    (CollectiveKind::AllToAll, "alltoall"),
];

/// Point-to-point calls have no meaning for a whole communicator, and the counts of `alltoallv` are the call's.
const UNJUDGED_LATER: &[&str] = &["send", "recv", "alltoallv"];

/// Executor and RCCL refuse a file without these.
const REQUIRED_LATER: &[&str] = &["outofplace", "minBytes", "maxBytes"];

pub(super) const MSCCL: ProfileLimits = ProfileLimits {
    steps_per_block: 256,
    blocks_per_rank: 216,
    channels: 32,
    peers_per_channel: 32,
    chunks_per_step: 71,
    fused_reductions: 16,
    nodes: 4095,
    children: 1024,
    dependency_block: 127,
    offset: 32767,
    name_length: 63,
    rounds: 65535,
    byte_range: ByteRange::Exclusive { default: 1 << 27 },
    placement: PlacementRule::InPlaceEquals,
    required: &["name"],
    operations: &Operation::ALL,
    blocks_resident: 108,
    queues: QUEUES,
    collectives: &[
        (CollectiveKind::Allgather, "allgather"),
        (CollectiveKind::ReduceScatter, "reduce_scatter"),
        (CollectiveKind::Allreduce, "allreduce"),
        (CollectiveKind::Broadcast, "broadcast"),
        (CollectiveKind::Reduce, "reduce"),
        (CollectiveKind::AllToAll, "alltoall"),
    ],
    collective_words: "allgather, reduce_scatter, allreduce, broadcast, reduce, alltoall or custom",
    collectives_unjudged: &["custom"],
    selection: Selection {
        variables: &["MSCCL_CONFIG", "MSCCL_XML_FILES", "NCCL_ALGO"],
        files_max: 4,
        order: SelectionOrder::Listed,
        explanation: "NCCL_ALGO must include MSCCL. Of the first 4 files in MSCCL_XML_FILES, separated by colons, the \
                      runtime uses the first with the `coll`, `ngpus` and `inplace` of the call and with minBytes ≤ \
                      size < maxBytes (2^27 if absent). With MSCCL_CONFIG, only the ranges of its <load> elements \
                      count",
    },
};

pub(super) const MSCCL_EXECUTOR: ProfileLimits = ProfileLimits {
    steps_per_block: 64,
    blocks_per_rank: 1024,
    byte_range: ByteRange::Inclusive,
    placement: PlacementRule::BothFlags,
    required: REQUIRED_LATER,
    collectives: COLLECTIVES_LATER,
    collective_words: "allgather, reducescatter, allreduce, broadcast, reduce, gather, scatter, alltoall, alltoallv, \
                       send or recv",
    collectives_unjudged: UNJUDGED_LATER,
    selection: Selection {
        variables: &["NCCL_MSCCL_ENABLE", "MSCCL_ALGO_DIR", "MSCCL_SCHEDULER"],
        files_max: 1024,
        order: SelectionOrder::Sorted,
        explanation: "The runtime uses the first file, by path, in MSCCL_ALGO_DIR (else msccl-algorithms beside the \
                      library) with the `coll` and `ngpus` of the call, whose `inplace` or `outofplace` admits the \
                      call, whose nchunksperloop divides its count and with minBytes ≤ size ≤ maxBytes (a maxBytes of \
                      0 is no limit). Any other file in that folder makes initialisation fail",
    },
    ..MSCCL
};

pub(super) const RCCL_MSCCL: ProfileLimits = ProfileLimits {
    blocks_per_rank: 64,
    channels: 128,
    dependency_block: 63,
    // The shipped kernels are reduced (since January 2024): a launch with any other operation fails.
    operations: &[Operation::Send, Operation::Receive, Operation::Copy, Operation::Reduce, Operation::Nop],
    queues: [
        Queue { transfer_bytes: 2 << 20, slots: 2 },
        Queue { transfer_bytes: 16 << 10, slots: 8 },
        Queue { transfer_bytes: 50_176, slots: 8 },
    ],
    selection: Selection {
        variables: &["RCCL_MSCCL_ENABLE", "RCCL_MSCCL_FORCE_ENABLE", "MSCCL_ALGO_DIR"],
        files_max: 1024,
        order: SelectionOrder::Directory,
        explanation: "On machine models known to RCCL, or with RCCL_MSCCL_FORCE_ENABLE=1, the runtime uses the first \
                      file, in the order of the folder, in MSCCL_ALGO_DIR (else ../share/rccl/msccl-algorithms) with \
                      the `coll` and `ngpus` of the call, whose `inplace` or `outofplace` admits the call, whose \
                      nchunksperloop divides its count and with minBytes ≤ size ≤ maxBytes (a maxBytes of 0 is no \
                      limit)",
    },
    ..MSCCL_EXECUTOR
};
