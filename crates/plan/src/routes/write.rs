//! Writes a program as text: the same program, the same bytes.

use std::fmt::Write as _;

use super::program::{Node, Program, RankProgram};
use crate::oneccl::escaped;

/// The text of a program, of some 80 bytes per queue pair. O(queue pairs + ports).
///
/// It reads back as the same program where names keep to what [`Program`] says of them.
pub fn write(program: &Program) -> String {
    let pairs: usize = program.ranks.iter().map(|rank| rank.queue_pairs.len()).sum();
    let mut text = String::with_capacity(1024 + 64 * program.nodes.len() + 96 * pairs);
    head(&mut text, program);
    program.nodes.iter().for_each(|node| write_node(&mut text, node));
    program.ranks.iter().for_each(|rank| write_rank(&mut text, rank));
    text.push_str("</routeplan>\n");
    text
}

fn head(text: &mut String, program: &Program) {
    let Program { name, rank_count, block_chunks, layer_count, routes_max, algbw, .. } = program;
    let coll = program.collective.kind().name().replace('-', "");
    put(text, format_args!("<routeplan version=\"1\" name=\"{}\" coll=\"{coll}\"", escaped(name)));
    if let Some(root) = program.collective.root() {
        put(text, format_args!(" root=\"{}\"", root.number()));
    }
    put(text, format_args!(" nranks=\"{rank_count}\" blockchunks=\"{block_chunks}\" nlayers=\"{layer_count}\""));
    let (bytes_min, bytes_max) = (program.bytes_min, program.bytes_max);
    put(text, format_args!(" maxroutes=\"{routes_max}\" algbw=\"{algbw}\""));
    put(text, format_args!(" minbytes=\"{bytes_min}\" maxbytes=\"{bytes_max}\">\n"));
}

fn write_node(text: &mut String, node: &Node) {
    let (id, name, kind) = (node.id, escaped(&node.name), node.role.name());
    put(text, format_args!("  <node id=\"{id}\" name=\"{name}\" kind=\"{kind}\">\n"));
    for port in &node.ports {
        let (id, to, parallel, rate) = (port.id, port.to, port.parallel, port.rate);
        let attributes = format_args!("id=\"{id}\" to=\"{to}\" parallel=\"{parallel}\" rate=\"{rate}\"");
        put(text, format_args!("    <port {attributes}/>\n"));
    }
    text.push_str("  </node>\n");
}

fn write_rank(text: &mut String, rank: &RankProgram) {
    let (id, input, output) = (rank.rank, rank.input_chunks, rank.output_chunks);
    put(text, format_args!("  <rank id=\"{id}\" i_chunks=\"{input}\" o_chunks=\"{output}\">\n"));
    for pair in &rank.queue_pairs {
        put(text, format_args!("    <qp id=\"{}\" dst=\"{}\"", pair.id, pair.destination));
        put(text, format_args!(" layer=\"{}\" ports=\"", pair.layer));
        for (at, port) in rank.ports_of(pair).iter().enumerate() {
            put(text, format_args!("{}{port}", if at == 0 { "" } else { " " }));
        }
        let (input, output, count) = (pair.input_first, pair.output_first, pair.chunk_count);
        put(text, format_args!("\" i_off=\"{input}\" o_off=\"{output}\" cnt=\"{count}\"/>\n"));
    }
    text.push_str("  </rank>\n");
}

fn put(text: &mut String, content: std::fmt::Arguments<'_>) {
    text.write_fmt(content).expect("writing to a string cannot fail");
}
