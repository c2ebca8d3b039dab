//! Makes the deepest trees less deep, once all of them are put together.

use canopy_optimize::Stop;
use canopy_schedule::{RouteIndex, RouteTable};

use crate::error::SynthesisError;
use crate::forest::assembly::position;
use crate::forest::lower::lower;
use crate::forest::sums::glue::{FreeHop, FreeTree};
use crate::forest::sums::hung::Hung;
use crate::forest::{RoutedHop, RoutedTree, RoutedTrees};

/// Lets trees that hang from their roots exchange hops as trees of a broadcast do: what is exchanged has a way back, so
/// every lane stays as loaded as it was, in both directions.
///
/// * **In.** Trees with their roots, in any order. **Out.** As many or some more, by root. **Errors.** Stopped.
/// * **Cost.** That of [`lower`].
pub(super) fn lowered(
    hung: Vec<(Hung, FreeTree)>,
    rank_count: u32,
    stop: &dyn Stop,
) -> Result<(Vec<FreeTree>, Vec<u32>), SynthesisError> {
    let mut hung = hung;
    hung.sort_by_key(|(hung, tree)| (hung.root, std::cmp::Reverse(tree.weight)));
    let mut routed = RoutedTrees {
        trees_per_root: 1,
        trees: Vec::with_capacity(hung.len()),
        hops: Vec::new(),
        carriers: Vec::new(),
        // Numbers of routes are those of the caller, twice, and one more for the way back.
        routes: RouteTable::default(),
    };
    for (hung, tree) in hung {
        let first = position(routed.hops.len())?;
        for &(hop, is_back) in &hung.order {
            let FreeHop { ends: [start, end], carriers } = &tree.hops[hop];
            let (from, to) = if is_back { (*end, *start) } else { (*start, *end) };
            let begin = position(routed.carriers.len())?;
            for &(route, count) in carriers {
                routed.carriers.push((RouteIndex::new(position(2 * route + usize::from(is_back))?), count));
            }
            routed.hops.push(RoutedHop { from, to, carriers: begin..position(routed.carriers.len())? });
        }
        let hops = first..position(routed.hops.len())?;
        routed.trees.push(RoutedTree { root: hung.root, multiplicity: tree.weight, hops });
    }
    lower(&mut routed, rank_count, stop)?;
    let free = |tree: &RoutedTree| {
        let hops = &routed.hops[tree.hops.start as usize..tree.hops.end as usize];
        FreeTree { weight: tree.multiplicity, hops: hops.iter().map(|hop| free_hop(hop, &routed)).collect() }
    };
    let trees = routed.trees.iter().map(free).collect();
    Ok((trees, routed.trees.iter().map(|tree| tree.root).collect()))
}

/// A hop with its ends in the order of its routes, which all lead the same way.
fn free_hop(hop: &RoutedHop, routed: &RoutedTrees) -> FreeHop {
    let carriers = &routed.carriers[hop.carriers.start as usize..hop.carriers.end as usize];
    let is_back = carriers.first().is_some_and(|(route, _)| route.index() % 2 == 1);
    FreeHop {
        ends: if is_back { [hop.to, hop.from] } else { [hop.from, hop.to] },
        carriers: carriers.iter().map(|&(route, count)| (route.index() / 2, count)).collect(),
    }
}
