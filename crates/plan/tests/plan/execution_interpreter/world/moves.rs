//! What operations move and sum up: from which bytes to which.

use super::{Misread, World};
use crate::execution_interpreter::rank::{Home, Op, Reference};

/// Some bytes of a rank; packets take twice as many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) rank: usize,
    pub(super) at: usize,
    pub(super) is_packets: bool,
}

/// All targets become the sum of all sources.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub(super) sources: Vec<Place>,
    pub(super) targets: Vec<Place>,
    pub(super) bytes: usize,
}

/// A move of eight bytes.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(super) sources: Vec<Place>,
    pub(super) targets: Vec<Place>,
}

/// Refuses an operation whose references are not as the format has them.
fn need(op: &Op, is_right: bool) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(format!("{} with such references", op.name)) }
}

/// The places of all references.
fn each(of: &[Reference], place: &dyn Fn(&Reference) -> Result<Vec<Place>, String>) -> Result<Vec<Place>, String> {
    of.iter().map(place).collect::<Result<Vec<_>, _>>().map(|places| places.concat())
}

impl World {
    /// What an operation moves, by the table of the format.
    pub(super) fn moves(&self, op: &Op) -> Result<Vec<Move>, String> {
        match op.name.as_str() {
            "put" | "pws" | "pwsf" | "get" | "ppkt" => self.moves_of_pairs(op),
            "rppkt" => self.moves_of_one_source(op),
            _ => Ok(vec![self.single_move(op)?]),
        }
    }

    /// From each source to the target at its place.
    fn moves_of_pairs(&self, op: &Op) -> Result<Vec<Move>, String> {
        let (sources, targets) = (&op.sources, &op.targets);
        let remote = if op.name == "get" { sources } else { targets };
        need(op, sources.len() == targets.len() && remote.iter().all(|at| at.is_remote))?;
        let pair = |(from, to): (&Reference, &Reference)| match op.name.as_str() {
            "get" => Ok(Move {
                sources: self.places(op, from, to.index, false)?,
                targets: self.places(op, to, from.index, false)?,
                bytes: self.bytes(op, from)?,
            }),
            "ppkt" => Ok(Move {
                sources: self.plain(op, from)?,
                targets: self.packets(op, to)?,
                bytes: self.bytes(op, from)?,
            }),
            _ => {
                // Over memory the buffer of the first source is that of all.
                let homes = if op.is_port { from.homes.clone() } else { sources[0].homes.clone() };
                let index = if self.is_misread(Misread::PutsAtSourceIndex) { from.index } else { to.index };
                let from = Reference { homes, ..from.clone() };
                let (sources, targets) = (self.plain(op, &from)?, self.places(op, to, index, false)?);
                Ok(Move { sources, targets, bytes: self.bytes(op, to)? })
            }
        };
        sources.iter().zip(targets).map(pair).collect()
    }

    /// Packets from one source to each target.
    fn moves_of_one_source(&self, op: &Op) -> Result<Vec<Move>, String> {
        need(op, !op.sources.is_empty() && op.targets.iter().all(|at| at.is_remote))?;
        let from = &op.sources[0];
        let to = |to: &Reference| {
            Ok(Move { sources: self.packets(op, from)?, targets: self.packets(op, to)?, bytes: self.bytes(op, from)? })
        };
        op.targets.iter().map(to).collect()
    }

