//! What a plan is written for: the format of its file and the runtime that reads it.

use std::str::FromStr;

use canopy_plan::{ExecutorProfile, Instances, Profile};
use canopy_proto::v1;

use crate::exit::Failure;
use crate::runtime::{RuntimeProfile, UnknownProfile};

/// Formats a plan can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Format {
    Json,
    MscclXml,
    MscclppJson,
    OnecclXml,
    RoutesXml,
}

impl Format {
    pub(in crate::commands) const ALL: [Self; 5] =
        [Self::Json, Self::MscclXml, Self::MscclppJson, Self::OnecclXml, Self::RoutesXml];

    pub(in crate::commands) const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::MscclXml => "msccl-xml",
            Self::MscclppJson => "mscclpp-json",
            Self::OnecclXml => "oneccl-xml",
            Self::RoutesXml => "routes-xml",
        }
    }

    pub(in crate::commands) const fn on_the_wire(self) -> v1::OutputFormat {
        match self {
            Self::Json => v1::OutputFormat::Json,
            Self::MscclXml => v1::OutputFormat::MscclXml,
            Self::MscclppJson => v1::OutputFormat::MscclppJson,
            Self::OnecclXml => v1::OutputFormat::OnecclXml,
            Self::RoutesXml => v1::OutputFormat::RoutesXml,
        }
    }

    /// The format of that name on the wire, where it is one that is known here.
    pub(in crate::commands) fn of_wire(format: v1::OutputFormat) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.on_the_wire() == format)
    }

    /// The runtime its files are for where none is named; none for canopy's own format.
    pub(in crate::commands) const fn usual(self) -> Option<Target> {
        match self {
            Self::Json => None,
            Self::MscclXml => Some(Target::Runtime(RuntimeProfile::Msccl(Profile::Msccl))),
            Self::MscclppJson => Some(Target::Runtime(RuntimeProfile::Executor(ExecutorProfile::NEWEST))),
            Self::OnecclXml => Some(Target::Oneccl),
            Self::RoutesXml => Some(Target::Routes),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| format!("`{name}` is not a format; use one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// A runtime that a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Target {
    /// One with a profile.
    Runtime(RuntimeProfile),
    /// An interpreter of oneCCL plans.
    Oneccl,
    /// A fabric that forwards by source routing.
    Routes,
    /// Stock NCCL, which has no use for any file.
    Nccl,
}

impl Target {
    pub(in crate::commands) const fn name(self) -> &'static str {
        match self {
            Self::Runtime(profile) => profile.name(),
            Self::Oneccl => "oneccl",
            Self::Routes => "routes",
            Self::Nccl => "nccl",
        }
    }

    /// Whether a module beside a plan registers it with the runtime.
    pub(in crate::commands) const fn is_registered(self) -> bool {
        matches!(self, Self::Runtime(RuntimeProfile::Executor(profile)) if profile.is_registered())
    }

    /// The format it reads, if it reads any.
    pub(in crate::commands) const fn format(self) -> Option<Format> {
        match self {
            Self::Runtime(RuntimeProfile::Msccl(_)) => Some(Format::MscclXml),
            Self::Runtime(RuntimeProfile::Executor(_)) => Some(Format::MscclppJson),
            Self::Oneccl => Some(Format::OnecclXml),
            Self::Routes => Some(Format::RoutesXml),
            Self::Nccl => None,
        }
    }
}

impl FromStr for Target {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let others = [Self::Oneccl, Self::Routes, Self::Nccl];
        let other = others.into_iter().find(|target| target.name() == name);
        let found = other.or_else(|| name.parse().map(Self::Runtime).ok());
        found.ok_or_else(|| UnknownProfile::among(name, &others.map(Self::name)))
    }
}

/// Name of the profile as it is asked for; empty for canopy's own format.
///
/// # Errors
/// The format is not one of the runtime's, or has nothing like instances.
pub(in crate::commands) fn profile_name(
    format: Format,
    target: Option<Target>,
    instances: Option<Instances>,
) -> Result<String, Failure> {
    let refused = |what: &str, help: &str| Err(Failure::input(what).help(help));
    if instances.is_some() && format != Format::MscclXml {
        let name = format.name();
        return refused(
            &format!("--instances is for msccl-xml, and {name} has nothing like them"),
            "leave --instances out, or add `--format msccl-xml`",
        );
    }
    let Some(target) = target.or(format.usual()) else { return Ok(String::new()) };
    match target.format() {
        _ if format == Format::Json => refused(
            "--profile is for formats of runtimes, and json is canopy's own",
            "leave --profile out, or add the format that the runtime reads, such as `--format msccl-xml`",
        ),
        Some(own) if own == format => Ok(target.name().to_owned()),
        Some(own) => refused(
            &format!("{} reads {}, not {}", target.name(), own.name(), format.name()),
            &format!("add `--format {}`, or name another profile", own.name()),
        ),
        None => refused(
            &format!("{} reads no {}", target.name(), format.name()),
            "name the profile of a runtime that runs plans",
        ),
    }
}
