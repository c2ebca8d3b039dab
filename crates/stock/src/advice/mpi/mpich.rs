//! The tree of MPICH's collective selection: `MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE`.
//!
//! Keys of an object are conditions, tried in order; below the first that holds, the search goes on, up to an algorithm. The
//! file takes the place of the tree that is built into the library, and MPICH aborts on a call that finds nothing in it, or
//! a name that it does not know. So advice is put into the tree of the installed version: for communicators of exactly these
//! sizes, and for calls that can run every algorithm; all others go on in the branch that was there.
//!
//! Bounds are read with `atoi`: those above 2³¹ − 1 are left out. The file is read up to a zero byte behind its end, which
//! is not there if it fills its last page: so it never does.

use std::fmt;

use canopy_schedule::CollectiveKind;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::choose::{Candidate, MpiChoice, Sends, choices};
use super::paths::Paths;
use super::patterns as sends;

/// Collectives that are advised on; of others MPICH has one algorithm.
pub const MPICH_COLLECTIVES: [CollectiveKind; 6] = [
    CollectiveKind::Allgather,
    CollectiveKind::Allreduce,
    CollectiveKind::AllToAll,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
    CollectiveKind::ReduceScatter,
];

/// Why a tree cannot be advised on.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MpichError {
    #[error("the tree is not an object of objects: {0}")]
    Json(serde_json::Error),
    #[error("the tree has no branch `{key}`")]
    Absent { key: String },
}

/// Conditions, or algorithms, and what is below each, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tree(Vec<(String, Tree)>);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Branches;
        impl<'de> Visitor<'de> for Branches {
            type Value = Tree;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut branches = Vec::new();
                while let Some(branch) = map.next_entry()? {
                    branches.push(branch);
                }
                Ok(Tree(branches))
            }
        }
        deserializer.deserialize_map(Branches)
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, below) in &self.0 {
            map.serialize_entry(key, below)?;
        }
        map.end()
    }
}

impl Tree {
    /// What is below a key; blanks do not count.
    fn below(&mut self, key: &str) -> Result<&mut Self, MpichError> {
        let is_it = |found: &str| found.chars().filter(|character| !character.is_whitespace()).eq(key.chars());
        let found = self.0.iter_mut().find(|(found, _)| is_it(found));
        found.map(|(_, below)| below).ok_or_else(|| MpichError::Absent { key: key.to_owned() })
    }

    fn of<const N: usize>(branches: [(&str, Self); N]) -> Self {
        Self(branches.map(|(key, below)| (key.to_owned(), below)).into())
    }
}

const fn whole(name: &'static str, pattern: fn(u64) -> Option<sends::Pattern>) -> Candidate {
    Candidate { id: 0, name, segment: 0, sends: Sends::Whole(pattern) }
}

/// Its algorithms for a collective, in order of preference among equals.
fn candidates(collective: CollectiveKind) -> Vec<Candidate> {
    match collective {
        CollectiveKind::Allgather => vec![
            whole("recursive_doubling", sends::doubling_allgather),
            whole("brucks", sends::bruck_allgather),
            whole("ring", sends::ring),
        ],
        CollectiveKind::Allreduce => vec![
            whole("recursive_doubling", sends::doubling_allreduce),
            whole("reduce_scatter_allgather", sends::halving_allreduce),
        ],
        CollectiveKind::AllToAll => vec![
            whole("brucks", sends::bruck_all_to_all),
            whole("pairwise", sends::pairwise),
            whole("scattered", sends::direct_all_to_all),
        ],
        CollectiveKind::Broadcast => vec![
            whole("binomial", sends::binomial_broadcast_falling),
            whole("scatter_recursive_doubling_allgather", sends::scatter_doubling),
            whole("scatter_ring_allgather", sends::scatter_ring),
        ],
        CollectiveKind::Reduce => {
            vec![whole("binomial", sends::binomial_reduce), whole("reduce_scatter_gather", sends::halving_reduce)]
        }
        CollectiveKind::ReduceScatter => {
            vec![whole("recursive_halving", sends::halving_reduce_scatter), whole("pairwise", sends::pairwise)]
        }
        CollectiveKind::Gather | CollectiveKind::Scatter => Vec::new(),
    }
}

/// The fastest of MPICH's algorithms for each size of a collective on a communicator.
pub fn mpich_choices(paths: &Paths<'_>, collective: CollectiveKind) -> Vec<MpiChoice> {
    choices(paths, collective, candidates(collective))
}

