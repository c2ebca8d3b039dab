//! Properties of a network that are known without building it, and how operators change them.

use canopy_direct::{Construction, Prediction, RuleError, proven_rate};
use canopy_optimize::Fraction;

use crate::finder::histogram::Histogram;

/// Known properties of a regular network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Nodes, ports, and the costs of its schedules.
    pub prediction: Prediction,
    /// The diameter, in links.
    pub diameter: u32,
    /// Sum of the distances of all ordered pairs of nodes.
    pub distance_sum: u64,
    /// Lengths of the shortest cycles through the nodes.
    pub cycles: Histogram,
    /// Links from a node to itself.
    pub loop_count: u64,
    /// The rate of an all-to-all.
    pub all_to_all: AllToAll,
    /// Whether any two nodes have equally many links in both directions.
    pub is_bidirectional: bool,
}

/// The rate of an all-to-all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllToAll {
    /// Rate from every node to every other, in parts of the rate of a link: exact, or an upper bound.
    pub rate: Fraction,
    /// How far it is proven.
    pub proof: RateProof,
}

/// Proof of an all-to-all rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RateProof {
    /// Shortest routes can load all links alike, so that the rate is links ÷ sum of distances.
    LoadedAlike,
    /// Routes of a circulant that use its offsets in the best proportion, which no others exceed.
    Offsets,
    /// The least of the factors' rates in a Cartesian product, which are exact: one dimension is crossed after the other.
    Factors,
    /// Routes that were found for this network alone, and lengths of links that no others can undercut
    /// ([`canopy_direct::proven_rate`]).
    Listed,
    /// A flow in whole chunks, and lengths of links that no flow can undercut: the optimum of a linear program.
    Flow,
    /// The limit that lengths of links prove, links ÷ sum of distances if all are 1; whether routes reach it is not known.
    Bound,
}

impl RateProof {
    /// Whether the rate is exact.
    pub fn is_exact(self) -> bool {
        self != Self::Bound
    }
}

impl AllToAll {
    /// Links that lead somewhere else, divided by the sum of distances: each unit of data takes at least its distance of
    /// them.
    pub(crate) fn by_distances(links: u64, distance_sum: u64, is_met: bool) -> Self {
        let rate = Fraction::new(links.into(), distance_sum.into()).expect("there are at least two nodes");
        Self { rate, proof: if is_met { RateProof::LoadedAlike } else { RateProof::Bound } }
    }

    /// What is listed of this construction instead, if anything is.
    pub(crate) fn or_listed(self, construction: &Construction) -> Self {
        proven_rate(construction).map_or(self, |rate| Self { rate, proof: RateProof::Listed })
    }
}

impl Known {
    /// Number of nodes.
    pub fn nodes(&self) -> u64 {
        self.prediction.order
    }

    /// Number of links, with parallel ones and those from a node to itself.
    pub(crate) fn links(&self) -> u64 {
        self.nodes() * u64::from(self.prediction.degree)
    }

    /// The line graph. `returns` are the distances from the heads of its links back to their tails.
    ///
    /// From link e = (a, b) to another link f = (c, d) it is one link more than from b to c.
    pub(crate) fn line(&self, returns: &Histogram) -> Result<Self, RuleError> {
        let prediction = self.prediction.line(1)?;
        let degree = u64::from(self.prediction.degree);
        let to_oneself = self.links() + returns.sum();
        let distance_sum = degree * degree * (self.nodes() * self.nodes() + self.distance_sum) - to_oneself;
        let links = prediction.order * degree - self.loop_count;
        Ok(Self {
            prediction,
            diameter: self.diameter + 1,
            distance_sum,
            cycles: returns.longer_by_one(),
            loop_count: self.loop_count,
            all_to_all: AllToAll::by_distances(links, distance_sum, false),
            is_bidirectional: false,
        })
    }

