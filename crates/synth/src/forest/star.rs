//! Trees of a star, terminals around one switch, for demands of different sizes: written down at once.
//!
//! A switch passes on whatever its links carry, so only the sums count that each terminal sends and receives. Each tree
//! enters every terminal but its root once, which settles what is received. What is sent can be shared out at will: who
//! has much of its own and could not send all of that to everyone sends the rest to one who has little, and who passes
//! it on to all others.

/// Equal trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StarTree {
    pub(super) root: u32,
    pub(super) weight: u128,
    /// Tail and head, each after the one into its tail.
    pub(super) edges: Vec<(u32, u32)>,
}

/// Trees for all demands in which no terminal sends more than it can: those that their root sends to everyone, those that
/// one other passes on, and of what is left, less than one tree per terminal, such as several pass on. `None` if there are
/// fewer than three terminals, or they cannot send so much.
///
/// A root of demand w that sends c sends d trees to everyone and one edge each of the w − d others, at best with
/// `d = ⌊(c − w)/(n − 2)⌋`; a relay adds n − 2 edges to a tree. All sends together are at least as many as all edges if
/// each terminal receives what the others demand, so the numbers always come out then.
///
/// * **Source.** Our own. **In.** What each terminal is to root, and what it can send. **Out.** Trees by root; nothing that
///   is not needed is sent. **Cost.** O(terminals) per tree, of which there are O(terminals).
pub(super) fn star_trees(demands: &[u128], sends: &[u128]) -> Option<Vec<StarTree>> {
    let count = u32::try_from(demands.len()).ok().filter(|&count| count >= 3)?;
    let relay_edges = u128::from(count) - 2;
    let mut trees = Vec::new();
    // By terminal: trees it roots and cannot send to everyone, and edges it can add to those of others.
    let (mut rest, mut spare) = (Vec::with_capacity(demands.len()), Vec::with_capacity(demands.len()));
    for (root, (&demand, &sends)) in (0..count).zip(demands.iter().zip(sends)) {
        let beyond = sends.checked_sub(demand)?;
        let direct = demand.min(beyond / relay_edges);
        if direct > 0 {
            trees.push(StarTree { root, weight: direct, edges: grown(count, &[(root, count - 1)]) });
        }
        rest.push(demand - direct);
        spare.push(beyond - direct * relay_edges);
    }
    let mut relays: Vec<u32> = (0..count).collect();
    let mut roots = relays.clone();
    relays.sort_by_key(|&relay| std::cmp::Reverse(spare[relay as usize]));
    roots.sort_by_key(|&root| std::cmp::Reverse(rest[root as usize]));
    // Whole trees. Who has a rest has spare edges for less than one, so no root relays for itself.
    let mut next = relays.iter().copied().peekable();
    for &root in &roots {
        while rest[root as usize] > 0
            && let Some(&relay) = next.peek()
        {
            let weight = rest[root as usize].min(spare[relay as usize] / relay_edges);
            if weight == 0 {
                next.next();
                continue;
            }
            trees.push(StarTree { root, weight, edges: grown(count, &[(root, 1), (relay, count - 2)]) });
            rest[root as usize] -= weight;
            spare[relay as usize] -= weight * relay_edges;
        }
    }
    // One tree at a time, of what several have left.
    relays.sort_by_key(|&relay| std::cmp::Reverse(spare[relay as usize]));
    let mut next = relays.into_iter().peekable();
    for root in roots {
        while rest[root as usize] > 0 {
            let mut senders = vec![(root, 1)];
            let mut missing = count - 2;
            while missing > 0 {
                let relay = *next.peek()?;
                let edges = u32::try_from(spare[relay as usize]).map_or(missing, |spare| spare.min(missing));
                spare[relay as usize] -= u128::from(edges);
                missing -= edges;
                match relay == root {
                    true => senders[0].1 += edges,
                    false => senders.extend(Some((relay, edges)).filter(|_| edges > 0)),
                }
                if missing > 0 {
                    next.next();
                }
            }
            trees.push(StarTree { root, weight: 1, edges: grown(count, &senders) });
            rest[root as usize] -= 1;
        }
    }
    trees.sort_by_key(|tree| (tree.root, std::cmp::Reverse(tree.weight)));
    Some(trees)
}

