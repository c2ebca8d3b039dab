//! `canopy job leases`, against a server.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Serving, Workspace, check_members, sha256};

#[test]
fn a_job_that_holds_a_lease_is_told_of_other_plans() {
    let workspace = Workspace::new();
    let _server = Serving::with(&workspace, "--fault-debounce 100ms --plan-ahead=false");
    let fetch = "fetch dgx-a100:boxes=2 --collective allgather --job 17 --out job --lease 1h --deadline 30s --strict";
    let fetched = workspace.run(fetch);
    assert!(fetched.status == Some(0) && fetched.stderr.contains("for job 17 lasts until"), "{fetched:?}");

    let listed = workspace.json("leases list --json");
    check_members(&listed, &["canopy", "command", "leases", "total"]);
    let lease = &listed["leases"][0];
    check_members(lease, &["name", "job", "topology", "plans", "created", "expires"]);
    let plan = &lease["plans"][0];
    assert_eq!(
        (&lease["job"], &plan["current"], &plan["replanning"]),
        (&"17".into(), &plan["original"], &false.into())
    );

    let mut watch = workspace.command("leases watch --job 17 --count 1 --out plans/new --json");
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(watch.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("watching"), "{said}");
    let reported = workspace.json("faults report dgx-a100:boxes=2 gpu:b0g3 --json");
    assert_eq!(reported["leases"], 1);
    let mut told = String::new();
    watch.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(watch.wait().unwrap().success());
    let told: Value = serde_json::from_str(told.trim()).unwrap();
    assert_eq!(
        (&told["event"], &told["old_plan"], &told["job"]),
        (&"superseded".into(), &plan["original"], &"17".into())
    );
    let survivors = told["survivors"].as_array().unwrap();
    assert!(survivors.len() == 15 && !survivors.contains(&3.into()), "{told}");

    // The new plan is there before its event is: whole, and named after the job, the lease and the place in it.
    let files = told["files"].as_array().unwrap();
    let path = files[0]["path"].as_str().unwrap();
    let digits = lease["name"].as_str().unwrap().strip_prefix("leases/").unwrap();
    assert_eq!((files.len(), path), (1, format!("plans/new/17-{digits}-0.msccl.xml").as_str()));
    assert_eq!(files[0]["sha256"].as_str().unwrap(), sha256(&workspace.path(path)));
    assert_eq!(workspace.json(&format!("verify {path} --json"))["ok"], true);
    let id = told["new_plan"].as_str().unwrap();
    workspace.json(&format!("plans get {id} --format msccl-xml -o again.xml --json"));
    assert_eq!(sha256(&workspace.path("again.xml")), sha256(&workspace.path(path)));

    let past = workspace.text("leases events --job 17");
    assert!(past.lines().count() >= 1 && past.contains("job 17"), "{past}");
    assert_eq!(workspace.text("leases events --job 18"), "");
    let table = workspace.run("leases list --filter replanned=true");
    assert!(table.stdout.contains("replanned"), "{table:?}");
    let name = lease["name"].as_str().unwrap();
    assert_eq!(workspace.json(&format!("leases renew {name} --ttl 2h --json"))["lease"]["name"], name);
    assert_eq!(workspace.json("leases renew --job 17 --ttl 2h --json")["leases"][0]["name"], name);
    let shown = workspace.text("leases show --job 17");
    assert!(shown.contains(name) && shown.contains("replanned: plans/"), "{shown}");
    assert_eq!(workspace.json(&format!("leases show {name} --json"))["leases"][0]["job"], "17");
    let again = workspace.json("resynth --job 17 --fault gpu:b0g3 --json");
    assert_eq!((&again["collective"], again["survivors"].as_array().map(Vec::len)), (&"allgather".into(), Some(15)));
    workspace.refused("resynth --job 18 --fault gpu:b0g3", 2, &["job `18` holds no lease", "canopy job leases list"]);
    workspace.refused("leases show --job 18", 2, &["job `18` holds no lease", "canopy job leases list"]);
    let released = workspace.run("release --job 17 --dir job --lease --strict");
    assert_eq!(released.status, Some(0), "{released:?}");
    assert!(!workspace.path("job").exists());
    assert_eq!(workspace.json("leases list --json")["total"], 0);
    assert_eq!(workspace.json("leases release --job 17 --json")["released"], 0);
    workspace.refused("leases renew leases/0000000000000007", 2, &["does not exist or has ended"]);
}
