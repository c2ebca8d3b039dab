//! What was found of a job, for people.

use crate::group_plans::manifest::{LevelSummary, Manifest, OrderSummary};
use crate::output::{seconds, seconds_in_words as in_words};
use crate::sizes;
use crate::table::Table;

/// A table of the classes, and what all of them take together and otherwise.
pub(super) fn readable(manifest: &Manifest) -> String {
    let mut table = Table::new(&["GROUPS", "COLLECTIVE", "NUMBER#", "RANKS EACH#", "SIZE#", "ALONE#"]);
    for class in &manifest.classes {
        table.row([
            class.name.clone(),
            class.collective.to_owned(),
            class.groups.to_string(),
            class.ranks.to_string(),
            sizes::in_words(class.size_bytes),
            in_words(seconds(&class.seconds_alone)),
        ]);
    }
    let joint = seconds(&manifest.seconds);
    let bound = in_words(seconds(&manifest.seconds_bound));
    let proof = match &manifest.seconds_joint {
        _ if manifest.seconds == manifest.seconds_bound => "proven optimal".to_owned(),
        _ if !manifest.is_above_bound() => "optimal but for rounding".to_owned(),
        None => format!("at least {bound}"),
        Some(joint) => format!("at least {bound}, {} for the best plans", in_words(seconds(joint))),
    };
    let other = |name: &str, text: &str, what: &str| {
        let time = seconds(text);
        format!("{name:<11}{}, {:.2} times as long: {what}", in_words(time), time / joint)
    };
    let mut text = format!(
        "{}\n\ntogether   {}, {proof}\n{}{}\n{}\n{}",
        table.text(),
        in_words(joint),
        manifest.levels.iter().skip(1).map(level).collect::<String>(),
        other("alone", &manifest.seconds_alone, "each group planned as if it were alone, all at once"),
        other("phases", &manifest.seconds_phases, "one class after another, each jointly optimal"),
        other("rings", &manifest.seconds_rings, "rings in the order of ranks, all at once"),
    );
    if !manifest.orders.is_empty() {
        text += &format!("\n\n{}", orders(&manifest.orders, joint));
    }
    text
}

/// A line for groups that are faster than the slowest.
fn level(LevelSummary { seconds: text, seconds_bound, groups, .. }: &LevelSummary) -> String {
    let groups: Vec<String> = groups.iter().map(|(class, count)| format!("{count} of {class}")).collect();
    let bound = if text == seconds_bound {
        "proven optimal".to_owned()
    } else {
        format!("at least {}", in_words(seconds(seconds_bound)))
    };
    format!("faster     {}, {bound}: {}\n", in_words(seconds(text)), groups.join(", "))
}

/// What the groups take in other orders of the dimensions.
fn orders(orders: &[OrderSummary], joint: f64) -> String {
    let mut table = Table::new(&["ORDER", "TOGETHER#", "TIMES AS LONG#", ""]);
    for OrderSummary { layout, seconds: found, seconds_bound, best } in orders {
        let time = seconds(found.as_ref().unwrap_or(seconds_bound));
        let least = if found.is_some() { "" } else { "at least " };
        let taken = if *best { "taken" } else { "" };
        table.row([
            layout.clone(),
            format!("{least}{}", in_words(time)),
            format!("{:.2}", time / joint),
            taken.to_owned(),
        ]);
    }
    table.text()
}