    /// The degree expansion. Copies of a node are as far from each other as the node is from itself round a cycle.
    pub(crate) fn degree(&self, n: u32) -> Result<Self, RuleError> {
        let prediction = self.prediction.degree(n)?;
        let copies = u64::from(n);
        let distance_sum = copies * copies * self.distance_sum + copies * (copies - 1) * self.cycles.sum();
        // Routes between copies of a node go there and back over every link of it alike.
        let is_met = self.is_bidirectional && self.all_to_all.proof == RateProof::LoadedAlike;
        Ok(Self {
            prediction,
            diameter: self.diameter.max(self.cycles.longest()),
            distance_sum,
            cycles: self.cycles.times(copies),
            loop_count: 0,
            all_to_all: AllToAll::by_distances(copies * copies * self.links(), distance_sum, is_met),
            is_bidirectional: self.is_bidirectional,
        })
    }

    /// The Cartesian power.
    pub(crate) fn power(&self, n: u32) -> Result<Self, RuleError> {
        let prediction = self.prediction.power(n)?;
        let factors = vec![self; n as usize];
        Ok(Self::joined(prediction, &factors))
    }

    /// The Cartesian product of simple networks that are bandwidth-optimal by breadth-first broadcast.
    pub(crate) fn product(factors: &[&Self]) -> Result<Self, RuleError> {
        let predictions: Vec<Prediction> = factors.iter().map(|factor| factor.prediction).collect();
        Ok(Self::joined(Prediction::product(&predictions)?, factors))
    }

    fn joined(prediction: Prediction, factors: &[&Self]) -> Self {
        let nodes = prediction.order;
        let lines = |factor: &Self| nodes / factor.nodes();
        let rates = factors.iter().map(|factor| factor.rate_in_lines(lines(factor)));
        let rate = rates.clone().min().expect("a product has factors");
        let all_alike = factors.iter().all(|factor| factor.all_to_all.proof == RateProof::LoadedAlike);
        let proof = match factors.iter().all(|factor| factor.all_to_all.proof.is_exact()) {
            true if all_alike && rates.clone().all(|other| other == rate) => RateProof::LoadedAlike,
            true => RateProof::Factors,
            false => RateProof::Bound,
        };
        let cycles = factors.iter().map(|factor| factor.cycles.clone());
        Self {
            prediction,
            diameter: factors.iter().map(|factor| factor.diameter).sum(),
            distance_sum: factors.iter().map(|factor| factor.distance_sum * lines(factor) * lines(factor)).sum(),
            cycles: cycles.reduce(|all, one| all.shorter_of_pairs(&one)).expect("a product has factors"),
            loop_count: factors.iter().map(|factor| factor.loop_count * lines(factor)).sum(),
            all_to_all: AllToAll { rate, proof },
            is_bidirectional: factors.iter().all(|factor| factor.is_bidirectional),
        }
    }

    /// The rate among all nodes of a product that has so many copies of this factor: each of its pairs stands for as many.
    pub(crate) fn rate_in_lines(&self, copies: u64) -> Fraction {
        let Fraction { numerator, denominator } = self.all_to_all.rate;
        Fraction::new(numerator, denominator * u128::from(copies)).expect("there is at least one copy")
    }

    /// Whether this is at least as good in steps, in bandwidth of allgather and reduce-scatter, and in the rate of
    /// all-to-all.
    pub fn is_no_worse_than(&self, other: &Self) -> bool {
        let (own, others) = (&self.prediction, &other.prediction);
        own.allgather.cost.is_within(&others.allgather.cost)
            && own.reduce_scatter.cost.is_within(&others.reduce_scatter.cost)
            && self.all_to_all.rate >= other.all_to_all.rate
    }

    /// Whether no operator, and no wish for links both ways, takes the other and not this.
    pub(crate) fn can_stand_for(&self, other: &Self) -> bool {
        (!self.prediction.has_loops || other.prediction.has_loops)
            && (self.is_bidirectional || !other.is_bidirectional)
            && (self.prediction.is_reverse_symmetric || !other.prediction.is_reverse_symmetric)
    }
}
