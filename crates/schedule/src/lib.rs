//! Schedules, and the checker that decides whether they are correct.
//!
//! Contains the shapes that synthesizers produce, the transfer graph that back ends read, bounds with their
//! certificates, and an exact checker that calls no synthesizer. It does not depend on how schedules are found or
//! written.

mod blocks;
mod bound;
mod by_class;
mod certificate;
mod check;
mod collective;
mod compile;
mod fault;
mod footprint;
mod forest;
mod form;
mod joint_bound;
mod judge;
mod length_bound;
mod loads;
mod orbits;
mod partition;
mod path_trees;
mod patterns;
mod relabel;
mod route;
mod schedule;
mod shared_links;
mod shared_time;
mod shares;
mod stages;
mod transfer;
mod weights_error;

pub use blocks::Blocks;
pub use bound::{Bound, Certificate, CutDirection};
pub use by_class::{
    BoxClass, BoxClasses, ByClass, HopGroup, LinkClass, LinkKind, Nic, OrbitClasses, PatchClass, RuleClasses,
    TemplateClass, by_class,
};
pub use certificate::{CertificateError, LpDualSums, certified_bound, lp_dual_sums, sum_parts};
pub use check::{
    CheckError, FlowError, GeneratorFault, InNetwork, LoadError, MeaningError, OrbitsError, PatchFault, PieceFault,
    RouteFault, StagesError, StepCost, StructureError, TemplateFault, TransferFault, TreeFault, Verdict, check,
    check_flow, check_flow_until, check_orbits_until, check_stages_until, check_steps_until, check_until,
    judge_orbits_until, judge_stages_until,
};
pub use collective::{Collective, CollectiveKind, RootError, UnknownCollective};
pub use compile::{CompileError, HopFault, SendFault, TreePlace, compile, compile_until};
pub use fault::PathFault;
pub use footprint::links_used;
pub use forest::{Action, Carrier, Forest, Hop, Phase, Tree, actions_of};
pub use form::{AllreduceForm, FormChoice, FormReason};
pub use joint_bound::{JointBound, JointTask, joint_bound};
pub use judge::{JointCheckError, JointPart, JointVerdict, JudgeError, check_joint, judge_until};
pub use length_bound::length_bound;
pub use loads::{LinkLoads, chunks_of_orbits, chunks_of_stages};
pub use orbits::{ExpansionError, Generator, Motion, Orbits, Patch, Template, Turn};
pub use partition::NamedParts;
pub use path_trees::{PathTrees, PathTreesError};
pub use patterns::{Pattern, Patterns, PatternsError};
pub use relabel::{RelabelError, relabelled, relabelled_certificate};
pub use route::{RouteIndex, RouteInterner, RouteTable};
pub use schedule::{Flow, Pace, Path, Schedule, Send, Shape, Steps};
pub use shared_links::{SharedLink, shared_links};
pub use shared_time::{SharedPart, SharedTimeError, shared_time};
pub use shares::{ChunkLayout, ChunkSize, Shares};
pub use stages::{
    BoxGrid, BoxTree, Exchange, Inside, Move, NOBODY, Piece, Pieces, ProgramError, ProgramPhase, ProgramStep,
    RankProgram, SeatError, Seating, Seats, Stages, TreesError, Way, Ways,
};
pub use transfer::{Batch, Transfer, TransferGraph};
pub use weights_error::SharesError;
