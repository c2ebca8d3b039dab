//! Networks found for a number of nodes and ports: cached, so that no search runs twice.
//!
//! A record is the encoded answer. It is a cache of what can be found again: one that cannot be read costs a search, and
//! nothing else.

use std::sync::Arc;

use bytes::Bytes;
use canopy_design::finder::{Candidate, FindError, Finder, Found, Links, Query, VERSION};
use canopy_optimize::Stop;
use canopy_planner::{PlanKey, chain};
use canopy_proto::v1::{FindBounds, FindNetworksResponse, FoundTopology, LackingTopology};
use canopy_wire::fraction;
use parking_lot::Mutex;

use crate::store::deciding;
use crate::store::{DamagedRecord, Lookup, SpaceOf, Store, StoreError, Stored, decode_message, encode_message};

/// Most answers that are kept: some ten MiB.
const COUNT_MAX: usize = 4096;
/// How many leave when there are more.
const COUNT_DROPPED: usize = 256;

/// Answers in a store. Clones share it. Every call may block on the disk, and compute for seconds.
#[derive(Clone)]
pub(crate) struct Finds {
    space: SpaceOf<Kept>,
    /// Held while answers are counted and dropped.
    housekeeping: Arc<Mutex<()>>,
}

impl Finds {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { space: SpaceOf::new(store), housekeeping: Arc::default() }
    }

    /// The answer to a query: a kept one, or what is found.
    ///
    /// # Errors
    /// Those of [`Finder::find_rated`]. A store that fails costs time only.
    pub(crate) fn find(&self, query: Query, stop: &dyn Stop) -> Result<FindNetworksResponse, FindError> {
        query.check()?;
        self.space.catch_up();
        let key = key_of(query);
        match self.space.get(&key).map(Lookup::found) {
            Ok(Some(Kept(kept))) => return Ok(FindNetworksResponse { cached: true, ..kept }),
            Ok(None) => {}
            Err(error) => tracing::error!(error = chain(&error), "a cached network search could not be read"),
        }
        let answer = on_the_wire(&Finder::new().find_rated(query, stop)?);
        if let Err(error) = deciding(|| self.put(&key, &answer)) {
            tracing::error!(error = chain(&error), "a network search could not be cached");
        }
        Ok(answer)
    }

    fn put(&self, key: &PlanKey, answer: &FindNetworksResponse) -> Result<(), StoreError> {
        let _alone = self.housekeeping.lock();
        self.space.catch_up();
        // Keys are hashes: the first of them are any.
        let kept = self.space.keys(None, COUNT_MAX)?;
        if kept.len() >= COUNT_MAX {
            self.space.remove(&kept[..COUNT_DROPPED])?;
        }
        self.space.put(key, &encode_message(answer), &[])
    }
}

/// An answer that is kept.
#[derive(Clone)]
struct Kept(FindNetworksResponse);

impl Stored for Kept {
    fn decode(_: &PlanKey, record: Bytes) -> Result<Self, DamagedRecord> {
        decode_message(&record).map(Self)
    }

    fn log_damage(key: &PlanKey, _: &DamagedRecord) {
        tracing::error!(find = %key, "a cached network search is damaged and was quarantined");
    }
}

fn key_of(Query { nodes, degree, links }: Query) -> PlanKey {
    let mut hasher = blake3::Hasher::new_derive_key("canopy find 1");
    for number in [VERSION, nodes, degree, u32::from(links == Links::Bidirectional)] {
        hasher.update(&number.to_le_bytes());
    }
    PlanKey::from_bytes(*hasher.finalize().as_bytes())
}

