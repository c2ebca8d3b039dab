//! Reads the routes and trees of a forest into its flat tables as the text goes by.

use std::fmt;
use std::marker::PhantomData;

use canopy_schedule::{Carrier, Hop, Phase, RouteIndex, RouteTable, Tree};
use canopy_topology::{LinkIndex, Rank};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, Expected, IgnoredAny, MapAccess, SeqAccess, Unexpected,
    Visitor,
};

use super::ActionName;

/// Position in a table; none outgrows `u32`, because a file of 2³⁰ bytes cannot list that much, and runs of sends stand for
/// at most 2²⁷.
pub(super) fn position(length: usize) -> u32 {
    u32::try_from(length).expect("at most one entry per byte of a file of at most 2³⁰ bytes, and 2²⁷ more")
}

/// `[[link, …], …]`.
pub(super) struct Routes(pub(super) RouteTable);

impl<'de> Deserialize<'de> for Routes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RoutesVisitor)
    }
}

struct RoutesVisitor;

impl<'de> Visitor<'de> for RoutesVisitor {
    type Value = Routes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of routes, each a list of link indices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut routes: A) -> Result<Routes, A::Error> {
        let mut table = RouteTable::default();
        while let Some(route) = routes.next_element::<Vec<u32>>()? {
            let links: Vec<LinkIndex> = route.into_iter().map(LinkIndex::new).collect();
            table.push(&links);
        }
        Ok(Routes(table))
    }
}

/// `[{"action": …, "trees": [{"root": …, "multiplicity": …, "hops": […]}, …]}, …]`.
#[derive(Default)]
pub(super) struct Trees {
    pub(super) carriers: Vec<Carrier>,
    pub(super) hops: Vec<Hop>,
    pub(super) phases: Vec<Phase>,
}

impl<'de> Deserialize<'de> for Trees {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tables = Self::default();
        tables.phases = Entry::read(&mut tables, deserializer)?;
        Ok(tables)
    }
}

/// Something whose parts go to the tables while it is read.
trait Entry: Sized {
    fn read<'de, D: Deserializer<'de>>(tables: &mut Trees, deserializer: D) -> Result<Self, D::Error>;
}

/// Reads an entry, as serde asks for it: a seed and a visitor that know the tables.
struct Reader<'t, T> {
    tables: &'t mut Trees,
    entry: PhantomData<T>,
}

impl<'t, T> Reader<'t, T> {
    fn new(tables: &'t mut Trees) -> Self {
        Self { tables, entry: PhantomData }
    }
}

impl<'de, T: Entry> DeserializeSeed<'de> for Reader<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read(self.tables, deserializer)
    }
}

impl<T: Entry> Entry for Vec<T> {
    fn read<'de, D: Deserializer<'de>>(tables: &mut Trees, deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reader::<Self>::new(tables))
    }
}

impl<'de, T: Entry> Visitor<'de> for Reader<'_, Vec<T>> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Reader::new(self.tables))? {
            list.push(item);
        }
        Ok(list)
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum PhaseField {
    Action,
    Trees,
    #[serde(other)]
    Other,
}

impl Entry for Phase {
    fn read<'de, D: Deserializer<'de>>(tables: &mut Trees, deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader::<Self>::new(tables))
    }
}

