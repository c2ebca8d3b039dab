//! Properties that hold for every topology, document and expression.

use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::{
    Attributes, Capacity, DocumentFormat, DraftLink, DraftNode, FaultKind, Latency, NodeKind, Topology,
    TopologyDocument, TopologyDraft, TopologyError, TopologyLimits, content_hash, generate, identity_hash,
    read_document, to_json, to_yaml,
};
use proptest::prelude::*;

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

fn texts() -> impl Strategy<Value = Option<String>> {
    prop::option::of("[ -~é\\n\\t]{0,6}")
}

prop_compose! {
    fn attributes()(
        host in texts(), box_name in texts(), rail in texts(), label in texts(), loops in 0_u64..4,
    ) -> Attributes {
        Attributes { host, box_name, rail, label, loops: Capacity::from_bytes_per_sec(loops) }
    }
}

fn kinds() -> impl Strategy<Value = NodeKind> {
    let switch =
        (any::<bool>(), any::<bool>()).prop_map(|(multicast, aggregate)| NodeKind::Switch { multicast, aggregate });
    prop_oneof![Just(NodeKind::Compute), switch]
}

/// Ids as odd as the rule allows, made distinct by a number.
fn ids(count: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[0-9a-zA-Z.#{}\\[\\]&*!%@|'\"\\\\~?-]{0,4}", count)
        .prop_map(|stems| stems.into_iter().enumerate().map(|(number, stem)| format!("{stem}{number}")).collect())
}

/// Valid drafts of 2 to 8 nodes with parallel links, latencies and any attributes, ranks stated in any order.
fn drafts() -> impl Strategy<Value = TopologyDraft> {
    let nodes = prop::collection::vec((kinds(), attributes()), 0..6);
    let cluster = prop::option::of("[A-Za-z0-9][A-Za-z0-9._-]{0,62}");
    (texts(), cluster, nodes, attributes()).prop_flat_map(|(name, cluster, mut kinds, of_last)| {
        kinds.push((NodeKind::Compute, Attributes::default()));
        kinds.push((NodeKind::Compute, of_last));
        let count = kinds.len();
        let ranks = kinds.iter().filter(|(kind, _)| *kind == NodeKind::Compute).count();
        let order: Vec<u32> = (0..).take(ranks).collect();
        let link = (0..count, 1..count, 1_u64..=50_000_000_000, 0_u64..3, 1_u64..4);
        let links = prop::collection::vec(link, 0..20);
        let ranks = prop::option::of(Just(order).prop_shuffle());
        (Just((name, cluster, kinds)), ids(count), ranks, links).prop_map(
            |((name, cluster, kinds), ids, ranks, links)| {
                let mut ranks = ranks.into_iter().flatten();
                let node = |((kind, attributes), id): ((NodeKind, Attributes), &String)| DraftNode {
                    id: id.clone(),
                    kind,
                    rank: if kind == NodeKind::Compute { ranks.next() } else { None },
                    attributes,
                };
                let nodes = kinds.into_iter().zip(&ids).map(node).collect();
                let link = |(from, step, rate, latency, count): (usize, usize, u64, u64, u64)| DraftLink {
                    from: ids[from].clone(),
                    to: ids[(from + step) % ids.len()].clone(),
                    capacity: Capacity::from_bytes_per_sec(rate).expect("rates start at 1"),
                    latency: Latency::from_nanos(latency * 500),
                    count,
                };
                TopologyDraft { name, cluster, links: links.into_iter().map(link).collect(), nodes }
            },
        )
    })
}

fn built(draft: &TopologyDraft) -> Topology {
    draft.clone().build(&LIMITS).expect("generated drafts are valid")
}

proptest! {
    /// A document says everything a topology is: ids, ranks, attributes, capacities, latencies.
    #[test]
    fn documents_read_back_equal(draft in drafts()) {
        let topology = built(&draft);
        for (text, format) in [(to_yaml(&topology), DocumentFormat::Yaml), (to_json(&topology), DocumentFormat::Json)] {
            for format in [Some(format), None] {
                let read = read_document(text.as_bytes(), format, &LIMITS);
                prop_assert_eq!(&read.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?.topology, &topology);
            }
        }
        let document = TopologyDocument::from(&topology);
        prop_assert_eq!(document.into_draft().unwrap().build(&LIMITS).unwrap(), topology);
    }

    /// Caches are keyed by content: neither names nor the order of a file may matter.
    #[test]
    fn content_hash_ignores_names_attributes_and_link_order(draft in drafts(), turn in 0_usize..20) {
        let mut other = draft.clone();
        other.name = Some("another".to_owned());
        if !other.links.is_empty() {
            let turn = turn % other.links.len();
            other.links.rotate_left(turn);
        }
        for node in &mut other.nodes {
            node.attributes = Attributes::default();
        }
        // Ranks order compute nodes and ids order switches: a prefix for all keeps both.
        let renamed = |id: &String| format!("x{id}");
        other.nodes.iter_mut().for_each(|node| node.id = renamed(&node.id));
        other.links.iter_mut().for_each(|link| (link.from, link.to) = (renamed(&link.from), renamed(&link.to)));
        let (one, other) = (built(&draft), built(&other));
        prop_assert_eq!(content_hash(&one), content_hash(&other));
        prop_assert_ne!(identity_hash(&one), identity_hash(&other));
        prop_assert_eq!(content_hash(&one).to_string().len(), 64);
    }

    /// Whatever a schedule depends on changes the hash.
    #[test]
    fn content_hash_sees_every_link_and_kind(draft in drafts(), pick: prop::sample::Index) {
        let topology = built(&draft);
        let hash = content_hash(&topology);
        if !draft.links.is_empty() {
            let pick = pick.index(draft.links.len());
            let mut changed = draft.clone();
            changed.links[pick].capacity = Capacity::from_bytes_per_sec(50_000_000_001).unwrap();
            prop_assert_ne!(content_hash(&built(&changed)), hash);
            let mut changed = draft.clone();
            changed.links[pick].latency = Latency::from_nanos(7);
            prop_assert_ne!(content_hash(&built(&changed)), hash);
            let mut changed = draft.clone();
            changed.links[pick].count += 1;
            prop_assert_ne!(content_hash(&built(&changed)), hash);
        }
        let mut changed = draft.clone();
        changed.nodes.push(DraftNode { id: "!".to_owned(), kind: NodeKind::PLAIN_SWITCH, rank: None, attributes: Attributes::default() });
        prop_assert_ne!(content_hash(&built(&changed)), hash);
        let before = content_hash(&built(&changed));
        changed.nodes.last_mut().unwrap().kind = NodeKind::Switch { multicast: true, aggregate: false };
        prop_assert_ne!(content_hash(&built(&changed)), before);
    }

    /// The order the rest relies on: ranks first, links sorted and merged, no capacity lost.
    #[test]
    fn building_orders_and_merges(draft in drafts()) {
        let topology = built(&draft);
        let key = |link: &canopy_topology::Link| (link.from, link.to, link.latency);
        prop_assert!(topology.links().windows(2).all(|pair| key(&pair[0]) < key(&pair[1])));
        let drafted: u128 = draft.links.iter().map(|link| u128::from(link.capacity.bytes_per_sec() * link.count)).sum();
        let kept: u128 = topology.links().iter().map(|link| u128::from(link.capacity.bytes_per_sec())).sum();
        prop_assert_eq!(drafted, kept);
        for (index, node) in topology.nodes().iter().enumerate() {
            let is_rank = index < topology.rank_count() as usize;
            prop_assert_eq!(is_rank, node.kind == NodeKind::Compute);
            let drafted = draft.nodes.iter().find(|drafted| drafted.id == node.id).unwrap();
            if let Some(rank) = drafted.rank {
                prop_assert_eq!(rank as usize, index);
            }
        }
        let mut again = draft.clone();
        let halves = again.links.clone();
        again.links.extend(halves);
        prop_assert_eq!(built(&again).links().len(), topology.links().len());
    }

    /// One mistake in a valid draft is found, and named.
    #[test]
    fn mistakes_in_drafts_are_found(draft in drafts(), pick: prop::sample::Index) {
        let refusal = |change: &dyn Fn(&mut TopologyDraft)| {
            let mut changed = draft.clone();
            change(&mut changed);
            changed.build(&LIMITS)
        };
        let node = pick.index(draft.nodes.len());
        let twin = refusal(&|draft| draft.nodes.push(draft.nodes[node].clone()));
        prop_assert!(matches!(twin, Err(TopologyError::DuplicateId { .. } | TopologyError::DuplicateRank { .. } | TopologyError::RankGap { .. })), "{:?}", twin);
        for id in ["", "a b", "a:b", "a>b", "a=b", "a,b", "a\u{a0}b", "a\u{7}"] {
            let bad = refusal(&|draft| draft.nodes[node].id = id.to_owned());
            prop_assert!(matches!(bad, Err(TopologyError::BadId { position, .. }) if position == node), "{:?}", bad);
        }
        let link = DraftLink {
            from: draft.nodes[0].id.clone(),
            to: draft.nodes[1].id.clone(),
            capacity: Capacity::from_bytes_per_sec(1).unwrap(),
            latency: Latency::default(),
            count: 1,
        };
        let end = draft.links.len();
        let with = |change: &dyn Fn(&mut DraftLink)| {
            let mut link = link.clone();
            change(&mut link);
            refusal(&|draft| draft.links.push(link.clone()))
        };
        let wrong = with(&|link| link.to = link.from.clone());
        prop_assert!(matches!(wrong, Err(TopologyError::SelfLink { position, .. }) if position == end), "{:?}", wrong);
        let wrong = with(&|link| link.to = "nowhere".to_owned());
        prop_assert!(matches!(wrong, Err(TopologyError::UnknownNode { position, end: "to", .. }) if position == end), "{:?}", wrong);
        prop_assert_eq!(with(&|link| link.count = 0), Err(TopologyError::ZeroCount { position: end }));
        let wrong = with(&|link| (link.capacity, link.count) = (Capacity::from_bytes_per_sec(u64::MAX).unwrap(), 2));
        prop_assert!(matches!(wrong, Err(TopologyError::CapacityOverflow { .. })), "{:?}", wrong);
        let computes: Vec<usize> = (0..draft.nodes.len()).filter(|&node| draft.nodes[node].kind == NodeKind::Compute).collect();
        let rank_of = |rank: Option<u32>| refusal(&move |draft| draft.nodes[computes[0]].rank = rank);
        prop_assert!(rank_of(Some(99)).is_err());
        let tight = TopologyLimits { nodes_max: draft.nodes.len() - 1, ..LIMITS };
        prop_assert!(draft.build(&tight).is_err_and(|error| error.is_over_limit()));
    }

    /// Whatever comes from outside, an answer comes back.
    #[test]
    fn garbage_is_refused_without_panic(bytes: Vec<u8>, text in "[\\[\\]{}<>:,&*!|\"' \\n\\-a-z0-9]{0,200}") {
        for format in [None, Some(DocumentFormat::Yaml), Some(DocumentFormat::Json)] {
            let _ = read_document(&bytes, format, &LIMITS);
            let _ = read_document(text.as_bytes(), format, &LIMITS);
        }
    }

    /// A valid document with bytes replaced, dropped and doubled is read or refused.
    #[test]
    fn damaged_documents_are_read_or_refused(
        draft in drafts(),
        as_yaml: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..6),
    ) {
        let topology = built(&draft);
        let mut bytes = if as_yaml { to_yaml(&topology) } else { to_json(&topology) }.into_bytes();
        for (place, byte, how) in damage {
            let place = place.index(bytes.len());
            match how {
                0 => bytes[place] = byte,
                1 => drop(bytes.remove(place)),
                2 => bytes.insert(place, b"{}[]<>&*\"'\n: "[usize::from(byte) % 13]),
                _ => bytes.extend_from_within(place..(place + 40).min(bytes.len())),
            }
        }
        let _ = read_document(&bytes, None, &LIMITS);
    }

    /// Expressions close to valid ones, and strings far from them.
    #[test]
    fn strange_expressions_are_built_or_refused(
        name in "(ring|mesh|torus|hypercube|complete|bipartite|dgx-a100|mi250|rail|fat-tree|leaf-spine|random-euler|line|product)?",
        rest in "[:,;()=+*/>x.0-9a-z -]{0,40}",
        keys in prop::collection::vec("(boxes|gpus|k|n|bw|lat|spine|oversub|down|degrade|nodes-down|seed|leaves|hosts|spines)=[0-9]{1,3}(GB/s|ns|-1|>2\\*1/2|x3)?|faults=(boxes|switches|gpus|nics|links|links-inside|links-outside|seed):[0-9]{0,3}(@1/[0-9]{1,2})?(\\+[a-z]{0,9}:1)?", 0..4),
        other: String,
    ) {
        let small = TopologyLimits { nodes_max: 300, links_max: 5_000, ..LIMITS };
        let _ = generate(&other, &small);
        let _ = generate(&format!("{name}{rest}"), &small);
        let _ = generate(&format!("{name}:4,{}", keys.join(",")), &small);
        if let Ok(topology) = generate(&format!("{name}:{}", keys.join(",")), &small) {
            prop_assert!(topology.nodes().len() <= 300 && topology.links().len() <= 5_000);
        }
    }
}

