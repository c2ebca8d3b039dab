//! Writes a program in the dialect the runtimes' hand-made readers accept.
//!
//! No declaration, one element per line, one space before each attribute, double quotes, plain decimals.

use std::fmt::Write as _;

use super::profile::Profile;
use super::program::{Program, RankProgram, Step, ThreadBlock};

/// The text of a program, in the words of a runtime.
///
/// [`parse_msccl_xml`](super::parse_msccl_xml) reads it back unchanged, provided the name keeps to letters, digits and
/// `_ - .`, the collective is one the runtime's files can name and no attribute is missing which it demands. O(steps);
/// some 130 bytes per step.
pub fn write_msccl_xml(program: &Program, profile: Profile) -> String {
    let steps: usize = program.ranks.iter().flat_map(|rank| &rank.thread_blocks).map(|block| block.steps.len()).sum();
    let mut text = String::with_capacity(4096 + 150 * steps);
    let spelling = program.purpose.collective().and_then(|kind| profile.spell(kind)).unwrap_or(program.purpose.name());
    text.push_str("<algo");
    if !program.name.is_empty() {
        put(&mut text, " name=\"", &program.name);
        text.push('"');
    }
    put(&mut text, " proto=\"", program.protocol.name());
    put(&mut text, "\" nchannels=\"", program.channel_count);
    put(&mut text, "\" nchunksperloop=\"", program.chunk_count);
    put(&mut text, "\" ngpus=\"", program.rank_count);
    put(&mut text, "\" coll=\"", spelling);
    put(&mut text, "\" inplace=\"", u8::from(program.in_place));
    let optional = [
        ("\" outofplace=\"", program.out_of_place.map(u64::from)),
        ("\" minBytes=\"", program.bytes_min),
        ("\" maxBytes=\"", program.bytes_max),
        ("\" nthreads=\"", program.thread_count.map(u64::from)),
    ];
    for (label, value) in optional {
        if let Some(value) = value {
            put(&mut text, label, value);
        }
    }
    text.push_str("\">\n");
    for rank in &program.ranks {
        write_rank(&mut text, rank);
    }
    text.push_str("</algo>\n");
    text
}

fn write_rank(text: &mut String, rank: &RankProgram) {
    put(text, "  <gpu id=\"", rank.rank);
    put(text, "\" i_chunks=\"", rank.input_chunks);
    put(text, "\" o_chunks=\"", rank.output_chunks);
    put(text, "\" s_chunks=\"", rank.scratch_chunks);
    text.push_str("\">\n");
    for block in &rank.thread_blocks {
        write_block(text, block);
    }
    text.push_str("  </gpu>\n");
}

fn write_block(text: &mut String, block: &ThreadBlock) {
    put(text, "    <tb id=\"", block.id);
    put(text, "\" send=\"", signed(block.send));
    put(text, "\" recv=\"", signed(block.receive));
    put(text, "\" chan=\"", block.channel);
    text.push_str("\">\n");
    for step in &block.steps {
        write_step(text, step);
    }
    text.push_str("    </tb>\n");
}

fn write_step(text: &mut String, step: &Step) {
    put(text, "      <step s=\"", step.index);
    put(text, "\" type=\"", step.operation.name());
    put(text, "\" srcbuf=\"", step.source.buffer.letter());
    put(text, "\" srcoff=\"", signed(step.source.offset));
    put(text, "\" dstbuf=\"", step.destination.buffer.letter());
    put(text, "\" dstoff=\"", signed(step.destination.offset));
    put(text, "\" cnt=\"", step.chunk_count);
    put(text, "\" depid=\"", signed(step.wait_block));
    put(text, "\" deps=\"", signed(step.wait_step));
    put(text, "\" hasdep=\"", u8::from(step.is_awaited));
    text.push_str("\"/>\n");
}

fn put(text: &mut String, label: &str, value: impl std::fmt::Display) {
    text.push_str(label);
    write!(text, "{value}").expect("writing to a string cannot fail");
}

fn signed(value: Option<u32>) -> i64 {
    value.map_or(-1, i64::from)
}
