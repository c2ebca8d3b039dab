//! Requests that are refused, with the words a person reads, and the shape of what is made.

use canopy_schedule::{Action, Batch, Collective, CollectiveKind, Pace, RouteTable, Shares, Transfer, TransferGraph};
use canopy_topology::Rank;

use super::channels::Channels;
use super::moves::Move;
use super::{Instances, LowerError, LowerOptions};
use crate::msccl::program::{Operation, Program, RankProgram, ThreadBlock};
use crate::msccl::{Profile, write_msccl_xml};

const OPTIONS: LowerOptions = LowerOptions {
    in_place: false,
    bytes_max: 1 << 20,
    profile: Profile::Msccl,
    name: String::new(),
    instances: Instances::ONE,
};

fn options() -> LowerOptions {
    LowerOptions { name: "test".to_owned(), ..OPTIONS }
}

/// One batch per root and action that carries the root's whole share along a path or a star.
fn graph(kind: CollectiveKind, ranks: u32, k: u64, actions: &[Action], is_star: bool) -> TransferGraph {
    let collective = Collective::new(kind, None, ranks).unwrap();
    let mut graph = TransferGraph {
        collective,
        rank_count: ranks,
        chunks_per_share: k,
        shares: Shares::Equal,
        routes: RouteTable::default(),
        carriers: Vec::new(),
        dependencies: Vec::new(),
        batches: Vec::new(),
        transfers: Vec::new(),
        steps: Vec::new(),
        pace: Pace::Barriers,
    };
    for &action in actions {
        for root in 0..if kind.has_root() { 1 } else { ranks } {
            let first = graph.transfers.len();
            let near = |distance: u32| if is_star { root } else { (root + distance - 1) % ranks };
            let mut hops: Vec<(u32, u32)> = (1..ranks).map(|far| (near(far), (root + far) % ranks)).collect();
            if action == Action::Reduce {
                hops = hops.into_iter().rev().map(|(near, far)| (far, near)).collect();
            }
            graph.transfers.extend(hops.into_iter().map(|(from, to)| Transfer {
                from: Rank::new(from),
                to: Rank::new(to),
                carriers: 0..0,
                dependencies: 0..0,
            }));
            graph.batches.push(Batch {
                action,
                root: Rank::new(root),
                chunk_first: if kind.has_root() { 0 } else { u64::from(root) * k },
                chunk_count: k,
                transfers: u32::try_from(first).unwrap()..u32::try_from(graph.transfers.len()).unwrap(),
            });
        }
    }
    graph
}

fn allgather(ranks: u32, k: u64, is_star: bool) -> TransferGraph {
    graph(CollectiveKind::Allgather, ranks, k, &[Action::Copy], is_star)
}

/// The same, but the last chunk of every share for itself, so that no larger unit divides all ranges.
fn ragged(mut graph: TransferGraph) -> TransferGraph {
    for batch in std::mem::take(&mut graph.batches) {
        let last = Batch { chunk_first: batch.chunk_first + batch.chunk_count - 1, chunk_count: 1, ..batch.clone() };
        graph.batches.extend([Batch { chunk_count: batch.chunk_count - 1, ..batch }, last]);
    }
    graph
}

fn lower(graph: &TransferGraph, options: &LowerOptions) -> Result<Program, LowerError> {
    super::lower(graph, options, &|| false).map(|lowered| lowered.program)
}

#[track_caller]
fn refuse(graph: &TransferGraph, options: &LowerOptions, message: &str) {
    let error = lower(graph, options).unwrap_err().to_string();
    assert!(error.contains(message), "`{error}` does not say `{message}`");
}

#[test]
fn requests_a_file_cannot_say_are_refused() {
    let ring = allgather(4, 1, false);
    let gather = graph(CollectiveKind::Gather, 4, 1, &[], false);
    refuse(&gather, &options(), "files for msccl cannot express gather; choose another profile");
    let mut rooted = graph(CollectiveKind::Broadcast, 4, 1, &[Action::Copy], false);
    rooted.collective = Collective::new(CollectiveKind::Broadcast, Some(Rank::new(2)), 4).unwrap();
    refuse(&rooted, &options(), "always rank 0, not 2; renumber the ranks");
    for name in ["", "a b", "a\"b", "ö"] {
        refuse(&ring, &LowerOptions { name: name.to_owned(), ..options() }, "is not a valid name for an MSCCL file");
    }
    for bytes_max in [0, i64::MAX as u64, u64::MAX] {
        refuse(&ring, &LowerOptions { bytes_max, ..options() }, "is not supported");
    }
    refuse(&TransferGraph { rank_count: 1, ..ring }, &options(), "use at least two");
}