/// Networks with boxes, with switches of several levels, without either, and directed ones.
const DRAWN_FROM: [&str; 8] = [
    "dgx-a100:boxes=4",
    "mi250:boxes=3,gpus=8",
    "rail:boxes=4,gpus=4,spine=200GB/s",
    "leaf-spine:leaves=4,hosts=4,spines=2",
    "dragonfly-router:p=1,a=2,h=1",
    "torus:4x4",
    "genkautz:n=12,d=3",
    "random-euler:n=12,switches=4,seed=1",
];

/// Links between two nodes with the sum of their capacities, in each direction.
fn capacities(topology: &Topology) -> BTreeMap<(String, String), u64> {
    let mut sums = BTreeMap::new();
    for link in topology.links() {
        let id = |node| topology.node(node).id.clone();
        *sums.entry((id(link.from), id(link.to))).or_insert(0) += link.capacity.bytes_per_sec();
    }
    sums
}

/// Pairs of neighbours of which a link is gone or slower.
fn touched(healthy: &Topology, left: &Topology) -> Vec<(String, String)> {
    let left = capacities(left);
    let is_less = |(ends, capacity): &(&(String, String), &u64)| left.get(ends) != Some(capacity);
    let healthy = capacities(healthy);
    let touched = healthy.iter().filter(is_less).map(|((from, to), _)| (from.min(to).clone(), from.max(to).clone()));
    let mut touched: Vec<_> = touched.collect();
    touched.sort_unstable();
    touched.dedup();
    touched
}

