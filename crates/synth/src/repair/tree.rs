//! One tree under repair: of every rank, what it hangs from and by which routes.
//!
//! It is seen from the root outwards, whichever way its data goes.

use canopy_schedule::RouteIndex;

/// The route of chunks whose route is gone.
pub(super) const LOST: RouteIndex = RouteIndex::new(u32::MAX);

/// The routes of a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ways {
    /// One for all chunks of the tree.
    One(RouteIndex),
    /// Several, each for so many.
    Several(Vec<(RouteIndex, u64)>),
}

impl Ways {
    /// Of these parts, which are not empty.
    pub(super) fn of(mut parts: Vec<(RouteIndex, u64)>) -> Self {
        parts.dedup_by(|next, last| {
            let alike = next.0 == last.0;
            last.1 += if alike { next.1 } else { 0 };
            alike
        });
        match parts[..] {
            [(route, _)] => Self::One(route),
            _ => Self::Several(parts),
        }
    }

    /// The parts, of a tree of so many chunks.
    pub(super) fn parts(&self, weight: u64) -> impl Iterator<Item = (RouteIndex, u64)> + '_ {
        let (one, several) = match self {
            Self::One(route) => (Some((*route, weight)), None),
            Self::Several(parts) => (None, Some(parts.iter().copied())),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    /// Chunks on routes of a kind.
    pub(super) fn count(&self, weight: u64, is_meant: impl Fn(RouteIndex) -> bool) -> u64 {
        self.parts(weight).filter(|&(route, _)| is_meant(route)).map(|(_, count)| count).sum()
    }

    /// Takes `amount` chunks of `weight` off, those on the routes that are meant first; what is left stays.
    fn take(&mut self, weight: u64, amount: u64, is_meant: impl Fn(RouteIndex) -> bool) -> Self {
        if let Self::One(route) = self {
            return Self::One(*route);
        }
        let mut parts: Vec<(RouteIndex, u64)> = self.parts(weight).collect();
        parts.sort_by_key(|&(route, _)| !is_meant(route));
        let (mut taken, mut kept, mut missing) = (Vec::new(), Vec::new(), amount);
        for (route, count) in parts {
            let part = count.min(missing);
            missing -= part;
            taken.extend(Some((route, part)).filter(|_| part > 0));
            kept.extend(Some((route, count - part)).filter(|_| part < count));
        }
        *self = Self::of(kept);
        Self::of(taken)
    }
}

/// What a rank hangs from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Up {
    pub(super) parent: u32,
    pub(super) ways: Ways,
}

/// So many equal trees, whole or in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) root: u32,
    pub(super) weight: u64,
    /// By rank; none of the root, and of ranks that were cut off.
    pub(super) ups: Vec<Option<Up>>,
}

impl Tree {
    /// Takes `amount` of the trees, fewer than all, as a tree of its own: of the hop into `rank` the chunks on routes that
    /// are meant, and of others those that are lost first.
    pub(super) fn divide(&mut self, amount: u64, rank: u32, is_meant: impl Fn(RouteIndex) -> bool) -> Self {
        let mut taken = Self { root: self.root, weight: amount, ups: Vec::with_capacity(self.ups.len()) };
        for (child, up) in (0_u32..).zip(&mut self.ups) {
            let part = up.as_mut().map(|up| {
                let is_meant = |route| if child == rank { is_meant(route) } else { route == LOST };
                Up { parent: up.parent, ways: up.ways.take(self.weight, amount, is_meant) }
            });
            taken.ups.push(part);
        }
        self.weight -= amount;
        taken
    }

    /// The ranks that hang from each rank. O(ranks).
    pub(super) fn children(&self) -> Children {
        let mut starts = vec![0_u32; self.ups.len() + 1];
        for up in self.ups.iter().flatten() {
            starts[up.parent as usize + 1] += 1;
        }
        for rank in 1..starts.len() {
            starts[rank] += starts[rank - 1];
        }
        let mut next = starts.clone();
        let mut ranks = vec![0; starts.last().copied().unwrap_or(0) as usize];
        for (child, up) in (0_u32..).zip(&self.ups) {
            if let Some(up) = up {
                let place = &mut next[up.parent as usize];
                ranks[*place as usize] = child;
                *place += 1;
            }
        }
        Children { starts, ranks }
    }

    /// As of [`Children::branch`]. O(ranks).
    pub(super) fn branch(&self, top: u32) -> Vec<u32> {
        self.children().branch(top)
    }

    /// Ranks that hang from nothing, but for the root. O(ranks).
    pub(super) fn tops(&self) -> Vec<u32> {
        let all = (0_u32..).zip(&self.ups);
        all.filter(|&(rank, up)| up.is_none() && rank != self.root).map(|(rank, _)| rank).collect()
    }
}

/// What hangs from each rank of a tree.
pub(super) struct Children {
    /// By rank: where those that hang from it start; the next one's start is their end.
    starts: Vec<u32>,
    ranks: Vec<u32>,
}

impl Children {
    /// The ranks of the branch of `top`, which comes first, each after what it hangs from. O(ranks of the branch).
    pub(super) fn branch(&self, top: u32) -> Vec<u32> {
        let mut order = vec![top];
        let mut next = 0;
        while let Some(&rank) = order.get(next) {
            next += 1;
            let (start, end) = (self.starts[rank as usize] as usize, self.starts[rank as usize + 1] as usize);
            order.extend_from_slice(&self.ranks[start..end]);
        }
        order
    }
}
