//! The member `network`: a network by what it was made of, in place of all its nodes and links.

use canopy_topology::{Fault, Origin, OriginError, Topology, TopologyLimits, identity_hash};
use serde::{Deserialize, Serialize};

use super::PlanFileError;

/// Fewest nodes and links of a network that is written by its origin.
const PARTS_MIN: usize = 1 << 12;

/// An expression, and what was taken away of its network.
#[derive(Deserialize, Serialize)]
pub(super) struct OriginDocument {
    expression: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    without: Vec<FaultDocument>,
    /// Of everything that can be seen of the network.
    identity: String,
}

/// One fault: directed links, with fractions as numerator and denominator; of features those that are lost.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum FaultDocument {
    Node(String),
    Link(String, String),
    Degrade(String, String, u64, u64),
    Multicast(String),
    Aggregate(String),
}

impl OriginDocument {
    /// What a network was made of, where that is shorter.
    pub(super) fn of(topology: &Topology, base: Option<&Topology>) -> Option<Self> {
        if topology.nodes().len() + topology.links().len() < PARTS_MIN {
            return None;
        }
        let Origin { expression, faults } = Origin::of(topology, base)?;
        let without = faults.into_iter().flat_map(FaultDocument::of).collect();
        Some(Self { expression, without, identity: identity_hash(topology).to_string() })
    }

    /// The network, which is the one that was meant.
    pub(super) fn topology(self, limits: &TopologyLimits, base: Option<&Topology>) -> Result<Topology, PlanFileError> {
        let Self { expression, without, identity } = self;
        let faults = without.into_iter().map(FaultDocument::fault).collect();
        let topology = Origin { expression, faults }.topology(limits, base).map_err(|error| match error {
            OriginError::Expression(error) => PlanFileError::Expression(error),
            OriginError::Faults(error) => PlanFileError::Without(error),
        })?;
        let found = identity_hash(&topology).to_string();
        if found != identity {
            return Err(PlanFileError::Identity { found, expected: identity.chars().take(64).collect() });
        }
        Ok(topology)
    }
}

impl FaultDocument {
    fn of(fault: Fault) -> Vec<Self> {
        let both = |(from, to): (String, String), both_ways: bool, of: &dyn Fn(String, String) -> Self| {
            let back = both_ways.then(|| of(to.clone(), from.clone()));
            std::iter::once(of(from, to)).chain(back).collect()
        };
        match fault {
            Fault::Node { id } => vec![Self::Node(id)],
            Fault::Link { from, to, both_ways } => both((from, to), both_ways, &Self::Link),
            Fault::Degrade { from, to, both_ways, numerator, denominator } => {
                both((from, to), both_ways, &|from, to| Self::Degrade(from, to, numerator, denominator))
            }
            Fault::Feature { switch, multicast, aggregate } => {
                let lost = [(multicast, Self::Multicast(switch.clone())), (aggregate, Self::Aggregate(switch))];
                lost.into_iter().filter(|&(is_lost, _)| is_lost).map(|(_, lost)| lost).collect()
            }
        }
    }

    fn fault(self) -> Fault {
        let both_ways = false;
        match self {
            Self::Node(id) => Fault::Node { id },
            Self::Link(from, to) => Fault::Link { from, to, both_ways },
            Self::Degrade(from, to, numerator, denominator) => {
                Fault::Degrade { from, to, both_ways, numerator, denominator }
            }
            Self::Multicast(switch) => Fault::Feature { switch, multicast: true, aggregate: false },
            Self::Aggregate(switch) => Fault::Feature { switch, multicast: false, aggregate: true },
        }
    }
}
