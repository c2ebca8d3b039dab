//! A oneCCL plan in memory: exactly what the text says, nothing derived.
//!
//! A program may be nonsense; only [`prove`](super::prove) says whether it is right.

use std::fmt;

use canopy_schedule::Collective;

use crate::msccl::Buffer;

/// One algorithm for one collective on one number of ranks (`<onecclplan>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Label: 1 to 63 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// `coll` and `root`.
    pub collective: Collective,
    /// `nranks`.
    pub rank_count: u32,
    /// `nchunks`: chunks of the whole message.
    pub chunk_count: u32,
    /// `inplace`: input and output share memory.
    pub in_place: bool,
    /// Parallel copies, each of which does its part of every chunk.
    pub instances: u32,
    /// `minbytes`, inclusive.
    pub bytes_min: u64,
    /// `maxbytes`, inclusive; `None` is written 0 and means no limit.
    pub bytes_max: Option<u64>,
    /// What is said of the plan; changes nothing about it.
    pub meta: Vec<Meta>,
    /// Ways through a fabric with selectable paths.
    pub routes: Vec<Route>,
    /// What each rank does, in file order.
    pub ranks: Vec<RankProgram>,
}

/// A statement about a plan (`<meta>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// 1 to 63 letters, digits, `_`, `-` and `.`.
    pub key: String,
    /// At most 1048576 characters, none of them a control character.
    pub value: String,
}

/// A way through the fabric (`<route>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// What sends call it.
    pub id: u32,
    /// The sending rank.
    pub source: u32,
    /// The receiving rank.
    pub destination: u32,
    /// Virtual channel.
    pub layer: u32,
    /// Indices of the nodes it passes, both ends included.
    pub hops: Vec<u32>,
}

/// What one rank does (`<rank>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankProgram {
    /// The rank.
    pub rank: u32,
    /// `i_chunks`; 0 where its caller gives no input.
    pub input_chunks: u32,
    /// `o_chunks`; 0 where its caller gives no output.
    pub output_chunks: u32,
    /// `s_chunks`.
    pub scratch_chunks: u32,
    /// Its steps, in file order.
    pub steps: Vec<Step>,
}

/// Messages that proceed together, and what is done when they are complete (`<step>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// `t` as written.
    pub index: u32,
    /// Posted in this order.
    pub sends: Vec<Send>,
    /// Posted in this order.
    pub receives: Vec<Receive>,
    /// The wait for them, and what follows it.
    pub completion: Option<Completion>,
}

/// The end of a step's messages (the first `<sync>`), and what is done then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Who waits.
    pub scope: Scope,
    /// Work within the rank, in order.
    pub locals: Vec<Local>,
    /// A second `<sync>`, after it.
    pub after: Option<Scope>,
}

/// An asynchronous send of chunks in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// The receiver.
    pub peer: u32,
    /// What is sent.
    pub span: Span,
    /// Id of the route it takes, where the file chooses one.
    pub route: Option<u32>,
}

/// An asynchronous receive of chunks in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The sender.
    pub peer: u32,
    /// Where they go.
    pub span: Span,
}

/// Work within a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// Whether the source is combined with what is there (`<reduce>`), or takes its place (`<copy>`).
    pub is_reduction: bool,
    /// What is read.
    pub source: Span,
    /// What is written; of the same number of chunks.
    pub destination: Span,
}

/// Chunks in a row of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The buffer.
    pub buffer: Buffer,
    /// The first chunk.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// `o[3..5]`: buffer, first chunk, and the one after the last.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = u64::from(self.first) + u64::from(self.count);
        write!(f, "{}[{}..{end}]", self.buffer.letter(), self.first)
    }
}

/// Who takes part in a `<sync>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The rank waits for its own messages of the step.
    Local,
    /// All ranks wait for each other, too.
    All,
}

impl Scope {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Local, Self::All];

    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::All => "all",
        }
    }
}

impl Step {
    /// Scopes of its waits for all ranks: none, one or two.
    pub(crate) fn barriers(&self) -> usize {
        let scopes = self.completion.iter().flat_map(|completion| [Some(completion.scope), completion.after]);
        scopes.flatten().filter(|scope| *scope == Scope::All).count()
    }
}
