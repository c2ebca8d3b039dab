//! The rules of each runtime as a table: how files are found, in which order, and when one matches a call.
//!
//! Numbers and spellings of MSCCL runtimes come from the profiles of `canopy-plan`; what only matters when several files
//! lie side by side stands here. Sources: microsoft/msccl `b23e9cd`, Azure/msccl-executor-nccl `c6f6b36`, ROCm/rccl
//! `0cbce2a` (`msccl_lifecycle.cc`), microsoft/mscclpp `1f5f065` (`execution_plan.cc`; the NCCL shim of 0.8).

use std::fmt;
use std::str::FromStr;

use canopy_plan::{
    ByteRange as SizeRule, ExecutorProfile, PlacementRule, Profile, SelectionOrder, UnknownExecutorProfile,
};
use canopy_schedule::CollectiveKind;

use crate::operator::Operator;

/// A runtime that a bundle may be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Runtime {
    /// microsoft/msccl.
    Msccl,
    /// Azure/msccl-executor-nccl.
    MscclExecutor,
    /// RCCL up to 2.27.7.
    RcclMsccl,
    /// MSCCL++ 0.8, by its NCCL shim.
    Mscclpp08,
    /// MSCCL++ 0.9, by the selector of a loader module.
    Mscclpp09,
    /// MSCCL++ from 0.10 on, by the selector of a loader module.
    Mscclpp10,
    /// The interpreter of oneCCL XML.
    OneCcl,
    /// Stock NCCL, and RCCL from 2.28.3 on, which cannot load external plans.
    Nccl,
}

impl Runtime {
    /// All of them, in the order documents list them.
    pub const ALL: [Self; 8] = [
        Self::Msccl,
        Self::MscclExecutor,
        Self::RcclMsccl,
        Self::Mscclpp08,
        Self::Mscclpp09,
        Self::Mscclpp10,
        Self::OneCcl,
        Self::Nccl,
    ];

