//! `canopy verify`: judges a plan file, whoever wrote it.
//!
//! Nothing a file says of itself is believed: what it does, how fast it is and what bounds it are derived again, and a
//! statement that differs is a problem like any other damage. What only a search proves is named as not repeated.

pub(super) mod execution_plan;
mod joint;
mod json_plan;
mod load;
mod msccl_file;
mod oneccl_file;
mod routes_file;

use std::path::{Path, PathBuf};

use canopy_plan::{ExecutorProfile, Profile, Program, oneccl, routes};
use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::{Rank, Topology};
use serde::{Serialize, Serializer};

use super::on_a_thread;
use crate::args::{CollectiveArgs, CollectiveName};
use crate::certificate::count;
use crate::connection::ServerArgs;
use crate::exit::Failure;
use crate::input;
use crate::output::{print, print_json};
use crate::runtime::RuntimeProfile;
use crate::stored_plan::{Wanted, plan_bytes};

/// Largest plan file that is read.
const PLAN_BYTES_MAX: usize = 1 << 30;
/// Most problems the text lists; JSON has all.
const PROBLEMS_TEXT_MAX: usize = 20;

/// Check a plan file: structure, meaning, load, certificate; files of runtimes are also run on real bytes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy verify plan.json
  canopy verify plans/0123abcd --server unix:/run/canopy/canopyd.sock
  canopy verify plan.xml --profile msccl --collective allgather --json
  canopy verify plan.json --topology cluster.yaml
  canopy verify execution.json --profile mscclpp-0.8 --collective broadcast --root 3
  canopy verify found.xml --profile rccl-msccl --topology mi250:boxes=2
  canopy verify routes.xml --topology torus:3x3x3
  canopy verify --joint plans/up.json plans/down.json
  canopy verify --joint plans/

With --topology, XML is rated, too: each pair of ranks on one shortest route, exactly.
Proofs by integer programs (tacos-ilp, ilp-disjoint, ilp-shortest) are not repeated; a line says so.

Exit status: 0 when everything holds, 2 for every kind of damage or disagreement.")]
pub(crate) struct VerifyArgs {
    /// A plan in canopy's JSON, MSCCL or oneCCL XML, XML of routes, an execution plan of MSCCL++, or a plan of a server such as plans/0123abcd
    #[arg(value_name = "FILE", required_unless_present = "joint")]
    file: Option<PathBuf>,
    /// Plans in canopy's JSON that run at the same time, or their folder: each is checked, and that in no step two of them use the same link
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["file", "topology", "profile", "collective", "root"])]
    joint: Vec<PathBuf>,
    /// Generator expression or file: the network the plan must be for
    #[arg(long, value_name = "T")]
    topology: Option<String>,
    /// Runtime the file is for [default: msccl; of an execution plan: mscclpp-0.10]
    #[arg(long, value_name = "P")]
    profile: Option<RuntimeProfile>,
    /// What the plan must do
    #[command(flatten)]
    collective: CollectiveArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// What the plan is expected to be, where the user said so.
#[derive(Debug)]
struct Expected<'a> {
    topology: Option<&'a Topology>,
    kind: Option<CollectiveKind>,
    root: Option<u32>,
}

