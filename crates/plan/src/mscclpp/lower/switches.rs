//! What switches do: one store for all whom a tree feeds through one switch, and whole sums.
//!
//! Down a tree, the first rank that sends into a switch which multicasts can feed all that the tree feeds through it, as
//! these chunks lie at the same place at all of them; what later hops would bring through the switch again is left out. The
//! rank itself is a member of the group and is written, too. Where switches also add up, and one of them links all ranks, a
//! sum that all ranks get is one operation of its owner. What a switch adds up without storing it everywhere, as a
//! reduce-scatter would need it, no loader takes.
//!
//! Source: Zhao 2026, pruning for in-network multicast.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use canopy_schedule::CollectiveKind;

use super::atoms::{Atoms, Store};
use super::layout::{Layout, Spot, SpotCopy};
use super::trees::{SwitchTrees, Tree, TreeHop, Work, groups};
use super::{ExecutionLowerOptions, SwitchDomain};
use crate::msccl::Buffer;
use crate::mscclpp::program::{ChannelType, ChunkRef, ExecutionOp, OpName, RankChannels, RefPlace, SwitchGroup};

/// Most groups of one rank: each is an object of the driver that maps whole buffers.
const GROUPS_PER_RANK_MAX: usize = 4;

/// Lets switches do what they can. No group: there is nothing for them to do. O(hops log hops).
pub(super) fn through_switches(trees: &[Tree], layout: &Layout, options: &ExecutionLowerOptions) -> SwitchTrees {
    let domains = &options.switches;
    let mut switched = SwitchTrees { trees: Vec::new(), groups: Vec::new() };
    if domains.is_empty() {
        return switched;
    }
    let mut numbers = Numbers { groups: &mut switched.groups, of_rank: BTreeMap::new() };
    let is_copied_alike =
        matches!(layout.kind, CollectiveKind::Allgather | CollectiveKind::Broadcast | CollectiveKind::Allreduce);
    for members in groups(trees) {
        let members: Vec<&Tree> = members.into_iter().filter_map(|member| trees.get(member)).collect();
        let sums = whole_sums(&members, layout, domains).and_then(|domain| {
            let group = numbers.number(&domains.get(domain)?.ranks)?;
            Some(members.iter().filter(|tree| tree.work == Work::Copy).map(move |tree| switch_sum(tree, group)))
        });
        match sums {
            Some(sums) => switched.trees.extend(sums),
            None => {
                let has_store = is_copied_alike && options.profile.knows(OpName::GroupStore);
                switched.trees.extend(members.into_iter().map(|tree| match tree.work {
                    Work::Copy if has_store => merge(tree, domains.len(), &mut numbers),
                    _ => tree.clone(),
                }));
            }
        }
    }
    switched
}

/// Numbers groups by their members.
struct Numbers<'a> {
    groups: &'a mut Vec<Vec<u32>>,
    of_rank: BTreeMap<u32, usize>,
}

impl Numbers<'_> {
    /// The number of a group, whose members rise; none if a rank would be in too many.
    fn number(&mut self, members: &[u32]) -> Option<usize> {
        if let Some(known) = self.groups.iter().position(|group| group == members) {
            return Some(known);
        }
        let is_full = |rank| self.of_rank.get(rank).is_some_and(|&count| count >= GROUPS_PER_RANK_MAX);
        if members.iter().any(is_full) {
            return None;
        }
        members.iter().for_each(|&rank| *self.of_rank.entry(rank).or_default() += 1);
        self.groups.push(members.to_vec());
        Some(self.groups.len() - 1)
    }
}

/// The domain whose switches can do all that some trees which share chunks do: all ranks send what they have to some roots,
/// and get the sums from there, by these switches alone.
fn whole_sums(trees: &[&Tree], layout: &Layout, domains: &[SwitchDomain]) -> Option<usize> {
    if layout.kind != CollectiveKind::Allreduce {
        return None;
    }
    let domain = trees.first()?.hops.first()?.domain?;
    let is_able = |domain: &SwitchDomain| domain.aggregates && domain.ranks.len() == layout.ranks as usize;
    let is_whole = |tree: &&Tree| {
        tree.hops.len() + 1 == layout.ranks as usize && tree.hops.iter().all(|hop| hop.domain == Some(domain))
    };
    if !domains.get(domain).is_some_and(is_able) || !trees.iter().all(is_whole) {
        return None;
    }
    // Every chunk is summed once and spread once.
    let [sums, copies] = [Work::Reduce, Work::Copy].map(|work| {
        let mut ranges: Vec<Range<u32>> =
            trees.iter().filter(|tree| tree.work == work).map(|tree| tree.chunks.clone()).collect();
        ranges.sort_by_key(|range| range.start);
        ranges
    });
    let tiles = |ranges: &[Range<u32>]| ranges.windows(2).all(|pair| pair[0].end == pair[1].start);
    let ends = |ranges: &[Range<u32>]| Some(ranges.first()?.start..ranges.last()?.end);
    (tiles(&sums) && tiles(&copies) && ends(&sums).is_some() && ends(&sums) == ends(&copies)).then_some(domain)
}

/// The sum that a tree spreads, as one operation of its root.
fn switch_sum(tree: &Tree, group: usize) -> Tree {
    let mut to: Vec<u32> = tree.hops.iter().map(|hop| hop.to).collect();
    to.sort_unstable();
    let hop = |to| TreeHop { from: tree.root, to, domain: None, group: Some(group) };
    Tree {
        work: Work::SwitchSum,
        root: tree.root,
        chunks: tree.chunks.clone(),
        hops: to.into_iter().map(hop).collect(),
    }
}

