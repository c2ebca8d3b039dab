//! Cycles of a flow, taken out.

/// What a node is to the search.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Unseen,
    OnWay,
    /// All that flows on from it is free of cycles.
    Closed,
}

/// Takes out the cycles that the flow has beyond some nodes; these and all that it reaches from them, each behind those that
/// it sends to.
///
/// Depth first: where the way comes back to a node of itself, the least amount around is taken off, and the search goes back
/// to where that leaves an arc empty.
///
/// * **In.** `leaving`: the arcs that leave a node, those that carry nothing or not; `ends`: the nodes of an arc.
/// * **Cost.** O(nodes + arcs + nodes · cycles).
pub(super) fn cancel_cycles<'a>(
    node_count: usize,
    starts: impl Iterator<Item = u32>,
    leaving: impl Fn(u32) -> &'a [u32],
    ends: impl Fn(u32) -> (u32, u32),
    flow: &mut [f64],
) -> Vec<u32> {
    let mut state = vec![State::Unseen; node_count];
    // From each node the next arc to look at.
    let mut next = vec![0_usize; node_count];
    let mut closed = Vec::with_capacity(node_count);
    let mut way: Vec<u32> = Vec::new();
    for start in starts {
        if state[start as usize] == State::Closed {
            continue;
        }
        let mut node = start;
        state[node as usize] = State::OnWay;
        loop {
            let Some(&arc) = leaving(node).get(next[node as usize]) else {
                state[node as usize] = State::Closed;
                closed.push(node);
                let Some(back) = way.pop() else { break };
                node = ends(back).0;
                next[node as usize] += 1;
                continue;
            };
            let (_, to) = ends(arc);
            if flow[arc as usize] <= 0.0 || state[to as usize] == State::Closed {
                next[node as usize] += 1;
                continue;
            }
            way.push(arc);
            if state[to as usize] == State::Unseen {
                state[to as usize] = State::OnWay;
                node = to;
                continue;
            }
            let first = way.iter().position(|&arc| ends(arc).0 == to);
            let first = first.expect("a node on the way is where one of its arcs starts");
            let least = way[first..].iter().map(|&arc| flow[arc as usize]).fold(f64::INFINITY, f64::min);
            // The least less itself is exactly nothing.
            way[first..].iter().for_each(|&arc| flow[arc as usize] -= least);
            let empty = way[first..].iter().position(|&arc| flow[arc as usize] <= 0.0);
            let cut = first + empty.expect("the least of them is empty");
            node = ends(way[cut]).0;
            for arc in way.drain(cut..).skip(1) {
                state[ends(arc).0 as usize] = State::Unseen;
            }
        }
    }
    closed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever flows: amounts only shrink, what enters each node less what leaves it stays, and what is reached has an order.
        #[test]
        fn what_is_left_leads_onwards(
            arcs in prop::collection::vec((0..6_u32, 0..6_u32, 0..9_u32), 1..30),
            starts in prop::collection::vec(0..6_u32, 1..3),
        ) {
            let ends: Vec<(u32, u32)> = arcs.iter().map(|&(from, to, _)| (from, to)).collect();
            let before: Vec<f64> = arcs.iter().map(|&(.., amount)| amount.into()).collect();
            let leaving = |node: u32| (0..).zip(&ends).filter(move |(_, (from, _))| *from == node).map(|(arc, _)| arc);
            let leaving: Vec<Vec<u32>> = (0..6).map(|node| leaving(node).collect()).collect();
            let mut flow = before.clone();
            let of = |node: u32| leaving[node as usize].as_slice();
            let order = cancel_cycles(6, starts.iter().copied(), of, |arc| ends[arc as usize], &mut flow);
            let surplus = |flow: &[f64], node: u32| -> f64 {
                let sign = |at: u32| f64::from(u8::from(at == node));
                ends.iter().zip(flow).map(|(&(from, to), amount)| (sign(to) - sign(from)) * amount).sum()
            };
            for node in 0..6 {
                prop_assert!((surplus(&flow, node) - surplus(&before, node)).abs() < 1e-9, "node {}", node);
            }
            prop_assert!(flow.iter().zip(&before).all(|(left, before)| (0.0..=*before).contains(left)));
            let place = |node: u32| order.iter().position(|&found| found == node);
            prop_assert!(starts.iter().all(|&start| place(start).is_some()));
            prop_assert!((0..6).all(|node| order.iter().filter(|&&found| found == node).count() <= 1));
            for (&(from, to), _) in ends.iter().zip(&flow).filter(|(_, amount)| **amount > 0.0) {
                if let Some(from) = place(from) {
                    prop_assert!(place(to).is_some_and(|to| to < from), "{} before {}", to, from);
                }
            }
        }
    }
}
