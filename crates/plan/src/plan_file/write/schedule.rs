//! The part of a plan file that says what is done: a schedule in its natural shape.

use canopy_schedule::{
    Action, Carrier, Flow, Forest, Hop, Pace, Path, PathTrees, Pattern, Patterns, Phase, RouteIndex, RouteTable,
    Schedule, Send, Shape, Steps, Tree,
};
use canopy_topology::LinkIndex;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::plan_file::orbits::OrbitsDocument;
use crate::plan_file::stages::StagesDocument;

/// The member `schedule`.
pub(super) struct ScheduleView<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) form: &'a Form,
}

/// How the paths of a flow, or the hops of trees, are written.
pub(super) enum Form {
    /// One by one.
    Listed,
    /// Paths once for all ranks.
    Patterns(Patterns),
    /// Paths by the links of a tree for each rank, from which routes follow, too.
    Trees(PathTrees),
    /// Hops by their routes alone.
    Routes,
}

impl Serialize for ScheduleView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Schedule { algorithm, shape, .. } = self.schedule;
        let mut fields = serializer.serialize_struct("schedule", 6)?;
        let routes = match shape {
            _ if matches!(self.form, Form::Trees(_)) => None,
            Shape::Forest(Forest { routes, .. })
            | Shape::Steps(Steps { routes, .. })
            | Shape::Flow(Flow { routes, .. }) => Some(routes),
            Shape::Stages(_) | Shape::Orbits(_) => None,
        };
        fields.serialize_field("shape", shape.name())?;
        fields.serialize_field("algorithm", algorithm)?;
        match routes {
            Some(routes) => fields.serialize_field("routes", &RoutesView(routes))?,
            None => fields.serialize_field("routes", &[(); 0])?,
        }
        match shape {
            Shape::Forest(forest) => {
                fields.serialize_field(
                    "phases",
                    &list(&forest.phases, |phase| PhaseView { forest, form: self.form, phase }),
                )?;
            }
            Shape::Steps(steps) => {
                // Without a word there are barriers.
                match steps.pace {
                    Pace::Barriers => fields.skip_field("pace")?,
                    Pace::InTurn => fields.serialize_field("pace", steps.pace.name())?,
                }
                fields.serialize_field("sends", &SendsView(steps))?;
            }
            Shape::Flow(flow) => match self.form {
                Form::Patterns(Patterns { ports, patterns }) => {
                    fields.serialize_field("ports", ports)?;
                    fields.serialize_field("patterns", &list(patterns, pattern_view))?;
                }
                Form::Trees(trees) => fields.serialize_field("trees", &TreesView(trees))?,
                Form::Listed | Form::Routes => {
                    fields.serialize_field("paths", &list(&flow.paths, |path| PathView { flow, path }))?;
                }
            },
            Shape::Stages(stages) => fields.serialize_field("stages", &StagesDocument::from(stages))?,
            Shape::Orbits(orbits) => fields.serialize_field("orbits", &OrbitsDocument::from(orbits))?,
        }
        fields.end()
    }
}

/// `[chunks, [place, …]]`.
fn pattern_view(pattern: &Pattern) -> (u64, &[u32]) {
    (pattern.chunk_count, &pattern.hops)
}

/// The word for what a receiver does.
const fn word(action: Action) -> &'static str {
    match action {
        Action::Copy => "copy",
        Action::Reduce => "reduce",
    }
}

/// `[[link, …], …]`.
struct TreesView<'a>(&'a PathTrees);

impl Serialize for TreesView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.lists().map(|links| links.map(LinkIndex::number).collect::<Vec<_>>()))
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
    form: &'a Form,
    phase: &'a Phase,
}

impl Serialize for PhaseView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("phase", 2)?;
        fields.serialize_field("action", word(self.phase.action))?;
        let Self { forest, form, phase } = self;
        fields.serialize_field("trees", &list(&phase.trees, |tree| TreeView { forest, form, tree }))?;
        fields.end()
    }
}

