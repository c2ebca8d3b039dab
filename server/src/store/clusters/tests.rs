use super::*;
use crate::store::MemoryStore;

const COUNTS: ClusterCounts = ClusterCounts { nodes: 1, ranks: 8, switches: 2 };

fn name(text: &str) -> ClusterName {
    ClusterName::read(text).unwrap()
}

#[test]
fn neither_more_clusters_nor_more_bytes_than_the_limits_are_kept() {
    let clusters = ClusterStore::new(Arc::new(MemoryStore::default()), || 7);
    for number in 0..COUNT_MAX {
        clusters.put(&name(&format!("clusters/c{number}")), COUNTS, Bytes::from_static(b"text")).unwrap();
    }
    let more = clusters.put(&name("clusters/more"), COUNTS, Bytes::new());
    assert!(matches!(more, Err(ClusterStoreError::TooMany)), "{more:?}");
    assert!(clusters.put(&name("clusters/c3"), COUNTS, Bytes::from_static(b"other")).unwrap().changed);
    let large = Bytes::from(vec![0; usize::try_from(BYTES_MAX).unwrap()]);
    let large = clusters.put(&name("clusters/c3"), COUNTS, large);
    assert!(matches!(large, Err(ClusterStoreError::TooLarge { .. })), "{large:?}");
    assert_eq!(clusters.get(&name("clusters/c3")).unwrap().unwrap().description, "other");
}

#[test]
fn a_damaged_cluster_is_told_of_and_can_be_stored_again() {
    let memory = Arc::new(MemoryStore::default());
    let clusters = ClusterStore::new(Arc::<MemoryStore>::clone(&memory), || 7);
    let prod = name("clusters/prod");
    clusters.put(&prod, COUNTS, Bytes::from_static(b"text")).unwrap();
    let record = memory.get(&prod.key).unwrap().unwrap();
    memory.put(&prod.key, &record[..record.len() - 1], &[]).unwrap();
    let found = clusters.get(&prod);
    assert!(matches!(found, Err(ClusterStoreError::Damaged { .. })), "{found:?}");
    assert!(clusters.put(&prod, COUNTS, Bytes::from_static(b"text")).unwrap().created);
    // A record under another name's key is not that cluster.
    memory.put(&name("clusters/other").key, &record, &[]).unwrap();
    assert!(matches!(clusters.get(&name("clusters/other")), Err(ClusterStoreError::Damaged { .. })));
    assert_eq!(clusters.get(&prod).unwrap().unwrap().name, "clusters/prod");
}
