//! Pieces that are machines of boxes: every terminal on a switch of its box, on one outside, or on both.

use canopy_optimize::{FlowUnit, Stop};

use super::star::{Spokes, join};
use super::{Piece, PieceTree, Solution};
use crate::error::SynthesisError;
use crate::forest::{ASK_INTERVAL, ask};
use crate::forest::boxes::{Layout, Member, Ports, box_trees};

impl<C: FlowUnit> Piece<'_, C> {
    /// The solution of a machine of boxes, some of which differ from others; `None` for everything else, and where the
    /// numbers do not come out. Where all are alike, so are the trees that symmetry finds, and those are flatter.
    ///
    /// * **Errors.** Stopped. **Cost.** That of [`box_trees`].
    pub(in crate::forest) fn solve_boxes(&self, stop: &dyn Stop) -> Result<Option<Solution<C>>, SynthesisError> {
        let Some(mut machine) = Machine::new(self) else { return Ok(None) };
        let Some(layout) = machine.layout(self).filter(|layout| !layout.is_uniform()) else { return Ok(None) };
        let Some(found) = box_trees(&layout, stop)? else { return Ok(None) };
        let (mut strands, mut ranges) = (Vec::new(), Vec::with_capacity(found.edges.len()));
        for (from, to, amount) in found.edges {
            if ranges.len().is_multiple_of(ASK_INTERVAL as usize) {
                ask(stop)?;
            }
            let is_inside = layout.members[from as usize].in_box == layout.members[to as usize].in_box;
            let side = if is_inside { &mut machine.inner } else { &mut machine.outer };
            let amount = convert(amount);
            let first = strands.len();
            join(side.out.take(from, amount), side.into.take(to, amount), &mut strands);
            ranges.push((from, to, first..strands.len()));
        }
        let mut trees: Vec<Vec<PieceTree<C>>> = (0..self.terminals.len()).map(|_| Vec::new()).collect();
        for tree in found.trees {
            ask(stop)?;
            let edges = tree.edges.iter().map(|&edge| ranges[edge as usize].clone()).collect();
            trees[tree.root as usize].push(PieceTree { weight: convert(tree.weight), edges });
        }
        let nothing = || vec![Vec::new(); self.links.len()];
        Ok(Some(Solution { trees, strands, entries: nothing(), exits: nothing() }))
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
        Self { out: Spokes::new(terminal_count), into: Spokes::new(terminal_count) }
    }

    /// What terminals can send and receive; `None` if that does not fit.
    fn ports(&self) -> Option<Vec<Ports>> {
        let narrow = |amount: u128| i64::try_from(amount).ok();
        let sides = self.out.sums().into_iter().zip(self.into.sums());
        sides.map(|(sends, receives)| Some(Ports { sends: narrow(sends)?, receives: narrow(receives)? })).collect()
    }
}

/// Which switches a machine has, and the links to them.
struct Machine<C> {
    /// By terminal: its switches of both kinds.
    inner_switch: Vec<Option<u32>>,
    outer_switch: Vec<Option<u32>>,
    inner: Side<C>,
    outer: Side<C>,
}

impl<C: FlowUnit> Machine<C> {
    /// Tells switches of boxes from those outside. `None` if a link does not join a terminal and a switch, or a terminal is
    /// on two switches of one kind. O(links).
    fn new(piece: &Piece<'_, C>) -> Option<Self> {
        let count = piece.network.terminal_count;
        if piece.network.outside.is_some() {
            return None;
        }
        let ends = |link: usize| {
            let way = piece.network.links[link];
            let (terminal, switch) = (way.from.min(way.to), way.from.max(way.to));
            (terminal < count && switch >= count).then_some((terminal, switch))
        };
        let used = || (0..piece.links.len()).filter(|&link| piece.capacities[link] > C::ZERO);
        // Of each switch: the box of the terminals seen so far, and whether there are others.
        let mut only: Vec<Option<Option<u32>>> = vec![None; piece.network.node_count as usize];
        for link in used() {
            let (terminal, switch) = ends(link)?;
            let here = piece.network.boxes[terminal as usize];
            let known = only[switch as usize].get_or_insert(here);
            *known = (*known).filter(|_| *known == here);
        }
        let mut machine = Self {
            inner_switch: vec![None; count as usize],
            outer_switch: vec![None; count as usize],
            inner: Side::new(count),
            outer: Side::new(count),
        };
        for link in used() {
            let (terminal, switch) = ends(link)?;
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
