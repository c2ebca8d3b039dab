//! A template as a tree on the codes of seats.

use super::error::{OrbitsError, TemplateFault};
use super::group::Group;
use crate::orbits::Template;

/// A tree that spans all seats, by code.
pub(super) struct Tree {
    pub(super) root: u32,
    /// The parent of each; the root's is itself.
    pub(super) parents: Vec<u32>,
    pub(super) depths: Vec<u32>,
    pub(super) depth: u32,
    /// All codes, each after its parent.
    order: Vec<u32>,
    children: Children,
}

/// Children by parent.
struct Children {
    starts: Vec<u32>,
    children: Vec<u32>,
}

impl Children {
    fn of(parents: &[u32], root: u32) -> Self {
        let mut starts = vec![0_u32; parents.len() + 1];
        let hops = || (0..).zip(parents).filter(|&(child, _)| child != root);
        hops().for_each(|(_, &parent)| starts[parent as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let (mut next, mut children) = (starts.clone(), vec![0; parents.len().saturating_sub(1)]);
        for (child, &parent) in hops() {
            let slot = &mut next[parent as usize];
            children[*slot as usize] = child;
            *slot += 1;
        }
        Self { starts, children }
    }

    fn below(&self, parent: u32) -> &[u32] {
        let at = parent as usize;
        &self.children[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

impl Tree {
    /// Reads a template whose length and root were checked. O(seats).
    pub(super) fn new(number: usize, template: &Template, group: &Group) -> Result<Self, OrbitsError> {
        let fault = |fault| OrbitsError::Template { template: number, fault };
        let seats = template.parents.len();
        let mut parents = vec![0; seats];
        for (seat, &parent) in (0..).zip(&template.parents) {
            if parent as usize >= seats {
                return Err(fault(TemplateFault::NoParent { seat, parent }));
            }
            parents[group.code_of(seat) as usize] = group.code_of(parent);
        }
        let root = group.code_of(template.root);
        let children = Children::of(&parents, root);
        let (mut order, mut depths) = (Vec::with_capacity(seats), vec![u32::MAX; seats]);
        order.push(root);
        depths[root as usize] = 0;
        let mut at = 0;
        while let Some(&parent) = order.get(at) {
            at += 1;
            for &child in children.below(parent) {
                depths[child as usize] = depths[parent as usize] + 1;
                order.push(child);
            }
        }
        if let Some(code) = (0..).zip(&depths).find(|&(_, &depth)| depth == u32::MAX).map(|(code, _)| code) {
            return Err(fault(TemplateFault::Unreached { seat: group.seat_of(code) }));
        }
        let depth = depths.iter().copied().max().unwrap_or(0);
        Ok(Self { root, parents, depths, depth, order, children })
    }

    /// All hops: child and parent.
    pub(super) fn hops(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..).zip(&self.parents).filter(|&(child, _)| child != self.root).map(|(child, &parent)| (child, parent))
    }

    /// What is below what. O(seats).
    pub(super) fn spans(&self) -> Spans {
        let seats = self.parents.len();
        let (mut sizes, mut heights) = (vec![1_u32; seats], vec![0_u32; seats]);
        for &code in self.order.iter().rev().filter(|&&code| code != self.root) {
            let parent = self.parents[code as usize] as usize;
            sizes[parent] += sizes[code as usize];
            heights[parent] = heights[parent].max(heights[code as usize] + 1);
        }
        let mut firsts = vec![0_u32; seats];
        for &code in &self.order {
            let mut next = firsts[code as usize] + 1;
            for &child in self.children.below(code) {
                firsts[child as usize] = next;
                next += sizes[child as usize];
            }
        }
        Spans { firsts, sizes, heights }
    }
}

/// Places of codes in an order in which all that is below a code follows it.
pub(super) struct Spans {
    firsts: Vec<u32>,
    sizes: Vec<u32>,
    /// Hops from each code to the deepest one below it.
    pub(super) heights: Vec<u32>,
}

impl Spans {
    /// Whether a code is another one, or below it.
    pub(super) fn is_below(&self, code: u32, above: u32) -> bool {
        let (first, of) = (self.firsts[above as usize], self.firsts[code as usize]);
        of >= first && of - first < self.sizes[above as usize]
    }
}
