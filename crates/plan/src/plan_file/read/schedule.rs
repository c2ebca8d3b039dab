//! Reads a schedule into the flat tables of its shape as the text goes by.

mod trees;

use canopy_schedule::{
    Action, Carrier, Flow, Pace, Path, PathTrees, PathTreesError, Pattern, Patterns, RouteIndex, RouteTable, Send,
    Shape, Steps,
};
use canopy_topology::{LinkIndex, Rank, Topology};
use serde::de::{Deserialize, Deserializer};

pub(super) use self::trees::RoutesError;
use self::trees::Trees;
use super::PlanFileError;
use super::lists::{OneOrMany, each, end};
use crate::plan_file::orbits::OrbitsDocument;
use crate::plan_file::stages::StagesDocument;

/// Most sends of a file, which can name many in few bytes: as many as compile.
const SENDS_MAX: usize = 1 << 27;

/// A send in words.
const SEND: &str =
    "a send `[step, action, from, to, first chunk or [first chunk, …], chunks, route or [[route, count], …]]`";

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ShapeName {
    Forest,
    Steps,
    Flow,
    Stages,
    Orbits,
}

impl ShapeName {
    const fn name(self) -> &'static str {
        match self {
            Self::Forest => "forest",
            Self::Steps => "steps",
            Self::Flow => "flow",
            Self::Stages => "stages",
            Self::Orbits => "orbits",
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(remote = "Action", rename_all = "kebab-case")]
enum ActionName {
    Copy,
    Reduce,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PaceName {
    Barriers,
    InTurn,
}

/// Any shape. Not an enum, for which serde would keep all of its text in memory a second time.
#[derive(serde::Deserialize)]
pub(super) struct ScheduleDocument {
    shape: ShapeName,
    pub(super) algorithm: String,
    routes: Routes,
    phases: Option<Trees>,
    pace: Option<PaceName>,
    sends: Option<Sends>,
    paths: Option<Paths>,
    ports: Option<u32>,
    /// Chunks and places of each.
    patterns: Option<Vec<(u64, Vec<u32>)>>,
    /// Links of the tree of each rank.
    trees: Option<Vec<Vec<u32>>>,
    stages: Option<StagesDocument>,
    orbits: Option<OrbitsDocument>,
}

impl ScheduleDocument {
    /// Refuses fields of other shapes.
    fn require_own_fields(&self) -> Result<(), PlanFileError> {
        let needed: &[&str] = match self.shape {
            ShapeName::Forest => &["phases"],
            ShapeName::Steps => &["pace", "sends"],
            ShapeName::Flow if self.patterns.is_some() => &["ports", "patterns"],
            ShapeName::Flow if self.trees.is_some() => &["trees"],
            ShapeName::Flow => &["paths"],
            ShapeName::Stages => &["stages"],
            ShapeName::Orbits => &["orbits"],
        };
        let given = [
            ("phases", self.phases.is_some()),
            ("pace", self.pace.is_some()),
            ("sends", self.sends.is_some()),
            ("paths", self.paths.is_some()),
            ("ports", self.ports.is_some()),
            ("patterns", self.patterns.is_some()),
            ("trees", self.trees.is_some()),
            ("stages", self.stages.is_some()),
            ("orbits", self.orbits.is_some()),
        ];
        match given.into_iter().find(|&(field, given)| given && !needed.contains(&field)) {
            Some((field, _)) => Err(PlanFileError::ForeignField { field, shape: self.shape.name() }),
            None => Ok(()),
        }
    }