    /// From all sources, summed, to all targets.
    fn single_move(&self, op: &Op) -> Result<Move, String> {
        let (sources, targets) = (&op.sources, &op.targets);
        let plain = |at: &Reference| self.plain(op, at);
        let packets = |at: &Reference| self.packets(op, at);
        need(op, !sources.is_empty() && !targets.is_empty())?;
        let (from, to) = match op.name.as_str() {
            "copy" => {
                need(op, sources.len() == 1 && targets.len() == 1)?;
                let (from, to) = (plain(&sources[0])?, plain(&targets[0])?);
                if self.is_misread(Misread::CopiesSwapped) { (to, from) } else { (from, to) }
            }
            "re" | "res" | "rre" | "rres" => {
                let is_read = op.name.starts_with("rr");
                need(op, sources.len() > 1 && sources[1..].iter().all(|at| at.is_remote == is_read))?;
                need(op, targets[1..].iter().all(|at| at.is_remote) && (targets.len() > 1) == op.name.ends_with('s'))?;
                let summed = match self.launch.misread {
                    Some(Misread::FirstSourceLeftOut) => &sources[1..],
                    Some(Misread::FurtherSourcesLeftOut) => &sources[..1],
                    _ => &sources[..],
                };
                let kept = if self.is_misread(Misread::SumsStayAtHome) { &targets[..1] } else { &targets[..] };
                (each(summed, &plain)?, each(kept, &plain)?)
            }
            "glres" | "gstore" | "gstorepkt" => {
                need(op, sources.len() == 1 && targets.len() == 1 && targets[0].is_group)?;
                need(op, sources[0].is_group == (op.name == "glres"))?;
                let (from, mut to) = match op.name.as_str() {
                    "gstorepkt" => (packets(&sources[0])?, packets(&targets[0])?),
                    _ => (plain(&sources[0])?, plain(&targets[0])?),
                };
                if self.is_misread(Misread::GroupIsItsFirst) {
                    to.truncate(1);
                }
                (from, to)
            }
            "cpkt" => (plain(&sources[0])?, packets(&targets[0])?),
            "upkt" => (packets(&sources[0])?, plain(&targets[0])?),
            "repkt" | "respkt" | "recpkt" | "recspkt" => (
                [plain(&sources[0])?, each(&sources[1..], &packets)?].concat(),
                [plain(&targets[0])?, each(&targets[1..], &packets)?].concat(),
            ),
            other => return Err(format!("no operation that is interpreted: {other}")),
        };
        Ok(Move { sources: from, targets: to, bytes: self.bytes(op, &sources[0])? })
    }

    fn plain(&self, op: &Op, at: &Reference) -> Result<Vec<Place>, String> {
        self.places(op, at, at.index, false)
    }

    fn packets(&self, op: &Op, at: &Reference) -> Result<Vec<Place>, String> {
        self.places(op, at, at.index, true)
    }

    fn bytes(&self, op: &Op, at: &Reference) -> Result<usize, String> {
        self.range(op, at).map(|(_, bytes)| bytes)
    }

    /// First byte behind the index, and number of bytes, of what is done of a reference.
    fn range(&self, op: &Op, at: &Reference) -> Result<(usize, usize), String> {
        let units = at.size * self.launch.chunk_bytes / 16;
        let (position, count) = op.slice;
        let (start, end) = (units * position / count * 16, units * (position + 1) / count * 16);
        match op.part {
            None => Ok((start, end - start)),
            Some((first, most)) if first <= end - start => Ok((start + first, (end - start - first).min(most))),
            Some(_) => Err(format!("{} beyond its reference", op.name)),
        }
    }

    fn places(&self, op: &Op, at: &Reference, index: usize, is_packets: bool) -> Result<Vec<Place>, String> {
        let (skipped, bytes) = self.range(op, at)?;
        let place = |&Home { rank, buffer }: &Home| {
            let position = match buffer {
                'i' => 0,
                'o' => 1,
                _ => 2,
            };
            if is_packets && buffer != 's' {
                return Err(format!("{}: packets are always in scratch", op.name));
            }
            let (first, end) = self.buffers.get(rank).ok_or("no such rank")?[position];
            let wide = if is_packets { 2 } else { 1 };
            let at = first + (index * self.launch.chunk_bytes + skipped) * wide;
            if at + bytes * wide > end {
                return Err(format!("{} beyond {buffer} of rank {rank}", op.name));
            }
            Ok(Place { rank, at, is_packets })
        };
        at.homes.iter().map(place).collect()
    }
}
