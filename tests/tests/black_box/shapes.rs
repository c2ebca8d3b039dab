//! What was found for some machines serves others that are connected alike, through the real binaries: as a hit, with
//! files that hold under their names and ranks, also after a restart, and byte for byte what they would have had
//! without it.

#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

use std::fmt::Write as _;
use std::fs;
use std::process::Child;

use canopy_tests::{Bench, Daemon};
use serde_json::Value;

/// Boxes of four, each with a switch of its own and all joined by another, as machines from `first` on in an order of
/// their own. Ranks go around the boxes if `spread`, else box by box.
fn cluster(first: usize, boxes: usize, spread: bool) -> String {
    let mut text = format!("canopy: 1\nname: machines-{first}\nnodes:\n  - {{id: spine{first}, kind: switch}}\n");
    let mut links = "links:\n".to_owned();
    for number in 0..boxes {
        let machine = format!("m{}", first + (number * 7 + 3) % 100);
        writeln!(text, "  - {{id: {machine}-nv, kind: switch, box: {machine}}}").unwrap();
        for device in 0..4 {
            let rank = if spread { device * boxes + number } else { 4 * (boxes - 1 - number) + (device ^ 1) };
            let id = format!("{machine}g{device}");
            writeln!(text, "  - {{id: {id}, rank: {rank}, host: {machine}, box: {machine}}}").unwrap();
            for (other, rate) in [(format!("{machine}-nv"), "300GB/s"), (format!("spine{first}"), "25GB/s")] {
                writeln!(links, "  - {{from: {id}, to: {other}, bandwidth: {rate}, both: true}}").unwrap();
            }
        }
    }
    text + &links
}

struct Site {
    bench: Bench,
    daemon: Option<Daemon>,
}

impl Site {
    fn open() -> Self {
        let bench = Bench::default();
        let daemon = Some(Daemon::start(&bench, &[]));
        Self { bench, daemon }
    }

    fn restart(&mut self) {
        self.daemon.take().unwrap().stop();
        self.daemon = Some(Daemon::start(&self.bench, &[]));
    }

    /// What the server says, and the file, which has been verified.
    #[track_caller]
    fn plan(&self, topology: &str, more: &[&str]) -> (Value, Vec<u8>) {
        fs::write(self.bench.file("cluster.yaml"), topology).unwrap();
        let server = self.daemon.as_ref().unwrap().address();
        let plan = ["plan", "cluster.yaml", "-o", "plan", "--json", "--server", server];
        let reply = self.bench.canopy(&[&plan, more].concat()).exits(0).json();
        let of_all = ["--topology", "cluster.yaml"];
        let network = if more.contains(&"--ranks") { &[][..] } else { &of_all };
        self.bench.canopy(&[&["verify", "plan"], network].concat()).exits(0);
        (reply, fs::read(self.bench.file("plan")).unwrap())
    }
}

#[test]
fn other_machines_of_the_same_shape_are_served_from_the_cache() {
    let mut site = Site::open();
    let requests: [&[&str]; 6] = [
        &["-c", "allgather", "--format", "msccl-xml"],
        &["-c", "allreduce", "--format", "msccl-xml"],
        &["-c", "all-to-all"],
        &["-c", "broadcast", "--root", "2"],
        &["-c", "reduce-scatter", "--shares", "1,0,2x10"],
        &["-c", "allgather", "--ranks", "0-7"],
    ];
    let mut known = Vec::new();
    for request in requests {
        let (reply, _) = site.plan(&cluster(0, 3, false), request);
        assert_eq!(
            (&reply["cache"], &reply["topology"]["hash_kind"]),
            (&"miss".into(), &"canonical".into()),
            "{reply}"
        );
        known.push((reply["topology"]["hash"].clone(), reply["optimality"].clone()));
    }
    for restarted in [false, true] {
        for (request, (hash, optimality)) in requests.iter().zip(&known) {
            // Others each time, so that no plan is there yet. Groups and shares say which ranks are on one machine.
            let first = if restarted { 500 } else { 200 };
            let machines = cluster(first, 3, ["allreduce", "all-to-all", "broadcast"].contains(&request[1]));
            let (reply, file) = site.plan(&machines, request);
            assert_eq!((&reply["cache"], &reply["topology"]["hash"]), (&"hit".into(), hash), "{request:?}: {reply}");
            assert_eq!(&reply["optimality"], optimality, "{request:?}");
            // A server that has never seen the shape gives the same bytes.
            let (fresh, made) = Site::open().plan(&machines, request);
            assert_eq!((&fresh["cache"], &fresh["plan"]), (&"miss".into(), &reply["plan"]));
            assert_eq!(file, made, "{request:?}");
        }
        site.restart();
    }
    // Another shape by one link.
    let slower = cluster(200, 3, true).replacen("25GB/s", "24GB/s", 1);
    assert_eq!(site.plan(&slower, requests[0]).0["cache"], "miss");
}

#[test]
fn many_machines_of_one_shape_at_once_cost_one_search() {
    let site = Site::open();
    let server = site.daemon.as_ref().unwrap().address();
    let children: Vec<Child> = (0..6)
        .map(|number| {
            let name = format!("cluster-{number}.yaml");
            fs::write(site.bench.file(&name), cluster(100 * number, 8, number % 2 == 0)).unwrap();
            let mut command = site.bench.command("canopy");
            command.args([
                "plan",
                &name,
                "-c",
                "allgather",
                "-o",
                &format!("plan-{number}"),
                "--json",
                "--server",
                server,
            ]);
            command.stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let caches: Vec<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
            reply["cache"].as_str().unwrap().to_owned()
        })
        .collect();
    let misses = caches.iter().filter(|cache| *cache == "miss").count();
    assert_eq!((misses, caches.iter().filter(|cache| *cache == "hit").count()), (1, 5), "{caches:?}");
}
