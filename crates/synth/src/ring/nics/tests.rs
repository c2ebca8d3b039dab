//! Rates that are known beforehand, exactly, and networks without such rings.

use canopy_optimize::Never;
use canopy_schedule::{check, compile};
use canopy_topology::{Rate, TopologyLimits, generate};

use super::*;

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn rate_of(numerator: u64, denominator: u64) -> Rate {
    Rate::new(numerator, denominator).unwrap()
}

fn rings(expression: &str, kind: CollectiveKind, transfers_max: u64) -> Result<(u32, Rate), NicRingsError> {
    let topology = topology(expression);
    let root = kind.has_root().then(|| Rank::new(0));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let found = nic_rings(&topology, collective, &Shares::Equal, transfers_max, &Never)?;
    let graph = compile(&topology, &found.schedule).unwrap();
    Ok((found.rings, check(&topology, &graph).unwrap().algbw))
}

/// `K·r·N/(N−1)` for an allgather and half of that for an allreduce: 412.903 and 206.452 GB/s on four DGX H100, 213.333 on two
/// DGX A100. A message from one rank is not divided by N: K·r.
#[test]
fn a_ring_for_each_nic_has_the_rate_of_all_nics() {
    use CollectiveKind::{Allgather, Allreduce, Broadcast, Reduce, ReduceScatter};
    for (expression, kind, rings_expected, (numerator, denominator)) in [
        ("dgx-h100:boxes=4", Allgather, 8, (8 * 50 * 32, 31)),
        ("dgx-h100:boxes=4", ReduceScatter, 8, (8 * 50 * 32, 31)),
        ("dgx-h100:boxes=4", Allreduce, 8, (8 * 50 * 32, 2 * 31)),
        ("dgx-a100:boxes=2", Allgather, 8, (8 * 25 * 16, 15)),
        ("dgx-a100:boxes=2", Broadcast, 8, (8 * 25, 1)),
        ("dgx-a100:boxes=2", Reduce, 8, (8 * 25, 1)),
        ("dgx-h100:boxes=16", Allgather, 8, (8 * 50 * 128, 127)),
        // Rails: rings stay on theirs with an even number of boxes, and with an odd one cross over inside the last.
        ("rail:boxes=4,gpus=8,nv=450GB/s,nic=50GB/s", Allgather, 8, (8 * 50 * 32, 31)),
        ("rail:boxes=3,gpus=8,nv=450GB/s,nic=50GB/s", Allgather, 8, (8 * 50 * 24, 23)),
        ("rail:boxes=3,gpus=5,nv=450GB/s,nic=50GB/s", Allreduce, 5, (5 * 50 * 15, 2 * 14)),
    ] {
        let giga = 1_000_000_000;
        let (rings, rate) = rings(expression, kind, u64::MAX).unwrap();
        assert_eq!((rings, rate), (rings_expected, rate_of(numerator * giga, denominator)), "{expression} {kind}");
    }
}

/// NVLink of 200 GB/s for 7 of 8 lines through each GPU: 8 rings of 200/7 GB/s.
#[test]
fn lines_inside_a_box_share_its_links() {
    let (_, rate) = rings("rail:boxes=2,gpus=8,nv=200GB/s,nic=50GB/s", CollectiveKind::Allgather, u64::MAX).unwrap();
    assert!(rate <= rate_of(8 * 200_000_000_000 * 16, 7 * 15), "{rate}");
    assert!(rate >= rate_of(7 * 200_000_000_000 * 16, 7 * 15), "{rate}");
}

/// GPUs joined by links of their own have lines over these links, and not by one NIC out and another one in: at least half of
/// what NICs let in.
#[test]
fn lines_follow_links_where_no_switch_joins_a_box() {
    let (rings, rate) = rings("mi250:boxes=2", CollectiveKind::Allgather, u64::MAX).unwrap();
    assert_eq!(rings, 16);
    assert!(rate >= rate_of(8 * 16_000_000_000 * 32, 31), "{rate}");
}

/// Beyond the number of hops that are wanted, each share goes around one ring: a NIC carries at most one share more.
#[test]
fn large_networks_have_a_ring_for_each_share() {
    let (rings, rate) = rings("dgx-h100:boxes=4", CollectiveKind::Allgather, 32 * 31).unwrap();
    assert_eq!((rings, rate), (8, rate_of(8 * 50_000_000_000, 1)));
}

#[test]
fn networks_without_boxes_or_nics_have_none() {
    let refusal = |expression, kind| rings(expression, kind, u64::MAX).unwrap_err();
    let allgather = CollectiveKind::Allgather;
    assert_eq!(refusal("ring:8", allgather), NicRingsError::NoBox { rank: 0 });
    assert_eq!(refusal("dgx-a100:boxes=1", allgather), NicRingsError::OneBox);
    let all_to_all = CollectiveKind::AllToAll;
    assert_eq!(refusal("dgx-a100:boxes=2", all_to_all), NicRingsError::Unsupported { collective: all_to_all });
}
