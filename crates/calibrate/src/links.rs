//! Links slower than described, from messages between pairs of ranks.
//!
//! A message takes a fixed time, and its bytes take theirs at the rate of the slowest link on its way: that is fitted over
//! all messages, few outliers aside. Then the messages of each link are compared with the noise of all. The link that
//! stands out most is taken first, and its messages no longer count; so a slow cable does not make its neighbours look
//! slow.

use std::collections::{BTreeMap, HashMap, VecDeque};

use canopy_topology::{Capacity, Link, LinkIndex, NodeIndex, Topology, shorten};

use crate::parameters::rounded;
use crate::read::Pair;
use crate::solve::{median, product, products, solution, spread};

/// A link is named if noise alone would name one in fewer than this part of all sets of runs.
const FALSE_ALARMS: f64 = 0.001;
/// Less than this part slower is not worth a word.
const SLOWER_LEAST: f64 = 0.03;
/// Noise that is assumed at least.
const NOISE_LEAST: f64 = 0.005;
/// Messages times links, at most.
const WORK_MAX: usize = 1 << 34;
/// Messages of one kind from which on they are compared with each other alone.
const KIND_LEAST: usize = 8;
/// Rounds in which outliers lose their weight.
const ROUNDS: usize = 12;

/// A link that is slower than described.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowLink {
    /// Ids of its ends.
    pub from: String,
    /// See `from`.
    pub to: String,
    /// What it was described as.
    pub described: Capacity,
    /// What messages over it reach.
    pub reached: Capacity,
    /// How many of them there were.
    pub messages: usize,
    /// Times of its messages beside what they should be: 1.25 for a quarter more.
    pub times_as_long: f64,
    /// How sure it is, by the noise of all messages: 0.999 and more.
    pub confidence: f64,
    /// Links that carried the same messages, of which each may be the slow one.
    pub or_else: Vec<(String, String)>,
}

/// Why pairs say nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PairError {
    #[error("`{id}` is neither a rank nor the id of one")]
    NoRank { id: String },
    #[error("no way leads from `{from}` to `{to}`")]
    NoWay { from: String, to: String },
    #[error("{pairs} messages on {links} links are too many to compare")]
    TooMany { pairs: usize, links: usize },
    #[error("{found} messages are too few to tell a slow link from noise: at least {KIND_LEAST} are needed")]
    TooFew { found: usize },
}

/// A message: the links that every shortest way has, and the time that its bytes take on the widest of these ways. Where ways
/// have no link in common, its time says what is usual, and blames no link.
struct Message {
    links: Vec<usize>,
    micros: f64,
    transfer: f64,
    bytes: f64,
    /// Least rate and hops: what makes messages alike.
    kind: (u64, u32),
}

/// Links that are slower than described, surest first.
///
/// * **Source.** Our own. **Errors.** Ranks that do not exist, no way between them, too few or too many messages.
/// * **Cost.** O(pairs · links).
pub fn slow_links(topology: &Topology, pairs: &[Pair]) -> Result<Vec<SlowLink>, PairError> {
    let link_count = topology.links().len();
    if pairs.len() < KIND_LEAST {
        return Err(PairError::TooFew { found: pairs.len() });
    }
    if pairs.len().saturating_mul(link_count) > WORK_MAX {
        return Err(PairError::TooMany { pairs: pairs.len(), links: link_count });
    }
    let messages = messages(topology, pairs)?;
    let (once, per_transfer) = usual(&messages);
    let mut off: Vec<f64> =
        messages.iter().map(|one| (one.micros / (once + per_transfer * one.transfer)).ln()).collect();
    level(&messages, &mut off);
    let noise = spread(off.iter().copied(), 0.0).max(NOISE_LEAST);
    let mut carried: Vec<Vec<usize>> = vec![Vec::new(); link_count];
    for (number, message) in messages.iter().enumerate() {
        message.links.iter().for_each(|&link| carried[link].push(number));
    }
    let mut is_left = vec![true; messages.len()];
    let mut found = Vec::new();
    loop {
        let left = |link: usize| carried[link].iter().copied().filter(|&message| is_left[message]);
        let score = |link: usize| {
            let (sum, count) = left(link).fold((0.0, 0_u32), |(sum, count), message| (sum + off[message], count + 1));
            (sum / f64::from(count.max(1)).sqrt() / noise, sum / f64::from(count.max(1)))
        };
        let scores: Vec<(f64, f64)> = (0..link_count).map(score).collect();
        let Some(worst) = (0..link_count).max_by(|&a, &b| scores[a].0.total_cmp(&scores[b].0)) else { break };
        let (sure, mean) = scores[worst];
        let alarms = link_count as f64 * tail(sure);
        if mean.exp_m1() < SLOWER_LEAST || alarms > FALSE_ALARMS {
            break;
        }
        let of_worst: Vec<usize> = left(worst).collect();
        let or_else = (0..link_count).filter(|&link| link != worst && left(link).eq(of_worst.iter().copied()));
        let ends = |link: usize| {
            let link = topology.links()[link];
            (topology.node(link.from).id.clone(), topology.node(link.to).id.clone())
        };
        let rates = of_worst.iter().map(|&message| {
            let message = &messages[message];
            message.bytes * 1e6 / (message.micros - once).max(message.micros / 10.0)
        });
        let reached = rounded(median(rates).unwrap_or(1.0)).max(1);
        let described = topology.links()[worst].capacity;
        let (from, to) = ends(worst);
        found.push(SlowLink {
            from,
            to,
            described,
            reached: Capacity::from_bytes_per_sec(reached).unwrap_or(described),
            messages: of_worst.len(),
            times_as_long: mean.exp(),
            confidence: 1.0 - alarms,
            or_else: or_else.map(ends).collect(),
        });
        of_worst.into_iter().for_each(|message| is_left[message] = false);
    }
    Ok(found)
}

