//! How a problem is solved, and what is found.

use num_rational::BigRational;

use crate::groups::commodity::Unit;
use crate::groups::symmetry::Symmetry;

/// How a problem is solved.
#[derive(Clone, Copy, Debug)]
pub struct GroupOptions {
    /// Whether symmetries of the network that keep the groups are looked for.
    pub uses_symmetry: bool,
    /// Rounds of column generation at most.
    pub rounds_max: u32,
}

impl GroupOptions {
    /// What suits most problems.
    pub const STANDARD: Self = Self { uses_symmetry: true, rounds_max: 400 };
}

/// The best that all groups reach at once.
#[derive(Clone, Debug)]
pub struct GroupOptimum {
    /// λ: the algbw of each group is this times its size; in units of capacity for each unit of size.
    pub rate: BigRational,
    /// What λ cannot exceed, by `lengths`; the same as `rate` where the optimum is proven.
    pub bound: BigRational,
    /// By arc of the problem, a length: with them, `bound` is Σ capacity · length ÷ Σ size · cheapest unit.
    pub lengths: Vec<u128>,
    /// The units of one commodity of each class, and how many bytes of them are sent for one byte of each size.
    pub parts: Vec<GroupPart>,
    /// Rows and commodities of the program after symmetries.
    pub classes: (usize, usize),
    /// Rounds of column generation.
    pub rounds: u32,
    /// Those that parts stand for others by.
    pub(crate) symmetry: Symmetry,
}

/// Units of a group, and for all groups that symmetries make of it.
#[derive(Clone, Debug)]
pub struct GroupPart {
    /// The group.
    pub group: usize,
    /// The root's position, for kinds where each member has trees of its own.
    pub root: Option<u32>,
    /// What is sent, by all commodities of the class together. Where all links carry as much both ways and every group
    /// does an allreduce or an all-to-all, loads are right for the two directions of a link together: half of each way
    /// of an all-to-all is meant backwards, over the arcs of the opposite direction.
    pub units: Vec<(Unit, BigRational)>,
}

/// The rates of all groups, where none can rise unless one that is no faster falls.
#[derive(Clone, Debug)]
pub struct GroupLevels {
    /// The proven levels, slowest first; two of them may have the same rate.
    pub levels: Vec<GroupLevel>,
    /// What is known of groups that are neither frozen nor in a level: their rate, and what they cannot all exceed.
    /// `None` if there are none, or nothing is proven of them.
    pub open: Option<GroupLevel>,
    /// By group, its level; `None` for frozen groups, and for those that are in none.
    pub level_of: Vec<Option<usize>>,
    /// By group, its algbw in units of capacity.
    pub rates: Vec<BigRational>,
    /// The units of one commodity of each class, and what is sent of each in units of capacity, by all commodities of
    /// the class together. Together they fit the links, as those of [`GroupOptimum`] do.
    pub parts: Vec<GroupPart>,
    /// Rows and commodities of the program after symmetries.
    pub classes: (usize, usize),
    /// Rounds of column generation, of all levels.
    pub rounds: u32,
    /// Those that parts stand for others by.
    pub(crate) symmetry: Symmetry,
}

/// Groups that reach the same rate for their sizes, and none can reach more beside slower ones.
#[derive(Clone, Debug)]
pub struct GroupLevel {
    /// λ: the algbw of each of its groups is this times its size.
    pub rate: BigRational,
    /// What λ cannot exceed, by `lengths`; the same as `rate` where it is proven.
    pub bound: BigRational,
    /// By arc of the problem, a length: with them, `bound` is (Σ capacity · length − Σ rate · cheapest unit) ÷ Σ size ·
    /// cheapest unit. The second sum is over frozen groups and those of levels before, the third over all others.
    pub lengths: Vec<u128>,
    /// The groups, rising.
    pub groups: Vec<usize>,
}
