//! Which ranks share a box and which a switch outside.

use std::collections::BTreeMap;

/// What a member can send and receive through one of its two switches, in trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::forest) struct Ports {
    pub(in crate::forest) sends: i64,
    pub(in crate::forest) receives: i64,
}

/// A rank, or what stands for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::forest) struct Member {
    /// Position of its box.
    pub(in crate::forest) in_box: usize,
    /// Position of its switch outside, if it is on one.
    pub(in crate::forest) trunk: Option<usize>,
    /// Trees rooted at it.
    pub(in crate::forest) demand: i64,
    /// To and from the switch of its box; nothing if it is alone in it.
    pub(in crate::forest) inner: Ports,
    /// To and from its switch outside.
    pub(in crate::forest) outer: Ports,
}

/// Boxes times members, at most: each pair of them takes some 200 bytes while trees are found.
const PLACES_MAX: usize = 1 << 21;

/// Boxes joined by switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::forest) struct Layout {
    pub(in crate::forest) members: Vec<Member>,
    /// By box: its members, sorted.
    pub(in crate::forest) boxes: Vec<Vec<usize>>,
    /// By switch outside: the boxes with members on it, each with these.
    pub(super) trunks: Vec<BTreeMap<usize, Vec<usize>>>,
    /// By box: demands of its members together.
    pub(super) demands: Vec<i64>,
    /// All demands.
    pub(super) total: i64,
    /// What all demands are multiples of.
    pub(super) unit: i64,
}

impl Layout {
    /// Numbers boxes and switches as the members do. `None` if there are fewer than two boxes, or more than half as many as
    /// members, no demands, or numbers so large that sums of them, or tables, might not fit.
    pub(in crate::forest) fn new(members: Vec<Member>) -> Option<Self> {
        let all = |member: &Member| {
            [member.demand, member.inner.sends, member.inner.receives, member.outer.sends, member.outer.receives]
        };
        let magnitude = members.iter().flat_map(all).try_fold(0_i64, i64::checked_add)?;
        // Sums go over boxes and members at most.
        magnitude.checked_mul(i64::try_from(members.len()).ok()?)?.checked_mul(64)?;
        let box_count = members.iter().map(|member| member.in_box + 1).max()?;
        let trunk_count = members.iter().filter_map(|member| member.trunk).map(|trunk| trunk + 1).max()?;
        if box_count.checked_mul(2)? > members.len() || box_count * members.len() > PLACES_MAX {
            return None;
        }
        let mut boxes = vec![Vec::new(); box_count];
        let mut trunks = vec![BTreeMap::<usize, Vec<usize>>::new(); trunk_count];
        let mut demands = vec![0; box_count];
        for (position, member) in members.iter().enumerate() {
            boxes[member.in_box].push(position);
            demands[member.in_box] += member.demand;
            if let Some(trunk) = member.trunk {
                trunks[trunk].entry(member.in_box).or_default().push(position);
            }
        }
        let unit = members.iter().fold(0, |unit, member| num_integer::gcd(unit, member.demand));
        let total = demands.iter().sum();
        (box_count > 1 && unit > 0).then_some(Self { members, boxes, trunks, demands, total, unit })
    }

    /// The trees of a box in a row: each root with those it has.
    pub(super) fn roots_of(&self, from: usize) -> Vec<(u32, i64)> {
        let members = self.boxes[from].iter();
        members
            .map(|&member| (u32::try_from(member).expect("members are counted in u32"), self.members[member].demand))
            .collect()
    }

    /// What a member has left to send on in its box once it has sent its own trees to all of it; negative if it cannot.
    pub(super) fn spare(&self, member: usize) -> i64 {
        let Member { in_box, demand, inner, .. } = self.members[member];
        let others = i64::try_from(self.boxes[in_box].len() - 1).expect("members are counted in u32");
        inner.sends - others * demand
    }

    /// Whether all boxes, and all switches outside, have as many members, and all members are alike.
    pub(in crate::forest) fn is_uniform(&self) -> bool {
        let first = self.members.first();
        let alike = |member: &Member| Some((member.demand, member.inner, member.outer));
        let sizes = |trunk: &BTreeMap<usize, Vec<usize>>| trunk.values().map(Vec::len).collect::<Vec<_>>();
        self.members.iter().all(|member| alike(member) == first.and_then(alike))
            && self.boxes.windows(2).all(|pair| pair[0].len() == pair[1].len())
            && self.trunks.windows(2).all(|pair| sizes(&pair[0]) == sizes(&pair[1]))
    }
}
