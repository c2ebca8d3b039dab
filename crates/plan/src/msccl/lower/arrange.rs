//! Arranges a plan: in one of the two orders, with as few channels as fit.

use std::cell::OnceCell;

use canopy_schedule::CollectiveKind;

use super::blocks::{Peers, Sharing, thread_blocks};
use super::channels::Channels;
use super::emit::{Emission, emit};
use super::fit::{self, Missed};
use super::fuse::Ends;
use super::least::Least;
use super::message::Message;
use super::mirror::mirror;
use super::moves::{Move, Trees};
use super::numbering::number_awaited_first;
use super::placement::{Placed, place};
use super::{LowerError, LowerOptions, Stop, instances, moves, protocol};
use crate::msccl::figures::{Figure, ProgramFigures};
use crate::msccl::profile::Profile;
use crate::msccl::program::{Operation, Program, Purpose};
use crate::need::Certainty;

/// One of the orders, how blocks are shared, and what steps wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrangement {
    is_in_waves: bool,
    sharing: Sharing,
    waits: Waits,
}

/// Which waits there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// All that the order within a rank takes: a proof looks at one rank after the other.
    All,
    /// Those are left out that follow from what other ranks do: a proof must follow all ranks at once, for each of
    /// them.
    Fewest,
}

/// Work, as [`Least::proof_work`] counts it, of programs with the fewest waits. Up to the first number they are
/// preferred, as their proof takes a second or so; beyond the last there is no proof.
const PROOF_WORK_USUAL: u64 = 1 << 28;
const PROOF_WORK_MAX: u64 = 1 << 33;

/// Arrangements in the order in which they are preferred.
fn arrangements(profile: Profile, trees: &Trees, waits: &[Waits]) -> Vec<Arrangement> {
    let in_order = |waits: Waits| {
        let shared = |is_in_waves| Arrangement { is_in_waves, sharing: Sharing::Always, waits };
        match profile.allows(Operation::ReceiveCopySend) {
            // Only what is more than a hop deep gains from being followed.
            true => [shared(!trees.have_depth()), shared(trees.have_depth())],
            false => [Arrangement { is_in_waves: true, sharing: Sharing::Never, waits }, shared(true)],
        }
    };
    waits.iter().flat_map(|&waits| in_order(waits)).collect()
}

fn first_over(figures: [Figure; 2]) -> Option<Figure> {
    figures.into_iter().find(|figure| figure.need > figure.limit)
}

/// A program that fits.
pub(super) struct Arranged {
    pub(super) program: Program,
    pub(super) figures: ProgramFigures,
    /// Connections take turns at several channels, so there are more blocks than peers.
    is_divided: bool,
}

impl Arranged {
    /// Most blocks of a rank.
    pub(super) const fn blocks(&self) -> u64 {
        self.figures.blocks.need
    }
}

pub(super) struct Lowering<'a> {
    /// The plan alone.
    pub(super) plan: &'a Message,
    /// All its instances.
    pub(super) message: &'a Message,
    pub(super) trees: &'a Trees,
    /// Counted once for all numbers of instances.
    pub(super) least: &'a OnceCell<Least>,
    pub(super) options: &'a LowerOptions,
    pub(super) stop: Stop<'a>,
}

