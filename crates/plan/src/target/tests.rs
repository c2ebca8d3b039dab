//! The table is whole: every row answers to its name, knows its own files, and says back what was said of them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use canopy_schedule::{Bound, Collective, CollectiveKind, Schedule, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, bound, layered_flow, synthesize};
use canopy_topology::{Slot, Topology, TopologyLimits, generate};

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
        base: None,
        plan: Some(&plan),
        graph: Some(&graph),
        layered: Some(layered),
        name: "plan",
        rank_map: None,
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
                rank_map: None,
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
            slices_make_the_file(format, &file.content, 6);
        }
    }
    for (bytes, format) in [(&b"  <algo/>"[..], Some(Format::MscclXml)), (b"{}", Some(Format::Json)), (b"x", None)] {
        assert_eq!(Format::of(bytes), format);
    }
}

/// What stands before the first rank, and each rank with what follows it up to the next.
fn by_rank<'a>(text: &'a str, open: &str) -> (&'a str, Vec<&'a str>) {
    let starts: Vec<usize> = text.match_indices(open).map(|(at, _)| at + 1).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    (&text[..starts[0]], starts.iter().zip(ends).map(|(&start, end)| &text[start..end]).collect())
}

/// Each slice has its rank as the file has it, and a shorter stub of each other. Together they are the file. The two halves are, too.
fn slices_make_the_file(format: Format, content: &[u8], ranks: u32) {
    let open = match format {
        Format::Json => {
            assert!(format.slice(content, &[0].into()).is_none());
            return;
        }
        Format::MscclXml => "\n  <gpu id=\"",
        Format::MscclppJson => "\n    {\"id\": ",
        Format::OnecclXml | Format::RoutesXml => "\n  <rank id=\"",
    };
    let whole = std::str::from_utf8(content).unwrap();
    let (head, all) = by_rank(whole, open);
    assert_eq!(all.len(), ranks as usize, "{format}");
    let (routes, plain): (Vec<&str>, Vec<&str>) = head.lines().partition(|line| line.contains("<route "));
    let mut found_routes = BTreeSet::new();
    let mut joined = head.to_owned();
    for group in (0..ranks).map(|rank| rank..rank + 1).chain([0..ranks / 2, ranks / 2..ranks]) {
        let wanted: BTreeSet<u32> = group.clone().collect();
        let slice = String::from_utf8(format.slice(content, &wanted).unwrap().unwrap()).unwrap();
        let (own_head, own) = by_rank(&slice, open);
        assert_eq!(own.len(), all.len(), "{format} {group:?}");
        for (rank, (part, of_whole)) in (0..).zip(own.iter().zip(&all)) {
            if wanted.contains(&rank) {
                assert_eq!(part, of_whole, "{format} {group:?}");
                if group.len() == 1 {
                    joined.push_str(part);
                }
            } else {
                assert!(part.len() < of_whole.len(), "{format} {group:?}: {part}");
            }
        }
        let (own_routes, own_plain): (Vec<&str>, Vec<&str>) =
            own_head.lines().partition(|line| line.contains("<route "));
        assert_eq!(own_plain, plain, "{format} {group:?}");
        found_routes.extend(own_routes.into_iter().map(str::to_owned));
        if format == Format::MscclppJson {
            loads_alike(whole, &slice, &wanted);
        }
    }
    assert_eq!(found_routes, routes.into_iter().map(str::to_owned).collect());
    assert_eq!(joined, whole, "{format}");
    let refused = format.slice(content, &[1, ranks].into()).unwrap().unwrap_err().to_string();
    assert_eq!(refused, format!("rank {ranks} is not in the file; use 0 to {}", ranks - 1));
    assert!(matches!(format.slice(b"\xff", &[0].into()), Some(Err(SliceError::Unreadable(_)))), "{format}");
    let damaged = whole.replacen(&format!("{open}1"), &format!("{open}7"), 1);
    let refused = format.slice(damaged.as_bytes(), &[0].into()).unwrap().unwrap_err().to_string();
    assert_eq!(refused, "rank 7 stands where rank 1 belongs", "{format}");
    let cut_short = whole.get(..whole.len() - 4).unwrap();
    assert_ne!(
        format.slice(cut_short.as_bytes(), &[0].into()).unwrap().ok(),
        format.slice(content, &[0].into()).unwrap().ok()
    );
}

