//! What was found of a job, as `manifest.json` and as the command prints it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroU64;
use std::path::Path;

use canopy_client::PlannedGroups;
use canopy_proto::Exact as _;
use canopy_proto::v1::{GroupClassRates, GroupLevel, GroupLinkLength, GroupOrder, GroupPlan, Plan};
use canopy_schedule::{SharedPart, shared_time};
use canopy_topology::Ratio;
use serde::Serialize;

use crate::commands::verify::groups::parts;
use crate::exit::Failure;
use crate::group_plans::Folder;
use crate::group_plans::manifest::{
    Certificate, ClassSummary, Group, LevelSummary, LinkLength, Manifest, OrderSummary,
};
use crate::output::{FORMAT_VERSION, GROUPS_KIND};
use crate::request::{collective_name, missing};

/// JSON object of the command.
#[derive(Debug, Serialize)]
pub(super) struct Printed<'a> {
    pub(super) job: &'a Manifest,
}

impl Manifest {
    /// Without plans.
    pub(super) fn of(PlannedGroups { rates, lengths, .. }: &PlannedGroups, forward: bool) -> Self {
        let class = |class: &GroupClassRates| ClassSummary {
            name: class.name.clone(),
            collective: collective_name(class.collective()).unwrap_or_default().to_owned(),
            groups: class.groups,
            ranks: class.ranks,
            size_bytes: class.size_bytes,
            seconds_alone: class.seconds_alone.exact().to_owned(),
        };
        let link = |link: &GroupLinkLength| LinkLength {
            from: link.from.clone(),
            to: link.to.clone(),
            latency_ns: link.latency_ns,
            length: link.length.clone(),
        };
        let certificate = |lengths: &Vec<_>| Certificate { links: lengths.iter().map(link).collect() };
        let level = |(level, lengths): (&GroupLevel, _)| LevelSummary {
            seconds: level.seconds.exact().to_owned(),
            seconds_bound: level.seconds_bound.exact().to_owned(),
            groups: counts(&rates.classes, &level.groups),
            certificate: certificate(lengths),
        };
        Self {
            canopy: FORMAT_VERSION,
            kind: GROUPS_KIND.to_owned(),
            ranks: rates.topology.as_ref().map_or(0, |topology| topology.ranks),
            lost_ranks: rates.lost_ranks.clone(),
            forward,
            seconds: rates.seconds.exact().to_owned(),
            seconds_joint: None,
            seconds_bound: rates.seconds_bound.exact().to_owned(),
            seconds_rings: rates.seconds_rings.exact().to_owned(),
            seconds_phases: rates.seconds_phases.exact().to_owned(),
            seconds_alone: rates.seconds_alone.exact().to_owned(),
            classes: rates.classes.iter().map(class).collect(),
            orders: (0..).zip(&rates.orders).map(|(position, one)| order(one, position == rates.best_order)).collect(),
            rank_order: rates.rank_order.clone(),
            levels: rates.levels.iter().zip(lengths).map(level).collect(),
            certificate: certificate(lengths.first().unwrap_or(&Vec::new())),
            groups: Vec::new(),
        }
    }

    /// The same with what the plans in a folder take together, by their files.
    pub(super) fn measured(mut self, folder: &Path) -> Result<Self, Failure> {
        let broken = |error: &dyn Display| Failure::fault(format!("the server's plans cannot be added up: {error}"));
        let folder = Folder::of(folder, self.clone())?;
        let planned = folder.plans()?;
        let parts: Vec<SharedPart<'_>> = parts(&planned).collect();
        let time = shared_time(&folder.network, &parts).map_err(|error| broken(&error))?;
        let joint: Ratio = self.seconds.parse().map_err(|error| broken(&error))?;
        let stated = std::mem::replace(&mut self.seconds, time.to_string());
        self.seconds_joint = Some(stated).filter(|_| is_longer(&time, &joint));
        Ok(self)
    }

    /// Whether it takes longer than what nothing beats, by more than is lost by rounding.
    pub(super) fn is_above_bound(&self) -> bool {
        let times = self.seconds.parse().ok().zip(self.seconds_bound.parse().ok());
        times.is_none_or(|(time, bound)| is_longer(&time, &bound))
    }
}

/// Whether a time is longer than another by more than a millionth: rates of shares are whole bytes per second.
fn is_longer(time: &Ratio, than: &Ratio) -> bool {
    Ratio::new(1_u32, 1_000_000_u32).is_some_and(|millionth| than.missing_of(time) > millionth)
}

fn order(GroupOrder { layout, seconds, seconds_bound }: &GroupOrder, best: bool) -> OrderSummary {
    OrderSummary {
        layout: layout.clone(),
        seconds: seconds.as_ref().map(|seconds| seconds.exact.clone()),
        seconds_bound: seconds_bound.exact().to_owned(),
        best,
    }
}

/// How many of these groups each class has.
fn counts(classes: &[GroupClassRates], groups: &[u32]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    let mut first = 0;
    for class in classes {
        let own = first..first + class.groups;
        let count = groups.iter().filter(|group| own.contains(group)).count();
        if count > 0 {
            counts.insert(class.name.clone(), u32::try_from(count).unwrap_or(u32::MAX));
        }
        first = own.end;
    }
    counts
}

impl Group {
    /// Without files.
    pub(super) fn of(group: &GroupPlan, plan: &Plan) -> Result<Self, Failure> {
        let quality = plan.quality.as_ref().ok_or_else(|| missing("the quality of a plan"))?;
        let collective = group.collective.as_ref().ok_or_else(|| missing("the collective of a group"))?;
        Ok(Self {
            name: group.name.clone(),
            collective: collective_name(collective.kind()).unwrap_or_default().to_owned(),
            root: collective.root,
            ranks: group.ranks.clone(),
            size_bytes: NonZeroU64::new(group.size_bytes).ok_or_else(|| missing("the size of a group"))?,
            seconds: group.seconds.exact().to_owned(),
            plan: plan.name.clone(),
            achieved: quality.achieved.exact().to_owned(),
            files: Vec::new(),
        })
    }
}
