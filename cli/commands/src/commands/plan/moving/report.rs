//! What is written of a stream's network and its plans: a table or JSON for standard output, and a file of plans.

use canopy_proto::Exact as _;
use canopy_wire::reason_of;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use canopy_client::ErrorClass;
use canopy_plan::Format;
use canopy_proto::v1::{MovingPlan, MovingRefusal, MovingRelay, MovingTiers};
use canopy_topology::Rate;
use serde::Serialize;

use super::class_of;
use super::slots::Written;
use crate::destination::Destination;
use crate::exit::Failure;
use crate::known_faults::say_warnings;
use crate::messages::{say, warn};
use crate::output::{FORMAT_VERSION, print_json, rounded_percent, seconds, seconds_in_words};
use crate::stdout::{print, write_stdout};
use crate::table::count;
use crate::whole_file::{AtomicFile, cannot_write};

/// The format of a line.
const FORMAT: &str = "canopy-moving";
const COMMAND: &str = "plan-moving";

/// Where plans go.
enum Plans {
    Nowhere,
    Stdout,
    /// A file that is complete when it gets its name.
    Whole(AtomicFile),
    /// A file that grows, as its reader follows it.
    Growing(File),
}

/// Writes what comes.
pub(super) struct Report {
    plans: Plans,
    file: Option<String>,
    json: bool,
    network: Shape,
    planned: u64,
    refused: u64,
    class: Option<ErrorClass>,
}

/// What a plan's line says of the network.
#[derive(Clone, Copy, Default, Serialize)]
struct Shape {
    ranks: u32,
    box_size: u32,
    fabric: &'static str,
}

/// A line of the file.
#[derive(Serialize)]
struct Line<'a> {
    format: &'static str,
    version: u32,
    number: u64,
    #[serde(flatten)]
    network: Shape,
    seconds: &'a str,
    seconds_bound: &'a str,
    from: &'a [u32],
    to: &'a [u32],
    leaves: &'a [u32],
    enters: &'a [u32],
    bytes: &'a [u64],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relayed: Vec<Relay<'a>>,
}

/// The route of a part, hop by hop.
#[derive(Serialize)]
struct Relay<'a> {
    part: u32,
    ranks: &'a [u32],
    by_nic: &'a [bool],
}

/// An object of `--json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Object<'a> {
    Network {
        #[serde(flatten)]
        network: Shape,
        lost_ranks: &'a [u32],
        dead_nics: &'a [u32],
    },
    Plan {
        number: u64,
        seconds: &'a str,
        seconds_bound: &'a str,
        ratio: String,
        parts: usize,
        skipped: u64,
    },
    File {
        number: u64,
        path: &'a str,
        format: &'static str,
        profile: &'static str,
        bytes: usize,
        unit_bytes: u64,
        slot_units: u64,
        buffer_bytes: u64,
    },
    Refusal {
        number: u64,
        code: i32,
        reason: &'a str,
        message: &'a str,
    },
}

impl Report {
    /// `is_whole`: whether all plans are made before anybody reads the file.
    pub(super) fn new(output: Option<&Destination>, json: bool, is_whole: bool) -> Result<Self, Failure> {
        let plans = match output {
            None => Plans::Nowhere,
            Some(Destination::Stdout) if json => {
                let words = "--json needs a file for the plans: standard output is for its objects";
                return Err(Failure::input(words).help("add `-o FILE`"));
            }
            Some(Destination::Stdout) => Plans::Stdout,
            Some(Destination::File(path)) if is_whole => Plans::Whole(AtomicFile::create(path)?),
            Some(Destination::File(path)) => Plans::Growing(created(path)?),
        };
        let file = output.and_then(Destination::file).map(|path| path.display().to_string());
        Ok(Self { plans, file, json, network: Shape::default(), planned: 0, refused: 0, class: None })
    }

    /// What was found of the network.
    pub(super) fn network(&mut self, tiers: &MovingTiers) -> Result<(), Failure> {
        say_warnings(&tiers.warnings, "routes");
        let MovingTiers { ranks, box_size, rails, lost_ranks, dead_nics, .. } = tiers;
        let fabric = if *rails { "rails" } else { "full" };
        self.network = Shape { ranks: *ranks, box_size: *box_size, fabric };
        if self.json {
            return print_json(COMMAND, &Object::Network { network: self.network, lost_ranks, dead_nics });
        }
        let boxes = (ranks / (*box_size).max(1)) as usize;
        let joined = if *rails { "rails" } else { "one fabric" };
        let lost = if lost_ranks.is_empty() { String::new() } else { format!(", without {}", ranks_of(lost_ranks)) };
        let dead =
            if dead_nics.is_empty() { String::new() } else { format!(", with dead NICs of {}", ranks_of(dead_nics)) };
        say(&format!("{boxes} boxes of {box_size} ranks on {joined}{lost}{dead}"));
        Ok(())
    }

