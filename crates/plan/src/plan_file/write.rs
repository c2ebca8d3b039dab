//! Writes a plan file, straight from the plan: the tables of the forest are serialised where they stand.

use std::io;

use canopy_schedule::{Action, Bound, Carrier, Certificate, Forest, Hop, Phase, RouteTable, Shape, Tree};
use canopy_topology::{LinkIndex, NodeIndex, Rate, TopologyDocument};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::{FORMAT_VERSION, PlanFile};

/// Writes a plan as one compact JSON document on one line, in a fixed order of fields.
///
/// The same plan gives the same bytes. [`read_plan`](super::read_plan) gives back an equal plan if the tables of the
/// forest list hops and carriers tree by tree, as synthesizers leave them; otherwise one whose tables do.
///
/// # Errors
/// Those of `out`. O(size of the forest) time; besides the plan, memory for the topology's document only.
pub fn write_plan(plan: &PlanFile, out: &mut dyn io::Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    serde_json::to_writer(&mut out, &Document(plan))?;
    io::Write::write_all(&mut out, b"\n")?;
    io::Write::flush(&mut out)
}

struct Document<'a>(&'a PlanFile);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plan = self.0;
        let collective = plan.schedule.collective;
        let Shape::Forest(forest) = &plan.schedule.shape;
        let mut fields = serializer.serialize_struct("plan", 13)?;
        fields.serialize_field("canopy", &FORMAT_VERSION)?;
        fields.serialize_field("kind", "plan")?;
        fields.serialize_field("version", &plan.provenance.version)?;
        fields.serialize_field("topology", &TopologyDocument::from(&plan.topology))?;
        fields.serialize_field("collective", collective.kind().name())?;
        match collective.root() {
            Some(root) => fields.serialize_field("root", &root.number())?,
            None => fields.skip_field("root")?,
        }
        fields.serialize_field("shares", "uniform")?;
        fields.serialize_field("chunks_per_share", &forest.chunks_per_share)?;
        fields.serialize_field("schedule", &ForestView { algorithm: &plan.schedule.algorithm, forest })?;
        fields.serialize_field("bound", &BoundView(&plan.bound))?;
        fields.serialize_field("certificate", &CertificateView(&plan.bound.certificate))?;
        fields.serialize_field("achieved", &RateView { algbw: &plan.achieved })?;
        fields.serialize_field("provenance", &ProvenanceView { algorithm: &plan.provenance.algorithm })?;
        fields.end()
    }
}

#[derive(serde::Serialize)]
struct ProvenanceView<'a> {
    algorithm: &'a str,
}

#[derive(serde::Serialize)]
struct RateView<'a> {
    #[serde(serialize_with = "as_text")]
    algbw: &'a Rate,
}

fn as_text<S: Serializer>(rate: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(rate)
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
            Certificate::Partition { sets } => {
                let mut fields = serializer.serialize_struct("partition", 2)?;
                fields.serialize_field("kind", "partition")?;
                fields.serialize_field("sets", &list(sets, |set| list(set, |node: &NodeIndex| node.number())))?;
                fields.end()
            }
        }
    }
}

struct ForestView<'a> {
    algorithm: &'a str,
    forest: &'a Forest,
}

impl Serialize for ForestView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let forest = self.forest;
        let mut fields = serializer.serialize_struct("schedule", 4)?;
        fields.serialize_field("shape", "forest")?;
        fields.serialize_field("algorithm", self.algorithm)?;
        fields.serialize_field("routes", &RoutesView(&forest.routes))?;
        fields.serialize_field("phases", &list(&forest.phases, |phase| PhaseView { forest, phase }))?;
        fields.end()
    }
}

struct RoutesView<'a>(&'a RouteTable);

impl Serialize for RoutesView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|links| list(links, |link: &LinkIndex| link.number())))
    }
}

struct PhaseView<'a> {
    forest: &'a Forest,
    phase: &'a Phase,
}

impl Serialize for PhaseView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let action = match self.phase.action {
            Action::Copy => "copy",
            Action::Reduce => "reduce",
        };
        let mut fields = serializer.serialize_struct("phase", 2)?;
        fields.serialize_field("action", action)?;
        fields.serialize_field("trees", &list(&self.phase.trees, |tree| TreeView { forest: self.forest, tree }))?;
        fields.end()
    }
}

struct TreeView<'a> {
    forest: &'a Forest,
    tree: &'a Tree,
}

impl Serialize for TreeView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (forest, tree) = (self.forest, self.tree);
        let mut fields = serializer.serialize_struct("tree", 3)?;
        fields.serialize_field("root", &tree.root.number())?;
        fields.serialize_field("multiplicity", &tree.multiplicity)?;
        let hops = list(forest.hops_of(tree), |hop| HopView { forest, hop, multiplicity: tree.multiplicity });
        fields.serialize_field("hops", &hops)?;
        fields.end()
    }
}

struct HopView<'a> {
    forest: &'a Forest,
    hop: &'a Hop,
    multiplicity: u64,
}

/// `[from, to, route]` where one route carries the whole tree, else `[from, to, [[route, count], …]]`.
impl Serialize for HopView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (from, to) = (self.hop.from.number(), self.hop.to.number());
        match self.forest.carriers_of(self.hop) {
            [carrier] if carrier.chunk_count == self.multiplicity => {
                (from, to, carrier.route.number()).serialize(serializer)
            }
            carriers => {
                let carriers = list(carriers, |carrier: &Carrier| (carrier.route.number(), carrier.chunk_count));
                (from, to, carriers).serialize(serializer)
            }
        }
    }
}

/// A list whose items are made as they are written.
struct List<'a, T, F> {
    items: &'a [T],
    view: F,
}

fn list<'a, T, V: Serialize, F: Fn(&'a T) -> V>(items: &'a [T], view: F) -> List<'a, T, F> {
    List { items, view }
}

impl<'a, T, V: Serialize, F: Fn(&'a T) -> V> Serialize for List<'a, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.items.iter().map(&self.view))
    }
}
