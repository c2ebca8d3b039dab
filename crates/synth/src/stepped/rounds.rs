//! What a textbook says: who sends which chunks to whom in which step, whatever lies between them.

use std::ops::Range;

use canopy_schedule::{Action, Collective, CollectiveKind};
use canopy_topology::Rank;

use crate::algorithm::Synthesizer;
use crate::error::SteppedError;
use crate::parts::HOPS_MAX;

/// All chunks that a rank sends another in a step.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) step: u32,
    pub(super) action: Action,
    pub(super) ends: (Rank, Rank),
    /// Where they are listed.
    chunks: Range<usize>,
}

/// Messages of a schedule, by rising step.
#[derive(Clone, Debug)]
pub struct Rounds {
    pub(super) row: &'static Synthesizer,
    /// What they do.
    pub collective: Collective,
    pub(super) rank_count: u32,
    pub(super) chunks_per_share: u64,
    pub(super) messages: Vec<Message>,
    chunks: Vec<u64>,
}

impl Rounds {
    /// None yet.
    pub const fn new(row: &'static Synthesizer, collective: Collective, rank_count: u32) -> Self {
        Self { row, collective, rank_count, chunks_per_share: 1, messages: Vec::new(), chunks: Vec::new() }
    }

    /// The same with this number of chunks in each share.
    #[must_use]
    pub fn in_chunks(self, chunks_per_share: u64) -> Self {
        Self { chunks_per_share, ..self }
    }

    /// All ranks.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.rank_count).map(Rank::new)
    }

    /// Sends these chunks in one step, no earlier than all before.
    ///
    /// # Errors
    /// Too many sends.
    pub fn send(
        &mut self,
        step: u32,
        action: Action,
        ends: (Rank, Rank),
        chunks: impl Iterator<Item = u64>,
    ) -> Result<(), SteppedError> {
        let first = self.chunks.len();
        for chunk in chunks {
            require_room(self.row.name, self.chunks.len())?;
            self.chunks.push(chunk);
        }
        self.messages.push(Message { step, action, ends, chunks: first..self.chunks.len() });
        Ok(())
    }

    /// What a message carries.
    pub(super) fn chunks_of(&self, message: &Message) -> &[u64] {
        &self.chunks[message.chunks.clone()]
    }

    /// The same backwards: receivers of copies now send what is added, so that what was spread is summed up where it came from.
    fn backwards(mut self) -> Self {
        let last = self.messages.last().map_or(0, |message| message.step);
        self.messages.reverse();
        for message in &mut self.messages {
            let (from, to) = message.ends;
            (message.step, message.action, message.ends) = (last - message.step, Action::Reduce, (to, from));
        }
        self
    }

    /// These messages, and then those of others.
    ///
    /// # Errors
    /// Too many sends.
    fn then(mut self, others: &Self) -> Result<Self, SteppedError> {
        let first = self.messages.last().map_or(0, |message| message.step + 1);
        for message in &others.messages {
            self.send(first + message.step, message.action, message.ends, others.chunks_of(message).iter().copied())?;
        }
        Ok(self)
    }

    /// The sums of a collective whose data spreads by these messages: the messages backwards, and for an allreduce
    /// forwards after that.
    ///
    /// # Errors
    /// Too many sends.
    pub fn summing(self, collective: Collective) -> Result<Self, SteppedError> {
        let all = match collective.kind() {
            CollectiveKind::Allreduce => self.clone().backwards().then(&self)?,
            _ => self.backwards(),
        };
        Ok(Self { collective, ..all })
    }

    /// That the collective is none of those that are planned.
    pub fn unsupported(&self) -> SteppedError {
        let (name, supported) = (self.row.name, self.row.collectives);
        SteppedError::Unsupported { name, collective: self.collective.kind(), supported }
    }
}

/// Refuses one more send than there is room for.
pub(super) const fn require_room(name: &'static str, sends: usize) -> Result<(), SteppedError> {
    if sends as u64 >= HOPS_MAX { Err(SteppedError::TooManySends { name, limit: HOPS_MAX }) } else { Ok(()) }
}