impl Lowering<'_> {
    /// The first arrangement that fits with blocks that are resident at once, else the first that fits, else why none
    /// does.
    pub(super) fn best(&self) -> Result<Arranged, LowerError> {
        let (profile, instances) = (self.options.profile, self.message.instances);
        if let Some(over) = fit::too_many(instances, profile) {
            return Err(self.over(&Missed { over, certainty: Certainty::Proven }));
        }
        // What cannot fit is not even laid out: counting takes a small part of the time.
        if let Some(over) = self.least().exceeded(instances, profile) {
            return Err(self.over(&Missed { over, certainty: Certainty::Proven }));
        }
        let mut best: Option<Arranged> = None;
        let mut missed: Option<Missed> = None;
        for arrangement in arrangements(profile, self.trees, self.waits()) {
            match self.arrange(arrangement)? {
                Ok(arranged) => {
                    if arranged.blocks() <= profile.limits().blocks_resident.into() {
                        return Ok(arranged);
                    }
                    let is_divided = arranged.is_divided;
                    best = best.or(Some(arranged));
                    // Blocks that may not be resident at once are worth another try, unless there is one per peer
                    // anyway.
                    if !is_divided && arrangement.sharing == Sharing::Always {
                        break;
                    }
                }
                Err(over) => missed = missed.or(Some(over)),
            }
        }
        match (best, missed) {
            (Some(arranged), _) => Ok(arranged),
            (None, missed) => Err(self.over(&missed.expect("an arrangement fits or misses a limit"))),
        }
    }

    /// Which waits there may be. More do no harm where there are many steps, while a proof without them takes long.
    fn waits(&self) -> &'static [Waits] {
        let leaves_out = self.trees.span && self.plan.kind == CollectiveKind::Allreduce;
        match self.least().proof_work(self.message.instances) {
            work if !leaves_out || work <= PROOF_WORK_USUAL => &[Waits::Fewest],
            work if work <= PROOF_WORK_MAX => &[Waits::All, Waits::Fewest],
            _ => &[Waits::All],
        }
    }

    fn least(&self) -> &Least {
        self.least.get_or_init(|| Least::of(self.trees, self.plan, self.options.profile))
    }

    /// The error for a limit that the plan exceeds in as many instances as it is asked for.
    fn over(&self, missed: &Missed) -> LowerError {
        fit::error(self.options.profile, missed, self.plan.share, self.message.instances)
    }

    /// Most instances that some arrangement has room for, at least one.
    pub(super) fn room(&self) -> Result<u32, LowerError> {
        let mut most = 1;
        for arrangement in arrangements(self.options.profile, self.trees, self.waits()) {
            if let Ok(Arranged { figures, .. }) = self.arrange(arrangement)? {
                most = most.max(figures.room(1, self.message.rank_count, self.options.profile).instances_max);
            }
        }
        Ok(most)
    }

    /// Arranges with more and more channels until the program fits; else the limit that is in the way.
    fn arrange(&self, arrangement: Arrangement) -> Result<Result<Arranged, Missed>, LowerError> {
        let moves = match self.moves(arrangement)? {
            Ok(moves) => moves,
            Err(over) => return Ok(Err(Missed { over, certainty: Certainty::AtLeast })),
        };
        let moves = instances::copied(moves, self.plan.share, self.message.instances, self.stop)?;
        let joined = match arrangement.is_in_waves {
            true => Some(self.place(moves.clone(), true)?),
            false => None,
        };
        let mut channels = Channels::one_each(self.message.rank_count, self.message.instances);
        loop {
            let program = match &joined {
                Some(placed) => self.joined(placed, &channels, arrangement)?,
                None => self.followed(moves.clone(), &channels, arrangement)?,
            };
            let figures = ProgramFigures::of(&program, self.options.profile);
            let Some(over) = fit::overrun(&figures) else {
                let is_divided = channels.are_divided();
                return Ok(Ok(Arranged { program, figures, is_divided }));
            };
            if !fit::widen(&mut channels, &program, &figures, &over) {
                return Ok(Err(Missed { over, certainty: Certainty::Found }));
            }
        }
    }

    /// For tests: each arrangement that fits with one channel for each instance, and what is counted of it beforehand.
    #[cfg(test)]
    pub(super) fn foretold_and_made(&self) -> Vec<([Figure; 2], Arranged)> {
        let (profile, instances) = (self.options.profile, self.message.instances);
        let foretold = |Arrangement { is_in_waves, sharing, .. }| match is_in_waves {
            true => {
                let moves = moves::in_waves(self.trees, self.plan, self.stop).expect("it can be ordered");
                self.least().figures_in_waves(&moves, sharing, instances, profile)
            }
            false => self.least().figures_in_trees(sharing, instances, profile),
        };
        let arrangements = arrangements(profile, self.trees, &[Waits::All, Waits::Fewest]).into_iter();
        let made = |arrangement| {
            let arranged = self.arrange(arrangement).expect("it can be arranged").ok()?;
            let is_first = arranged.program.channel_count <= instances;
            is_first.then(|| (foretold(arrangement), arranged))
        };
        arrangements.filter_map(made).collect()
    }

    /// The moves of one instance in their order; else the limit that is exceeded whatever comes of them.
    fn moves(&self, arrangement: Arrangement) -> Result<Result<Vec<Move>, Figure>, LowerError> {
        let Arrangement { is_in_waves, sharing, .. } = arrangement;
        let (profile, instances) = (self.options.profile, self.message.instances);
        let chunks_max = profile.limits().chunks_per_step;
        if is_in_waves {
            let moves = moves::in_waves(self.trees, self.plan, self.stop)?;
            let over = first_over(self.least().figures_in_waves(&moves, sharing, instances, profile));
            return Ok(over.map_or(Ok(moves), Err));
        }
        match first_over(self.least().figures_in_trees(sharing, instances, profile)) {
            None => Ok(Ok(moves::in_trees(self.trees, self.plan, chunks_max, self.stop)?)),
            Some(over) => Ok(Err(over)),
        }
    }

    fn place(&self, moves: Vec<Move>, is_in_waves: bool) -> Result<Vec<Placed>, LowerError> {
        let marked = moves::mark_last_uses(moves, self.message, self.stop)?;
        let chunks_max = self.options.profile.limits().chunks_per_step;
        place(marked, self.message, is_in_waves, chunks_max, self.stop)
    }

    /// The program of moves wave after wave.
    fn joined(&self, placed: &[Placed], channels: &Channels, arrangement: Arrangement) -> Result<Program, LowerError> {
        let moves = placed.iter().map(|placed| &placed.moving);
        let peers = self.thread_blocks(moves, channels, arrangement)?;
        self.program(placed, channels, &peers, arrangement.waits)
    }

    /// The program of moves tree by tree. What is added last at a rank is chosen once its blocks are known, so that it
    /// can go on in the same step.
    fn followed(
        &self,
        mut moves: Vec<Move>,
        channels: &Channels,
        arrangement: Arrangement,
    ) -> Result<Program, LowerError> {
        let peers = self.thread_blocks(moves.iter(), channels, arrangement)?;
        let ends: Vec<Ends> = peers.iter().map(|peers| Ends::new(peers)).collect();
        moves::order_contributions(&mut moves, |into, out| {
            let ends = &ends[out.from as usize];
            ends.block_from(into.from, channels.of(into)) == ends.block_to(out.to, channels.of(out))
        });
        self.program(&self.place(moves, false)?, channels, &peers, arrangement.waits)
    }

    fn thread_blocks<'m>(
        &self,
        moves: impl Iterator<Item = &'m Move>,
        channels: &Channels,
        Arrangement { is_in_waves, sharing, .. }: Arrangement,
    ) -> Result<Vec<Vec<Peers>>, LowerError> {
        thread_blocks(moves, channels, sharing, is_in_waves, self.message.rank_count, self.stop)
    }

    fn program(
        &self,
        placed: &[Placed],
        channels: &Channels,
        peers: &[Vec<Peers>],
        waits: Waits,
    ) -> Result<Program, LowerError> {
        let Self { message, options, trees, .. } = *self;
        let (profile, trees_span) = (options.profile, trees.span && waits == Waits::Fewest);
        let emission = Emission { message, profile, placed, channels, peers, trees_span };
        let mut ranks = emit(emission, self.stop)?;
        mirror(&mut ranks);
        ranks.iter_mut().for_each(|rank| number_awaited_first(rank, profile.limits().dependency_block));
        let used = ranks.iter().flat_map(|rank| &rank.thread_blocks).map(|block| block.channel).max();
        let mut program = Program {
            name: options.name.clone(),
            protocol: protocol(profile, message.kind),
            channel_count: used.map_or(1, |used| used + 1),
            chunk_count: message.chunk_count(),
            rank_count: message.rank_count,
            purpose: Purpose::Collective(message.kind),
            in_place: options.in_place,
            out_of_place: Some(!options.in_place),
            bytes_min: Some(0),
            bytes_max: None,
            thread_count: None,
            ranks,
        };
        program.bytes_max = profile.bytes_max_attribute(fit::bytes_max(options, &program));
        Ok(program)
    }
}