    /// The name used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Msccl => "msccl",
            Self::MscclExecutor => "msccl-executor",
            Self::RcclMsccl => "rccl-msccl",
            Self::Mscclpp08 => ExecutorProfile::V08.name(),
            Self::Mscclpp09 => ExecutorProfile::V09.name(),
            Self::Mscclpp10 => ExecutorProfile::V10.name(),
            Self::OneCcl => "oneccl",
            Self::Nccl => "nccl",
        }
    }

    /// The profile of its files, where they are MSCCL XML.
    pub const fn msccl_profile(self) -> Option<Profile> {
        match self {
            Self::Msccl => Some(Profile::Msccl),
            Self::MscclExecutor => Some(Profile::MscclExecutor),
            Self::RcclMsccl => Some(Profile::RcclMsccl),
            Self::Mscclpp08 | Self::Mscclpp09 | Self::Mscclpp10 | Self::OneCcl | Self::Nccl => None,
        }
    }

    /// The profile of its files, where they are execution plans of MSCCL++.
    pub const fn executor_profile(self) -> Option<ExecutorProfile> {
        match self {
            Self::Mscclpp08 => Some(ExecutorProfile::V08),
            Self::Mscclpp09 => Some(ExecutorProfile::V09),
            Self::Mscclpp10 => Some(ExecutorProfile::V10),
            Self::Msccl | Self::MscclExecutor | Self::RcclMsccl | Self::OneCcl | Self::Nccl => None,
        }
    }

    /// Whether its files are registered by a module that goes by the manifest of their bundle.
    pub const fn is_registered(self) -> bool {
        matches!(self.executor_profile(), Some(profile) if profile.is_registered())
    }

    /// Whether files for it can say that they are for a collective. Execution plans have no word for those with a root,
    /// and where nobody registers them with one, the runtime goes by their word.
    pub const fn names(self, collective: CollectiveKind) -> bool {
        !(matches!(self, Self::Mscclpp08) && collective.has_root())
    }

    /// How it picks files; `None` where it runs none.
    pub fn rules(self) -> Option<Rules> {
        if let Some(profile) = self.msccl_profile() {
            return Some(Rules::of_msccl(profile));
        }
        let rules = match self {
            Self::Mscclpp08 => Rules {
                files_max: usize::MAX,
                order: SelectionOrder::Directory,
                others: OtherFiles::Fatal,
                maximum: Maximum::Exclusive,
                maximum_default: None,
                placement: PlacementRule::InPlaceEquals,
                required: &[],
                // The shim does not look at the number of ranks (microsoft/mscclpp#556).
                tells_ranks: false,
                tells_ranks_per_node: false,
                tells_devices: false,
                // The loader divides when the plan has been chosen.
                indivisible: Indivisible::Fails,
                operators: &[Operator::Sum],
            },
            Self::Mscclpp09 | Self::Mscclpp10 => Rules {
                files_max: usize::MAX,
                order: SelectionOrder::Listed,
                others: OtherFiles::Ignored,
                maximum: Maximum::Inclusive,
                maximum_default: None,
                placement: PlacementRule::InPlaceEquals,
                required: &[],
                tells_ranks: true,
                tells_ranks_per_node: true,
                tells_devices: false,
                // A selector passes over what the loader would refuse.
                indivisible: Indivisible::PassedOver,
                operators: &[Operator::Sum],
            },
            Self::OneCcl => Rules {
                files_max: usize::MAX,
                order: SelectionOrder::Sorted,
                others: OtherFiles::Ignored,
                maximum: Maximum::InclusiveOrNone,
                maximum_default: Some(0),
                placement: PlacementRule::InPlaceEquals,
                required: &[],
                tells_ranks: true,
                tells_ranks_per_node: false,
                // Its executors compare what a file states with the devices of their ranks.
                tells_devices: true,
                // Chunks need not be of one size.
                indivisible: Indivisible::Allowed,
                operators: &[Operator::Sum, Operator::Product, Operator::Min, Operator::Max],
            },
            Self::Msccl | Self::MscclExecutor | Self::RcclMsccl | Self::Nccl => return None,
        };
        Some(rules)
    }

    /// What has to be in the environment of a process for it to find these files, whose paths are relative to the folder
    /// of the bundle. `{dir}` in a value stands for that folder, which only its user knows.
    pub fn variables(self, paths: &[String]) -> Vec<Variable> {
        let variable = |name, value: &str, purpose| Variable { name, value: value.to_owned(), purpose };
        match self {
            Self::Msccl => {
                let value = paths.iter().map(|path| format!("{{dir}}/{path}")).collect::<Vec<_>>().join(":");
                vec![variable("MSCCL_XML_FILES", &value, "the plan files, each read when a communicator is created")]
            }
            Self::MscclExecutor => vec![
                variable("NCCL_MSCCL_ENABLE", "1", "turns custom plans on"),
                variable("MSCCL_ALGO_DIR", "{dir}/plans", "the plan folder, read once when a process starts"),
            ],
            Self::RcclMsccl => vec![
                variable("RCCL_MSCCL_ENABLE", "1", "turns custom plans on"),
                variable("RCCL_MSCCL_FORCE_ENABLE", "1", "needed across machines, and on machines other than MI300X"),
                variable("MSCCL_ALGO_DIR", "{dir}/plans", "the plan folder, read once when a process starts"),
            ],
            Self::Mscclpp08 => {
                let purpose = "the plan folder; also preload the NCCL shim of MSCCL++ (LD_PRELOAD)";
                vec![variable("MSCCLPP_EXECUTION_PLAN_DIR", "{dir}/plans", purpose)]
            }
            Self::Nccl => {
                let purpose = "advice for the tuner plugin in NCCL_TUNER_PLUGIN; leave NCCL_ALGO unset";
                vec![variable("NCCL_TUNER_CONFIG_FILE", "{dir}/tuner.csv", purpose)]
            }
            // Found by registration, and by the path in a command.
            Self::Mscclpp09 | Self::Mscclpp10 | Self::OneCcl => Vec::new(),
        }
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum UnknownRuntime {
    #[error("unknown bundle profile `{name}`; use {}", Runtime::ALL.map(Runtime::name).join(", "))]
    Unknown { name: String },
    #[error(transparent)]
    Executor(UnknownExecutorProfile),
}

impl FromStr for Runtime {
    type Err = UnknownRuntime;

    fn from_str(name: &str) -> Result<Self, UnknownRuntime> {
        let known = Self::ALL.into_iter().find(|runtime| runtime.name() == name);
        known.ok_or_else(|| match name.parse::<ExecutorProfile>() {
            Err(error @ UnknownExecutorProfile::OtherSchema { .. }) => UnknownRuntime::Executor(error),
            _ => UnknownRuntime::Unknown { name: name.chars().take(80).collect() },
        })
    }
}

/// An environment variable of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its value, with `{dir}` for the folder of the bundle.
    pub value: String,
    /// What it is for.
    pub purpose: &'static str,
}

