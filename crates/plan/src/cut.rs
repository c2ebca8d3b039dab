//! Files cut by rank: what some ranks read of a file that was written here, found line by line without parsing the rest.
//!
//! Readers of one rank look at its own part and at little of the others. A slice has the parts of its ranks as the whole
//! file has them, and of each other rank a *stub*, so that ranks can still be counted. It cannot be proved right: the
//! whole file has been. The slices of all ranks, each with its own part, are the file.

use std::collections::BTreeSet;

/// A rank that a file does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} is not in the file; use 0 to {}", rank_count.saturating_sub(1))]
pub struct NoSuchRank {
    /// The rank that was named.
    pub rank: u32,
    /// Ranks of the file.
    pub rank_count: u32,
}

/// Why a file cannot be cut by rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// The file was not written by canopy.
    #[error("{0}")]
    Unreadable(String),
    /// The file does not have a requested rank.
    #[error(transparent)]
    NoSuchRank(#[from] NoSuchRank),
}

/// Which ranks a slice is for, and which of them have been found.
pub(crate) struct Cut<'a> {
    wanted: &'a BTreeSet<u32>,
    rank_count: u32,
}

impl<'a> Cut<'a> {
    pub(crate) fn new(wanted: &'a BTreeSet<u32>) -> Self {
        Self { wanted, rank_count: 0 }
    }

    /// Whether the next rank of the file is one of those. Ranks stand in files in their order.
    pub(crate) fn next(&mut self, rank: u32) -> Result<bool, SliceError> {
        if rank != self.rank_count {
            return Err(SliceError::Unreadable(format!("rank {rank} stands where rank {} belongs", self.rank_count)));
        }
        self.rank_count += 1;
        Ok(self.wanted.contains(&rank))
    }

    pub(crate) fn wants(&self, rank: u32) -> bool {
        self.wanted.contains(&rank)
    }

    /// Whether all of them were there.
    pub(crate) fn end(self) -> Result<(), SliceError> {
        let rank_count = self.rank_count;
        match self.wanted.iter().find(|&&rank| rank >= rank_count) {
            Some(&rank) => Err(NoSuchRank { rank, rank_count }.into()),
            None => Ok(()),
        }
    }
}

/// The text of a file of bytes.
pub(crate) fn text(content: &[u8]) -> Result<&str, SliceError> {
    std::str::from_utf8(content).map_err(|error| SliceError::Unreadable(error.to_string()))
}

/// Cuts XML in which each rank is an element of its own line with lines of its own. A stub is the element with its attributes
/// and without content. Of `<route>`s those stay that begin or end at the ranks. O(bytes).
pub(crate) fn cut_xml(content: &[u8], element: &str, ranks: &BTreeSet<u32>) -> Result<Vec<u8>, SliceError> {
    let (open, close) = (format!("  <{element} id=\""), format!("  </{element}>\n"));
    let mut cut = Cut::new(ranks);
    let mut slice = String::new();
    let mut is_left_out = false;
    for line in text(content)?.split_inclusive('\n') {
        if is_left_out {
            is_left_out = line != close;
            continue;
        }
        let Some(rest) = line.strip_prefix(&open) else {
            if is_of_ranks(line, &cut) {
                slice.push_str(line);
            }
            continue;
        };
        let unreadable = || SliceError::Unreadable(format!("`{}` names no rank", line.trim_end()));
        let number = rest.split('"').next().and_then(|number| number.parse().ok()).ok_or_else(unreadable)?;
        if cut.next(number)? || line.ends_with("/>\n") {
            slice.push_str(line);
        } else {
            let start = line.strip_suffix(">\n").ok_or_else(unreadable)?;
            slice.push_str(start);
            slice.push_str("/>\n");
            is_left_out = true;
        }
    }
    cut.end()?;
    Ok(slice.into_bytes())
}

/// Whether a line outside of ranks matters to those of the slice: all but the routes of others.
fn is_of_ranks(line: &str, cut: &Cut<'_>) -> bool {
    let Some(route) = line.trim_start().strip_prefix("<route ") else { return true };
    let end = |name: &str| route.split_once(name)?.1.split('"').next()?.parse().ok();
    [" src=\"", " dst=\""].into_iter().filter_map(end).any(|rank| cut.wants(rank))
}
