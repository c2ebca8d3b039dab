//! Generators: networks named by a short expression such as `torus:4x4x4,bw=10GB/s` or `dgx-a100:boxes=2`.
//!
//! An expression is parsed ([`grammar`]), its arguments are matched with what the family takes ([`arguments`]), the
//! size is computed and compared with the limits, and only then is anything built. Keys common to all families are
//! applied last ([`common`]). Same expression, same topology: families that draw at random take a seed.

mod arguments;
mod boxes;
mod chance;
mod common;
mod error;
mod fabrics;
mod families;
mod grammar;
mod grids;
mod random;
mod size;

pub use error::ExpressionError;

use crate::generate::arguments::Arguments;
use crate::generate::families::Family;
use crate::generate::grammar::Expression;
use crate::limits::TopologyLimits;
use crate::model::Topology;

/// Names of the families there are, in the order people are told about them.
pub fn family_names() -> Vec<&'static str> {
    families::FAMILIES.iter().map(|family| family.name).collect()
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
    let call = match grammar::parse(expression)? {
        Expression::Family(call) => call,
        Expression::Composition { operator, position } => {
            return Err(ExpressionError::NotAvailable {
                what: "operator",
                name: operator.to_owned(),
                position,
                available: format!("the families {}", family_names().join(" ")),
            });
        }
    };
    let family = Family::find(call.name, call.position)?;
    let arguments = Arguments::new(family, call.arguments)?;
    let mut draft = (family.build)(&arguments, limits)?;
    draft.name = Some(expression.to_owned());
    common::set_latency(&mut draft, &arguments)?;
    let topology = draft.build(limits)?;
    common::puncture(topology, &arguments)
}

#[cfg(test)]
mod tests;
