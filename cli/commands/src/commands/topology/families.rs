//! `canopy network families`: what expressions can name.

use canopy_topology::{COMMON_KEYS, FamilyUsage, did_you_mean, families, key_meaning, same_word};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::print_json;
use crate::stdout::print;
use crate::table::Table;

/// JSON object of `families`.
#[derive(Serialize)]
struct Families {
    families: Vec<Family>,
    common_keys: &'static [&'static str],
}

#[derive(Serialize)]
struct Family {
    name: &'static str,
    example: &'static str,
    keys: &'static [&'static str],
}

/// Finds one by its name.
fn named(name: &str) -> Result<FamilyUsage, Failure> {
    // An expression names a family, too.
    let word = name.split(':').next().unwrap_or(name);
    families().find(|family| same_word(family.name, word)).ok_or_else(|| {
        let names = families().map(|family| family.name);
        let help = did_you_mean(word, names, "`canopy network families` lists all");
        Failure::input(format!("no family is called `{word}`")).help(help)
    })
}

/// One family, and what its keys mean.
fn explain(FamilyUsage { name, example, keys }: FamilyUsage) -> Result<(), Failure> {
    let mut table = Table::new(&["KEY", "MEANING"]);
    for key in keys.iter().chain(COMMON_KEYS) {
        table.row([(*key).to_owned(), key_meaning(key).unwrap_or_default().to_owned()]);
    }
    print(&format!("{name}, such as {example}\n\n{}", table.text()))
}

pub(super) fn run(name: Option<&str>, json: bool) -> Result<(), Failure> {
    let asked = match name.map(named).transpose()? {
        Some(family) if !json => return explain(family),
        Some(family) => vec![family],
        None => families().collect(),
    };
    let families: Vec<Family> =
        asked.into_iter().map(|FamilyUsage { name, example, keys }| Family { name, example, keys }).collect();
    if json {
        return print_json("topology families", &Families { families, common_keys: COMMON_KEYS });
    }
    let mut table = Table::new(&["FAMILY", "EXAMPLE", "KEYS"]);
    for Family { name, example, keys } in families {
        table.row([name.to_owned(), example.to_owned(), keys.join(" ")]);
    }
    print(&format!("{}\n\nevery family: {}", table.text(), COMMON_KEYS.join(" ")))
}
