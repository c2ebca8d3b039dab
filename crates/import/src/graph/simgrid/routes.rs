//! Links and routes: routes say where the ends of links are.
//!
//! A `<link>` of SimGrid has no ends; routes are lists of links. The end of a link in a route is the start of the next
//! one, and the ends of a route are hosts or routers, so ends that must be one place become one. Where that makes two
//! hosts one, there is no network of which all routes are paths, and the file is refused.

use std::collections::{BTreeSet, HashMap};

use canopy_topology::{Capacity, Latency, shorten};

use super::{KIND, units};
use crate::error::{FileError, ImportError};
use crate::xml::Element;

/// What to write where routes do not fit.
const REMEDY: &str = "write routes of one link between neighbours, with a <router> where links meet";

/// Places, of which some are found to be one.
#[derive(Default)]
pub(super) struct Places {
    parents: Vec<usize>,
    /// Of each place that stands for itself: the node that it is.
    nodes: Vec<Option<usize>>,
}

impl Places {
    pub(super) fn add(&mut self, node: Option<usize>) -> usize {
        self.parents.push(self.parents.len());
        self.nodes.push(node);
        self.parents.len() - 1
    }

    /// The place that stands for this one.
    pub(super) fn find(&mut self, mut place: usize) -> usize {
        while self.parents[place] != place {
            self.parents[place] = self.parents[self.parents[place]];
            place = self.parents[place];
        }
        place
    }

    pub(super) fn node(&mut self, place: usize) -> Option<usize> {
        let place = self.find(place);
        self.nodes[place]
    }

    /// Says which node a place without one is.
    pub(super) fn name(&mut self, place: usize, node: usize) {
        let place = self.find(place);
        self.nodes[place] = Some(node);
    }

    /// Whether two places can be one.
    fn can_join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.node(a), self.node(b));
        a.is_none() || b.is_none() || a == b
    }

    /// Makes two places one, unless they are different nodes.
    fn join(&mut self, a: usize, b: usize) -> bool {
        let can = self.can_join(a, b);
        let (a, b) = (self.find(a), self.find(b));
        if can && a != b {
            self.nodes[a] = self.nodes[a].or(self.nodes[b]);
            self.parents[b] = a;
        }
        can
    }
}

/// A link, by its two ends.
pub(super) struct Wire<'a> {
    pub(super) element: &'a Element,
    pub(super) id: &'a str,
    pub(super) capacity: Capacity,
    pub(super) latency: Latency,
    /// Whether both directions share the capacity.
    pub(super) is_shared: bool,
    pub(super) ends: [usize; 2],
    /// Whether a route leads from the first end to the second, and back.
    pub(super) used: [bool; 2],
}

/// All links of a platform.
#[derive(Default)]
pub(super) struct Wires<'a> {
    pub(super) all: Vec<Wire<'a>>,
    by_id: HashMap<&'a str, usize>,
    /// Links that no route between two nodes may use.
    refused: HashMap<&'a str, FileError>,
    /// Latencies that are not whole nanoseconds.
    pub(super) rounded: usize,
    /// Pairs between which a route is known.
    routed: BTreeSet<(usize, usize)>,
}

impl<'a> Wires<'a> {
    pub(super) fn add(&mut self, link: &'a Element, places: &mut Places) -> Result<(), ImportError> {
        let id = link.required("id")?;
        let is_shared = match link.attribute("sharing_policy").unwrap_or("SHARED") {
            "SHARED" => true,
            "SPLITDUPLEX" | "FULLDUPLEX" => false,
            // Others may be on routes from a host to itself, which are left out.
            other => {
                self.refused.insert(id, unshared(link, "sharing_policy", other));
                return Ok(());
            }
        };
        let capacity = units::rate(link.required("bandwidth")?).map_err(|problem| at(link, "bandwidth", &problem))?;
        let latency = link.attribute("latency").unwrap_or("0");
        let (latency, is_exact) = units::latency(latency).map_err(|problem| at(link, "latency", &problem))?;
        self.rounded += usize::from(!is_exact);
        if self.by_id.insert(id, self.all.len()).is_some() {
            return Err(at(link, "id", &format!("two links have the id `{}`; give each its own", shorten(id))).into());
        }
        let ends = [places.add(None), places.add(None)];
        self.all.push(Wire { element: link, id, capacity, latency, is_shared, ends, used: [false; 2] });
        Ok(())
    }

