//! Traces: every send has its receive, nothing waits in a circle, and the links carry what the plan says.

use std::collections::{BTreeMap, VecDeque};

use canopy_schedule::{Action, CollectiveKind};
use canopy_simulate::Message;
use canopy_simulate::export::{TraceError, TraceNode, TraceWork, traces};
use canopy_topology::Rank;

use crate::plans::{NETWORKS, network, plan};

/// Runs traces as a machine would: a node starts when those it waits for are done, a receive ends when its send is. The
/// nodes that never ran.
fn stuck(traces: &[Vec<TraceNode>]) -> usize {
    let mut done: Vec<Vec<bool>> = traces.iter().map(|trace| vec![false; trace.len()]).collect();
    let mut sent: BTreeMap<(usize, usize, u32), u64> = BTreeMap::new();
    let mut left: VecDeque<(usize, usize)> =
        traces.iter().enumerate().flat_map(|(rank, trace)| (0..trace.len()).map(move |id| (rank, id))).collect();
    let mut idle = 0;
    while let Some((rank, id)) = left.pop_front() {
        let node = &traces[rank][id];
        let ready =
            node.data_deps.iter().chain(&node.ctrl_deps).all(|&before| done[rank][usize::try_from(before).unwrap()]);
        let runs = ready
            && match node.work {
                TraceWork::Send { to, bytes, tag } => {
                    assert_eq!(sent.insert((rank, to.index(), tag), bytes), None, "a tag is used twice");
                    true
                }
                TraceWork::Receive { from, bytes, tag } => {
                    let found = sent.remove(&(from.index(), rank, tag));
                    assert!(found.is_none_or(|found| found == bytes));
                    found.is_some()
                }
                TraceWork::Compute => true,
            };
        if runs {
            done[rank][id] = true;
            idle = 0;
        } else {
            left.push_back((rank, id));
            idle += 1;
            if idle > left.len() {
                return left.len();
            }
        }
    }
    assert_eq!(sent, BTreeMap::new(), "sends without a receive");
    0
}

#[test]
fn traces_run_to_their_end() {
    for expression in NETWORKS {
        let topology = network(expression);
        for kind in [
            CollectiveKind::Allgather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Allreduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
            CollectiveKind::Gather,
            CollectiveKind::Scatter,
            CollectiveKind::AllToAll,
        ] {
            let (_, messages) = plan(&topology, kind, 1 << 20);
            let traces = traces(topology.rank_count(), &messages).unwrap();
            assert_eq!(traces.len(), topology.rank_count() as usize);
            assert_eq!(stuck(&traces), 0, "{expression} {kind}");
            // Between any two ranks in either direction: the messages of the plan, in their order.
            let mut pairs: BTreeMap<(Rank, Rank), Vec<u64>> = BTreeMap::new();
            messages
                .iter()
                .for_each(|message| pairs.entry((message.from, message.to)).or_default().push(message.bytes));
            for (rank, trace) in (0..).map(Rank::new).zip(&traces) {
                for (id, node) in (0_u64..).zip(trace) {
                    assert_eq!(node.id, id);
                    assert!(node.data_deps.iter().chain(&node.ctrl_deps).all(|&before| before < id));
                    if let TraceWork::Send { to, bytes, tag } = node.work {
                        assert_eq!(pairs[&(rank, to)][tag as usize], bytes, "{expression} {kind}");
                    }
                }
            }
            let count = |is: fn(&TraceWork) -> bool| traces.iter().flatten().filter(|node| is(&node.work)).count();
            assert_eq!(count(|work| matches!(work, TraceWork::Send { .. })), messages.len());
            let reductions = messages.iter().filter(|message| message.action == Action::Reduce).count();
            assert_eq!(count(|work| *work == TraceWork::Compute), reductions, "{expression} {kind}");
        }
    }
}

/// A wait that is left out can change what a rank sends: each of them is in a trace.
#[test]
fn every_wait_is_in_a_trace() {
    let topology = network("torus:3x3");
    let (_, messages) = plan(&topology, CollectiveKind::Allreduce, 1 << 20);
    let edges = |messages: &[Message]| -> usize {
        let traces = traces(9, messages).unwrap();
        traces.iter().flatten().map(|node| node.data_deps.len() + node.ctrl_deps.len()).sum()
    };
    let all = edges(&messages);
    let waits = |message: &Message| message.after.len() + usize::from(message.behind.is_some());
    let reductions = messages.iter().filter(|message| message.action == Action::Reduce).count();
    assert_eq!(all, messages.iter().map(waits).sum::<usize>() + reductions);
}

#[test]
fn what_a_trace_cannot_say_is_refused() {
    let topology = network("ring:3");
    let (_, messages) = plan(&topology, CollectiveKind::Allgather, 3_000);
    let with = |change: &dyn Fn(&mut Vec<Message>)| {
        let mut messages = messages.clone();
        change(&mut messages);
        traces(3, &messages)
    };
    assert_eq!(with(&|list| list[1].bytes = 0), Err(TraceError::Empty { message: 1 }));
    let (bytes, limit) = (1 << 63, (1 << 63) - 1);
    assert_eq!(with(&|list| list[0].bytes = bytes), Err(TraceError::Bytes { message: 0, bytes, limit }));
    assert_eq!(with(&|list| list[1].after = vec![1]), Err(TraceError::Order { message: 1, before: 1 }));
    assert_eq!(with(&|list| list[1].behind = Some(9)), Err(TraceError::Order { message: 1, before: 9 }));
    let topology = network("ring:8");
    let (_, messages) = plan(&topology, CollectiveKind::Allgather, 8_000);
    let mut far = vec![messages[0].clone(), messages[0].clone()];
    (far[1].from, far[1].to, far[1].after) = (Rank::new(4), Rank::new(5), vec![0]);
    assert_eq!(traces(8, &far), Err(TraceError::Remote { message: 1, before: 0 }));
}