    /// A plan.
    pub(super) fn plan(&mut self, plan: &MovingPlan) -> Result<(), Failure> {
        self.planned += 1;
        self.write(plan)?;
        let MovingPlan { number, seconds: time, seconds_bound, skipped, .. } = plan;
        let time = time.exact();
        let seconds_bound = seconds_bound.exact();
        let ratio = ratio(seconds_bound, time);
        let parts = plan.bytes.len();
        if self.json {
            let (number, skipped) = (*number, *skipped);
            return print_json(COMMAND, &Object::Plan { number, seconds: time, seconds_bound, ratio, parts, skipped });
        }
        if matches!(self.plans, Plans::Stdout) {
            return Ok(());
        }
        self.heading()?;
        let (time, least) = (seconds_in_words(seconds(time)), seconds_in_words(seconds(seconds_bound)));
        let percent = rounded_percent(&ratio);
        print(&format!("{number:>8}  {time:>11}  {least:>11}  {percent:>10}  {parts:>8}  {skipped:>7}"))
    }

    /// A file for a runtime.
    pub(super) fn slot_file(&self, written: &Written, number: u64) -> Result<(), Failure> {
        let &Written { ref path, profile, file_bytes: bytes, unit_bytes, slot_units, buffer_bytes } = written;
        if self.json {
            let format = Format::MscclppJson.name();
            let object = Object::File { number, path, format, profile, bytes, unit_bytes, slot_units, buffer_bytes };
            return print_json(COMMAND, &object);
        }
        let slots = format!("slots of {slot_units} units of {unit_bytes} bytes, buffers of {buffer_bytes} bytes");
        say(&format!("execution plan for {profile} to {path}: {slots}"));
        Ok(())
    }

    /// A matrix that has no plan.
    pub(super) fn refusal(&mut self, refusal: &MovingRefusal) -> Result<(), Failure> {
        self.refused += 1;
        let error = refusal.error.clone().unwrap_or_default();
        self.class.get_or_insert_with(|| class_of(error.code));
        let (number, code) = (refusal.number, error.code);
        if self.json {
            let (reason, message) = (&*reason_of(&error), &*error.message);
            return print_json(COMMAND, &Object::Refusal { number, code, reason, message });
        }
        warn(format_args!("matrix {number}: {}: {}", reason_of(&error), error.message));
        Ok(())
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// It cannot be written, or a matrix has no plan.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let is_written = matches!(self.plans, Plans::Whole(_) | Plans::Growing(_));
        if let Plans::Whole(file) = self.plans {
            file.commit()?;
        }
        if let Some(file) = self.file.filter(|_| is_written) {
            say(&format!("{} to {file}", count(self.planned, "plan")));
        }
        let all = self.planned + self.refused;
        match self.class {
            None => Ok(()),
            Some(class) => Err(Failure::new(class, format!("{} of {all} matrices have no plan", self.refused))),
        }
    }

    /// Once, above the first row.
    fn heading(&self) -> Result<(), Failure> {
        if self.planned > 1 {
            return Ok(());
        }
        let [number, time, least] = ["MATRIX", "TIME", "AT LEAST"];
        print(&format!("{number:>8}  {time:>11}  {least:>11}  {:>10}  {:>8}  {:>7}", "OF OPTIMAL", "PARTS", "SKIPPED"))
    }

    /// Writes a plan's line.
    fn write(&mut self, plan: &MovingPlan) -> Result<(), Failure> {
        if matches!(self.plans, Plans::Nowhere) {
            return Ok(());
        }
        let line = Line {
            format: FORMAT,
            version: FORMAT_VERSION,
            number: plan.number,
            network: self.network,
            seconds: plan.seconds.exact(),
            seconds_bound: plan.seconds_bound.exact(),
            from: &plan.from,
            to: &plan.to,
            leaves: &plan.leaves,
            enters: &plan.enters,
            bytes: &plan.bytes,
            relayed: plan.relayed.iter().map(relay).collect(),
        };
        let mut text =
            serde_json::to_vec(&line).map_err(|error| Failure::fault(format!("cannot write JSON: {error}")))?;
        text.push(b'\n');
        let path = self.file.clone().unwrap_or_default();
        let cannot = |error: std::io::Error| cannot_write(Path::new(&path), &error);
        match &mut self.plans {
            Plans::Nowhere => Ok(()),
            Plans::Stdout => write_stdout(&text),
            Plans::Whole(file) => file.as_write().write_all(&text).map_err(cannot),
            Plans::Growing(file) => file.write_all(&text).map_err(cannot),
        }
    }
}

fn relay(relayed: &MovingRelay) -> Relay<'_> {
    let MovingRelay { part, ranks, by_nic } = relayed;
    Relay { part: *part, ranks, by_nic }
}

fn created(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| cannot_write(path, &error))
}

/// The part of the optimum that a plan reaches at least.
fn ratio(least: &str, time: &str) -> String {
    let (least, time) = (least.parse::<Rate>(), time.parse::<Rate>());
    match (least, time) {
        (Ok(least), Ok(time)) => least.ratio_to(&time).map_or_else(|| "1".to_owned(), |ratio| ratio.to_string()),
        _ => String::new(),
    }
}

/// `rank 3`, or `5 ranks`.
fn ranks_of(ranks: &[u32]) -> String {
    match ranks {
        [only] => format!("rank {only}"),
        many => count(many.len(), "rank"),
    }
}
