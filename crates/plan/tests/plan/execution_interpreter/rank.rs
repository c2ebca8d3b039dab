//! What the JSON of an execution plan says of one rank, as numbers that the interpreter needs.
//!
//! Read with `serde_json` alone, straight from the description of the format.

use serde_json::Value;

/// Where some bytes of a rank lie: the rank, and the letter of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) rank: usize,
    pub(crate) buffer: char,
}

/// An entry of `src_buff` or `dst_buff`.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    /// The places that it names: several where it is a multicast group.
    pub(crate) homes: Vec<Home>,
    /// Position in the block's list of remote buffers was given.
    pub(crate) is_remote: bool,
    pub(crate) is_group: bool,
    /// In chunks.
    pub(crate) index: usize,
    pub(crate) size: usize,
}

/// One end of a channel: the peer, and which of the channels between the two it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Channel {
    pub(crate) is_port: bool,
    pub(crate) own: usize,
    pub(crate) peer: usize,
    pub(crate) ordinal: usize,
}

/// An operation with its numbers resolved at both levels.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) name: String,
    pub(crate) sources: Vec<Reference>,
    pub(crate) targets: Vec<Reference>,
    pub(crate) is_port: bool,
    pub(crate) channels: Vec<Channel>,
    pub(crate) slice: (usize, usize),
    pub(crate) barrier: (usize, usize),
    pub(crate) semaphores: Vec<usize>,
    /// First byte and greatest number of bytes of every reference that are done, in a pipeline.
    pub(crate) part: Option<(usize, usize)>,
}

pub(crate) fn number(value: &Value, what: &str) -> Result<usize, String> {
    value.as_u64().and_then(|number| usize::try_from(number).ok()).ok_or_else(|| format!("{what} is {value}"))
}

fn list<'a>(value: &'a Value, what: &str) -> Result<&'a [Value], String> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        other => Err(format!("{what} is {other}")),
    }
}

fn numbers(value: &Value, what: &str) -> Result<Vec<usize>, String> {
    list(value, what)?.iter().map(|item| number(item, what)).collect()
}

fn letter(value: &Value) -> Result<char, String> {
    match value.as_str() {
        Some("i") => Ok('i'),
        Some("o") => Ok('o'),
        Some("s") => Ok('s'),
        _ => Err(format!("no buffer: {value}")),
    }
}

/// Numbers of a block for one type, its entries one after the other.
fn of_type(lists: &Value, kind: &str, kind_field: &str, ids_field: &str) -> Result<Vec<usize>, String> {
    let mut found = Vec::new();
    for entry in list(lists, kind_field)? {
        if entry[kind_field] == kind {
            found.extend(numbers(&entry[ids_field], ids_field)?);
        }
    }
    Ok(found)
}

/// A block of a rank, for resolving its operations.
pub(crate) struct Reader<'a> {
    pub(crate) rank: usize,
    pub(crate) gpu: &'a Value,
    pub(crate) block: &'a Value,
    /// Bytes of a chunk.
    pub(crate) chunk_bytes: usize,
}

