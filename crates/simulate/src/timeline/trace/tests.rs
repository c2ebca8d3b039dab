use super::*;

fn node(id: u64, after: &[u64]) -> TraceNode {
    TraceNode { id, name: id.to_string(), work: Work::Compute { time_ps: id }, after: after.to_vec() }
}

#[test]
fn nodes_come_behind_what_they_wait_for_and_else_in_the_order_of_the_trace() {
    let found = operations(vec![node(7, &[3]), node(9, &[]), node(3, &[9, 9]), node(1, &[7, 3])]).unwrap();
    let read: Vec<(&str, &[u32])> =
        found.iter().map(|operation| (operation.name.as_str(), operation.after.as_slice())).collect();
    assert_eq!(read, [("9", &[][..]), ("3", &[0]), ("7", &[1]), ("1", &[2, 1])]);
}

#[test]
fn what_no_order_allows_is_refused() {
    let refused = |nodes| operations(nodes).unwrap_err();
    assert_eq!(refused(vec![node(1, &[]), node(1, &[])]), TraceError::Duplicate { id: 1 });
    assert_eq!(refused(vec![node(1, &[2])]), TraceError::Missing { id: 1, before: 2 });
    assert_eq!(refused(vec![node(1, &[1])]), TraceError::Cycle { id: 1 });
    assert_eq!(
        refused(vec![node(0, &[]), node(4, &[5, 0]), node(5, &[6]), node(6, &[4])]),
        TraceError::Cycle { id: 4 }
    );
}