fn on_the_wire(found: &Found) -> FindNetworksResponse {
    let bounds = found.bounds.map(|bounds| FindBounds {
        steps: bounds.steps,
        bandwidth: fraction(&bounds.bandwidth),
        all_to_all_rate: fraction(&bounds.all_to_all),
    });
    let lacking = found.lacking.iter().map(|lacking| LackingTopology {
        name: lacking.name.to_owned(),
        steps: lacking.cost.steps,
        bandwidth: fraction(&lacking.cost.bandwidth),
    });
    FindNetworksResponse {
        topologies: found.candidates.iter().map(|candidate| row(candidate, found)).collect(),
        bounds,
        lacking: lacking.collect(),
        cached: false,
    }
}

fn row(candidate: &Candidate, found: &Found) -> FoundTopology {
    let (known, prediction) = (&candidate.known, &candidate.known.prediction);
    let (gather, scatter) = (prediction.allgather, prediction.reduce_scatter);
    let optimal = |least: canopy_optimize::Fraction| [gather, scatter].iter().all(|side| side.cost.bandwidth == least);
    let exactness = gather.exactness.max(scatter.exactness);
    FoundTopology {
        expression: candidate.construction.to_string(),
        steps: gather.cost.steps,
        bandwidth: fraction(&gather.cost.bandwidth),
        reduce_scatter_bandwidth: fraction(&scatter.cost.bandwidth),
        at_most: exactness == canopy_direct::Exactness::AtMost,
        diameter: known.diameter,
        all_to_all_rate: fraction(&known.all_to_all.rate),
        all_to_all_exact: known.all_to_all.proof.is_exact(),
        bandwidth_optimal: found.bounds.is_some_and(|bounds| optimal(bounds.bandwidth)),
        moore_optimal: found.bounds.is_some_and(|bounds| gather.cost.steps == bounds.steps),
        bidirectional: known.is_bidirectional,
        reverse_symmetric: prediction.is_reverse_symmetric,
    }
}

#[cfg(test)]
mod tests {
    use canopy_optimize::Never;

    use super::*;
    use crate::store::{MemoryStore, encode_record};

    fn query(nodes: u32) -> Query {
        Query { nodes, degree: 4, links: Links::Any }
    }

    #[test]
    fn a_second_question_gets_the_first_answer() {
        let finds = Finds::new(Arc::new(MemoryStore::default()));
        let first = finds.find(query(12), &Never).unwrap();
        let second = finds.find(query(12), &|| panic!("nothing is computed")).unwrap();
        assert_eq!((first.cached, second.cached), (false, true));
        assert_eq!(FindNetworksResponse { cached: false, ..second }, first);
        assert_eq!(first.topologies[0].expression, "circulant:n=12,offsets=2+3");
        let other = finds.find(Query { links: Links::Bidirectional, ..query(12) }, &Never).unwrap();
        assert!(!other.cached);
    }

    #[test]
    fn a_damaged_answer_is_found_again() {
        let store = Arc::new(MemoryStore::default());
        let finds = Finds::new(store.clone());
        let first = finds.find(query(9), &Never).unwrap();
        store.put(&key_of(query(9)), &encode_record(b"\xff\xff"), &[]).unwrap();
        assert_eq!(finds.find(query(9), &Never).unwrap(), first);
        assert_eq!(store.quarantined_count().unwrap(), 1);
    }

    #[test]
    fn a_stopped_search_leaves_nothing_behind() {
        let store = Arc::new(MemoryStore::default());
        let finds = Finds::new(store.clone());
        assert_eq!(finds.find(query(9), &|| true).unwrap_err(), FindError::Stopped);
        assert!(finds.find(query(1), &Never).is_err());
        assert!(store.keys(None, 1).unwrap().is_empty());
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let store = Arc::new(MemoryStore::default());
        for number in 0..COUNT_MAX {
            store.put(&PlanKey::from_bytes(blake3::derive_key("test", &number.to_le_bytes())), &[], &[]).unwrap();
        }
        Finds::new(store.clone()).find(query(9), &Never).unwrap();
        assert_eq!(store.keys(None, usize::MAX).unwrap().len(), COUNT_MAX - COUNT_DROPPED + 1);
    }
}
