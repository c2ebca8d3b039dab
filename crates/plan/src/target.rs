//! What a plan is written for: a file format, the runtime that reads it, and its options.
//!
//! Each format is a row of one table, from a module of its own: how it is called, which runtimes read it, how its files are
//! made, read back, proved and run, how a file that comes from elsewhere is judged, and what ails it if there is none. Whoever
//! plans, stores, sends, converts or verifies files asks the table and knows none of the formats.

mod error;
mod file;
mod json;
mod msccl;
mod mscclpp;
mod oneccl;
mod options;
mod routes;
mod stated;
mod verdict;

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::cut::SliceError;
use crate::msccl::{Instances, Profile};
use crate::mscclpp::ExecutorProfile;
use crate::proof::Stop;

pub use self::error::{Limit, TargetError, TargetReason, WithFewer, chain};
pub use self::file::{Asked, Layered, Needs, TargetFile, TargetWarning};
pub use self::options::{InstancesAsked, OptionError, OptionField, TargetOptions};
pub use self::stated::Stated;
pub use self::verdict::{Expected, Finding, Verdict};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// canopy's own plan file.
    Json,
    /// MSCCL XML.
    MscclXml,
    /// Execution plans of MSCCL++.
    MscclppJson,
    /// oneCCL plans.
    OnecclXml,
    /// Routes for fabrics that forward by source routing.
    RoutesXml,
}

/// The names of a format and the runtimes that read it.
struct Facts {
    /// The name in options, on the command line and in text.
    name: &'static str,
    /// One of its files in words, with an article.
    noun: &'static str,
    /// Ending of the names of its files.
    ending: &'static str,
    /// The runtimes that read it, in the order of the documentation; empty for canopy's own format.
    profiles: Vec<&'static str>,
    /// The default runtime; empty for canopy's own format.
    usual_profile: &'static str,
}

/// The implementation of a format.
trait Row: Sync {
    /// Its names.
    fn facts(&self) -> Facts;

    /// The profile to use if the options name none and are valid for this format.
    fn profile(&self, options: &TargetOptions<'_>) -> Result<&'static str, OptionError>;

    /// Whether files can use switch channels, and so can be asked not to.
    fn uses_switches(&self) -> bool {
        false
    }

    /// Whether files for a runtime are registered by a module beside them.
    fn is_registered(&self, _profile: &str) -> bool {
        false
    }

    /// Whether files state the devices of the ranks.
    fn states_devices(&self) -> bool {
        false
    }

    /// What its files need beside the plan.
    fn needs(&self, _target: Target) -> Needs {
        Needs::Transfers
    }

    /// Operations in a file of a plan with `hops` hops among `ranks` ranks, which determine its memory.
    fn operations(&self, _target: Target, _hops: u64, _ranks: u64) -> u64 {
        0
    }

    /// Whether bytes that begin like its files are such a file. Asked in the order of [`Format::TOLD_APART`].
    fn is_one(&self, bytes: &[u8]) -> bool;

    /// Makes the text of a file.
    fn draft(&self, target: Target, asked: Asked<'_>) -> Result<Vec<u8>, TargetError>;

    /// Makes a file, reads it back, compares it, proves it right, and runs it on real bytes where that says more.
    fn write(&self, target: Target, asked: Asked<'_>) -> Result<TargetFile, TargetError>;

    /// Judges a file from elsewhere against its stated facts. The error says what is wrong.
    fn judge(&self, content: &[u8], stated: &Stated<'_>) -> Result<(), String>;

    /// Derives what a file for a runtime does and lists all problems; `None` for canopy's own format.
    fn verify(&self, _content: &[u8], _profile: Option<&'static str>, _expected: &Expected<'_>) -> Option<Verdict> {
        None
    }

    /// The part of a file that some ranks need; `None` if all ranks need whole files.
    fn slice(&self, _content: &[u8], _ranks: &BTreeSet<u32>) -> Option<Result<Vec<u8>, SliceError>> {
        None
    }
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: [Self; 5] = [Self::Json, Self::MscclXml, Self::MscclppJson, Self::OnecclXml, Self::RoutesXml];

    /// The order in which formats are detected: within a kind, the least specific format comes last.
    const TOLD_APART: [Self; 5] = [Self::MscclppJson, Self::Json, Self::OnecclXml, Self::RoutesXml, Self::MscclXml];

    fn row(self) -> &'static dyn Row {
        match self {
            Self::Json => &json::Json,
            Self::MscclXml => &msccl::MscclXml,
            Self::MscclppJson => &mscclpp::MscclppJson,
            Self::OnecclXml => &oneccl::OnecclXml,
            Self::RoutesXml => &routes::RoutesXml,
        }
    }

    /// The name in options, on the command line and in text.
    pub fn name(self) -> &'static str {
        self.row().facts().name
    }

    /// One of its files in words, with an article.
    pub fn noun(self) -> &'static str {
        self.row().facts().noun
    }

    /// Ending of the names of its files.
    pub fn ending(self) -> &'static str {
        self.row().facts().ending
    }

