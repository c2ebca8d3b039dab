//! The table is whole: every row answers to its name, knows its own files, and says back what was said of them.

use std::num::NonZeroU32;

use canopy_schedule::{Bound, Collective, CollectiveKind, Schedule, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, bound, layered_flow, synthesize};
use canopy_topology::{Topology, TopologyLimits, generate};

use super::*;
use crate::plan_file::{PlanFile, Provenance};

fn torus() -> Topology {
    generate("torus:2x3", &TopologyLimits::STANDARD).unwrap()
}

/// An all-to-all by flow, which every format has words for.
fn plan() -> PlanFile {
    let topology = torus();
    let collective = Collective::new(CollectiveKind::AllToAll, None, topology.rank_count()).unwrap();
    let request = SynthesisRequest::new(collective, Algorithm::Flow);
    let schedule: Schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
    let bound: Bound = bound(&topology, collective, &schedule.shares, &Never).unwrap();
    let achieved = canopy_schedule::judge_until(&topology, &schedule, &|| false).unwrap().algbw;
    let provenance = Provenance { version: "0".to_owned(), algorithm: "flow".to_owned() };
    PlanFile { topology, schedule, form: None, bound, achieved, in_network: None, provenance }
}

#[test]
fn every_format_has_a_name_and_targets_of_its_own() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
        let usual = format.usual();
        assert_eq!(format.profiles().is_empty(), usual.profile.is_empty());
        assert_eq!(format.target(&TargetOptions::default()), Ok(usual));
        for profile in format.profiles() {
            let target = Target { profile, ..usual };
            assert_eq!(format.target(&target.options()), Ok(target));
        }
    }
    assert!("xml".parse::<Format>().unwrap_err().to_string().contains("use one of json, msccl-xml, mscclpp-json"));
    let three = Instances::Exactly(NonZeroU32::new(3).unwrap());
    for instances in [three, Instances::Auto] {
        let target = Target { instances, ..Profile::RcclMsccl.into() };
        assert_eq!(Format::MscclXml.target(&target.options()), Ok(target));
    }
    let plain = Target { switches: SwitchUse::None, ..ExecutorProfile::V08.into() };
    assert_eq!(Format::MscclppJson.target(&plain.options()), Ok(plain));
    let layered = Target { layers_max: NonZeroU32::new(2), ..Format::RoutesXml.usual() };
    assert_eq!(Format::RoutesXml.target(&layered.options()), Ok(layered));
}

#[test]
fn what_a_format_does_not_know_is_refused_by_name() {
    let check = |format: Format, options: TargetOptions<'_>, field: OptionField, words: &str| {
        let error = format.target(&options).unwrap_err();
        assert_eq!(error.field(), field);
        assert!(error.to_string().contains(words), "{error}");
    };
    let (two, none) = (Some(InstancesAsked::Number(2)), TargetOptions::default());
    let named = TargetOptions { profile: "nobody", ..none };
    let plain = TargetOptions { plain_channels: true, ..none };
    let layered = TargetOptions { layers_max: Some(NonZeroU32::MIN), ..none };
    let repeated = TargetOptions { instances: two, ..none };
    for format in Format::ALL {
        check(format, named, OptionField::Profile, "nobody");
        if format != Format::MscclppJson {
            check(format, plain, OptionField::PlainChannels, "only mscclpp-json files");
        }
        if format != Format::RoutesXml {
            check(format, layered, OptionField::LayersMax, "only routes-xml files");
        }
        if format != Format::MscclXml {
            check(format, repeated, OptionField::Instances, "found 2");
        }
        let zero = TargetOptions { instances: Some(InstancesAsked::Number(0)), ..none };
        check(format, zero, OptionField::Instances, "0 instances");
    }
    let automatic = TargetOptions { instances: Some(InstancesAsked::Automatic), ..none };
    check(Format::OnecclXml, automatic, OptionField::Instances, "found auto; remove instances");
}

