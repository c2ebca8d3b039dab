//! Hosts that limit what nodes send and receive: a linear program over all receivers as the reference.

use super::*;

/// A 3-D torus of side 3 with links of 25 and hosts of 100: the first two steps are as long as their hosts take, which
/// is 6 and 12 shares of 27; the third as well, 8 shares over 6 links.
#[test]
fn hosts_are_the_limit_of_a_wide_torus() {
    let (count, edges) = torus(&[3, 3, 3]);
    let graph = hosted(&widths(count, edges, 25), &[1; 27], &[100; 27], &[100; 27]);
    assert_eq!(graph.unit(), 25);
    let joint = JointArrivals::new(graph, &Never).unwrap();
    let loads: Vec<Fraction> = (1..=3).map(|step| joint.load(step, &Never).unwrap()).collect();
    assert_eq!(loads, [ratio(3, 2), ratio(3, 1), ratio(2, 1)]);
    assert_eq!(joint.load(4, &Never), Ok(Fraction::ZERO));
}

/// Two receivers can have a share from either of two nodes, or only from the one whose host is slow.
#[test]
fn receivers_avoid_a_slow_sender_together() {
    let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 4), (2, 4)];
    let all_but = |send: u64| hosted(&widths(5, edges, 6), &[1, 0, 0, 0, 0], &[0, send, 12, 0, 0], &[0; 5]);
    let load = |send| JointArrivals::new(all_but(send), &Never).unwrap().load(2, &Never).unwrap();
    // Two shares over 12 + 3 or 12 + 12, and no link of 6 with more than one.
    assert_eq!((load(3), load(12)), (ratio(2, 5), ratio(1, 2)));
    assert_eq!(all_but(3).unit(), 3);
}

#[test]
fn more_than_can_be_counted_is_refused() {
    let ring = || digraph(3, [(0, 1), (1, 2), (2, 0)]);
    let amounts = [1 << 61, 1 << 61, 1];
    let graph = BfbGraph::new(&ring(), &amounts, &Never).unwrap();
    let found = graph.with_hosts(&[1; 3], &[1; 3]).err();
    assert!(matches!(found, Some(BfbError::TooLarge { what: "the amounts, once for each node,", .. })));
    let graph = BfbGraph::with_equal_shares(&ring(), &Never).unwrap();
    assert!(matches!(graph.with_hosts(&[u64::MAX; 3], &[1; 3]), Err(BfbError::TooLarge { .. })));
}

fn widths(node_count: u32, edges: impl IntoIterator<Item = (u32, u32)>, capacity: u64) -> Digraph {
    let arcs = edges.into_iter().map(|(from, to)| Arc { from, to, capacity }).collect();
    Digraph { node_count, arcs }
}

fn hosted(graph: &Digraph, amounts: &[u64], send: &[u64], receive: &[u64]) -> BfbGraph {
    BfbGraph::new(graph, amounts, &Never).unwrap().with_hosts(send, receive).unwrap()
}

/// Program (3.1) over all receivers of a step, with a row for each host, in floating point.
#[expect(clippy::cast_precision_loss, reason = "a program in floating point")]
fn program(graph: &BfbGraph, step: u32) -> f64 {
    let mut variables = ProblemVariables::new();
    let most = variables.add(variable().min(0));
    let mut rows: Vec<(Expression, u64)> = Vec::new();
    let mut sent: Vec<Expression> = vec![0.into(); graph.node_count() as usize];
    let mut whole: Vec<(Expression, u64)> = Vec::new();
    let hosts = graph.hosts.as_ref().unwrap();
    let mut arrivals = Arrivals::new(graph);
    for node in 0..graph.node_count() {
        arrivals.visit(node, &Never).unwrap();
        let links = graph.in_links(node);
        let mut over: Vec<Expression> = vec![0.into(); links.len()];
        for &source in arrivals.sources(step) {
            let usable = (0..links.len()).filter(|&link| arrivals.can_use(source, link));
            let parts: Vec<(usize, Variable)> = usable.map(|link| (link, variables.add(variable().min(0)))).collect();
            parts.iter().for_each(|&(link, part)| over[link] += part);
            whole.push((parts.iter().map(|&(_, part)| part).sum(), graph.amount(source)));
        }
        let received: Expression = over.iter().cloned().sum();
        rows.push((received, hosts.receive[node as usize]));
        for (over, link) in over.into_iter().zip(links) {
            sent[link.from as usize] += over.clone();
            rows.push((over, link.width));
        }
    }
    rows.extend(sent.into_iter().zip(hosts.send.iter().copied()));
    let mut model = variables.minimise(most).using(microlp);
    for (carried, width) in rows.into_iter().filter(|&(_, width)| width > 0) {
        model = model.with(constraint!(carried <= width as f64 * most));
    }
    for (sum, amount) in whole {
        model = model.with(constraint!(sum == amount as f64));
    }
    model.solve().unwrap().value(most)
}

