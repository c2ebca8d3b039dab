//! The options that limit what a plan may be.

use canopy_proto::v1::{self, Fraction, PlanSpec};

use super::{count, count_of_32_bits, part};

/// What the trees of a plan must keep to.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub(crate) struct LimitArgs {
    /// Exact number of trees per root, at the best rate for that number [default: the planner's choice]
    #[arg(long, value_name = "K", value_parser = count_of_32_bits, conflicts_with = "max_chunks")]
    trees: Option<u32>,
    /// Chunks per share of a plan in steps (bfb), exactly [default: the least number with which no other takes less time]
    #[arg(long, value_name = "C", value_parser = count, conflicts_with = "max_chunks")]
    chunks: Option<u64>,
    /// Most chunks per share, one for each tree of a root; the planner takes the best number up to it
    #[arg(long, value_name = "K", value_parser = count)]
    max_chunks: Option<u64>,
    /// Most hops from rank to rank between the root of a tree and any rank, at the best rate found for trees that flat
    #[arg(long, value_name = "D", value_parser = count_of_32_bits)]
    max_depth: Option<u32>,
    /// Part of the best rate to give up for a plan that is found sooner, such as 1% or 1/64
    #[arg(long, value_name = "PART", value_parser = part)]
    tolerance: Option<Fraction>,
    /// Where the random choices of tacos and tacos-published begin [default: 0]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Form of an allreduce by forest: the faster one, a reduce-scatter followed by an allgather, or sums that go up trees
    /// and come down the same ones [default: auto]
    #[arg(long, value_name = "FORM", value_enum)]
    form: Option<FormName>,
    /// Where an allreduce in the form of trees adds up [default: centre]
    #[arg(long, value_name = "WHERE", value_enum)]
    root_policy: Option<RootPolicyName>,
}

/// Forms of an allreduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FormName {
    /// The faster one, two phases where both are alike
    Auto,
    /// A reduce-scatter followed by an allgather
    TwoPhase,
    /// Sums that go up trees and come down the same ones
    Trees,
}

/// Where the trees of an allreduce have their roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RootPolicyName {
    /// Each tree at its own centre, which keeps it low
    Centre,
    /// At all ranks in equal parts
    Spread,
}

impl LimitArgs {
    /// The request with these limits.
    pub(crate) fn on(&self, request: PlanSpec) -> PlanSpec {
        PlanSpec {
            trees_per_root: self.trees,
            chunks: self.chunks,
            max_chunks: self.max_chunks,
            max_depth: self.max_depth,
            tolerance: self.tolerance.clone(),
            seed: self.seed.unwrap_or(0),
            form: match self.form {
                None | Some(FormName::Auto) => v1::AllreduceForm::Unspecified.into(),
                Some(FormName::TwoPhase) => v1::AllreduceForm::TwoPhase.into(),
                Some(FormName::Trees) => v1::AllreduceForm::Trees.into(),
            },
            root_policy: match self.root_policy {
                None => v1::RootPolicy::Unspecified.into(),
                Some(RootPolicyName::Centre) => v1::RootPolicy::Centre.into(),
                Some(RootPolicyName::Spread) => v1::RootPolicy::Spread.into(),
            },
            ..request
        }
    }
}
