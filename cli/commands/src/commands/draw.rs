//! `canopy draw`: a network, the trees of a plan or its run over time, or who uses which link, as an SVG file.

mod by_class;
mod shares;
pub(super) mod timeline;
pub(super) mod trees;

use std::path::Path;
use std::time::Duration;

use canopy_draw::{DrawError, NetworkDrawing, draw_network};
use canopy_schedule::Schedule;
use canopy_topology::{Rate, Topology};
use clap::ValueEnum;
use serde::Serialize;

use crate::args::{self, CollectiveArgs};
use crate::around::{self, AroundArgs};
use crate::clock::Deadline;
use crate::connection::ServerArgs;
use crate::destination::{self, Destination};
use crate::exit::{Failure, words};
use crate::group_plans::Folder;
use crate::input;
use crate::material::{Material, Subject, unbroken};
use crate::output::{FileSummary, gigabytes_per_sec, print_json};
use crate::stdout::{print, write_stdout};
use crate::stored_plan::{Wanted, stored_plan};
use crate::table::count;

use crate::running::on_a_thread;

/// Draw a network with its loads and its bottleneck, the trees of a plan, its run over time, or who uses which link, as an SVG file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy draw dgx-a100:boxes=2 -o network.svg
  canopy draw dgx-a100:boxes=2 --collective allgather -o loads.svg
  canopy draw plan.json -o loads.svg
  canopy draw cluster.yaml --base cluster-before.yaml --collective allreduce -o loads.svg
  canopy draw plan.json --what trees --root 3 -o trees.svg
  canopy draw plan.json --what timeline --size 64MiB -o run.svg
  canopy draw job-plans/ -o shares.svg

A plan by a rule for more ranks than trees can be written for is drawn by class: a box of each, or one rank of a torus.

Exit status: 0 when it was drawn, 2 when the plan cannot be read or is wrong, or there is too much to look at.")]
pub(crate) struct DrawArgs {
    /// A plan in canopy's JSON, or one of a server such as plans/0123abcd, or a network: generator expression or file;
    /// or the folder of `canopy tools plan-job`, whose drawing divides each link by the groups that use it
    #[arg(value_name = "PLAN|T|DIR")]
    subject: String,
    #[command(flatten)]
    collective: CollectiveArgs,
    /// What is drawn
    #[arg(long, value_enum, default_value = "topology")]
    what: What,
    /// Which phase's trees, such as 2 for the second half of an allreduce
    #[arg(long, value_name = "N", default_value_t = 1)]
    phase: u32,
    /// How much is sent in a timeline, as `canopy simulate` counts it
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = args::size_bytes)]
    size: u64,
    /// Network as it was before something broke: what is missing is dashed. Of expressions it is known [default: none]
    #[arg(long, value_name = "T")]
    base: Option<String>,
    #[command(flatten)]
    around: AroundArgs,
    /// Longest time to make a plan where a network is given, such as 30s
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    deadline: Option<Duration>,
    /// File to write, or `-` for standard output, where a drawing goes without it unless that is a terminal
    #[arg(long, short, value_name = "FILE")]
    output: Option<Destination>,
    #[command(flatten)]
    server: ServerArgs,
    /// Print one JSON object as the last line of standard output; needs --output
    #[arg(long)]
    json: bool,
}

/// What can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// The network, with the loads and the bottleneck of a plan
    Topology,
    /// Trees: all of the rank that --root names, or the first of each rank
    Trees,
    /// When links are busy, and the messages that took longest
    Timeline,
}

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Drawn {
    what: String,
    files: Vec<FileSummary>,
}

/// Fetches the plan where a server has it, and goes on with it.
pub(crate) async fn run(args: DrawArgs) -> Result<(), Failure> {
    if let Some(path) = destination::of_machines(args.output.as_ref(), args.json, "the drawing")? {
        require_svg(path)?;
    }
    args.around.apply();
    if let Some(folder) = shares::folder(&args.subject)? {
        around::none_of_plan(&args.subject)?;
        return on_a_thread(move || draw_folder(&args, &folder)).await;
    }
    let fetched = stored_plan(&args.subject, &args.server, args.deadline, Wanted::Json).await?;
    on_a_thread(move || draw(&args, fetched)).await
}

