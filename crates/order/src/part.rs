//! Some machines of a fabric, whose others share its links.

use std::collections::BTreeMap;

use crate::fabric::{Edge, Fabric};
use crate::levels::machines_below;

/// A machine that is named is not in the network, or twice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PartError {
    #[error("`{name}` is not a machine of the network")]
    Unknown { name: String },
    #[error("machine `{name}` is named twice")]
    Twice { name: String },
}

impl Fabric {
    /// The same fabric for a job on these machines alone, in this order; the others share the links.
    ///
    /// # Errors
    /// A name that is not there, or twice.
    pub fn part(&self, names: &[String]) -> Result<Self, PartError> {
        let numbers: BTreeMap<&str, usize> =
            self.machines().iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
        let mut place_of: Vec<Option<usize>> = vec![None; self.node_count()];
        let mut rank_counts = Vec::with_capacity(names.len());
        for (place, name) in names.iter().enumerate() {
            let &number = numbers.get(name.as_str()).ok_or_else(|| PartError::Unknown { name: name.clone() })?;
            if place_of[number].replace(place).is_some() {
                return Err(PartError::Twice { name: name.clone() });
            }
            rank_counts.push(self.rank_counts()[number]);
        }
        let is_other = |node: usize| node < self.machines().len() && place_of[node].is_none();
        // Switches follow the machines.
        let shift = self.machines().len() - names.len();
        let renamed = |node: usize| place_of[node].unwrap_or_else(|| node.saturating_sub(shift));
        let kept = self.edges.iter().zip(machines_below(self, &|machine| !is_other(machine)));
        let (edges, below): (Vec<Edge>, Vec<(u64, u64)>) = kept
            .filter(|(edge, _)| !is_other(edge.from) && !is_other(edge.to))
            .map(|(edge, below)| (Edge { from: renamed(edge.from), to: renamed(edge.to), ..*edge }, below))
            .unzip();
        let mut part = Self::new(names.to_vec(), rank_counts, edges, self.node_count() - shift);
        (part.below, part.nic) = (below, self.nic);
        Ok(part)
    }
}
