//! Profiles of runtimes, of whatever format they read.

use std::str::FromStr;

use canopy_plan::{ExecutorProfile, Profile, ProfileError};

/// A runtime that a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeProfile {
    /// One that reads MSCCL XML.
    Msccl(Profile),
    /// A version of MSCCL++.
    Executor(ExecutorProfile),
}

impl FromStr for RuntimeProfile {
    type Err = ProfileError;

    fn from_str(name: &str) -> Result<Self, ProfileError> {
        match name.parse() {
            Ok(executor) => Ok(Self::Executor(executor)),
            Err(_) => name.parse().map(Self::Msccl),
        }
    }
}
