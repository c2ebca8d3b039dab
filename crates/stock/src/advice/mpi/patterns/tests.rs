//! What algorithms send, against what their collective needs.

use std::collections::BTreeSet;

use super::*;

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

const RANKS: [u64; 11] = [2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 31];

fn of(pattern: Option<Pattern>) -> (u64, Vec<Vec<Message>>) {
    let Some(Pattern::Rounds { parts, rounds }) = pattern else { panic!("rounds") };
    let all = rounds.into_iter().flat_map(|round| std::iter::repeat_n(round.messages, index(round.times)));
    (parts, all.collect())
}

/// Parts that each rank receives.
fn received(rounds: &[Vec<Message>], ranks: u64) -> Vec<u64> {
    let to =
        |rank: u64| rounds.iter().flatten().filter(|message| message.to == rank).map(|message| message.parts).sum();
    (0..ranks).map(to).collect()
}

/// Ranks that hear of a rank when each message tells all that its sender has heard.
fn heard(rounds: &[Vec<Message>], ranks: u64) -> Vec<BTreeSet<u64>> {
    let mut known: Vec<BTreeSet<u64>> = (0..ranks).map(|rank| BTreeSet::from([rank])).collect();
    for round in rounds {
        let before = known.clone();
        for message in round {
            known[index(message.to)].extend(&before[index(message.from)]);
        }
    }
    known
}

#[test]
fn messages_are_between_two_ranks_of_the_communicator() {
    let all: [fn(u64) -> Option<Pattern>; 20] = [
        ring,
        ring_allreduce,
        doubling_allgather,
        bruck_allgather,
        neighbour_allgather,
        doubling_allreduce,
        halving_allreduce,
        halving_reduce,
        halving_reduce_scatter,
        binomial_broadcast_rising,
        binomial_broadcast_falling,
        binomial_reduce,
        binomial_gather,
        binomial_scatter,
        scatter_doubling,
        scatter_ring,
        pairwise,
        bruck_all_to_all,
        direct_all_to_all,
        direct_gather,
    ];
    for (ranks, pattern) in RANKS.iter().flat_map(|&ranks| all.map(|pattern| (ranks, pattern(ranks)))) {
        let Some(Pattern::Rounds { parts, rounds }) = pattern else { continue };
        for message in rounds.iter().flat_map(|round| &round.messages) {
            assert!(message.from < ranks && message.to < ranks && message.from != message.to, "{message:?} of {ranks}");
            assert!((1..=parts).contains(&message.parts), "{message:?} of {parts}");
        }
    }
}

#[test]
fn an_allgather_brings_each_rank_all_parts_of_others_once() {
    for ranks in RANKS {
        for (place, pattern) in
            [ring(ranks), doubling_allgather(ranks), bruck_allgather(ranks), neighbour_allgather(ranks)]
                .into_iter()
                .enumerate()
                .filter(|(_, pattern)| pattern.is_some())
        {
            let (parts, rounds) = of(pattern);
            assert_eq!((parts, received(&rounds, ranks)), (ranks, vec![ranks - 1; index(ranks)]));
            // The last has its rounds out of order.
            let is_heard = heard(&rounds, ranks).iter().all(|known| known.len() as u64 == ranks);
            assert!(is_heard || place == 3, "{ranks}");
        }
    }
}

#[test]
fn an_allreduce_tells_all_of_all() {
    for ranks in RANKS {
        for pattern in [doubling_allreduce(ranks), halving_allreduce(ranks), ring_allreduce(ranks)] {
            let (_, rounds) = of(pattern);
            assert!(heard(&rounds, ranks).iter().all(|known| known.len() as u64 == ranks), "{ranks}");
        }
        if ranks.is_power_of_two() {
            let (parts, rounds) = of(halving_allreduce(ranks));
            assert_eq!(received(&rounds, ranks), vec![2 * (ranks - 1); index(ranks)]);
            assert_eq!(parts, ranks);
        }
    }
}

#[test]
fn broadcasts_and_scatters_come_from_the_root_and_reductions_go_there() {
    for ranks in RANKS {
        let is_told = |pattern| heard(&of(pattern).1, ranks).iter().all(|known| known.contains(&0));
        assert!(is_told(binomial_broadcast_rising(ranks)) && is_told(binomial_broadcast_falling(ranks)));
        assert!(is_told(scatter_ring(ranks)) && is_told(binomial_scatter(ranks)) && is_told(direct_scatter(ranks)));
        let ends = |pattern| heard(&of(pattern).1, ranks)[0].len() as u64 == ranks;
        assert!(ends(binomial_reduce(ranks)) && ends(halving_reduce(ranks)));
        assert!(ends(binomial_gather(ranks)) && ends(direct_gather(ranks)));
        let halves = heard(&of(halving_reduce_scatter(ranks)).1, ranks);
        assert!(halves.iter().all(|known| known.len() as u64 == ranks), "{ranks}");
        let (_, gather) = of(binomial_gather(ranks));
        assert_eq!(received(&gather, ranks)[0], ranks - 1);
        let (_, scatter) = of(scatter_ring(ranks));
        let from_root: u64 = scatter[..index(ranks.ilog2().into())].iter().flatten().map(|message| message.parts).sum();
        assert!(from_root >= ranks / 2);
    }
}

#[test]
fn an_all_to_all_brings_each_rank_a_block_of_each() {
    for ranks in RANKS {
        for pattern in [pairwise(ranks), direct_all_to_all(ranks)] {
            let (parts, rounds) = of(pattern);
            let pairs: BTreeSet<(u64, u64)> =
                rounds.iter().flatten().map(|message| (message.from, message.to)).collect();
            assert_eq!((parts, pairs.len() as u64), (ranks, ranks * (ranks - 1)));
        }
        // Each block moves once for every bit of its way.
        let (_, rounds) = of(bruck_all_to_all(ranks));
        let bits: u64 = (0..ranks).map(|way| u64::from(way.count_ones())).sum();
        assert_eq!(received(&rounds, ranks), vec![bits; index(ranks)]);
    }
}

#[test]
fn chains_have_a_hop_between_neighbours() {
    let Some(Pattern::Pipeline { hops: 4, round, segment: 7 }) = chain_broadcast(5, 7) else { panic!("a chain") };
    assert!(round.messages.iter().all(|message| message.to == message.from + 1));
    let Some(Pattern::Pipeline { round, .. }) = chain_reduce(5, 7) else { panic!("a chain") };
    assert_eq!(round.messages.len(), 4);
    assert!(round.messages.iter().all(|message| message.from == message.to + 1));
}
