//! Writes a program as text: the same program, the same bytes.

use std::fmt::Write as _;

use super::program::{Local, Program, RankProgram, Scope, Span, Step};

/// The text of a program, of about 60 bytes per instruction. O(instructions).
///
/// It reads back as the same program where names, keys and values keep to what [`Program`] says of them.
pub fn write(program: &Program) -> String {
    text(program, 1)
}

/// The text of a program of one rank alone, version 2 of the format. As [`write`], and read back by
/// [`parse_rank_plan`](super::parse_rank_plan).
pub fn write_rank_plan(program: &Program) -> String {
    text(program, 2)
}

fn text(program: &Program, version: u32) -> String {
    let instructions = |step: &Step| {
        let locals = step.completion.as_ref().map_or(0, |completion| completion.locals.len());
        2 + step.sends.len() + step.receives.len() + locals
    };
    let count: usize = program.ranks.iter().flat_map(|rank| &rank.steps).map(instructions).sum();
    let mut text = String::with_capacity(1024 + 64 * count);
    head(&mut text, program, version);
    for meta in &program.meta {
        line(&mut text, 1, format_args!("<meta key=\"{}\" value=\"{}\"/>", escaped(&meta.key), escaped(&meta.value)));
    }
    if !program.routes.is_empty() {
        line(&mut text, 1, format_args!("<routes>"));
        for route in &program.routes {
            let hops: Vec<String> = route.hops.iter().map(u32::to_string).collect();
            let (id, source, destination, layer) = (route.id, route.source, route.destination, route.layer);
            let hops = hops.join(" ");
            line(
                &mut text,
                2,
                format_args!(
                    "<route id=\"{id}\" src=\"{source}\" dst=\"{destination}\" layer=\"{layer}\" hops=\"{hops}\"/>"
                ),
            );
        }
        line(&mut text, 1, format_args!("</routes>"));
    }
    for rank in &program.ranks {
        write_rank(&mut text, rank);
    }
    text.push_str("</onecclplan>\n");
    text
}

fn head(text: &mut String, program: &Program, version: u32) {
    put(text, format_args!("<onecclplan version=\"{version}\" name=\"{}\"", escaped(&program.name)));
    put(text, format_args!(" coll=\"{}\"", spelling(program)));
    if let Some(root) = program.collective.root() {
        put(text, format_args!(" root=\"{}\"", root.number()));
    }
    put(text, format_args!(" nranks=\"{}\" nchunks=\"{}\"", program.rank_count, program.chunk_count));
    put(text, format_args!(" inplace=\"{}\" instances=\"{}\"", u8::from(program.in_place), program.instances));
    let (bytes_min, bytes_max) = (program.bytes_min, program.bytes_max.unwrap_or(0));
    put(text, format_args!(" minbytes=\"{bytes_min}\" maxbytes=\"{bytes_max}\">\n"));
}

/// The word for a collective, in one piece.
fn spelling(program: &Program) -> String {
    program.collective.kind().name().replace('-', "")
}

fn write_rank(text: &mut String, rank: &RankProgram) {
    let (input, output, scratch) = (rank.input_chunks, rank.output_chunks, rank.scratch_chunks);
    let attributes = format!("id=\"{}\" i_chunks=\"{input}\" o_chunks=\"{output}\" s_chunks=\"{scratch}\"", rank.rank);
    line(text, 1, format_args!("<rank {attributes}>"));
    for step in &rank.steps {
        write_step(text, step);
    }
    line(text, 1, format_args!("</rank>"));
}

fn write_step(text: &mut String, step: &Step) {
    line(text, 2, format_args!("<step t=\"{}\">", step.index));
    let range =
        |Span { buffer, first, count }: Span| format!("buf=\"{}\" off=\"{first}\" cnt=\"{count}\"", buffer.letter());
    for send in &step.sends {
        let route = send.route.map_or(String::new(), |route| format!(" route=\"{route}\""));
        line(text, 3, format_args!("<send peer=\"{}\" {}{route}/>", send.peer, range(send.span)));
    }
    for receive in &step.receives {
        line(text, 3, format_args!("<recv peer=\"{}\" {}/>", receive.peer, range(receive.span)));
    }
    if let Some(completion) = &step.completion {
        write_sync(text, completion.scope);
        for local in &completion.locals {
            write_local(text, local);
        }
        if let Some(scope) = completion.after {
            write_sync(text, scope);
        }
    }
    line(text, 2, format_args!("</step>"));
}

fn write_sync(text: &mut String, scope: Scope) {
    line(text, 3, format_args!("<sync scope=\"{}\"/>", scope.name()));
}

fn write_local(text: &mut String, local: &Local) {
    let element = if local.is_reduction { "reduce" } else { "copy" };
    let (from, to) = (local.source, local.destination);
    line(
        text,
        3,
        format_args!(
            "<{element} src=\"{}\" srcoff=\"{}\" dst=\"{}\" dstoff=\"{}\" cnt=\"{}\"/>",
            from.buffer.letter(),
            from.first,
            to.buffer.letter(),
            to.first,
            from.count
        ),
    );
}

fn line(text: &mut String, depth: usize, content: std::fmt::Arguments<'_>) {
    for _ in 0..depth {
        text.push_str("  ");
    }
    put(text, content);
    text.push('\n');
}

fn put(text: &mut String, content: std::fmt::Arguments<'_>) {
    text.write_fmt(content).expect("writing to a string cannot fail");
}

/// An attribute's value with what XML reserves written as entities.
pub(crate) fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}
