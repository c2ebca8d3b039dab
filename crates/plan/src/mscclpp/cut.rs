//! Execution plans cut by rank.
//!
//! The loader of a rank counts the channels that others have to it, and takes the buffers in the order in which others name
//! them: see `setupChannels` and `parseRemoteBuffer` of its `execution_plan.cc`. So a stub has these, and neither blocks nor what
//! concerns third ranks.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::program::{ChannelType, ExecutionRank, RankChannels, RemoteBuffer};
use super::write::write_rank;
use crate::cut::{Cut, SliceError, text};
use crate::msccl::Buffer;

/// How each rank begins in files that were written here.
const RANK: &str = "    {\"id\": ";

/// What precedes the ranks.
const RANKS: &str = "  \"gpus\": [\n";

/// What of a rank concerns others: its first three lines.
#[derive(Deserialize)]
struct Head {
    id: u32,
    input_chunks: u32,
    output_chunks: u32,
    scratch_chunks: u32,
    channels: Vec<Channels>,
    remote_buffers: Vec<Remote>,
}

#[derive(Deserialize)]
struct Channels {
    channel_type: String,
    #[serde(default)]
    connected_to: Vec<u32>,
}

#[derive(Deserialize)]
struct Remote {
    rank: u32,
    #[serde(rename = "type")]
    buffer: String,
    access_channel_types: Vec<String>,
}

/// The part of a plan that some ranks need; the plan must have been written here. O(bytes).
pub(crate) fn cut_execution_plan(content: &[u8], ranks: &BTreeSet<u32>) -> Result<Vec<u8>, SliceError> {
    let unreadable = |what: &str| SliceError::Unreadable(format!("the execution plan {what}"));
    let content = text(content)?;
    let start = content.find(RANKS).ok_or_else(|| unreadable("has no `gpus` of its own line"))? + RANKS.len();
    let (before, rest) = content.split_at_checked(start).ok_or_else(|| unreadable("ends early"))?;
    let (all, after) = rest.rsplit_once("\n  ]\n}\n").ok_or_else(|| unreadable("does not end with its ranks"))?;
    if !after.is_empty() {
        return Err(unreadable("goes on after its end"));
    }
    let mut cut = Cut::new(ranks);
    let mut slice = before.to_owned();
    for (position, part) in (Parts { rest: all }).enumerate() {
        let head = head(part)?;
        slice.push_str(if position == 0 { "" } else { ",\n" });
        if cut.next(head.id)? {
            slice.push_str(part);
        } else {
            write_rank(&mut slice, &stub(head, &cut)?);
        }
    }
    cut.end()?;
    slice.push_str("\n  ]\n}\n");
    Ok(slice.into_bytes())
}

/// The texts of ranks, without the commas between them.
struct Parts<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let next = format!(",\n{RANK}");
        let (part, rest) = match self.rest.find(&next) {
            Some(end) => (self.rest.get(..end)?, self.rest.get(end + 2..)?),
            None => (self.rest, ""),
        };
        self.rest = rest;
        Some(part)
    }
}

fn head(part: &str) -> Result<Head, SliceError> {
    let lines: String = part.split_inclusive('\n').take(3).collect();
    let object = lines.trim_end().trim_end_matches(',').to_owned() + "}";
    let unreadable =
        |error| SliceError::Unreadable(format!("a rank does not begin with its channels and buffers: {error}"));
    serde_json::from_str(&object).map_err(unreadable)
}

/// What the ranks of the slice see of another.
fn stub(head: Head, cut: &Cut<'_>) -> Result<ExecutionRank, SliceError> {
    let unknown = |word: &str| SliceError::Unreadable(format!("`{word}` is no type of a channel or buffer"));
    let channel = |word: &String| ChannelType::ALL.into_iter().find(|kind| kind.name() == word);
    let mut channels = Vec::new();
    for entry in head.channels {
        let kind = channel(&entry.channel_type).ok_or_else(|| unknown(&entry.channel_type))?;
        let peers: Vec<u32> = entry.connected_to.into_iter().filter(|&peer| cut.wants(peer)).collect();
        if kind != ChannelType::Switch && !peers.is_empty() {
            channels.push(RankChannels::Peers { is_port: kind == ChannelType::Port, peers });
        }
    }
    let mut remote_buffers = Vec::new();
    for remote in head.remote_buffers.into_iter().filter(|remote| cut.wants(remote.rank)) {
        let known = [Buffer::Input, Buffer::Output, Buffer::Scratch];
        let buffer = known.into_iter().find(|buffer| remote.buffer == buffer.letter());
        let buffer = buffer.ok_or_else(|| unknown(&remote.buffer))?;
        let access = remote.access_channel_types.iter().map(|word| channel(word).ok_or_else(|| unknown(word)));
        remote_buffers.push(RemoteBuffer { rank: remote.rank, buffer, access: access.collect::<Result<_, _>>()? });
    }
    Ok(ExecutionRank {
        id: head.id,
        input_chunks: head.input_chunks,
        output_chunks: head.output_chunks,
        scratch_chunks: head.scratch_chunks,
        channels,
        remote_buffers,
        semaphores: Vec::new(),
        blocks: Vec::new(),
    })
}
