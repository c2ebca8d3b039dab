//! Formats of files and their numbers, and files as callers request them.

use std::num::NonZeroU32;
use std::sync::LazyLock;

use canopy_plan::{Format, InstancesAsked, Target, TargetOptions};
use canopy_proto::v1::output_spec::Instancing;
use canopy_proto::v1::{AutomaticInstances, OutputFormat, OutputSpec};

use crate::refused::{RequestError, above_zero};

/// The number of a format.
pub fn format_on_the_wire(format: Format) -> OutputFormat {
    let name = format.name().to_uppercase().replace('-', "_");
    OutputFormat::from_str_name(&format!("OUTPUT_FORMAT_{name}")).expect("every format has a number")
}

/// The format of a number; `None` for an unknown number.
pub fn format_of_wire(number: i32) -> Option<Format> {
    Format::ALL.into_iter().find(|&format| i32::from(format_on_the_wire(format)) == number)
}

/// A file as a caller requests it.
pub fn target_on_the_wire(target: Target) -> OutputSpec {
    let TargetOptions { profile, instances, plain_channels, layers_max } = target.options();
    let instancing = instances.map(|asked| match asked {
        InstancesAsked::Number(instances) => Instancing::Instances(instances),
        InstancesAsked::Automatic => Instancing::AutomaticInstances(AutomaticInstances {}),
    });
    OutputSpec {
        format: format_on_the_wire(target.format).into(),
        profile: (!profile.is_empty()).then(|| profile.to_owned()),
        instancing,
        plain_channels,
        max_layers: layers_max.map(NonZeroU32::get),
    }
}

/// The file that a caller requests.
///
/// # Errors
/// The format does not exist, or does not have a given option.
pub fn target(output: usize, spec: &OutputSpec) -> Result<Target, RequestError> {
    let instances = spec.instancing.map(|asked| match asked {
        Instancing::Instances(instances) => InstancesAsked::Number(instances),
        Instancing::AutomaticInstances(_) => InstancesAsked::Automatic,
    });
    let layers_max = above_zero("max_layers", spec.max_layers).map_err(|error| RequestError::InBundle {
        field: format!("outputs[{output}].max_layers"),
        error: Box::new(error),
    })?;
    let options = TargetOptions {
        profile: spec.profile.as_deref().unwrap_or_default(),
        instances,
        plain_channels: spec.plain_channels,
        layers_max,
    };
    // What is not said is refused like what is not known: guessing would pin a default for ever.
    let format = format_of_wire(spec.format).ok_or_else(|| RequestError::UnknownValue {
        field: format!("outputs[{output}].format"),
        number: spec.format,
        known: &OUTPUT_FORMATS,
    })?;
    format.target(&options).map_err(|error| RequestError::Output { output, error })
}

/// The known numbers, by name.
pub static OUTPUT_FORMATS: LazyLock<String> = LazyLock::new(|| {
    let names = Format::ALL.map(|format| format_on_the_wire(format).as_str_name());
    let [others @ .., last] = &names;
    format!("{} or {last}", others.join(", "))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_number_and_every_number_a_format() {
        for format in Format::ALL {
            assert_eq!(format_of_wire(format_on_the_wire(format).into()), Some(format));
        }
        let numbers = (0..100).filter(|&number| OutputFormat::try_from(number).is_ok()).count();
        assert_eq!(numbers, Format::ALL.len() + 1, "all but the unspecified one");
        assert_eq!(format_of_wire(0), None);
        assert!(OUTPUT_FORMATS.ends_with("OUTPUT_FORMAT_ONECCL_XML or OUTPUT_FORMAT_ROUTES_XML"));
    }
}
