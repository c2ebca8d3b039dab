//! Cells such that every node of a cell has as many arcs of each label into every cell.

use crate::budget::{Ended, Meter};
use crate::graph::Label;
use crate::partition::Partition;
use crate::reduce::Part;

/// Mixes numbers into a fingerprint. Equal fingerprints of different numbers cost time, never correctness.
pub(crate) fn mix(seed: u64, number: u64) -> u64 {
    let mixed = (seed ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ (mixed >> 32)
}

/// What one refinement after another needs, so that it is not made anew each time.
pub(crate) struct Refiner {
    /// By node, between two rounds: 0.
    counts: Vec<u32>,
    hits: Vec<(Label, u32)>,
    touched: Vec<u32>,
    /// Cell, count and node.
    keyed: Vec<(u32, u32, u32)>,
    group: Vec<(u32, u32)>,
    parts: Vec<u32>,
    queue: Vec<u32>,
    is_queued: Vec<bool>,
}

impl Refiner {
    /// For parts of at most so many nodes.
    pub(crate) fn new(node_count: usize) -> Self {
        Self {
            counts: vec![0; node_count],
            hits: Vec::new(),
            touched: Vec::new(),
            keyed: Vec::new(),
            group: Vec::new(),
            parts: Vec::new(),
            queue: Vec::new(),
            is_queued: vec![false; node_count],
        }
    }

    /// Splits cells until none can be told apart from within, starting from what differs from the cells named.
    ///
    /// Nothing here depends on the numbers of the nodes: isomorphic parts with corresponding cells give corresponding cells
    /// and the same fingerprint, which stands for all that was counted on the way.
    ///
    /// * **Source.** McKay and Piperno 2014, algorithm 1; the largest part of a cell whose old whole was used need not be
    ///   used again (J. Hopcroft 1971), for each label by itself.
    /// * **Errors.** Ended by the meter. **Cost.** O(arcs log nodes).
    pub(crate) fn refine(
        &mut self,
        part: &Part,
        partition: &mut Partition,
        splitters: impl IntoIterator<Item = u32>,
        meter: &mut Meter<'_>,
    ) -> Result<u64, Ended> {
        self.queue.clear();
        self.queue.extend(splitters);
        self.queue.iter().for_each(|&cell| self.is_queued[cell as usize] = true);
        let mut next = 0;
        let mut trace = partition.cell_count() as u64;
        let mut ended = Ok(());
        while let Some(&splitter) = self.queue.get(next) {
            next += 1;
            self.is_queued[splitter as usize] = false;
            if partition.is_discrete() {
                continue;
            }
            ended = self.use_splitter(part, partition, splitter, &mut trace, meter);
            if ended.is_err() {
                break;
            }
        }
        self.queue.drain(next..).for_each(|cell| self.is_queued[cell as usize] = false);
        ended.map(|()| mix(trace, partition.cell_count() as u64))
    }

    fn use_splitter(
        &mut self,
        part: &Part,
        partition: &mut Partition,
        splitter: u32,
        trace: &mut u64,
        meter: &mut Meter<'_>,
    ) -> Result<(), Ended> {
        let mut hits = std::mem::take(&mut self.hits);
        hits.clear();
        for &member in partition.members(splitter) {
            hits.extend(part.around(member).iter().map(|&(node, label)| (label, node)));
        }
        let result = meter.spend(1 + partition.size_of(splitter) + 2 * hits.len());
        if hits.windows(2).any(|pair| pair[0].0 > pair[1].0) {
            hits.sort_unstable_by_key(|hit| hit.0);
        }
        for same in hits.chunk_by(|a, b| a.0 == b.0) {
            *trace = mix(*trace, mix(u64::from(splitter), u64::from(same[0].0)));
            self.count(same, partition, trace);
        }
        self.hits = hits;
        result
    }

    /// Splits cells by how often their nodes are hit.
    fn count(&mut self, hits: &[(Label, u32)], partition: &mut Partition, trace: &mut u64) {
        for &(_, node) in hits {
            if self.counts[node as usize] == 0 {
                self.touched.push(node);
            }
            self.counts[node as usize] += 1;
        }
        // What is alone is not split, but tells graphs apart; a sum does not depend on the order.
        let mut alone = 0_u64;
        for node in self.touched.drain(..) {
            let (cell, count) = (partition.cell_of(node), std::mem::take(&mut self.counts[node as usize]));
            if partition.size_of(cell) == 1 {
                alone = alone.wrapping_add(mix(u64::from(cell), u64::from(count)));
            } else {
                self.keyed.push((cell, count, node));
            }
        }
        *trace = mix(*trace, alone);
        let mut keyed = std::mem::take(&mut self.keyed);
        keyed.sort_unstable_by_key(|&(cell, count, _)| (cell, count));
        for same in keyed.chunk_by(|a, b| a.0 == b.0) {
            let cell = same[0].0;
            for counts in same.chunk_by(|a, b| a.1 == b.1) {
                *trace = mix(*trace, mix(u64::from(cell) << 32 | u64::from(counts[0].1), counts.len() as u64));
            }
            let is_whole = same.len() == partition.size_of(cell) && same[0].1 == same[same.len() - 1].1;
            if !is_whole {
                self.group.clear();
                self.group.extend(same.iter().map(|&(_, count, node)| (count, node)));
                self.split(partition, cell);
            }
        }
        keyed.clear();
        self.keyed = keyed;
    }

    /// Splits a cell by the group at hand and puts the new cells in the queue.
    fn split(&mut self, partition: &mut Partition, cell: u32) {
        self.parts.clear();
        partition.split(cell, &self.group, &mut self.parts);
        let spared = if self.is_queued[cell as usize] {
            cell
        } else {
            // The first of the largest.
            let largest =
                self.parts.iter().copied().max_by_key(|&cell| (partition.size_of(cell), std::cmp::Reverse(cell)));
            largest.expect("a cell is split into some")
        };
        for &cell in self.parts.iter().filter(|&&cell| cell != spared) {
            self.is_queued[cell as usize] = true;
            self.queue.push(cell);
        }
    }
}
