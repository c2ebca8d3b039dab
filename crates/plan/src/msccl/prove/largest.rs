//! The largest message with which a program always ends.

use super::model::Model;
use super::place::Report;
use super::{connections, dependencies, progress, structure};
use crate::msccl::profile::Profile;
use crate::msccl::program::Program;

/// How far the size of messages decides whether a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::msccl) enum Largest {
    /// It ends at the largest message that the file states.
    Stated,
    /// It ends with messages up to this many bytes, and deadlocks with larger ones.
    Bytes(u64),
    /// It never ends, or other things are wrong with it, so that the question has no answer.
    None,
}

/// The largest message, up to the one the file states, with which the program cannot deadlock.
///
/// A step of `c` chunks is `⌈c/a⌉` transfers, where `a = ⌊E / ⌈bytes / nchunksperloop⌉⌋` chunks fit into one: the more fit,
/// the fewer slots a step needs, and what ends with some `a` ends with greater ones, see `progress`. So the least `a`
/// with which it ends is found by bisection; `a` chunks fit into a transfer up to `nchunksperloop · ⌊E/a⌋` bytes.
///
/// * **Cost.** O(transfers), some seven times where the stated size is too large.
pub(in crate::msccl) fn largest_without_deadlock(program: &Program, profile: Profile) -> Largest {
    let mut report = Report::new(&|| false);
    if !report.run("structure", |findings| structure::check(program, profile, findings)) {
        return Largest::None;
    }
    let Some(mut model) = Model::new(program, profile) else { return Largest::None };
    let are_joined = report.run("connections", |findings| connections::check(&mut model, findings));
    if !(are_joined && report.run("dependencies", |findings| dependencies::check(&model, findings))) {
        return Largest::None;
    }
    let limits = profile.limits();
    let stated = profile.bytes_max_of(program.bytes_max);
    let fitting = profile.chunks_per_transfer(program.protocol, stated, program.chunk_count);
    if progress::ends(&model, fitting) {
        return Largest::Stated;
    }
    if !progress::ends(&model, limits.chunks_per_step) {
        return Largest::None;
    }
    let (mut fails, mut ends) = (fitting, limits.chunks_per_step);
    while ends - fails > 1 {
        let middle = fails + (ends - fails) / 2;
        if progress::ends(&model, middle) { ends = middle } else { fails = middle }
    }
    let chunk_bytes = limits.queue(program.protocol).transfer_bytes / u64::from(ends);
    Largest::Bytes(chunk_bytes.saturating_mul(program.chunk_count.into()))
}
