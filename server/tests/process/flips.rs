//! One bit of a data directory is wrong: what is lost is told, what is served is right.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::{
    ListFaultsRequest, ListLeasesRequest, ListPlansRequest, OutputFormat, OutputSpec, PinPlanRequest, PlanSpec,
    ReplanEvent,
};
use serde_json::Value;
use tokio::time::{Duration, sleep};

use crate::backups::walk;
use crate::kills::{Acknowledged, NETWORK, Random, Told, Workspace, follow, settled, start_with};
use crate::support::{Process, request, stated};

/// Bits that are flipped, unless `CANOPY_TRIALS` says how many.
const TRIALS: u64 = 4;
const NETWORKS: [&str; 4] = [NETWORK, "ring:5", "torus:2x4", "mesh:2x3"];

fn wanted(network: &str) -> PlanSpec {
    let output = OutputSpec { format: OutputFormat::MscclXml.into(), ..OutputSpec::default() };
    PlanSpec { outputs: vec![output], ..request(network) }
}

/// What a server knows.
#[derive(Debug, PartialEq)]
struct Contents {
    leases: BTreeSet<String>,
    faults: BTreeSet<String>,
    pinned: BTreeSet<String>,
    events: Vec<ReplanEvent>,
    plans: BTreeMap<&'static str, Vec<u8>>,
}

impl Contents {
    async fn of(process: &Process) -> Self {
        let mut workspace = Workspace::at(process).await;
        let asked = ListLeasesRequest { page_size: 1000, ..ListLeasesRequest::default() };
        let leases = workspace.leases.list_leases(asked).await.unwrap().into_inner().leases;
        let faults = workspace.faults.list_faults(ListFaultsRequest::default()).await.unwrap().into_inner().faults;
        let asked = ListPlansRequest { filter: "pinned = true".to_owned(), ..ListPlansRequest::default() };
        let mut plans = PlansClient::new(process.channel().await);
        let pinned = plans.list_plans(asked).await.unwrap().into_inner().plans;
        let mut files = BTreeMap::new();
        for network in NETWORKS {
            let plan =
                process.client().await.plan(wanted(network).into_plan()).await.unwrap().into_inner().plan.unwrap();
            let content = plan.artifacts[0].content.clone().unwrap();
            files.insert(network, prost::Message::encode_to_vec(&content));
        }
        Self {
            leases: leases.into_iter().map(|lease| lease.name).collect(),
            faults: faults.into_iter().map(|fault| fault.text).collect(),
            pinned: pinned.into_iter().map(|plan| plan.name).collect(),
            events: Vec::new(),
            plans: files,
        }
    }

    /// What is here and not there; plans must be the same.
    fn lost(&self, there: &Self) -> Vec<String> {
        assert_eq!(self.plans, there.plans, "a plan is another one");
        let mut lost = Vec::new();
        for (here, there) in
            [(&self.leases, &there.leases), (&self.faults, &there.faults), (&self.pinned, &there.pinned)]
        {
            lost.extend(here.symmetric_difference(there).cloned());
        }
        lost.extend(self.events.iter().filter(|event| !there.events.contains(event)).map(|event| event.lease.clone()));
        lost
    }
}

/// All events after the first, as a watch hears them that goes on from there.
async fn events(process: &Process, first: &ReplanEvent, count: usize) -> Vec<ReplanEvent> {
    let told = Told::new(std::sync::Mutex::new(vec![first.clone()]));
    let watching = follow(process, &told).await;
    for _ in 0..100 {
        if told.lock().unwrap().len() >= count {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    watching.abort();
    let mut told = told.lock().unwrap().clone();
    // When an event is told again depends on the watch.
    told.iter_mut().for_each(|event| event.resume_token.clear());
    told
}

fn copy(from: &Path, to: &Path) {
    for file in walk(from) {
        let copied = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(copied.parent().unwrap()).unwrap();
        fs::copy(&file, copied).unwrap();
    }
}

/// Flips one bit, each byte of all files as likely as another; where.
fn flip(folder: &Path, random: &mut Random) -> String {
    let mut files: Vec<PathBuf> = walk(folder);
    files.sort();
    let size = |file: &PathBuf| file.metadata().unwrap().len();
    let mut place = random.below(files.iter().map(size).sum());
    let file = files
        .into_iter()
        .find(|file| {
            let is_in = place < size(file);
            place -= if is_in { 0 } else { size(file) };
            is_in
        })
        .unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes[usize::try_from(place).unwrap()] ^= 1 << random.below(8);
    fs::write(&file, bytes).unwrap();
    format!("{} at {place}", file.strip_prefix(folder).unwrap().display())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_without_a_word() {
    let (trials, seed) = (stated("CANOPY_TRIALS").unwrap_or(TRIALS), stated("CANOPY_SEED").unwrap_or(1));
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut known, told) = (Acknowledged::default(), Told::default());
    let process = start_with(tempfile::tempdir().unwrap());
    for network in NETWORKS {
        process.client().await.plan(wanted(network).into_plan()).await.unwrap();
    }
    let watching = follow(&process, &told).await;
    let mut workspace = Workspace::at(&process).await;
    for _ in 0..60 {
        workspace.act(&mut random, &mut known).await.unwrap();
    }
    settled(&mut workspace, &told).await;
    let plan = process.client().await.plan(wanted(NETWORKS[1]).into_plan()).await.unwrap().into_inner().plan.unwrap();
    let mut plans = PlansClient::new(process.channel().await);
    plans.pin_plan(PinPlanRequest { name: plan.name, request_id: String::new() }).await.unwrap();
    let first = told.lock().unwrap()[0].clone();
    let count = told.lock().unwrap().len();
    let mut whole = Contents::of(&process).await;
    whole.events = events(&process, &first, count).await;
    assert!(!whole.leases.is_empty() && !whole.pinned.is_empty() && whole.events.len() > 1, "{whole:?}");
    watching.abort();
    process.signal("TERM");
    let original = process.end_in_order();
    let (mut untold, mut harmed) = (Vec::new(), 0);
    // The first of them is left as it is.
    for trial in 0..=trials {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        copy(&original.path().join("data"), &data);
        let place = if trial == 0 { "nowhere".to_owned() } else { flip(&data, &mut random) };
        let process = start_with(folder);
        let mut found = Contents::of(&process).await;
        found.events = events(&process, &first, whole.events.len()).await;
        let lost = whole.lost(&found);
        let words = process.beginning.clone();
        process.signal("TERM");
        let (_, lines) = process.end();
        let is_word = |line: &Value| line["level"] == "WARN" || line["level"] == "ERROR";
        let is_told = words.iter().chain(&lines).any(is_word);
        assert!(trial > 0 || (lost.is_empty() && !is_told), "{lost:?}, {words:?}, {lines:?}");
        harmed += u64::from(is_told);
        if !lost.is_empty() && !is_told {
            untold.push(format!("{place}: {lost:?}"));
        }
    }
    eprintln!("{trials} bits, {harmed} of them noticed");
    assert!(untold.is_empty(), "lost without a word: {untold:#?}");
}
