//! Latencies of links beside the bytes of messages: what plans take is added up here from their sends.

use std::collections::BTreeMap;

use canopy_optimize::Fraction;

use super::*;

/// Links of one rate with latencies in nanoseconds.
fn network(ranks: u32, links: impl IntoIterator<Item = (u32, u32, u64, u64)>) -> Topology {
    let mut draft = TopologyDraft::default();
    (0..ranks).for_each(|rank| draft.add_compute(format!("n{rank}")));
    for (from, to, units, nanos) in links {
        let capacity = Capacity::from_bytes_per_sec(units * 1_000_000_000).unwrap();
        draft.add_link(format!("n{from}"), format!("n{to}"), capacity, Latency::from_nanos(nanos));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// A ring both ways whose links in one direction are later.
fn lopsided_ring(ranks: u32, nanos: u64) -> Topology {
    let ends = |v: u32| [(v, (v + 1) % ranks, 1, 500), ((v + 1) % ranks, v, 1, 500 + nanos)];
    network(ranks, (0..ranks).flat_map(ends))
}

fn schedule(
    topology: &Topology,
    kind: CollectiveKind,
    (shares, size_bytes, limits): (&Shares, Option<u64>, TreeLimits),
) -> Schedule {
    let collective = collective(topology, kind, 0);
    let asked = Asked { limits, size_bytes: size_bytes.and_then(NonZeroU64::new), symmetry: Symmetry::Used };
    let shape = plan(topology, collective, shares, asked, &Never, &Silent).unwrap();
    let schedule = Schedule { collective, algorithm: "bfb".to_owned(), shares: shares.clone(), shape };
    judged(topology, &schedule);
    schedule
}

/// Nanoseconds for a message: of each step, the latency and the bytes of the link that is done last, among those it uses.
fn time_ns(topology: &Topology, schedule: &Schedule, size_bytes: u64) -> Fraction {
    let Shape::Steps(steps) = &schedule.shape else { panic!("it has steps") };
    let weight = match schedule.collective.root() {
        Some(_) => 1,
        None => schedule.shares.weight_total(topology.rank_count()),
    };
    let chunk_count = weight * u128::from(steps.chunks_per_share);
    let mut carried: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for send in &steps.sends {
        for carrier in &steps.carriers[send.carriers.start as usize..send.carriers.end as usize] {
            *carried.entry((send.step, carrier.route.number())).or_default() += carrier.chunk_count;
        }
    }
    let mut times: BTreeMap<u32, Fraction> = BTreeMap::new();
    for ((step, link), chunks) in carried {
        let link = &topology.links()[link as usize];
        let bytes = Fraction::new(u128::from(chunks) * u128::from(size_bytes), chunk_count).unwrap();
        let rate = u128::from(link.capacity.bytes_per_sec());
        let time = Fraction::new(bytes.numerator * 1_000_000_000, bytes.denominator * rate).unwrap();
        let time = time.checked_add(Fraction::new(link.latency.nanos().into(), 1).unwrap()).unwrap();
        let most = times.entry(step).or_insert(Fraction::ZERO);
        *most = time.max(*most);
    }
    times.into_values().try_fold(Fraction::ZERO, Fraction::checked_add).unwrap()
}

/// Four ranks around, 1 kB for each at 1 GB/s: a microsecond. What comes from across is divided 500:500 without latencies,
/// 750:250 where one way is later by half a microsecond, and all goes the other way from a whole one on.
#[test]
fn what_comes_from_across_takes_the_way_that_is_sooner() {
    let time = |nanos: u64, size_bytes| {
        let topology = lopsided_ring(4, nanos);
        let asked = (&Shares::Equal, size_bytes, TreeLimits::NONE);
        let schedule = schedule(&topology, CollectiveKind::Allgather, asked);
        (schedule.shape.chunks_per_share(), time_ns(&topology, &schedule, 4_000).to_string())
    };
    // Steps of latency 500 + `nanos` and 1000 ns, then of 500 ns and 750, or 500 + 1000.
    assert_eq!(time(0, Some(4_000)), (2, "2500/1".to_owned()));
    assert_eq!(time(500, None), (2, "3500/1".to_owned()));
    assert_eq!(time(500, Some(4_000)), (4, "3250/1".to_owned()));
    assert_eq!(time(1_000, Some(4_000)), (1, "4000/1".to_owned()));
    assert_eq!(time(9_000, None), (2, "20500/1".to_owned()));
    assert_eq!(time(9_000, Some(4_000)), (1, "12000/1".to_owned()));
}

#[test]
fn latencies_that_do_not_count_change_nothing() {
    let gather = |topology: &Topology, size_bytes| {
        schedule(topology, CollectiveKind::Allgather, (&Shares::Equal, size_bytes, TreeLimits::NONE))
    };
    // Equal ones; and half a microsecond beside a second.
    for (topology, size_bytes) in [(generated("torus:3x4,lat=9us"), 1), (lopsided_ring(6, 500), 1 << 30)] {
        assert_eq!(gather(&topology, Some(size_bytes)), gather(&topology, None));
    }
}

/// From 64 ranks on, ranks that look alike are served alike, which they do with their latencies only.
#[test]
fn ranks_that_look_alike_have_latencies_alike() {
    let topology = lopsided_ring(64, 20_000);
    let likeness = Likeness::of(&topology, &[1; 64], &Never).unwrap();
    assert_eq!(likeness.first_of_each(), [0]);
    let kind = CollectiveKind::Allreduce;
    let timed = schedule(&topology, kind, (&Shares::Equal, Some(64_000), TreeLimits::NONE));
    // The last step of either phase: a share of 1 µs that need not wait for the late links.
    let late = 2 * 31 * (20_500 + 1_000) + 2 * (500 + 1_000);
    assert_eq!(time_ns(&topology, &timed, 64_000).to_string(), format!("{late}/1"));
}

/// Strongly connected networks of up to nine ranks, links of up to three rates and five latencies.
fn networks() -> impl Strategy<Value = Topology> {
    (2..=9_u32).prop_flat_map(|ranks| {
        let links = prop::collection::vec((0..ranks, 0..ranks, 1..=3_u64, 0..5_u64), 0..3 * ranks as usize);
        let ring = prop::collection::vec((1..=3_u64, 0..5_u64), ranks as usize);
        (ring, links).prop_map(move |(ring, links)| {
            let ring = (0..ranks).zip(ring).map(|(v, (units, nanos))| (v, (v + 1) % ranks, units, nanos));
            let links = ring.chain(links.into_iter().filter(|&(from, to, ..)| from != to));
            network(ranks, links.map(|(from, to, units, nanos)| (from, to, units, nanos * 700)))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With the same chunks, no plan of breadth-first broadcasts takes less time than the one for the size; and with chunks
    /// of its own choice it takes about as little as with many. All are accepted, shares of any sizes.
    #[test]
    fn plans_for_a_size_are_the_fastest_at_it(
        topology in networks(),
        weights in prop::collection::vec(0..3_u64, 9),
        chunks in 1..=6_u64,
        size_bytes in 1..40_000_u64,
    ) {
        let ranks = topology.rank_count();
        let mut weights = weights[..ranks as usize].to_vec();
        weights[0] += 1;
        let exactly = |chunks: u64| TreeLimits { chunks: chunks.try_into().ok(), ..TreeLimits::NONE };
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce, CollectiveKind::Broadcast] {
            let shares = match kind {
                CollectiveKind::Broadcast => Shares::Equal,
                _ => Shares::in_proportion(collective(&topology, kind, 0), ranks, weights.clone()).unwrap(),
            };
            let time = |size_stated, limits| {
                let schedule = schedule(&topology, kind, (&shares, size_stated, limits));
                time_ns(&topology, &schedule, size_bytes)
            };
            let (timed, blind) = (time(Some(size_bytes), exactly(chunks)), time(None, exactly(chunks)));
            prop_assert!(timed <= blind, "{kind}: {timed} over {blind}");
            let (free, fine) = (time(Some(size_bytes), TreeLimits::NONE), time(Some(size_bytes), exactly(64)));
            let allowed = Fraction::new(fine.numerator * 101, fine.denominator * 100).unwrap();
            prop_assert!(free <= allowed, "{kind}: {free} over {fine}");
        }
    }
}
