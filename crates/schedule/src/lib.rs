//! Schedules, and the checker that decides whether they are correct.
//!
//! Contains the shapes that synthesizers produce, the transfer graph that back ends read, bounds with their
//! certificates, and an exact checker that calls no synthesizer. It does not depend on how schedules are found or
//! written.

mod blocks;
mod bound;
mod certificate;
mod check;
mod collective;
mod compile;
mod fault;
mod footprint;
mod form;
mod joint_bound;
mod judge;
mod length_bound;
mod loads;
mod path_trees;
mod patterns;
mod relabel;
mod route;
mod schedule;
mod shared_time;
mod shares;
mod transfer;
mod weights_error;

pub use blocks::Blocks;
pub use bound::{Bound, Certificate, CutDirection};
pub use certificate::{CertificateError, LpDualSums, certified_bound, lp_dual_sums};
pub use check::{
    CheckError, FlowError, InNetwork, LoadError, MeaningError, RouteFault, StepCost, StructureError, TransferFault,
    Verdict, check, check_flow, check_flow_until, check_steps_until, check_until,
};
pub use collective::{Collective, CollectiveKind, RootError, UnknownCollective};
pub use compile::{CompileError, HopFault, SendFault, TreePlace, compile, compile_until};
pub use fault::PathFault;
pub use footprint::links_used;
pub use form::{AllreduceForm, FormChoice, FormReason};
pub use joint_bound::{JointBound, JointTask, joint_bound};
pub use judge::{JointCheckError, JointPart, JointVerdict, JudgeError, check_joint, judge_until};
pub use length_bound::length_bound;
pub use loads::LinkLoads;
pub use path_trees::{PathTrees, PathTreesError};
pub use patterns::{Pattern, Patterns, PatternsError};
pub use relabel::{RelabelError, relabelled, relabelled_certificate};
pub use route::{RouteIndex, RouteInterner, RouteTable};
pub use schedule::{Action, Carrier, Flow, Forest, Hop, Pace, Path, Phase, Schedule, Send, Shape, Steps, Tree};
pub use shared_time::{SharedPart, SharedTimeError, shared_time};
pub use shares::{ChunkLayout, ChunkSize, Shares};
pub use transfer::{Batch, Transfer, TransferGraph};
pub use weights_error::SharesError;