/// What the loader of each of these ranks takes from a plan: its own part, how many channels others have to it, and the
/// buffers that others name, in the order of the file.
fn loads_alike(whole: &str, slice: &str, ranks: &BTreeSet<u32>) {
    let taken = |text: &str, rank: u32| {
        let plan: serde_json::Value = serde_json::from_str(text).unwrap();
        let gpus = plan["gpus"].as_array().unwrap();
        let own = gpus[rank as usize].clone();
        let mut counts: BTreeMap<(u64, String), usize> = BTreeMap::new();
        let mut named = Vec::new();
        for gpu in gpus {
            for channel in gpu["channels"].as_array().unwrap() {
                let peers = channel["connected_to"].as_array().into_iter().flatten();
                let of_rank = peers.filter(|peer| peer.as_u64() == Some(rank.into())).count();
                let key = (gpu["id"].as_u64().unwrap(), channel["channel_type"].to_string());
                *counts.entry(key).or_default() += of_rank;
            }
            for buffer in gpu["remote_buffers"].as_array().unwrap() {
                if buffer["rank"].as_u64() == Some(rank.into()) {
                    named.push((gpu["id"].clone(), buffer["type"].clone(), buffer["access_channel_types"].clone()));
                }
            }
        }
        counts.retain(|_, count| *count > 0);
        (own, counts, named)
    };
    for &rank in ranks {
        assert_eq!(taken(whole, rank), taken(slice, rank));
    }
}

/// Of the formats, only oneCCL plans have a word for the devices of ranks.
#[test]
fn devices_are_stated_where_a_format_has_a_word_for_them() {
    let plan = plan();
    let graph = compile(&plan.topology, &plan.schedule).unwrap();
    let slots = |nodes: [&str; 2]| -> Vec<Slot> {
        let slot = |(node, device): (&str, u32)| Slot { node: node.to_owned(), device };
        nodes.into_iter().flat_map(|node| (0..3).map(move |device| (node, device))).map(slot).collect()
    };
    let slots = [slots(["a&\"<x>\"", "b.example"]), slots(["a", "b,c"])];
    let written = |target: Target, rank_map: Option<&[Slot]>| {
        target.write(Asked {
            topology: &plan.topology,
            base: None,
            plan: None,
            graph: Some(&graph),
            layered: None,
            name: "plan",
            rank_map,
            in_place: false,
            bytes_min: 0,
            bytes_max: 1 << 20,
            seed: 1,
            limits: &TopologyLimits::STANDARD,
            stop: &|| false,
        })
    };
    let msccl = Target::from(Profile::Msccl);
    assert!(!msccl.states_devices());
    assert_eq!(written(msccl, Some(&slots[0])).unwrap(), written(msccl, None).unwrap());
    let target = Format::OnecclXml.usual();
    assert!(target.states_devices());
    let file = written(target, Some(&slots[0])).unwrap();
    let text = String::from_utf8(file.content.clone()).unwrap();
    let line = "  <meta key=\"rank_map\" value=\"a&amp;&quot;&lt;x&gt;&quot;:0,a&amp;&quot;&lt;x&gt;&quot;:1,\
                a&amp;&quot;&lt;x&gt;&quot;:2,b.example:0,b.example:1,b.example:2\"/>\n";
    assert_eq!(text.replacen(line, "", 1).into_bytes(), written(target, None).unwrap().content);
    // A slice is for some of the ranks of the same devices.
    let slice = target.format.slice(&file.content, &BTreeSet::from([4])).unwrap().unwrap();
    assert!(String::from_utf8(slice).unwrap().contains(line));
    let (kind, algorithm) = (Some(CollectiveKind::AllToAll), plan.schedule.algorithm.as_str());
    let judged = |rank_map| {
        let stated = Stated {
            profile: target.profile,
            instances: 0,
            layers: 0,
            collective: Some((kind, None)),
            ranks: Some(6),
            rank_map,
            algorithm,
            shares: &[],
            quality: None,
            limits: &TopologyLimits::STANDARD,
        };
        target.format.judge(&file.content, &stated)
    };
    let devices = crate::oneccl::device_list(&slots[0]);
    assert_eq!(judged(Some(&devices)), Ok(()));
    for other in [None, Some("a:0")] {
        assert_eq!(judged(other), Err("its oneCCL file states other devices than its rank map".to_owned()));
    }
    let refused = written(target, Some(&slots[1])).unwrap_err();
    assert_eq!(refused.reason, TargetReason::Unsupported);
    assert!(refused.to_string().contains("rank 3 is on machine `b,c`, which a oneCCL plan cannot name"), "{refused}");
    let few = written(target, Some(&slots[0][1..])).unwrap_err();
    assert_eq!(few.reason, TargetReason::Rejected);
}

#[test]
fn a_stopped_file_is_none() {
    let plan = plan();
    let graph = compile(&plan.topology, &plan.schedule).unwrap();
    for target in [Target::from(Profile::Msccl), ExecutorProfile::NEWEST.into(), Format::OnecclXml.usual()] {
        let asked = Asked {
            topology: &plan.topology,
            base: None,
            plan: None,
            graph: Some(&graph),
            layered: None,
            name: "plan",
            rank_map: None,
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
