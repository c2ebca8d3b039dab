//! Folders of random jobs: families of networks with other names and rates, slow and dead links, on one layout or several.
//!
//! `CANOPY_CASES=300 cargo test --workspace --test cli -- groups::folders --nocapture` makes more of them.

use serde_json::{Value, json};

use super::number;
use crate::support::Workspace;

/// Networks of which some have switches, boxes, and links of one direction.
const NETWORKS: [&str; 20] = [
    "ring:6",
    "mesh:2x4",
    "torus:3x3",
    "torus:4x4",
    "hypercube:3",
    "hypercube:4",
    "complete:6",
    "bipartite:3x3",
    "hamming:2x3",
    "genkautz:n=8,d=2",
    "circulant:n=8,offsets=1+2",
    "dragonfly:3x4",
    "dgx-a100:boxes=2",
    "hgx:boxes=3,gpus=4,nics=2,nv=300GB/s,nic=25GB/s",
    "mi250:boxes=1",
    "rail:boxes=4,gpus=4,nv=300GB/s,nic=25GB/s",
    "leaf-spine:leaves=3,hosts=3,spines=2,oversub=2",
    "fat-tree:k=4",
    "random-regular:n=8,d=3,seed=5",
    "random-euler:n=6,switches=2,seed=7",
];
const COLLECTIVES: [&str; 12] = [
    "allreduce",
    "allreduce",
    "allreduce",
    "allreduce",
    "allgather",
    "reduce-scatter",
    "broadcast",
    "reduce",
    "all-to-all",
    "scatter",
    "gather",
    "next",
];
const SIZES: [&str; 6] = ["1GB", "6GB", "64MiB", "777777777", "1000000", "8KiB"];
const OPTIONS: [&str; 12] = [
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "--levels",
    "--levels --max-depth 4",
    "--max-chunks 1",
    "--max-chunks 3",
    "--max-depth 3",
];

/// Numbers that look like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound as u64).unwrap()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        (1..all.len()).rev().for_each(|place| all.swap(place, self.below(place + 1)));
    }

    /// Sizes of dimensions whose product is the number of ranks.
    fn dimensions(&mut self, ranks: usize) -> Vec<usize> {
        let (mut left, mut sizes) = (ranks, Vec::new());
        while left > 1 {
            let divisors: Vec<usize> = (2..=left).filter(|size| left.is_multiple_of(*size)).collect();
            let size = if sizes.len() == 2 { left } else { *self.of(&divisors) };
            sizes.push(size);
            left /= size;
        }
        sizes
    }

    /// Changes rates: some links slow, any of them odd, or some dead; in one direction or both.
    fn damage(&mut self, links: &mut Vec<Value>) {
        let rate = |link: &Value| link["bandwidth"].as_u64().unwrap();
        match self.below(5) {
            0 => {}
            1 => {
                for _ in 0..=self.below(3) {
                    let (link, parts) = (self.below(links.len()), self.below(7) as u64 + 1);
                    links[link]["bandwidth"] = json!(rate(&links[link]) * parts / 8);
                }
            }
            2 => {
                for link in links.iter_mut().filter(|_| self.below(2) == 0) {
                    link["bandwidth"] = json!(rate(link) * 61 / 97 + 1);
                }
            }
            3 => {
                let dead = links.swap_remove(self.below(links.len()));
                links.retain(|link| (&link["from"], &link["to"]) != (&dead["to"], &dead["from"]));
            }
            _ => {
                links.swap_remove(self.below(links.len()));
            }
        }
    }
}