/// How a runtime picks one of several files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Most files it loads; the rest is as if it were not there.
    pub files_max: usize,
    /// In which order it looks at them.
    pub order: SelectionOrder,
    /// What it makes of other files in their folder.
    pub others: OtherFiles,
    /// What a file's greatest size means.
    pub maximum: Maximum,
    /// Greatest size as a file without one is read; `None`: no bound.
    pub maximum_default: Option<u64>,
    /// How it compares a file with the in-place state of a call.
    pub placement: PlacementRule,
    /// Attributes without which a file makes it fail, whatever is called.
    pub required: &'static [&'static str],
    /// Whether it compares the number of ranks.
    pub tells_ranks: bool,
    /// Whether it compares the number of ranks on a machine.
    pub tells_ranks_per_node: bool,
    /// Whether it compares the devices of the ranks with those that a file states.
    pub tells_devices: bool,
    /// How the runtime treats messages that the plan does not divide.
    pub indivisible: Indivisible,
    /// Reductions it runs by a plan.
    pub operators: &'static [Operator],
}

impl Rules {
    fn of_msccl(profile: Profile) -> Self {
        let limits = profile.limits();
        let (maximum, maximum_default) = match limits.byte_range {
            SizeRule::Exclusive { default } => (Maximum::Exclusive, Some(default)),
            SizeRule::Inclusive => (Maximum::InclusiveOrNone, None),
        };
        // Who reads a whole folder reads all of it at once, and fails with any file that it cannot read.
        let (others, required) = match limits.selection.order {
            SelectionOrder::Listed => (OtherFiles::Ignored, [].as_slice()),
            SelectionOrder::Sorted | SelectionOrder::Directory => (OtherFiles::Fatal, limits.required),
        };
        Self {
            files_max: limits.selection.files_max,
            order: limits.selection.order,
            others,
            maximum,
            maximum_default,
            placement: limits.placement,
            required,
            tells_ranks: true,
            tells_ranks_per_node: false,
            tells_devices: false,
            indivisible: Indivisible::PassedOver,
            operators: &[Operator::Sum, Operator::Product, Operator::Min, Operator::Max],
        }
    }

    /// The greatest size that a file with this attribute is used for, in bytes; `None`: no bound. `Some(0)` where it is
    /// used for none.
    pub fn largest(&self, attribute: Option<u64>) -> Option<u64> {
        let attribute = attribute.or(self.maximum_default)?;
        match self.maximum {
            Maximum::Exclusive => Some(attribute.saturating_sub(1)),
            Maximum::Inclusive => Some(attribute),
            Maximum::InclusiveOrNone => (attribute > 0).then_some(attribute),
        }
    }
}

/// What a runtime makes of files in the folder that are no plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OtherFiles {
    /// It does not look at them.
    Ignored,
    /// It reads them, and fails.
    Fatal,
}

/// What a file's greatest size means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Maximum {
    /// The first size that is too large.
    Exclusive,
    /// The greatest size.
    Inclusive,
    /// The largest size; 0 means no limit.
    InclusiveOrNone,
}

/// How a runtime treats a message that cannot be divided into the chunks of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Indivisible {
    /// The plan is passed over.
    PassedOver,
    /// The plan is chosen, and the call fails.
    Fails,
    /// The plan takes any.
    Allowed,
}
