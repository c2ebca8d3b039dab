//! Pieces that are machines of boxes: every terminal on a switch of its box, on one outside, or on both.

use canopy_optimize::{FlowUnit, Stop};

use super::star::{Spokes, join};
use super::{Piece, PieceEdge, PieceTree, Solution};
use crate::error::SynthesisError;
use crate::forest::boxes::{BoxTrees, Layout, Member, Ports, box_trees};
use crate::forest::logical::Strand;
use crate::forest::{ASK_INTERVAL, ask};

impl<C: FlowUnit> Piece<'_, C> {
    /// The piece as a machine of boxes, if it is one.
    pub(in crate::forest) fn machine(&self) -> Option<Machine<C>> {
        let sides = Sides::new(self)?;
        let layout = sides.layout(self)?;
        Some(Machine { sides, layout })
    }

    /// The solution of a machine of boxes; `None` where the numbers do not come out.
    ///
    /// * **In.** The machine that this piece is. **Errors.** Stopped. **Cost.** That of [`box_trees`].
    pub(in crate::forest) fn solve_boxes(
        &self,
        machine: Machine<C>,
        stop: &dyn Stop,
    ) -> Result<Option<Solution<C>>, SynthesisError> {
        let Machine { mut sides, layout } = machine;
        let Some(found) = box_trees(&layout, stop)? else { return Ok(None) };
        let mut strands = Vec::new();
        let ways = |from: u32, to: u32, amount: C, strands: &mut Vec<Strand<C>>| {
            let is_inside = layout.members[from as usize].in_box == layout.members[to as usize].in_box;
            let side = if is_inside { &mut sides.inner } else { &mut sides.outer };
            join(side.out.take(from, amount), side.into.take(to, amount), strands);
        };
        let trees = self.trees_on(found, &mut strands, ways, stop)?;
        let nothing = || vec![Vec::new(); self.links.len()];
        Ok(Some(Solution { trees, strands, entries: nothing(), exits: nothing() }))
    }

    /// Trees by root, once `ways` has added the strands of each edge.
    pub(super) fn trees_on(
        &self,
        found: BoxTrees,
        strands: &mut Vec<Strand<C>>,
        mut ways: impl FnMut(u32, u32, C, &mut Vec<Strand<C>>),
        stop: &dyn Stop,
    ) -> Result<Vec<Vec<PieceTree<C>>>, SynthesisError> {
        let mut ranges = Vec::with_capacity(found.edges.len());
        for (tail, head, amount) in found.edges {
            if ranges.len().is_multiple_of(ASK_INTERVAL as usize) {
                ask(stop)?;
            }
            let first = strands.len();
            ways(tail, head, convert(amount), strands);
            ranges.push(PieceEdge { tail, head, strands: first..strands.len() });
        }
        let mut trees: Vec<Vec<PieceTree<C>>> = (0..self.terminals.len()).map(|_| Vec::new()).collect();
        for tree in found.trees {
            ask(stop)?;
            let edges = tree.edges.iter().map(|&edge| ranges[edge as usize].clone()).collect();
            trees[tree.root as usize].push(PieceTree { weight: convert(tree.weight), edges });
        }
        Ok(trees)
    }
}

fn convert<C: FlowUnit>(amount: i64) -> C {
    u128::try_from(amount).ok().and_then(C::try_from_u128).expect("no more than the capacities it is sent over")
}

/// Links between terminals and one kind of switches.
struct Side<C> {
    out: Spokes<C>,
    into: Spokes<C>,
}

impl<C: FlowUnit> Side<C> {
    fn new(terminal_count: u32) -> Self {
        Self { out: Spokes::new(terminal_count, 1), into: Spokes::new(terminal_count, 1) }
    }

    /// What terminals can send and receive; `None` if that does not fit.
    fn ports(&self) -> Option<Vec<Ports>> {
        let narrow = |amount: u128| i64::try_from(amount).ok();
        let sides = self.out.sums().into_iter().zip(self.into.sums());
        sides.map(|(sends, receives)| Some(Ports { sends: narrow(sends)?, receives: narrow(receives)? })).collect()
    }
}

