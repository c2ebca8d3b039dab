//! `canopy topology families`: what expressions can name.

use canopy_topology::{COMMON_KEYS, FamilyUsage, families};
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

pub(super) fn run(json: bool) -> Result<(), Failure> {
    let families: Vec<Family> =
        families().map(|FamilyUsage { name, example, keys }| Family { name, example, keys }).collect();
    if json {
        return print_json("topology families", &Families { families, common_keys: COMMON_KEYS });
    }
    let mut table = Table::new(&["FAMILY", "EXAMPLE", "KEYS"]);
    for Family { name, example, keys } in families {
        table.row([name.to_owned(), example.to_owned(), keys.join(" ")]);
    }
    print(&format!("{}\n\nevery family: {}", table.text(), COMMON_KEYS.join(" ")))
}