/// The ways of all messages.
fn messages(topology: &Topology, pairs: &[Pair]) -> Result<Vec<Message>, PairError> {
    let ids: HashMap<&str, NodeIndex> =
        (0_u32..).zip(topology.nodes()).map(|(number, node)| (node.id.as_str(), NodeIndex::new(number))).collect();
    let rank = |id: &str| {
        let by_number = || id.parse().ok().map(NodeIndex::new);
        let node = ids.get(id).copied().or_else(by_number).filter(|node| node.number() < topology.rank_count());
        node.ok_or_else(|| PairError::NoRank { id: shorten(id) })
    };
    let mut entering: Vec<Vec<LinkIndex>> = vec![Vec::new(); topology.nodes().len()];
    for (number, link) in (0_u32..).zip(topology.links()) {
        entering[link.to.index()].push(LinkIndex::new(number));
    }
    let has_box = |node: NodeIndex| topology.node(node).attributes.box_name.is_some();
    let mut fans: BTreeMap<(u32, bool), Fan> = BTreeMap::new();
    let mut messages = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let (from, to) = (rank(&pair.from)?, rank(&pair.to)?);
        let no_way = || PairError::NoWay { from: shorten(&pair.from), to: shorten(&pair.to) };
        // Where no switches lead there, GPUs of boxes pass on, as they do where not all of a box are joined.
        let mut found = None;
        for over_ranks in [false, true].into_iter().filter(|_| from != to) {
            let passes = |node: NodeIndex| node.number() >= topology.rank_count() || over_ranks && has_box(node);
            let key = (to.number(), over_ranks);
            let fan = fans.entry(key).or_insert_with(|| Fan::into(topology, &entering, to, passes));
            if fan.hops[from.index()].is_some() {
                found = Some(key);
                break;
            }
        }
        let fan = found.and_then(|key| fans.get(&key)).ok_or_else(no_way)?;
        let links = fan.needed(topology, from).ok_or_else(no_way)?;
        let least = fan.widths[from.index()].max(1);
        let bytes = pair.point.bytes as f64;
        messages.push(Message {
            micros: pair.point.micros,
            transfer: bytes * 1e6 / least as f64,
            bytes,
            kind: (least, fan.hops[from.index()].unwrap_or(0)),
            links,
        });
    }
    Ok(messages)
}

/// Shortest ways to a rank.
struct Fan {
    /// By node: hops to it.
    hops: Vec<Option<u32>>,
    /// By node: how many shortest ways there are.
    ways: Vec<u128>,
    /// By node: the least rate on the widest of them, in bytes per second.
    widths: Vec<u64>,
}

