//! A plan by a rule for more ranks than trees can be written for: a box of each class, or one rank of a torus.

use canopy_draw::{ByClassDrawing, draw_by_class};
use canopy_schedule::RuleClasses;

use super::{DrawArgs, What, heading_of};
use crate::exit::Failure;
use crate::rule::{self, Rule};
use crate::table::count;

/// Draws it by class.
pub(super) fn draw(args: &DrawArgs, rule: &Rule) -> Result<String, Failure> {
    let remedy = "leave it out: the plan is drawn by classes of boxes and links";
    match args.what {
        What::Topology => {}
        What::Trees => return Err(rule::refuse("--what trees", remedy)),
        What::Timeline => {
            return Err(rule::refuse(
                "--what timeline",
                "see how long it takes with `canopy simulate --critical-path`",
            ));
        }
    }
    if args.base.is_some() {
        return Err(rule::refuse("--base", remedy));
    }
    let Rule { topology, schedule, bound, classes } = rule;
    let title = heading_of(&args.subject, topology, schedule, (&classes.verdict.algbw, &bound.upper));
    let shape = schedule.shape.name();
    let size = format!(
        "{}, {}, by {shape}: by class, of which one is drawn",
        count(topology.rank_count() as usize, "rank"),
        count(topology.links().len(), "link"),
    );
    let faults: Vec<String> = match &classes.rule {
        RuleClasses::Stages(found) => {
            let usual = found.classes.first();
            let words = |class| usual.map_or_else(String::new, |usual| rule::odd(usual, class).join(", "));
            found.classes.iter().map(words).collect()
        }
        RuleClasses::Orbits(_) => Vec::new(),
    };
    let drawing =
        ByClassDrawing { title: &title, notes: &[size], topology, shape: &schedule.shape, classes, faults: &faults };
    Ok(draw_by_class(&drawing))
}
