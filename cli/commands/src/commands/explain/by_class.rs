//! What bounds and binds a plan by a rule, by classes of boxes and links: no tree is written down, and nothing is
//! compared, since textbook plans for as many ranks are not written down either.

mod text;

use canopy_planner::bound_with_nvls;
use canopy_schedule::{BoxClass, ChunkLayout, Inside, LinkClass, OrbitClasses, RuleClasses, Shape, Shares, Stages};
use canopy_topology::{LinkIndex, Rank, Ratio, Topology};
use serde::{Serialize, Serializer};

use super::ExplainArgs;
use super::summary::{BoundSummary, EndsSummary, LinksSummary};
use super::why::why;
use crate::certificate::CertificateSummary;
use crate::exit::Failure;
use crate::output::{AlgbwSummary, TopologySummary, gigabytes_per_sec, print_json};
use crate::rule::{self, Rule};
use crate::stdout::print;

/// Most ranks with patches that are listed.
const PATCHED_MAX: usize = 16;

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Explained {
    topology: TopologySummary,
    collective: &'static str,
    algorithm: String,
    bound: BoundSummary,
    /// If NVSwitches multicast and add up, where that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    with_in_network: Option<AlgbwSummary>,
    certificate: CertificateSummary,
    why: Vec<String>,
    achieved: String,
    #[serde(rename = "achieved_GBps")]
    achieved_gigabytes: f64,
    optimality: String,
    gap: String,
    links: LinksSummary,
    traffic: Part,
    depth: u32,
    by_class: ClassesSummary,
}

/// The plan by class.
#[derive(Debug, Serialize)]
struct ClassesSummary {
    rule: &'static str,
    chunks_per_share: u64,
    links: Vec<LinkClassSummary>,
    #[serde(flatten)]
    of_rule: RuleSummary,
}