/// Each file is what its format says it is, by its bytes, for whoever gets it from elsewhere, and on the network.
#[test]
fn every_row_makes_files_that_it_accepts() {
    let plan = plan();
    let graph = compile(&plan.topology, &plan.schedule).unwrap();
    let flow = layered_flow(&plan.topology, &plan.schedule, None, &Never).unwrap();
    let layered = Layered {
        schedule: Schedule { shape: canopy_schedule::Shape::Flow(flow.flow), ..plan.schedule.clone() },
        layers: flow.layers,
        layer_count: flow.layer_count,
        chunks_moved: flow.chunks_moved,
    };
    let collective = plan.schedule.collective;
    let asked = Asked {
        topology: &plan.topology,
        plan: Some(&plan),
        graph: Some(&graph),
        layered: Some(layered),
        name: "plan",
        in_place: false,
        bytes_min: 0,
        bytes_max: 1 << 20,
        seed: 1,
        limits: &TopologyLimits::STANDARD,
        stop: &|| false,
    };
    for format in Format::ALL {
        let profiles = if format == Format::Json { vec![""] } else { format.profiles() };
        for profile in profiles {
            let target = Target { profile, ..format.usual() };
            let file = match target.write(asked.clone()) {
                Ok(file) => file,
                // Not every runtime of a format has a word for every collective.
                Err(error) => {
                    assert_eq!(error.reason, TargetReason::Unsupported, "{target}: {error}");
                    continue;
                }
            };
            assert_eq!(Format::of(&file.content), Some(format));
            let stated = Stated {
                profile,
                instances: file.instances,
                layers: file.layers,
                collective: Some((Some(collective.kind()), None)),
                ranks: Some(6),
                algorithm: &plan.schedule.algorithm,
                shares: &[],
                quality: None,
                limits: &TopologyLimits::STANDARD,
            };
            match format {
                Format::Json => {
                    assert_eq!(format.judge(&file.content, &stated), Err("it states no quality".to_owned()))
                }
                _ => assert_eq!(format.judge(&file.content, &stated), Ok(()), "{target}"),
            }
            assert!(format.judge(&file.content, &Stated { ranks: Some(5), quality: Some([""; 3]), ..stated }).is_err());
            let bound = |_| Ok(plan.bound.upper.clone());
            let kind = Some(collective.kind());
            let expected = Expected { topology: Some(&plan.topology), kind, root: None, bound: &bound };
            let verdict = format.verify(&file.content, Some(profile), &expected);
            assert_eq!(verdict.is_none(), format == Format::Json);
            assert!(verdict.is_none_or(|verdict| verdict.problems.is_empty()));
            assert_eq!(format.slice(profile, &file.content, &[0].into()).is_some(), format == Format::MscclXml);
        }
    }
    for (bytes, format) in [(&b"  <algo/>"[..], Some(Format::MscclXml)), (b"{}", Some(Format::Json)), (b"x", None)] {
        assert_eq!(Format::of(bytes), format);
    }
}

#[test]
fn a_stopped_file_is_none() {
    let plan = plan();
    let graph = compile(&plan.topology, &plan.schedule).unwrap();
    for target in [Target::from(Profile::Msccl), ExecutorProfile::NEWEST.into(), Format::OnecclXml.usual()] {
        let asked = Asked {
            topology: &plan.topology,
            plan: None,
            graph: Some(&graph),
            layered: None,
            name: "plan",
            in_place: false,
            bytes_min: 0,
            bytes_max: 1 << 20,
            seed: 1,
            limits: &TopologyLimits::STANDARD,
            stop: &|| true,
        };
        assert_eq!(target.write(asked.clone()).unwrap_err().reason, TargetReason::Stopped);
        assert_eq!(target.write(Asked { graph: None, ..asked }).unwrap_err().reason, TargetReason::Rejected);
    }
}