struct TreeView<'a> {
    forest: &'a Forest,
    form: &'a Form,
    tree: &'a Tree,
}

impl Serialize for TreeView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { forest, form, tree } = self;
        let (hops, multiplicity) = (forest.hops_of(tree), tree.multiplicity);
        let mut fields = serializer.serialize_struct("tree", 3)?;
        fields.serialize_field("root", &tree.root.number())?;
        fields.serialize_field("multiplicity", &tree.multiplicity)?;
        match form {
            Form::Routes => fields.serialize_field("routes", &list(hops, |hop| carriers(forest, hop, multiplicity)))?,
            _ => fields.serialize_field("hops", &list(hops, |hop| HopView { forest, hop, multiplicity }))?,
        }
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
        (from, to, carriers(self.forest, self.hop, self.multiplicity)).serialize(serializer)
    }
}

/// What carries a hop of a tree of `chunk_count` chunks.
fn carriers<'a>(forest: &'a Forest, hop: &Hop, chunk_count: u64) -> CarriersView<'a> {
    CarriersView { carriers: forest.carriers_of(hop), chunk_count }
}

/// Sends in their order, one entry for each run of sends alike.
struct SendsView<'a>(&'a Steps);

impl Serialize for SendsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let steps = self.0;
        let runs = steps.sends.chunk_by(|a, b| are_alike(steps, a, b));
        serializer.collect_seq(runs.map(|run| RunView { steps, run }))
    }
}

/// Whether some sends have to be written as a run.
pub(super) fn has_runs(steps: &Steps) -> bool {
    steps.sends.windows(2).any(|pair| are_alike(steps, &pair[0], &pair[1]))
}

/// Whether two sends differ in nothing but their chunks, as many of each, which travel on one route.
fn are_alike(steps: &Steps, a: &Send, b: &Send) -> bool {
    (a.step, a.action, a.from, a.to) == (b.step, b.action, b.from, b.to)
        && chunk_count(a) == chunk_count(b)
        && matches!(steps.carriers_of(a), [_])
        && steps.carriers_of(a) == steps.carriers_of(b)
}

const fn chunk_count(send: &Send) -> u64 {
    send.chunks.end.saturating_sub(send.chunks.start)
}

struct RunView<'a> {
    steps: &'a Steps,
    /// At least one send, and all alike.
    run: &'a [Send],
}

/// `[step, action, from, to, first chunk, chunks, route or [[route, count], …]]`, with a list of first chunks for several.
impl Serialize for RunView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let first = &self.run[0];
        let Send { step, action, from, to, .. } = first;
        let (from, to, chunk_count) = (from.number(), to.number(), chunk_count(first));
        let carriers = CarriersView { carriers: self.steps.carriers_of(first), chunk_count };
        match self.run {
            [send] => (step, word(*action), from, to, send.chunks.start, chunk_count, carriers).serialize(serializer),
            sends => {
                let firsts = list(sends, |send: &Send| send.chunks.start);
                (step, word(*action), from, to, firsts, chunk_count, carriers).serialize(serializer)
            }
        }
    }
}

struct PathView<'a> {
    flow: &'a Flow,
    path: &'a Path,
}

/// `[source, destination, chunks, [route, …]]`.
impl Serialize for PathView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Path { source, destination, chunk_count, .. } = self.path;
        let hops = list(self.flow.hops_of(self.path), |route: &RouteIndex| route.number());
        (source.number(), destination.number(), chunk_count, hops).serialize(serializer)
    }
}

struct CarriersView<'a> {
    carriers: &'a [Carrier],
    /// Chunks they carry together.
    chunk_count: u64,
}

/// The route where one carries everything, else `[[route, count], …]`.
impl Serialize for CarriersView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.carriers {
            [carrier] if carrier.chunk_count == self.chunk_count => carrier.route.number().serialize(serializer),
            carriers => {
                list(carriers, |carrier: &Carrier| (carrier.route.number(), carrier.chunk_count)).serialize(serializer)
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
