//! What was found of a job, for people.

use canopy_topology::Ratio;

use super::manifest::Manifest;
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
    let proof = if manifest.seconds == manifest.seconds_bound {
        "proven optimal".to_owned()
    } else {
        format!("at least {}", in_words(seconds(&manifest.seconds_bound)))
    };
    let other = |name: &str, text: &str, what: &str| {
        let time = seconds(text);
        format!("{name:<11}{}, {:.2} times as long: {what}", in_words(time), time / joint)
    };
    format!(
        "{}\n\ntogether   {}, {proof}\n{}\n{}\n{}",
        table.text(),
        in_words(joint),
        other("alone", &manifest.seconds_alone, "each group planned as if it were alone, all at once"),
        other("phases", &manifest.seconds_phases, "one class after another, each jointly optimal"),
        other("rings", &manifest.seconds_rings, "rings in the order of ranks, all at once"),
    )
}

fn seconds(text: &str) -> f64 {
    text.parse::<Ratio>().map_or(f64::NAN, |seconds| seconds.to_f64())
}

/// Three places of the unit that fits.
fn in_words(seconds: f64) -> String {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1e-9, "ns"));
    format!("{:.3} {name}", seconds / unit)
}