#[derive(Debug, Serialize)]
struct LinkClassSummary {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<i64>>,
    #[serde(skip)]
    words: String,
    capacity: u64,
    links: usize,
    unused: usize,
    chunks_min: String,
    chunks_max: String,
    busy: Part,
    busiest: EndsSummary,
    #[serde(skip)]
    busiest_link: LinkIndex,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RuleSummary {
    Stages { boxes: Vec<BoxClassSummary>, stages: Vec<StageSummary>, exceptions: usize },
    Orbits { orders: Vec<u32>, lost: usize, templates: Vec<TemplateSummary>, patches: PatchesSummary },
}

#[derive(Debug, Serialize)]
struct BoxClassSummary {
    boxes: u32,
    first: String,
    ranks: usize,
    /// How it differs from the class of most boxes; nothing for that itself.
    odd: Vec<String>,
    nic_chunks_min: String,
    nic_chunks_max: String,
    nic_busy: Option<Part>,
    out_chunks_max: String,
    in_chunks_max: String,
    inside_busy: Option<Part>,
}

#[derive(Debug, Serialize)]
struct StageSummary {
    digit: u32,
    peers: u32,
    messages: u32,
    /// Shares in a message, where boxes have all their ranks.
    shares: u32,
    /// Hops from the first sender to the farthest rank after it.
    depth: usize,
}

#[derive(Debug, Serialize)]
struct TemplateSummary {
    root: u32,
    weight: u64,
    depth: usize,
    hops: Vec<HopsSummary>,
}

#[derive(Debug, Serialize)]
struct HopsSummary {
    kind: &'static str,
    #[serde(skip)]
    words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<i64>>,
    hops: u64,
}

#[derive(Debug, Serialize)]
struct PatchesSummary {
    count: usize,
    ranks: usize,
    first: Vec<PatchSummary>,
}

#[derive(Debug, Serialize)]
struct PatchSummary {
    rank: u32,
    node: String,
    parents: usize,
    trees: u64,
}

/// A part of a whole, in JSON as a text.
#[derive(Debug)]
struct Part(Ratio);

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Says all of it.
pub(super) fn explain(args: &ExplainArgs, rule: &Rule) -> Result<(), Failure> {
    if args.report.is_some() {
        return Err(rule::refuse("--report", "leave it out, and draw the plan by class with `canopy draw`"));
    }
    let explained = Explained::of(rule)?;
    if args.json { print_json("explain", &explained) } else { print(&text::readable(args, rule, &explained)) }
}

impl Explained {
    fn of(rule: &Rule) -> Result<Self, Failure> {
        let Rule { topology, schedule, bound, classes } = rule;
        let nvls = bound_with_nvls(topology, schedule.collective, &Shares::Equal, bound, &|| false);
        let nvls = nvls.map_err(|error| crate::commands::bound::no_bound(&error))?;
        let verdict = &classes.verdict;
        let one = Ratio::new(1_u32, 1_u32);
        let optimality = verdict.algbw.ratio_to(&bound.upper);
        let gap = optimality.as_ref().zip(one).map(|(part, one)| part.missing_of(&one));
        let text = |ratio: Option<Ratio>| ratio.map_or_else(String::new, |ratio| ratio.to_string());
        let chunks_per_share = chunks_per_share(&schedule.shape);
        let layout = ChunkLayout::new(schedule.collective, topology.rank_count(), chunks_per_share, &Shares::Equal);
        let size = layout.map_err(|error| Failure::fault(error.to_string()))?.size();
        let traffic = Ratio::new(classes.chunks_total().saturating_mul(size.divisor.into()), size.chunks);
        let binding: Vec<LinkIndex> = classes.binding(topology).collect();
        let unused = classes.links.iter().map(|class| class.unused).sum();
        Ok(Self {
            topology: TopologySummary::of(topology),
            collective: schedule.collective.kind().name(),
            algorithm: schedule.algorithm.clone(),
            bound: BoundSummary::of(bound),
            with_in_network: nvls.map(|bound| AlgbwSummary::of(&bound.upper)),
            certificate: CertificateSummary::of(topology, schedule.collective, &schedule.shares, &bound.certificate),
            why: why(topology, schedule.collective, &schedule.shares, &bound.certificate),
            achieved: verdict.algbw.to_string(),
            achieved_gigabytes: gigabytes_per_sec(&verdict.algbw),
            optimality: text(optimality),
            gap: text(gap),
            links: LinksSummary::of(topology, &binding, unused),
            traffic: traffic.map(Part).ok_or_else(|| Failure::fault("a plan without chunks"))?,
            depth: verdict.depth_max,
            by_class: ClassesSummary::of(rule, chunks_per_share),
        })
    }
}

fn chunks_per_share(shape: &Shape) -> u64 {
    match shape {
        Shape::Stages(stages) => stages.chunks_per_share,
        Shape::Orbits(orbits) => orbits.chunks_per_share,
        Shape::Forest(_) | Shape::Steps(_) | Shape::Flow(_) => 1,
    }
}

impl ClassesSummary {
    fn of(rule: &Rule, chunks_per_share: u64) -> Self {
        let classes = &rule.classes;
        let order = classes.busiest_first().into_iter();
        let links = order.map(|class| LinkClassSummary::of(rule, &classes.links[class])).collect();
        let of_rule = match (&rule.schedule.shape, &classes.rule) {
            (Shape::Stages(stages), RuleClasses::Stages(found)) => RuleSummary::Stages {
                boxes: box_classes(rule, stages, &found.classes),
                stages: stage_list(stages),
                exceptions: found.exceptions,
            },
            (_, RuleClasses::Orbits(found)) => orbits(rule, found),
            (_, RuleClasses::Stages(found)) => {
                RuleSummary::Stages { boxes: Vec::new(), stages: Vec::new(), exceptions: found.exceptions }
            }
        };
        Self { rule: rule.schedule.shape.name(), chunks_per_share, links, of_rule }
    }
}

impl LinkClassSummary {
    fn of(rule: &Rule, class: &LinkClass) -> Self {
        Self {
            kind: class.kind.name(),
            steps: steps(class),
            words: class.kind.in_words(),
            capacity: class.capacity,
            links: class.links,
            unused: class.unused,
            chunks_min: class.chunks_min.to_string(),
            chunks_max: class.chunks_max.to_string(),
            busy: Part(rule.classes.busy(&rule.topology, class.chunks_max, class.capacity)),
            busiest: EndsSummary::of(&rule.topology, class.busiest),
            busiest_link: class.busiest,
        }
    }
}

fn steps(class: &LinkClass) -> Option<Vec<i64>> {
    if let canopy_schedule::LinkKind::Along(steps) = &class.kind { Some(steps.clone()) } else { None }
}

/// The part of the time during which a link is busy.
fn busy(rule: &Rule, link: Option<LinkIndex>) -> Option<Part> {
    let link = link?;
    let capacity = rule.topology.link(link).capacity.bytes_per_sec();
    Some(Part(rule.classes.busy(&rule.topology, rule.classes.chunks(link), capacity)))
}

fn box_classes(rule: &Rule, stages: &Stages, classes: &[BoxClass]) -> Vec<BoxClassSummary> {
    let usual = classes.first();
    let name = |of_box: u32| {
        let seating = stages.grid.seating(rule.topology.rank_count()).ok();
        let rank = seating.and_then(|seating| seating.live(of_box).next().map(|(_, rank)| rank));
        rank.map_or_else(|| of_box.to_string(), |rank| box_name(&rule.topology, rank))
    };
    let summary = |class: &BoxClass| BoxClassSummary {
        boxes: class.boxes,
        first: name(class.first),
        ranks: class.ranks(),
        odd: usual.map_or_else(Vec::new, |usual| rule::odd(usual, class)),
        nic_chunks_min: class.nic.0.to_string(),
        nic_chunks_max: class.nic.1.to_string(),
        nic_busy: busy(rule, class.busiest_nic),
        out_chunks_max: class.out.1.to_string(),
        in_chunks_max: class.into.1.to_string(),
        inside_busy: busy(rule, class.busiest_inner),
    };
    classes.iter().map(summary).collect()
}

/// The name of the box that a rank is in, else the rank's own.
fn box_name(topology: &Topology, rank: u32) -> String {
    let node = topology.node(Rank::new(rank).node());
    node.attributes.box_name.clone().unwrap_or_else(|| node.id.clone())
}

/// What one rank does in each stage.
fn stage_list(stages: &Stages) -> Vec<StageSummary> {
    let inside = stages.inside.iter().map(depth_inside).max().unwrap_or(1);
    let grid = &stages.grid;
    let stage = |(number, &digit): (usize, &u32)| StageSummary {
        digit,
        peers: digit - 1,
        messages: digit - 1,
        shares: grid.unit(number),
        depth: (number + 1) * (1 + inside),
    };
    grid.digits.iter().enumerate().map(stage).collect()
}

/// Hops from where something enters a box to the farthest rank.
fn depth_inside(inside: &Inside) -> usize {
    let Inside::Trees(trees) = inside else { return 1 };
    let depth = |tree: &canopy_schedule::BoxTree| {
        let mut depths = std::collections::BTreeMap::from([(tree.root, 0_usize)]);
        for (from, to) in &tree.hops {
            let depth = depths.get(from).copied().unwrap_or(0) + 1;
            depths.insert(*to, depth);
        }
        depths.into_values().max().unwrap_or(0)
    };
    trees.iter().map(depth).max().unwrap_or(1)
}

fn orbits(rule: &Rule, found: &OrbitClasses) -> RuleSummary {
    let links = &rule.classes.links;
    let hops = |(class, hops): (u32, u64)| {
        let class = &links[class as usize];
        HopsSummary { kind: class.kind.name(), words: class.kind.in_words(), steps: steps(class), hops }
    };
    let template = |template: &canopy_schedule::TemplateClass| TemplateSummary {
        root: template.root,
        weight: template.weight,
        depth: template.depth(),
        hops: template.hops().into_iter().map(hops).collect(),
    };
    let patch = |patch: &canopy_schedule::PatchClass| PatchSummary {
        rank: patch.rank,
        node: rule
            .topology
            .ranks()
            .nth(patch.rank as usize)
            .map_or_else(String::new, |rank| rule.topology.node(rank.node()).id.clone()),
        parents: patch.parents,
        trees: patch.trees,
    };
    RuleSummary::Orbits {
        orders: found.orders.clone(),
        lost: found.lost,
        templates: found.templates.iter().map(template).collect(),
        patches: PatchesSummary {
            count: found.patch_count,
            ranks: found.patches.len(),
            first: found.patches.iter().take(PATCHED_MAX).map(patch).collect(),
        },
    }
}
