//! The classes of a plan by a rule as tables for people.

use super::super::ExplainArgs;
use super::super::names::{joined, link_in_words};
use super::super::text::{reached, used};
use super::{
    BoxClassSummary, Explained, LinkClassSummary, Part, PatchesSummary, RuleSummary, StageSummary, TemplateSummary,
};
use crate::output::gigabytes;
use crate::rule::Rule;
use crate::table::{Table, count};

/// Most classes of boxes and of links, templates and ranks with patches that stand in a table.
const ROWS_MAX: usize = 12;

/// All of it: facts, then a table for each kind of class.
pub(super) fn readable(args: &ExplainArgs, rule: &Rule, explained: &Explained) -> String {
    let Rule { topology, schedule, bound, classes } = rule;
    let bounds = (bound, explained.with_in_network.as_ref());
    let mut lines = reached(&args.subject, (topology, schedule), bounds, &classes.verdict, &explained.why);
    let first = classes.binding(topology).next();
    lines.extend(used(topology, first, &explained.links, &explained.traffic.0, &classes.verdict));
    let mut blocks = vec![lines.join("\n")];
    match &explained.by_class.of_rule {
        RuleSummary::Stages { boxes, stages, exceptions } => {
            blocks.push(box_table(boxes));
            if *exceptions > 0 {
                blocks.push(format!("{} of boxes exchange other than equal pieces", count(*exceptions, "pair")));
            }
            blocks.push(stage_table(stages));
        }
        RuleSummary::Orbits { orders, lost, templates, patches } => {
            let orders: Vec<String> = orders.iter().map(u32::to_string).collect();
            let lost = if *lost > 0 { format!(", {} missing", count(*lost, "rank")) } else { String::new() };
            blocks.push(format!("dimensions {}{lost}\n{}", orders.join(" x "), template_table(templates)));
            blocks.extend((patches.count > 0).then(|| patch_table(patches)));
        }
    }
    blocks.push(link_table(rule, &explained.by_class.links));
    blocks.join("\n\n")
}

/// `99.9%` of the time, rounded down so that only the whole is 100 %.
fn part(busy: Option<&Part>) -> String {
    busy.map_or_else(|| "-".to_owned(), |busy| format!("{:.1}%", (busy.0.to_f64() * 1e3).floor() / 10.0))
}

fn range(least: &str, most: &str) -> String {
    if least == most { most.to_owned() } else { format!("{least} to {most}") }
}

/// Says how many rows are left out.
fn more(mut text: String, rows: usize, what: &str) -> String {
    if rows > ROWS_MAX {
        text += &format!("\nand {} more {what}", rows - ROWS_MAX);
    }
    text
}

fn box_table(boxes: &[BoxClassSummary]) -> String {
    let mut table = Table::new(&[
        "BOXES#",
        "RANKS#",
        "FIRST",
        "NIC CHUNKS#",
        "NIC BUSY#",
        "OUT CHUNKS#",
        "IN CHUNKS#",
        "INSIDE BUSY#",
        "FAULTS",
    ]);
    for class in boxes.iter().take(ROWS_MAX) {
        table.row([
            class.boxes.to_string(),
            class.ranks.to_string(),
            class.first.clone(),
            range(&class.nic_chunks_min, &class.nic_chunks_max),
            part(class.nic_busy.as_ref()),
            class.out_chunks_max.clone(),
            class.in_chunks_max.clone(),
            part(class.inside_busy.as_ref()),
            if class.odd.is_empty() { "-".to_owned() } else { class.odd.join(", ") },
        ]);
    }
    more(format!("boxes by class\n{}", table.text()), boxes.len(), "classes")
}

fn stage_table(stages: &[StageSummary]) -> String {
    let mut table = Table::new(&["STAGE#", "DIGIT#", "PEERS#", "MESSAGES#", "SHARES EACH#", "DEPTH#"]);
    for (number, stage) in stages.iter().enumerate() {
        table.row([
            (number + 1).to_string(),
            stage.digit.to_string(),
            stage.peers.to_string(),
            stage.messages.to_string(),
            stage.shares.to_string(),
            stage.depth.to_string(),
        ]);
    }
    format!("stages of one rank\n{}", table.text())
}

fn template_table(templates: &[TemplateSummary]) -> String {
    let mut table = Table::new(&["TEMPLATE#", "WEIGHT#", "DEPTH#", "HOPS"]);
    for (number, template) in templates.iter().take(ROWS_MAX).enumerate() {
        let hops = template.hops.iter().map(|of| format!("{} {}", of.hops, of.words)).collect();
        table.row([(number + 1).to_string(), template.weight.to_string(), template.depth.to_string(), joined(hops)]);
    }
    more(table.text(), templates.len(), "templates")
}

fn patch_table(patches: &PatchesSummary) -> String {
    let mut table = Table::new(&["RANK#", "NODE", "OTHER PARENTS#", "TREES#"]);
    for patch in patches.first.iter().take(ROWS_MAX) {
        table.row([patch.rank.to_string(), patch.node.clone(), patch.parents.to_string(), patch.trees.to_string()]);
    }
    let head =
        format!("{} at {}", count(patches.count, "patch").replace("patchs", "patches"), count(patches.ranks, "rank"));
    more(format!("{head}\n{}", table.text()), patches.ranks, "ranks")
}

fn link_table(rule: &Rule, links: &[LinkClassSummary]) -> String {
    let mut table = Table::new(&["LINKS", "COUNT#", "GB/s#", "CHUNKS#", "BUSY#", "UNUSED#", "BUSIEST"]);
    for class in links.iter().take(ROWS_MAX) {
        table.row([
            class.words.clone(),
            class.links.to_string(),
            gigabytes(class.capacity.into()).to_string(),
            range(&class.chunks_min, &class.chunks_max),
            part(Some(&class.busy)),
            class.unused.to_string(),
            link_in_words(&rule.topology, class.busiest_link),
        ]);
    }
    more(format!("links by class, the busiest first\n{}", table.text()), links.len(), "classes")
}
