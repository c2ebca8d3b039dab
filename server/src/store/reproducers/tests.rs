use std::fs;
use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;

use super::super::disk::{Step, Witness};
use super::*;

fn files(report: &str, topology: &str) -> Result<Files, NotKept> {
    Ok(Files { report: report.into(), topology: topology.into() })
}

/// A folder in a data directory of its own.
fn folder(count_max: usize, bytes_max: u64) -> (TempDir, ReproducerFolder) {
    let directory = tempfile::tempdir().unwrap();
    let folder = ReproducerFolder::of(directory.path(), ReproducerLimits { count_max, bytes_max });
    (directory, folder)
}

fn names(folder: &ReproducerFolder) -> Vec<String> {
    let entries = fs::read_dir(&folder.path).map(|entries| entries.map(|entry| entry.unwrap().file_name())).unwrap();
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_reproducer_is_kept_once_with_its_topology_beside_it() {
    let (_directory, folder) = folder(10, 1000);
    assert_eq!(folder.held().unwrap(), Held::default(), "there is no folder before the first");
    assert_eq!(folder.keep("a", || files("report", "topology")).unwrap(), Kept::Added);
    assert_eq!(folder.keep("a", || -> Result<Files, NotKept> { unreachable!("it is there") }).unwrap(), Kept::Already);
    assert_eq!(names(&folder), ["a.json", "a.topology.json"]);
    assert_eq!(fs::read_to_string(folder.report_path("a")).unwrap(), "report");
    let beside = folder.path.join(ReproducerFolder::topology_name("a"));
    assert_eq!(fs::read_to_string(beside).unwrap(), "topology");
    assert_eq!(folder.held().unwrap(), Held { count: 1, bytes: 14 });
}

#[test]
fn the_first_ones_stay_and_there_is_room_again_once_a_person_removes_one() {
    let (_directory, folder) = folder(2, 1000);
    for name in ["a", "b"] {
        assert_eq!(folder.keep(name, || files(name, name)).unwrap(), Kept::Added);
    }
    let full = folder.keep("c", || -> Result<Files, NotKept> { unreachable!("there is no room") });
    assert!(matches!(full, Err(NotKept::Full { count: 2, bytes: 4 })), "{full:?}");
    assert_eq!(
        folder.keep("a", || -> Result<Files, NotKept> { unreachable!("it is there") }).unwrap(),
        Kept::Already,
        "full or not"
    );
    fs::remove_file(folder.report_path("a")).unwrap();
    assert_eq!(folder.keep("c", || files("c", "c")).unwrap(), Kept::Added);
    assert_eq!(fs::read_to_string(folder.report_path("b")).unwrap(), "b");
}

#[test]
fn bytes_are_limited_to_the_last_one() {
    let (_directory, folder) = folder(10, 20);
    assert_eq!(folder.keep("a", || files("0123", "456789")).unwrap(), Kept::Added);
    let full = folder.keep("b", || files("0123", "4567890"));
    assert!(matches!(full, Err(NotKept::Full { count: 1, bytes: 10 })), "{full:?}");
    assert_eq!(names(&folder), ["a.json", "a.topology.json"]);
    assert_eq!(folder.keep("b", || files("0123", "456789")).unwrap(), Kept::Added);
    let full = folder.keep("c", || -> Result<Files, NotKept> { unreachable!("not a byte is left") });
    assert!(matches!(full, Err(NotKept::Full { count: 2, bytes: 20 })), "{full:?}");
}

#[test]
fn what_a_crash_left_half_written_goes_with_the_next() {
    let (_directory, folder) = folder(10, 1000);
    fs::create_dir(&folder.path).unwrap();
    fs::write(folder.path.join(format!("{UNFINISHED}x")), "half").unwrap();
    assert_eq!(folder.held().unwrap(), Held { count: 0, bytes: 4 });
    folder.keep("a", || files("a", "b")).unwrap();
    assert_eq!(names(&folder), ["a.json", "a.topology.json"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let (directory, folder) = folder(10, 1000);
    fs::write(directory.path().join(FOLDER), "a file").unwrap();
    let refused = folder.keep("a", || files("a", "b"));
    assert!(matches!(refused, Err(NotKept::Disk(_))), "{refused:?}");
    assert_eq!(fs::read_to_string(directory.path().join(FOLDER)).unwrap(), "a file");
}

/// A disk that refuses the step of this number, and remembers the others by the ends of their paths.
#[derive(Default)]
struct Refusing {
    at: usize,
    steps: Mutex<Vec<String>>,
}

impl Witness for Refusing {
    fn allows(&self, step: Step<'_>) -> io::Result<()> {
        let mut steps = self.steps.lock();
        if steps.len() == self.at && !matches!(step, Step::Removed { .. }) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        steps.push(match step {
            Step::Synced { .. } => "synced".to_owned(),
            Step::Renamed { to, .. } => name(to),
            Step::NamesSynced { folder } => format!("names of {}", name(folder)),
            _ => String::new(),
        });
        Ok(())
    }

    fn saw(&self, _: Step<'_>) {}
}

#[test]
fn a_report_is_on_the_disk_after_its_topology_or_neither_is_there() {
    let mut at = 0;
    loop {
        let (directory, mut folder) = folder(10, 1000);
        let witness = Arc::new(Refusing { at, ..Refusing::default() });
        folder.disk = Disk::watched(Arc::clone(&witness) as Arc<_>);
        let kept = folder.keep("a", || files("report", "topology"));
        if kept.is_ok() {
            assert_eq!(names(&folder), ["a.json", "a.topology.json"]);
            let steps: Vec<String> = witness.steps.lock().iter().filter(|step| !step.is_empty()).cloned().collect();
            let own = directory.path().file_name().unwrap().to_string_lossy();
            let (of_data, of_own) = (format!("names of {own}"), "names of reproducers");
            let expected = [&*of_data, "synced", "a.topology.json", of_own, "synced", "a.json", of_own];
            assert_eq!(steps, expected);
            break;
        }
        assert!(matches!(kept, Err(NotKept::Disk(_))), "step {at}: {kept:?}");
        assert!(folder.held().unwrap().bytes == 0, "step {at}: {:?}", names(&folder));
        at += 1;
    }
    assert!(at > 5, "each step was refused once");
}