impl Reader<'_> {
    /// Its operations in order, what pipelines repeat as often as it is done.
    pub(crate) fn operations(&self) -> Result<Vec<Op>, String> {
        let mut found = Vec::new();
        for op in list(&self.block["ops"], "ops")? {
            if op["name"] != "pipeline" {
                found.push(self.operation(op, None)?);
                continue;
            }
            let context = &op["iter_context"];
            let unit = number(&context["unit_size"], "unit_size")?;
            if unit == 0 {
                return Err("unit_size is 0".to_owned());
            }
            let total = number(&context["num_chunks"], "num_chunks")? * self.chunk_bytes;
            for iteration in 0..total.div_ceil(unit) {
                for nested in list(&op["ops"], "ops")? {
                    found.push(self.operation(nested, Some((iteration * unit, unit)))?);
                }
            }
        }
        Ok(found)
    }

    fn operation(&self, op: &Value, part: Option<(usize, usize)>) -> Result<Op, String> {
        let kind = op["channel_type"].as_str().unwrap_or("none");
        let name = op["name"].as_str().ok_or("an operation without a name")?.to_owned();
        let references = |field: &str| -> Result<Vec<Reference>, String> {
            list(&op[field], field)?.iter().map(|entry| self.reference(entry, kind)).collect()
        };
        let slice = match &op["tbg_info"] {
            Value::Null => (0, 1),
            group => (number(&group["tb_id"], "tb_id")?, number(&group["tbg_size"], "tbg_size")?),
        };
        if slice.0 >= slice.1 {
            return Err(format!("slice {} of {}", slice.0, slice.1));
        }
        let barrier = match name.as_str() {
            "barrier" => {
                (number(&op["barrier_id"], "barrier_id")?, number(&op["num_threadblocks"], "num_threadblocks")?)
            }
            _ => (0, 0),
        };
        let channels = numbers(&op["channel_ids"], "channel_ids")?;
        let channels = match kind {
            "memory" | "port" => {
                channels.into_iter().map(|position| self.channel(position, kind)).collect::<Result<_, _>>()?
            }
            _ => Vec::new(),
        };
        Ok(Op {
            sources: references("src_buff")?,
            targets: references("dst_buff")?,
            is_port: kind == "port",
            channels,
            slice,
            barrier,
            semaphores: numbers(&op["semaphore_ids"], "semaphore_ids")?,
            part,
            name,
        })
    }

    /// The rank's channel at a position of the block's list.
    fn channel(&self, position: usize, kind: &str) -> Result<Channel, String> {
        let own = of_type(&self.block["channels"], kind, "channel_type", "channel_ids")?;
        let id = *own.get(position).ok_or("a channel that the block does not list")?;
        let mut peers = Vec::new();
        for entry in list(&self.gpu["channels"], "channels")? {
            if entry["channel_type"] == kind {
                peers.extend(numbers(&entry["connected_to"], "connected_to")?);
            }
        }
        let peer = *peers.get(id).ok_or("a channel that the rank does not list")?;
        let ordinal = peers[..id].iter().filter(|&&other| other == peer).count();
        Ok(Channel { is_port: kind == "port", own: self.rank, peer, ordinal })
    }

    fn reference(&self, entry: &Value, kind: &str) -> Result<Reference, String> {
        let (index, size) = (number(&entry["index"], "index")?, number(&entry["size"], "size")?);
        let found = |homes, is_remote, is_group| Reference { homes, is_remote, is_group, index, size };
        if !entry["type"].is_null() {
            let home = Home { rank: self.rank, buffer: letter(&entry["type"])? };
            return Ok(found(vec![home], false, false));
        }
        if !entry["buffer_id"].is_null() {
            let refs = &self.block["remote_buffer_refs"];
            let own = of_type(refs, kind, "access_channel_type", "remote_buffer_ids")?;
            let id = *own.get(number(&entry["buffer_id"], "buffer_id")?).ok_or("a buffer that the block lacks")?;
            let remote = &self.gpu["remote_buffers"][id];
            let home = Home { rank: number(&remote["rank"], "rank")?, buffer: letter(&remote["type"])? };
            return Ok(found(vec![home], true, false));
        }
        let own = of_type(&self.block["channels"], "switch", "channel_type", "channel_ids")?;
        let id = number(&entry["switch_channel_id"], "switch_channel_id")?;
        let id = *own.get(id).ok_or("a switch channel that the block lacks")?;
        let mut groups = Vec::new();
        for entry in list(&self.gpu["channels"], "channels")? {
            if entry["channel_type"] == "switch" {
                let buffer = letter(&entry["buffer_type"])?;
                for group in list(&entry["rank_groups"], "rank_groups")? {
                    groups.push((buffer, numbers(&group["ranks"], "ranks")?));
                }
            }
        }
        let (buffer, ranks) = groups.get(id).cloned().ok_or("a switch channel that the rank lacks")?;
        Ok(found(ranks.into_iter().map(|rank| Home { rank, buffer }).collect(), false, true))
    }
}
