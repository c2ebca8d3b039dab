//! What a plan by a rule asks of each kind of box, link and template, without a tree for any rank.
//!
//! The loads are those that the checker counts link by link; here they are only sorted into classes. So explanations,
//! drawings and simulations of plans for a hundred thousand ranks speak of a handful of boxes and links.

mod boxes;
mod orbits;

use std::collections::BTreeMap;

use canopy_topology::{LinkIndex, Ratio, Topology};

use crate::check::{CheckError, Verdict, judge_orbits_until, judge_stages_until, takes_longer};
use crate::collective::Collective;
use crate::schedule::Shape;
use crate::shares::Shares;

pub use boxes::{BoxClass, BoxClasses, Nic};
pub use orbits::{HopGroup, OrbitClasses, PatchClass, TemplateClass};

/// A plan by a rule, judged, with its links, boxes and templates in classes.
#[derive(Clone, Debug)]
pub struct ByClass {
    /// What the checker says.
    pub verdict: Verdict,
    /// Classes of links: those of one kind and capacity, in the order of kinds.
    pub links: Vec<LinkClass>,
    /// By link: its class.
    pub class_of: Vec<u32>,
    /// What the rule is.
    pub rule: RuleClasses,
    chunks: Vec<u128>,
}

/// Classes that only one kind of rule has.
#[derive(Clone, Debug)]
pub enum RuleClasses {
    /// Boxes that exchange in stages.
    Stages(BoxClasses),
    /// Templates that symmetries move.
    Orbits(OrbitClasses),
}

/// Where links of a class lead.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// From a box to what joins boxes.
    NicUp,
    /// Into a box.
    NicDown,
    /// Between nodes of one box.
    InBox,
    /// From a switch that ranks are at to one that none is at.
    LeafToSpine,
    /// The other way round.
    SpineToLeaf,
    /// Between ranks that differ by this symmetry: how often each generator is applied, the shorter way round.
    Along(Vec<i64>),
    /// From a rank to a switch, in a plan by orbits.
    ToSwitch,
    /// From a switch to a rank, in a plan by orbits.
    FromSwitch,
    /// Between other switches.
    BetweenSwitches,
}

impl LinkKind {
    /// The word in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NicUp => "nic-up",
            Self::NicDown => "nic-down",
            Self::InBox => "in-box",
            Self::LeafToSpine => "leaf-to-spine",
            Self::SpineToLeaf => "spine-to-leaf",
            Self::Along(_) => "dimension",
            Self::ToSwitch => "to-switch",
            Self::FromSwitch => "from-switch",
            Self::BetweenSwitches => "between-switches",
        }
    }

    /// The generator, from 0, and whether it is applied forwards, of a link along one alone by one step.
    pub fn dimension(&self) -> Option<(usize, bool)> {
        let Self::Along(steps) = self else { return None };
        let mut moved = steps.iter().enumerate().filter(|(_, step)| **step != 0);
        let (dimension, &step) = moved.next()?;
        (moved.next().is_none() && step.unsigned_abs() == 1).then_some((dimension, step > 0))
    }

    /// For people.
    pub fn in_words(&self) -> String {
        match (self, self.dimension()) {
            (Self::Along(_), Some((dimension, is_forwards))) => {
                format!("dimension {} {}", dimension + 1, if is_forwards { "up" } else { "down" })
            }
            (Self::Along(steps), None) => {
                let steps: Vec<String> = steps.iter().map(|step| format!("{step:+}")).collect();
                format!("along ({})", steps.join(", "))
            }
            (Self::NicUp, _) => "NIC up".to_owned(),
            (Self::NicDown, _) => "NIC down".to_owned(),
            (Self::InBox, _) => "in the box".to_owned(),
            (Self::LeafToSpine, _) => "leaf to spine".to_owned(),
            (Self::SpineToLeaf, _) => "spine to leaf".to_owned(),
            (Self::ToSwitch, _) => "to a switch".to_owned(),
            (Self::FromSwitch, _) => "from a switch".to_owned(),
            (Self::BetweenSwitches, _) => "between switches".to_owned(),
        }
    }
}

/// Links of one kind and capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkClass {
    /// Where they lead.
    pub kind: LinkKind,
    /// Bytes per second of each.
    pub capacity: u64,
    /// How many there are.
    pub links: usize,
    /// How many of these carry nothing.
    pub unused: usize,
    /// Chunks over the least loaded, and over the most loaded one.
    pub chunks_min: u128,
    /// See `chunks_min`.
    pub chunks_max: u128,
    /// The first of the most loaded ones.
    pub busiest: LinkIndex,
}

