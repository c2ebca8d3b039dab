//! Trees, whose hops say where they lead, or whose routes do.

use std::ops::Range;

use canopy_schedule::{Action, Carrier, Forest, Hop, Phase, RouteTable, Tree};
use canopy_topology::{Rank, Topology};
use serde::de::{Deserialize, Deserializer};

use super::super::lists::{each, end, list};
use super::{ActionName, Carriers, carriers, position};

/// A hop in words.
const HOP: &str = "a hop `[from, to, route]` or `[from, to, [[route, count], …]]`";

/// Why the routes of a tree are no hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "phases[{phase}].trees[{tree}].routes[{hop}] does not name routes that all lead from one rank to another; \
     write `hops` with the ranks instead, or mend `routes`"
)]
pub struct RoutesError {
    phase: usize,
    tree: usize,
    hop: usize,
}

impl RoutesError {
    /// The field at fault.
    pub(in super::super) fn field(self) -> String {
        format!("phases[{}].trees[{}].routes[{}]", self.phase, self.tree, self.hop)
    }
}

/// `[{"action": …, "trees": [{"root": …, "multiplicity": …, "hops": […]}, …]}, …]`, with `routes` for `hops` where these
/// are listed without the ranks.
#[derive(Default)]
pub(super) struct Trees {
    carriers: Vec<Carrier>,
    hops: Vec<Hop>,
    phases: Vec<Phase>,
    /// Trees whose hops have no ranks yet: phase and tree.
    open: Vec<(usize, usize)>,
}

impl<'de> Deserialize<'de> for Trees {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tables = Self::default();
        each(deserializer, "a list", |PhaseDocument { action, trees }| {
            let numbered = trees.into_iter().enumerate();
            let trees = numbered.map(|(number, tree)| tables.add(number, tree)).collect::<Result<_, _>>()?;
            tables.phases.push(Phase { action, trees });
            Ok(())
        })?;
        Ok(tables)
    }
}

#[derive(serde::Deserialize)]
#[serde(expecting = "a phase with `action` and `trees`")]
struct PhaseDocument {
    #[serde(with = "ActionName")]
    action: Action,
    #[serde(deserialize_with = "list")]
    trees: Vec<TreeDocument>,
}

#[derive(serde::Deserialize)]
#[serde(expecting = "a tree with `root`, `multiplicity` and `hops` or `routes`")]
struct TreeDocument {
    hops: Option<Hops>,
    routes: Option<HopRoutes>,
    multiplicity: u64,
    root: u32,
}

/// Stands for all chunks of the tree, as its multiplicity may follow its hops. No carrier may say that it carries
/// nothing.
const WHOLE: u64 = 0;

/// The hops of one tree, in tables of its own.
#[derive(Default)]
struct Hops {
    carriers: Vec<Carrier>,
    hops: Vec<Hop>,
}

impl Hops {
    fn push(&mut self, from: Rank, to: Rank, carriers: Carriers) {
        let start = position(self.carriers.len());
        carriers.add_to(&mut self.carriers, WHOLE);
        self.hops.push(Hop { from, to, carriers: start..position(self.carriers.len()) });
    }
}

impl<'de> Deserialize<'de> for Hops {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tables = Self::default();
        each(deserializer, "a list", |HopDocument(from, to, carriers, ())| {
            tables.push(Rank::new(from), Rank::new(to), carriers);
            Ok(())
        })?;
        Ok(tables)
    }
}

#[derive(serde::Deserialize)]
#[serde(expecting = "a hop `[from, to, route]` or `[from, to, [[route, count], …]]`")]
struct HopDocument(
    u32,
    u32,
    #[serde(deserialize_with = "carriers")] Carriers,
    #[serde(default, deserialize_with = "hop_end")] (),
);

fn hop_end<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    end(deserializer, 4, HOP)
}

/// Hops without their ranks, for which rank 0 stands.
struct HopRoutes(Hops);

impl<'de> Deserialize<'de> for HopRoutes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tables = Hops::default();
        each(deserializer, "a list of routes or lists `[[route, count], …]`", |HopRoute(carriers)| {
            tables.push(Rank::new(0), Rank::new(0), carriers);
            Ok(())
        })?;
        Ok(Self(tables))
    }
}

#[derive(serde::Deserialize)]
struct HopRoute(#[serde(deserialize_with = "carriers")] Carriers);

impl Trees {
    /// Adds the tables of a tree behind those of the trees before it.
    fn add(&mut self, number: usize, document: TreeDocument) -> Result<Tree, String> {
        let TreeDocument { hops, routes, multiplicity, root } = document;
        let is_open = routes.is_some();
        let Hops { carriers, hops } = match (hops, routes) {
            (Some(hops), None) | (None, Some(HopRoutes(hops))) => hops,
            (None, None) => return Err("missing field `hops`, or `routes` without the ranks of hops".to_owned()),
            (Some(_), Some(_)) => return Err("a tree has `hops` and `routes`; remove one of them".to_owned()),
        };
        if is_open {
            self.open.push((self.phases.len(), number));
        }
        let (first_carrier, first_hop) = (position(self.carriers.len()), position(self.hops.len()));
        self.carriers.extend(carriers.into_iter().map(|carrier| match carrier.chunk_count {
            WHOLE => Carrier { chunk_count: multiplicity, ..carrier },
            _ => carrier,
        }));
        self.hops.extend(hops.into_iter().map(|Hop { from, to, carriers }| {
            let carriers = first_carrier + carriers.start..first_carrier + carriers.end;
            Hop { from, to, carriers }
        }));
        Ok(Tree { root: Rank::new(root), multiplicity, hops: first_hop..position(self.hops.len()) })
    }

    /// The forest, with the ranks of all hops. O(hops and carriers without ranks + routes).
    pub(super) fn into_forest(
        self,
        topology: &Topology,
        chunks_per_share: u64,
        routes: RouteTable,
    ) -> Result<Forest, RoutesError> {
        let Self { carriers, mut hops, phases, open } = self;
        let ends = if open.is_empty() { Vec::new() } else { routes.ends(topology) };
        for (phase, tree) in open {
            let Range { start, end } = phases[phase].trees[tree].hops;
            for (number, hop) in hops[start as usize..end as usize].iter_mut().enumerate() {
                let carriers = &carriers[hop.carriers.start as usize..hop.carriers.end as usize];
                let mut found = carriers.iter().map(|carrier| ends.get(carrier.route.index()).copied().flatten());
                let first = found.next().flatten();
                let (from, to) = first.filter(|_| found.all(|other| other == first)).ok_or(RoutesError {
                    phase,
                    tree,
                    hop: number,
                })?;
                (hop.from, hop.to) = (from, to);
            }
        }
        Ok(Forest { chunks_per_share, routes, carriers, hops, phases })
    }
}
