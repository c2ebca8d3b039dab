//! The rules of a runtime, asked about a folder as it lies there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use canopy_bundle::{Call, Folder, Indivisible, Operator, PlanFileFacts, Runtime, Selection, select};
use canopy_plan::{MSCCL_OWN_BYTES_MAX, oneccl, parse_execution_plan, parse_msccl_xml_until};
use canopy_schedule::CollectiveKind;

use super::read_json;

/// The plan files of a folder as its runtime comes upon them: listed by the variable, all there are in the folder that it
/// names, or registered as the manifest says.
fn found_by(runtime: Runtime, folder: &Path) -> Folder {
    let env = fs::read_to_string(folder.join("env")).unwrap();
    assert!(!env.contains("{dir}"), "{env}");
    let value = |name: &str| {
        let line = env.lines().find_map(|line| line.strip_prefix(&format!("export {name}='"))).unwrap();
        line.strip_suffix('\'').unwrap().to_owned()
    };
    let paths: Vec<PathBuf> = match runtime {
        Runtime::Msccl => value("MSCCL_XML_FILES").split(':').map(PathBuf::from).collect(),
        Runtime::MscclExecutor | Runtime::RcclMsccl => all_in(Path::new(&value("MSCCL_ALGO_DIR"))),
        Runtime::Mscclpp08 => all_in(Path::new(&value("MSCCLPP_EXECUTION_PLAN_DIR"))),
        _ => all_in(&folder.join("plans")),
    };
    let registered = meant(folder);
    let facts = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let path = path.to_str().unwrap().to_owned();
        match runtime {
            Runtime::OneCcl => PlanFileFacts::of_oneccl(path, &oneccl::parse(&text).unwrap()),
            Runtime::Mscclpp08 => PlanFileFacts::of_execution_plan(path, &parse_execution_plan(&text).unwrap()),
            Runtime::Mscclpp09 | Runtime::Mscclpp10 => {
                let call = registered.iter().find(|meant| meant.path == path).unwrap().call;
                let on_each = Some(call.ranks_per_node).filter(|&ranks| ranks > 0);
                let plan = parse_execution_plan(&text).unwrap();
                PlanFileFacts::of_execution_plan(path, &plan).registered(call.collective, on_each)
            }
            _ => {
                let profile = runtime.msccl_profile().unwrap();
                let program = parse_msccl_xml_until(&text, profile, MSCCL_OWN_BYTES_MAX, &|| false).unwrap();
                PlanFileFacts::of_msccl(path, &program)
            }
        }
    };
    Folder { files: paths.iter().map(facts).collect(), others: Vec::new() }
}

fn all_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// A file of the manifest and the calls it is meant for.
pub(crate) struct Meant {
    pub(crate) path: String,
    pub(crate) call: Call<'static>,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) unit: u64,
}

pub(crate) fn meant(folder: &Path) -> Vec<Meant> {
    let manifest = read_json(&folder.join("manifest.json"));
    let mut all = Vec::new();
    for item in manifest["items"].as_array().unwrap() {
        let collective: CollectiveKind = item["collective"].as_str().unwrap().parse().unwrap();
        for file in item["files"].as_array().unwrap() {
            let number = |field: &str| file[field].as_u64().unwrap();
            all.push(Meant {
                path: folder.join(file["path"].as_str().unwrap()).to_str().unwrap().to_owned(),
                call: Call {
                    collective,
                    ranks: u32::try_from(item["ranks"].as_u64().unwrap()).unwrap(),
                    ranks_per_node: u32::try_from(item["ranks_per_node"].as_u64().unwrap_or(0)).unwrap(),
                    rank_map: None,
                    bytes: 0,
                    in_place: item["in_place"].as_bool().unwrap(),
                    element_bytes: 1,
                    operator: Operator::Sum,
                },
                first: number("size_bytes_min"),
                last: number("size_bytes_end") - 1,
                unit: number("alignment_elements"),
            });
        }
    }
    all
}