/// Ids of the switches of which all links are touched.
fn slow_switches(healthy: &Topology, touched: &[(String, String)]) -> Vec<String> {
    let pairs: BTreeSet<_> = touched.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let mut slow = Vec::new();
    for node in healthy.nodes().iter().filter(|node| matches!(node.kind, NodeKind::Switch { .. })) {
        let ends = healthy.links().iter().map(|link| [link.from, link.to].map(|end| healthy.node(end).id.as_str()));
        let mut own = ends.filter(|ends| ends.contains(&node.id.as_str()));
        if own.all(|[a, b]| pairs.contains(&(a.min(b), a.max(b)))) {
            slow.push(node.id.clone());
        }
    }
    slow
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// `faults=` takes as many elements as it is asked for from a network that stays connected, on every run the same,
    /// or says what would help.
    #[test]
    fn draws_take_what_they_are_asked_for(
        network in prop::sample::select(&DRAWN_FROM[..]),
        kind in prop::sample::select(&FaultKind::ALL[..]),
        count in 0_usize..6,
        is_slow: bool,
        seed: u64,
    ) {
        let is_slow = is_slow && kind.can_be_slow();
        let fraction = if is_slow { "@1/3" } else { "" };
        let expression = format!("{network},faults={}:{count}{fraction}+seed:{seed}", kind.word());
        let healthy = generate(network, &LIMITS).unwrap();
        let left = match generate(&expression, &LIMITS) {
            Ok(left) => left,
            Err(error) => {
                let text = error.to_string();
                let helps = ["another `seed`", "ask for at most", "leave this out", "leave at least two"];
                prop_assert!(helps.iter().any(|help| text.contains(help)), "{expression}: {text}");
                prop_assert_eq!(generate(&expression, &LIMITS).unwrap_err(), error);
                return Ok(());
            }
        };
        prop_assert_eq!(&generate(&expression, &LIMITS).unwrap(), &left);
        prop_assert_eq!(left.first_unreachable(), None, "{}", expression);
        let touched = touched(&healthy, &left);
        let gone = healthy.elements(kind).len() - left.elements(kind).len();
        match kind {
            _ if !is_slow => prop_assert_eq!(gone, count, "{}", expression),
            FaultKind::Switches => {
                let slow = slow_switches(&healthy, &touched);
                prop_assert!(slow.len() >= count, "{}: {:?}", expression, slow);
                prop_assert!(touched.iter().all(|(a, b)| slow.contains(a) || slow.contains(b)), "{}", expression);
            }
            _ => prop_assert_eq!((gone, touched.len()), (0, count), "{}", expression),
        }
    }
}
