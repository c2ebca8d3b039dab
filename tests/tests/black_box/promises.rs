//! What is promised of every answer, by the numbers of the rules: same request, same bytes; one search for all who ask
//! for the same. Rule 3, that a plan is for its own devices only, is in `rank_maps.rs`. Against real servers and the
//! real command, over real sockets.

#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

use std::thread;

use canopy_tests::{Bench, Daemon};

/// Requests whose plans come about in different ways: topology, collective, format, and more arguments.
const REQUESTS: [(&str, &str, &str, &[&str]); 7] = [
    ("dgx-a100:boxes=2,faults=nics:2@1/2+seed:1", "allreduce", "msccl-xml", &["--instances", "auto"]),
    ("random-regular:n=24,d=3,seed=5", "allgather", "json", &[]),
    ("mesh:3x4,down=00-01", "allreduce", "json", &[]),
    ("random-euler:n=12,switches=4,seed=3", "reduce-scatter", "json", &["--tolerance", "1%"]),
    ("leaf-spine:leaves=2,hosts=4,spines=2", "broadcast", "json", &["--root", "3"]),
    ("torus:3x3", "all-to-all", "msccl-xml", &["--placement", "n[1-9]:0"]),
    ("dgx-a100:boxes=2", "gather", "json", &["--ranks", "4-11", "--shares", "1,0,2x6"]),
];

/// Id and bytes of the plan of a request.
fn plan(bench: &Bench, daemon: &Daemon, number: usize, name: &str) -> (String, String, Vec<u8>) {
    let (topology, collective, format, more) = REQUESTS[number];
    let file = format!("{name}-{number}");
    let arguments = ["plan", topology, "-c", collective, "--format", format, "-o", &file, "--json", "--deadline", "5m"];
    let reply = bench.canopy(&[&arguments[..], more, &["--server", daemon.address()]].concat()).exits(0).json();
    let text = |field: &str| reply[field].as_str().unwrap().to_owned();
    (text("plan"), text("cache"), std::fs::read(bench.file(&file)).unwrap())
}

/// On a server with one worker, one by one; on another with four, all at once and twice; and on the first one again when
/// nothing is left of what it made.
#[test]
fn rule_1_the_same_request_gives_the_same_bytes_on_every_server() {
    let (one, many) = (Bench::default(), Bench::default());
    let (alone, crowded) = (Daemon::start(&one, &["--workers", "1"]), Daemon::start(&many, &["--workers", "4"]));
    let first: Vec<_> = (0..REQUESTS.len()).map(|number| plan(&one, &alone, number, "first")).collect();
    assert!(first.iter().all(|(_, cache, bytes)| cache == "miss" && !bytes.is_empty()));
    let same = |number: usize, (id, _, bytes): (String, String, Vec<u8>), where_made: &str| {
        let (request, (expected, _, content)) = (REQUESTS[number], &first[number]);
        assert_eq!(&id, expected, "{request:?} {where_made}");
        assert!(&bytes == content, "{request:?} has other bytes {where_made}");
    };
    thread::scope(|scope| {
        for name in ["left", "right"] {
            for number in 0..REQUESTS.len() {
                let (many, crowded, same) = (&many, &crowded, &same);
                scope.spawn(move || same(number, plan(many, crowded, number, name), "among others"));
            }
        }
    });
    one.canopy(&["plans", "evict", "--filter", "ranks>0", "--server", alone.address()]).exits(0);
    for number in (0..REQUESTS.len()).rev() {
        let again = plan(&one, &alone, number, "again");
        assert_eq!(again.1, "miss");
        same(number, again, "made again");
    }
}

