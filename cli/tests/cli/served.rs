//! Commands say of a network with a server what they say without one, whether the network is an expression, a file or one
//! that the server stores.

use serde_json::Value;

use crate::support::{Serving, Workspace};

const CASES: [(&str, &str); 11] = [
    ("dgx-h100:boxes=2", "allreduce"),
    ("dgx-h100:boxes=2", "allgather"),
    ("dgx-h100:boxes=2,nvls=true", "allreduce"),
    ("dgx-h100:boxes=2,nvls=false", "allreduce"),
    ("dgx-h100:boxes=2,down=b0g3-ib", "allreduce"),
    ("dgx-h100:boxes=4", "all-to-all"),
    ("dgx-a100:boxes=2", "allreduce"),
    ("gb200-nvl72:racks=2,gpus=8", "allreduce"),
    ("mi300x:boxes=2", "allreduce"),
    ("torus:4x4", "all-to-all"),
    ("dgx-a100:boxes=2,gpus=4,sharp=true", "allreduce"),
];

/// A server, and the ways to name a network for it.
struct Routes {
    workspace: Workspace,
    server: String,
    _serving: Serving,
}

impl Routes {
    fn new() -> Self {
        let workspace = Workspace::new();
        let serving = Serving::with(&workspace, "--plan-ahead=false");
        let server = format!("--server unix:{}", workspace.path("data/canopy.sock").display());
        Self { workspace, server, _serving: serving }
    }

    /// The network as an expression, as a file, and as the id by which the server has it.
    fn names(&self, network: &str) -> [String; 3] {
        let Self { workspace, server, .. } = self;
        workspace.write("network.yaml", workspace.text(&format!("topology generate {network}")));
        let stored = workspace.json(&format!("topology put network.yaml {server} --json"));
        [network.to_owned(), "network.yaml".to_owned(), stored["id"].as_str().unwrap().to_owned()]
    }
}

/// All lines but the first, which has the name of the network in it.
fn told(text: &str) -> Vec<&str> {
    text.lines().skip(1).collect()
}

#[test]
fn bounds_are_the_same_with_a_server_as_without() {
    let routes = Routes::new();
    let Routes { workspace, server, .. } = &routes;
    for (network, collective) in CASES {
        let bare = workspace.text(&format!("bound {network} -c {collective}"));
        let object = workspace.json(&format!("bound {network} -c {collective} --json"));
        for name in routes.names(network) {
            let served = workspace.text(&format!("bound {name} -c {collective} {server}"));
            assert_eq!(told(&served), told(&bare), "{network} as {name}");
            let served = workspace.json(&format!("bound {name} -c {collective} {server} --json"));
            assert_eq!(served, object, "{network} as {name}");
        }
    }
}

/// What a plan is judged by is its bound, by every route, and the server states it of the plan that it keeps.
#[test]
fn plans_state_the_bounds_of_their_network_by_every_route() {
    let routes = Routes::new();
    let Routes { workspace, server, .. } = &routes;
    for (network, collective) in CASES {
        let bound = workspace.json(&format!("bound {network} -c {collective} --json"));
        let with = bound.get("with_in_network");
        for name in routes.names(network) {
            let run = workspace.run(&format!("plan {name} -c {collective} -o plan.json {server}"));
            assert_eq!(run.status, Some(0), "{run:?}");
            assert_eq!(run.stderr.contains("if switches only forward\n"), with.is_some(), "{name}: {}", run.stderr);
            assert_eq!(run.stderr.contains("\nwith NVLS: "), with.is_some(), "{name}: {}", run.stderr);
            let plan = workspace.json(&format!("plan {name} -c {collective} -o plan.json {server} --json"));
            assert_eq!((&plan["bound"], plan.get("with_in_network")), (&bound["bound"]["algbw"], with), "{name}");
            let id = plan["plan"].as_str().unwrap();
            let shown: Value = workspace.json(&format!("plans show {id} {server} --json"));
            assert_eq!((&shown["bound"], shown.get("with_in_network")), (&plan["bound"], with), "{name}");
            let text = workspace.text(&format!("plans show {id} {server} --explain"));
            assert_eq!(text.contains("bytes/s if switches only forward\n"), with.is_some(), "{text}");
            let explained = workspace.json(&format!("explain {id} {server} --size 1GiB --json"));
            assert_eq!(explained["bound"]["algbw"], plan["bound"], "{name}");
            assert_eq!(explained.get("with_in_network"), with, "{name}");
        }
    }
}

/// What is wrong with the network is said of the network as it was given.
#[test]
fn errors_name_the_network_with_a_server_as_without() {
    let Routes { workspace, server, .. } = &Routes::new();
    for command in
        ["bound ring:4,nope=1 -c allreduce", "faults what-if ring:4,nope=1 -c allreduce", "order ring:4,nope=1"]
    {
        for server in ["", server] {
            workspace.refused(
                &format!("{command} {server}"),
                2,
                &["ring:4,nope=1", ": position 8: `ring` has no key `nope`"],
            );
        }
    }
}
