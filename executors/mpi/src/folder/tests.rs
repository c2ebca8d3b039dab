//! Folders that are whole, and folders that are not.

use serde_json::json;
use tempfile::TempDir;

use super::*;

const PLAN: &str = include_str!("../../tests/plans/allgather.xml");

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bundle(manifest: &str, files: &[(&str, &str)]) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("plans")).unwrap();
    fs::write(place.path().join("manifest.json"), manifest).unwrap();
    for (name, text) in files {
        fs::write(place.path().join(name), text).unwrap();
    }
    place
}

fn manifest(files: &serde_json::Value) -> String {
    json!({"kind": "plan-bundle", "format": "oneccl-xml", "items": [{"files": files}, {"served_by": "all"}]})
        .to_string()
}

#[test]
fn a_bundle_has_the_files_of_its_manifest_and_no_others() {
    let files =
        json!([{"path": "plans/b.xml", "sha256": digest(PLAN)}, {"path": "plans/a.xml", "sha256": digest(PLAN)}]);
    let place = bundle(&manifest(&files), &[("plans/a.xml", PLAN), ("plans/b.xml", PLAN), ("plans/c.xml", "no plan")]);
    let folder = Folder::read(place.path()).unwrap();
    let names: Vec<&str> = folder.files().iter().map(PlanFile::name).collect();
    assert_eq!(names, ["plans/b.xml", "plans/a.xml"]);
    assert_eq!(folder.files()[0].rank_count(), Some(5));
    assert_eq!(folder.files()[0].proved().unwrap().rank_count, 5);
}

#[test]
fn a_digest_follows_the_bytes_and_their_order() {
    let read = |files: &[(&str, &str)]| {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(place.path().join(name), text).unwrap();
        }
        Folder::read(place.path()).unwrap().digest()
    };
    let other = include_str!("../../tests/plans/allreduce.xml");
    let both = read(&[("a.xml", PLAN), ("b.xml", other)]);
    assert_eq!(both, read(&[("c.xml", PLAN), ("d.xml", other), ("readme.txt", "not read")]));
    assert_ne!(both, read(&[("a.xml", other), ("b.xml", PLAN)]));
    assert_ne!(both, read(&[("a.xml", PLAN)]));
}

#[test]
fn broken_folders_are_refused_with_a_remedy() {
    let said = |place: &TempDir| Folder::read(place.path()).unwrap_err().to_string();
    let file = |path: &str, digest: &str| json!([{"path": path, "sha256": digest}]);
    let with = |files: &serde_json::Value| said(&bundle(&manifest(files), &[("plans/a.xml", PLAN)]));
    for (found, part) in [
        (with(&file("plans/a.xml", &digest("other"))), "is not the file that manifest.json describes"),
        (with(&file("plans/../../a.xml", &digest(PLAN))), "is not a path within the folder"),
        (with(&file("/etc/passwd", &digest(PLAN))), "is not a path within the folder"),
        (with(&file("plans", &digest(PLAN))), "is not a file"),
        (with(&file("plans/z.xml", &digest(PLAN))), "cannot be read"),
        (with(&file("plans/a.xml", "12")), "has no digest of 64 digits"),
        (with(&json!([{"sha256": digest(PLAN)}])), "a file has no `path`"),
        (with(&json!([])), "has no plans"),
        (said(&bundle("{", &[])), "is not JSON"),
        (said(&bundle("{}", &[])), "is not the manifest of a bundle"),
        (said(&bundle(r#"{"kind": "plan-bundle", "format": "msccl-xml"}"#, &[])), "but MPI needs oneccl-xml"),
        (said(&bundle(r#"{"kind": "plan-bundle", "format": "oneccl-xml"}"#, &[])), "has no `items`"),
        (said(&tempfile::tempdir().unwrap()), "has no plans"),
        (Folder::read(Path::new("/nowhere")).unwrap_err().to_string(), "cannot be read"),
    ] {
        assert!(found.contains(part), "`{found}` does not say `{part}`");
    }
}

#[test]
fn hostile_plans_stay_in_the_folder_and_are_never_given_out() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("a.xml"), b"\xff\xfe").unwrap();
    fs::write(place.path().join("b.xml"), PLAN.replace("cnt=\"1\"", "cnt=\"4294967295\"")).unwrap();
    fs::write(place.path().join("c.xml"), PLAN.replace("nranks=\"5\"", "nranks=\"4\"")).unwrap();
    fs::write(place.path().join("d.xml"), "<onecclplan>".repeat(100_000)).unwrap();
    fs::write(place.path().join("e.xml"), PLAN).unwrap();
    let folder = Folder::read(place.path()).unwrap();
    let proved: Vec<bool> = folder.files().iter().map(|file| file.proved().is_ok()).collect();
    assert_eq!(proved, [false, false, false, false, true]);
}
