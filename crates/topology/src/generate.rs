//! Generators: networks named by a short expression such as `torus:4x4x4,bw=10GB/s` or `dgx-a100:boxes=2`.
//!
//! An expression is parsed ([`grammar`]), its arguments are matched with what the family takes ([`arguments`]), the
//! size is computed and compared with the limits, and only then is anything built: a graph of `canopy-direct`
//! ([`catalogue`]), a draft with switches or rates of its own, or a composition of such ([`compose`]). Faults common to all
//! are applied to what was built ([`common`]), and ranks that are left are put behind hosts ([`hosts`]). Same expression, same
//! topology: families that draw at random take a seed.

mod arguments;
mod boxes;
mod catalogue;
mod common;
mod compose;
mod construction;
mod dimensions;
mod dragonfly;
mod error;
mod fabrics;
mod families;
mod grammar;
mod graphs;
mod hamming_mesh;
mod hosts;
mod machines;
mod network;
mod random;
mod random_faults;
mod site;
mod size;

pub use construction::construction;
pub use error::{DrawError, ExpressionError};
pub use site::{SITE_BYTES_MAX, SiteRates, SiteRatesError};

use crate::generate::arguments::{Place, Takes};
use crate::generate::compose::Built;
use crate::generate::grammar::Expression;
use crate::generate::network::Network;
use crate::limits::TopologyLimits;
use crate::model::Topology;
use crate::port_graph::Ports;

/// The spelling of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyUsage {
    /// Its name.
    pub name: &'static str,
    /// An expression that works.
    pub example: &'static str,
    /// Its own keys, besides those that every family has.
    pub keys: &'static [&'static str],
}

/// All families, in the order of their listing.
pub fn families() -> impl Iterator<Item = FamilyUsage> {
    families::FAMILIES.iter().map(|family| {
        let Takes { name, example, keys, .. } = family.takes;
        FamilyUsage { name, example, keys }
    })
}

/// Keys that every family has.
pub const COMMON_KEYS: &[&str] = arguments::COMMON_KEYS;

/// What a key of a family means, as half a sentence; nothing for one that no family takes.
#[must_use]
pub fn key_meaning(key: &str) -> Option<&'static str> {
    families::meaning(key)
}

/// Builds the topology of an expression; its display name is the expression.
///
/// # Errors
/// Names the position or key at fault and what it accepts. Refuses sizes over the limit before building anything.
///
/// O(nodes + links) and the cost of [`TopologyDraft::build`](crate::TopologyDraft::build).
pub fn generate(expression: &str, limits: &TopologyLimits) -> Result<Topology, ExpressionError> {
    built(expression, limits).map(|(topology, _)| topology)
}

/// [`generate`], and the ports of the network as it is composed, if it has ranks alone and all ports have one rate.
pub(crate) fn generated(
    expression: &str,
    limits: &TopologyLimits,
) -> Result<(Topology, Option<Ports>), ExpressionError> {
    let (topology, network) = built(expression, limits)?;
    let ports = network.and_then(|network| {
        let rate = network.wires.first().map(|wire| wire.rate);
        let alike = network.wires.iter().all(|wire| Some(wire.rate) == rate);
        alike.then_some(Ports { graph: network.graph, rate })
    });
    Ok((topology, ports))
}

/// The topology, and the network it is where that has ranks alone and nothing is broken.
fn built(expression: &str, limits: &TopologyLimits) -> Result<(Topology, Option<Network>), ExpressionError> {
    let expression = expression.trim();
    let parsed = grammar::parse(expression)?;
    compose::least_size(&parsed, limits)?;
    let (network, arguments) = match &parsed {
        Expression::Family(call) => {
            let (family, arguments) = compose::family(call, Place::Whole)?;
            (compose::family_network(family, &arguments, limits)?, arguments)
        }
        Expression::Composition(composition) => {
            let (network, arguments) = compose::whole(composition, limits)?;
            (Built::Network(network), arguments)
        }
    };
    let (mut draft, network) = match network {
        Built::Network(network) => (network.to_draft()?, Some(network)),
        Built::Draft(draft) => (draft, None),
    };
    draft.name = Some(expression.to_owned());
    let topology = draft.build(limits)?;
    let network = network.filter(|_| !common::punctures(&arguments) && !hosts::are_stated(&arguments));
    let topology = common::puncture(topology, &arguments)?;
    Ok((hosts::insert(topology, &arguments, limits)?, network))
}

#[cfg(test)]
mod tests;