/// Asks for every range at its ends, in between and beyond, and for calls that nothing is meant for.
pub(crate) fn check_every_call(runtime: Runtime, folder: &Path) {
    let there = found_by(runtime, folder);
    let all = meant(folder);
    let rules = runtime.rules().unwrap();
    let is_counted_in_bytes = runtime.executor_profile().is_some();
    let divides = |unit: u64, call: &Call<'_>| match rules.indivisible {
        Indivisible::Allowed => true,
        _ if is_counted_in_bytes => call.bytes.is_multiple_of(unit),
        _ => call.bytes.is_multiple_of(call.element_bytes) && (call.bytes / call.element_bytes).is_multiple_of(unit),
    };
    let picked = |call: Call<'_>| match select(runtime, &there, &call) {
        Selection::Fails(file) => {
            assert_eq!(rules.indivisible, Indivisible::Fails, "{runtime}: {call:?}");
            let path = &there.files[file].path;
            let own = all.iter().find(|meant| meant.path == *path).unwrap();
            assert!(!divides(own.unit, &call) && (own.first..=own.last).contains(&call.bytes), "{call:?}");
            None
        }
        Selection::File(file) => Some(there.files[file].path.clone()),
        Selection::Stock { .. } => None,
        other => panic!("{runtime}: {call:?} gets {other:?}"),
    };
    let expected = |call: &Call<'_>| {
        let like = |meant: &&Meant| {
            let Call { collective, ranks, in_place, .. } = meant.call;
            (collective, ranks, in_place) == (call.collective, call.ranks, call.in_place)
                && (meant.first..=meant.last).contains(&call.bytes)
                && divides(meant.unit, call)
        };
        all.iter().find(like).map(|meant| meant.path.clone())
    };
    let mut hits = BTreeSet::new();
    for Meant { call, first, last, unit, .. } in &all {
        let lowest = first.div_ceil(*unit) * unit;
        let highest = last / unit * unit;
        let inside = (0..=32).map(|part| lowest + (highest - lowest) / unit * part / 32 * unit);
        let edges = [*first, *last, lowest, highest];
        let around = edges.into_iter().flat_map(|edge| edge.saturating_sub(1).max(1)..=edge + 1);
        let beyond = [lowest.saturating_sub(*unit).max(1), highest + unit];
        for bytes in inside.chain(around).chain(beyond) {
            let call = Call { bytes, ..*call };
            let found = picked(call);
            assert_eq!(found, expected(&call), "{runtime}: {call:?}");
            hits.extend(found);
            for element_bytes in [2, 4, 8] {
                let wide = Call { element_bytes, ..call };
                assert_eq!(picked(wide), expected(&wide), "{runtime}: {wide:?}");
            }
            assert_eq!(picked(Call { in_place: !call.in_place, ..call }), None, "{runtime}: {call:?}");
            let on_more = picked(Call { ranks: call.ranks + 1, ..call });
            assert_eq!(on_more, expected(&call).filter(|_| !rules.tells_ranks), "{runtime}: {call:?}");
            let elsewhere = picked(Call { ranks_per_node: call.ranks_per_node + 1, ..call });
            let takes_any = !rules.tells_ranks_per_node || call.ranks_per_node == 0;
            assert_eq!(elsewhere, expected(&call).filter(|_| takes_any), "{runtime}: {call:?}");
            let average = picked(Call { operator: Operator::Average, ..call });
            let reduces = matches!(call.collective, CollectiveKind::Allreduce | CollectiveKind::ReduceScatter);
            assert_eq!(average, expected(&call).filter(|_| !reduces), "{runtime}: {call:?}");
        }
    }
    let files: BTreeSet<String> = there.files.iter().map(|file| file.path.clone()).collect();
    assert_eq!(hits, files, "{runtime}: every file is picked for something");
    assert_eq!(files, all.iter().map(|meant| meant.path.clone()).collect(), "{runtime}: no file is there by chance");
}