/// Lets the first rank that sends through a switch feed all that a tree of copies feeds through it.
fn merge(tree: &Tree, domain_count: usize, numbers: &mut Numbers<'_>) -> Tree {
    let mut merged = tree.clone();
    for domain in 0..domain_count {
        let passes = |hop: &TreeHop| hop.domain == Some(domain);
        let Some(at) = merged.hops.iter().position(passes) else { continue };
        let from = merged.hops[at].from;
        let mut to: Vec<u32> = merged.hops.iter().filter(|hop| passes(hop)).map(|hop| hop.to).collect();
        to.sort_unstable();
        let members: BTreeSet<u32> = to.iter().copied().chain([from]).collect();
        let members: Vec<u32> = members.into_iter().collect();
        if to.len() < 2 {
            continue;
        }
        let Some(group) = numbers.number(&members) else { continue };
        let stored = to.into_iter().map(|to| TreeHop { from, to, domain: None, group: Some(group) });
        let (before, after) = merged.hops.split_at(at);
        let after = after.iter().filter(|hop| !passes(hop)).copied();
        merged.hops = before.iter().copied().chain(stored).chain(after).collect();
    }
    merged
}

/// What a rank copies from its input to its output by itself: all but what its own stores bring there.
pub(super) fn own_copies(layout: &Layout, atoms: &Atoms, rank: u32) -> Vec<SpotCopy> {
    let Some(SpotCopy { from, to, count }) = layout.own_copy(rank) else { return Vec::new() };
    let mut stored: Vec<Range<u32>> = atoms
        .stores
        .iter()
        .filter(|store| store.from == rank && store.target.buffer == to.buffer)
        .map(|store| store.target.index..store.target.index + store.count)
        .collect();
    stored.sort_by_key(|range| range.start);
    let (mut at, end) = (to.index, to.index + count);
    let mut copies = Vec::new();
    for range in stored.into_iter().chain(std::iter::once(end..end)) {
        let until = range.start.clamp(at, end);
        if until > at {
            let source = Spot { index: from.index + (at - to.index), ..from };
            copies.push(SpotCopy { from: source, to: Spot { index: at, ..to }, count: until - at });
        }
        at = range.end.clamp(at, end);
    }
    copies
}

/// The channels that stores need: for each buffer and group one, in one order at all ranks.
pub(super) struct SwitchChannels<'a> {
    groups: &'a [Vec<u32>],
    used: BTreeSet<(Buffer, usize)>,
}

impl<'a> SwitchChannels<'a> {
    pub(super) fn new(atoms: &'a Atoms) -> Self {
        let used = atoms.stores.iter().flat_map(buffers).collect();
        Self { groups: &atoms.switch_groups, used }
    }

    /// The channels of a rank, whose input and output have so many chunks: no store goes to scratch.
    pub(super) fn list(&self, rank: u32, (inputs, outputs): (u32, u32)) -> Vec<RankChannels> {
        let of = |buffer: Buffer, size: u32| {
            let groups: Vec<SwitchGroup> = self
                .of_rank(rank)
                .filter(|(other, _)| *other == buffer)
                .map(|(_, group)| SwitchGroup { size, ranks: self.groups[group].clone() })
                .collect();
            (!groups.is_empty()).then_some(RankChannels::Switch { buffer, groups })
        };
        [of(Buffer::Input, inputs), of(Buffer::Output, outputs)].into_iter().flatten().collect()
    }

    fn of_rank(&self, rank: u32) -> impl Iterator<Item = (Buffer, usize)> {
        self.used.iter().copied().filter(move |&(_, group)| self.groups[group].contains(&rank))
    }

    fn number(&self, rank: u32, key: (Buffer, usize)) -> u32 {
        u32::try_from(self.of_rank(rank).take_while(|&other| other != key).count()).expect("ranks have few groups")
    }

    /// Numbers of the channels that a store needs, at the rank that makes it.
    pub(super) fn used_by(&self, store: &Store) -> Vec<u32> {
        buffers(store).map(|key| self.number(store.from, key)).collect()
    }

    /// The operation that makes a store, in a block with this list of switch channels.
    pub(super) fn operation(&self, store: &Store, list: &[u32]) -> ExecutionOp {
        let at = |spot: Spot| {
            let number = self.number(store.from, (spot.buffer, store.group));
            let position = list.iter().position(|&id| id == number).expect("the list holds all that the block uses");
            let place = RefPlace::Switch(u32::try_from(position).expect("lists are short"));
            ChunkRef { place, index: spot.index, size: store.count }
        };
        let (name, source) = if store.is_sum {
            (OpName::GroupReduceStore, at(store.source))
        } else {
            let Spot { buffer, index } = store.source;
            (OpName::GroupStore, ChunkRef { place: RefPlace::Local(buffer), index, size: store.count })
        };
        ExecutionOp {
            sources: vec![source],
            targets: vec![at(store.target)],
            channel_type: Some(ChannelType::Switch),
            reduce_op: store.is_sum.then(|| "sum".to_owned()),
            ..ExecutionOp::new(name)
        }
    }
}

/// The buffers, each with the group, that a store reaches through the switch.
fn buffers(store: &Store) -> impl Iterator<Item = (Buffer, usize)> + use<> {
    let source = store.is_sum.then_some((store.source.buffer, store.group));
    source.into_iter().chain([(store.target.buffer, store.group)])
}
