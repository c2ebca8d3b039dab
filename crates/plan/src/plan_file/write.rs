//! Writes a plan file, straight from the plan: the tables of the schedule are serialised where they stand.

mod schedule;

use std::io;

use canopy_schedule::{Bound, Certificate, FormChoice, InNetwork, Pace, Patterns, Shape, Shares};
use canopy_topology::{NodeIndex, Rate, TopologyDocument};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use self::schedule::{ScheduleView, has_runs, list};
use super::{FORMAT_VERSION, PlanFile};

/// Writes a plan as one compact JSON document on one line, in a fixed order of fields.
///
/// The same plan gives the same bytes. [`read_plan`](super::read_plan) gives back an equal plan if the tables of the
/// schedule list hops and carriers tree by tree, send by send or path by path, as synthesizers leave them; otherwise one
/// whose tables do.
///
/// # Errors
/// Those of `out`. O(size of the schedule) time; besides the plan, memory for the topology's document and the paths of one
/// rank.
pub fn write_plan(plan: &PlanFile, out: &mut dyn io::Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    let patterns = match &plan.schedule.shape {
        Shape::Flow(flow) => Patterns::of(&plan.topology, flow),
        Shape::Forest(_) | Shape::Steps(_) => None,
    };
    serde_json::to_writer(&mut out, &Document { plan, patterns })?;
    io::Write::write_all(&mut out, b"\n")?;
    io::Write::flush(&mut out)
}

/// The first version of the format that can say what is in a plan, so that older programs read what they can.
fn format_version(plan: &PlanFile, has_patterns: bool) -> u64 {
    match &plan.schedule.shape {
        Shape::Steps(steps) if steps.pace == Pace::InTurn => FORMAT_VERSION,
        _ if has_patterns || matches!(plan.schedule.shares, Shares::Blocks(_)) => 4,
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
    /// What the paths of its flow are written by.
    patterns: Option<Patterns>,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { plan, patterns } = self;
        let collective = plan.schedule.collective;
        let mut fields = serializer.serialize_struct("plan", 14)?;
        fields.serialize_field("canopy", &format_version(plan, patterns.is_some()))?;
        fields.serialize_field("kind", "plan")?;
        fields.serialize_field("version", &plan.provenance.version)?;
        fields.serialize_field("topology", &TopologyDocument::from(&plan.topology))?;
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
        fields.serialize_field("schedule", &ScheduleView { schedule: &plan.schedule, patterns: patterns.as_ref() })?;
        match &plan.form {
            Some(choice) => fields.serialize_field("form", &FormView::of(choice))?,
            None => fields.skip_field("form")?,
        }
        fields.serialize_field("bound", &BoundView(&plan.bound))?;
        fields.serialize_field("certificate", &CertificateView(&plan.bound.certificate))?;
        fields.serialize_field(
            "achieved",
            &AchievedView { algbw: &plan.achieved, in_network: plan.in_network.as_ref() },
        )?;
        fields.serialize_field("provenance", &ProvenanceView { algorithm: &plan.provenance.algorithm })?;
        fields.end()
    }
}

#[derive(serde::Serialize)]
struct FormView {
    name: &'static str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    two_phases: Option<String>,
}

impl FormView {
    fn of(choice: &FormChoice) -> Self {
        let FormChoice { form, reason, two_phases } = choice;
        Self { name: form.name(), reason: reason.name(), two_phases: two_phases.as_ref().map(Rate::to_string) }
    }
}

#[derive(serde::Serialize)]
struct ProvenanceView<'a> {
    algorithm: &'a str,
}

#[derive(serde::Serialize)]
struct AchievedView<'a> {
    #[serde(serialize_with = "as_text")]
    algbw: &'a Rate,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_network")]
    in_network: Option<&'a InNetwork>,
}

fn as_text<S: Serializer>(rate: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(rate)
}

fn in_network<S: Serializer>(weighed: &Option<&InNetwork>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(InNetwork { traffic_without, traffic, algbw }) = weighed else { return serializer.serialize_none() };
    let mut fields = serializer.serialize_struct("in_network", 3)?;
    fields.serialize_field("traffic_without", &traffic_without.to_string())?;
    fields.serialize_field("traffic", &traffic.to_string())?;
    fields.serialize_field("algbw", &algbw.to_string())?;
    fields.end()
}

struct BoundView<'a>(&'a Bound);

impl Serialize for BoundView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Bound { upper, lower, certificate: _ } = self.0;
        let mut fields = serializer.serialize_struct("bound", 4)?;
        fields.serialize_field("algbw", &upper.to_string())?;
        fields.serialize_field("tight", &self.0.is_tight())?;
        if self.0.is_tight() {
            fields.skip_field("lower")?;
            fields.skip_field("upper")?;
        } else {
            fields.serialize_field("lower", &lower.to_string())?;
            fields.serialize_field("upper", &upper.to_string())?;
        }
        fields.end()
    }
}

struct CertificateView<'a>(&'a Certificate);

impl Serialize for CertificateView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Certificate::Cut { direction, nodes } => {
                let mut fields = serializer.serialize_struct("cut", 3)?;
                fields.serialize_field("kind", "cut")?;
                fields.serialize_field("direction", direction.name())?;
                fields.serialize_field("nodes", &list(nodes, |node: &NodeIndex| node.number()))?;
                fields.end()
            }
            Certificate::LpDual { lengths } => {
                let mut fields = serializer.serialize_struct("lp-dual", 2)?;
                fields.serialize_field("kind", "lp-dual")?;
                fields.serialize_field("lengths", lengths)?;
                fields.end()
            }
            Certificate::Partition { sets } => {
                let mut fields = serializer.serialize_struct("partition", 2)?;
                fields.serialize_field("kind", "partition")?;
                fields.serialize_field("sets", &list(sets, |set| list(set, |node: &NodeIndex| node.number())))?;
                fields.end()
            }
        }
    }
}