    pub(super) fn into_shape(self, topology: &Topology, chunks_per_share: u64) -> Result<Shape, PlanFileError> {
        self.require_own_fields()?;
        let Self { shape, routes: Routes(routes), phases, pace, sends, paths, .. } = self;
        let Self { ports, patterns, trees, stages, orbits, .. } = self;
        let missing = |field| PlanFileError::MissingField { field, shape: shape.name() };
        Ok(match shape {
            ShapeName::Forest => {
                let trees = phases.ok_or_else(|| missing("phases"))?;
                let forest = trees.into_forest(topology, chunks_per_share, routes);
                Shape::Forest(forest.map_err(PlanFileError::Hops)?)
            }
            ShapeName::Steps => {
                let Sends { carriers, sends } = sends.ok_or_else(|| missing("sends"))?;
                let pace = match pace {
                    None | Some(PaceName::Barriers) => Pace::Barriers,
                    Some(PaceName::InTurn) => Pace::InTurn,
                };
                Shape::Steps(Steps { chunks_per_share, pace, routes, carriers, sends })
            }
            ShapeName::Flow => {
                if let Some(trees) = trees {
                    let flow = by_trees(topology, chunks_per_share, &routes, &trees);
                    return flow.map(Shape::Flow).map_err(PlanFileError::Trees);
                }
                let Some(patterns) = patterns else {
                    let Paths { hops, paths } = paths.ok_or_else(|| missing("paths"))?;
                    return Ok(Shape::Flow(Flow { chunks_per_share, routes, hops, paths }));
                };
                let ports = ports.ok_or_else(|| missing("ports"))?;
                let patterns = patterns.into_iter().map(|(chunk_count, hops)| Pattern { chunk_count, hops }).collect();
                let flow = Patterns { ports, patterns }.flow(topology, chunks_per_share, routes, &|| false);
                Shape::Flow(flow.map_err(PlanFileError::Patterns)?)
            }
            ShapeName::Stages => {
                let stages = stages.ok_or_else(|| missing("stages"))?;
                Shape::Stages(stages.into_stages(chunks_per_share)?)
            }
            ShapeName::Orbits => {
                let orbits = orbits.ok_or_else(|| missing("orbits"))?;
                Shape::Orbits(orbits.into_orbits(chunks_per_share)?)
            }
        })
    }
}

/// A path between every two ranks, with all that the one has for the other, along the trees of the first.
fn by_trees(
    topology: &Topology,
    chunks_per_share: u64,
    routes: &RouteTable,
    trees: &[Vec<u32>],
) -> Result<Flow, PathTreesError> {
    if !routes.is_empty() {
        return Err(PathTreesError::Routes { found: routes.len() });
    }
    PathTrees::from_lists(topology, trees)?.flow(topology, chunks_per_share, |_, _| chunks_per_share, &|| false)
}

/// Position in a table; none outgrows `u32`, because a file of 2³⁰ bytes cannot list that much, and runs of sends stand
/// for at most 2²⁷.
fn position(length: usize) -> u32 {
    u32::try_from(length).expect("at most one entry per byte of a file of at most 2³⁰ bytes, and 2²⁷ more")
}

/// `[[link, …], …]`.
struct Routes(RouteTable);

impl<'de> Deserialize<'de> for Routes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = RouteTable::default();
        each(deserializer, "a list of routes, each a list of link indices", |route: Vec<u32>| {
            let links: Vec<LinkIndex> = route.into_iter().map(LinkIndex::new).collect();
            table.push(&links);
            Ok(())
        })?;
        Ok(Self(table))
    }
}

/// The last part of a hop or a send: one route for all of its chunks, or each with the chunks that it carries.
type Carriers = OneOrMany<u32, CarrierDocument>;

fn carriers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Carriers, D::Error> {
    Carriers::read(deserializer, "a route or a list `[[route, count], …]`", 0)
}

#[derive(serde::Deserialize)]
#[serde(try_from = "(u32, u64)")]
struct CarrierDocument(Carrier);

impl TryFrom<(u32, u64)> for CarrierDocument {
    type Error = &'static str;

    fn try_from((route, chunk_count): (u32, u64)) -> Result<Self, Self::Error> {
        match chunk_count {
            0 => Err("a carrier has 0 chunks; remove it"),
            _ => Ok(Self(Carrier { route: RouteIndex::new(route), chunk_count })),
        }
    }
}

