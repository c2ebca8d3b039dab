//! What programs put on links, and how fast.

use std::collections::BTreeMap;

use canopy_lab::{FRAME_HEAD_BYTES, Job, compile};
use canopy_schedule::{CollectiveKind, LinkLoads, check};
use canopy_synth::Algorithm;
use canopy_topology::LinkIndex;

use crate::plans::{job, planned};

const CASES: [(&str, CollectiveKind); 4] = [
    ("dgx-a100:boxes=2,gpus=4,degrade=b0g3-ib*1/2", CollectiveKind::Allgather),
    ("torus:3x3,down=00-01", CollectiveKind::Allreduce),
    ("torus:3x3", CollectiveKind::AllToAll),
    ("ring:3", CollectiveKind::ReduceScatter),
];

#[test]
fn links_carry_what_the_plan_puts_on_them() {
    for (expression, kind) in CASES {
        let (topology, graph) = planned(expression, kind, Algorithm::Auto);
        let layout = graph.layout().unwrap();
        // Words of a chunk, times chunks, over ranks where there are as many vectors.
        let chunk_bytes = 4 * u64::from(layout.size().divisor) * 50;
        let size_bytes = chunk_bytes / u64::from(layout.size().divisor) * layout.size().chunks;
        let compiled = compile(&job(&topology, &graph, size_bytes, 64)).unwrap();
        let loads = LinkLoads::of(&topology, &graph).unwrap();
        for (link, bytes) in (0..).map(LinkIndex::new).zip(&compiled.link_bytes) {
            assert_eq!(u128::from(*bytes), loads.chunks(link) * u128::from(chunk_bytes), "{expression} link {link:?}");
        }
    }
}

#[test]
fn paces_add_up_to_no_more_than_a_link_carries() {
    for (expression, kind) in CASES {
        let (topology, graph) = planned(expression, kind, Algorithm::Auto);
        let size_bytes = 20_000_000;
        let algbw = check(&topology, &graph).unwrap().algbw.gigabytes_per_sec();
        // Real rates: the lab is as fast as the network.
        let time_ns = size_bytes as f64 / algbw;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of nanoseconds")]
        let job = Job { time_ns: time_ns as u64, pace_percent: 100, ..job(&topology, &graph, size_bytes, 16_384) };
        let compiled = compile(&job).unwrap();
        let nodes: BTreeMap<&str, &Vec<usize>> =
            compiled.routes.iter().map(|route| (route.address.as_str(), &route.nodes)).collect();
        let mut rates: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for outgoing in compiled.programs.iter().flat_map(|program| &program.outgoing) {
            for ends in nodes[outgoing.address.as_str()].windows(2) {
                *rates.entry((ends[0], ends[1])).or_default() += outgoing.pace_bytes_per_sec;
            }
        }
        let mut capacity: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for link in topology.links() {
            *capacity.entry((link.from.index(), link.to.index())).or_default() += link.capacity.bytes_per_sec();
        }
        let mut busiest = 0.0_f64;
        for (ends, rate) in rates {
            let part = rate as f64 / capacity[&ends] as f64;
            assert!(part <= 1.002, "{expression}: {ends:?} is asked for {part}");
            busiest = busiest.max(part);
        }
        // Heads of pieces are a two-thousandth.
        assert!(busiest > 0.995, "{expression}: no link is busy, {busiest}");
        assert_eq!(FRAME_HEAD_BYTES, 8);
    }
}
