//! What operations move and sum up: from which bytes to which, and the bytes themselves.

use super::{FLAG, Machine, Misread, Move, Place, UNIT};
use crate::execution_interpreter::rank::{Home, Op, Reference};

impl Machine {
    /// What an operation moves, by the table of the format.
    pub(super) fn moves(&self, op: &Op) -> Result<Vec<Move>, String> {
        let need = |is_right: bool| if is_right { Ok(()) } else { Err(format!("{} with such references", op.name)) };
        let (sources, targets) = (&op.sources, &op.targets);
        let plain = |at: &Reference| self.places(op, at, at.index, false);
        let packets = |at: &Reference| self.places(op, at, at.index, true);
        let bytes = |at: &Reference| self.range(op, at).map(|(_, bytes)| bytes);
        let single = |sources: Vec<Place>, targets: Vec<Place>, bytes| vec![Move { sources, targets, bytes }];
        let each = |of: &[Reference], place: &dyn Fn(&Reference) -> Result<Vec<Place>, String>| {
            of.iter().map(place).collect::<Result<Vec<_>, _>>().map(|places| places.concat())
        };
        let drops = |misread| self.is_misread(misread);
        Ok(match op.name.as_str() {
            "copy" => {
                need(sources.len() == 1 && targets.len() == 1)?;
                let (from, to) =
                    if drops(Misread::CopiesSwapped) { (&targets[0], &sources[0]) } else { (&sources[0], &targets[0]) };
                single(plain(from)?, plain(to)?, bytes(&sources[0])?)
            }
            "put" | "pws" | "pwsf" => {
                need(sources.len() == targets.len() && targets.iter().all(|at| at.is_remote))?;
                let pair = |(from, to): (&Reference, &Reference)| {
                    // Over memory the buffer of the first source is that of all.
                    let homes = if op.is_port { from.homes.clone() } else { sources[0].homes.clone() };
                    let index = if drops(Misread::PutsAtSourceIndex) { from.index } else { to.index };
                    let from = Reference { homes, ..from.clone() };
                    let (sources, targets) = (plain(&from)?, self.places(op, to, index, false)?);
                    Ok(Move { sources, targets, bytes: bytes(to)? })
                };
                sources.iter().zip(targets).map(pair).collect::<Result<_, String>>()?
            }
            "get" => {
                need(sources.len() == targets.len() && sources.iter().all(|at| at.is_remote))?;
                let pair = |(from, to): (&Reference, &Reference)| {
                    let (sources, targets) =
                        (self.places(op, from, to.index, false)?, self.places(op, to, from.index, false)?);
                    Ok(Move { sources, targets, bytes: bytes(from)? })
                };
                sources.iter().zip(targets).map(pair).collect::<Result<_, String>>()?
            }
            "re" | "res" | "rre" | "rres" => {
                let is_read = op.name.starts_with("rr");
                need(sources.len() > 1 && sources[1..].iter().all(|at| at.is_remote == is_read))?;
                need(targets[1..].iter().all(|at| at.is_remote) && (targets.len() > 1) == op.name.ends_with('s'))?;
                let summed = match self.launch.misread {
                    Some(Misread::FirstSourceLeftOut) => &sources[1..],
                    Some(Misread::FurtherSourcesLeftOut) => &sources[..1],
                    _ => &sources[..],
                };
                let kept = if drops(Misread::SumsStayAtHome) { &targets[..1] } else { &targets[..] };
                single(each(summed, &plain)?, each(kept, &plain)?, bytes(&sources[0])?)
            }
            "glres" | "gstore" | "gstorepkt" => {
                need(sources.len() == 1 && targets.len() == 1 && targets[0].is_group)?;
                need(sources[0].is_group == (op.name == "glres"))?;
                let mut to = if op.name == "gstorepkt" { packets(&targets[0])? } else { plain(&targets[0])? };
                if drops(Misread::GroupIsItsFirst) {
                    to.truncate(1);
                }
                single(plain(&sources[0])?, to, bytes(&sources[0])?)
            }
            "ppkt" => {
                need(sources.len() == targets.len() && targets.iter().all(|at| at.is_remote))?;
                let pair = |(from, to): (&Reference, &Reference)| {
                    Ok(Move { sources: plain(from)?, targets: packets(to)?, bytes: bytes(from)? })
                };
                sources.iter().zip(targets).map(pair).collect::<Result<_, String>>()?
            }
            "rppkt" => {
                need(!sources.is_empty() && targets.iter().all(|at| at.is_remote))?;
                let to = |to: &Reference| {
                    Ok(Move { sources: packets(&sources[0])?, targets: packets(to)?, bytes: bytes(&sources[0])? })
                };
                targets.iter().map(to).collect::<Result<_, String>>()?
            }
            "cpkt" => single(plain(&sources[0])?, packets(&targets[0])?, bytes(&sources[0])?),
            "upkt" => single(packets(&sources[0])?, plain(&targets[0])?, bytes(&sources[0])?),
            "repkt" | "respkt" | "recpkt" | "recspkt" => {
                let from = [plain(&sources[0])?, each(&sources[1..], &packets)?].concat();
                let to = [plain(&targets[0])?, each(&targets[1..], &packets)?].concat();
                single(from, to, bytes(&sources[0])?)
            }
            other => return Err(format!("no operation that is interpreted: {other}")),
        })
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

    pub(super) fn packets_are_there(&self, part: &Move, unit: usize) -> bool {
        part.sources.iter().filter(|place| place.is_packets).all(|place| {
            let packet = &self.memories[place.rank][place.at + unit * 2 * UNIT..][..2 * UNIT];
            packet[4..8] == FLAG && packet[12..] == FLAG
        })
    }

    /// Sums one unit of all sources, and stores it at all targets, on behalf of a rank.
    pub(super) fn transfer(&mut self, part: &Move, unit: usize, by: usize, is_proxy: bool) -> Result<(), String> {
        for place in part.sources.iter().chain(&part.targets) {
            let is_exempt = place.is_packets && self.is_alternating;
            let is_open = self.has_begun[place.rank] && self.open[place.rank] > 0;
            if (place.rank != by || is_proxy) && !is_open && !is_exempt {
                return Err(format!("memory of rank {} is touched outside its launch", place.rank));
            }
        }
        let mut sum = [0_u32; 2];
        for place in &part.sources {
            let memory = &self.memories[place.rank];
            for (word, sum) in sum.iter_mut().enumerate() {
                let at = match place.is_packets {
                    true => place.at + unit * 2 * UNIT + word * 8,
                    false => place.at + unit * UNIT + word * 4,
                };
                *sum = sum.wrapping_add(u32::from_le_bytes(memory[at..at + 4].try_into().unwrap()));
            }
        }
        for place in &part.targets {
            let memory = &mut self.memories[place.rank];
            for (word, sum) in sum.iter().enumerate() {
                if place.is_packets {
                    let at = place.at + unit * 2 * UNIT + word * 8;
                    memory[at..at + 4].copy_from_slice(&sum.to_le_bytes());
                    memory[at + 4..at + 8].copy_from_slice(&FLAG);
                } else {
                    let at = place.at + unit * UNIT + word * 4;
                    memory[at..at + 4].copy_from_slice(&sum.to_le_bytes());
                }
            }
        }
        Ok(())
    }
}