/// The chunks that links, and hosts of senders and receivers, carry at most, in chunks per width.
fn busiest(graph: &BfbGraph, pieces: &[(u32, Piece)]) -> Fraction {
    let hosts = graph.hosts.as_ref().unwrap();
    let count = graph.node_count() as usize;
    let (mut sent, mut received) = (vec![0; count], vec![0; count]);
    let mut carried = vec![0; graph.links.len()];
    for (node, piece) in pieces {
        let chunks = piece.chunks.end - piece.chunks.start;
        let link = graph.starts[*node as usize] + piece.link;
        carried[link as usize] += chunks;
        sent[graph.links[link as usize].from as usize] += chunks;
        received[*node as usize] += chunks;
    }
    let links = graph.links.iter().map(|link| link.width).zip(carried);
    let hosts = hosts.send.iter().copied().zip(sent).chain(hosts.receive.iter().copied().zip(received));
    let loads = links.chain(hosts).filter(|&(width, _)| width > 0);
    loads.map(|(width, chunks)| ratio(chunks.into(), width.into())).max().unwrap()
}

fn chunk_count(pieces: &[(u32, Piece)]) -> u64 {
    pieces.iter().map(|(_, piece)| piece.chunks.end - piece.chunks.start).sum()
}

/// What receivers are assigned one by one, without regard to hosts.
fn one_by_one(graph: &BfbGraph, step: u32, chunks: u64) -> Vec<(u32, Piece)> {
    let mut arrivals = Arrivals::new(graph);
    let assign = |node: u32| {
        arrivals.visit(node, &Never).unwrap();
        let load = arrivals.chunk_load(step, chunks, Fraction::ZERO, &Never).unwrap();
        let pieces = arrivals.assign(step, chunks, load, &Never).unwrap().unwrap();
        pieces.into_iter().map(move |piece| (node, piece))
    };
    (0..graph.node_count()).flat_map(assign).collect()
}

/// Strongly connected graphs whose hosts have rates from 1 to 5, or none.
fn hosted_graphs(nodes: u32) -> impl Strategy<Value = BfbGraph> {
    let rates = || prop::collection::vec(0..=5_u64, nodes as usize);
    (graphs(nodes, 3), prop::collection::vec(0..3_u64, nodes as usize), rates(), rates()).prop_map(
        |(graph, amounts, send, receive)| {
            let count = graph.node_count as usize;
            hosted(&graph, &amounts[..count], &send[..count], &receive[..count])
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn loads_are_the_optima_of_the_joint_program(graph in hosted_graphs(7)) {
        let joint = JointArrivals::new(graph.clone(), &Never).unwrap();
        for step in 1..=joint.step_count() {
            let load = joint.load(step, &Never).unwrap();
            prop_assert!((load.to_float() - program(&graph, step)).abs() < 1e-6, "{load}");
        }
    }

    /// Whole chunks keep to the load, no smaller load will do, and dividing receiver by receiver is never better.
    #[test]
    fn whole_chunks_keep_to_the_least_load(graph in hosted_graphs(8), chunks in 1..=6_u64) {
        let joint = JointArrivals::new(graph.clone(), &Never).unwrap();
        for step in 1..=joint.step_count() {
            let undivided = joint.load(step, &Never).unwrap();
            let load = joint.chunk_load(step, chunks, undivided, &Never).unwrap();
            if load == Fraction::ZERO {
                continue;
            }
            let pieces = joint.assign(step, chunks, load, &Never).unwrap().unwrap();
            let separate = one_by_one(&graph, step, chunks);
            prop_assert_eq!(chunk_count(&pieces), chunk_count(&separate));
            prop_assert_eq!(busiest(&graph, &pieces), load);
            prop_assert!(load <= busiest(&graph, &separate));
            // Loads are quotients of small numbers, so that no other is this near.
            let less = ratio(load.numerator * 999_999, load.denominator * 1_000_000);
            prop_assert_eq!(joint.assign(step, chunks, less, &Never).unwrap(), None);
        }
    }

    /// Without hosts, steps of different receivers do not depend on each other.
    #[test]
    fn without_hosts_receivers_are_alone(graph in graphs(9, 3), chunks in 1..=6_u64) {
        let count = graph.node_count as usize;
        let plain = BfbGraph::with_equal_shares(&graph, &Never).unwrap();
        let none = vec![0; count];
        let joint = JointArrivals::new(hosted(&graph, &vec![1; count], &none, &none), &Never).unwrap();
        let exact: Vec<_> = (1..=joint.step_count()).map(|step| joint.load(step, &Never).unwrap()).collect();
        prop_assert_eq!(&exact, &all_loads(&plain, None).loads);
        let whole = (1..).zip(&exact).map(|(step, &load)| joint.chunk_load(step, chunks, load, &Never).unwrap());
        prop_assert_eq!(whole.collect::<Vec<_>>(), all_loads(&plain, Some(chunks)).loads);
    }
}
