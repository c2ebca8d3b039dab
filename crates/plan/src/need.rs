//! How it is known what a plan needs of a runtime.

/// How the need of a plan is known that exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// Every arrangement of the plan's transfers needs at least as much.
    Proven,
    /// Every arrangement that canopy makes needs at least as much: it was counted before any of them was laid out.
    AtLeast,
    /// The best arrangement found needs as much.
    Found,
}

impl Certainty {
    /// Who needs it, before the number; without a rank the whole plan.
    pub(crate) fn needs(self, rank: Option<u32>) -> String {
        let who = rank.map_or("the plan needs".to_owned(), |rank| format!("rank {rank} needs"));
        match self {
            Self::Proven => who,
            Self::AtLeast => format!("{who}, as arranged here, at least"),
            Self::Found => format!("{who}, as arranged here,"),
        }
    }
}
