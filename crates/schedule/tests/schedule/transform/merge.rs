//! Neighbouring chunks that fare alike, moved as one range.

use canopy_schedule::{Carrier, ChunkLayout, Flow, Forest, Hop, Pace, Path, Schedule, Send, Shape, Steps, Tree};

use super::unit_start;

/// The same schedule in fewer, larger pieces: neighbouring ranges that go the same way become one.
///
/// * Forest: consecutive trees with equal root and hops, each hop on a single route.
/// * Steps: consecutive sends of one step with equal ends, whose chunks follow one another in one share or block. A step
///   that both sends from and writes to a place in one share is left as it is, since larger pieces could block each other.
/// * Flow: consecutive paths of one pair with equal routes.
///
/// No chunk changes its way, so loads, rates and depths stay. Tables lose the entries that nothing refers to.
///
/// * **Out.** An equal schedule where nothing can be merged and the tables are in order.
/// * **Cost.** O(size of the schedule).
#[must_use]
pub(crate) fn merged(schedule: &Schedule, rank_count: u32) -> Schedule {
    let shape = match &schedule.shape {
        Shape::Forest(forest) => Shape::Forest(forest_of(forest)),
        Shape::Steps(steps) => {
            let layout = ChunkLayout::new(schedule.collective, rank_count, steps.chunks_per_share, &schedule.shares);
            Shape::Steps(layout.map_or_else(|_| steps.clone(), |layout| steps_of(steps, &layout)))
        }
        Shape::Flow(flow) => Shape::Flow(flow_of(flow)),
        Shape::Stages(_) | Shape::Orbits(_) => schedule.shape.clone(),
    };
    Schedule { shape, ..schedule.clone() }
}

fn position(length: usize) -> u32 {
    u32::try_from(length).expect("an accepted schedule refers to fewer than 2³² entries")
}

fn forest_of(forest: &Forest) -> Forest {
    let mut result = Forest { carriers: Vec::new(), hops: Vec::new(), ..forest.clone() };
    for phase in &mut result.phases {
        let mut trees: Vec<Tree> = Vec::with_capacity(phase.trees.len());
        for tree in std::mem::take(&mut phase.trees) {
            let hops = forest.hops_of(&tree);
            if let Some(last) = trees.last_mut().filter(|last| last.root == tree.root) {
                let known = &result.hops[last.hops.start as usize..last.hops.end as usize];
                let multiplicity = last.multiplicity.checked_add(tree.multiplicity);
                let alike = known.len() == hops.len()
                    && known.iter().zip(hops).all(|(known, hop)| {
                        let carriers = &result.carriers[known.carriers.start as usize..known.carriers.end as usize];
                        (known.from, known.to) == (hop.from, hop.to) && same_route(carriers, forest.carriers_of(hop))
                    });
                if let Some(multiplicity) = multiplicity.filter(|_| alike) {
                    last.multiplicity = multiplicity;
                    for hop in known {
                        result.carriers[hop.carriers.start as usize].chunk_count = multiplicity;
                    }
                    continue;
                }
            }
            let start = position(result.hops.len());
            for hop in hops {
                let first = position(result.carriers.len());
                result.carriers.extend_from_slice(forest.carriers_of(hop));
                result.hops.push(Hop { carriers: first..position(result.carriers.len()), ..hop.clone() });
            }
            trees.push(Tree { hops: start..position(result.hops.len()), ..tree });
        }
        phase.trees = trees;
    }
    result
}

/// Whether both take one route, the same.
fn same_route(first: &[Carrier], second: &[Carrier]) -> bool {
    matches!((first, second), ([first], [second]) if first.route == second.route)
}

fn steps_of(steps: &Steps, layout: &ChunkLayout) -> Steps {
    if steps.pace == Pace::InTurn {
        // What is sent at once over several lanes comes at several times.
        return steps.clone();
    }
    let mut result = Steps { carriers: Vec::new(), sends: Vec::new(), ..steps.clone() };
    for sends in steps.sends.chunk_by(|a, b| a.step == b.step) {
        let may_merge = !meets_itself(sends, layout);
        for send in sends {
            let last = result.sends.last_mut().filter(|last| may_merge && continues(last, send, layout));
            let carriers = steps.carriers_of(send);
            match last {
                Some(last) => {
                    append(&mut result.carriers, carriers);
                    last.chunks.end = send.chunks.end;
                    last.carriers.end = position(result.carriers.len());
                }
                None => {
                    let start = position(result.carriers.len());
                    result.carriers.extend_from_slice(carriers);
                    result.sends.push(Send { carriers: start..position(result.carriers.len()), ..send.clone() });
                }
            }
        }
    }
    result
}

/// Whether a send takes up where another one of its step ends, inside a share or block.
fn continues(last: &Send, send: &Send, layout: &ChunkLayout) -> bool {
    (last.step, last.action, last.from, last.to) == (send.step, send.action, send.from, send.to)
        && last.chunks.end == send.chunks.start
        && send.chunks.start < layout.total()
        && unit_start(layout, send.chunks.start) != send.chunks.start
}

/// Whether a rank both sends and is sent chunks of one share or block.
fn meets_itself(sends: &[Send], layout: &ChunkLayout) -> bool {
    let unit = |chunk: u64| (chunk < layout.total()).then(|| unit_start(layout, chunk));
    let mut read: Vec<_> = sends.iter().map(|send| (send.from, unit(send.chunks.start))).collect();
    read.sort_unstable();
    sends.iter().any(|send| read.binary_search(&(send.to, unit(send.chunks.start))).is_ok())
}

/// Appends carriers; one on the route of the last one becomes part of it.
fn append(carriers: &mut Vec<Carrier>, more: &[Carrier]) {
    for carrier in more {
        match carriers.last_mut() {
            Some(last) if last.route == carrier.route => {
                last.chunk_count = last.chunk_count.saturating_add(carrier.chunk_count);
            }
            _ => carriers.push(*carrier),
        }
    }
}

fn flow_of(flow: &Flow) -> Flow {
    let mut result = Flow { hops: Vec::new(), paths: Vec::new(), ..flow.clone() };
    for path in &flow.paths {
        let hops = flow.hops_of(path);
        let ends = (path.source, path.destination);
        if let Some(last) = result.paths.last_mut().filter(|last| (last.source, last.destination) == ends) {
            let alike = result.hops[last.hops.start as usize..last.hops.end as usize] == *hops;
            if let Some(sum) = last.chunk_count.checked_add(path.chunk_count).filter(|_| alike) {
                last.chunk_count = sum;
                continue;
            }
        }
        let start = position(result.hops.len());
        result.hops.extend_from_slice(hops);
        result.paths.push(Path { hops: start..position(result.hops.len()), ..path.clone() });
    }
    result
}
