//! Requests that are refused, with the words a person reads, and the shape of what is made.

use canopy_schedule::{Action, Batch, Collective, CollectiveKind, RouteTable, Transfer, TransferGraph};
use canopy_topology::Rank;

use super::{Channels, LowerError, LowerOptions, lower};
use crate::msccl::program::{Operation, Program};
use crate::msccl::{Profile, write_msccl_xml};

const OPTIONS: LowerOptions =
    LowerOptions { in_place: false, bytes_max: 1 << 20, profile: Profile::Msccl, name: String::new() };

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
        routes: RouteTable::default(),
        carriers: Vec::new(),
        dependencies: Vec::new(),
        batches: Vec::new(),
        transfers: Vec::new(),
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

#[track_caller]
fn refuse(graph: &TransferGraph, options: &LowerOptions, message: &str) {
    let error = lower(graph, options).unwrap_err().to_string();
    assert!(error.contains(message), "`{error}` does not say `{message}`");
}

#[test]
fn requests_a_file_cannot_say_are_refused() {
    let ring = allgather(4, 1, false);
    let gather = graph(CollectiveKind::Gather, 4, 1, &[], false);
    refuse(&gather, &options(), "gather cannot be lowered to an MSCCL file");
    let mut rooted = graph(CollectiveKind::Broadcast, 4, 1, &[Action::Copy], false);
    rooted.collective = Collective::new(CollectiveKind::Broadcast, Some(Rank::new(2)), 4).unwrap();
    refuse(&rooted, &options(), "always rank 0, not 2; renumber the ranks");
    for name in ["", "a b", "a\"b", "ö"] {
        refuse(&ring, &LowerOptions { name: name.to_owned(), ..options() }, "cannot be the name of an MSCCL file");
    }
    for bytes_max in [0, i64::MAX as u64, u64::MAX] {
        refuse(&ring, &LowerOptions { bytes_max, ..options() }, "cannot be stated");
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
    check(|graph| graph.batches[1].root = Rank::new(9), "batch 1 of the transfer graph has a root that is no rank");
    check(
        |graph| graph.transfers[4].to = Rank::new(4),
        "batch 1 of the transfer graph names a rank that does not exist",
    );
    check(|graph| graph.transfers[1].to = Rank::new(1), "two neighbours towards the root");
    check(|graph| graph.batches[3].transfers = 9..11, "reaches every rank");
    check(|graph| graph.batches[3].transfers = 90..110, "reaches every rank");
    check(|graph| graph.batches[3].chunk_count = 3, "has chunks outside its root's share");
    check(|graph| graph.batches[0].chunk_count = u64::MAX, "has chunks outside its root's share");
}

#[test]
fn limits_are_named_with_what_the_plan_needs() {
    refuse(
        &allgather(8, 20_000, false),
        &options(),
        "the msccl profile allows 32767 chunks as an offset, the plan needs 159999; plan with fewer chunks per share",
    );
    refuse(&allgather(1025, 1, true), &options(), "allows 1024 ranks, the plan needs 1025");
    // 71 ranks, each forwarding 71 · 60 pieces of one chunk.
    let mut pieces = allgather(71, 60, false);
    let whole = std::mem::take(&mut pieces.batches);
    for chunk in 0..60 {
        pieces.batches.extend(whole.iter().map(|batch| Batch {
            chunk_first: batch.chunk_first + chunk,
            chunk_count: 1,
            ..batch.clone()
        }));
    }
    let error = lower(&pieces, &options()).unwrap_err();
    let LowerError::OverLimit { what, limit, need, rank, .. } = error else { panic!("{error}") };
    assert_eq!((what, limit, rank), ("XML nodes per rank", 4095, Some(0)));
    assert!(need > 4200, "{need}");
    refuse(&allgather(4, 1, false), &LowerOptions { bytes_max: 1 << 50, ..options() }, "rounds over a chunk");
}

#[test]
fn as_many_channels_are_used_as_needed_and_no_more() {
    let channels = |graph: &TransferGraph| lower(graph, &options()).unwrap().channel_count;
    assert_eq!(channels(&allgather(8, 8, false)), 1);
    // 32 peers fit one channel, 39 do not.
    assert_eq!(channels(&allgather(33, 1, true)), 1);
    assert_eq!(channels(&allgather(40, 1, true)), 2);
    // A ring of 8 ranks whose shares are 40 pieces has blocks of 280 steps.
    assert_eq!(channels(&allgather(8, 39 * 71 + 1, false)), 2);
}

#[test]
fn each_channel_of_a_lane_gets_its_part_of_the_peers() {
    for rank_count in [34, 64, 65, 100, 1000] {
        let spread = (rank_count - 1_u32).div_ceil(32) + 1;
        let channels = Channels { lanes: 2, spread };
        let mut counts = vec![0; channels.count() as usize];
        for peer in 1..rank_count {
            counts[channels.of_hop(1, 0, peer, rank_count) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| count <= 32), "{counts:?}");
        assert_eq!(counts.iter().sum::<u32>(), rank_count - 1);
    }
}

fn operations(program: &Program, rank: usize) -> Vec<Vec<&'static str>> {
    let of_block = |block: &crate::msccl::ThreadBlock| block.steps.iter().map(|step| step.operation.name()).collect();
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
fn long_shares_are_cut_where_one_step_ends() {
    let program = lower(&allgather(2, 150, false), &options()).unwrap();
    let counts = |block: usize| -> Vec<u32> {
        program.ranks[1].thread_blocks[block].steps.iter().map(|step| step.chunk_count).collect()
    };
    assert_eq!(counts(0), [71, 71, 71, 71, 8, 8]);
    assert_eq!(counts(1), [71, 71, 8]);
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
    let text = write_msccl_xml(&lower(&reduce, &options()).unwrap());
    let expected = r#"<algo name="test" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="4" coll="reduce" inplace="0" outofplace="1" minBytes="0" maxBytes="1048577">
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="-1" recv="1" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="2" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="2" s_chunks="2">
    <tb id="0" send="0" recv="2" chan="0">
      <step s="0" type="rrs" srcbuf="s" srcoff="0" dstbuf="s" dstoff="0" cnt="2" depid="1" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="3" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="2" depid="-1" deps="-1" hasdep="1"/>
    </tb>
  </gpu>
  <gpu id="2" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="2" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="3" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="2" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"#;
    assert_eq!(text, expected);
}
