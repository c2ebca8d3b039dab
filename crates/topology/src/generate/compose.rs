//! Expressions as networks: families built, and operators applied to what they are given.
//!
//! [`least_size`] goes over the whole expression first, by formula, so that what becomes too large is refused before
//! anything is built; [`network`] then builds from the inside out, and every operator looks at its size once more.

mod operators;

use canopy_direct::Size;

use crate::draft::TopologyDraft;
use crate::generate::arguments::{Arguments, Place, Takes};
use crate::generate::catalogue::{self, refusal, too_large};
use crate::generate::error::ExpressionError;
use crate::generate::families::{Build, Family};
use crate::generate::grammar::{Call, Composition, Expression};
use crate::generate::network::{Network, Wire};
use crate::limits::TopologyLimits;

/// An operator and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// The line graph, so many times over.
    Line(u64),
    /// So many copies of each node.
    Degree(u64),
    /// The product of so many equal factors.
    Power(u64),
    /// The product of the operands.
    Product,
    /// The union with the transpose.
    Bidirect,
}

const BW: &[&str] = &["bw"];
static LINE: Takes = Takes { name: "line", example: "line:2(bipartite:4x4)", bare: None, keys: BW };
static DEGREE: Takes = Takes { name: "degree", example: "degree:2(ring:4)", bare: None, keys: BW };
static POWER: Takes = Takes { name: "power", example: "power:2(complete:4)", bare: None, keys: BW };
static PRODUCT: Takes = Takes { name: "product", example: "product(ring:4;complete:3)", bare: None, keys: BW };
static BIDIRECT: Takes = Takes { name: "bidirect", example: "bidirect(kautz:d=2,n=3)", bare: None, keys: BW };

/// The operator of a composition with its number, and its arguments.
pub(super) fn operator<'a>(
    composition: &Composition<'a>,
    place: Place,
) -> Result<(Operator, Arguments<'a>), ExpressionError> {
    let Composition { operator: name, position, ref number, ref operands, ref arguments } = *composition;
    let refused = |problem| ExpressionError::Composition { what: name, position, problem };
    if operands.len() > 1 && name != PRODUCT.name {
        return Err(refused("takes one expression; only product takes several, with `;` between them"));
    }
    let needed = |takes: &Takes, default: Option<u64>| match (number, default) {
        (&Some((digits, position)), _) => match digits.parse() {
            Ok(0) => {
                let (key, value) = ("number".to_owned(), digits.to_owned());
                Err(ExpressionError::Value { key, position, value, expected: "whole numbers from 1" })
            }
            Ok(number) => Ok(number),
            // Digits alone: it is too large.
            Err(_) => Ok(u64::MAX),
        },
        (None, Some(default)) => Ok(default),
        (None, None) => {
            let what = format!("the number in `{name}:2(…)`");
            Err(ExpressionError::Missing { family: takes.name, what, example: takes.example })
        }
    };
    let (operator, takes) = match name {
        "line" => (Operator::Line(needed(&LINE, Some(1))?), &LINE),
        "degree" => (Operator::Degree(needed(&DEGREE, None)?), &DEGREE),
        "power" => (Operator::Power(needed(&POWER, None)?), &POWER),
        _ if number.is_some() => return Err(refused("takes no number; write it without")),
        "product" => (Operator::Product, &PRODUCT),
        _ => (Operator::Bidirect, &BIDIRECT),
    };
    Ok((operator, Arguments::new(takes, position, arguments.clone(), place)?))
}

/// How large the network of an expression becomes at least, by formula: exactly where it is made of regular families of
/// ranks alone. Sizes over the limits are refused, on the way too.
///
/// A line graph has at least as many nodes and edges as one of a regular graph of as many: walks of a graph are fewest
/// where all nodes have the same degree.
pub(super) fn least_size(expression: &Expression<'_>, limits: &TopologyLimits) -> Result<Size, ExpressionError> {
    least_size_at(expression, limits, Place::Whole)
}

