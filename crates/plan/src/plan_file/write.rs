//! Writes a plan file, straight from the plan: the tables of the schedule are serialised where they stand.

mod schedule;

use std::io;

use canopy_schedule::{Carrier, Certificate, Flow, Forest, Pace, PathTrees, Patterns, Shape, Shares};
use canopy_topology::{Rank, Topology, TopologyDocument};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use self::schedule::{Form, ScheduleView, has_runs};
use super::origin::OriginDocument;
use super::read::{AchievedDocument, BoundDocument, CertificateDocument, FormDocument, ProvenanceDocument};
use super::{FORMAT_VERSION, PlanFile};

/// Fewest paths that are written by trees.
const TREES_PATHS_MIN: usize = 1 << 16;

/// Fewest hops of trees that are written by their routes alone.
const ROUTES_HOPS_MIN: usize = 1 << 16;

/// Writes a plan as one compact JSON document on one line, in a fixed order of fields.
///
/// The same plan gives the same bytes. [`read_plan`](super::read_plan) gives back an equal plan if the tables of the
/// schedule list hops and carriers tree by tree, send by send or path by path, as synthesizers leave them; otherwise one
/// whose tables do.
///
/// # Errors
/// Those of `out`. O(size of the schedule) time; besides the plan, memory for the topology's document, the ends of routes and the
/// paths of one rank.
pub fn write_plan(plan: &PlanFile, out: &mut dyn io::Write) -> io::Result<()> {
    write_plan_on(plan, None, out)
}

/// The same where the network of its expression may be at hand, without faults, as it was generated.
///
/// # Errors
/// As [`write_plan`].
pub(crate) fn write_plan_on(plan: &PlanFile, base: Option<&Topology>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    let form = match &plan.schedule.shape {
        Shape::Flow(flow) => flow_form(&plan.topology, flow),
        Shape::Forest(forest) => forest_form(&plan.topology, forest),
        Shape::Steps(_) | Shape::Stages(_) | Shape::Orbits(_) => Form::Listed,
    };
    serde_json::to_writer(&mut out, &Document { plan, form, base })?;
    io::Write::write_all(&mut out, b"\n")?;
    io::Write::flush(&mut out)
}

/// How the hops of trees are written. Only many of them are by their routes, so that older programs can read the others;
/// and only if all routes lead where their hops do, as those of plans that pass the check.
fn forest_form(topology: &Topology, forest: &Forest) -> Form {
    let by_routes = |ends: &[Option<(Rank, Rank)>]| {
        forest.hops.iter().all(|hop| {
            let leads = |carrier: &Carrier| ends.get(carrier.route.index()) == Some(&Some((hop.from, hop.to)));
            let carriers = forest.carriers_of(hop);
            !carriers.is_empty() && carriers.iter().all(leads)
        })
    };
    match forest.hops.len() >= ROUTES_HOPS_MIN && by_routes(&forest.routes.ends(topology)) {
        true => Form::Routes,
        false => Form::Listed,
    }
}

/// How the paths of a flow are written. Only many of them are by trees, so that older programs can read the others; and
/// only if patterns do not say more, which they do not where each path has a route of its own.
fn flow_form(topology: &Topology, flow: &Flow) -> Form {
    let patterns = || Patterns::of(topology, flow).map(Form::Patterns);
    let trees = || PathTrees::of(topology, flow).map(Form::Trees);
    let form = match flow.paths.len() < TREES_PATHS_MIN {
        true => patterns(),
        false if flow.routes.len() < flow.paths.len() => patterns().or_else(trees),
        false => trees().or_else(patterns),
    };
    form.unwrap_or(Form::Listed)
}

/// The first version of the format that can say what is in a plan, so that older programs read what they can.
fn format_version(plan: &PlanFile, form: &Form) -> u64 {
    match &plan.schedule.shape {
        _ if matches!(plan.bound.certificate, Certificate::Sum { .. }) => FORMAT_VERSION,
        Shape::Stages(_) | Shape::Orbits(_) => 7,
        _ if matches!(form, Form::Trees(_) | Form::Routes) => 6,
        Shape::Steps(steps) if steps.pace == Pace::InTurn => 5,
        _ if matches!(form, Form::Patterns(_)) || matches!(plan.schedule.shares, Shares::Blocks(_)) => 4,
        Shape::Steps(steps) if has_runs(steps) => 3,
        Shape::Forest(_)
            if plan.schedule.shares == Shares::Equal
                && !matches!(plan.bound.certificate, Certificate::LpDual { .. }) =>
        {
            1
        }
        _ => 2,
    }
}

struct Document<'a> {
    plan: &'a PlanFile,
    /// How its paths or trees are written.
    form: Form,
    base: Option<&'a Topology>,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { plan, form, base } = self;
        let collective = plan.schedule.collective;
        let mut fields = serializer.serialize_struct("plan", 14)?;
        fields.serialize_field("canopy", &format_version(plan, form))?;
        fields.serialize_field("kind", "plan")?;
        fields.serialize_field("version", &plan.provenance.version)?;
        let is_by_rule = matches!(plan.schedule.shape, Shape::Stages(_) | Shape::Orbits(_));
        match is_by_rule.then(|| OriginDocument::of(&plan.topology, *base)).flatten() {
            Some(origin) => fields.serialize_field("network", &origin)?,
            None => fields.serialize_field("topology", &TopologyDocument::from(&plan.topology))?,
        }
        fields.serialize_field("collective", collective.kind().name())?;
        match collective.root() {
            Some(root) => fields.serialize_field("root", &root.number())?,
            None => fields.skip_field("root")?,
        }
        match &plan.schedule.shares {
            Shares::Equal => fields.serialize_field("shares", "uniform")?,
            Shares::Weighted(weights) => fields.serialize_field("shares", weights)?,
            Shares::Blocks(blocks) => fields.serialize_field("shares", &blocks.rows().collect::<Vec<_>>())?,
        }
        fields.serialize_field("chunks_per_share", &plan.schedule.shape.chunks_per_share())?;
        fields.serialize_field("schedule", &ScheduleView { schedule: &plan.schedule, form })?;
        match &plan.form {
            Some(choice) => fields.serialize_field("form", &FormDocument::from(choice))?,
            None => fields.skip_field("form")?,
        }
        fields.serialize_field("bound", &BoundDocument::from(&plan.bound))?;
        let certificate = &plan.bound.certificate;
        let certificate = match is_by_rule {
            true => CertificateDocument::short(certificate, &plan.topology),
            false => CertificateDocument::from(certificate),
        };
        fields.serialize_field("certificate", &certificate)?;
        fields.serialize_field("achieved", &AchievedDocument::from(*plan))?;
        let algorithm = plan.provenance.algorithm.clone();
        fields.serialize_field("provenance", &ProvenanceDocument { algorithm })?;
        fields.end()
    }
}