/// Refuses the name of a picture of another kind.
fn require_svg(path: &Path) -> Result<(), Failure> {
    const OTHERS: [&str; 10] = ["png", "pdf", "jpg", "jpeg", "gif", "bmp", "webp", "eps", "ps", "tiff"];
    let extension = path.extension().map(|found| found.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if !OTHERS.contains(&extension.as_str()) {
        return Ok(());
    }
    let svg = path.with_extension("svg");
    let message = format!("canopy draws SVG, and `{}` is named as {}", path.display(), extension.to_uppercase());
    Err(Failure::input(message).help(format!(
        "write `-o {}`, and convert it: `rsvg-convert -f {extension} -o {} {}`",
        svg.display(),
        path.display(),
        svg.display()
    )))
}

/// Draws and writes the file.
fn draw(args: &DrawArgs, fetched: Option<Vec<u8>>) -> Result<(), Failure> {
    let what = args::name_of(&args.what);
    let subject = Subject::of(&args.subject, fetched, &args.purpose(), Deadline::after(args.deadline))?;
    let drawing = match (args.what, &subject) {
        (_, Subject::Rule(rule)) => by_class::draw(args, rule)?,
        (What::Topology, Subject::Plan(_) | Subject::Network(_)) => {
            let healthy = (!around::losses().is_empty()).then_some(args.subject.as_str());
            let base = args.base.as_deref().or(healthy).map(input::topology).transpose()?;
            let (topology, plan) = match &subject {
                Subject::Plan(plan) => (&plan.topology, Some(plan.as_ref())),
                Subject::Network(topology) => (topology.as_ref(), None),
                Subject::Rule(rule) => (&rule.topology, None),
            };
            network(&args.subject, topology, plan, base)?
        }
        (_, Subject::Network(_)) => {
            return Err(Failure::input(format!("`--what {what}` needs a plan"))
                .help("give a plan in canopy's JSON, or add `--collective C`"));
        }
        (What::Trees, Subject::Plan(plan)) => trees::draw(&args.subject, plan, args.collective.root, args.phase)?,
        (What::Timeline, Subject::Plan(plan)) => timeline::draw(&args.subject, plan, args.size)?,
    };
    write(args, what, &drawing)
}

/// Draws the folder of a job's plans and writes the file.
fn draw_folder(args: &DrawArgs, folder: &Folder) -> Result<(), Failure> {
    let others = [
        ("--what", args.what != What::Topology),
        ("--collective", args.collective.collective.is_some()),
        ("--root", args.collective.root.is_some()),
        ("--base", args.base.is_some()),
    ];
    if let Some((option, _)) = others.into_iter().find(|&(_, is_given)| is_given) {
        return Err(Failure::input(format!("`{option}` is for a single plan, and this is a folder of a job's groups"))
            .help(format!("leave {option} out, or name one of the plans")));
    }
    write(args, "shares".to_owned(), &shares::draw(&args.subject, folder)?)
}

/// Writes the file, or to standard output.
fn write(args: &DrawArgs, what: String, drawing: &str) -> Result<(), Failure> {
    let Some(path) = destination::file(args.output.as_ref()) else { return write_stdout(drawing.as_bytes()) };
    let files = vec![FileSummary::written("svg", path, drawing.as_bytes())?];
    if args.json {
        return print_json("draw", &Drawn { what, files });
    }
    print(&format!("{what} to {}, {} bytes", path.display(), drawing.len()))
}

impl DrawArgs {
    /// The collective to plan for. A root that none of it has, or that a plan has been made with, says whose trees are meant.
    fn purpose(&self) -> CollectiveArgs {
        let CollectiveArgs { collective, root } = self.collective;
        let is_choice = self.what == What::Trees && collective.is_none_or(|name| !name.kind().has_root());
        CollectiveArgs { collective, root: root.filter(|_| !is_choice) }
    }
}

/// A network, with the loads of a plan or without a plan.
pub(super) fn network(
    name: &str,
    topology: &Topology,
    plan: Option<&Material>,
    base: Option<Topology>,
) -> Result<String, Failure> {
    let base = base.or_else(|| unbroken(topology));
    let called = topology.name().unwrap_or(name);
    let others = topology.nodes().len() - topology.rank_count() as usize;
    let others = if others > 0 { format!(", {}", count(others, "other node")) } else { String::new() };
    let links = count(topology.links().len(), "link");
    let size = format!("{}{others}, {links}", count(topology.rank_count() as usize, "rank"));
    let (title, notes) = match plan {
        None => (called.to_owned(), vec![size]),
        Some(plan) => (heading(name, plan), vec![size]),
    };
    let drawing = NetworkDrawing {
        title: &title,
        notes: &notes,
        topology,
        loads: plan.map(|plan| &plan.loads),
        certificate: plan.map(|plan| &plan.bound.certificate),
        schedule: plan.map(|plan| &plan.schedule),
        base: base.as_ref(),
    };
    draw_network(&drawing).map_err(|error| refused(&error))
}

/// What a plan does, where, and how fast, of how much.
fn heading(name: &str, plan: &Material) -> String {
    heading_of(name, &plan.topology, &plan.schedule, (&plan.verdict.algbw, &plan.bound.upper))
}

/// The same of what is reached, and what is proven.
fn heading_of(name: &str, topology: &Topology, schedule: &Schedule, (found, bound): (&Rate, &Rate)) -> String {
    let (kind, called) = (schedule.collective.kind(), topology.name().unwrap_or(name));
    let achieved = gigabytes_per_sec(found);
    if found == bound {
        format!("{kind} on {called}: {achieved} GB/s, proven optimal")
    } else {
        format!("{kind} on {called}: {achieved} GB/s of at most {}", gigabytes_per_sec(bound))
    }
}

fn refused(error: &DrawError) -> Failure {
    let failure = Failure::input(words(error));
    match error {
        DrawError::NoTrees { .. } => failure.help("take `--what timeline`"),
        _ => failure,
    }
}
