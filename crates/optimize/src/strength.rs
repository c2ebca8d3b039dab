//! The weakest partition of the terminals, which limits the rate of an allreduce.

mod division;
mod orientation;

use crate::digraph::{Digraph, MergedGraph};
use crate::error::OptimumError;
use crate::flow::{FlowNetwork, FlowUnit};
use crate::fraction::Fraction;
use crate::stop::{Meter, Stop, Stopped};

pub use division::{Division, divided, halved};
pub use orientation::{Orientation, OrientedPair, orientation};

/// The optimum of [`strength`] with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strength {
    /// `min ½·Σλ(V_i)/(p−1)`, in units of capacity.
    pub rate: Fraction,
    /// A partition V_1 … V_p of the terminals that attains it, p ≥ 2: terminals in increasing order, parts by their
    /// first terminal.
    pub parts: Vec<Vec<u32>>,
}

/// Strength of a network between its terminals: the minimum of `½·Σ_i λ(V_i)/(p−1)` over the partitions
/// `V_1 … V_p` of the terminals, `p ≥ 2`, where `λ(X)` is the least capacity that separates `X` from the other
/// terminals, a link between `u` and `v` counting `½·(b_uv + b_vu)` in either direction.
///
/// Without nodes that are no terminals this is the strength of the undirected graph: the total weight of spanning
/// trees that can be packed (Tutte, Nash-Williams). The method: assume a rate L and look for values `y_v` with
/// `y(X) ≤ ½λ(X) − L` for every set X of terminals, as large as possible in sum. Values are raised one terminal at a
/// time, by a flow into it that leaves the others what they have; where a terminal can have no more, equality holds
/// for some set around it. Such sets that meet have a union of this kind (submodularity), and where the sum stays
/// below `−L` the maximal ones form the partition that is violated most: its ratio is the next L (Newton).
///
/// * **Source.** Edmonds 1970 and Lovász 1977 for the greedy choice (*Dilworth truncation*); Cunningham 1985 for
///   strength by flows. To start from equal values instead of none is our own: hardly any is raised again.
/// * **In.** Any directed capacities, taken as undirected as said; `terminals` per node.
/// * **Out.** Exact; zero, with parts that nothing joins, where the terminals are not all connected.
/// * **Errors.** [`OptimumError`]: fewer than two terminals are *nothing to move*; malformed, too large, stopped.
/// * **Cost.** One to two flows per terminal and round, on a network that keeps its flow. 1 to 6 rounds in practice, at
///   most as many as the ratio can fall.
pub fn strength(graph: &Digraph, terminals: &[bool], stop: &dyn Stop) -> Result<Strength, OptimumError> {
    if terminals.len() != graph.node_count as usize {
        return Err(OptimumError::WrongLength { found: terminals.len(), node_count: graph.node_count });
    }
    // In units of half a unit of capacity a link counts b_uv + b_vu.
    let mut meter = Meter::new(stop);
    let doubled = MergedGraph::new(graph, &mut meter)?.undirected();
    let mut order = doubled.breadth_first_order(&mut meter)?;
    order.retain(|&node| terminals[node as usize]);
    if order.len() < 2 {
        return Err(OptimumError::NothingToMove);
    }
    let degrees = doubled.entering_each();
    let degree_sum: u128 = order.iter().map(|&node| degrees[node as usize]).sum();
    let mut parts: Vec<Vec<u32>> = order.iter().map(|&node| vec![node]).collect();
    let mut rate = fraction(degree_sum, 2 * (parts.len() as u128 - 1));
    loop {
        let round = Round { graph: &doubled, degrees: &degrees, order: &order, rate };
        let narrow = round.run::<i64>(stop)?;
        let wide = || round.run::<i128>(stop);
        match if matches!(narrow, Answer::DoesNotFit) { wide()? } else { narrow } {
            Answer::DoesNotFit => return Err(OptimumError::TooLarge { weight: order.len() as u128 }),
            Answer::Feasible => break,
            Answer::Weaker(weaker_rate, weaker_parts) => {
                assert!(weaker_rate < rate, "a violated partition has a smaller ratio, so the method ends");
                (rate, parts) = (weaker_rate, weaker_parts);
            }
        }
    }
    for part in &mut parts {
        part.sort_unstable();
    }
    parts.sort_unstable();
    Ok(Strength { rate: fraction(rate.numerator * doubled.unit, 2 * rate.denominator), parts })
}

