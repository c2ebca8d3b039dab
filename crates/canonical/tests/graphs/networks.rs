//! Topologies under other names, and their near twins.

use canopy_canonical::{Graph, graph_of};
use canopy_topology::{
    Capacity, DraftLink, DraftNode, Latency, NodeKind, Topology, TopologyDraft, TopologyLimits, generate,
};

use crate::support::{analysed, cases, form, shuffled};

const NETWORKS: [&str; 20] = [
    "ring:9",
    "ring:8,dir=uni",
    "mesh:3x4",
    "torus:4x4x3",
    "torus:2x5",
    "hypercube:5",
    "complete:7",
    "bipartite:4x5",
    "dgx-a100:boxes=4",
    "dgx-h100:boxes=3",
    "mi250:boxes=2",
    "rail:boxes=4,gpus=4",
    "fat-tree:k=4",
    "leaf-spine:leaves=4,hosts=3,spines=2",
    "dragonfly-router:p=2,a=4,h=2",
    "random-regular:n=24,d=4,seed=3",
    "random-euler:n=12,switches=3,seed=5",
    "dgx-a100:boxes=2,degrade=b0g3-ib*1/2",
    "torus:4x4,down=00-01",
    "rail:boxes=4,gpus=4,nodes-down=b0g2",
];

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn graph(topology: &Topology) -> Graph {
    graph_of(topology, &[]).unwrap()
}

/// The draft that makes a topology, to be changed.
fn draft(topology: &Topology) -> TopologyDraft {
    let id = |node: canopy_topology::NodeIndex| topology.node(node).id.clone();
    let nodes = topology.nodes().iter().zip(0_u32..).map(|(node, rank)| DraftNode {
        id: node.id.clone(),
        kind: node.kind,
        rank: (node.kind == NodeKind::Compute).then_some(rank),
        attributes: node.attributes.clone(),
    });
    let links = topology.links().iter().map(|link| DraftLink {
        from: id(link.from),
        to: id(link.to),
        capacity: link.capacity,
        latency: link.latency,
        count: 1,
    });
    TopologyDraft { nodes: nodes.collect(), links: links.collect(), ..TopologyDraft::default() }
}

/// Other ranks, other ids, another order of nodes and links.
fn disguised(topology: &Topology, seed: u64) -> Topology {
    let before = draft(topology);
    let ranks = shuffled(topology.rank_count() as usize, seed);
    let names = shuffled(before.nodes.len(), seed ^ 0xABCD);
    let name = |id: &str| {
        let position = before.nodes.iter().position(|node| node.id == id).unwrap();
        format!("x{:05}", names[position])
    };
    let node = |node: &DraftNode| DraftNode {
        id: name(&node.id),
        rank: node.rank.map(|rank| ranks[rank as usize]),
        ..node.clone()
    };
    let link = |link: &DraftLink| DraftLink { from: name(&link.from), to: name(&link.to), ..link.clone() };
    let nodes = shuffled(before.nodes.len(), seed ^ 1).into_iter().map(|place| node(&before.nodes[place as usize]));
    let links = shuffled(before.links.len(), seed ^ 2).into_iter().map(|place| link(&before.links[place as usize]));
    let draft = TopologyDraft { nodes: nodes.collect(), links: links.collect(), ..TopologyDraft::default() };
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// `CANOPY_CASES=2000 cargo test --release -p canopy-canonical --test graphs disguises` runs the full number.
#[test]
fn disguises_do_not_matter() {
    for expression in NETWORKS {
        let topology = network(expression);
        let expected = form(&graph(&topology));
        for seed in 0..u64::from(cases(100)).div_ceil(20) {
            let other = disguised(&topology, seed);
            assert!(form(&graph(&other)) == expected, "{expression}, seed {seed}");
        }
    }
}

/// One link gone, faster, later or turned, one node of another kind: never the same form.
#[test]
fn near_twins_differ() {
    let count = u64::from(cases(1000)).div_ceil(20);
    for expression in NETWORKS {
        let topology = network(expression);
        let expected = form(&graph(&topology));
        for seed in 0..count {
            let mut twin = draft(&disguised(&topology, seed));
            let pick = |count: usize| shuffled(count, seed ^ 7)[0] as usize;
            let (link, node) = (pick(twin.links.len()), pick(twin.nodes.len()));
            match seed % 4 {
                0 => {
                    twin.links.swap_remove(link);
                }
                1 => {
                    let faster = twin.links[link].capacity.bytes_per_sec() + 1;
                    twin.links[link].capacity = Capacity::from_bytes_per_sec(faster).unwrap();
                }
                2 => twin.links[link].latency = Latency::from_nanos(twin.links[link].latency.nanos() + 1),
                _ => {
                    twin.nodes[node].kind = match twin.nodes[node].kind {
                        NodeKind::Compute => NodeKind::Forwarder,
                        NodeKind::Forwarder => NodeKind::PLAIN_SWITCH,
                        NodeKind::Switch { .. } => NodeKind::Switch { multicast: true, aggregate: false },
                    };
                    twin.nodes.iter_mut().for_each(|node| node.rank = None);
                }
            }
            let twin = twin.build(&TopologyLimits::STANDARD).unwrap();
            assert!(form(&graph(&twin)) != expected, "{expression}, seed {seed}");
        }
    }
}

/// Ranks of other roles are not exchanged.
#[test]
fn roles_break_symmetry() {
    let topology = network("ring:6");
    let order = |roles: &[u32]| {
        let analysis = analysed(&graph_of(&topology, roles).unwrap());
        (analysis.orbits.count(), analysis.solution().unwrap().group_order.to_string())
    };
    assert_eq!(order(&[]), (1, "12".to_owned()));
    assert_eq!(order(&[1]), (4, "2".to_owned()));
    assert_eq!(order(&[1, 2]), (6, "1".to_owned()));
    assert_eq!(order(&[1, 0, 1, 0, 1, 0]), (2, "6".to_owned()));
    let form_with = |roles: &[u32]| form(&graph_of(&topology, roles).unwrap());
    assert!(form_with(&[1]) == form_with(&[0, 0, 0, 1]) && form_with(&[1]) != form_with(&[2]));
}

/// Orbits of ranks, and the number of automorphisms, of networks as they are sold.
#[test]
fn groups_of_networks() {
    let check = |expression: &str, orbits: usize, order: &str| {
        let topology = network(expression);
        let analysis = analysed(&graph(&topology));
        let ranks = topology.ranks().filter(|rank| {
            topology.ranks().take_while(|other| other < rank).all(|other| {
                analysis.orbits.representative(other.number()) != analysis.orbits.representative(rank.number())
            })
        });
        let found = analysis.solution().unwrap().group_order.to_string();
        assert_eq!((ranks.count(), found.as_str()), (orbits, order), "{expression}");
    };
    check("ring:5", 1, "10");
    check("torus:3x5", 1, "60");
    check("torus:4x4", 1, "384");
    check("torus:6x6", 1, "288");
    check("hypercube:4", 1, "384");
    check("complete:5", 1, "120");
    check("bipartite:3x3", 1, "72");
    check("bipartite:2x3", 2, "12");
    // 8! of each box, and 3! of the boxes.
    check("dgx-a100:boxes=3", 1, "393289924608000");
}
