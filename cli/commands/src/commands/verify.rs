//! `canopy verify`: judges a plan file, whoever wrote it.
//!
//! Nothing a file says of itself is believed: what it does, how fast it is and what bounds it are derived again, and a
//! statement that differs is a problem like any other damage. What only a search proves is named as not repeated.

mod bound;
pub(super) mod groups;
mod joint;
mod json_plan;
mod several;

use std::path::{Path, PathBuf};

use canopy_import::unwrapped;
use canopy_plan::{Expected, Finding, Format, Target, Verdict};
use canopy_schedule::Collective;
use canopy_topology::Rank;
use serde::{Serialize, Serializer};

use crate::args::{CollectiveArgs, CollectiveName};
use crate::clock::Deadline;
use crate::connection::ServerArgs;
use crate::exit::Failure;
use crate::input;
use crate::messages::verdict;
use crate::output::{percent_in_words, print_json, stated_rate};
use crate::running::on_a_thread;
use crate::runtime::profile_of_several;
use crate::stdout::print;
use crate::stored_plan::{Wanted, plan_bytes};
use crate::table::count;

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
  canopy verify --joint job-plans/

With --topology, XML is rated, too: each pair of ranks on one shortest route, exactly.
Proofs by integer programs (tacos-ilp, ilp-disjoint, ilp-shortest) are not repeated; a line says so.

Exit status: 0 when everything holds, 2 for every kind of damage or disagreement.")]
pub(crate) struct VerifyArgs {
    /// A plan in canopy's JSON, MSCCL or oneCCL XML, XML of routes, an execution plan of MSCCL++, or a plan of a server such as plans/0123abcd
    #[arg(value_name = "FILE", required_unless_present = "joint")]
    file: Option<PathBuf>,
    /// Plans in canopy's JSON that run at the same time, or their folder: each is checked, and that in no step two of them use the same link;
    /// for the folder of `canopy tools plan-job`, that together they take as long as it says, and that nothing is faster
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["file", "topology", "profile", "collective", "root"])]
    joint: Vec<PathBuf>,
    /// Generator expression or file: the network the plan must be for
    #[arg(long, value_name = "T")]
    topology: Option<String>,
    /// Runtime the file is for [default: msccl; of an execution plan: mscclpp-0.10]
    #[arg(long, value_name = "P", value_parser = profile_of_several)]
    profile: Option<Target>,
    /// What the plan must do
    #[command(flatten)]
    collective: CollectiveArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// JSON object of the command. What a damaged file does not tell is null.
#[derive(Debug, Serialize)]
struct Report<'v> {
    ok: bool,
    collective: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    format: Option<&'static str>,
    profile: Option<&'static str>,
    ranks: Option<u32>,
    #[serde(serialize_with = "as_object")]
    checks: &'v [(&'static str, bool)],
    algbw: Option<String>,
    optimality: Option<&'v str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routing: Option<&'v str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_repeated: Vec<String>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