#[test]
fn graphs_that_are_no_trees_are_refused() {
    let check = |change: fn(&mut TransferGraph), message| {
        let mut graph = allgather(4, 2, false);
        change(&mut graph);
        refuse(&graph, &options(), message);
    };
    check(|graph| graph.batches[1].root = Rank::new(9), "batch 1 of the transfer graph has a root that is not a rank");
    check(
        |graph| graph.transfers[4].to = Rank::new(4),
        "batch 1 of the transfer graph names a rank that does not exist",
    );
    check(|graph| graph.transfers[1].to = Rank::new(1), "two neighbours towards the root");
    check(|graph| graph.transfers.swap(0, 1), "is not a tree whose transfers are in the order of the data flow");
    check(|graph| graph.batches[3].transfers = 90..110, "batch 3 of the transfer graph moves nothing");
    check(|graph| graph.batches[3].chunk_count = 3, "has chunks outside one share");
    check(|graph| graph.batches[0].chunk_count = u64::MAX, "has chunks outside one share");
    check(|graph| graph.batches[0].chunk_first = 2, "rank 0 sends chunk 2 of the transfer graph before it has it");
}

#[test]
fn limits_are_named_with_what_the_plan_needs() {
    refuse(
        &ragged(allgather(8, 20_000, false)),
        &options(),
        "the msccl profile allows 32767 chunks as an offset, but the plan needs 159999; plan with fewer chunks per \
         share",
    );
    refuse(&allgather(1025, 1, true), &options(), "allows 1024 ranks, but the plan needs 1025");
    // 71 ranks; the chunks of each of 60 go around either way in turn, so no two can share a step.
    let mut pieces = allgather(71, 60, false);
    let whole = std::mem::take(&mut pieces.batches);
    let ahead = std::mem::take(&mut pieces.transfers);
    let back = ahead.iter().map(|hop| {
        let mirrored = |rank: Rank| Rank::new((71 - rank.number()) % 71);
        Transfer { from: mirrored(hop.from), to: mirrored(hop.to), carriers: 0..0, dependencies: 0..0 }
    });
    pieces.transfers = ahead.iter().cloned().chain(back).collect();
    let hops = u32::try_from(ahead.len()).unwrap();
    for chunk in 0..60 {
        pieces.batches.extend(whole.iter().map(|batch| {
            // The mirror image of another root's path starts here.
            let root = usize::try_from(71 - batch.root.number()).unwrap() % 71;
            let mirrored = whole[root].transfers.start + hops..whole[root].transfers.end + hops;
            let transfers = if chunk % 2 == 0 { batch.transfers.clone() } else { mirrored };
            Batch { chunk_first: batch.chunk_first + chunk, chunk_count: 1, transfers, ..batch.clone() }
        }));
    }
    let error = lower(&pieces, &options()).unwrap_err();
    // 70 receives of 60 chunks, in at least 17 blocks.
    let expected = "the msccl profile allows 4095 XML nodes per rank, but rank 0 needs 4289; plan with fewer chunks";
    assert!(error.to_string().starts_with(expected), "{error}");
}

/// The runtime counts rounds over a chunk with 16 bits, so larger messages are left to others.
#[test]
fn the_largest_message_is_one_whose_rounds_can_be_counted() {
    let asked = LowerOptions { bytes_max: 1 << 50, ..options() };
    let program = lower(&allgather(4, 1, false), &asked).unwrap();
    assert_eq!(program.bytes_max, Some(4 * 65535 * (2 << 20) + 1));
}

#[test]
fn a_program_may_begin_at_any_size_up_to_its_last() {
    for (profile, last) in [(Profile::Msccl, 1 << 20), (Profile::RcclMsccl, 1 << 20)] {
        let lowered = super::lower(&allgather(4, 1, false), &LowerOptions { profile, ..options() }, &|| false).unwrap();
        for bytes_min in [0, 1, last] {
            let program = lowered.clone().beginning_at(bytes_min, profile).unwrap().program;
            assert_eq!(program, Program { bytes_min: Some(bytes_min), ..lowered.program.clone() });
            assert!(crate::prove(&program, profile).problems.is_empty());
        }
        let beyond = LowerError::BytesMin { bytes_min: last + 1, bytes_max: last };
        assert_eq!(lowered.clone().beginning_at(last + 1, profile), Err(beyond));
    }
}

#[test]
fn as_many_channels_are_used_as_needed_and_no_more() {
    let channels = |graph: &TransferGraph| lower(graph, &options()).unwrap().channel_count;
    assert_eq!(channels(&allgather(8, 8, false)), 1);
    // 32 peers fit one channel, 39 do not.
    assert_eq!(channels(&allgather(33, 1, true)), 1);
    assert_eq!(channels(&allgather(40, 1, true)), 2);
    // A ring of 8 ranks whose shares are 40 pieces has blocks of 280 steps.
    assert_eq!(channels(&ragged(allgather(8, 39 * 71 + 1, false))), 2);
}

#[test]
fn each_channel_of_a_turn_gets_its_part_of_the_peers() {
    for rank_count in [34, 64, 65, 100, 1000] {
        let mut channels = Channels::one_each(rank_count, 1);
        assert!(channels.spread_peers(rank_count - 1_u32, 32, 200));
        assert!((1..rank_count).all(|peer| channels.divide((0, peer), 100, 64, 200)));
        let mut counts = vec![0; channels.count() as usize];
        for to in 1..rank_count {
            let (from, turn, chunks) = (0, 1, 0..1);
            let (action, piece, instance, wave, is_last_use) = (Action::Copy, None, 0, 0, false);
            let moving = Move { from, to, chunks, action, turn, piece, instance, wave, is_last_use };
            counts[channels.of(&moving) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| count <= 32), "{counts:?}");
        assert_eq!(counts.iter().sum::<u32>(), rank_count - 1);
    }
}

