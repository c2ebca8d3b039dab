//! The program flattened: blocks and steps of all ranks numbered through, with connections resolved.
//!
//! Made only of programs whose structure is sound; later checks index it without looking back.

use std::ops::Range;

use super::place::Place;
use crate::msccl::profile::Profile;
use crate::msccl::program::{Program, RankProgram, Step, ThreadBlock};

pub(super) struct Model<'p> {
    pub(super) program: &'p Program,
    pub(super) profile: Profile,
    /// By rank.
    pub(super) ranks: Vec<RankModel<'p>>,
    /// Blocks of all ranks; those of a rank by id.
    pub(super) blocks: Vec<BlockModel<'p>>,
    /// Steps of all blocks, in block and file order.
    pub(super) steps: Vec<StepModel<'p>>,
    /// Filled by the check of connections.
    pub(super) connections: Vec<Connection>,
}

pub(super) struct RankModel<'p> {
    pub(super) rank: &'p RankProgram,
    /// Its blocks in [`Model::blocks`].
    pub(super) blocks: Range<usize>,
    /// Its steps in [`Model::steps`].
    pub(super) steps: Range<usize>,
}

pub(super) struct BlockModel<'p> {
    pub(super) rank: usize,
    pub(super) block: &'p ThreadBlock,
    /// Its steps in [`Model::steps`].
    pub(super) steps: Range<usize>,
    /// Connection it sends on, in [`Model::connections`].
    pub(super) sends_on: Option<usize>,
    /// Connection it receives on.
    pub(super) receives_on: Option<usize>,
}

pub(super) struct StepModel<'p> {
    pub(super) block: usize,
    pub(super) step: &'p Step,
    /// The step that it waits for; `None` when it waits for none or names no step.
    pub(super) awaited: Option<usize>,
    /// The sending step whose data this step receives, in [`Model::steps`].
    pub(super) sender: Option<usize>,
}

/// A queue between two ranks.
pub(super) struct Connection {
    /// Block that sends.
    pub(super) sender: usize,
    /// Block that receives.
    pub(super) receiver: usize,
}

impl<'p> Model<'p> {
    /// Flattens a program of sound structure; `None` when a rank has more blocks or steps than the runtime takes,
    /// which bounds all that follows.
    pub(super) fn new(program: &'p Program, profile: Profile) -> Option<Self> {
        let mut model = Self {
            program,
            profile,
            ranks: Vec::new(),
            blocks: Vec::new(),
            steps: Vec::new(),
            connections: Vec::new(),
        };
        let mut ranks: Vec<&RankProgram> = program.ranks.iter().collect();
        ranks.sort_by_key(|rank| rank.rank);
        let limits = profile.limits();
        for (number, rank) in ranks.into_iter().enumerate() {
            let steps: usize = rank.thread_blocks.iter().map(|block| block.steps.len()).sum();
            if rank.thread_blocks.len() > limits.blocks_per_rank as usize || steps > limits.nodes as usize {
                return None;
            }
            let (blocks_start, steps_start) = (model.blocks.len(), model.steps.len());
            let mut blocks: Vec<&ThreadBlock> = rank.thread_blocks.iter().collect();
            blocks.sort_by_key(|block| block.id);
            for block in blocks {
                let first = model.steps.len();
                let index = model.blocks.len();
                let entered =
                    block.steps.iter().map(|step| StepModel { block: index, step, awaited: None, sender: None });
                model.steps.extend(entered);
                let steps = first..model.steps.len();
                model.blocks.push(BlockModel { rank: number, block, steps, sends_on: None, receives_on: None });
            }
            let (blocks, steps) = (blocks_start..model.blocks.len(), steps_start..model.steps.len());
            model.ranks.push(RankModel { rank, blocks, steps });
        }
        for step in 0..model.steps.len() {
            model.steps[step].awaited = model.awaited(step);
        }
        Some(model)
    }

    /// Position of a step in its block.
    pub(super) fn position(&self, step: usize) -> usize {
        step - self.blocks[self.steps[step].block].steps.start
    }

    pub(super) fn rank_of(&self, step: usize) -> usize {
        self.blocks[self.steps[step].block].rank
    }

    fn awaited(&self, step: usize) -> Option<usize> {
        let StepModel { block, step, .. } = &self.steps[step];
        let target = self.block_of(self.blocks[*block].rank, step.wait_block?)?;
        let steps = &self.blocks[target].steps;
        let awaited = steps.start + step.wait_step? as usize;
        steps.contains(&awaited).then_some(awaited)
    }

    /// Block of a rank by its id.
    pub(super) fn block_of(&self, rank: usize, id: u32) -> Option<usize> {
        let blocks = &self.ranks[rank].blocks;
        let block = blocks.start + id as usize;
        blocks.contains(&block).then_some(block)
    }

    pub(super) fn place(&self, step: usize) -> Place {
        let block = &self.blocks[self.steps[step].block];
        let position = u32::try_from(self.position(step)).unwrap_or(u32::MAX);
        Place::step(self.ranks[block.rank].rank.rank, block.block.id, position)
    }

    pub(super) fn place_of_block(&self, block: usize) -> Place {
        let block = &self.blocks[block];
        Place::block(self.ranks[block.rank].rank.rank, block.block.id)
    }
}