impl Fan {
    /// Ranks send and receive; nodes of `passes` pass on. O(links).
    fn into(
        topology: &Topology,
        entering: &[Vec<LinkIndex>],
        to: NodeIndex,
        passes: impl Fn(NodeIndex) -> bool,
    ) -> Self {
        let mut hops = vec![None; topology.nodes().len()];
        let mut ways = vec![0_u128; topology.nodes().len()];
        let mut widths = vec![0_u64; topology.nodes().len()];
        (hops[to.index()], ways[to.index()], widths[to.index()]) = (Some(0), 1, u64::MAX);
        let mut queue = VecDeque::from([(to, 0)]);
        while let Some((node, distance)) = queue.pop_front() {
            if node != to && !passes(node) {
                continue;
            }
            for &link in &entering[node.index()] {
                let Link { from, capacity, .. } = *topology.link(link);
                if hops[from.index()].is_none() {
                    hops[from.index()] = Some(distance + 1);
                    queue.push_back((from, distance + 1));
                }
                if hops[from.index()] == Some(distance + 1) {
                    ways[from.index()] = ways[from.index()].saturating_add(ways[node.index()]);
                    let width = capacity.bytes_per_sec().min(widths[node.index()]);
                    widths[from.index()] = widths[from.index()].max(width);
                }
            }
        }
        Self { hops, ways, widths }
    }

    /// The links that all shortest ways from a node have in common; `None` if there is no way. Where ways part, none of their
    /// links is one of these, until they are together again.
    fn needed(&self, topology: &Topology, from: NodeIndex) -> Option<Vec<usize>> {
        let mut distance = self.hops[from.index()]?;
        let all = self.ways[from.index()];
        // Ways from the start to the nodes of a layer.
        let mut layer: BTreeMap<NodeIndex, u128> = BTreeMap::from([(from, 1)]);
        let mut links = Vec::new();
        while distance > 0 {
            let mut next: BTreeMap<NodeIndex, u128> = BTreeMap::new();
            for (&node, &before) in &layer {
                for link in topology.links_from(node) {
                    let to = topology.link(link).to;
                    if self.hops[to.index()] != Some(distance - 1) || self.ways[to.index()] == 0 {
                        continue;
                    }
                    if before.saturating_mul(self.ways[to.index()]) == all {
                        links.push(link.index());
                    }
                    let sum = next.entry(to).or_default();
                    *sum = sum.saturating_add(before);
                }
            }
            (layer, distance) = (next, distance - 1);
        }
        Some(links)
    }
}

/// What messages take once, in µs, and by what the time of their bytes is multiplied, whatever a few outliers say.
fn usual(messages: &[Message]) -> (f64, f64) {
    let columns = [
        messages.iter().map(|one| 1.0 / one.micros).collect(),
        messages.iter().map(|one| one.transfer / one.micros).collect::<Vec<f64>>(),
    ];
    let ones = vec![1.0; messages.len()];
    let mut weights = ones.clone();
    let alone = median(messages.iter().map(|one| one.micros / one.transfer.max(f64::MIN_POSITIVE))).unwrap_or(1.0);
    let mut found = (0.0, alone);
    for _ in 0..ROUNDS {
        let side: Vec<f64> = columns.iter().map(|column| product(column, &ones, &weights)).collect();
        let Some(&[once, per]) = solution(&products(&columns, &weights), &side).as_deref() else { break };
        if !(once >= 0.0 && per > 0.0) {
            break;
        }
        found = (once, per);
        let off: Vec<f64> = messages.iter().map(|one| 1.0 - (once + per * one.transfer) / one.micros).collect();
        let noise = spread(off.iter().copied(), median(off.iter().copied()).unwrap_or(0.0)).max(NOISE_LEAST);
        weights = off.iter().map(|off| (noise / off.abs().max(f64::MIN_POSITIVE)).min(1.0)).collect();
    }
    found
}

/// Takes off what all messages of a kind have in common.
fn level(messages: &[Message], off: &mut [f64]) {
    let mut kinds: BTreeMap<(u64, u32), Vec<usize>> = BTreeMap::new();
    for (number, message) in messages.iter().enumerate() {
        kinds.entry(message.kind).or_default().push(number);
    }
    let of_all = median(off.iter().copied()).unwrap_or(0.0);
    for members in kinds.into_values() {
        let own = median(members.iter().map(|&number| off[number]));
        let middle = own.filter(|_| members.len() >= KIND_LEAST).unwrap_or(of_all);
        members.into_iter().for_each(|number| off[number] -= middle);
    }
}

/// An upper bound on the chance that noise alone is this many standard deviations too long.
fn tail(deviations: f64) -> f64 {
    if deviations <= 0.5 {
        return 0.5;
    }
    ((-deviations * deviations / 2.0).exp() / (deviations * std::f64::consts::TAU.sqrt())).min(0.5)
}

#[cfg(test)]
mod tests;