fn least_size_at(expression: &Expression<'_>, limits: &TopologyLimits, place: Place) -> Result<Size, ExpressionError> {
    let size = match expression {
        Expression::Family(call) => {
            let (family, arguments) = family(call, place)?;
            match family.build {
                Build::Member(member, _) => member(&arguments)?.size().map_err(|error| refusal(error, &arguments))?,
                Build::Draft(_) => Size { order: 2, edges: 0 },
            }
        }
        Expression::Composition(composition) => {
            let (operator, _) = operator(composition, place)?;
            let operands = composition.operands.iter().map(|operand| least_size_at(operand, limits, Place::Within));
            let operands = operands.collect::<Result<Vec<Size>, _>>()?;
            match operator {
                Operator::Line(times) => {
                    let inner = operands[0];
                    let growth = inner.edges / inner.order.max(1);
                    let growth = u32::try_from(times)
                        .map_or(if growth > 1 { u128::MAX } else { growth }, |times| growth.saturating_pow(times));
                    Size { order: inner.order.saturating_mul(growth), edges: inner.edges.saturating_mul(growth) }
                }
                Operator::Degree(copies) => operands[0].expanded(copies),
                Operator::Power(factors) => operands[0].power(factors),
                Operator::Product => operands.into_iter().fold(Size { order: 1, edges: 0 }, Size::times),
                Operator::Bidirect => operands[0].both_ways(),
            }
        }
    };
    size.check(catalogue::limit(limits)).map_err(too_large)?;
    Ok(size)
}

/// A family as it is called, and its arguments.
pub(super) fn family<'a>(call: &Call<'a>, place: Place) -> Result<(&'static Family, Arguments<'a>), ExpressionError> {
    let family = Family::find(call.name, call.position)?;
    Ok((family, Arguments::new(&family.takes, call.position, call.arguments.clone(), place)?))
}

/// What a family builds.
pub(super) enum Built {
    /// Ranks alone, from a graph.
    Network(Network),
    /// Anything else.
    Draft(TopologyDraft),
}

/// Builds a family.
pub(super) fn family_network(
    family: &Family,
    arguments: &Arguments<'_>,
    limits: &TopologyLimits,
) -> Result<Built, ExpressionError> {
    match family.build {
        Build::Member(member, default) => {
            let member = member(arguments)?;
            let rate = arguments.rate("bw", default)?;
            let wire = Wire { rate, latency: arguments.latency()?.unwrap_or_default() };
            let graph = member.graph(catalogue::limit(limits)).map_err(|error| refusal(error, arguments))?;
            let ids = catalogue::ids(&member, &graph, arguments)?;
            Ok(Built::Network(Network::uniform(ids, graph, wire)))
        }
        Build::Draft(build) => {
            let mut draft = build(arguments, limits)?;
            if let Some(latency) = arguments.latency()? {
                draft.links.iter_mut().for_each(|link| link.latency = latency);
            }
            Ok(Built::Draft(draft))
        }
    }
}

/// The network of a composition that is the whole expression, and its arguments.
pub(super) fn whole<'a>(
    composition: &Composition<'a>,
    limits: &TopologyLimits,
) -> Result<(Network, Arguments<'a>), ExpressionError> {
    composed(composition, limits, Place::Whole)
}

fn network(expression: &Expression<'_>, limits: &TopologyLimits) -> Result<Network, ExpressionError> {
    let call = match expression {
        Expression::Family(call) => call,
        Expression::Composition(composition) => {
            return composed(composition, limits, Place::Within).map(|(network, _)| network);
        }
    };
    let (family, arguments) = family(call, Place::Within)?;
    match family_network(family, &arguments, limits)? {
        Built::Network(network) => Ok(network),
        Built::Draft(draft) => Network::of_draft(draft).ok_or(ExpressionError::Composition {
            what: family.takes.name,
            position: call.position,
            problem: "has switches, and operators take networks of ranks only",
        }),
    }
}

fn composed<'a>(
    composition: &Composition<'a>,
    limits: &TopologyLimits,
    place: Place,
) -> Result<(Network, Arguments<'a>), ExpressionError> {
    let (operator, arguments) = operator(composition, place)?;
    let (rate, latency) = (arguments.find("bw").map(|_| arguments.rate("bw", 1)).transpose()?, arguments.latency()?);
    let (mut operands, mut size) = (Vec::new(), Size { order: 1, edges: 0 });
    for operand in &composition.operands {
        let operand = network(operand, limits)?;
        // Of some families only what is built says how large it is: no more are built than their product may be.
        size = size.times(Size::of(&operand.graph));
        size.check(catalogue::limit(limits)).map_err(too_large)?;
        operands.push(operand);
    }
    let site =
        operators::Site { what: composition.operator, position: composition.position, limit: catalogue::limit(limits) };
    // A link of a line graph stands for two of what it is made of: its rate is theirs, or said here.
    operands.iter_mut().for_each(|operand| operand.set(rate, latency));
    let inner = &operands[0];
    let network = match operator {
        Operator::Line(times) => operators::line(inner, times, site),
        Operator::Degree(copies) => operators::degree(inner, copies, site),
        Operator::Power(factors) => operators::power(inner, factors, site),
        Operator::Product => operators::product(&operands.iter().collect::<Vec<_>>(), site),
        Operator::Bidirect => operators::bidirect(inner, site),
    }?;
    Ok((network, arguments))
}