    /// Leads a route from a place to another, and back if it is symmetrical.
    pub(super) fn lead(
        &mut self,
        route: &'a Element,
        (from, to): (usize, usize),
        places: &mut Places,
    ) -> Result<(), ImportError> {
        let is_symmetrical = match route.attribute("symmetrical").unwrap_or("YES") {
            "YES" | "yes" => true,
            "NO" | "no" => false,
            other => return Err(route.unusable("symmetrical", other, "YES or NO").into()),
        };
        let is_new = self.routed.insert((from, to)) && (!is_symmetrical || self.routed.insert((to, from)));
        if !is_new {
            let problem = "a route before joins the same two; keep one, or write symmetrical=\"NO\" in both";
            return Err(FileError::at(KIND, route.line, problem).into());
        }
        if let Some(other) = route.children.iter().find(|child| child.name != "link_ctn") {
            let problem =
                format!("<{}> is no part of a route; list its links as <link_ctn id=…/>", shorten(&other.name));
            return Err(FileError::at(KIND, other.line, problem).into());
        }
        let Some(last) = route.children.len().checked_sub(1) else {
            let problem = "the route has no links; list them as <link_ctn id=…/>";
            return Err(FileError::at(KIND, route.line, problem).into());
        };
        let mut place = from;
        for (number, step) in route.children.iter().enumerate() {
            let wire = self.named(step)?;
            let goal = (number == last).then_some(to);
            let start = first_end(wire, step, (place, goal), places)?;
            wire.used[start] = true;
            wire.used[1 - start] |= is_symmetrical;
            let (begins, ends) = (wire.ends[start], wire.ends[1 - start]);
            if !places.join(begins, place) || goal.is_some_and(|goal| !places.join(ends, goal)) {
                let id = shorten(wire.id);
                let problem = format!("by this route and those before, link `{id}` has more than two ends; {REMEDY}");
                return Err(FileError::at(KIND, step.line, problem).of_field("link_ctn@id").into());
            }
            place = ends;
        }
        Ok(())
    }

    fn named(&mut self, step: &Element) -> Result<&mut Wire<'a>, ImportError> {
        let id = step.required("id")?;
        if let Some(error) = self.refused.get(id) {
            return Err(error.clone().into());
        }
        let unknown = || {
            let problem = format!("there is no link `{}`; add <link id=…> before the route", shorten(id));
            FileError::at(KIND, step.line, problem).of_field("link_ctn@id")
        };
        let number = self.by_id.get(id).copied().ok_or_else(unknown)?;
        Ok(self.all.get_mut(number).ok_or_else(unknown)?)
    }

    /// Refuses links that would lead from a place to itself.
    pub(super) fn check(&self, places: &mut Places) -> Result<(), ImportError> {
        for wire in self.all.iter().filter(|wire| wire.used != [false; 2]) {
            if places.find(wire.ends[0]) == places.find(wire.ends[1]) {
                let id = shorten(wire.id);
                let problem = format!("by the routes over it, both ends of link `{id}` are in one place; {REMEDY}");
                return Err(FileError::at(KIND, wire.element.line, problem).into());
            }
        }
        Ok(())
    }
}

/// At which of its ends a link begins in a route that has come to a place, and ends with the link if it has a goal.
fn first_end(
    wire: &Wire<'_>,
    step: &Element,
    (place, goal): (usize, Option<usize>),
    places: &mut Places,
) -> Result<usize, ImportError> {
    let direction = step.attribute("direction").unwrap_or("NONE");
    match (direction, wire.is_shared) {
        ("UP", false) => return Ok(0),
        ("DOWN", false) => return Ok(1),
        ("NONE", false) => {
            let problem = format!("link `{}` is SPLITDUPLEX; write direction=\"UP\" or \"DOWN\"", shorten(wire.id));
            return Err(FileError::at(KIND, step.line, problem).of_field("link_ctn@direction").into());
        }
        // Both directions of a shared link are the same to SimGrid.
        ("UP" | "DOWN" | "NONE", true) => {}
        (other, _) => return Err(step.unusable("direction", other, "UP, DOWN or NONE").into()),
    }
    let [first, second] = wire.ends;
    let mut same = |a: usize, b: usize| places.find(a) == places.find(b);
    let known = [(first, place, 0), (second, place, 1)].into_iter().find(|&(end, place, _)| same(end, place));
    let goal_known =
        goal.and_then(|goal| [(second, goal, 0), (first, goal, 1)].into_iter().find(|&(end, goal, _)| same(end, goal)));
    if let Some((_, _, start)) = known.or(goal_known) {
        return Ok(start);
    }
    let fits = places.can_join(first, place) && goal.is_none_or(|goal| places.can_join(second, goal));
    Ok(usize::from(!fits))
}

/// Says that a link limits something other than all that it carries.
pub(super) fn unshared(element: &Element, attribute: &'static str, value: &str) -> FileError {
    let why = match value {
        "FATPIPE" => "FATPIPE limits each message, not all together; write SHARED or SPLITDUPLEX with the rate of all",
        "WIFI" => "WIFI has no fixed rate; write SHARED or SPLITDUPLEX",
        _ => "write SHARED or SPLITDUPLEX",
    };
    at(element, attribute, &format!("sharing policy `{}`: {why}", shorten(value)))
}

/// An error about an attribute.
pub(super) fn at(element: &Element, attribute: &str, problem: &str) -> FileError {
    let element_name = shorten(&element.name);
    let problem = format!("{attribute} of <{element_name}>: {problem}");
    FileError::at(KIND, element.line, problem).of_field(format!("{element_name}@{attribute}"))
}