fn fraction(numerator: u128, denominator: u128) -> Fraction {
    Fraction::new(numerator, denominator).expect("partitions have at least two parts")
}

/// The test of one assumed rate `num/den`, in units of `1/(2·den)`.
struct Round<'a> {
    graph: &'a MergedGraph,
    degrees: &'a [u128],
    order: &'a [u32],
    rate: Fraction,
}

enum Answer {
    /// The numbers do not fit the integers tried.
    DoesNotFit,
    /// Every partition allows the rate.
    Feasible,
    /// This partition allows only this lower rate.
    Weaker(Fraction, Vec<Vec<u32>>),
}

impl Round<'_> {
    fn run<C: FlowUnit>(&self, stop: &dyn Stop) -> Result<Answer, Stopped> {
        let Fraction { numerator, denominator } = self.rate;
        // Flows and sums of y stay below this: |y_v| ≤ degree·den + 2·num, and N·num ≤ den·Σ degrees.
        let largest = self.degrees.iter().sum::<u128>().checked_mul(8 * denominator);
        let numbers_fit = largest.and_then(|sum| sum.checked_add(4 * numerator)).and_then(C::try_from_u128).is_some();
        let network = self.graph.network_without_limits::<C>(denominator, &mut Meter::new(stop))?;
        let Some(network) = network.filter(|_| numbers_fit) else {
            return Ok(Answer::DoesNotFit);
        };
        let mut picking = Picking::new(self, network);
        let targets = self.targets();
        if picking.pick_targets(&targets, stop)? {
            return Ok(Answer::Feasible);
        }
        picking.raise_to_the_limit(stop)?;
        let (separating, parts) = picking.finish();
        if parts.len() == 1 {
            return Ok(Answer::Feasible);
        }
        let rate = fraction(separating / denominator, 2 * (parts.len() as u128 - 1));
        Ok(if rate < self.rate { Answer::Weaker(rate, parts) } else { Answer::Feasible })
    }

    /// Values of `y + 2·num`, in the order of terminals, that add up to what `y(V) = −L` asks for, as equal as the
    /// limit of each terminal alone, its degree, permits. If all are possible, so is the rate; if not, they are a good
    /// start, and from any start values can be raised to the same sum.
    fn targets(&self) -> Vec<u128> {
        let Fraction { numerator, denominator } = self.rate;
        let mut by_degree: Vec<usize> = (0..self.order.len()).collect();
        by_degree.sort_by_key(|&position| self.degrees[self.order[position] as usize]);
        let mut targets = vec![0; self.order.len()];
        let mut left = 2 * numerator * (self.order.len() as u128 - 1);
        for (done, &position) in by_degree.iter().enumerate() {
            let equal_part = left.div_ceil((self.order.len() - done) as u128);
            targets[position] = equal_part.min(self.degrees[self.order[position] as usize] * denominator);
            left -= targets[position];
        }
        targets
    }
}

/// Values `y` in the making, with a flow that proves them.
///
/// The flow keeps `inflow(v) ≥ y_v` at every terminal with a value. What it has beyond that it can pass on, and so is
/// its supply; a terminal without a value passes on as much as anyone wants.
struct Picking<'a, C> {
    round: &'a Round<'a>,
    network: FlowNetwork<C>,
    /// Twice the rate: a value is this much below the greatest inflow.
    twice_rate: C,
    /// `y + 2·num` per node: the inflow the terminal is known to be able to get.
    inflow_sure: Vec<C>,
    parts: Parts,
}

impl<'a, C: FlowUnit> Picking<'a, C> {
    fn new(round: &'a Round<'a>, mut network: FlowNetwork<C>) -> Self {
        for &terminal in round.order {
            network.set_supply(terminal, C::MAX);
        }
        let count = round.graph.node_count;
        let (inflow_sure, parts) = (vec![C::ZERO; count as usize], Parts::new(round.order, count));
        Self { round, network, twice_rate: fit(2 * round.rate.numerator), inflow_sure, parts }
    }

