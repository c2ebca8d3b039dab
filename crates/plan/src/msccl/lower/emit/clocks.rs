//! What each block knows to have finished, so that no step waits for what it knows.

use std::rc::Rc;

use super::at::At;

/// Steps of each block that are finished.
type Clock = Rc<[u32]>;

/// Clocks of one rank's blocks: each only at the steps that change it by waiting.
pub(super) struct Clocks {
    blocks: Vec<Vec<(u32, Clock)>>,
}

impl Clocks {
    pub(super) fn new(block_count: usize) -> Self {
        let start: Clock = vec![0; block_count].into();
        Self { blocks: vec![vec![(0, start)]; block_count] }
    }

    /// Of `waits`, those that a block's next step has to state: not known yet, nor known through another of them. The
    /// latest of each block, by block.
    pub(super) fn unknown(&self, block: usize, waits: &mut Vec<At>) {
        let known = self.latest(block);
        waits.retain(|wait| wait.block != block && known[wait.block] <= wait.step);
        waits.sort_unstable_by_key(|wait| (wait.block, std::cmp::Reverse(wait.step)));
        waits.dedup_by_key(|wait| wait.block);
        if waits.len() < 2 {
            return;
        }
        let all = waits.clone();
        waits.retain(|wait| {
            let others = all.iter().filter(|other| other.block != wait.block);
            !others.into_iter().any(|other| self.at(*other)[wait.block] > wait.step)
        });
    }

    /// Notes what a block knows from `step` on by waiting.
    pub(super) fn join(&mut self, block: usize, step: u32, waits: &[At]) {
        if waits.is_empty() {
            return;
        }
        let mut clock = self.latest(block).to_vec();
        for wait in waits {
            clock.iter_mut().zip(self.at(*wait)).for_each(|(own, other)| *own = (*own).max(*other));
            clock[wait.block] = clock[wait.block].max(wait.step + 1);
        }
        self.blocks[block].push((step, clock.into()));
    }

    fn latest(&self, block: usize) -> &[u32] {
        self.blocks[block].last().map_or(&[], |(_, clock)| clock)
    }

    /// What is known once a step has run, but for its own block.
    fn at(&self, at: At) -> &[u32] {
        let changes = &self.blocks[at.block];
        let after = changes.partition_point(|(step, _)| *step <= at.step);
        &changes[after - 1].1
    }
}
