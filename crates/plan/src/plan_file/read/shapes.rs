//! Reads the sends of a stepped schedule and the paths of a flow into their flat tables as the text goes by.

use std::fmt;

use canopy_schedule::{Carrier, Path, RouteIndex, Send};
use canopy_topology::Rank;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};

use super::ActionName;
use super::forest::{CarriersReader, WHOLE, position};

/// `[[step, action, from, to, first chunk, chunks, route or [[route, count], …]], …]`.
#[derive(Default)]
pub(super) struct Sends {
    pub(super) carriers: Vec<Carrier>,
    pub(super) sends: Vec<Send>,
}

impl<'de> Deserialize<'de> for Sends {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(SendsVisitor)
    }
}

struct SendsVisitor;

impl<'de> Visitor<'de> for SendsVisitor {
    type Value = Sends;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of sends")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sends: A) -> Result<Sends, A::Error> {
        let mut tables = Sends::default();
        while sends.next_element_seed(SendReader(&mut tables))?.is_some() {}
        Ok(tables)
    }
}

/// One send.
struct SendReader<'t>(&'t mut Sends);

impl<'de> DeserializeSeed<'de> for SendReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for SendReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a send `[step, action, from, to, first chunk, chunks, route or [[route, count], …]]`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<(), A::Error> {
        let short = |length| A::Error::invalid_length(length, &SendReader(&mut Sends::default()));
        let step = parts.next_element()?.ok_or_else(|| short(0))?;
        let action: ActionName = parts.next_element()?.ok_or_else(|| short(1))?;
        let from = Rank::new(parts.next_element()?.ok_or_else(|| short(2))?);
        let to = Rank::new(parts.next_element()?.ok_or_else(|| short(3))?);
        let first: u64 = parts.next_element()?.ok_or_else(|| short(4))?;
        let chunk_count: u64 = parts.next_element()?.ok_or_else(|| short(5))?;
        let past =
            || A::Error::custom(format_args!("{chunk_count} chunks from {first} on; chunks are counted in 64 bits"));
        let end = first.checked_add(chunk_count).ok_or_else(past)?;
        let start = self.0.carriers.len();
        parts.next_element_seed(CarriersReader(&mut self.0.carriers))?.ok_or_else(|| short(6))?;
        if parts.next_element::<IgnoredAny>()?.is_some() {
            return Err(short(8));
        }
        for carrier in &mut self.0.carriers[start..] {
            if carrier.chunk_count == WHOLE {
                carrier.chunk_count = chunk_count;
            }
        }
        let carriers = position(start)..position(self.0.carriers.len());
        self.0.sends.push(Send { step, action: action.into(), from, to, chunks: first..end, carriers });
        Ok(())
    }
}

/// `[[source, destination, chunks, [route, …]], …]`.
#[derive(Default)]
pub(super) struct Paths {
    pub(super) hops: Vec<RouteIndex>,
    pub(super) paths: Vec<Path>,
}

impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(PathsVisitor)
    }
}

struct PathsVisitor;

impl<'de> Visitor<'de> for PathsVisitor {
    type Value = Paths;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of paths `[source, destination, chunks, [route, …]]`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut paths: A) -> Result<Paths, A::Error> {
        let mut tables = Paths::default();
        while let Some((source, destination, chunk_count, routes)) =
            paths.next_element::<(u32, u32, u64, Vec<u32>)>()?
        {
            let start = position(tables.hops.len());
            tables.hops.extend(routes.into_iter().map(RouteIndex::new));
            let hops = start..position(tables.hops.len());
            let (source, destination) = (Rank::new(source), Rank::new(destination));
            tables.paths.push(Path { source, destination, chunk_count, hops });
        }
        Ok(tables)
    }
}