/// Judges a plan by a rule, and sorts what it does into classes; `None` for other shapes.
///
/// * **Errors.** Those of the checker: [`StagesError`](crate::StagesError), [`OrbitsError`](crate::OrbitsError), or
///   [`Stopped`](CheckError::Stopped) soon after `stop` says so.
/// * **Cost.** That of the checker, and O((nodes + links) · log classes).
pub fn by_class(
    topology: &Topology,
    collective: Collective,
    shape: &Shape,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<ByClass>, CheckError> {
    match shape {
        Shape::Stages(stages) => {
            let (verdict, chunks) = judge_stages_until(topology, collective, &Shares::Equal, stages, stop)?;
            let seating = stages.grid.seating(topology.rank_count()).map_err(crate::check::StagesError::from)?;
            let boxes = boxes::Boxes::of(topology, &seating);
            let (links, class_of) = link_classes(topology, &chunks, |link| boxes.kind(topology, link));
            let rule = RuleClasses::Stages(boxes.classes(topology, stages, &seating, &chunks));
            Ok(Some(ByClass { verdict, links, class_of, rule, chunks }))
        }
        Shape::Orbits(orbits) => {
            let (verdict, chunks) = judge_orbits_until(topology, collective, &Shares::Equal, orbits, stop)?;
            let seating = orbits.seating(topology.rank_count()).map_err(crate::check::OrbitsError::from)?;
            let places = orbits::Places::of(topology, orbits, &seating);
            let (links, class_of) = link_classes(topology, &chunks, |link| places.kind(topology, link));
            let rule = RuleClasses::Orbits(places.classes(topology, orbits, &class_of));
            Ok(Some(ByClass { verdict, links, class_of, rule, chunks }))
        }
        Shape::Forest(_) | Shape::Steps(_) | Shape::Flow(_) => Ok(None),
    }
}

impl ByClass {
    /// Chunks over a link.
    pub fn chunks(&self, link: LinkIndex) -> u128 {
        self.chunks.get(link.index()).copied().unwrap_or(0)
    }

    /// Chunks over all links together.
    pub fn chunks_total(&self) -> u128 {
        self.chunks.iter().sum()
    }

    /// The part of the time during which a link of this capacity that carries so many chunks is busy.
    pub fn busy(&self, topology: &Topology, chunks: u128, capacity: u64) -> Ratio {
        let most = self.verdict.busiest_link;
        let (load, rate) = (self.chunks(most), topology.link(most).capacity.bytes_per_sec());
        let whole = num_bigint::BigUint::from(load) * capacity;
        Ratio::new(num_bigint::BigUint::from(chunks) * rate, whole).expect("the busiest link carries something")
    }

    /// Links that are busy all the time, by index.
    pub fn binding<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = LinkIndex> + 'a {
        let most = self.verdict.busiest_link;
        let most = (self.chunks(most), topology.link(most).capacity.bytes_per_sec());
        let all = (0..).map(LinkIndex::new).zip(topology.links()).zip(&self.chunks);
        let is_busy = move |load: u128, capacity: u64| load > 0 && !takes_longer(most, (load, capacity));
        let busy = all.filter(move |((_, link), load)| is_busy(**load, link.capacity.bytes_per_sec()));
        busy.map(|((link, _), _)| link)
    }

    /// The classes in the order of how busy their busiest links are, the busiest first.
    pub fn busiest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.links.len()).collect();
        let load = |class: &usize| (self.links[*class].chunks_max, self.links[*class].capacity);
        order.sort_by(|one, other| {
            takes_longer(load(other), load(one)).cmp(&takes_longer(load(one), load(other))).then(one.cmp(other))
        });
        order
    }
}

/// All links in classes, and the class of each.
fn link_classes(
    topology: &Topology,
    chunks: &[u128],
    kind: impl Fn(LinkIndex) -> LinkKind,
) -> (Vec<LinkClass>, Vec<u32>) {
    let mut known: BTreeMap<(LinkKind, std::cmp::Reverse<u64>), usize> = BTreeMap::new();
    let (mut found, mut numbers) = (Vec::<LinkClass>::new(), Vec::with_capacity(chunks.len()));
    for ((busiest, link), &load) in (0..).map(LinkIndex::new).zip(topology.links()).zip(chunks) {
        let (kind, capacity) = (kind(busiest), link.capacity.bytes_per_sec());
        let number = *known.entry((kind.clone(), std::cmp::Reverse(capacity))).or_insert(found.len());
        numbers.push(number);
        let unused = usize::from(load == 0);
        match found.get_mut(number) {
            None => {
                found.push(LinkClass { kind, capacity, links: 1, unused, chunks_min: load, chunks_max: load, busiest })
            }
            Some(class) => {
                (class.links, class.unused) = (class.links + 1, class.unused + unused);
                class.chunks_min = class.chunks_min.min(load);
                if load > class.chunks_max {
                    (class.chunks_max, class.busiest) = (load, busiest);
                }
            }
        }
    }
    // In the order of kinds, whichever came first in the network.
    let order: Vec<usize> = known.into_values().collect();
    let mut place = vec![0_u32; found.len()];
    order.iter().zip(0..).for_each(|(&number, at)| place[number] = at);
    let classes = order.iter().map(|&number| found[number].clone()).collect();
    (classes, numbers.into_iter().map(|number| place[number]).collect())
}

#[cfg(test)]
mod tests;
