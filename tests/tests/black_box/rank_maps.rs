//! A plan is for the devices it was made for: rule 3 of what is promised, and what it rests on. Against a real server
//! and the real command, over real sockets.

#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

use canopy_tests::{Bench, Daemon, Run};
use serde_json::Value;

/// Two boxes of two, by their boxes' names only.
const BOXES: &str = "dgx-a100:boxes=2,gpus=2";

/// A ring of four on two machines, whose names are long.
const CLUSTER: &str = "\
canopy: 1
nodes:
  - {id: g0, host: n1.site}
  - {id: g1, host: n1.site}
  - {id: g2, host: n2.site}
  - {id: g3, host: n2.site}
links:
  - {from: g0, to: g1, bandwidth: 100GB/s, both: true}
  - {from: g1, to: g2, bandwidth: 10GB/s, both: true}
  - {from: g2, to: g3, bandwidth: 100GB/s, both: true}
  - {from: g3, to: g0, bandwidth: 10GB/s, both: true}
";

struct Site {
    bench: Bench,
    daemon: Daemon,
}

impl Site {
    fn open() -> Self {
        let bench = Bench::default();
        std::fs::write(bench.file("cluster.yaml"), CLUSTER).unwrap();
        let daemon = Daemon::start(&bench, &[]);
        Self { bench, daemon }
    }

    fn canopy(&self, arguments: &[&str]) -> Run {
        self.bench.canopy(&[arguments, &["--server", self.daemon.address()]].concat())
    }

    fn plan(&self, topology: &str, more: &[&str]) -> Run {
        let plan = ["plan", topology, "-c", "allgather", "--format", "msccl-xml", "-o", "plan.xml", "--json"];
        self.canopy(&[&plan, more].concat())
    }

    /// The id of a plan, what the cache had to do with it, and its rank map.
    #[track_caller]
    fn planned(&self, topology: &str, more: &[&str]) -> (String, String, Option<String>) {
        let reply = self.plan(topology, more).exits(0).json();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        (text(&reply["plan"]).unwrap(), text(&reply["cache"]).unwrap(), text(&reply["rank_map"]))
    }
}

/// Asked for by whatever way, a plan is refused to a client whose devices differ from the plan's, naming the first rank.
#[test]
fn rule_3_a_plan_is_refused_to_a_client_whose_rank_map_differs() {
    let site = Site::open();
    let (plan, _, map) = site.planned(BOXES, &["--placement", "gpu[7-8]:0-1"]);
    assert_eq!(map.as_deref(), Some("gpu7:0-1,gpu8:0-1"));
    let show = |more: &[&str]| site.canopy(&[&["plans", "show", &plan], more].concat());
    for explain in [&[][..], &["--explain"]] {
        show(explain).exits(0);
        for same in ["gpu[7-8]:0-1", "gpu7.site:0-1,gpu8:0-1"] {
            show(&[&["--placement", same], explain].concat()).exits(0);
        }
        for (other, first, said) in [
            ("gpu8:0-1,gpu7:0-1", 0, "rank 0 of plan"),
            ("gpu7:0,gpu8:0,gpu7:1,gpu8:1", 1, "is on gpu7:1, but on gpu8:0 in the given placement"),
            ("gpu7:0-1,gpu8:0", 3, "is on gpu8:1, but not there in the given placement"),
            ("gpu7:0-1,gpu8:0-2", 4, "is not there, but on gpu8:2 in the given placement"),
        ] {
            let refused = show(&[&["--placement", other], explain].concat()).exits(3);
            assert!(refused.stderr.contains(said) && refused.stderr.contains(&format!("rank {first} ")), "{refused:?}");
            assert!(refused.stderr.contains("request a plan for this placement"), "{refused:?}");
        }
    }
    let (assumed, _, map) = site.planned("ring:4", &[]);
    assert_eq!(map, None);
    let refused = site.canopy(&["plans", "show", &assumed, "--placement", "gpu7:0-3"]).exits(3);
    assert!(refused.stderr.contains("has no rank map"), "{refused:?}");
}