impl<'de> Visitor<'de> for Reader<'_, Phase> {
    type Value = Phase;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a phase with `action` and `trees`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Phase, A::Error> {
        let (mut action, mut trees) = (None, None);
        while let Some(field) = fields.next_key()? {
            match field {
                PhaseField::Action => set(&mut action, "action", fields.next_value::<ActionName>()?)?,
                PhaseField::Trees => set(&mut trees, "trees", fields.next_value_seed(Reader::new(self.tables))?)?,
                PhaseField::Other => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Phase { action: get(action, "action")?.into(), trees: get(trees, "trees")? })
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum TreeField {
    Root,
    Multiplicity,
    Hops,
    #[serde(other)]
    Other,
}

impl Entry for Tree {
    fn read<'de, D: Deserializer<'de>>(tables: &mut Trees, deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader::<Self>::new(tables))
    }
}

impl<'de> Visitor<'de> for Reader<'_, Tree> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tree with `root`, `multiplicity` and `hops`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Tree, A::Error> {
        let (mut root, mut multiplicity, mut hops) = (None, None, None);
        let (carriers_start, hops_start) = (self.tables.carriers.len(), position(self.tables.hops.len()));
        while let Some(field) = fields.next_key()? {
            match field {
                TreeField::Root => set(&mut root, "root", fields.next_value::<u32>()?)?,
                TreeField::Multiplicity => set(&mut multiplicity, "multiplicity", fields.next_value::<u64>()?)?,
                TreeField::Hops => {
                    set(&mut hops, "hops", fields.next_value_seed(Reader::<Vec<Added>>::new(self.tables))?)?;
                }
                TreeField::Other => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        get(hops, "hops")?;
        let multiplicity = get(multiplicity, "multiplicity")?;
        for carrier in &mut self.tables.carriers[carriers_start..] {
            if carrier.chunk_count == WHOLE {
                carrier.chunk_count = multiplicity;
            }
        }
        let hops = hops_start..position(self.tables.hops.len());
        Ok(Tree { root: Rank::new(get(root, "root")?), multiplicity, hops })
    }
}

/// Stands for all chunks of the tree, as its multiplicity may follow its hops, or of the send. No carrier may say that it
/// carries nothing.
pub(super) const WHOLE: u64 = 0;

/// A hop, `[from, to, route]` or `[from, to, [[route, count], …]]`, that has gone to the tables.
struct Added;

impl Entry for Added {
    fn read<'de, D: Deserializer<'de>>(tables: &mut Trees, deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reader::<Self>::new(tables))
    }
}

impl<'de> Visitor<'de> for Reader<'_, Added> {
    type Value = Added;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a hop `[from, to, route]` or `[from, to, [[route, count], …]]`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Added, A::Error> {
        let expected: &dyn Expected = &"a hop `[from, to, route]` or `[from, to, [[route, count], …]]`";
        let short = |length| A::Error::invalid_length(length, expected);
        let from = Rank::new(parts.next_element()?.ok_or_else(|| short(0))?);
        let to = Rank::new(parts.next_element()?.ok_or_else(|| short(1))?);
        let start = position(self.tables.carriers.len());
        let carriers = parts.next_element_seed(CarriersReader(&mut self.tables.carriers))?;
        carriers.ok_or_else(|| short(2))?;
        if parts.next_element::<IgnoredAny>()?.is_some() {
            return Err(short(4));
        }
        self.tables.hops.push(Hop { from, to, carriers: start..position(self.tables.carriers.len()) });
        Ok(Added)
    }
}

/// The last part of a hop or a send.
pub(super) struct CarriersReader<'t>(pub(super) &'t mut Vec<Carrier>);

impl<'de> DeserializeSeed<'de> for CarriersReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CarriersReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a route or a list `[[route, count], …]`")
    }

    fn visit_u64<E: serde::de::Error>(self, route: u64) -> Result<(), E> {
        let index = u32::try_from(route).map_err(|_| E::invalid_value(Unexpected::Unsigned(route), &self))?;
        self.0.push(Carrier { route: RouteIndex::new(index), chunk_count: WHOLE });
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut carriers: A) -> Result<(), A::Error> {
        while let Some((route, chunk_count)) = carriers.next_element::<(u32, u64)>()? {
            if chunk_count == 0 {
                return Err(A::Error::custom("a carrier of 0 chunks; leave it out"));
            }
            self.0.push(Carrier { route: RouteIndex::new(route), chunk_count });
        }
        Ok(())
    }
}

/// Keeps a field's value; refuses a second one.
fn set<T, E: serde::de::Error>(slot: &mut Option<T>, name: &'static str, value: T) -> Result<(), E> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

fn get<T, E: serde::de::Error>(slot: Option<T>, name: &'static str) -> Result<T, E> {
    slot.ok_or_else(|| E::missing_field(name))
}
