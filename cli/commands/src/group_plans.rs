//! The folder that `canopy tools plan-job` writes: a plan for each group, and the network that they share.

pub(crate) mod manifest;

use std::fmt::Display;
use std::path::{Component, Path, PathBuf};

use canopy_plan::{PlanFile, read_plan};
use canopy_schedule::{Collective, TransferGraph, compile};
use canopy_topology::{NodeIndex, Rank, Topology, TopologyLimits, read_document};

use crate::args;
use crate::exit::{Failure, words};
use crate::input::{self, PLAN_BYTES_MAX};
use crate::output::{GROUPS_KIND, GROUPS_NETWORK, MANIFEST, ManifestKind};

use self::manifest::{Group, Manifest};

/// The folder of a job's plans.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) network: Topology,
    pub(crate) limits: TopologyLimits,
}

/// The class of a group: its name without its number.
pub(crate) fn class(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(class, _)| class)
}

/// A group and its plan.
pub(crate) struct Planned<'f> {
    pub(crate) group: &'f Group,
    pub(crate) collective: Collective,
    pub(crate) plan: PlanFile,
    pub(crate) graph: TransferGraph,
    /// Its members in the network.
    pub(crate) members: Vec<NodeIndex>,
}

impl Folder {
    /// The folder at a path, or with this manifest; none: it is of another kind.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Failure> {
        let is_folder = path.is_dir();
        let file = if is_folder { path.join(MANIFEST) } else { path.to_owned() };
        if !is_folder && file.file_name().is_none_or(|name| name != MANIFEST) {
            return Ok(None);
        }
        let bytes = input::bytes(&file, PLAN_BYTES_MAX)?;
        if serde_json::from_slice::<ManifestKind>(&bytes).map_or(true, |found| found.kind != GROUPS_KIND) {
            return Ok(None);
        }
        let refuse = |error: &dyn Display| Failure::input(format!("{}: {error}", file.display()));
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| refuse(&error))?;
        Self::of(file.parent().unwrap_or(Path::new("")), manifest).map(Some)
    }

    /// The folder at a path that has the network, with this manifest.
    pub(crate) fn of(path: &Path, manifest: Manifest) -> Result<Self, Failure> {
        let (limits, network) = (input::plan_limits()?, path.join(GROUPS_NETWORK));
        let document = input::bytes(&network, PLAN_BYTES_MAX)?;
        let refuse = |error: &dyn Display| Failure::input(format!("{}: {error}", network.display()));
        let network = read_document(&document, None, &limits).map_err(|error| refuse(&words(&error)))?;
        Ok(Self { path: path.to_owned(), manifest, network: network.topology, limits })
    }

    /// The plans of all groups.
    ///
    /// # Errors
    /// The first group without a plan of its own, and why.
    pub(crate) fn plans(&self) -> Result<Vec<Planned<'_>>, Failure> {
        let plans = self.manifest.groups.iter().map(|group| {
            let wrong = |problem: String| Failure::input(format!("group {}: {problem}", group.name));
            let content = self.content(group)?.map_err(wrong)?;
            self.read(group, &content).map_err(wrong)
        });
        plans.collect()
    }

    /// The content of the plan file of a group; inside, why there is no such file.
    pub(crate) fn content(&self, group: &Group) -> Result<Result<Vec<u8>, String>, Failure> {
        let Some(file) = group.files.iter().find(|file| file.format == "json") else {
            return Ok(Err("it has no file of format json".to_owned()));
        };
        if !Path::new(&file.path).components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(Err(format!("{} is not in the folder", file.path)));
        }
        input::bytes(&self.path.join(&file.path), PLAN_BYTES_MAX).map(Ok)
    }

    /// The plan of a group as its file has it, or why it is none of this group.
    pub(crate) fn read<'f>(&'f self, group: &'f Group, content: &[u8]) -> Result<Planned<'f>, String> {
        let plan = read_plan(content, &self.limits).map_err(|error| words(&error))?;
        self.placed(group, plan)
    }

    /// The plan as that of a group, if it is.
    fn placed<'f>(&self, group: &'f Group, plan: PlanFile) -> Result<Planned<'f>, String> {
        let kind = args::collective_kind(&group.collective)?;
        let collective = plan.schedule.collective;
        if (collective.kind(), collective.root().map(Rank::number)) != (kind, group.root) {
            return Err(format!("its plan is a {} of another kind or root", collective.kind()));
        }
        let members: Vec<NodeIndex> = plan
            .topology
            .ranks()
            .filter_map(|rank| self.network.find_node(&plan.topology.node(rank.node()).id))
            .collect();
        let stated: Vec<NodeIndex> = group.ranks.iter().filter_map(|&rank| self.node_of(rank)).collect();
        if members != stated || members.len() != group.ranks.len() {
            return Err("the ranks of its plan are others than the manifest says".to_owned());
        }
        let graph = compile(&plan.topology, &plan.schedule).map_err(|error| words(&error))?;
        Ok(Planned { group, collective, plan, graph, members })
    }

    /// Where a rank of the layout is in the network: those after lost ones have moved up.
    fn node_of(&self, rank: u32) -> Option<NodeIndex> {
        let lost = self.manifest.lost_ranks.partition_point(|&lost| lost < rank);
        let now = rank.checked_sub(u32::try_from(lost).ok()?)?;
        let is_there = self.manifest.lost_ranks.get(lost) != Some(&rank) && now < self.network.rank_count();
        is_there.then(|| Rank::new(now).node())
    }
}
