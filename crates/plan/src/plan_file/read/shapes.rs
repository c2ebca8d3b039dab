//! Reads the sends of a stepped schedule and the paths of a flow into their flat tables as the text goes by.

use std::fmt;

use canopy_schedule::{Carrier, Path, RouteIndex, Send};
use canopy_topology::Rank;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};

use super::ActionName;
use super::forest::{CarriersReader, WHOLE, position};

/// Most sends of a file, which can name many in few bytes: as many as compile.
const SENDS_MAX: usize = 1 << 27;

/// `[[step, action, from, to, first chunk or [first chunk, …], chunks, route or [[route, count], …]], …]`.
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
        f.write_str(
            "a send `[step, action, from, to, first chunk or [first chunk, …], chunks, route or [[route, count], …]]`",
        )
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<(), A::Error> {
        let short = |length| A::Error::invalid_length(length, &SendReader(&mut Sends::default()));
        let step = parts.next_element()?.ok_or_else(|| short(0))?;
        let action: ActionName = parts.next_element()?.ok_or_else(|| short(1))?;
        let from = Rank::new(parts.next_element()?.ok_or_else(|| short(2))?);
        let to = Rank::new(parts.next_element()?.ok_or_else(|| short(3))?);
        let firsts: Firsts = parts.next_element()?.ok_or_else(|| short(4))?;
        let chunk_count: u64 = parts.next_element()?.ok_or_else(|| short(5))?;
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
        let send = Send { step, action: action.into(), from, to, chunks: 0..0, carriers: 0..0 };
        match firsts {
            Firsts::One(first) => self.0.add(send, first, chunk_count, start)?,
            Firsts::Run(firsts) => {
                let &[carrier] = &self.0.carriers[start..] else {
                    return Err(A::Error::custom("several first chunks need one route; write one send for each"));
                };
                for (position, first) in firsts.into_iter().enumerate() {
                    if position > 0 {
                        self.0.carriers.push(carrier);
                    }
                    self.0.add(send.clone(), first, chunk_count, start + position)?;
                }
            }
        }
        Ok(())
    }
}

impl Sends {
    /// Adds a send of so many chunks, on the carriers from `start` on.
    fn add<E: serde::de::Error>(&mut self, send: Send, first: u64, chunk_count: u64, start: usize) -> Result<(), E> {
        let past = || E::custom(format_args!("{chunk_count} chunks from {first} on; chunks are counted in 64 bits"));
        let chunks = first..first.checked_add(chunk_count).ok_or_else(past)?;
        if self.sends.len() == SENDS_MAX {
            return Err(E::custom(format_args!("more than {SENDS_MAX} sends; use fewer chunks per share")));
        }
        self.sends.push(Send { chunks, carriers: position(start)..position(self.carriers.len()), ..send });
        Ok(())
    }
}

/// First chunks of a send, or of a run of sends that are alike but for them.
enum Firsts {
    One(u64),
    Run(Vec<u64>),
}

impl<'de> Deserialize<'de> for Firsts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FirstsVisitor)
    }
}

struct FirstsVisitor;

impl<'de> Visitor<'de> for FirstsVisitor {
    type Value = Firsts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a first chunk, or a list of them")
    }

    fn visit_u64<E: serde::de::Error>(self, first: u64) -> Result<Firsts, E> {
        Ok(Firsts::One(first))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Firsts, A::Error> {
        let mut firsts = Vec::new();
        while let Some(first) = items.next_element()? {
            firsts.push(first);
        }
        match firsts.is_empty() {
            true => Err(A::Error::invalid_length(0, &self)),
            false => Ok(Firsts::Run(firsts)),
        }
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
        while paths.next_element_seed(PathReader(&mut tables))?.is_some() {}
        Ok(tables)
    }
}

/// One path.
struct PathReader<'t>(&'t mut Paths);

impl<'de> DeserializeSeed<'de> for PathReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_tuple(4, self)
    }
}

impl<'de> Visitor<'de> for PathReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path `[source, destination, chunks, [route, …]]`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<(), A::Error> {
        let short = |length| A::Error::invalid_length(length, &PathReader(&mut Paths::default()));
        let source = Rank::new(parts.next_element()?.ok_or_else(|| short(0))?);
        let destination = Rank::new(parts.next_element()?.ok_or_else(|| short(1))?);
        let chunk_count = parts.next_element()?.ok_or_else(|| short(2))?;
        let start = position(self.0.hops.len());
        parts.next_element_seed(HopsReader(&mut self.0.hops))?.ok_or_else(|| short(3))?;
        self.0.paths.push(Path { source, destination, chunk_count, hops: start..position(self.0.hops.len()) });
        Ok(())
    }
}

/// The routes of a path.
struct HopsReader<'t>(&'t mut Vec<RouteIndex>);

impl<'de> DeserializeSeed<'de> for HopsReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for HopsReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of routes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut routes: A) -> Result<(), A::Error> {
        while let Some(route) = routes.next_element()? {
            self.0.push(RouteIndex::new(route));
        }
        Ok(())
    }
}