/// MPICH's names of a collective, in keys and in algorithms.
const fn names(collective: CollectiveKind) -> &'static [(&'static str, &'static str)] {
    match collective {
        CollectiveKind::Allgather => &[("allgather", "Allgather")],
        CollectiveKind::Allreduce => &[("allreduce", "Allreduce")],
        CollectiveKind::AllToAll => &[("alltoall", "Alltoall")],
        CollectiveKind::Broadcast => &[("bcast", "Bcast")],
        CollectiveKind::Reduce => &[("reduce", "Reduce")],
        CollectiveKind::ReduceScatter => {
            &[("reduce_scatter", "Reduce_scatter"), ("reduce_scatter_block", "Reduce_scatter_block")]
        }
        CollectiveKind::Gather | CollectiveKind::Scatter => &[],
    }
}

/// The tree of an installed MPICH 4 with advice in it.
///
/// # Errors
/// The text is not such a tree, or lacks a collective that is advised on.
pub fn mpich_tree(installed: &str, choices: &[MpiChoice]) -> Result<String, MpichError> {
    let mut tree: Tree = serde_json::from_str(installed).map_err(MpichError::Json)?;
    for collective in MPICH_COLLECTIVES {
        let own: Vec<&MpiChoice> = choices.iter().filter(|choice| choice.collective == collective).collect();
        for &(key, name) in names(collective).iter().filter(|_| !own.is_empty()) {
            let branch = tree.below(&format!("collective={key}"))?.below("comm_type=intra")?;
            let before = std::mem::take(branch);
            *branch = advised(collective, name, &own, &before);
        }
    }
    let mut text = serde_json::to_string_pretty(&tree).map_err(MpichError::Json)?;
    text.push('\n');
    if text.len().is_multiple_of(PAGE_BYTES) {
        text.push('\n');
    }
    Ok(text)
}

/// Bytes of the smallest pages.
const PAGE_BYTES: usize = 4096;

/// Advice for communicators of its sizes; all else goes on as before.
fn advised(collective: CollectiveKind, name: &str, choices: &[&MpiChoice], before: &Tree) -> Tree {
    let mut sizes: Vec<u64> = choices.iter().map(|choice| choice.ranks).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut tree = Tree::default();
    for ranks in sizes {
        let own = choices.iter().copied().filter(|choice| choice.ranks == ranks);
        let by_size = by_size(collective, name, own);
        let below = match collective {
            // Only then all algorithms can run.
            CollectiveKind::Allreduce | CollectiveKind::Reduce => Tree::of([
                ("is_op_built_in=yes", Tree::of([("count<pow2", before.clone()), ("count=any", by_size)])),
                ("is_op_built_in=no", before.clone()),
            ]),
            CollectiveKind::ReduceScatter => {
                Tree::of([("is_commutative=yes", by_size), ("is_commutative=no", before.clone())])
            }
            CollectiveKind::AllToAll => {
                Tree::of([("is_sendbuf_inplace=yes", before.clone()), ("is_sendbuf_inplace=no", by_size)])
            }
            _ => by_size,
        };
        tree.0.push((format!("comm_size<{ranks}"), before.clone()));
        tree.0.push((format!("comm_size<={ranks}"), below));
    }
    tree.0.push(("comm_size=any".to_owned(), before.clone()));
    tree
}

/// The algorithm for each size.
fn by_size<'a>(collective: CollectiveKind, name: &str, choices: impl Iterator<Item = &'a MpiChoice>) -> Tree {
    // Of an all-to-all, MPICH counts the block for one rank.
    let (key, divides) = match collective {
        CollectiveKind::Allgather | CollectiveKind::ReduceScatter => ("total_msg_size", false),
        CollectiveKind::AllToAll => ("avg_msg_size", true),
        _ => ("avg_msg_size", false),
    };
    let mut tree = Tree::default();
    let algorithm = |choice: &MpiChoice| {
        Tree::of([(&*format!("algorithm=MPIR_{name}_intra_{}", choice.candidate.name), Tree::default())])
    };
    for choice in choices {
        let end = choice.last.checked_add(1).map(|end| if divides { end.div_ceil(choice.ranks) } else { end });
        match end.and_then(|end| i32::try_from(end).ok()) {
            Some(end) => tree.0.push((format!("{key}<{end}"), algorithm(choice))),
            None => {
                tree.0.push((format!("{key}=any"), algorithm(choice)));
                break;
            }
        }
    }
    tree
}

#[cfg(test)]
mod tests;