    /// The runtimes that read it, in the order of the documentation; empty for canopy's own format.
    pub fn profiles(self) -> Vec<&'static str> {
        self.row().facts().profiles
    }

    /// The default target of this format; the profile of canopy's own format is empty.
    pub fn usual(self) -> Target {
        Target {
            format: self,
            profile: self.row().facts().usual_profile,
            instances: Instances::ONE,
            switches: SwitchUse::Offered,
            layers_max: None,
        }
    }

    /// Detects the format of bytes by their first character, of XML by its first element, of JSON by its members;
    /// `None` if they are neither.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
        let ending = match first {
            b'{' => "json",
            b'<' => "xml",
            _ => return None,
        };
        Self::TOLD_APART.into_iter().find(|format| format.ending() == ending && format.row().is_one(bytes))
    }

    /// Judges a file from elsewhere against its stated facts: that it can be read, matches them, and is
    /// proven right; it is not run on bytes again. The error says what is wrong.
    ///
    /// O(size of the transfer graph, or of the paths of a flow), some tenth of what making the plan took.
    pub fn judge(self, content: &[u8], stated: &Stated<'_>) -> Result<(), String> {
        self.row().judge(content, stated)
    }

    /// Derives what a file for a runtime does and lists all problems; `None` for canopy's own format, whose statements
    /// only a search can confirm.
    pub fn verify(self, content: &[u8], profile: Option<&'static str>, expected: &Expected<'_>) -> Option<Verdict> {
        self.row().verify(content, profile, expected)
    }

    /// The part of a file that some ranks need, and stubs of the others; canopy must have written the file. `None` if all
    /// ranks need whole files. O(bytes), some milliseconds per 10 MB: nothing is parsed.
    pub fn slice(self, content: &[u8], ranks: &BTreeSet<u32>) -> Option<Result<Vec<u8>, SliceError>> {
        self.row().slice(content, ranks)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown name of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{name}`; use one of {}", Format::ALL.map(Format::name).join(", "))]
pub struct UnknownFormat {
    name: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// Whether a file uses the capabilities of the network's switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwitchUse {
    /// Everything that the switches offer.
    Offered,
    /// Nothing.
    None,
}

/// The target of a file: made by [`Format::usual`], then changed by options that the format knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Its format.
    pub format: Format,
    /// The name of the runtime that reads it; empty for canopy's own format.
    pub profile: &'static str,
    /// Instances of the plan in it.
    pub instances: Instances,
    /// Whether it uses the capabilities of switches.
    pub switches: SwitchUse,
    /// Limit on the layers of its routes; `None`: no limit.
    pub layers_max: Option<NonZeroU32>,
}

impl Target {
    /// Whether a module beside its files registers them with the runtime.
    pub fn is_registered(self) -> bool {
        self.format.row().is_registered(self.profile)
    }

    /// Whether its files state the devices of the ranks, if they are given.
    pub fn states_devices(self) -> bool {
        self.format.row().states_devices()
    }

    /// What its files need beside the plan.
    pub fn needs(self) -> Needs {
        self.format.row().needs(self)
    }

    /// Operations in a file of a plan with `hops` hops among `ranks` ranks, which determine its memory.
    pub fn operations(self, hops: u64, ranks: u64) -> u64 {
        self.format.row().operations(self, hops, ranks)
    }

    /// Makes the text of a file without judging it.
    ///
    /// # Errors
    /// The plan exceeds a limit of the format or the runtime, or cannot be expressed.
    pub fn draft(self, asked: Asked<'_>) -> Result<Vec<u8>, TargetError> {
        self.format.row().draft(self, asked)
    }

    /// Makes a file, reads it back, compares it with the plan or program, proves it right, and runs it on real bytes.
    ///
    /// # Errors
    /// As for [`draft`](Self::draft); also if it is too large to run, or not right, which is a fault of canopy.
    pub fn write(self, asked: Asked<'_>) -> Result<TargetFile, TargetError> {
        self.format.row().write(self, asked)
    }
}

impl From<Profile> for Target {
    fn from(profile: Profile) -> Self {
        Self { profile: profile.name(), ..Format::MscclXml.usual() }
    }
}

impl From<ExecutorProfile> for Target {
    fn from(profile: ExecutorProfile) -> Self {
        Self { profile: profile.name(), ..Format::MscclppJson.usual() }
    }
}

/// The name of the runtime, or of the format for canopy's own.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.profile.is_empty() { self.format.name() } else { self.profile })
    }
}

#[cfg(test)]
mod tests;