/// A plan made for one rank map answers no request for another: that has one of its own, made of the same schedule.
#[test]
fn rule_3_a_plan_for_one_rank_map_never_answers_another() {
    let site = Site::open();
    let (one, first, _) = site.planned(BOXES, &["--placement", "a:0-1,b:0-1"]);
    let (same, again, _) = site.planned(BOXES, &["--placement", "a:0-1,b:0-1"]);
    assert_eq!((&one, first.as_str(), again.as_str()), (&same, "miss", "hit"));
    for other in ["b:0-1,a:0-1", "a:1+0,b:0-1", "a:0-1,c:0-1"] {
        let (plan, cache, map) = site.planned(BOXES, &["--placement", other]);
        assert_eq!((map.as_deref(), cache.as_str()), (Some(other), "hit"));
        assert_ne!(plan, one);
        let lookup = site.canopy(&["plans", "show", &plan, "--placement", "a:0-1,b:0-1"]).exits(3);
        assert!(lookup.stderr.contains("rank"), "{lookup:?}");
    }
    // On a network that knows its machines, slots choose ranks, and the file is written for these.
    let whole = site.planned("cluster.yaml", &[]);
    assert_eq!(whole.2.as_deref(), Some("n1.site:0-1,n2.site:0-1"));
    assert_eq!(site.planned("cluster.yaml", &["--placement", "n[1-2]:0-1"]).0, whole.0);
    let in_order = std::fs::read(site.bench.file("plan.xml")).unwrap();
    let crossed = site.planned("cluster.yaml", &["--placement", "n1:0,n2:0,n1:1,n2:1"]);
    assert_eq!((crossed.2.as_deref(), crossed.1.as_str()), (Some("n1.site:0,n2.site:0,n1.site:1,n2.site:1"), "hit"));
    assert_ne!(std::fs::read(site.bench.file("plan.xml")).unwrap(), in_order);
    site.bench.canopy(&["verify", "plan.xml"]).exits(0);
    let pair = site.planned("cluster.yaml", &["--placement", "n2:0-1"]);
    assert_eq!(site.planned("cluster.yaml", &["--ranks", "2-3"]).0, pair.0);
}

#[test]
fn a_placement_that_cannot_be_is_refused_by_its_first_rank() {
    let site = Site::open();
    for (topology, arguments, said) in [
        (
            "cluster.yaml",
            &["--placement", "n1:0-1,n3:0-1"][..],
            "rank 2 is on node n3, which is not one of the topology's 2",
        ),
        ("cluster.yaml", &["--placement", "n1:0-2,n2:0"], "rank 2 is on n1:2, but that node has 2 devices"),
        ("cluster.yaml", &["--placement", "n1:0+0"], "ranks 0 and 1 are both on n1:0"),
        (
            "cluster.yaml",
            &["--placement", "n2:0-1", "--ranks", "2,1"],
            "rank 1 is on n2:1, which is rank 3 of the topology, but the list names rank 1",
        ),
        (BOXES, &["--placement", "x:0-2,y:0"], "rank 2 is on node x and rank 0 on x"),
        (BOXES, &["--placement", "x:0-1"], "2 ranks are placed, but 4 take part"),
        ("ring:4", &["--placement", "x:"], "places no rank"),
    ] {
        let refused = site.plan(topology, arguments).exits(2);
        assert!(refused.stderr.contains(said), "{arguments:?}: {refused:?}");
    }
}

#[test]
fn without_machines_the_rank_map_is_assumed_and_said_to_be() {
    let site = Site::open();
    let assumed = site.plan("ring:4", &[]).exits(0);
    assert!(assumed.stderr.contains("RANK_MAP_ASSUMED"), "{assumed:?}");
    for known in [&[BOXES][..], &["cluster.yaml"], &["ring:4", "--placement", "x:0-3"]] {
        let reply = site.plan(known[0], &known[1..]).exits(0);
        assert!(!reply.stderr.contains("RANK_MAP_ASSUMED"), "{reply:?}");
    }
}

/// The hooks of a job place its ranks on its nodes: another job of equal size gets a plan of its own.
#[test]
fn the_nodes_of_a_job_are_the_rank_map_of_its_plans() {
    let site = Site::open();
    let fetch = |nodes: &str, folder: &str| {
        let job =
            ["fetch", BOXES, "-c", "allgather", "--job", "7", "--nodes", nodes, "--out", folder, "--deadline", "30s"];
        site.canopy(&[&job[..], &["--ranks", "0-1", "--strict"]].concat()).exits(0);
        let manifest = std::fs::read_to_string(site.bench.file(folder).join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        manifest["files"][0]["plan"].as_str().unwrap().to_owned()
    };
    let one = fetch("gpu[1-2]", "one");
    let shown = site.canopy(&["plans", "show", &one, "--json"]).exits(0).json();
    assert_eq!(shown["rank_map"], "gpu1:0-1,gpu2:0-1");
    assert_eq!(fetch("gpu[1-2]", "again"), one);
    assert_ne!(fetch("gpu[3-4]", "two"), one);
}
