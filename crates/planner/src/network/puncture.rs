//! What faults leave of the network that a request is for, and of what it says of its ranks.

use std::sync::Arc;

use canopy_faults::Directory;
use canopy_schedule::CollectiveKind;
use canopy_topology::{Fault, Rank, Topology};

use super::seats::Seats;
use crate::error::PlanError;
use crate::planned::Puncture;
use crate::request::Request;

/// The part of a request that counts in ranks, on the network as its ranks see it.
pub(crate) struct Part {
    pub(crate) seats: Seats,
    pub(crate) root: Option<u32>,
    /// Empty: all are of one size.
    pub(crate) shares: Vec<u64>,
    /// Where it is the rest of something: of what.
    pub(crate) puncture: Option<Arc<Puncture>>,
}

impl Part {
    /// All that a request says, where nothing is broken.
    pub(crate) fn sound(seats: Seats, request: &Request) -> Self {
        Self { seats, root: request.root, shares: request.shares.clone(), puncture: None }
    }

    /// What is left of it. Faults of what a request's ranks do not see change nothing.
    ///
    /// # Errors
    /// Faults of what is not there, fewer than two ranks left, or a root that is lost.
    pub(crate) fn without(self, faults: &[Fault], request: &Request, base: String) -> Result<Self, PlanError> {
        let Seats { topology: sound, rank_map } = self.seats;
        let left = sound.puncture(&seen_by(&sound, faults)).map_err(PlanError::Fault)?;
        let survivors = &left.survivors;
        // A root that never was, or where there is none, is refused for what it is.
        let root = match request.kind.has_root().then(|| self.root.unwrap_or(0)) {
            Some(root) if root < sound.rank_count() => {
                let new = survivors.binary_search(&Rank::new(root)).map_err(|_| PlanError::RootLost { root })?;
                Some(u32::try_from(new).expect("ranks have numbers of 32 bits"))
            }
            _ => self.root,
        };
        let shares = surviving_shares(self.shares, request.kind, sound.rank_count() as usize, survivors);
        let rank_map = rank_map.map(|slots| {
            let mut survivors = survivors.iter().peekable();
            let mut is_left = |index| survivors.next_if(|rank| rank.index() == index).is_some();
            slots.into_iter().enumerate().filter(|&(index, _)| is_left(index)).map(|(_, slot)| slot).collect()
        });
        let puncture = Puncture { base, faults: request.faults.clone(), survivors: survivors.clone() };
        Ok(Self {
            seats: Seats { topology: left.topology, rank_map },
            root,
            shares,
            puncture: Some(Arc::new(puncture)),
        })
    }
}

/// What a request's faults mean on its whole network.
pub(crate) fn faults(whole: &Topology, request: &Request) -> Result<Vec<Fault>, PlanError> {
    Directory::new(whole).resolve(&request.faults).map_err(PlanError::FaultMeaning)
}

/// The faults of what a part of the network has.
pub fn seen_by(part: &Topology, faults: &[Fault]) -> Vec<Fault> {
    let there = part.find_nodes(faults.iter().flat_map(Fault::ids));
    // Links between nodes that are both there are there: groups lose links with their nodes only.
    let is_seen = |fault: &&Fault| fault.ids().all(|id| there.contains_key(id));
    faults.iter().filter(is_seen).cloned().collect()
}

/// The sizes of those who are left. What does not fit the number of ranks is left for [`Shares`](canopy_schedule::Shares) to refuse.
fn surviving_shares(shares: Vec<u64>, kind: CollectiveKind, rank_count: usize, survivors: &[Rank]) -> Vec<u64> {
    let pick =
        |row: &[u64]| -> Vec<u64> { survivors.iter().filter_map(|rank| row.get(rank.index()).copied()).collect() };
    if kind != CollectiveKind::AllToAll {
        return if shares.len() == rank_count { pick(&shares) } else { shares };
    }
    if shares.len() != rank_count.saturating_mul(rank_count) {
        return shares;
    }
    let rows: Vec<&[u64]> = shares.chunks(rank_count.max(1)).collect();
    survivors.iter().filter_map(|rank| rows.get(rank.index())).flat_map(|row| pick(row)).collect()
}
