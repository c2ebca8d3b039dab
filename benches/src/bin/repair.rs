//! How near to the optimum repaired schedules come, and how much sooner they are there, over all single faults.
//!
//! `cargo run --release -p canopy-benches --bin repair [NETWORK …]`
//!
//! Every link (both ways), every link at half of its rate, every NIC (a link to a switch outside the box), every NIC at half
//! of its rate and every GPU fails on its own. The schedule of the whole network is repaired, and the schedule of what is left
//! is made anew by `auto`; both are judged by the checker. *Ratio* is the repaired rate ÷ the new one; times are the
//! processor's, without the judging. Faults that disconnect are counted apart.

use std::error::Error;
use std::time::Duration;

use canopy_benches::{print_table, timed_on_processors};
use canopy_schedule::{Collective, CollectiveKind, Schedule, judge_until};
use canopy_synth::{Algorithm, Never, RepairOptions, Silent, SynthesisRequest, repaired, synthesize};
use canopy_topology::{Fault, FaultKind, Rate, Topology, TopologyLimits, generate};

const NETWORKS: [(&str, &[CollectiveKind]); 3] = [
    ("dgx-a100:boxes=2", &[CollectiveKind::Allgather, CollectiveKind::Allreduce]),
    ("mi250:boxes=2", &[CollectiveKind::Allgather, CollectiveKind::Allreduce]),
    ("torus:4x4", &[CollectiveKind::Allgather, CollectiveKind::Allreduce, CollectiveKind::AllToAll]),
];

/// Any chunks, and rates alone.
const PLAIN: RepairOptions = RepairOptions { chunks_max: None, size_bytes: None, is_in_time: false };

/// Large networks, of which one NIC at half of its rate is looked at.
const LARGE: [&str; 2] = ["dgx-a100:boxes=16", "dgx-a100:boxes=125"];

/// Kinds of faults and the fraction that is left, in the order of the table. Links that are NICs are listed as such.
const KINDS: [(FaultKind, Option<(u64, u64)>); 5] = [
    (FaultKind::Links, None),
    (FaultKind::Links, HALF),
    (FaultKind::Nics, None),
    (FaultKind::Nics, HALF),
    (FaultKind::Gpus, None),
];

const HALF: Option<(u64, u64)> = Some((1, 2));

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |network: &str| asked.is_empty() || asked.iter().any(|asked| asked == network);
    let mut rows = Vec::new();
    for (network, collectives) in NETWORKS.into_iter().filter(|(network, _)| is_asked(network)) {
        let whole = generate(network, &TopologyLimits::STANDARD)?;
        for &kind in collectives {
            add_rows(network, &whole, kind, &mut rows)?;
        }
    }
    for network in LARGE.into_iter().filter(|network| is_asked(network)) {
        let whole = generate(network, &TopologyLimits::STANDARD)?;
        for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce] {
            let schedule = planned(&whole, kind)?.0;
            let mut sums = Sums::default();
            sums.add(&whole, &schedule, &degraded("b0g3", "ib"))?;
            rows.push(sums.row(network, kind, "one NIC at half"));
        }
    }
    let heading = [
        "network",
        "collective",
        "fault",
        "cases",
        "apart",
        "mean ratio",
        "worst",
        "repair mean ms",
        "worst ms",
        "anew mean ms",
    ];
    print_table(heading, &rows);
    Ok(())
}

fn add_rows(
    network: &str,
    whole: &Topology,
    kind: CollectiveKind,
    rows: &mut Vec<[String; 10]>,
) -> Result<(), Failure> {
    let schedule = planned(whole, kind)?.0;
    for (fault_kind, left) in KINDS {
        let mut sums = Sums::default();
        for fault in faults(whole, fault_kind, left) {
            sums.add(whole, &schedule, &fault)?;
        }
        if sums.cases + sums.apart > 0 {
            let fraction = if left == HALF { "@1/2" } else { "" };
            rows.push(sums.row(network, kind, &format!("{}{fraction}", fault_kind.word())));
        }
    }
    Ok(())
}

/// All single faults of a kind.
fn faults(whole: &Topology, kind: FaultKind, left: Option<(u64, u64)>) -> Vec<Fault> {
    let nics = whole.elements(FaultKind::Nics);
    let mut elements = whole.elements(kind);
    elements.retain(|element| kind != FaultKind::Links || !nics.contains(element));
    elements.iter().flat_map(|element| whole.faults_of(std::slice::from_ref(element), left)).collect()
}

/// A link at half of its rate, both ways.
fn degraded(from: &str, to: &str) -> Fault {
    Fault::Degrade { from: from.to_owned(), to: to.to_owned(), both_ways: true, numerator: 1, denominator: 2 }
}

fn planned(topology: &Topology, kind: CollectiveKind) -> Result<(Schedule, Duration), Failure> {
    let collective = Collective::new(kind, None, topology.rank_count())?;
    let request = SynthesisRequest::new(collective, Algorithm::Auto);
    let (schedule, time) = timed_on_processors(|| synthesize(topology, &request, &Never, &Silent));
    Ok((schedule?, time))
}

fn rate(topology: &Topology, schedule: &Schedule) -> Result<Rate, Failure> {
    Ok(judge_until(topology, schedule, &|| false)?.algbw)
}

/// What was measured of the faults of one kind.
#[derive(Default)]
struct Sums {
    cases: u32,
    apart: u32,
    ratios: Vec<f64>,
    repair_ms: Vec<f64>,
    anew_ms: Vec<f64>,
}

impl Sums {
    fn add(&mut self, whole: &Topology, schedule: &Schedule, fault: &Fault) -> Result<(), Failure> {
        let left = whole.punctured(std::slice::from_ref(fault))?;
        if left.first_unreachable().is_some() {
            self.apart += 1;
            return Ok(());
        }
        let (repaired, time) = timed_on_processors(|| repaired(whole, schedule, &left, PLAIN, &Never));
        let (anew, anew_time) = planned(&left, schedule.collective.kind())?;
        let ratio = rate(&left, &repaired?)?.ratio_to(&rate(&left, &anew)?);
        self.cases += 1;
        self.ratios.push(ratio.map_or(0.0, |ratio| ratio.to_f64()));
        self.repair_ms.push(time.as_secs_f64() * 1e3);
        self.anew_ms.push(anew_time.as_secs_f64() * 1e3);
        Ok(())
    }

    fn row(&self, network: &str, kind: CollectiveKind, what: &str) -> [String; 10] {
        let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / f64::from(self.cases.max(1));
        let most = |numbers: &[f64]| numbers.iter().copied().fold(0.0, f64::max);
        let least = self.ratios.iter().copied().fold(f64::INFINITY, f64::min);
        [
            format!("`{network}`"),
            kind.to_string(),
            what.to_owned(),
            self.cases.to_string(),
            self.apart.to_string(),
            format!("{:.3}", mean(&self.ratios)),
            format!("{least:.3}"),
            format!("{:.2}", mean(&self.repair_ms)),
            format!("{:.2}", most(&self.repair_ms)),
            format!("{:.1}", mean(&self.anew_ms)),
        ]
    }
}
