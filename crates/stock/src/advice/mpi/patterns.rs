//! What the algorithms of MPI libraries send, in rounds. Root is rank 0.
//!
//! Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH" (2005);
//! where libraries differ in the order of distances, the one is named that does so.

/// A message of some parts of the whole, between positions in a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Message {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) parts: u64,
}

/// Messages that are sent at once, and how often one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) messages: Vec<Message>,
    pub(super) times: u64,
}

/// What an algorithm sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Rounds of messages; the whole has so many parts.
    Rounds { parts: u64, rounds: Vec<Round> },
    /// Segments of the whole follow one another over as many hops, all of which are busy at once.
    Pipeline { hops: u64, round: Round, segment: u64 },
}

fn once(messages: impl IntoIterator<Item = Message>) -> Round {
    Round { messages: messages.into_iter().collect(), times: 1 }
}

fn rounds(parts: u64, rounds: Vec<Round>) -> Option<Pattern> {
    Some(Pattern::Rounds { parts, rounds: rounds.into_iter().filter(|round| !round.messages.is_empty()).collect() })
}

/// 1, 2, 4, … below `end`.
fn powers_below(end: u64) -> impl DoubleEndedIterator<Item = u64> {
    (0..64).map(|power| 1_u64 << power).take_while(move |&power| power < end).collect::<Vec<_>>().into_iter()
}

/// The greatest power of two that is not above.
fn power_of(ranks: u64) -> u64 {
    1 << ranks.max(1).ilog2()
}

/// Each to the next, one part.
fn around(ranks: u64, times: u64) -> Round {
    let message = |from| Message { from, to: (from + 1) % ranks, parts: 1 };
    Round { messages: (0..ranks).map(message).collect(), times }
}

/// Allgather or reduce-scatter around the ring.
pub(super) fn ring(ranks: u64) -> Option<Pattern> {
    rounds(ranks, vec![around(ranks, ranks - 1)])
}

/// Allreduce around the ring.
pub(super) fn ring_allreduce(ranks: u64) -> Option<Pattern> {
    rounds(ranks, vec![around(ranks, 2 * (ranks - 1))])
}

/// Each with the rank at distance 1, 2, 4, …, all that both have. Powers of two only.
pub(super) fn doubling_allgather(ranks: u64) -> Option<Pattern> {
    let round =
        |distance: u64| once((0..ranks).map(move |from| Message { from, to: from ^ distance, parts: distance }));
    if ranks.is_power_of_two() { rounds(ranks, powers_below(ranks).map(round).collect()) } else { None }
}

/// Each to the rank 1, 2, 4, … before it, all that it has.
pub(super) fn bruck_allgather(ranks: u64) -> Option<Pattern> {
    let round = |distance: u64| {
        let parts = distance.min(ranks - distance);
        once((0..ranks).map(move |from| Message { from, to: (from + ranks - distance) % ranks, parts }))
    };
    rounds(ranks, powers_below(ranks).map(round).collect())
}

/// Each with its neighbours in turns; rounds between the same neighbours stand together. Even numbers of ranks only.
pub(super) fn neighbour_allgather(ranks: u64) -> Option<Pattern> {
    if !ranks.is_multiple_of(2) {
        return None;
    }
    let pairs = |offset: u64, parts: u64, times: u64| {
        let message = move |from: u64| {
            let is_first = (from + offset).is_multiple_of(2);
            Message { from, to: if is_first { (from + 1) % ranks } else { (from + ranks - 1) % ranks }, parts }
        };
        Round { messages: (0..ranks).map(message).collect(), times }
    };
    let more = ranks / 2 - 1;
    let all = vec![pairs(0, 1, 1), pairs(1, 2, more.div_ceil(2)), pairs(0, 2, more / 2)];
    rounds(ranks, all.into_iter().filter(|round| round.times > 0).collect())
}

/// Ranks beyond a power of two: one of each of the first pairs gives what it has to the other, which takes part for both.
struct Folded {
    power: u64,
    pairs: u64,
    /// Which of a pair takes part.
    partner: Partner,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Partner {
    Even,
    Odd,
}

impl Folded {
    fn of(ranks: u64, partner: Partner) -> Self {
        let power = power_of(ranks);
        Self { power, pairs: ranks - power, partner }
    }

