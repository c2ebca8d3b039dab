//! What is written of a plan, and for whom: the arguments of files, and the same on the wire.

use std::num::NonZeroU32;
use std::path::Path;

use canopy_plan::{Format, Instances};
use canopy_proto::v1::output_spec::Instancing;
use canopy_proto::v1::{self, OutputSpec};
use canopy_wire::format_on_the_wire;

use crate::destination::{self, Destination};
use crate::exit::Failure;
use crate::runtime::{RuntimeProfile, format_of, optional_format_help, profile_name};

/// The files that are made of plans.
#[derive(Debug, clap::Args)]
pub(super) struct FileArgs {
    #[arg(long, short, value_name = "FORMAT", help = optional_format_help())]
    format: Option<Format>,
    /// Runtime the file is for, for formats of runtimes [default: msccl; of mscclpp-json:
    /// mscclpp-0.10]
    #[arg(long, value_name = "P")]
    pub(super) profile: Option<RuntimeProfile>,
    /// Copies of the plan in the file, each on channels of its own: a number, or auto for all that fit the runtime
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = instances)]
    pub(super) instances: Option<Instances>,
    /// In mscclpp-json, ranks reach each other's memory one by one, whatever switches multicast or aggregate
    #[arg(long)]
    no_switch_channels: bool,
    /// In routes-xml, most layers that keep routes free of deadlocks; where the plan's own need more, chunks take other
    /// ways [default: as needed]
    #[arg(long, value_name = "L")]
    max_layers: Option<NonZeroU32>,
    /// File to write, or `-` for standard output, where a plan goes without it unless that is a terminal
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<Destination>,
}

impl FileArgs {
    /// The file to write; none for standard output.
    pub(super) fn file(&self) -> Option<&Path> {
        destination::file(self.output.as_ref())
    }

    /// The format of the file.
    pub(super) fn format(&self) -> Format {
        format_of(self.format, self.profile, self.file())
    }

    /// The format, where neither an option nor the ending of the file's name says it.
    pub(super) fn untold_format(&self) -> Option<&'static str> {
        let is_json = self.file().and_then(Path::extension).is_none_or(|ending| ending == "json");
        (self.format.is_none() && !is_json).then(|| self.format().name())
    }

    /// The folder to write.
    ///
    /// # Errors
    /// None is given; `why` says what needs one.
    pub(super) fn folder(&self, why: &str) -> Result<&Path, Failure> {
        self.file().ok_or_else(|| Failure::input(why).help("add `-o DIR`"))
    }

    /// The same on the wire.
    ///
    /// # Errors
    /// The format has nothing like an option that is given, or is not one that the runtime reads.
    pub(super) fn spec(&self) -> Result<OutputSpec, Failure> {
        let profile = profile_name(self.format(), self.profile, self.instances)?;
        self.check_channels()?;
        self.check_layers()?;
        let instancing = self.instances.map(|instances| match instances {
            Instances::Exactly(instances) => Instancing::Instances(instances.get()),
            Instances::Auto => Instancing::AutomaticInstances(v1::AutomaticInstances {}),
        });
        Ok(OutputSpec {
            format: format_on_the_wire(self.format()).into(),
            profile: Some(profile).filter(|profile| !profile.is_empty()),
            instancing,
            plain_channels: self.no_switch_channels,
            max_layers: self.max_layers.map(NonZeroU32::get),
        })
    }

    /// Other formats than routes-xml have no layers.
    fn check_layers(&self) -> Result<(), Failure> {
        if self.max_layers.is_some() && self.format() != Format::RoutesXml {
            let name = self.format().name();
            return Err(Failure::input(format!("--max-layers is for routes-xml, and {name} has nothing like them"))
                .help("leave --max-layers out, or add `--format routes-xml`"));
        }
        Ok(())
    }

    /// Other formats than mscclpp-json have no channels of switches to leave out.
    pub(super) fn check_channels(&self) -> Result<(), Failure> {
        if self.no_switch_channels && self.format() != Format::MscclppJson {
            let name = self.format().name();
            return Err(Failure::input(format!(
                "--no-switch-channels is for mscclpp-json, and {name} has nothing like them"
            ))
            .help("leave --no-switch-channels out, or add `--format mscclpp-json`"));
        }
        Ok(())
    }
}

/// Reads `auto` or a number from 1.
pub(in crate::commands) fn instances(text: &str) -> Result<Instances, String> {
    if text == "auto" {
        return Ok(Instances::Auto);
    }
    let number = text.parse().map(Instances::Exactly);
    number.map_err(|_| format!("`{text}` is not a number of instances; use a number from 1, or auto"))
}
