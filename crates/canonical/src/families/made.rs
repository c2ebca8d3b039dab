//! Finds the expression of families and operators that makes a network without switches.

use canopy_topology::{Capacity, Latency, NodeIndex, Topology};

use crate::families::catalogue;
use crate::families::recognise::{Judged, LINKS_MAX, compared};
use crate::families::roots::{degree_root, line_root};
use crate::families::summary::Summary;
use crate::{Budget, Stopped};

/// A network made by an expression, and the mapping of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The expression, with rate and latency of the links.
    pub expression: String,
    /// By node of the network: its counterpart in what the generator makes of the expression. It keeps every link.
    pub counterparts: Vec<NodeIndex>,
}

/// Finds an expression of families and operators that makes a network of ranks alone whose links are all alike.
///
/// Families that [`recognise`](crate::families::recognise()) knows come first, then those of the direct-connect catalogue, powers of
/// those of them with stored schedules, and products of rings one way, each where the counts agree. Else the network may be
/// a line graph or have copies of every node: what is below is found by looking at it, and then what that is made of. Line
/// graphs of networks with parallel links, as such, other products, and circulants of other offsets than the narrowest are not found.
///
/// * **None.** It is none of these, or that could not be found out within the budget, which is for each comparison.
/// * **Errors.** Stopped. **Cost.** O(links log links) where counts and heads rule all out, else that of comparisons with
///   networks as large.
pub fn made_of(topology: &Topology, budget: Budget<'_>) -> Result<Option<Made>, Stopped> {
    if topology.links().len() > LINKS_MAX {
        return Ok(None);
    }
    Ok(found(topology, budget)?.map(|(_, made)| made))
}

/// The expression without rate and latency too.
fn found(topology: &Topology, budget: Budget<'_>) -> Result<Option<(String, Made)>, Stopped> {
    let Some(summary) = Summary::of(topology) else { return Ok(None) };
    let Some(rate) = summary.uniform() else { return Ok(None) };
    let latency = summary.latency();
    let same = |text: String| -> Result<Option<(String, Made)>, Stopped> {
        if (budget.stop)() {
            return Err(Stopped);
        }
        let expression = whole(&text, rate, latency);
        Ok(match compared(topology, &expression, budget)? {
            Judged::Same(_, counterparts) => Some((text, Made { expression, counterparts })),
            Judged::Different | Judged::Undetermined => None,
        })
    };
    for text in catalogue::candidates(&summary) {
        if let Some(found) = same(text)? {
            return Ok(Some(found));
        }
    }
    // Each has fewer nodes, so this comes to an end.
    if let Some((inner, _)) = line_root(topology).map(|root| found(&root, budget)).transpose()?.flatten() {
        return same(line_of(&inner));
    }
    if let Some((copies, root)) = degree_root(topology)
        && let Some((inner, _)) = found(&root, budget)?
    {
        return same(format!("degree:{copies}({inner})"));
    }
    Ok(None)
}

/// The line graph of an expression, which may be one itself.
fn line_of(inner: &str) -> String {
    let nested = inner.strip_prefix("line:").and_then(|rest| rest.split_once('('));
    let times = nested.and_then(|(times, below)| Some((times.parse::<u32>().ok()?.checked_add(1)?, below)));
    match times {
        Some((times, below)) => format!("line:{times}({below}"),
        None => format!("line:1({inner})"),
    }
}

/// An expression with the rate and latency of all links.
fn whole(text: &str, rate: Capacity, latency: Latency) -> String {
    let joint = if text.ends_with(')') || !text.contains(':') { ':' } else { ',' };
    let latency = if latency == Latency::default() { String::new() } else { format!(",lat={latency}") };
    format!("{text}{joint}bw={rate}{latency}")
}
