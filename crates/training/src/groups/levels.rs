//! Rates of groups level by level: the greatest common one first, then that of all groups that can still rise.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One as _, Signed as _, Zero as _};

use crate::groups::found::{GroupLevel, GroupLevels, GroupOptions};
use crate::groups::layout::Layout;
use crate::groups::optimum::symmetry;
use crate::groups::patience::Patience;
use crate::groups::problem::{GroupProblem, GroupsError};
use crate::groups::program::Aim;
use crate::groups::scale::as_float;
use crate::groups::search::{End, Search, Solved};

/// Computes lexicographic max-min rates: the greatest common rate, then the greatest rate of all groups that can be
/// faster, and so on. Groups that are frozen keep their rates.
///
/// * **Source.** By complementary slackness, groups whose cheapest unit costs anything by the lengths of an optimum
///   have its rate in every optimum. They keep it while the others are maximised over the same units.
/// * **In.** `levels_max`: levels at most, at least 1. With 1 and frozen groups, the answer is what the network has
///   left for newcomers.
/// * **Out.** Levels with their proofs, and units that reach all rates at once. If it is stopped, numbers are too
///   long or `levels_max` is reached, groups in no level have the rate of the last one or more.
/// * **Errors.** [`GroupsError::NoWay`], [`GroupsError::AllFrozen`], [`GroupsError::FrozenTooFast`];
///   [`GroupsError::Stopped`] before any rate is found.
/// * **Cost.** For each level as [`crate::groups::group_optimum`], from the basis of the level before. Levels are no more than
///   groups that are like no other.
pub fn group_levels(
    problem: &GroupProblem,
    options: GroupOptions,
    levels_max: usize,
    patience: Patience<'_>,
) -> Result<GroupLevels, GroupsError> {
    if problem.frozen().iter().all(Option::is_some) {
        return Err(GroupsError::AllFrozen);
    }
    let symmetry = symmetry(problem, options, patience);
    let layout = Layout::new(problem, &symmetry, patience.stop)?;
    let mut search = Search::new(&layout, patience)?;
    let mut found = Found::new(&layout);
    if found.frozen.iter().any(Option::is_some) {
        admit(&mut search, &found.frozen, options, patience)?;
    }
    while found.levels.len() < levels_max.max(1) && found.frozen.iter().any(Option::is_none) {
        match search.run(options, patience) {
            Ok(End::Proven(solved)) if solved.value == solved.limit => found.add(search.aim(), solved),
            Err(GroupsError::Stopped) | Ok(_) if !patience.stop.is_requested() => {
                found.open(&search, patience)?;
                break;
            }
            Ok(_) => return Err(GroupsError::Stopped),
            Err(error) => return Err(error),
        }
        let sent: Vec<f64> = found.sent.iter().map(as_float).collect();
        let is_over = found.frozen.iter().all(Option::is_some);
        if !is_over && !search.turn_to_rate(&found.frozen, &sent, as_float(&found.rate), patience.stop)? {
            break;
        }
    }
    Ok(found.finished(&search))
}

/// Finds room for all frozen rates, and turns to the rate of the others.
fn admit(
    search: &mut Search<'_>,
    frozen: &[Option<BigRational>],
    options: GroupOptions,
    patience: Patience<'_>,
) -> Result<(), GroupsError> {
    if !search.turn_to_missing(frozen, patience.stop)? {
        return Err(GroupsError::Stopped);
    }
    match search.run(options, patience)? {
        End::Zero => {}
        End::Proven(Solved { value, .. }) if value.is_zero() => {}
        End::Proven(Solved { value, .. }) => {
            return Err(GroupsError::FrozenTooFast { share: BigRational::one() - value });
        }
        End::Unproven => {
            let missing = search.limit().map(|(limit, _)| limit).filter(BigRational::is_positive);
            return Err(missing.map_or(GroupsError::Stopped, |limit| GroupsError::FrozenTooFast {
                share: BigRational::one() - limit,
            }));
        }
    }
    let sent = search.sent();
    if search.turn_to_rate(frozen, &sent, 0.0, patience.stop)? { Ok(()) } else { Err(GroupsError::Stopped) }
}