impl Carriers {
    /// Adds the carriers to a table; a single one carries all `chunk_count` chunks.
    fn add_to(self, table: &mut Vec<Carrier>, chunk_count: u64) {
        match self {
            Self::One(route) => table.push(Carrier { route: RouteIndex::new(route), chunk_count }),
            Self::Many(carriers) => table.extend(carriers.into_iter().map(|CarrierDocument(carrier)| carrier)),
        }
    }
}

/// `[[step, action, from, to, first chunk or [first chunk, …], chunks, route or [[route, count], …]], …]`.
#[derive(Default)]
struct Sends {
    carriers: Vec<Carrier>,
    sends: Vec<Send>,
}

impl<'de> Deserialize<'de> for Sends {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tables = Self::default();
        each(deserializer, "a list of sends", |send| tables.add(send))?;
        Ok(tables)
    }
}

#[derive(serde::Deserialize)]
#[serde(
    expecting = "a send `[step, action, from, to, first chunk or [first chunk, …], chunks, route or [[route, count], …]]`"
)]
struct SendDocument(
    u32,
    #[serde(with = "ActionName")] Action,
    u32,
    u32,
    #[serde(deserialize_with = "first_chunks")] OneOrMany<u64>,
    u64,
    #[serde(deserialize_with = "carriers")] Carriers,
    #[serde(default, deserialize_with = "send_end")] (),
);

/// First chunk of a send, or those of a run of sends that are alike but for them.
fn first_chunks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMany<u64>, D::Error> {
    OneOrMany::read(deserializer, "a first chunk, or a list of them", 1)
}

fn send_end<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    end(deserializer, 8, SEND)
}

impl Sends {
    /// Adds a send, or a run of sends alike, each with carriers of its own.
    fn add(&mut self, document: SendDocument) -> Result<(), String> {
        let SendDocument(step, action, from, to, firsts, chunk_count, carriers, ()) = document;
        let start = self.carriers.len();
        carriers.add_to(&mut self.carriers, chunk_count);
        let firsts = match &firsts {
            OneOrMany::One(first) => std::slice::from_ref(first),
            OneOrMany::Many(firsts) if self.carriers.len() == start + 1 => firsts,
            OneOrMany::Many(_) => {
                return Err("several first chunks need one route; write one send for each".to_owned());
            }
        };
        for (place, &first) in firsts.iter().enumerate() {
            if place > 0 {
                self.carriers.push(self.carriers[start]);
            }
            let past = || format!("{chunk_count} chunks from {first} on exceed 64 bits");
            let chunks = first..first.checked_add(chunk_count).ok_or_else(past)?;
            if self.sends.len() == SENDS_MAX {
                return Err(format!("the schedule has more than {SENDS_MAX} sends; use fewer chunks per share"));
            }
            let carriers = position(start + place)..position(self.carriers.len());
            self.sends.push(Send { step, action, from: Rank::new(from), to: Rank::new(to), chunks, carriers });
        }
        Ok(())
    }
}

/// `[[source, destination, chunks, [route, …]], …]`.
#[derive(Default)]
struct Paths {
    hops: Vec<RouteIndex>,
    paths: Vec<Path>,
}

impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tables = Self::default();
        let expected = "a list of paths `[source, destination, chunks, [route, …]]`";
        each(deserializer, expected, |PathDocument(source, destination, chunk_count, routes)| {
            let start = position(tables.hops.len());
            tables.hops.extend(routes);
            let (source, destination) = (Rank::new(source), Rank::new(destination));
            tables.paths.push(Path { source, destination, chunk_count, hops: start..position(tables.hops.len()) });
            Ok(())
        })?;
        Ok(tables)
    }
}

#[derive(serde::Deserialize)]
#[serde(expecting = "a path `[source, destination, chunks, [route, …]]`")]
struct PathDocument(u32, u32, u64, #[serde(deserialize_with = "path_routes")] Vec<RouteIndex>);

fn path_routes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RouteIndex>, D::Error> {
    let mut routes = Vec::new();
    each(deserializer, "a list of routes", |route| {
        routes.push(RouteIndex::new(route));
        Ok(())
    })?;
    Ok(routes)
}
