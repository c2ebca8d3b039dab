//! Tasks: the chunks to copy.

/// Every chunk, from the node that has it, to every member.
///
/// An allgather has k chunks at every node and all nodes as members; a broadcast k at the root; a group of nodes is members
/// that own chunks, and all others pass on what they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyTask {
    owners: Vec<u32>,
    is_member: Vec<bool>,
}

/// Errors of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TaskError {
    #[error("chunk {chunk} is owned by node {owner}, but nodes are numbered below {node_count}")]
    UnknownOwner { chunk: usize, owner: u32, node_count: usize },
    #[error(
        "chunk {chunk} is owned by node {owner} and the one before by node {before}; list chunks in the order of \
             their owners"
    )]
    OwnerOrder { chunk: usize, owner: u32, before: u32 },
    #[error("{found} chunks are too many to number")]
    TooManyChunks { found: usize },
}

impl CopyTask {
    /// By chunk its owner, in order; by node whether it is to have all chunks.
    ///
    /// # Errors
    /// [`TaskError`]: owners that are no nodes, or out of order. O(chunks).
    pub fn new(owners: Vec<u32>, is_member: Vec<bool>) -> Result<Self, TaskError> {
        let node_count = is_member.len();
        if u32::try_from(owners.len()).is_err() {
            return Err(TaskError::TooManyChunks { found: owners.len() });
        }
        let mut before = 0;
        for (chunk, &owner) in owners.iter().enumerate() {
            if owner as usize >= node_count {
                return Err(TaskError::UnknownOwner { chunk, owner, node_count });
            }
            if owner < before {
                return Err(TaskError::OwnerOrder { chunk, owner, before });
            }
            before = owner;
        }
        Ok(Self { owners, is_member })
    }

    /// `chunks_each` chunks of each node, for all nodes.
    ///
    /// # Errors
    /// [`TaskError::TooManyChunks`].
    pub fn allgather(node_count: u32, chunks_each: u32) -> Result<Self, TaskError> {
        let found = u64::from(node_count) * u64::from(chunks_each);
        if u32::try_from(found).is_err() {
            return Err(TaskError::TooManyChunks { found: usize::try_from(found).unwrap_or(usize::MAX) });
        }
        let owners = (0..node_count).flat_map(|node| std::iter::repeat_n(node, chunks_each as usize)).collect();
        Ok(Self { owners, is_member: vec![true; node_count as usize] })
    }

    /// `chunks` chunks of one node, for all nodes.
    ///
    /// # Errors
    /// [`TaskError::UnknownOwner`].
    pub fn broadcast(node_count: u32, root: u32, chunks: u32) -> Result<Self, TaskError> {
        Self::new(vec![root; chunks as usize], vec![true; node_count as usize])
    }

    /// By chunk, the node that has it.
    pub fn owners(&self) -> &[u32] {
        &self.owners
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> u32 {
        u32::try_from(self.owners.len()).expect("counted when the task was made")
    }

    /// Number of nodes.
    pub const fn node_count(&self) -> usize {
        self.is_member.len()
    }

    /// Whether a node is to have all chunks.
    pub fn is_member(&self, node: u32) -> bool {
        self.is_member[node as usize]
    }

    /// Whether all nodes are.
    pub(crate) fn is_for_all(&self) -> bool {
        self.is_member.iter().all(|&is_member| is_member)
    }

    /// By node, its first chunk; one entry more than nodes.
    pub(crate) fn first_chunks(&self) -> Vec<u32> {
        let mut first = vec![0; self.is_member.len() + 1];
        self.owners.iter().for_each(|&owner| first[owner as usize + 1] += 1);
        for node in 0..self.is_member.len() {
            first[node + 1] += first[node];
        }
        first
    }

    /// Which chunk of its owner each is.
    pub(crate) fn places(&self) -> ChunkPlaces<'_> {
        ChunkPlaces { owners: &self.owners, first: self.first_chunks() }
    }
}

/// Chunks by their places among those of their owners.
pub(crate) struct ChunkPlaces<'a> {
    owners: &'a [u32],
    first: Vec<u32>,
}

impl ChunkPlaces<'_> {
    /// Where a permutation of nodes takes a chunk: to the one of the same place among those of the image of its owner.
    pub(crate) fn image(&self, chunk: u32, nodes: &[u32]) -> u32 {
        let owner = self.owners[chunk as usize];
        self.first[nodes[owner as usize] as usize] + (chunk - self.first[owner as usize])
    }
}
