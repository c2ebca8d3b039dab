//! Runtimes that plans are for, and the files that they read.

use std::path::Path;
use std::str::FromStr;

use canopy_plan::{ExecutorProfile, Format, Instances, Target, TargetOptions, UnknownExecutorProfile};
use canopy_proto::v1;
use canopy_wire::format_of_wire;

use crate::exit::Failure;
use crate::table::joined;

/// The name of a format on the wire.
pub(crate) fn format_name(format: v1::OutputFormat) -> &'static str {
    format_of_wire(format.into()).map_or("unknown", Format::name)
}

/// What help says of an option that names a format.
pub(crate) fn format_help() -> String {
    let names = Format::ALL.map(Format::name);
    format!("Format of the file: {}", joined(&names, "or"))
}

/// The same where the format need not be named.
pub(crate) fn optional_format_help() -> String {
    format!("{} [default: what --profile reads, or msccl-xml for FILE.xml, else json]", format_help())
}

/// The format of a file: the one that is named, else what the runtime reads, else what the name of the file says.
pub(crate) fn format_of(format: Option<Format>, runtime: Option<RuntimeProfile>, file: Option<&Path>) -> Format {
    let is_xml = || file?.extension().filter(|ending| ending.eq_ignore_ascii_case("xml")).map(|_| Format::MscclXml);
    format.or_else(|| runtime?.format()).or_else(is_xml).unwrap_or(Format::Json)
}

/// What help says of an option that names a runtime which a file is made for.
pub(crate) fn runtime_help() -> String {
    let names: Vec<&str> = targets().map(|target| target.profile).collect();
    format!("Runtime the new file is for: {}", joined(&names, "or"))
}

/// A runtime that a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeProfile {
    /// One that reads files.
    Reads(Target),
    /// Stock NCCL, which has no use for any file.
    Nccl,
}

impl RuntimeProfile {
    /// The runtime that files of a format are for where none is named; none for canopy's own format.
    pub(crate) fn usual(format: Format) -> Option<Self> {
        Some(format.usual()).filter(|target| !target.profile.is_empty()).map(Self::Reads)
    }

    /// Its name in canopy's text.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reads(target) => target.profile,
            Self::Nccl => "nccl",
        }
    }

    /// What files for it are for, if it reads any.
    pub(crate) const fn target(self) -> Option<Target> {
        match self {
            Self::Reads(target) => Some(target),
            Self::Nccl => None,
        }
    }

    /// The format it reads, if it reads any.
    pub(crate) fn format(self) -> Option<Format> {
        self.target().map(|target| target.format)
    }

    /// Whether a module beside a plan registers it with the runtime.
    pub(crate) fn is_registered(self) -> bool {
        self.target().is_some_and(Target::is_registered)
    }
}

impl FromStr for RuntimeProfile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let every = || targets().map(Self::Reads).chain([Self::Nccl]);
        let found = every().find(|profile| profile.name() == name);
        found.ok_or_else(|| UnknownProfile::among(name, every().map(Self::name).collect()))
    }
}

/// What files of any format are for, one for each runtime.
fn targets() -> impl Iterator<Item = Target> {
    let of = |format: Format| format.profiles().into_iter().map(move |profile| Target { profile, ..format.usual() });
    Format::ALL.into_iter().flat_map(of)
}

/// A profile of a format that several runtimes read, each in its own way.
///
/// # Errors
/// The name is none of theirs.
pub(crate) fn profile_of_several(name: &str) -> Result<Target, UnknownProfile> {
    let several = || targets().filter(|target| target.format.profiles().len() > 1);
    let found = several().find(|target| target.profile == name);
    found.ok_or_else(|| UnknownProfile::among(name, several().map(|target| target.profile).collect()))
}

/// A name that is no profile where one is to be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnknownProfile {
    /// No runtime has this name.
    #[error("unknown profile `{name}`; use {}", known.join(", "))]
    Unknown { name: String, known: Vec<&'static str> },
    /// Versions of MSCCL++ that no file is made for.
    #[error(transparent)]
    Executor(UnknownExecutorProfile),
}

impl UnknownProfile {
    fn among(name: &str, known: Vec<&'static str>) -> Self {
        match name.parse::<ExecutorProfile>() {
            Err(error @ UnknownExecutorProfile::OtherSchema { .. }) => Self::Executor(error),
            _ => Self::Unknown { name: name.chars().take(80).collect(), known },
        }
    }
}

/// Name of the profile as it is asked for; empty for canopy's own format.
///
/// # Errors
/// The format is not one of the runtime's, or has nothing like instances.
pub(crate) fn profile_name(
    format: Format,
    runtime: Option<RuntimeProfile>,
    instances: Option<Instances>,
) -> Result<String, Failure> {
    let refused = |what: &str, help: &str| Err(Failure::input(what).help(help));
    let instances = instances.map(Into::into);
    if instances.is_some() && format.target(&TargetOptions { instances, ..TargetOptions::default() }).is_err() {
        return refused(
            &format!("--instances is for msccl-xml, and {format} has nothing like them"),
            "leave --instances out, or add `--format msccl-xml`",
        );
    }
    let Some(runtime) = runtime.or(RuntimeProfile::usual(format)) else { return Ok(String::new()) };
    match runtime.format() {
        _ if format == Format::Json => refused(
            "--profile is for formats of runtimes, and json is canopy's own",
            "leave --profile out, or add the format that the runtime reads, such as `--format msccl-xml`",
        ),
        Some(own) if own == format => Ok(runtime.name().to_owned()),
        Some(own) => refused(
            &format!("{} reads {own}, not {format}", runtime.name()),
            &format!("add `--format {own}`, or name another profile"),
        ),
        None => {
            refused(&format!("{} reads no {format}", runtime.name()), "name the profile of a runtime that runs plans")
        }
    }
}