/// The flattest tree in which these terminals have so many children, all others none. The first is the root; each has a
/// child, and together they have one for every other terminal.
fn grown(count: u32, senders: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let root = senders[0].0;
    let is_sender = |terminal: u32| senders.iter().any(|&(sender, _)| sender == terminal);
    let leaves = (0..count).map(|offset| (root + offset) % count).filter(|&terminal| !is_sender(terminal));
    // Senders join before all others, so each has joined when its turn comes.
    let mut joining = senders[1..].iter().map(|&(sender, _)| sender).chain(leaves);
    let mut edges = Vec::with_capacity(count as usize - 1);
    for &(sender, children) in senders {
        edges.extend(joining.by_ref().take(children as usize).map(|child| (sender, child)));
    }
    edges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Spanning trees for every demand, in an order in which data can flow, and no terminal sends more than it can.
    fn check(demands: &[u128], sends: &[u128]) -> Vec<StarTree> {
        let trees = star_trees(demands, sends).unwrap();
        let (mut rooted, mut sent) = (vec![0; demands.len()], vec![0; demands.len()]);
        for tree in &trees {
            let mut is_reached = vec![false; demands.len()];
            is_reached[tree.root as usize] = true;
            for &(from, to) in &tree.edges {
                assert!(is_reached[from as usize] && !std::mem::replace(&mut is_reached[to as usize], true));
                sent[from as usize] += tree.weight;
            }
            assert!(tree.weight > 0 && is_reached.into_iter().all(|reached| reached));
            rooted[tree.root as usize] += tree.weight;
        }
        assert_eq!(rooted, demands);
        assert!(sent.iter().zip(sends).all(|(sent, sends)| sent <= sends), "{sent:?} of {sends:?}");
        assert!(trees.is_sorted_by_key(|tree| tree.root));
        trees
    }

    /// As much out of each terminal as must go into it, as where nothing can be spared.
    fn tight(demands: &[u128]) -> Vec<u128> {
        let total: u128 = demands.iter().sum();
        demands.iter().map(|demand| total - demand).collect()
    }

    #[test]
    fn equal_demands_make_stars() {
        let trees = check(&[5; 6], &[25; 6]);
        assert_eq!(trees.len(), 6);
        assert!(trees.iter().all(|tree| tree.edges.iter().all(|&(from, _)| from == tree.root)));
    }

    /// Half of all demand at one terminal: it sends each tree once, and the others pass it on.
    #[test]
    fn a_heavy_root_is_helped_by_all() {
        let trees = check(&[12, 3, 3, 3, 3], &tight(&[12, 3, 3, 3, 3]));
        assert!(trees[0].edges.len() == 4 && trees.iter().filter(|tree| tree.root == 0).count() <= 4);
    }

    #[test]
    fn what_cannot_be_sent_is_not_planned() {
        assert_eq!(star_trees(&[1, 1], &[1, 1]), None);
        assert_eq!(star_trees(&[3, 1, 1], &[2, 9, 9]), None, "the root cannot send each tree once");
        assert_eq!(star_trees(&[3, 0, 0], &[3, 1, 1]), None, "five edges of six");
    }

    proptest! {
        #[test]
        fn tight_stars_are_filled(
            mut demands in prop::collection::vec(prop_oneof![Just(0), 0..9_u128, 0..1_u128 << 60], 3..20),
        ) {
            // No terminal may have more than half of all, or it could not send each tree even once.
            let most = demands.iter().copied().max().unwrap_or_default();
            demands.extend([most, most]);
            let trees = check(&demands, &tight(&demands));
            prop_assert!(trees.len() <= 4 * demands.len());
        }

        #[test]
        fn spare_capacity_is_left_alone(
            demands in prop::collection::vec(0..50_u128, 3..12),
            more in prop::collection::vec(0..90_u128, 12),
        ) {
            let most = demands.iter().copied().max().unwrap_or_default();
            let demands = [demands, vec![most]].concat();
            let sends: Vec<u128> = tight(&demands).iter().zip(&more).map(|(least, more)| least + more).collect();
            check(&demands, &sends);
        }
    }
}