/// What is known after some levels.
struct Found<'a> {
    layout: &'a Layout<'a>,
    levels: Vec<GroupLevel>,
    open: Option<GroupLevel>,
    level_of: Vec<Option<usize>>,
    /// By commodity class, what all of it sends, where that is settled.
    frozen: Vec<Option<BigRational>>,
    /// The rate that all others have.
    rate: BigRational,
    /// By unit, what is sent of it.
    sent: Vec<BigRational>,
}

impl<'a> Found<'a> {
    fn new(layout: &'a Layout<'a>) -> Self {
        Self {
            layout,
            levels: Vec::new(),
            open: None,
            level_of: vec![None; layout.like.len()],
            frozen: layout.frozen.clone(),
            rate: BigRational::zero(),
            sent: Vec::new(),
        }
    }

    /// Takes a level up: groups that pay for their units by its lengths are in it.
    fn add(&mut self, aim: Aim, solved: Solved) {
        let layout = self.layout;
        let Solved { value, limit, lengths, costs, weights } = solved;
        let (bound, rate) = (rate(aim, &limit), rate(aim, &value));
        let for_rate = |weight| if aim == Aim::Time { weight * &rate } else { weight };
        self.sent = weights.into_iter().map(for_rate).collect();
        let pays = |commodity: usize| self.frozen[commodity].is_none() && costs[commodity] > 0;
        let mut is_settled = vec![false; self.level_of.len()];
        for (commodity, one) in layout.commodities.iter().enumerate() {
            is_settled[one.group] |= pays(commodity);
        }
        for ((frozen, demand), one) in self.frozen.iter_mut().zip(&layout.demands).zip(&layout.commodities) {
            if frozen.is_none() && is_settled[one.group] {
                *frozen = Some(&rate * demand);
            }
        }
        let groups: Vec<usize> = (0..layout.like.len()).filter(|&group| is_settled[layout.like[group]]).collect();
        groups.iter().for_each(|&group| self.level_of[group] = Some(self.levels.len()));
        self.levels.push(GroupLevel { rate: rate.clone(), bound, lengths: layout.by_arc(&lengths), groups });
        self.rate = rate;
    }

    /// Notes what is known of the level that is not proven, and takes what is sent there, if that is more.
    ///
    /// # Errors
    /// Stopped before anything was known.
    fn open(&mut self, search: &Search<'_>, patience: Patience<'_>) -> Result<(), GroupsError> {
        let aim = search.aim();
        if aim == Aim::Time {
            let solved = search.approximate(patience.stop)?;
            self.rate = rate(aim, &solved.value);
            self.sent = solved.weights.into_iter().map(|weight| weight * &self.rate).collect();
        } else if let Some(vertex) = search.vertex(patience.stop)? {
            let reached = rate(aim, &vertex.value);
            if self.sent.is_empty() || reached > self.rate {
                (self.sent, self.rate) = (vertex.weights, reached);
            }
        }
        if self.sent.is_empty() {
            return Err(GroupsError::Stopped);
        }
        let frozen = self.layout.problem.frozen();
        let is_open = |&group: &usize| self.level_of[group].is_none() && frozen[group].is_none();
        let groups = (0..frozen.len()).filter(is_open).collect();
        self.open = search.limit().map(|(limit, lengths)| GroupLevel {
            rate: self.rate.clone(),
            bound: rate(aim, &limit),
            lengths: self.layout.by_arc(lengths),
            groups,
        });
        Ok(())
    }

    fn finished(self, search: &Search<'_>) -> GroupLevels {
        let Layout { problem, symmetry, .. } = self.layout;
        let rate = |group: usize| {
            let level = self.level_of[group].map_or(&self.rate, |level| &self.levels[level].rate);
            problem.frozen()[group].clone().unwrap_or_else(|| level * BigInt::from(problem.groups()[group].size))
        };
        GroupLevels {
            rates: (0..self.level_of.len()).map(rate).collect(),
            parts: search.parts(&self.sent),
            classes: (self.layout.capacities.len(), self.layout.commodities.len()),
            rounds: search.rounds,
            symmetry: (*symmetry).clone(),
            levels: self.levels,
            open: self.open,
            level_of: self.level_of,
        }
    }
}

/// The common rate, by what is minimised.
fn rate(aim: Aim, value: &BigRational) -> BigRational {
    if aim == Aim::Time { value.recip() } else { -value }
}
