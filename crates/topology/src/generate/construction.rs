//! The structure of an expression for `canopy-direct`, along which schedules are composed.

use canopy_direct::Construction;

use crate::generate::arguments::{Arguments, Place};
use crate::generate::compose::{self, Operator};
use crate::generate::error::ExpressionError;
use crate::generate::families::Build;
use crate::generate::grammar::{self, Expression};
use crate::generate::hosts;
use crate::limits::TopologyLimits;

/// The construction of an expression, whose nodes are the ranks of what [`generate`](super::generate) makes of it, in their
/// order. Rates and latencies do not enter; neither do the keys that take links or nodes away, so what is left of the network
/// may not be all of it.
///
/// `None` where ranks are behind hosts, or some part has switches, is drawn at random or is otherwise no member of a family of graphs.
///
/// # Errors
/// As of [`generate`](super::generate), for everything that is refused before anything is built. O(length).
pub fn construction(expression: &str, limits: &TopologyLimits) -> Result<Option<Construction>, ExpressionError> {
    let parsed = grammar::parse(expression.trim())?;
    compose::least_size(&parsed, limits)?;
    of(&parsed, Place::Whole)
}

fn of(expression: &Expression<'_>, place: Place) -> Result<Option<Construction>, ExpressionError> {
    let composition = match expression {
        Expression::Composition(composition) => composition,
        Expression::Family(call) => {
            let (family, arguments): (_, Arguments<'_>) = compose::family(call, place)?;
            return match family.build {
                _ if hosts::are_stated(&arguments) => Ok(None),
                Build::Member(member, _) => Ok(Some(Construction::Base(member(&arguments)?))),
                Build::Draft(_) => Ok(None),
            };
        }
    };
    let (operator, arguments) = compose::operator(composition, place)?;
    if hosts::are_stated(&arguments) {
        return Ok(None);
    }
    let operands = composition.operands.iter().map(|operand| of(operand, Place::Within));
    let Some(mut operands) = operands.collect::<Result<Option<Vec<Construction>>, _>>()? else { return Ok(None) };
    // Numbers beyond 32 bits make what is over any limit, or change nothing.
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Ok(match operator {
        Operator::Product => Some(Construction::Product(operands)),
        Operator::Line(times) => operands.pop().map(|inner| inner.line(number(times))),
        Operator::Degree(copies) => operands.pop().map(|inner| inner.degree(number(copies))),
        Operator::Power(factors) => operands.pop().map(|inner| inner.power(number(factors))),
        Operator::Bidirect => operands.pop().map(Construction::bidirect),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::generate;

    /// What it says is what is generated: as many ranks, and a link wherever there is an edge between different nodes.
    #[test]
    fn constructions_are_those_of_the_networks() {
        for (text, written) in [
            ("line:2(bipartite:2x2):bw=10GB/s,lat=1us", "line:2(bipartite:2x2)"),
            ("line(degree:2(uniring:n=3,bw=1GB/s))", "line:1(degree:2(uniring:n=3,d=1))"),
            ("power:2(diamond)", "power:2(diamond)"),
            ("product(ring:4;power:2(complete:2))", "product(ring:4;power:2(complete:2))"),
            ("bidirect(kautz:d=2,n=3)", "bidirect(kautz:d=2,n=3)"),
            ("dbjmod:d=2,n=4", "dbjmod:d=2,n=4"),
            ("genkautz:n=11,d=4,down=0>9", "genkautz:n=11,d=4"),
        ] {
            let found = construction(text, &TopologyLimits::STANDARD).unwrap().unwrap();
            assert_eq!(found.to_string(), written);
            let graph = found.graph(canopy_direct::Limit { order_max: 1000, edges_max: 10_000 }).unwrap();
            let topology = generate(written, &TopologyLimits::STANDARD).unwrap();
            let mut edges: Vec<(u32, u32)> = graph.edges().filter(|(tail, head)| tail != head).collect();
            edges.sort_unstable();
            edges.dedup();
            let links = topology.links().iter().map(|link| (link.from.number(), link.to.number()));
            assert_eq!((graph.order(), edges), (topology.rank_count(), links.collect()), "{text}");
        }
    }

    #[test]
    fn other_networks_have_none() {
        for text in ["dgx-a100:boxes=2", "random-regular:n=8,d=3,seed=1", "line:1(random-regular:n=8,d=3)"] {
            assert_eq!(construction(text, &TopologyLimits::STANDARD), Ok(None), "{text}");
        }
        assert!(construction("line:30(complete:3)", &TopologyLimits::STANDARD).unwrap_err().is_over_limit());
        assert!(construction("diamond(", &TopologyLimits::STANDARD).is_err());
    }
}