/// A topology file with other names, numbers of ranks and rates; how many ranks it has.
fn write_network(workspace: &Workspace, chance: &mut Chance) -> usize {
    workspace.text(&format!("topology generate {} --to json -o plain.json", chance.of(&NETWORKS)));
    let mut network: Value = serde_json::from_slice(&workspace.read("plain.json")).unwrap();
    let mut links = Vec::new();
    for link in network["links"].as_array().unwrap() {
        let text = link["bandwidth"].as_str().unwrap();
        let (amount, unit) = text.split_at(text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap());
        let factor = match unit {
            "GB/s" => 1e9,
            "MB/s" => 1e6,
            _ => 1.0,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are whole and positive")]
        let rate = (amount.parse::<f64>().unwrap() * factor).round() as u64;
        let latency = link.get("latency").cloned().unwrap_or_else(|| "0ns".into());
        let ends = [(&link["from"], &link["to"]), (&link["to"], &link["from"])];
        for (from, to) in ends.into_iter().take(if link["both"] == true { 2 } else { 1 }) {
            links.push(json!({"from": from, "to": to, "bandwidth": rate, "latency": latency}));
        }
    }
    chance.damage(&mut links);
    let nodes = network["nodes"].as_array_mut().unwrap();
    let mut names: Vec<usize> = (0..nodes.len()).collect();
    let mut ranks: Vec<usize> = (0..nodes.iter().filter(|node| node.get("rank").is_some()).count()).collect();
    let count = ranks.len();
    if chance.below(2) == 0 {
        chance.shuffle(&mut names);
        chance.shuffle(&mut ranks);
    }
    let ids: Vec<Value> = nodes.iter().map(|node| node["id"].clone()).collect();
    let renamed = |id: &Value| json!(format!("x{}", names[ids.iter().position(|other| other == id).unwrap()]));
    for node in nodes.iter_mut() {
        node["id"] = renamed(&node["id"]);
        if node.get("rank").is_some() {
            node["rank"] = json!(ranks.pop().unwrap());
        }
    }
    for link in &mut links {
        (link["from"], link["to"]) = (renamed(&link["from"]), renamed(&link["to"]));
    }
    (network["links"], network["name"]) = (links.into(), "random".into());
    workspace.write("network.json", network.to_string());
    count
}

/// Describes a job on the network, and returns the options that it is planned with.
fn write_job(workspace: &Workspace, chance: &mut Chance) -> &'static str {
    let ranks = write_network(workspace, chance);
    let sizes = chance.dimensions(ranks);
    let names = &["a", "b", "c"][..sizes.len()];
    let layout: Vec<String> = names.iter().zip(sizes).map(|(name, size)| format!("{name}={size}")).collect();
    let groups: Vec<Value> = (0..=chance.below(3))
        .map(|number| {
            let over: Vec<&str> = match chance.below(2) {
                0 => vec![*chance.of(names)],
                _ => names.to_vec(),
            };
            let (collective, size) = (chance.of(&COLLECTIVES), chance.of(&SIZES));
            json!({"name": format!("g{number}"), "over": over, "collective": collective, "size": size})
        })
        .collect();
    let mut job = json!({"topology": "network.json", "layout": layout.join(" "), "groups": groups});
    job["forward"] = json!(chance.below(4) > 0);
    let options = *chance.of(&OPTIONS);
    if chance.below(3) == 0 {
        let mut order: Vec<usize> = (0..ranks).collect();
        chance.shuffle(&mut order);
        job["ranks"] = json!(order.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
    }
    workspace.write("job.json", job.to_string());
    options
}

/// Plans a random job into a folder and verifies it: whether its plans take longer than the joint optimum, `None` where
/// no plan is possible.
fn planned(case: u64) -> Option<bool> {
    let workspace = Workspace::new();
    let options = write_job(&workspace, &mut Chance(case));
    let made = workspace.run(&format!("plan-job job.json -o plans --json {options}"));
    let job = String::from_utf8(workspace.read("job.json")).unwrap();
    if made.status != Some(0) {
        // Groups that no way connects, without the help of others or at all, or only a deeper tree.
        let is_meant = ["no way leads from", "`max_depth` is"].iter().any(|part| made.stderr.contains(part));
        assert!(is_meant, "{job} {options}: {}", made.stderr);
        return None;
    }
    let found = &made.object()["job"];
    let verified = workspace.run("verify --joint plans --json");
    assert_eq!(verified.status, Some(0), "{job} {options}: {verified:?}");
    assert_eq!(verified.object()["seconds"], found["seconds"], "{job} {options}");
    let seconds = number(&found["seconds"]);
    assert!(seconds >= number(&found["seconds_bound"]) * (1.0 - 1e-12), "{job} {options}");
    let mut longest: f64 = 0.0;
    for group in found["groups"].as_array().unwrap() {
        let alone = number(&group["seconds"]);
        let by_rate = group["size_bytes"].as_f64().unwrap() / number(&group["achieved"]);
        assert!((alone / by_rate - 1.0).abs() < 1e-12, "{job} {options}: {group}");
        longest = longest.max(alone);
    }
    assert!(seconds <= longest * (1.0 + 1e-12), "{job} {options}");
    let optimum = found.get("seconds_joint").map_or(seconds, number);
    assert!(optimum <= seconds, "{job} {options}");
    if optimum < seconds * (1.0 - 1e-6) {
        eprintln!("{case} {job} {options}: {} of the joint rate", optimum / seconds);
    }
    Some(optimum < seconds)
}

/// Every folder is verified, says what its plans take, and no less than what the lengths prove.
#[test]
fn whatever_is_written_is_verified() {
    let cases = std::env::var("CANOPY_CASES").ok().map_or(10, |text| text.parse().expect("CANOPY_CASES is a number"));
    let (mut written, mut longer) = (0, 0);
    let mut failed: Vec<u64> = Vec::new();
    for case in 0..cases {
        match std::panic::catch_unwind(|| planned(case)) {
            Ok(Some(is_longer)) => {
                written += 1;
                longer += u32::from(is_longer);
            }
            Ok(None) => {}
            Err(_) => failed.push(case),
        }
    }
    eprintln!("{written} of {cases} jobs were planned; plans of {longer} take longer than the joint optimum");
    assert!(failed.is_empty(), "cases {failed:?} failed");
    assert!(written * 2 > cases, "{written} of {cases} jobs were planned");
}
