use canopy_proto::chakra::Attribute;

use super::*;

fn node(id: u64, kind: NodeType, attr: Vec<Attribute>, after: &[u64]) -> Node {
    Node {
        id,
        name: format!("node {id}"),
        r#type: kind.into(),
        data_deps: after.to_vec(),
        duration_micros: if kind == NodeType::CompNode { 5 } else { 0 },
        attr,
        ..Node::default()
    }
}

fn attribute(name: &str, value: Value) -> Attribute {
    Attribute { name: name.to_owned(), value: Some(value) }
}

fn call(kind: i64, size: i64) -> Vec<Attribute> {
    vec![attribute("comm_type", Value::Int64Val(kind)), attribute("comm_size", Value::Int64Val(size))]
}

fn file(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = GlobalMetadata::default().encode_length_delimited_to_vec();
    nodes.iter().for_each(|node| bytes.extend(node.encode_length_delimited_to_vec()));
    bytes
}

#[test]
fn nodes_become_operations_behind_what_they_wait_for() {
    let mut loads = node(4, NodeType::MemLoadNode, vec![attribute("is_cpu_op", Value::BoolVal(true))], &[]);
    loads.duration_micros = 2;
    let mut last = node(9, NodeType::CompNode, vec![attribute("is_cpu_op", Value::BoolVal(false))], &[7]);
    last.ctrl_deps = vec![1];
    let nodes = [
        last,
        node(7, NodeType::CommCollNode, call(2, 1_000), &[1]),
        node(1, NodeType::CompNode, Vec::new(), &[4]),
        loads,
    ];
    let stated = stated(&file(&nodes)).unwrap();
    let program = &stated.variants[0].program;
    let share = Call { kind: CollectiveKind::Allgather, root: None, size_bytes: 1_000 };
    let works: Vec<Work> = program.operations().iter().map(|operation| operation.work).collect();
    let compute = Work::Compute { time_ps: 5_000_000 };
    assert_eq!(works, [Work::Host { time_ps: 2_000_000 }, compute, Work::Collective(share), compute]);
    assert_eq!(program.operations()[3].after, [2, 1]);
    // A trace counts an allgather by shares.
    assert_eq!(stated.on(8).unwrap().calls(), [Call { size_bytes: 8_000, ..share }]);
}

/// The numbers of the format, with every type of integer that programs write.
#[test]
fn kinds_of_collectives_have_the_numbers_of_the_format() {
    use CollectiveKind as Kind;
    let expected = [
        Some(Kind::Allreduce),
        Some(Kind::Reduce),
        Some(Kind::Allgather),
        Some(Kind::Gather),
        Some(Kind::Scatter),
        Some(Kind::Broadcast),
        Some(Kind::AllToAll),
        Some(Kind::ReduceScatter),
        Some(Kind::ReduceScatter),
        None,
    ];
    let values: [fn(u8) -> Value; 4] = [
        |number| Value::Int32Val(number.into()),
        |number| Value::Int64Val(number.into()),
        |number| Value::Uint32Val(number.into()),
        |number| Value::Uint64Val(number.into()),
    ];
    for (number, kind) in (0_u8..).zip(expected) {
        for value in values {
            let attr = vec![attribute("comm_type", value(number)), attribute("comm_size", value(64))];
            let found = work(&node(0, NodeType::CommCollNode, attr, &[])).unwrap();
            let root = kind.filter(|kind| kind.has_root()).map(|_| 0);
            let expected = kind.map_or(Work::Join, |kind| Work::Collective(Call { kind, root, size_bytes: 64 }));
            assert_eq!(found, expected, "{number}");
        }
    }
}

#[test]
fn what_no_simulation_can_run_is_refused() {
    let coll = |attr| node(3, NodeType::CommCollNode, attr, &[]);
    let group = |id, name: &str| {
        let mut attr = call(0, 8);
        attr.push(attribute("pg_name", Value::StringVal(name.to_owned())));
        node(id, NodeType::CommCollNode, attr, &[])
    };
    let long = Node { duration_micros: u64::MAX / 2, ..node(3, NodeType::CompNode, Vec::new(), &[]) };
    for (nodes, part) in [
        (vec![], "no operation"),
        (vec![Node { r#type: 77, ..coll(Vec::new()) }], "unknown type 77"),
        (vec![Node { r#type: 0, ..coll(Vec::new()) }], "no type"),
        (vec![node(3, NodeType::CommSendNode, Vec::new(), &[])], "between two ranks"),
        (vec![coll(Vec::new())], "no `comm_type`"),
        (vec![coll(call(10, 8))], "unknown `comm_type` 10"),
        (vec![coll(call(-1, 8))], "unknown `comm_type` -1"),
        (vec![coll(call(0, -8))], "`comm_size`"),
        (vec![coll(call(0, 8)[..1].to_vec())], "`comm_size`"),
        (vec![long], "too long"),
        (vec![coll(call(0, 8)), coll(call(0, 8))], "two nodes have the id 3"),
        (vec![node(3, NodeType::CompNode, Vec::new(), &[4])], "node 4, which the trace does not have"),
        (
            vec![node(3, NodeType::CompNode, Vec::new(), &[4]), node(4, NodeType::CompNode, Vec::new(), &[3])],
            "depends on itself",
        ),
        (vec![group(1, "a"), group(2, "b")], "2 process groups"),
    ] {
        let said = stated(&file(&nodes)).unwrap_err().problem;
        assert!(said.contains(part), "{part}: {said}");
    }
    let bytes = file(&[coll(call(0, 8))]);
    for end in 1..bytes.len() {
        let said = stated(&bytes[..end]).map_err(|wrong| wrong.problem);
        assert!(said.is_err(), "{end} bytes of {}", bytes.len());
    }
    assert!(stated(b"version: 1\nsteps: []\n").is_err());
}
