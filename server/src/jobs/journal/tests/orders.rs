//! Requests of all kinds, as they are kept.

use super::*;

/// An order for the second of two.
fn joint(kind: CollectiveKind, root: Option<u32>, number: u64) -> JointOrder {
    let task = |ranks: &[u32], chunks| JointTask {
        ranks: ranks.to_vec(),
        kind,
        root,
        size_bytes: NonZeroU64::new(number).unwrap(),
        chunks: NonZeroU64::new(chunks).unwrap(),
    };
    JointOrder { tasks: vec![task(&[], 1), task(&[3, u32::MAX], 7)], position: 1 }
}

/// All kinds of limits, some of them not stated.
fn limits(number: u64) -> TreeLimits {
    TreeLimits {
        trees_per_root: NonZeroU64::new(number % 3),
        chunks: NonZeroU64::new(number % 4),
        max_chunks: NonZeroU64::new(number % 5),
        max_depth: NonZeroU32::new(u32::try_from(number % 7).unwrap()),
        tolerance: Tolerance::new(u32::try_from(number % 3).unwrap(), 64),
    }
}

/// All kinds of files.
fn outputs(number: u64) -> Vec<Target> {
    let instances = [Instances::ONE, Instances::Exactly(NonZeroU32::new(7).unwrap()), Instances::Auto];
    let msccl = instances.map(|instances| Target { instances, ..Profile::Msccl.into() });
    let layers_max = NonZeroU32::new(u32::try_from(number % 3).unwrap());
    let routes = Target { layers_max, ..Format::RoutesXml.usual() };
    msccl.into_iter().chain([Format::Json.usual(), Format::OnecclXml.usual(), routes]).collect()
}

fn caller(number: u64) -> Option<EntryCaller> {
    (number % 2 == 1).then(|| EntryCaller { identity: format!("caller {number}"), tenant: "red".to_owned() })
}

#[test]
fn every_order_is_read_back() {
    let node = |id: &str| {
        let (id, kind) = (id.to_owned(), NodeKind::Compute);
        DraftNode { id, kind, rank: None, attributes: Attributes::default() }
    };
    let document = |kind| TopologyInput::Document { kind, content: Bytes::from_static(b"canopy: 1") };
    let [yaml, json] = [DocumentFormat::Yaml, DocumentFormat::Json].map(|format| document(Some(FileKind::Own(format))));
    let topologies = [
        TopologyInput::Expression("ring:8".to_owned()),
        yaml,
        json,
        document(Some(FileKind::NcclXml)),
        document(None),
        TopologyInput::Inline(TopologyDraft { nodes: vec![node("a"), node("b")], ..TopologyDraft::default() }),
    ];
    let mut number = 0;
    for topology in topologies {
        for kind in CollectiveKind::ALL {
            for (algorithm, priority) in canopy_baselines::algorithms().zip(Priority::ALL) {
                number += 1;
                let root = kind.has_root().then_some(1);
                let outputs = outputs(number);
                let in_place = number % 2 == 0;
                let (topology, limits) = (topology.clone(), limits(number));
                let forms = [None, Some(AllreduceForm::TwoPhases), Some(AllreduceForm::Trees)];
                let form = forms[usize::try_from(number % 3).unwrap()];
                let sums = SumOptions { form, roots: RootPolicy::ALL[usize::from(in_place)], ..SumOptions::AUTO };
                let shares = if number % 3 == 0 { vec![0, u64::MAX, number] } else { Vec::new() };
                let transit = if in_place { Transit::Forward } else { Transit::Unused };
                let group = (number % 4 < 2).then(|| Group { ranks: vec![5, 0, u32::MAX], transit });
                let slot = |device| Slot { node: "a.example".to_owned(), device };
                let placement = (number % 5 < 2).then(|| vec![slot(u32::MAX), slot(0)]);
                let order = Order {
                    topology,
                    faults: Vec::new(),
                    kind,
                    root,
                    shares,
                    group,
                    placement,
                    tenant: (number % 7 < 3).then(|| "team-7".parse().unwrap()),
                    algorithm,
                    limits,
                    sums,
                    seed: number,
                    alpha_ns: number * 500,
                    making: Making::Searched,
                    joint: (number % 6 == 1).then(|| joint(kind, root, number)),
                    in_place,
                    outputs,
                    size_bytes_min: number / 2,
                    size_bytes_max: number,
                    states_default_size: number % 8 > 4,
                };
                let caller = caller(number);
                let record = encode_entry(number, &order, priority, 5, caller.clone());
                let read = decode_entry(&record).unwrap();
                assert_eq!(RequestKey::of(&read.request), RequestKey::of(&order));
                let entry = canopy_wire::Entry { number, request: order, priority, arrived_unix_ms: 5, caller };
                assert_eq!(read, entry);
            }
        }
    }
}