fn operations(program: &Program, rank: usize) -> Vec<Vec<&'static str>> {
    let of_block = |block: &ThreadBlock| block.steps.iter().map(|step| step.operation.name()).collect();
    program.ranks[rank].thread_blocks.iter().map(of_block).collect()
}

#[test]
fn a_ring_is_fused_all_the_way() {
    let both = [Action::Reduce, Action::Copy];
    let allreduce = graph(CollectiveKind::Allreduce, 4, 1, &both, false);
    let program = lower(&allreduce, &LowerOptions { in_place: true, ..options() }).unwrap();
    for rank in &program.ranks {
        let steps = rank.thread_blocks.iter().flat_map(|block| &block.steps);
        // One per tree and phase.
        assert_eq!(steps.filter(|step| step.operation != Operation::Nop).count(), 8);
    }
    assert_eq!(
        operations(&lower(&allgather(4, 1, false), &options()).unwrap(), 0),
        [vec!["s", "r", "rcs", "rcs"], vec!["cpy"]]
    );
}

#[test]
fn long_ranges_are_cut_evenly() {
    let program = lower(&ragged(allgather(2, 151, false)), &options()).unwrap();
    let counts = |block: usize| -> Vec<u32> {
        program.ranks[1].thread_blocks[block].steps.iter().map(|step| step.chunk_count).collect()
    };
    assert_eq!(counts(0), [50, 50, 51, 50, 50, 51]);
    // The block that copies what the rank has itself.
    assert_eq!(counts(1), [71, 71, 9]);
}

/// The whole text of a small plan: a reduction with two additions, scratch and a wait.
#[test]
fn a_small_plan_as_text() {
    let mut reduce = graph(CollectiveKind::Reduce, 4, 2, &[Action::Reduce], false);
    // 2 and 3 send to 1, which sends to 0.
    let hops = [(2, 1), (3, 1), (1, 0)];
    for (transfer, (from, to)) in reduce.transfers.iter_mut().zip(hops) {
        (transfer.from, transfer.to) = (Rank::new(from), Rank::new(to));
    }
    let text = write_msccl_xml(&lower(&reduce, &options()).unwrap(), Profile::Msccl);
    let expected = r#"<algo name="test" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="4" coll="reduce" inplace="0" outofplace="1" minBytes="0" maxBytes="1048577">
  <gpu id="0" i_chunks="1" o_chunks="1" s_chunks="0">
    <tb id="0" send="-1" recv="1" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="1" o_chunks="1" s_chunks="1">
    <tb id="0" send="0" recv="2" chan="0">
      <step s="0" type="rrs" srcbuf="s" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="3" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
  </gpu>
  <gpu id="2" i_chunks="1" o_chunks="1" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="3" i_chunks="1" o_chunks="1" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"#;
    assert_eq!(text, expected);
}

/// As the public checker wants it: the ends of a connection state the same source and destination, k-th send for k-th
/// receive. What `rcs` forwards comes from where it was stored, so an `s` before it agrees in the destination alone.
#[test]
fn both_ends_of_a_connection_state_the_same() {
    let mut compared = 0;
    for (kind, actions) in [
        (CollectiveKind::Allgather, &[Action::Copy][..]),
        (CollectiveKind::Allreduce, &[Action::Reduce, Action::Copy]),
        (CollectiveKind::ReduceScatter, &[Action::Reduce]),
    ] {
        for (is_star, profile) in
            [(true, Profile::Msccl), (false, Profile::Msccl), (true, Profile::RcclMsccl), (false, Profile::RcclMsccl)]
        {
            let graph = graph(kind, 4, 2, actions, is_star);
            let program = lower(&graph, &LowerOptions { profile, ..options() }).unwrap();
            let blocks =
                || program.ranks.iter().flat_map(|rank| rank.thread_blocks.iter().map(move |block| (rank, block)));
            for (from, sender) in blocks() {
                let is_other_end = |(to, block): &(&RankProgram, &ThreadBlock)| {
                    Some(to.rank) == sender.send && block.receive == Some(from.rank) && block.channel == sender.channel
                };
                let Some((_, receiver)) = blocks().find(is_other_end) else { continue };
                let sends = sender.steps.iter().filter(|step| step.operation.sends());
                let receives = receiver.steps.iter().filter(|step| step.operation.receives());
                for (sent, received) in sends.zip(receives) {
                    if sent.operation == Operation::Send && received.operation.writes_destination() {
                        assert_eq!(sent.destination, received.destination, "{kind} {sent:?} {received:?}");
                        compared += 1;
                    }
                    if received.operation == Operation::Receive {
                        let source = if sent.operation.reads_source() { sent.source } else { sent.destination };
                        assert_eq!(received.source, source, "{kind} {sent:?} {received:?}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 50, "{compared}");
}
