//! The toolbox: commands beside planning and its proofs, each with libraries that nothing else needs. `canopy` has them only
//! where it is built with them; else it hands them over to `canopy-tools`.

mod advise;
mod bench;
mod calibrate;
mod doctor;
mod export;
mod find;
mod lab;
mod order;
mod path;
mod run;
mod top;

use clap::Subcommand;

use super::plan;
use crate::exit::Failure;
use crate::running::interruptible;

/// The toolbox beside plans and servers: emulate, run, measure, diagnose, look for networks and orders of ranks
#[derive(Debug, Subcommand)]
pub(super) enum Tool {
    PlanJob(plan::job::PlanJobArgs),
    PlanMoving(plan::moving::PlanMovingArgs),
    Find(find::FindArgs),
    Path(path::PathArgs),
    Order(order::OrderArgs),
    Advise(advise::AdviseArgs),
    Calibrate(calibrate::CalibrateArgs),
    Export(export::ExportArgs),
    Run(run::RunArgs),
    Lab(lab::LabArgs),
    Doctor(doctor::DoctorArgs),
    Top(top::TopArgs),
    Bench(bench::BenchArgs),
    #[command(hide = true)]
    RunRank(run::rank::RankArgs),
    #[command(hide = true)]
    RunHost(run::host::HostArgs),
    #[command(hide = true)]
    LabInside(lab::inside::InsideArgs),
    #[command(hide = true)]
    LabRank(lab::rank::RankArgs),
}

impl Tool {
    /// Runs the command to its end, or until the user interrupts it.
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Self::PlanJob(args) => interruptible(plan::job::run(args)),
            Self::PlanMoving(args) => interruptible(plan::moving::run(args)),
            Self::Find(args) => interruptible(find::run(args)),
            Self::Path(args) => interruptible(path::run(args)),
            Self::Order(args) => interruptible(order::run(args)),
            Self::Advise(args) => interruptible(advise::run(args)),
            Self::Calibrate(args) => interruptible(calibrate::run(args)),
            Self::Export(args) => interruptible(export::run(args)),
            Self::Run(args) => interruptible(run::run(args)),
            Self::Lab(args) => interruptible(lab::run(args)),
            Self::Doctor(args) => interruptible(doctor::run(args)),
            Self::Top(args) => interruptible(top::run(args)),
            Self::Bench(args) => interruptible(bench::run(args)),
            // These end with the command that started them.
            Self::RunRank(args) => run::rank::run(&args),
            Self::RunHost(args) => run::host::run(&args),
            Self::LabInside(args) => lab::inside::run(&args),
            Self::LabRank(args) => lab::rank::run(&args),
        }
    }
}