    /// The rank at a place among those that take part.
    fn rank(&self, place: u64) -> u64 {
        match self.partner {
            _ if place >= self.pairs => place + self.pairs,
            Partner::Even => 2 * place,
            Partner::Odd => 2 * place + 1,
        }
    }

    /// The others give theirs.
    fn before(&self, parts: u64) -> Round {
        let other = |pair: u64| 4 * pair + 1 - self.rank(pair);
        once((0..self.pairs).map(|pair| Message { from: other(pair), to: self.rank(pair), parts }))
    }

    /// They get a result.
    fn after(&self, parts: u64) -> Round {
        let Round { messages, times } = self.before(parts);
        let back = |message: Message| Message { from: message.to, to: message.from, parts };
        Round { messages: messages.into_iter().map(back).collect(), times }
    }

    /// Each with the one at a distance.
    fn exchange(&self, distance: u64, parts: u64) -> Round {
        let message = |place: u64| Message { from: self.rank(place), to: self.rank(place ^ distance), parts };
        once((0..self.power).map(message))
    }
}

/// Allreduce: each with the rank at distance 1, 2, 4, …, the whole.
pub(super) fn doubling_allreduce(ranks: u64) -> Option<Pattern> {
    let folded = Folded::of(ranks, Partner::Odd);
    let mut all = vec![folded.before(1)];
    all.extend(powers_below(folded.power).map(|distance| folded.exchange(distance, 1)));
    all.push(folded.after(1));
    rounds(1, all)
}

/// Allreduce: halves at distance 1, quarters at 2, … are added up, then gathered the same way back.
pub(super) fn halving_allreduce(ranks: u64) -> Option<Pattern> {
    let folded = Folded::of(ranks, Partner::Odd);
    let half = |distance: u64| folded.exchange(distance, folded.power / (2 * distance));
    let mut all = vec![folded.before(folded.power)];
    all.extend(powers_below(folded.power).map(half));
    all.extend(powers_below(folded.power).rev().map(half));
    all.push(folded.after(folded.power));
    rounds(folded.power, all)
}

/// Reduce: halves as above, then parts are gathered at the root.
pub(super) fn halving_reduce(ranks: u64) -> Option<Pattern> {
    let folded = Folded::of(ranks, Partner::Even);
    let mut all = vec![folded.before(folded.power)];
    all.extend(powers_below(folded.power).map(|distance| folded.exchange(distance, folded.power / (2 * distance))));
    for distance in powers_below(folded.power).rev() {
        let parts = folded.power / (2 * distance);
        let giver = |place: u64| Message { from: folded.rank(place + distance), to: folded.rank(place), parts };
        all.push(once((0..distance).map(giver)));
    }
    rounds(folded.power, all)
}

/// Reduce-scatter: halves at half of the ranks' distance, quarters at a quarter, ….
pub(super) fn halving_reduce_scatter(ranks: u64) -> Option<Pattern> {
    let folded = Folded::of(ranks, Partner::Odd);
    let mut all = vec![folded.before(folded.power)];
    all.extend(powers_below(folded.power).rev().map(|distance| folded.exchange(distance, distance)));
    all.push(folded.after(1));
    rounds(folded.power, all)
}

/// Broadcast: ranks that have it give it on to the rank 1, 2, 4, … above (Open MPI).
pub(super) fn binomial_broadcast_rising(ranks: u64) -> Option<Pattern> {
    let round = |distance: u64| {
        let givers = (0..distance).filter(move |from| from + distance < ranks);
        once(givers.map(move |from| Message { from, to: from + distance, parts: 1 }))
    };
    rounds(1, powers_below(ranks).map(round).collect())
}

/// The tree in which a multiple of 2k has a child k above: by rising k, messages from child to parent.
fn towards_root(ranks: u64, parts: impl Fn(u64, u64) -> u64) -> Vec<Round> {
    let round = |distance: u64| {
        let span = usize::try_from(2 * distance).unwrap_or(usize::MAX);
        let givers = (distance..ranks).step_by(span);
        once(givers.map(|from| Message { from, to: from - distance, parts: parts(from, distance) }))
    };
    powers_below(ranks).map(round).collect()
}

/// The same from parent to child, by falling k.
fn from_root(ranks: u64, parts: impl Fn(u64, u64) -> u64) -> Vec<Round> {
    let mut all = towards_root(ranks, parts);
    all.reverse();
    for message in all.iter_mut().flat_map(|round| &mut round.messages) {
        *message = Message { from: message.to, to: message.from, parts: message.parts };
    }
    all
}

/// Ranks of the subtree below one.
fn below(ranks: u64) -> impl Fn(u64, u64) -> u64 {
    move |rank, distance| distance.min(ranks - rank)
}

/// Broadcast: over half of the ranks first, then over a quarter (MPICH).
pub(super) fn binomial_broadcast_falling(ranks: u64) -> Option<Pattern> {
    rounds(1, from_root(ranks, |_, _| 1))
}

/// Reduce towards the root.
pub(super) fn binomial_reduce(ranks: u64) -> Option<Pattern> {
    rounds(1, towards_root(ranks, |_, _| 1))
}

/// Gather: each gives what its subtree has.
pub(super) fn binomial_gather(ranks: u64) -> Option<Pattern> {
    rounds(ranks, towards_root(ranks, below(ranks)))
}

/// Scatter: each gets what its subtree needs.
pub(super) fn binomial_scatter(ranks: u64) -> Option<Pattern> {
    rounds(ranks, from_root(ranks, below(ranks)))
}

/// Broadcast: scatter, then allgather by doubling. Powers of two only.
pub(super) fn scatter_doubling(ranks: u64) -> Option<Pattern> {
    let Pattern::Rounds { rounds: gather, .. } = doubling_allgather(ranks)? else { return None };
    let mut all = from_root(ranks, below(ranks));
    all.extend(gather);
    rounds(ranks, all)
}

/// Broadcast: scatter, then allgather around the ring.
pub(super) fn scatter_ring(ranks: u64) -> Option<Pattern> {
    let mut all = from_root(ranks, below(ranks));
    all.push(around(ranks, ranks - 1));
    rounds(ranks, all)
}

/// Broadcast in segments from each rank to the next.
pub(super) fn chain_broadcast(ranks: u64, segment: u64) -> Option<Pattern> {
    let round = once((1..ranks).map(|to| Message { from: to - 1, to, parts: 1 }));
    Some(Pattern::Pipeline { hops: ranks - 1, round, segment })
}

/// Reduce in segments from each rank to the one before.
pub(super) fn chain_reduce(ranks: u64, segment: u64) -> Option<Pattern> {
    let round = once((1..ranks).map(|from| Message { from, to: from - 1, parts: 1 }));
    Some(Pattern::Pipeline { hops: ranks - 1, round, segment })
}

/// All-to-all or reduce-scatter: each to the rank 1, 2, 3, … after it.
pub(super) fn pairwise(ranks: u64) -> Option<Pattern> {
    let round =
        |distance: u64| once((0..ranks).map(move |from| Message { from, to: (from + distance) % ranks, parts: 1 }));
    rounds(ranks, (1..ranks).map(round).collect())
}

/// All-to-all: each to the rank 1, 2, 4, … after it, all blocks whose way has that bit.
pub(super) fn bruck_all_to_all(ranks: u64) -> Option<Pattern> {
    let round = |distance: u64| {
        let parts = (0..ranks).filter(|way| way & distance != 0).count() as u64;
        once((0..ranks).map(move |from| Message { from, to: (from + distance) % ranks, parts }))
    };
    rounds(ranks, powers_below(ranks).map(round).collect())
}

/// All-to-all: all messages at once.
pub(super) fn direct_all_to_all(ranks: u64) -> Option<Pattern> {
    let of = |from: u64| (0..ranks).filter(move |&to| to != from).map(move |to| Message { from, to, parts: 1 });
    rounds(ranks, vec![once((0..ranks).flat_map(of))])
}

/// Gather: all to the root at once.
pub(super) fn direct_gather(ranks: u64) -> Option<Pattern> {
    rounds(ranks, vec![once((1..ranks).map(|from| Message { from, to: 0, parts: 1 }))])
}

/// Scatter: the root to all at once.
pub(super) fn direct_scatter(ranks: u64) -> Option<Pattern> {
    rounds(ranks, vec![once((1..ranks).map(|to| Message { from: 0, to, parts: 1 }))])
}

#[cfg(test)]
mod tests;
