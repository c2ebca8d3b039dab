//! What a plan is written for: a format of files, the runtime that reads them, and what is chosen beside.
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

use crate::msccl::{Instances, NoSuchRank, Profile};
use crate::mscclpp::ExecutorProfile;
use crate::proof::Stop;

pub use self::error::{Limit, TargetError, TargetReason, WithFewer, chain};
pub use self::file::{Asked, Layered, Needs, TargetFile, TargetWarning};
pub use self::options::{InstancesAsked, OptionError, OptionField, TargetOptions};
pub use self::stated::Stated;
pub use self::verdict::{Expected, Finding, Verdict};

/// A format of files.
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

/// What a format is called, and who reads it.
struct Facts {
    /// The name in options, on the command line and in text.
    name: &'static str,
    /// One of its files in words, with an article.
    noun: &'static str,
    /// Ending of the names of its files.
    ending: &'static str,
    /// The runtimes that read it, in the order documents list them; none for canopy's own.
    profiles: Vec<&'static str>,
    /// The runtime where none is named; empty for canopy's own format.
    usual_profile: &'static str,
}

/// What each format says of itself.
trait Row: Sync {
    /// Its names.
    fn facts(&self) -> Facts;

    /// The profile that is meant, where nothing else is said that this format does not know.
    fn profile(&self, options: &TargetOptions<'_>) -> Result<&'static str, OptionError>;

    /// Whether files may use what switches can do, and so may be asked not to.
    fn uses_switches(&self) -> bool {
        false
    }

    /// Whether files for a runtime are registered by a module beside them.
    fn is_registered(&self, _profile: &str) -> bool {
        false
    }

    /// What its files are made of.
    fn needs(&self, _target: Target) -> Needs {
        Needs::Transfers
    }

    /// Operations in a file, where the plan has so many hops among so many ranks: what memory it takes is by them.
    fn operations(&self, _target: Target, _hops: u64, _ranks: u64) -> u64 {
        0
    }

    /// Whether bytes that begin like its files are such a file. Asked in the order of [`Format::TOLD_APART`].
    fn is_one(&self, bytes: &[u8]) -> bool;

    /// Makes the text of a file.
    fn draft(&self, target: Target, asked: Asked<'_>) -> Result<Vec<u8>, TargetError>;

    /// Makes a file, which read back must be the very one, be proved right, and run on real bytes where that says more.
    fn write(&self, target: Target, asked: Asked<'_>) -> Result<TargetFile, TargetError>;

    /// Judges a file that comes from elsewhere by what is stated of it; in words, what is wrong.
    fn judge(&self, content: &[u8], stated: &Stated<'_>) -> Result<(), String>;

    /// Derives what a file of a runtime does, and lists all that is wrong with it; none for canopy's own.
    fn verify(&self, _content: &[u8], _profile: Option<&'static str>, _expected: &Expected<'_>) -> Option<Verdict> {
        None
    }

    /// What some ranks need of a file for a runtime; none where its files are whole for all.
    fn slice(&self, _profile: &str, _content: &[u8], _ranks: &BTreeSet<u32>) -> Option<Result<Vec<u8>, SliceError>> {
        None
    }
}

impl Format {
    /// All formats, in the order documents list them.
    pub const ALL: [Self; 5] = [Self::Json, Self::MscclXml, Self::MscclppJson, Self::OnecclXml, Self::RoutesXml];

    /// In the order in which bytes are looked at: what says least of itself comes last of its kind.
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

    /// The runtimes that read it, in the order documents list them; none for canopy's own.
    pub fn profiles(self) -> Vec<&'static str> {
        self.row().facts().profiles
    }

    /// What a file of this format is for where nothing more is said; the profile of canopy's own format is empty.
    pub fn usual(self) -> Target {
        Target {
            format: self,
            profile: self.row().facts().usual_profile,
            instances: Instances::ONE,
            switches: SwitchUse::Offered,
            layers_max: None,
        }
    }

    /// What bytes are meant to be, by their first character, of XML by its first element, of JSON by what it holds; none for
    /// what is neither.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
        let ending = match first {
            b'{' => "json",
            b'<' => "xml",
            _ => return None,
        };
        Self::TOLD_APART.into_iter().find(|format| format.ending() == ending && format.row().is_one(bytes))
    }

    /// Judges a file that comes from elsewhere by what is stated of it: that it can be read, is for what is stated, and is
    /// proven right; it is not run on bytes again. In words, what is wrong.
    ///
    /// O(size of the transfer graph, or of the paths of a flow), some tenth of what making the plan took.
    pub fn judge(self, content: &[u8], stated: &Stated<'_>) -> Result<(), String> {
        self.row().judge(content, stated)
    }

    /// Derives what a file of a runtime does, and lists all that is wrong with it; none for canopy's own, whose statements
    /// only a search can confirm.
    pub fn verify(self, content: &[u8], profile: Option<&'static str>, expected: &Expected<'_>) -> Option<Verdict> {
        self.row().verify(content, profile, expected)
    }

    /// What some ranks need of a file for a runtime, which must be one that was written here; none where its files are
    /// whole for all.
    pub fn slice(self, profile: &str, content: &[u8], ranks: &BTreeSet<u32>) -> Option<Result<Vec<u8>, SliceError>> {
        self.row().slice(profile, content, ranks)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a format; use one of {}", Format::ALL.map(Format::name).join(", "))]
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

/// Why a file cannot be cut by rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// The file is none that was written here.
    #[error("{0}")]
    Unreadable(String),
    /// A rank is asked for that the file does not have.
    #[error(transparent)]
    NoSuchRank(#[from] NoSuchRank),
}

/// Whether a file uses what the network's switches can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwitchUse {
    /// Whatever they say that they can.
    Offered,
    /// Nothing.
    None,
}

/// What a file is for: made by [`Format::usual`], with some of it replaced where that format knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// How it is written.
    pub format: Format,
    /// The name of the runtime that reads it; empty for canopy's own format.
    pub profile: &'static str,
    /// Instances of the plan in it.
    pub instances: Instances,
    /// Whether it uses what switches can do.
    pub switches: SwitchUse,
    /// Most layers of its routes; none: as many as they need.
    pub layers_max: Option<NonZeroU32>,
}

impl Target {
    /// Whether a module beside its files registers them with the runtime.
    pub fn is_registered(self) -> bool {
        self.format.row().is_registered(self.profile)
    }

    /// What its files are made of.
    pub fn needs(self) -> Needs {
        self.format.row().needs(self)
    }

    /// Operations in a file, where the plan has so many hops among so many ranks: what memory it takes is by them.
    pub fn operations(self, hops: u64, ranks: u64) -> u64 {
        self.format.row().operations(self, hops, ranks)
    }

    /// Makes the text of a file, which nobody has judged.
    ///
    /// # Errors
    /// The format or the runtime has no room for the plan, or no word for it.
    pub fn draft(self, asked: Asked<'_>) -> Result<Vec<u8>, TargetError> {
        self.format.row().draft(self, asked)
    }

    /// Makes a file. Read back it must be the very plan or program, be proven right, and run on real bytes.
    ///
    /// # Errors
    /// As for [`draft`](Self::draft); it is too large to be run, or not right, which is a fault of canopy's own.
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

/// The name of the runtime, or of the format where it is canopy's own.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.profile.is_empty() { self.format.name() } else { self.profile })
    }
}

#[cfg(test)]
mod tests;