/// A file and what is found of it.
#[derive(Debug, Default)]
struct Judged {
    /// None: of no format that there is.
    format: Option<Format>,
    verdict: Verdict,
    /// Statements about the plan that need a search to prove, and are neither confirmed nor denied.
    not_repeated: Vec<String>,
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
fn as_object<S: Serializer>(checks: &impl AsRef<[(&'static str, bool)]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(checks.as_ref().iter().copied())
}

impl From<&Finding> for Problem {
    fn from(Finding { check, message, place }: &Finding) -> Self {
        Self { check, message: message.clone(), place: place.clone() }
    }
}

impl Judged {
    fn report(&self) -> Report<'_> {
        let Self { format, verdict, not_repeated } = self;
        Report {
            ok: verdict.problems.is_empty(),
            collective: verdict.collective,
            root: verdict.root,
            format: format.map(Format::name),
            profile: verdict.profile,
            ranks: verdict.ranks,
            checks: &verdict.checks,
            algbw: verdict.algbw.as_ref().map(ToString::to_string),
            optimality: verdict.optimality.as_deref(),
            routing: verdict.routing.as_deref(),
            not_repeated: not_repeated.clone(),
            problems: verdict.problems.iter().map(Problem::from).collect(),
            warnings: verdict.warnings.iter().map(Problem::from).collect(),
        }
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
    let topology =
        args.topology.as_deref().map(|text| input::large_topology_until(text, Deadline::after(None))).transpose()?;
    let kind = args.collective.collective.map(CollectiveName::kind);
    let bound = |collective| bound::proven(collective, topology.as_ref());
    let expected = Expected { topology: topology.as_ref(), kind, root: args.collective.root, bound: &bound };
    let judged = judge_pasted(bytes, args.profile, &expected)?;
    let report = judged.report();
    if let (false, Some(unread)) = (args.json, report.problems.iter().find(|problem| problem.check == "file")) {
        return Err(Failure::input(format!("{}: {}", file.display(), unread.message)));
    }
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

/// Judges a file of a runtime as the command does, with the collective that it must be for; none: any.
pub(super) fn judge_file(
    bytes: &[u8],
    profile: Option<Target>,
    collective: Option<Collective>,
) -> Result<ProgramVerdict, Failure> {
    let (kind, root) = (collective.map(Collective::kind), collective.and_then(Collective::root).map(Rank::number));
    let expected = Expected { topology: None, kind, root, bound: &|_| Err("no network is given".to_owned()) };
    // Of a format with one profile nobody names it.
    let profile = profile.filter(|target| target.format.profiles().len() > 1);
    let Verdict { problems, warnings, .. } = judge(bytes, profile, &expected)?.verdict;
    let line = |found: Finding| format!("{}, {}: {}", found.check, found.place, found.message);
    Ok(ProgramVerdict {
        problems: problems.into_iter().map(line).collect(),
        warnings: warnings.into_iter().map(line).collect(),
    })
}

/// Judges a file; one that cannot be read as it is without what terminals, chats and web pages put around it.
fn judge_pasted(bytes: &[u8], profile: Option<Target>, expected: &Expected<'_>) -> Result<Judged, Failure> {
    let judged = judge(bytes, profile, expected)?;
    let is_unread = |judged: &Judged| judged.verdict.problems.iter().any(|problem| problem.check == "file");
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_unread(&judged));
    let plain = text.and_then(|text| unwrapped(text, &|part| Format::of(part.as_bytes()).is_some()));
    let better = plain.and_then(|plain| judge(plain.as_bytes(), profile, expected).ok());
    Ok(better.filter(|better| !is_unread(better)).unwrap_or(judged))
}

/// Judges a file by its format.
fn judge(bytes: &[u8], profile: Option<Target>, expected: &Expected<'_>) -> Result<Judged, Failure> {
    let Some(format) = Format::of(bytes) else {
        let mut judged = Judged::default();
        let found = if bytes.is_empty() { "the file is empty" } else { "the file is neither JSON nor XML" };
        let text = format!("{found}; give a plan in canopy's JSON, MSCCL XML, oneCCL XML, routes XML or MSCCL++ JSON");
        judged.verdict.record("file", Some(text));
        return Ok(judged);
    };
    if let Some(other) = profile.filter(|profile| profile.format != format) {
        return Err(not_for(format, other));
    }
    Ok(match format.verify(bytes, profile.map(|profile| profile.profile), expected) {
        Some(verdict) => Judged { format: Some(format), verdict, not_repeated: Vec::new() },
        None => json_plan::judge(bytes, &input::plan_limits()?, expected),
    })
}

/// A profile that is none of the format's.
fn not_for(format: Format, profile: Target) -> Failure {
    let (others, kind) = (format.profiles(), |format: Format| match format {
        Format::MscclXml => "MSCCL XML",
        format => format.noun(),
    });
    match others.as_slice() {
        [] => Failure::input("--profile is for files of a runtime, not for canopy's JSON")
            .help("leave --profile out, or give the file of the runtime"),
        [_] => Failure::input(format!("--profile is for files of other runtimes, and this is {}", format.noun()))
            .help("leave --profile out, or give another file"),
        [first @ .., last] => Failure::input(format!(
            "profile `{profile}` is for {}, and the file is {}",
            kind(profile.format).replace("an execution plan", "execution plans"),
            kind(format)
        ))
        .help(format!("use {} or {last}", first.join(", "))),
    }
}

/// Which checks passed and which failed, a line each.
fn outcomes(checks: &[(&'static str, bool)]) -> impl Iterator<Item = String> {
    [(true, "passed"), (false, "failed")].into_iter().filter_map(|(passed, word)| {
        let names: Vec<&str> = checks.iter().filter(|check| check.1 == passed).map(|check| check.0).collect();
        (!names.is_empty())
            .then(|| format!("{}{:<2$} {3}", verdict(passed, word), "", 10 - word.len(), names.join(" ")))
    })
}

fn readable(report: &Report<'_>) -> String {
    let mut lines = Vec::new();
    let format = report.format.unwrap_or("unknown format");
    let mut head = format.to_owned();
    if let (Some(collective), Some(ranks)) = (report.collective, report.ranks) {
        head += &format!(", {collective} on {}", count(ranks as usize, "rank"));
    }
    lines.push(head);
    lines.extend(outcomes(report.checks));
    if let Some(algbw) = &report.algbw {
        lines.push(format!("algbw      {}", stated_rate(algbw)));
    }
    if let Some(optimality) = &report.optimality {
        lines.push(format!("optimality {} of optimal", percent_in_words(optimality)));
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