/// JSON object of the command. What a damaged file does not tell is null.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    collective: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    format: Option<&'static str>,
    profile: Option<&'static str>,
    ranks: Option<u32>,
    #[serde(serialize_with = "as_object")]
    checks: Vec<(&'static str, bool)>,
    algbw: Option<String>,
    optimality: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routing: Option<String>,
    /// Statements about the plan that need a search to prove, and are neither confirmed nor denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_repeated: Vec<String>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

/// Something that is wrong or unwise: which check says so, what, and where.
#[derive(Debug, Serialize)]
struct Problem {
    check: &'static str,
    message: String,
    #[serde(rename = "where")]
    place: String,
}

/// A list of pairs as an object, in the order in which the checks ran.
fn as_object<S: Serializer>(checks: &[(&'static str, bool)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(checks.iter().copied())
}

impl Report {
    fn new(format: Option<&'static str>) -> Self {
        Self {
            ok: false,
            collective: None,
            root: None,
            format,
            profile: None,
            ranks: None,
            checks: Vec::new(),
            algbw: None,
            optimality: None,
            routing: None,
            not_repeated: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Notes that a check ran, and what it objects to, if anything.
    fn record(&mut self, check: &'static str, objection: Option<String>) {
        self.record_at(check, objection.map(|message| (message, "file".to_owned())));
    }

    /// The same, for a check that knows where.
    fn record_at(&mut self, check: &'static str, objection: Option<(String, String)>) {
        let passed = objection.is_none();
        match self.checks.iter_mut().find(|(known, _)| *known == check) {
            Some((_, so_far)) => *so_far &= passed,
            None => self.checks.push((check, passed)),
        }
        self.problems.extend(objection.map(|(message, place)| Problem { check, message, place }));
    }

    /// Reads a file of ordinary XML, and notes as the check `file` whether that was possible.
    fn record_file<P>(&mut self, bytes: &[u8], parse: impl FnOnce(&str) -> Result<P, oneccl::ParseError>) -> Option<P> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            self.record("file", Some("the file is not UTF-8".to_owned()));
            return None;
        };
        match parse(text) {
            Ok(program) => {
                self.record("file", None);
                Some(program)
            }
            Err(error) => {
                let place = format!("line {}, column {}", error.line, error.column);
                self.record_at("file", Some((error.fault.to_string(), place)));
                None
            }
        }
    }

    /// Notes the checks of a proof, and what they object to.
    fn record_proof(&mut self, proof: oneccl::Proof) {
        self.checks.extend(proof.checks);
        self.problems.extend(proof.problems.into_iter().map(|found| Problem {
            check: found.check,
            message: found.message,
            place: found.place.to_string(),
        }));
    }

    /// Compares the plan's collective with the expected one.
    fn record_collective(&mut self, expected: &Expected<'_>, kind: CollectiveKind, root: Option<u32>) {
        if expected.kind.is_none() && expected.root.is_none() {
            return;
        }
        let wrong_kind = expected.kind.filter(|expected| *expected != kind);
        // A rooted collective without a stated root has rank 0 as root.
        let expected_root = match (expected.root, expected.kind) {
            (None, Some(kind)) if kind.has_root() => Some(0),
            (root, _) => root,
        };
        let objection = match (wrong_kind, expected_root) {
            (Some(expected), _) => Some(format!("the plan does {kind}, not {expected}")),
            (None, Some(expected)) if root != Some(expected) => Some(match root {
                Some(root) => format!("the root of the plan is rank {root}, not rank {expected}"),
                None => format!("the plan has no root, and so not rank {expected}"),
            }),
            _ => None,
        };
        self.record("collective", objection);
    }
}

/// Fetches the plan where a server has it, and goes on with it.
pub(crate) async fn run(args: VerifyArgs) -> Result<(), Failure> {
    let Some(file) = args.file.clone() else {
        return on_a_thread(move || joint::run(&args.joint, args.json)).await;
    };
    let bytes = plan_bytes(&file, &args.server, None, Wanted::Any).await?;
    on_a_thread(move || judged(&args, &file, &bytes)).await
}

/// Judges the file and prints the verdict.
fn judged(args: &VerifyArgs, file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let topology = args.topology.as_deref().map(input::topology).transpose()?;
    let kind = args.collective.collective.map(CollectiveName::kind);
    let expected = Expected { topology: topology.as_ref(), kind, root: args.collective.root };
    let mut report = judge(bytes, args.profile, &expected)?;
    report.ok = report.problems.is_empty();
    if args.json {
        print_json("verify", &report)?;
    } else {
        print(&readable(&report))?;
    }
    if report.ok {
        return Ok(());
    }
    let problems = count(report.problems.len(), "problem");
    Err(Failure::input(format!("{} fails verification: {problems}", file.display())))
}

/// What is wrong with a file and what is unwise, as lines.
#[derive(Debug)]
pub(super) struct ProgramVerdict {
    pub(super) problems: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// Proves and runs an MSCCL program.
pub(super) fn judge_program(program: &Program, profile: Profile) -> ProgramVerdict {
    let mut report = Report::new(Some("msccl-xml"));
    msccl_file::judge_program(program, profile, &mut report);
    ProgramVerdict::of(report)
}

/// Judges a file of a runtime as the command does, with the collective that it must be for; none: any.
pub(super) fn judge_file(
    bytes: &[u8],
    profile: Option<RuntimeProfile>,
    collective: Option<Collective>,
) -> Result<ProgramVerdict, Failure> {
    let (kind, root) = (collective.map(Collective::kind), collective.and_then(Collective::root).map(Rank::number));
    judge(bytes, profile, &Expected { topology: None, kind, root }).map(ProgramVerdict::of)
}

impl ProgramVerdict {
    fn of(report: Report) -> Self {
        let line = |found: Problem| format!("{}, {}: {}", found.check, found.place, found.message);
        Self {
            problems: report.problems.into_iter().map(line).collect(),
            warnings: report.warnings.into_iter().map(line).collect(),
        }
    }
}

/// Tells the formats apart by their first character, those in XML by their first element, and those in JSON by what they hold.
fn judge(bytes: &[u8], profile: Option<RuntimeProfile>, expected: &Expected<'_>) -> Result<Report, Failure> {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') if execution_plan::is_one(bytes) => Ok(execution_plan::judge(bytes, executor(profile)?, expected)),
        Some(b'{') if profile.is_some() => {
            Err(Failure::input("--profile is for files of a runtime, not for canopy's JSON")
                .help("leave --profile out, or give the file of the runtime"))
        }
        Some(b'{') => Ok(json_plan::judge(bytes, &input::limits()?, expected)),
        Some(b'<') if std::str::from_utf8(bytes).is_ok_and(oneccl::is_plan) => match profile {
            None => Ok(oneccl_file::judge(bytes, expected)),
            Some(_) => Err(Failure::input("--profile is for files of other runtimes, and this is a oneCCL plan")
                .help("leave --profile out, or give another file")),
        },
        Some(b'<') if std::str::from_utf8(bytes).is_ok_and(routes::is_plan) => match profile {
            None => Ok(routes_file::judge(bytes, expected)),
            Some(_) => Err(Failure::input("--profile is for files of other runtimes, and this is a route plan")
                .help("leave --profile out, or give another file")),
        },
        Some(b'<') => Ok(msccl_file::judge(bytes, msccl(profile)?, expected)),
        _ => {
            let mut report = Report::new(None);
            let found = if bytes.is_empty() { "the file is empty" } else { "the file is neither JSON nor XML" };
            report.record(
                "file",
                Some(format!(
                    "{found}; give a plan in canopy's JSON, MSCCL XML, oneCCL XML, XML of routes or JSON of MSCCL++"
                )),
            );
            Ok(report)
        }
    }
}

fn executor(profile: Option<RuntimeProfile>) -> Result<Option<ExecutorProfile>, Failure> {
    match profile {
        None => Ok(None),
        Some(RuntimeProfile::Executor(profile)) => Ok(Some(profile)),
        Some(RuntimeProfile::Msccl(profile)) => Err(Failure::input(format!(
            "profile `{profile}` is for MSCCL XML, and the file is an execution plan of MSCCL++"
        ))
        .help("use mscclpp-0.8, mscclpp-0.9 or mscclpp-0.10")),
    }
}

fn msccl(profile: Option<RuntimeProfile>) -> Result<Option<Profile>, Failure> {
    match profile {
        None => Ok(None),
        Some(RuntimeProfile::Msccl(profile)) => Ok(Some(profile)),
        Some(RuntimeProfile::Executor(profile)) => Err(Failure::input(format!(
            "profile `{profile}` is for execution plans of MSCCL++, and the file is MSCCL XML"
        ))
        .help("use msccl, msccl-executor or rccl-msccl")),
    }
}

fn readable(report: &Report) -> String {
    let mut lines = Vec::new();
    let format = report.format.unwrap_or("unknown format");
    let mut head = format.to_owned();
    if let (Some(collective), Some(ranks)) = (report.collective, report.ranks) {
        head += &format!(", {collective} on {}", count(ranks as usize, "rank"));
    }
    lines.push(head);
    for (passed, word) in [(true, "passed"), (false, "failed")] {
        let names: Vec<&str> = report.checks.iter().filter(|check| check.1 == passed).map(|check| check.0).collect();
        if !names.is_empty() {
            lines.push(format!("{word:<10} {}", names.join(" ")));
        }
    }
    if let Some(algbw) = &report.algbw {
        lines.push(format!("algbw      {algbw} bytes/s"));
    }
    if let Some(optimality) = &report.optimality {
        lines.push(format!("optimality {optimality}"));
    }
    if let Some(routing) = &report.routing {
        lines.push(format!("routing    {routing}"));
    }
    for statement in &report.not_repeated {
        lines.push(format!("not repeated  {statement}"));
    }
    for (word, list) in [("problem", &report.problems), ("warning", &report.warnings)] {
        for Problem { check, message, place } in list.iter().take(PROBLEMS_TEXT_MAX) {
            lines.push(format!("{word}    {check}, {place}: {message}"));
        }
        if list.len() > PROBLEMS_TEXT_MAX {
            lines.push(format!("           and {}", count(list.len() - PROBLEMS_TEXT_MAX, &format!("more {word}"))));
        }
    }
    lines.join("\n")
}