    /// Gives every terminal its target, or as much less as it must be. Says whether all got it.
    fn pick_targets(&mut self, targets: &[u128], stop: &dyn Stop) -> Result<bool, Stopped> {
        let mut all_met = true;
        for (&terminal, &target) in self.round.order.iter().zip(targets) {
            let target = fit(target);
            self.pick(terminal, target, stop)?;
            all_met &= self.inflow_sure[terminal as usize] == target;
        }
        Ok(all_met)
    }

    /// Raises the values that are in no set of equality as far as they can go.
    fn raise_to_the_limit(&mut self, stop: &dyn Stop) -> Result<(), Stopped> {
        for &terminal in self.round.order {
            if !self.parts.is_tight[terminal as usize] {
                self.pick(terminal, C::MAX, stop)?;
            }
        }
        Ok(())
    }

    /// Sets one value so that the inflow it stands for is `target`, or the greatest possible if that is less.
    fn pick(&mut self, terminal: u32, target: C, stop: &dyn Stop) -> Result<(), Stopped> {
        let degree: C = fit(self.round.degrees[terminal as usize] * self.round.rate.denominator);
        let target = target.min(degree);
        self.network.set_supply(terminal, C::ZERO);
        let mut inflow = self.network.net_inflow(terminal, degree);
        if inflow < target {
            let wanted = target - inflow;
            let pulled = self.network.pull(terminal, wanted, stop)?;
            if pulled < wanted {
                self.parts.unite(terminal, self.network.min_cut_sink_nodes());
            }
            inflow += pulled;
            self.network.commit();
        }
        let sure = inflow.min(target);
        if sure == degree {
            self.parts.unite(terminal, &[]);
        }
        self.inflow_sure[terminal as usize] = sure;
        self.network.set_supply(terminal, inflow - sure + self.twice_rate);
        Ok(())
    }

    /// `Σλ(V_i)·den` and the parts V_i, the maximal sets of equality, once every terminal is in one.
    fn finish(self) -> (u128, Vec<Vec<u32>>) {
        // y(V) = Σ(λ(V_i)·den − 2·num): add the rate back, once per part and once per terminal less.
        let parts = self.parts.into_lists(self.round.order);
        let mut separating = self.round.order.iter().fold(C::ZERO, |sum, &node| sum + self.inflow_sure[node as usize]);
        for _ in parts.len()..self.round.order.len() {
            separating -= self.twice_rate;
        }
        (separating.to_u128(), parts)
    }
}

/// A number whose range [`Round::run`] has checked.
fn fit<C: FlowUnit>(value: u128) -> C {
    C::try_from_u128(value).expect("the range is checked before any flow")
}

/// Disjoint sets of terminals in which equality holds.
struct Parts {
    /// A node of the same set, nearer to its head; the head names itself, and so do nodes that are no terminals.
    parent: Vec<u32>,
    is_terminal: Vec<bool>,
    /// Whether the terminal is in a set of equality.
    is_tight: Vec<bool>,
}

impl Parts {
    fn new(terminals: &[u32], node_count: u32) -> Self {
        let mut is_terminal = vec![false; node_count as usize];
        for &terminal in terminals {
            is_terminal[terminal as usize] = true;
        }
        Self { parent: (0..node_count).collect(), is_terminal, is_tight: vec![false; node_count as usize] }
    }

    /// Records that equality holds for `terminal` together with all terminals among `nodes`.
    fn unite(&mut self, terminal: u32, nodes: &[u32]) {
        self.is_tight[terminal as usize] = true;
        for &node in nodes {
            if self.is_terminal[node as usize] {
                self.is_tight[node as usize] = true;
                let (head, other) = (self.head(terminal), self.head(node));
                self.parent[other as usize] = head;
            }
        }
    }

    fn head(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            let above = self.parent[node as usize];
            self.parent[node as usize] = self.parent[above as usize];
            node = above;
        }
        node
    }

    fn into_lists(mut self, terminals: &[u32]) -> Vec<Vec<u32>> {
        let mut position_of = vec![None; self.parent.len()];
        let mut lists: Vec<Vec<u32>> = Vec::new();
        for &terminal in terminals {
            let position = *position_of[self.head(terminal) as usize].get_or_insert(lists.len());
            if position == lists.len() {
                lists.push(Vec::new());
            }
            lists[position].push(terminal);
        }
        lists
    }
}
