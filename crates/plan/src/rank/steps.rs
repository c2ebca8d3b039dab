//! The steps of one rank as JSON: peers and chunks, without any runtime's buffers.

use canopy_schedule::{Action, Collective, CollectiveKind, Move, ProgramPhase, ProgramStep, RankProgram as Program};
use serde::{Deserialize, Serialize};

use super::request::{RankFileError, RankRequest};

/// The version of the format.
pub const RANK_STEPS_SCHEMA: u32 = 1;

/// What one rank sends and receives, step after step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankSteps {
    /// What the exchange is for.
    pub collective: Collective,
    /// Ranks of the machine, N.
    pub rank_count: u32,
    /// The rank.
    pub rank: u32,
    /// k: chunks of each share. Chunk `r·k + j` is the j-th of the share of rank r.
    pub chunks_per_share: u64,
    /// Its phases.
    pub program: Program,
}

/// Why a text is not the steps of a rank.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RankStepsError {
    #[error("the text is not the steps of a rank: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("the steps have version {found}; this program reads version {RANK_STEPS_SCHEMA}")]
    Version { found: u32 },
    #[error("collective `{name}` has no steps of ranks; use allgather, reduce-scatter or allreduce")]
    Collective { name: String },
    #[error("rank {rank} is not one of {rank_count} ranks")]
    Rank { rank: u32, rank_count: u32 },
    #[error("phase {phase}, step {step}: {fault}")]
    Move { phase: usize, step: usize, fault: MoveFault },
}

/// What is wrong with a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MoveFault {
    #[error("peer {peer} is not another rank")]
    Peer { peer: u32 },
    #[error("chunks {first} to {end} are not a range of {chunks} chunks")]
    Chunks { first: u64, end: u64, chunks: u128 },
    #[error("a move to or from rank {peer} has no chunks")]
    Nothing { peer: u32 },
}

/// The steps of a rank.
///
/// * **Errors.** [`RankFileError`].
/// * **Cost.** That of [`Stages::program`](canopy_schedule::Stages::program).
pub fn rank_steps(request: &RankRequest<'_>) -> Result<RankSteps, RankFileError> {
    let (program, _) = request.program(u32::MAX)?;
    let RankRequest { stages, collective, rank_count, rank } = *request;
    Ok(RankSteps { collective, rank_count, rank, chunks_per_share: stages.chunks_per_share, program })
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: u32,
    collective: String,
    ranks: u32,
    rank: u32,
    chunks_per_share: u64,
    phases: Vec<PhaseDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseDocument {
    action: ActionDocument,
    steps: Vec<StepDocument>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ActionDocument {
    Copy,
    Reduce,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepDocument {
    inside: bool,
    sends: Vec<MoveDocument>,
    receives: Vec<MoveDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveDocument {
    peer: u32,
    /// First chunk of each range, and the one after its last.
    chunks: Vec<(u64, u64)>,
}

/// One line of JSON, in a fixed order of fields; the same steps give the same text. O(moves).
pub fn write_rank_steps(steps: &RankSteps) -> String {
    let moves = |moves: &[Move]| {
        let one = |one: &Move| MoveDocument {
            peer: one.peer,
            chunks: one.chunks.iter().map(|chunks| (chunks.start, chunks.end)).collect(),
        };
        moves.iter().map(one).collect()
    };
    let step = |step: &ProgramStep| StepDocument {
        inside: step.is_inside,
        sends: moves(&step.sends),
        receives: moves(&step.receives),
    };
    let phase = |phase: &ProgramPhase| PhaseDocument {
        action: match phase.action {
            Action::Copy => ActionDocument::Copy,
            Action::Reduce => ActionDocument::Reduce,
        },
        steps: phase.steps.iter().map(step).collect(),
    };
    let document = Document {
        schema: RANK_STEPS_SCHEMA,
        collective: steps.collective.kind().name().to_owned(),
        ranks: steps.rank_count,
        rank: steps.rank,
        chunks_per_share: steps.chunks_per_share,
        phases: steps.program.phases.iter().map(phase).collect(),
    };
    let mut text = serde_json::to_string(&document).expect("texts, numbers and lists of them are JSON");
    text.push('\n');
    text
}

/// Reads what [`write_rank_steps`] writes.
///
/// * **Errors.** [`RankStepsError`]: another format or version, or moves of ranks and chunks that do not exist. Whether
///   the steps of all ranks fit together cannot be seen in those of one.
/// * **Cost.** O(bytes), memory several times that of the text.
pub fn parse_rank_steps(text: &str) -> Result<RankSteps, RankStepsError> {
    let Document { schema, collective: name, ranks, rank, chunks_per_share, phases } = serde_json::from_str(text)?;
    if schema != RANK_STEPS_SCHEMA {
        return Err(RankStepsError::Version { found: schema });
    }
    let kinds = [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce];
    let kind = kinds.into_iter().find(|kind| kind.name() == name);
    let collective = kind.and_then(|kind| Collective::new(kind, None, ranks).ok());
    let collective = collective.ok_or(RankStepsError::Collective { name: name.chars().take(80).collect() })?;
    if rank >= ranks {
        return Err(RankStepsError::Rank { rank, rank_count: ranks });
    }
    let reader = Reader { rank, ranks, chunks: u128::from(ranks) * u128::from(chunks_per_share) };
    let phases = phases.into_iter().enumerate().map(|(phase, of)| reader.phase(phase, of));
    let program = Program { phases: phases.collect::<Result<_, _>>()? };
    Ok(RankSteps { collective, rank_count: ranks, rank, chunks_per_share, program })
}

struct Reader {
    rank: u32,
    ranks: u32,
    chunks: u128,
}

impl Reader {
    fn phase(&self, phase: usize, of: PhaseDocument) -> Result<ProgramPhase, RankStepsError> {
        let action = match of.action {
            ActionDocument::Copy => Action::Copy,
            ActionDocument::Reduce => Action::Reduce,
        };
        let step = |(step, of): (usize, StepDocument)| {
            let moves = |moves: Vec<MoveDocument>| moves.into_iter().map(|one| self.one(one)).collect();
            let faulty = |fault| RankStepsError::Move { phase, step, fault };
            let (sends, receives): (Result<Vec<Move>, _>, Result<Vec<Move>, _>) = (moves(of.sends), moves(of.receives));
            let (sends, receives) = (sends.map_err(faulty)?, receives.map_err(faulty)?);
            Ok(ProgramStep { is_inside: of.inside, sends, receives })
        };
        let steps = of.steps.into_iter().enumerate().map(step).collect::<Result<_, RankStepsError>>()?;
        Ok(ProgramPhase { action, steps })
    }

    fn one(&self, MoveDocument { peer, chunks }: MoveDocument) -> Result<Move, MoveFault> {
        if peer >= self.ranks || peer == self.rank {
            return Err(MoveFault::Peer { peer });
        }
        if chunks.is_empty() {
            return Err(MoveFault::Nothing { peer });
        }
        match chunks.iter().find(|(first, end)| first >= end || u128::from(*end) > self.chunks) {
            Some(&(first, end)) => Err(MoveFault::Chunks { first, end, chunks: self.chunks }),
            None => Ok(Move { peer, chunks: chunks.into_iter().map(|(first, end)| first..end).collect() }),
        }
    }
}
