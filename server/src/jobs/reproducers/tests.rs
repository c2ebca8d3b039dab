use std::fs;
use std::sync::Arc;
use std::thread;

use canopy_import::FileKind;
use canopy_planner::TopologyInput;
use canopy_schedule::CollectiveKind;
use canopy_topology::{DocumentFormat, generate};
use serde_json::Value;
use tempfile::TempDir;

use super::*;

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

fn refused(expression: &str, number: u8) -> Refused {
    Refused {
        order: Order::on(expression, CollectiveKind::Allgather),
        request: RequestKey::from_bytes([1; 32]),
        plan: PlanKey::from_bytes([number; 32]),
        algorithm: "tacos",
        reason: "load",
        problem: "link 0 carries too much".to_owned(),
    }
}

fn open(count_max: usize) -> (TempDir, Reproducers) {
    let directory = tempfile::tempdir().unwrap();
    let limits = ReproducerLimits { count_max, ..ReproducerLimits::STANDARD };
    let reproducers = Reproducers::within(ReproducerFolder::of(directory.path(), limits), LIMITS);
    (directory, reproducers)
}

/// Writes what is noted.
fn written(reproducers: &Reproducers) -> (usize, u64) {
    reproducers.close();
    reproducers.run();
    (reproducers.kept_count(), reproducers.dropped_count())
}

#[test]
fn a_report_says_what_was_asked_for_and_what_was_wrong() {
    let (directory, reproducers) = open(10);
    let file = reproducers.note(refused("torus:3x4", 7)).unwrap();
    assert_eq!(written(&reproducers), (1, 0));
    assert_eq!(file.parent().unwrap(), directory.path().join("reproducers"));
    assert_eq!(file.file_name().unwrap(), "07070707070707070707070707070707-tacos-load.json");
    let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for (field, expected) in [
        ("/format", 1.into()),
        ("/canopy", env!("CARGO_PKG_VERSION").into()),
        ("/planner_class", canopy_planner::PLANNER_CLASS.into()),
        ("/plan", "plans/07070707070707070707070707070707".into()),
        ("/algorithm", "tacos".into()),
        ("/reason", "load".into()),
        ("/problem", "link 0 carries too much".into()),
        ("/request/collective", "allgather".into()),
        ("/request/algorithm", "auto".into()),
        ("/request/size_bytes_max", (1_u64 << 30).into()),
        ("/request/outputs/0/format", "json".into()),
        ("/request/ranks", Value::Null),
    ] {
        assert_eq!(report.pointer(field), Some::<&Value>(&expected), "{field}");
    }
    let time = report["time"].as_str().unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
    let topology = report["topology"].as_str().unwrap();
    assert_eq!(report["commands"].as_array().unwrap().len(), 1);
    assert!(report["commands"][0].as_str().unwrap().contains(topology), "{}", report["commands"]);
    let content = fs::read(file.with_file_name(topology)).unwrap().into();
    let source = TopologyInput::Document { kind: Some(FileKind::Own(DocumentFormat::Json)), content };
    let (read, warnings) = read_topology(&source, &LIMITS, &Never).unwrap();
    assert_eq!((read, warnings), (generate("torus:3x4", &LIMITS).unwrap(), Vec::new()));
}

#[test]
fn one_that_is_there_is_not_kept_again_and_the_folder_takes_no_more_than_its_limit() {
    let (_directory, reproducers) = open(2);
    let file = reproducers.note(refused("ring:4", 1)).unwrap();
    // Another topology: were it written once more, this would show.
    assert_eq!(reproducers.note(refused("ring:5", 1)), Some(file.clone()));
    let other = Refused { reason: "meaning", ..refused("ring:4", 1) };
    assert_ne!(reproducers.note(other), Some(file.clone()), "another check");
    assert!(reproducers.note(refused("ring:4", 2)).is_some());
    assert_eq!(written(&reproducers), (2, 1));
    let topology = file.with_file_name(ReproducerFolder::topology_name(&refused("", 1).name()));
    assert_eq!(fs::read_to_string(topology).unwrap(), to_json(&generate("ring:4", &LIMITS).unwrap()));
}

#[test]
fn too_many_at_once_are_counted_and_nobody_waits() {
    let (_directory, reproducers) = open(100);
    let noted = (0..20).filter(|&number| reproducers.note(refused("ring:4", number)).is_some()).count();
    assert_eq!((noted, reproducers.dropped_count()), (WAITING_MAX, 4));
    assert_eq!(written(&reproducers), (WAITING_MAX, 4));
    assert_eq!(reproducers.note(refused("ring:4", 30)), None, "it is closed");
}

#[test]
fn a_disk_that_refuses_and_a_topology_that_cannot_be_read_cost_the_reproducer_alone() {
    let (directory, reproducers) = open(10);
    fs::write(directory.path().join("reproducers"), "a file").unwrap();
    assert!(reproducers.note(refused("ring:4", 1)).is_some());
    assert_eq!(written(&reproducers), (0, 1));

    let (_directory, reproducers) = open(10);
    assert!(reproducers.note(refused("nonsense", 1)).is_some());
    assert!(reproducers.note(refused("ring:4", 2)).is_some());
    assert_eq!(written(&reproducers), (1, 1));
}

#[test]
fn a_thread_writes_while_others_note_and_the_next_server_counts_what_is_there() {
    let (directory, reproducers) = open(10);
    let reproducers = Arc::new(reproducers);
    let writer = Arc::clone(&reproducers);
    let writer = thread::spawn(move || writer.run());
    let file = reproducers.note(refused("ring:4", 1)).unwrap();
    while reproducers.kept_count() == 0 {
        thread::yield_now();
    }
    assert!(file.exists());
    reproducers.close();
    writer.join().unwrap();
    assert_eq!(Reproducers::of(directory.path(), LIMITS).kept_count(), 1);
}
