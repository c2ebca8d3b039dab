//! Where in a program something was found.

use std::fmt;

/// The verdict on a program.
pub type Proof = crate::proof::Proof<Place>;

/// One finding.
pub type Problem = crate::proof::Problem<Place>;

/// Collects findings, check by check.
pub(crate) type Report<'s> = crate::proof::Report<'s, Place>;

/// Findings of one check.
pub(crate) type Findings<'s> = crate::proof::Findings<'s, Place>;

/// A place in a program, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The rank.
    pub rank: Option<u32>,
    /// Position of the step in the rank.
    pub step: Option<u32>,
}

impl Place {
    /// The whole file.
    pub const FILE: Self = Self { rank: None, step: None };

    pub(crate) const fn rank(rank: u32) -> Self {
        Self { rank: Some(rank), step: None }
    }

    pub(crate) const fn step(rank: u32, step: u32) -> Self {
        Self { rank: Some(rank), step: Some(step) }
    }
}

/// `rank 3 step 5`, as far as known; `file` for the whole.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rank) = self.rank else { return f.write_str("file") };
        write!(f, "rank {rank}")?;
        self.step.map_or(Ok(()), |step| write!(f, " step {step}"))
    }
}

impl Findings<'_> {
    /// The program of each rank, in the order of ranks; a rank that lacks one, or has two, is a problem.
    pub(crate) fn by_rank<'p, R>(&mut self, rank_count: u32, programs: &'p [R], rank_of: fn(&R) -> u32) -> Vec<&'p R> {
        let count = rank_count as usize;
        if programs.len() != count {
            self.problem(Place::FILE, format!("nranks is {count} but there are {} <rank>", programs.len()));
            return Vec::new();
        }
        let mut ranks: Vec<Option<&R>> = vec![None; count];
        for program in programs {
            let rank = rank_of(program);
            match ranks.get_mut(rank as usize) {
                None => self.problem(Place::rank(rank), format!("is not one of the ranks 0 to {}", count - 1)),
                Some(Some(_)) => self.problem(Place::rank(rank), "is listed twice; give each rank one <rank>"),
                Some(place) => *place = Some(program),
            }
        }
        ranks.into_iter().flatten().collect()
    }
}
