//! Nodes, ports, ranks, buffers and queue pairs are there, in order, and lead where they say.

use canopy_schedule::CollectiveKind;
use canopy_topology::Rank;

use super::network::Network;
use crate::oneccl::{Findings, Place, is_label};
use crate::routes::program::{Node, Program, QueuePair, RankProgram, Role};

/// The network, where nothing is wrong.
pub(super) fn check<'p>(program: &'p Program, findings: &mut Findings<'_>) -> Option<Network<'p>> {
    check_head(program, findings);
    check_nodes(program, findings);
    let ranks = findings.by_rank(program.rank_count, &program.ranks, |rank| rank.rank);
    if findings.has_problem() {
        return None;
    }
    check_buffers(program, &ranks, findings);
    let Some(network) = Network::new(program, ranks) else {
        findings.problem(Place::FILE, "the file has more than 4294967295 ports");
        return None;
    };
    let mut walks = Walks { seen: vec![0; program.nodes.len()], walk: 0 };
    let (mut layers, mut routes_max) = (0, 0);
    for rank in &network.ranks {
        routes_max = routes_max.max(check_pairs(rank, findings));
        for pair in &rank.queue_pairs {
            layers = layers.max(u64::from(pair.layer) + 1);
            let place = Place::rank(rank.rank);
            if let Err(fault) = check_pair(program, rank, pair).and_then(|()| walks.check(&network, rank, pair)) {
                findings.problem(place, format!("queue pair {}: {fault}", pair.id));
            }
            if findings.must_stop(1 + rank.ports_of(pair).len() as u64) {
                return None;
            }
        }
    }
    if !findings.has_problem() && layers != u64::from(program.layer_count) {
        findings.problem(Place::FILE, format!("nlayers is {}, but routes use {layers}", program.layer_count));
    }
    if !findings.has_problem() && routes_max != program.routes_max {
        let text = format!("maxroutes is {}, but up to {routes_max} routes lead to one rank", program.routes_max);
        findings.problem(Place::FILE, text);
    }
    (!findings.has_problem()).then_some(network)
}

fn check_head(program: &Program, findings: &mut Findings<'_>) {
    if !is_label(&program.name) {
        findings.problem(Place::FILE, "the name is not valid; use 1 to 63 letters, digits, `_`, `-` and `.`");
    }
    if program.bytes_max < program.bytes_min {
        let text = format!("no message is from minbytes {} up to maxbytes {}", program.bytes_min, program.bytes_max);
        findings.problem(Place::FILE, text);
    }
    if program.block_chunks == 0 {
        findings.problem(Place::FILE, "blockchunks is 0; use at least 1");
    }
}

fn check_nodes(program: &Program, findings: &mut Findings<'_>) {
    let count = program.nodes.len();
    if count < program.rank_count as usize {
        findings.problem(Place::FILE, format!("there are {count} <node> for {} ranks", program.rank_count));
    }
    for (position, node) in program.nodes.iter().enumerate() {
        if node.id as usize != position {
            let text = format!("<node> {position} has the id {}; number nodes 0, 1, 2, … in order", node.id);
            return findings.problem(Place::FILE, text);
        }
        let is_rank = node.id < program.rank_count;
        if is_rank != (node.role == Role::Rank) {
            let text =
                format!("node {position} is a {}, but the first nranks nodes must be the ranks", node.role.name());
            findings.problem(Place::FILE, text);
        }
        check_ports(node, count, findings);
        if findings.is_full() || findings.must_stop(1 + node.ports.len() as u64) {
            return;
        }
    }
}

fn check_ports(node: &Node, node_count: usize, findings: &mut Findings<'_>) {
    let mut before: Option<(u32, u32)> = None;
    for (position, port) in node.ports.iter().enumerate() {
        let expected = before.filter(|(to, _)| *to == port.to).map_or(0, |(_, parallel)| parallel.saturating_add(1));
        let problem = if port.id as usize != position {
            "ports are numbered 0, 1, 2, … in order"
        } else if port.to as usize >= node_count || port.to == node.id {
            "a port leads to another node"
        } else if port.rate == 0 {
            "a link has a rate"
        } else if before.is_some_and(|(to, _)| port.to < to) || port.parallel != expected {
            "ports are in the order of the nodes that they lead to, and parallel ones numbered 0, 1, 2, …"
        } else {
            before = Some((port.to, port.parallel));
            continue;
        };
        let text = format!("<port> {position} of node {} is wrong: {problem}", node.id);
        return findings.problem(Place::FILE, text);
    }
}

