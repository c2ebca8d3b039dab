//! Hints for synthesizers about a recognised network: the boxes of its ranks.

use canopy_topology::Topology;

use crate::families::linkage::linked_boxes;
use crate::families::recognise::{Recognised, Recognition, recognise_among};
use crate::families::table::FAMILIES;
use crate::{Budget, Stopped};

/// A network with the boxes of the member of a family that it is isomorphic to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxed {
    /// The same nodes and links in the same order.
    pub topology: Topology,
    /// Generator expression of the member, without latencies; `None` if the network is of no family, and has the boxes that
    /// its links suggest.
    pub expression: Option<String>,
}

/// Finds the boxes of a network that states none.
///
/// Latencies do not count, unlike in [`recognise`](crate::families::recognise): a box is one whatever its cables are like. Boxes
/// change what synthesizers try, never what is right: on clusters of MI250 they decide whether there is a plan at all in
/// reasonable time.
///
/// * **None.** A node has a box already, or the network is no member of a family with at least two boxes, or that could not be
///   found out within the budget.
/// * **Errors.** Stopped. **Cost.** That of [`recognise`](crate::families::recognise), in families with boxes only.
pub fn with_boxes(topology: &Topology, budget: Budget<'_>) -> Result<Option<Boxed>, Stopped> {
    if topology.nodes().iter().any(|node| node.attributes.box_name.is_some()) {
        return Ok(None);
    }
    let Some(plain) = topology.without_latencies() else { return Ok(None) };
    let families = FAMILIES.iter().filter(|family| family.has_boxes);
    let Recognition::Member(recognised) = recognise_among(families, &plain, budget)? else {
        return Ok(by_links(topology));
    };
    let Recognised { expression, member, counterparts, .. } = *recognised;
    let boxes = counterparts.iter().map(|&node| member.node(node).attributes.box_name.clone());
    let boxes: Vec<Option<String>> = boxes.collect();
    let is_one = boxes[..topology.rank_count() as usize].windows(2).all(|pair| pair[0] == pair[1]);
    let boxed = (!is_one).then(|| topology.clone().with_boxes(boxes)).flatten();
    Ok(boxed.map(|topology| Boxed { topology, expression: Some(expression) }))
}

/// The network with the boxes that its links suggest.
fn by_links(topology: &Topology) -> Option<Boxed> {
    let mut boxes: Vec<Option<String>> =
        linked_boxes(topology)?.into_iter().map(|number| number.map(|number| number.to_string())).collect();
    boxes.resize(topology.nodes().len(), None);
    let topology = topology.clone().with_boxes(boxes)?;
    Some(Boxed { topology, expression: None })
}
