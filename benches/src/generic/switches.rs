//! Algorithm 3: switches removed by splitting pairs of edges off.

use std::error::Error;

use canopy_optimize::{FlowNetwork, Never};

use super::Edges;

/// Replaces every switch by edges between its neighbours.
pub(super) fn remove(
    edges: &mut Edges,
    node_count: u32,
    rank_count: u32,
    trees_per_rank: i64,
    flows: &mut u64,
) -> Result<(), Box<dyn Error>> {
    for switch in rank_count..node_count {
        let heads: Vec<u32> = edges.keys().filter(|ends| ends.0 == switch).map(|ends| ends.1).collect();
        for head in heads {
            let mut tails: Vec<u32> = edges.keys().filter(|ends| ends.1 == switch).map(|ends| ends.0).collect();
            // Back to where it came from only what nobody else can take.
            tails.sort_by_key(|&tail| tail == head);
            for tail in tails {
                let question = Question { edges, node_count, rank_count, trees_per_rank };
                let most = question.gamma(tail, switch, head, flows)?;
                lower(edges, (tail, switch), most);
                lower(edges, (switch, head), most);
                if tail != head && most > 0 {
                    *edges.entry((tail, head)).or_default() += most;
                }
                if !edges.contains_key(&(switch, head)) {
                    break;
                }
            }
            if edges.contains_key(&(switch, head)) {
                return Err(format!("switch {switch} keeps an edge to {head}").into());
            }
        }
    }
    Ok(())
}

fn lower(edges: &mut Edges, ends: (u32, u32), by: i64) {
    if let Some(capacity) = edges.get_mut(&ends) {
        *capacity -= by;
        if *capacity == 0 {
            edges.remove(&ends);
        }
    }
}

struct Question<'a> {
    edges: &'a Edges,
    node_count: u32,
    rank_count: u32,
    trees_per_rank: i64,
}

impl Question<'_> {
    /// How much of `tail → switch → head` can be replaced by `tail → head`: two flows per rank (theorem 28).
    fn gamma(&self, tail: u32, switch: u32, head: u32, flows: &mut u64) -> Result<i64, Box<dyn Error>> {
        let capacity = |ends: (u32, u32)| self.edges.get(&ends).copied().unwrap_or(0);
        let mut most = capacity((tail, switch)).min(capacity((switch, head)));
        let source = self.node_count;
        for ([from, to], free, into) in [
            ([tail, switch], [(tail, source), (tail, head)], switch),
            ([switch, head], [(switch, source), (tail, head)], head),
        ] {
            most = self.least(from, to, free, into, most, flows)?;
        }
        Ok(most)
    }

    /// The least flow over all ranks v with `v → into` free, less the trees, if less than `most`.
    fn least(
        &self,
        from: u32,
        to: u32,
        free: [(u32, u32); 2],
        into: u32,
        mut most: i64,
        flows: &mut u64,
    ) -> Result<i64, Box<dyn Error>> {
        let needed = self.trees_per_rank * i64::from(self.rank_count);
        let unlimited = self.edges.values().sum::<i64>() + needed + 1;
        let mut network = FlowNetwork::<i64>::new(self.node_count + 1);
        for (&(from, to), &capacity) in self.edges {
            network.add_arc(from, to, capacity);
        }
        for rank in 0..self.rank_count {
            network.add_arc(self.node_count, rank, self.trees_per_rank);
        }
        for (from, to) in free.into_iter().filter(|(from, to)| from != to) {
            network.add_arc(from, to, unlimited);
        }
        // Where it stands on the near side for sure, a rank asks nothing.
        let near = [Some(free[1].0), Some(free[1].1)].map(|node| node.filter(|_| free[1].0 == from));
        let ranks = (0..self.rank_count).filter(|&rank| !near.contains(&Some(rank)));
        let arcs: Vec<_> = ranks.map(|rank| (rank != into).then(|| network.add_arc(rank, into, 0))).collect();
        for arc in arcs {
            if most == 0 {
                break;
            }
            *flows += 1;
            // The far end of the question is a rank that asks by itself.
            arc.iter().for_each(|&arc| network.set_capacity(arc, unlimited));
            network.reset();
            let flow = network.max_flow(from, to, needed + most, &Never)?;
            most = most.min((flow - needed).max(0));
            arc.iter().for_each(|&arc| network.set_capacity(arc, 0));
        }
        Ok(most)
    }
}
