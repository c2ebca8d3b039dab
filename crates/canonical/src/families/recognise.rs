//! Finds the family of a network, and the mapping of its nodes to those of the member.

use canopy_topology::{NodeIndex, Topology, TopologyLimits, generate};

use crate::families::summary::Summary;
use crate::families::table::{FAMILIES, Family};
use crate::{Budget, CompareError, Comparison, Stopped, compare, graph_of};

/// Most directed links of a network that is analysed.
pub const LINKS_MAX: usize = 1 << 18;

/// Members of one family that are compared with a network at most. Counts leave one or two, so that none is missed.
const CANDIDATES_MAX: usize = 8;

/// The result of looking for the family of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recognition {
    /// The network is this member.
    Member(Box<Recognised>),
    /// The network is not a member of any known family.
    Other,
    /// The network has the counts of this family, the first of several, and the budget ended before a decision.
    Undetermined {
        /// Of the member.
        expression: String,
    },
    /// The network has more than [`LINKS_MAX`] links.
    TooLarge,
}

/// A member of a family that a network is isomorphic to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// Name of the family.
    pub family: &'static str,
    /// Generator expression of the member, all rates stated.
    pub expression: String,
    /// The topology that the generator makes of it.
    pub member: Topology,
    /// By node of the network: its counterpart in the member. It keeps kinds, capabilities and every link with its
    /// capacity and latency.
    pub counterparts: Vec<NodeIndex>,
}

/// Finds the family of a network.
///
/// Kinds and capabilities of nodes, capacities and latencies of links count, all of them exactly; names, ranks, order
/// and attributes do not. A member has plain switches and one latency, since no expression says otherwise. Where a network
/// is a member of several families, the first of the table has it, so that a square is `ring:4` and no torus.
///
/// * **In.** Any topology; the budget is for each member compared. **Out.** The same for the same topology and budget.
/// * **Errors.** Stopped. **Cost.** O(nodes + links) where counts rule out all families, else that of
///   [`compare`], with as large a network, for a member or two.
pub fn recognise(topology: &Topology, budget: Budget<'_>) -> Result<Recognition, Stopped> {
    recognise_among(FAMILIES.iter(), topology, budget)
}

/// [`recognise`] in part of the table.
pub(crate) fn recognise_among(
    families: impl Iterator<Item = &'static Family>,
    topology: &Topology,
    budget: Budget<'_>,
) -> Result<Recognition, Stopped> {
    if topology.links().len() > LINKS_MAX {
        return Ok(Recognition::TooLarge);
    }
    let Some(summary) = Summary::of(topology) else { return Ok(Recognition::Other) };
    let mut undetermined = None;
    for family in families {
        for parameters in (family.candidates)(&summary).into_iter().take(CANDIDATES_MAX) {
            if (budget.stop)() {
                return Err(Stopped);
            }
            let expression = summary.expression(family.name, &parameters);
            match compared(topology, &expression, budget)? {
                Judged::Same(member, counterparts) => {
                    let recognised = Recognised { family: family.name, expression, member, counterparts };
                    return Ok(Recognition::Member(Box::new(recognised)));
                }
                Judged::Different => {}
                Judged::Undetermined => undetermined = undetermined.or(Some(expression)),
            }
        }
    }
    Ok(undetermined.map_or(Recognition::Other, |expression| Recognition::Undetermined { expression }))
}

/// What came of a comparison.
pub(crate) enum Judged {
    Same(Topology, Vec<NodeIndex>),
    Different,
    Undetermined,
}

/// Has the generator build a member, which must not be larger than the network but for ports that lead back to their nodes,
/// and compares.
pub(crate) fn compared(topology: &Topology, expression: &str, budget: Budget<'_>) -> Result<Judged, Stopped> {
    let nodes_max = topology.nodes().len();
    let links_max = topology.links().len() + nodes_max;
    let limits = TopologyLimits { nodes_max, links_max, ..TopologyLimits::STANDARD };
    let Ok(member) = generate(expression, &limits) else { return Ok(Judged::Different) };
    if is_same_as_numbered(topology, &member) {
        let counterparts = (0_u32..).take(nodes_max).map(NodeIndex::new).collect();
        return Ok(Judged::Same(member, counterparts));
    }
    let (Some(network), Some(other)) = (graph_of(topology, &[]), graph_of(&member, &[])) else {
        return Ok(Judged::Undetermined);
    };
    match compare(&network, &other, budget) {
        Ok(Comparison::Same(images)) => Ok(Judged::Same(member, images.into_iter().map(NodeIndex::new).collect())),
        Ok(Comparison::Different(_)) => Ok(Judged::Different),
        Ok(Comparison::Undetermined) | Err(CompareError::Together(_)) => Ok(Judged::Undetermined),
        Err(CompareError::Stopped(stopped)) => Err(stopped),
    }
}

/// Whether the two are the same but for names and attributes, node by node.
fn is_same_as_numbered(a: &Topology, b: &Topology) -> bool {
    let kinds = |topology: &Topology| topology.nodes().iter().map(|node| node.kind).collect::<Vec<_>>();
    a.links() == b.links() && kinds(a) == kinds(b)
}
