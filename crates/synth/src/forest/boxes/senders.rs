//! Who sends trees to other boxes.

use std::ops::Range;

use canopy_optimize::Stop;

use super::layout::Layout;
use super::spans::{BySource, Span};
use crate::error::SynthesisError;
use crate::forest::ask;

/// Who sends the trees that enter members from outside: of their home, as far as that can. `None` if nobody can.
///
/// A root sends its own trees: they are there already. Who of its box has something left sends for it, and for those that
/// are not on the switch in question. What is then missing is sent by members of other boxes that get the tree from its
/// home, from its root if there is such a one, and have something left of what their own trees need. Since that takes a
/// hop more, it is best for trees whose root is on the switch: where not all can be sent, others come first.
///
/// * **Errors.** Stopped. **Cost.** O(spans · members of a box), and for what is missing O(members) per span.
pub(super) fn senders(
    layout: &Layout,
    arrivals: &BySource<()>,
    stop: &dyn Stop,
) -> Result<Option<BySource<u32>>, SynthesisError> {
    let mut left: Vec<i64> = layout.members.iter().map(|member| member.outer.sends).collect();
    let mut sent = Vec::with_capacity(arrivals.len());
    let mut missing = Vec::new();
    for (home, arrivals) in layout.boxes.iter().zip(arrivals) {
        ask(stop)?;
        let mut of_home = vec![Vec::new(); arrivals.len()];
        let lacking = by_home(layout, home, arrivals, &mut left, &mut of_home);
        missing.extend(lacking.into_iter().map(|(to, at)| (sent.len(), to, at)));
        sent.push(of_home);
    }
    for (from, to, mut at) in missing {
        while at.start < at.end {
            ask(stop)?;
            let Some((relay, until)) = relay(layout, from, (to, &at), &sent[from], &left) else { return Ok(None) };
            let end = until.min(at.start + left[relay]);
            left[relay] -= end - at.start;
            sent[from][to].push(Span { at: at.start..end, of: number(relay) });
            at.start = end;
        }
    }
    Ok(Some(sent))
}

fn number(member: usize) -> u32 {
    u32::try_from(member).expect("members are counted in u32")
}

/// Trees in a row and the member of another box that they are for.
type Parcel = (usize, Range<i64>);

/// The home sends what it can; returns what it cannot.
fn by_home(
    layout: &Layout,
    home: &[usize],
    arrivals: &[Vec<Span<()>>],
    left: &mut [i64],
    sent: &mut [Vec<Span<u32>>],
) -> Vec<Parcel> {
    let trunk_of = |member: usize| layout.members[member].trunk;
    // By switch: trees for members on it, less what the home can send over it.
    let mut beyond = vec![0; layout.trunks.len()];
    let wanted = |spans: &Vec<Span<()>>| spans.iter().map(|span| span.at.end - span.at.start).sum::<i64>();
    for (to, spans) in arrivals.iter().enumerate() {
        trunk_of(to).into_iter().for_each(|trunk| beyond[trunk] += wanted(spans));
    }
    home.iter().for_each(|&member| trunk_of(member).into_iter().for_each(|trunk| beyond[trunk] -= left[member]));
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let mut first = 0;
    for &root in home {
        let rooted = first..first + layout.members[root].demand;
        first = rooted.end;
        for (to, spans) in arrivals.iter().enumerate() {
            let cut = |span: &Span<()>| span.at.start.max(rooted.start)..span.at.end.min(rooted.end);
            let parcels = spans.iter().map(cut).filter(|at| at.start < at.end);
            match trunk_of(root) == trunk_of(to) {
                true => own.extend(parcels.map(|at| (root, (to, at)))),
                false => others.extend(parcels.map(|at| (to, at))),
            }
        }
    }
    let near =
        |to: usize| home.iter().copied().filter(move |&member| trunk_of(member) == trunk_of(to)).collect::<Vec<_>>();
    let is_short = |(to, _): &Parcel| trunk_of(*to).is_some_and(|trunk| beyond[trunk] > 0);
    let (first, mut last): (Vec<Parcel>, Vec<Parcel>) = others.into_iter().partition(is_short);
    let mut lacking: Vec<Parcel> =
        first.into_iter().filter_map(|parcel| by_helpers(&near(parcel.0), parcel, left, sent)).collect();
    last.extend(own.into_iter().filter_map(|(root, parcel)| by_helpers(&[root], parcel, left, sent)));
    lacking.extend(last.into_iter().filter_map(|parcel| by_helpers(&near(parcel.0), parcel, left, sent)));
    lacking
}

/// Whoever has most left sends; returns what nobody has anything left for.
fn by_helpers(
    helpers: &[usize],
    (to, mut at): Parcel,
    left: &mut [i64],
    sent: &mut [Vec<Span<u32>>],
) -> Option<Parcel> {
    while at.start < at.end {
        let most = helpers.iter().copied().max_by_key(|&member| (left[member], std::cmp::Reverse(member)));
        let Some(sender) = most.filter(|&member| left[member] > 0) else { return Some((to, at)) };
        let end = at.end.min(at.start + left[sender]);
        left[sender] -= end - at.start;
        sent[to].push(Span { at: at.start..end, of: number(sender) });
        at.start = end;
    }
    None
}

/// A member of another box that can pass the first of these trees on, and how far it has got them.
fn relay(
    layout: &Layout,
    from: usize,
    (to, at): (usize, &Range<i64>),
    sent: &[Vec<Span<u32>>],
    left: &[i64],
) -> Option<(usize, i64)> {
    let root = root_at(layout, from, at.start)?;
    let candidate = |relay: usize| {
        let near = layout.members[relay].trunk == layout.members[to].trunk;
        let apart = layout.members[relay].in_box != layout.members[to].in_box;
        let span = sent[relay].iter().find(|span| span.at.contains(&at.start))?;
        let is_first_hand = layout.members[span.of as usize].in_box == from;
        let can = near && apart && is_first_hand && left[relay] > 0;
        can.then(|| ((span.of == root, left[relay], std::cmp::Reverse(relay)), (relay, span.at.end.min(at.end))))
    };
    (0..sent.len()).filter_map(candidate).max().map(|(_, found)| found)
}

/// The root of a tree of a box, by its place in the row.
fn root_at(layout: &Layout, from: usize, place: i64) -> Option<u32> {
    let mut end = 0;
    let mut roots = layout.roots_of(from).into_iter();
    roots.find_map(|(root, count)| {
        end += count;
        (place < end).then_some(root)
    })
}