/// A machine of boxes: in numbers, and with its links.
pub(in crate::forest) struct Machine<C> {
    sides: Sides<C>,
    layout: Layout,
}

impl<C> Machine<C> {
    /// Whether all boxes and all ranks are alike.
    pub(in crate::forest) fn is_uniform(&self) -> bool {
        self.layout.is_uniform()
    }

    /// Whether there are links between switches. They are left out of account: where all ranks share a switch with one of
    /// each other box, as on rails, what is above is of little use.
    pub(in crate::forest) fn has_more_links(&self) -> bool {
        self.sides.has_more_links
    }
}

/// Which switches there are, and the links to them.
struct Sides<C> {
    /// By terminal: its switches of both kinds.
    inner_switch: Vec<Option<u32>>,
    outer_switch: Vec<Option<u32>>,
    inner: Side<C>,
    outer: Side<C>,
    /// Whether some join switches.
    has_more_links: bool,
}

impl<C: FlowUnit> Sides<C> {
    /// Tells switches of boxes from those outside. `None` if a link joins two terminals, or a terminal is on two switches of
    /// one kind. O(links).
    fn new(piece: &Piece<'_, C>) -> Option<Self> {
        let count = piece.network.terminal_count;
        if piece.network.outside.is_some() {
            return None;
        }
        let used = (0..piece.links.len()).filter(|&link| piece.capacities[link] > C::ZERO);
        let mut has_more_links = false;
        // By link between one and the other.
        let mut spokes: Vec<(usize, u32, u32)> = Vec::new();
        for link in used {
            let way = piece.network.links[link];
            let (terminal, switch) = (way.from.min(way.to), way.from.max(way.to));
            if switch < count {
                return None;
            }
            has_more_links |= terminal >= count;
            spokes.extend(Some((link, terminal, switch)).filter(|_| terminal < count));
        }
        // Of each switch: the box of the terminals seen so far, unless there are several.
        let mut only: Vec<Option<Option<u32>>> = vec![None; piece.network.node_count as usize];
        for &(_, terminal, switch) in &spokes {
            let here = piece.network.boxes[terminal as usize];
            let known = only[switch as usize].get_or_insert(here);
            *known = (*known).filter(|_| *known == here);
        }
        let mut machine = Self {
            inner_switch: vec![None; count as usize],
            outer_switch: vec![None; count as usize],
            inner: Side::new(count),
            outer: Side::new(count),
            has_more_links,
        };
        for (link, terminal, switch) in spokes {
            let is_inner = only[switch as usize].flatten().is_some();
            let (side, known) = match is_inner {
                true => (&mut machine.inner, &mut machine.inner_switch[terminal as usize]),
                false => (&mut machine.outer, &mut machine.outer_switch[terminal as usize]),
            };
            if *known.get_or_insert(switch) != switch {
                return None;
            }
            let spokes = if piece.network.links[link].from == terminal { &mut side.out } else { &mut side.into };
            spokes.add(terminal, link, piece.capacities[link]);
        }
        Some(machine)
    }

    /// The machine in numbers: terminals on one switch of a box are a box, those on none are one each.
    fn layout(&self, piece: &Piece<'_, C>) -> Option<Layout> {
        let mut boxes = std::collections::BTreeMap::new();
        let mut trunks = std::collections::BTreeMap::new();
        let mut members = Vec::new();
        let (inner, outer) = (self.inner.ports()?, self.outer.ports()?);
        for (position, (inner, outer)) in inner.into_iter().zip(outer).enumerate() {
            let switch = self.inner_switch[position].ok_or(position);
            let next = boxes.len();
            let in_box = *boxes.entry(switch).or_insert(next);
            let next = trunks.len();
            let trunk = self.outer_switch[position].map(|switch| *trunks.entry(switch).or_insert(next));
            let demand = i64::try_from(piece.demands[position].to_u128()).ok()?;
            members.push(Member { in_box, trunk, demand, inner, outer });
        }
        Layout::new(members)
    }
}
