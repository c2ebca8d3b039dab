//! Generators: networks named by a short expression such as `torus:4x4x4,bw=10GB/s` or `dgx-a100:boxes=2`.
//!
//! An expression is parsed ([`grammar`]), its arguments are matched with what the family takes ([`arguments`]), the
//! size is computed and compared with the limits, and only then is anything built: a graph of `canopy-direct`
//! ([`catalogue`]), a draft with switches or rates of its own, or a composition of such ([`compose`]). Faults common to all
//! are applied last ([`common`]). Same expression, same topology: families that draw at random take a seed.

mod arguments;
mod boxes;
mod catalogue;
mod chance;
mod common;
mod compose;
mod construction;
mod dimensions;
mod dragonfly;
mod error;
mod fabrics;
mod families;
mod grammar;
mod network;
mod random;
mod size;

pub use construction::construction;
pub use error::ExpressionError;

use crate::generate::arguments::Place;
use crate::generate::grammar::Expression;
use crate::limits::TopologyLimits;
use crate::model::Topology;

/// Names of the families there are, in the order people are told about them.
pub fn family_names() -> Vec<&'static str> {
    families::FAMILIES.iter().map(|family| family.takes.name).collect()
}

/// Builds the topology of an expression; its display name is the expression.
///
/// # Errors
/// Whatever is wrong, with its position or key and what would be accepted. Over-limit sizes are refused before
/// anything is built.
///
/// O(nodes + links) and the cost of [`TopologyDraft::build`](crate::TopologyDraft::build).
pub fn generate(expression: &str, limits: &TopologyLimits) -> Result<Topology, ExpressionError> {
    let expression = expression.trim();
    let parsed = grammar::parse(expression)?;
    compose::least_size(&parsed, limits)?;
    let (mut draft, arguments) = match &parsed {
        Expression::Family(call) => {
            let (family, arguments) = compose::family(call, Place::Whole)?;
            (compose::family_draft(family, &arguments, limits)?, arguments)
        }
        Expression::Composition(composition) => {
            let (network, arguments) = compose::whole(composition, limits)?;
            (network.into_draft()?, arguments)
        }
    };
    draft.name = Some(expression.to_owned());
    let topology = draft.build(limits)?;
    common::puncture(topology, &arguments)
}

#[cfg(test)]
mod tests;