#[test]
fn rule_2_ten_thousand_requests_at_once_cost_one_search_and_get_one_plan() {
    let bench = Bench::default();
    let daemon = Daemon::start(&bench, &[]);
    let burst = ["bench", "dgx-a100:boxes=2", "-c", "allgather", "--call", "plan", "--cold", "--json"];
    let many = ["--burst", "10000", "--concurrency", "10000", "--connections", "3", "--deadline", "5m"];
    let done = bench.canopy(&[&burst[..], &many, &["--server", daemon.address()]].concat()).exits(0).json();
    let call = &done["calls"][0];
    let counts = ["requests", "failed", "plans"].map(|field| call[field].as_u64());
    assert_eq!(counts, [Some(10_000), Some(0), Some(1)], "{done}");
    assert_eq!(call["cache"]["miss"].as_u64(), Some(1), "{done}");
    let stats = bench.canopy(&["stats", "--json", "--server", daemon.address()]).exits(0).json();
    let held = ["syntheses", "plans", "schedules"].map(|field| stats[field].as_u64());
    assert_eq!(held, [Some(1); 3], "{stats}");
}

/// What cannot be planned costs one search, too, until somebody wants another try.
#[test]
fn a_request_without_a_plan_is_searched_for_once() {
    let bench = Bench::default();
    let daemon = Daemon::start(&bench, &["--negative-ttl", "1h"]);
    let canopy = |arguments: &[&str]| bench.canopy(&[arguments, &["--server", daemon.address()]].concat());
    let searches = || canopy(&["stats", "--json"]).exits(0).json()["syntheses"].as_u64();
    let ask = || canopy(&["plan", "mesh:2x2,down=00-01+00-10", "-c", "allgather", "-o", "none.json"]).exits(3);
    let first = ask();
    assert!(first.stderr.contains("split in two") && !first.stderr.contains("not tried again"), "{first:?}");
    let again = ask();
    assert!(again.stderr.contains("split in two") && again.stderr.contains("not tried again"), "{again:?}");
    assert_eq!(searches(), Some(1));
    let forgotten = canopy(&["plans", "forget-refusals", "--json"]).exits(0).json();
    assert_eq!(forgotten["forgotten"].as_u64(), Some(1));
    assert!(!ask().stderr.contains("not tried again"));
    assert_eq!(searches(), Some(2));
}

/// The command says whose its calls are, and the server keeps the plans of those apart that it is told to.
#[test]
fn the_plans_of_an_isolated_tenant_are_its_own() {
    let bench = Bench::default();
    let daemon = Daemon::start(&bench, &["--isolate-tenants", "red,green"]);
    let canopy = |tenant: &str, arguments: &[&str]| {
        let whose: &[&str] = if tenant.is_empty() { &[] } else { &["--tenant", tenant] };
        bench.canopy(&[arguments, whose, &["--server", daemon.address()]].concat())
    };
    let planned = |tenant: &str| {
        let reply = canopy(tenant, &["plan", "ring:4", "-c", "allgather", "-o", "plan.json", "--json"]).exits(0).json();
        ["plan", "cache"].map(|field| reply[field].as_str().unwrap().to_owned())
    };
    let [red, made] = planned("red");
    let [shared, apart] = planned("blue");
    assert_eq!((made.as_str(), apart.as_str()), ("miss", "miss"));
    assert_eq!((planned(""), planned("red")), ([shared, "hit".to_owned()], [red.clone(), "hit".to_owned()]));
    let shown = canopy("red", &["plans", "show", &red, "--json"]).exits(0).json();
    assert_eq!(shown["provenance"]["tenant"], "red");
    for other in ["", "blue", "green"] {
        let refused = canopy(other, &["plans", "show", &red]).exits(2);
        assert!(refused.stderr.contains("is not in the cache"), "{refused:?}");
        let listed = canopy(other, &["plans", "list", "--json"]).exits(0).json();
        assert_eq!(listed["total"].as_u64(), Some(1), "{other}: {listed}");
    }
    let wrong = canopy("a/b", &["plans", "list"]).exits(2);
    assert!(wrong.stderr.contains("is not a tenant name"), "{wrong:?}");
}
