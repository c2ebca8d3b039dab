//! Plans for 16,384 to 131,072 ranks as exchanges in stages and as orbit forests, sound and with faults: time by part,
//! memory, and the part of the proven bound that is reached. Each row is a process of its own.
//!
//! ```text
//! cargo run --release -p canopy-benches --bin symmetric -- [RANKS…]
//! ```

use std::error::Error;
use std::process::Command;

use canopy_benches::{memory_peak_bytes, print_table, timed_on_processors};
use std::time::Duration;

use canopy_schedule::{Collective, CollectiveKind, Shares, certified_bound, check_orbits_until, check_stages_until};
use canopy_synth::symmetric::{likely_boxes, orbits, stages, stages_inside_first, torus};
use canopy_topology::{Ratio, Topology, TopologyLimits, generate};

const RANKS: [u32; 3] = [16_384, 65_536, 131_072];
/// Marks the arguments of a process for one row.
const ROW: &str = "--row";
const COLUMNS: [&str; 10] =
    ["network", "ranks", "digits", "exceptions", "read ms", "found ms", "plan ms", "check ms", "MB", "of the bound"];

/// The networks of a number of ranks.
fn expressions(ranks: u32) -> Vec<String> {
    let boxes = ranks / 8;
    let faults = ["", ",faults=nics:1+seed:1", ",faults=nics:7+gpus:3+seed:1", ",faults=nics:40+gpus:30+seed:1"];
    let machines = [format!("dgx-h100:boxes={boxes}"), format!("rail:boxes={boxes},gpus=8,nv=450GB/s,nic=50GB/s")];
    let faulty = machines.iter().flat_map(|machine| faults.iter().map(move |faults| format!("{machine}{faults}")));
    let pods = format!("pod:boxes={boxes},su=16,rails=8,oversub=8");
    let leaves = format!("leaf-spine:leaves={},hosts=32,spines=16,oversub=8", ranks / 32);
    // Boxes that are slow for what their NICs bring.
    let slow = ["", ",faults=gpus:3+seed:1"];
    let slow = slow.map(|faults| format!("rail:boxes={boxes},gpus=8,nv=60GB/s,nic=50GB/s{faults}"));
    faulty.chain(slow).chain([pods, leaves]).chain(tori(ranks)).collect()
}

/// Tori of a number of ranks that is a power of two.
fn tori(ranks: u32) -> Vec<String> {
    let bits = ranks.ilog2();
    let sides = |dimensions: u32| {
        let side = |dimension: u32| (1_u32 << ((bits + dimensions - 1 - dimension) / dimensions)).to_string();
        (0..dimensions).map(side).collect::<Vec<_>>().join("x")
    };
    let faults = ["", ",faults=links:1+seed:1", ",faults=links:7+gpus:3+seed:1", ",faults=links:10+gpus:10+seed:1"];
    let of_three = faults.iter().map(|faults| format!("torus:{}{faults}", sides(3)));
    of_three.chain([2, 4].map(|dimensions| format!("torus:{}", sides(dimensions)))).collect()
}

/// What a plan of either shape took and reached.
struct Measured {
    digits: Vec<u32>,
    exceptions: usize,
    found_in: Duration,
    planned_in: Duration,
    judged_in: Duration,
    ratio: Option<Ratio>,
}

const KIND: CollectiveKind = CollectiveKind::Allgather;

fn in_stages(topology: &Topology) -> Result<Measured, Box<dyn Error>> {
    let (found, found_in) = timed_on_processors(|| likely_boxes(topology));
    let network = found.first().ok_or("it has no boxes")?;
    let (planned, planned_in) = timed_on_processors(|| {
        let inside_first = stages_inside_first(topology, network, KIND, None);
        inside_first.or_else(|| stages(topology, network, KIND, 1))
    });
    let planned = planned.ok_or("it has no plan")?;
    let collective = Collective::new(KIND, None, topology.rank_count())?;
    let (judged, judged_in) = timed_on_processors(|| {
        let verdict = check_stages_until(topology, collective, &Shares::Equal, &planned.stages, &|| false)?;
        let bound = certified_bound(topology, collective, &Shares::Equal, &planned.certificate)?;
        Ok::<_, Box<dyn Error>>(verdict.algbw.ratio_to(&bound))
    });
    let (digits, exceptions) = (planned.stages.grid.digits, planned.stages.exceptions.len());
    Ok(Measured { digits, exceptions, found_in, planned_in, judged_in, ratio: judged? })
}

fn in_orbits(topology: &Topology) -> Result<Measured, Box<dyn Error>> {
    let (found, found_in) = timed_on_processors(|| torus(topology));
    let found = found.ok_or("it is no torus")?;
    let (planned, planned_in) = timed_on_processors(|| orbits(topology, &found, KIND));
    let planned = planned.ok_or("it has no plan")?;
    let collective = Collective::new(KIND, None, topology.rank_count())?;
    let (judged, judged_in) = timed_on_processors(|| {
        let verdict = check_orbits_until(topology, collective, &Shares::Equal, &planned.orbits, &|| false)?;
        let bound = certified_bound(topology, collective, &Shares::Equal, &planned.certificate)?;
        Ok::<_, Box<dyn Error>>(verdict.algbw.ratio_to(&bound))
    });
    let exceptions = planned.orbits.patches.iter().map(|patch| patch.roots.len()).sum();
    Ok(Measured { digits: found.sides, exceptions, found_in, planned_in, judged_in, ratio: judged? })
}

fn row(expression: &str) -> Result<[String; 10], Box<dyn Error>> {
    let (topology, read) = timed_on_processors(|| generate(expression, &TopologyLimits::UNLIMITED));
    let topology = topology?;
    let measured = if expression.starts_with("torus:") { in_orbits(&topology)? } else { in_stages(&topology)? };
    let ratio = measured.ratio.ok_or("the bound is 0")?;
    let ms = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
    let digits: Vec<String> = measured.digits.iter().map(u32::to_string).collect();
    let reached = if ratio.is_one() { "1".to_owned() } else { format!("{:.6}", ratio.to_f64()) };
    Ok([
        expression.to_owned(),
        topology.rank_count().to_string(),
        digits.join("x"),
        measured.exceptions.to_string(),
        ms(read),
        ms(measured.found_in),
        ms(measured.planned_in),
        ms(measured.judged_in),
        memory_peak_bytes().map_or_else(String::new, |bytes| (bytes / 1_000_000).to_string()),
        reached,
    ])
}

/// The row that another process prints.
fn apart(expression: &str) -> Result<[String; 10], Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).args([ROW, expression]).output()?;
    if !output.status.success() {
        return Err(format!("{expression}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let line = String::from_utf8(output.stdout)?;
    let cells: Vec<String> = line.trim_end().split('\t').map(str::to_owned).collect();
    cells.try_into().map_err(|_| format!("{expression} printed {line}").into())
}

#[expect(clippy::print_stdout, reason = "the figures are the result")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, expression] = arguments.as_slice()
        && first == ROW
    {
        println!("{}", row(expression)?.join("\t"));
        return Ok(());
    }
    let stated: Vec<u32> = arguments.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let ranks = if stated.is_empty() { RANKS.to_vec() } else { stated };
    let all = ranks.into_iter().flat_map(expressions);
    let rows = all.map(|expression| apart(&expression)).collect::<Result<Vec<_>, _>>()?;
    print_table(COLUMNS, &rows);
    Ok(())
}