/// Buffers have as many chunks as the collective says.
fn check_buffers(program: &Program, ranks: &[&RankProgram], findings: &mut Findings<'_>) {
    let chunks = u64::from(program.block_chunks);
    let of = |rank: &RankProgram| (u64::from(rank.input_chunks), u64::from(rank.output_chunks));
    let total_of = |part: fn(&(u64, u64)) -> u64| ranks.iter().map(|rank| part(&of(rank))).sum::<u64>();
    let root = program.collective.root();
    let kind = program.collective.kind();
    let (inputs, outputs) = (total_of(|(input, _)| *input), total_of(|(_, output)| *output));
    for rank in ranks {
        let (input, output) = of(rank);
        let is_root = root == Some(Rank::new(rank.rank));
        let of_root = |total| if is_root { total } else { 0 };
        let all = chunks * u64::from(program.rank_count);
        let is_right = match kind {
            CollectiveKind::Gather => input % chunks == 0 && output == of_root(inputs),
            CollectiveKind::Scatter => output % chunks == 0 && input == of_root(outputs),
            _ => input == all && output == all,
        };
        if !is_right {
            let expected = match kind {
                CollectiveKind::Gather => {
                    format!("i_chunks must be a multiple of {chunks}, and o_chunks {}", of_root(inputs))
                }
                CollectiveKind::Scatter => {
                    format!("o_chunks must be a multiple of {chunks}, and i_chunks {}", of_root(outputs))
                }
                _ => format!("both must be {all}"),
            };
            let text = format!("i_chunks {input} and o_chunks {output} do not match {kind}; {expected}");
            findings.problem(Place::rank(rank.rank), text);
        }
    }
}

/// Queue pairs of a rank are numbered without gaps, and differ in destination or route. Returns the most of them to one
/// rank.
fn check_pairs(rank: &RankProgram, findings: &mut Findings<'_>) -> u32 {
    let place = Place::rank(rank.rank);
    let mut is_used = vec![false; rank.queue_pairs.len()];
    for pair in &rank.queue_pairs {
        match is_used.get_mut(pair.id as usize) {
            Some(used) if !*used => *used = true,
            Some(_) => findings.problem(place, format!("two queue pairs have the id {}", pair.id)),
            None => {
                let last = rank.queue_pairs.len() - 1;
                findings.problem(place, format!("queue pair {} is not one of 0 to {last}, without gaps", pair.id));
            }
        }
    }
    let mut routes: Vec<(u32, &[u32], u32)> =
        rank.queue_pairs.iter().map(|pair| (pair.destination, rank.ports_of(pair), pair.id)).collect();
    routes.sort_unstable();
    for two in routes.windows(2).filter(|two| (two[0].0, two[0].1) == (two[1].0, two[1].1)) {
        let text = format!("queue pairs {} and {} take the same route to rank {}", two[0].2, two[1].2, two[0].0);
        findings.problem(place, text);
    }
    let of_ranks = routes.chunk_by(|first, second| first.0 == second.0);
    of_ranks.map(|some| u32::try_from(some.len()).unwrap_or(u32::MAX)).max().unwrap_or(0)
}

/// Numbers of a queue pair are in range.
fn check_pair(program: &Program, rank: &RankProgram, pair: &QueuePair) -> Result<(), String> {
    let QueuePair { destination, layer, chunk_count, .. } = *pair;
    if destination >= program.rank_count || destination == rank.rank {
        return Err(format!("dst is {destination}, which is not another rank"));
    }
    if layer >= program.layer_count {
        return Err(format!("layer is {layer}, and nlayers {}", program.layer_count));
    }
    if chunk_count == 0 {
        return Err("it carries no chunks; cnt must be at least 1".to_owned());
    }
    Ok(())
}

/// Where the walk at hand has been.
struct Walks {
    /// By node: the last walk that came there.
    seen: Vec<u64>,
    walk: u64,
}

impl Walks {
    /// A queue pair's ports lead from its rank to its destination, past no node twice.
    fn check(&mut self, network: &Network<'_>, rank: &RankProgram, pair: &QueuePair) -> Result<(), String> {
        self.walk += 1;
        let mut at = rank.rank;
        self.seen[at as usize] = self.walk;
        for &port in rank.ports_of(pair) {
            let (_, to) = network.step(at, port).ok_or_else(|| format!("node {at} has no port {port}"))?;
            if std::mem::replace(&mut self.seen[to as usize], self.walk) == self.walk {
                return Err(format!("its route reaches node {to} twice"));
            }
            at = to;
        }
        match at == pair.destination {
            true => Ok(()),
            false => Err(format!("its route ends at node {at}, not at rank {}", pair.destination)),
        }
    }
}
