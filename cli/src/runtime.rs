//! Profiles of runtimes, of whatever format they read.

use std::str::FromStr;

use canopy_plan::{ExecutorProfile, Profile, UnknownExecutorProfile};

/// A runtime that a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeProfile {
    /// One that reads MSCCL XML.
    Msccl(Profile),
    /// A version of MSCCL++.
    Executor(ExecutorProfile),
}

impl RuntimeProfile {
    /// Its name in canopy's text.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Msccl(profile) => profile.name(),
            Self::Executor(profile) => profile.name(),
        }
    }

    /// The names of all, in the order documents list them.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        Profile::ALL.into_iter().map(Profile::name).chain(ExecutorProfile::ALL.into_iter().map(ExecutorProfile::name))
    }
}

/// A name that is no profile where one is to be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnknownProfile {
    /// No runtime has this name.
    #[error("`{name}` is not a profile here; use {}", known.join(", "))]
    Unknown { name: String, known: Vec<&'static str> },
    /// Versions of MSCCL++ that no file is made for.
    #[error(transparent)]
    Executor(UnknownExecutorProfile),
}

impl UnknownProfile {
    /// One among some more than those of [`RuntimeProfile`].
    pub(crate) fn among(name: &str, more: &[&'static str]) -> Self {
        let known = RuntimeProfile::names().chain(more.iter().copied()).collect();
        match name.parse::<ExecutorProfile>() {
            Err(error @ UnknownExecutorProfile::OtherSchema { .. }) => Self::Executor(error),
            _ => Self::Unknown { name: name.chars().take(80).collect(), known },
        }
    }
}

impl FromStr for RuntimeProfile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let executor = name.parse().map(Self::Executor).ok();
        executor.or_else(|| name.parse().map(Self::Msccl).ok()).ok_or_else(|| UnknownProfile::among(name, &[]))
    }
}
