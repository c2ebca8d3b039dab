//! The key `faults`: what is broken is drawn at random from a seed, the same on every machine.
//!
//! Kinds are drawn in the order of [`FaultKind::ALL`], wholes before their parts, each from the elements that are
//! intact: a dead box has no ranks to draw, and a link that is drawn as a NIC is not drawn again as a link.

use std::collections::BTreeSet;

use crate::element::Element;
use crate::fault::Fault;
use crate::fault_kind::FaultKind;
use crate::generate::arguments::Arguments;
use crate::generate::error::{DrawError, ExpressionError};
use crate::generate::grammar::Argument;
use crate::generate::random::SplitMix64;
use crate::index::{NodeIndex, Rank};
use crate::model::Topology;
use crate::part::read_part;
use crate::shorten::shorten;
use crate::spelling::did_you_mean;

/// The item that is no count.
const SEED: &str = "seed";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted<'a> {
    /// Each kind at most once, in the order of the expression.
    counts: Vec<Count<'a>>,
    seed: u64,
}

/// So many elements of a kind.
#[derive(Debug, PartialEq, Eq)]
struct Count<'a> {
    item: &'a str,
    kind: FaultKind,
    /// A number beyond the machine's is the greatest.
    count: usize,
    /// The fraction that is left of each; of `None`, nothing is.
    left: Option<(u64, u64)>,
}

/// The faults that `faults=` draws.
pub(super) fn draw(topology: &Topology, arguments: &Arguments<'_>) -> Result<Vec<Fault>, ExpressionError> {
    let Some(argument) = arguments.find("faults") else { return Ok(Vec::new()) };
    let wanted = read(argument)?;
    let mut generator = SplitMix64::new(wanted.seed);
    let mut broken = Broken::none(topology);
    let mut faults = Vec::new();
    for kind in FaultKind::ALL {
        let Some(count) = wanted.counts.iter().find(|count| count.kind == kind) else { continue };
        let mut elements = topology.elements(kind);
        elements.retain(|element| broken.spares(element));
        if count.count > elements.len() {
            let problem = match elements.len() {
                0 => DrawError::NoneThere { kind: kind.word(), meaning: kind.meaning() },
                found => DrawError::TooMany { found, kind: kind.word(), meaning: kind.meaning() },
            };
            return Err(refusal(argument, count.item, problem));
        }
        generator.shuffle_front(&mut elements, count.count);
        elements.truncate(count.count);
        broken.add(topology, &elements, count.left.is_none());
        faults.extend(topology.faults_of(&elements, count.left));
    }
    Ok(faults)
}

/// Says that the draw split a network that would be connected without it.
pub(super) fn check_connected(
    left: &Topology,
    without_draw: impl FnOnce() -> Option<Topology>,
    arguments: &Arguments<'_>,
) -> Result<(), ExpressionError> {
    let Some(argument) = arguments.find("faults") else { return Ok(()) };
    let Some((from, to)) = left.first_unreachable() else { return Ok(()) };
    if without_draw().is_none_or(|without| without.first_unreachable().is_some()) {
        return Ok(());
    }
    let id = |rank: Rank| left.node(rank.node()).id.clone();
    let problem = DrawError::Split { from: id(from), to: id(to) };
    Err(refusal(argument, argument.value, problem))
}

/// What is drawn already.
struct Broken {
    is_gone: Vec<bool>,
    /// Links that are gone or slow, as [`Topology::elements`] has them.
    links: BTreeSet<(NodeIndex, NodeIndex)>,
}

impl Broken {
    fn none(topology: &Topology) -> Self {
        Self { is_gone: vec![false; topology.nodes().len()], links: BTreeSet::new() }
    }

    /// Whether nothing of an element is broken. Links of a node are not part of it.
    fn spares(&self, element: &Element) -> bool {
        match element {
            Element::Nodes(nodes) => nodes.iter().all(|node| !self.is_gone[node.index()]),
            Element::Link { from, to, .. } => {
                !self.is_gone[from.index()] && !self.is_gone[to.index()] && !self.links.contains(&(*from, *to))
            }
        }
    }

    /// Adds elements, of slow nodes their links.
    fn add(&mut self, topology: &Topology, elements: &[Element], are_gone: bool) {
        let mut slow_nodes = Vec::new();
        for element in elements {
            match element {
                Element::Nodes(nodes) if are_gone => nodes.iter().for_each(|node| self.is_gone[node.index()] = true),
                Element::Nodes(nodes) => slow_nodes.extend(nodes),
                &Element::Link { from, to, .. } => {
                    self.links.insert((from, to));
                }
            }
        }
        for link in topology.links_at(&slow_nodes) {
            if let Element::Link { from, to, .. } = link {
                self.links.insert((from, to));
            }
        }
    }
}

/// Reads the value: items joined by `+`, each word once.
fn read<'a>(argument: &Argument<'a>) -> Result<Wanted<'a>, ExpressionError> {
    let mut counts: Vec<Count<'a>> = Vec::new();
    let mut seed = None;
    for item in argument.value.split('+') {
        let refused = |problem| refusal(argument, item, problem);
        let (word, value) = item.split_once(':').ok_or_else(|| refused(DrawError::Unreadable))?;
        if word == SEED {
            if seed.is_some() {
                return Err(refused(DrawError::Twice));
            }
            seed = Some(number(value).ok_or_else(|| refused(DrawError::Seed))?);
            continue;
        }
        let count = read_count(item, word, value).map_err(refused)?;
        if counts.iter().any(|earlier| earlier.kind == count.kind) {
            return Err(refused(DrawError::Twice));
        }
        counts.push(count);
    }
    Ok(Wanted { counts, seed: seed.unwrap_or(1) })
}

/// Reads `COUNT` or `COUNT@N/D` of a kind.
fn read_count<'a>(item: &'a str, word: &str, value: &str) -> Result<Count<'a>, DrawError> {
    let kind = FaultKind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| unknown(word))?;
    let (count, left) = match value.split_once('@') {
        None => (value, None),
        Some(_) if !kind.can_be_slow() => return Err(DrawError::NeverSlow { kind: kind.word() }),
        Some((count, left)) => (count, Some(read_part(left).ok_or(DrawError::Unreadable)?)),
    };
    if count.is_empty() || !count.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DrawError::Unreadable);
    }
    Ok(Count { item, kind, count: count.parse().unwrap_or(usize::MAX), left })
}

fn unknown(word: &str) -> DrawError {
    let words: Vec<&str> = FaultKind::ALL.into_iter().map(FaultKind::word).chain([SEED]).collect();
    DrawError::UnknownKind {
        suggestion: did_you_mean(word, words.iter().copied(), &format!("use {}", words.join(", "))),
    }
}

/// Plain decimal digits.
fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn refusal(argument: &Argument<'_>, item: &str, problem: DrawError) -> ExpressionError {
    ExpressionError::Draw { position: argument.position, item: shorten(item), problem }
}

#[cfg(test)]
mod tests;
