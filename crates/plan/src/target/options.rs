//! The options of a file beside its format.

use std::fmt;
use std::num::NonZeroU32;

use super::{Format, Needs, SwitchUse, Target};
use crate::msccl::{Instances, ProfileError};
use crate::mscclpp::UnknownExecutorProfile;

/// The options of a file beside its format, as requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetOptions<'a> {
    /// Name of the runtime; empty: the default.
    pub profile: &'a str,
    /// Instances of the plan; `None` if not stated.
    pub instances: Option<InstancesAsked>,
    /// It must not use what switches can do.
    pub plain_channels: bool,
    /// Limit on the layers of its routes; `None`: no limit.
    pub layers_max: Option<NonZeroU32>,
}

/// The requested number of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstancesAsked {
    /// A number; 0 is rejected.
    Number(u32),
    /// The largest number that fits.
    Automatic,
}

impl InstancesAsked {
    /// How many that are.
    ///
    /// # Errors
    /// None at all.
    fn instances(self) -> Result<Instances, OptionError> {
        match self {
            Self::Number(count) => NonZeroU32::new(count).map(Instances::Exactly).ok_or(OptionError::NoInstances),
            Self::Automatic => Ok(Instances::Auto),
        }
    }
}

impl From<Instances> for InstancesAsked {
    fn from(instances: Instances) -> Self {
        match instances {
            Instances::Exactly(count) => Self::Number(count.get()),
            Instances::Auto => Self::Automatic,
        }
    }
}

impl fmt::Display for InstancesAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(count) => count.fmt(f),
            Self::Automatic => f.write_str("auto"),
        }
    }
}

/// Something that is said of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the fields of the options")]
pub enum OptionField {
    Profile,
    Instances,
    PlainChannels,
    LayersMax,
}

impl OptionField {
    /// Its name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Instances => "instances",
            Self::PlainChannels => "plain_channels",
            Self::LayersMax => "max_layers",
        }
    }
}

/// What is said of a file that its format does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum OptionError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    ExecutorProfile(#[from] UnknownExecutorProfile),
    #[error("format json takes no profile, found `{profile}`; remove it or choose msccl-xml")]
    ProfileWithoutRuntime { profile: String },
    #[error("format {format} has only profile {profile} and one instance of its plan, found {found}; remove {}", field.name())]
    OneProfile { format: &'static str, profile: &'static str, field: OptionField, found: String },
    #[error("format mscclpp-json takes no instances, found {asked}; remove them or choose msccl-xml")]
    NotRepeated { asked: InstancesAsked },
    #[error("format json takes no instances, found {asked}; remove them or choose msccl-xml")]
    InstancesWithoutRuntime { asked: InstancesAsked },
    #[error("only mscclpp-json files have switch channels; remove the option or choose that format")]
    NoChannelsThere,
    #[error("only routes-xml files have layers; remove max_layers or choose that format")]
    NoLayersThere,
    #[error("a file of 0 instances holds no plan; use at least 1, or let the server choose")]
    NoInstances,
}

impl OptionError {
    /// What is at fault.
    pub const fn field(&self) -> OptionField {
        match self {
            Self::Profile(_) | Self::ExecutorProfile(_) | Self::ProfileWithoutRuntime { .. } => OptionField::Profile,
            Self::OneProfile { field, .. } => *field,
            Self::NotRepeated { .. } | Self::InstancesWithoutRuntime { .. } | Self::NoInstances => {
                OptionField::Instances
            }
            Self::NoChannelsThere => OptionField::PlainChannels,
            Self::NoLayersThere => OptionField::LayersMax,
        }
    }
}

impl Format {
    /// What a file of this format is for, by what is said of it.
    ///
    /// # Errors
    /// Something is said that the format does not know.
    pub fn target(self, options: &TargetOptions<'_>) -> Result<Target, OptionError> {
        let (row, usual) = (self.row(), self.usual());
        if options.plain_channels && !row.uses_switches() {
            return Err(OptionError::NoChannelsThere);
        }
        if options.layers_max.is_some() && !matches!(row.needs(usual), Needs::Layers(_)) {
            return Err(OptionError::NoLayersThere);
        }
        let instances = options.instances.map_or(Ok(usual.instances), InstancesAsked::instances)?;
        let profile = row.profile(options)?;
        let switches = if options.plain_channels { SwitchUse::None } else { usual.switches };
        Ok(Target { profile, instances, switches, layers_max: options.layers_max, ..usual })
    }
}

/// The one profile of a format without instances.
pub(super) fn only(
    format: Format,
    profile: &'static str,
    options: &TargetOptions<'_>,
) -> Result<&'static str, OptionError> {
    let refused = |field, found| Err(OptionError::OneProfile { format: format.name(), profile, field, found });
    match options.instances {
        _ if !options.profile.is_empty() && options.profile != profile => {
            refused(OptionField::Profile, shown(options.profile))
        }
        None => Ok(profile),
        Some(asked) => refused(OptionField::Instances, asked.to_string()),
    }
}

/// As much of a name as is repeated.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(80).collect()
}

impl Target {
    /// What is said of a file that is for this; what goes without saying is left out.
    pub fn options(self) -> TargetOptions<'static> {
        TargetOptions {
            profile: self.profile,
            instances: Some(self.instances).filter(|instances| *instances != Instances::ONE).map(InstancesAsked::from),
            plain_channels: self.switches == SwitchUse::None,
            layers_max: self.layers_max,
        }
    }
}
