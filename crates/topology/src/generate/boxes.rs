//! Boxes of GPUs joined by a fabric: MI250 and rail-optimised clusters, and what other families of boxes share.
//!
//! GPU g of box b is `b{b}g{g}`, ranked box by box; the switch inside box b is `b{b}nv`. A single box has no fabric:
//! it would lead nowhere.

use crate::draft::TopologyDraft;
use crate::generate::arguments::{Arguments, value_error};
use crate::generate::error::ExpressionError;
use crate::generate::size::{Size, product, sum};
use crate::limits::TopologyLimits;
use crate::model::{Attributes, NodeKind};
use crate::units::{Capacity, Latency};

/// 10⁹ bytes per second.
const GB: u64 = 1_000_000_000;
/// The one switch of the fabric.
pub(super) const FABRIC: &str = "ib";

/// Infinity Fabric of an MI250 box: GPU, GPU, number of 50 GB/s links.
const MI250_FABRIC: &[(usize, usize, u64)] = &[
    (0, 1, 4),
    (2, 3, 4),
    (4, 5, 4),
    (6, 7, 4),
    (8, 9, 4),
    (10, 11, 4),
    (12, 13, 4),
    (14, 15, 4),
    (0, 4, 2),
    (3, 7, 2),
    (8, 12, 2),
    (11, 15, 2),
    (0, 2, 1),
    (1, 2, 1),
    (1, 3, 1),
    (1, 5, 1),
    (2, 6, 1),
    (4, 12, 1),
    (5, 13, 1),
    (5, 14, 1),
    (6, 13, 1),
    (6, 14, 1),
    (7, 15, 1),
    (8, 10, 1),
    (9, 10, 1),
    (9, 11, 1),
    (9, 13, 1),
    (10, 14, 1),
];

/// `mi250:boxes=2`: sixteen GPUs a box, joined by Infinity Fabric, each with 16 GB/s to InfiniBand; `gpus=8` keeps
/// GPUs 0 to 7 of each box.
pub(super) fn mi250(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let (boxes, gpus) = (arguments.count("boxes", Some(1))?, arguments.count("gpus", Some(16))?);
    if let (Some(argument), false) = (arguments.find("gpus"), matches!(gpus, 8 | 16)) {
        return Err(value_error(argument, "8 or 16"));
    }
    let fabric = usize::from(boxes > 1);
    let inside: Vec<_> = MI250_FABRIC.iter().filter(|(a, b, _)| *a < gpus && *b < gpus).collect();
    let links = product(&[2, boxes, inside.len() + fabric * gpus]);
    Size { ranks: product(&[boxes, gpus]), switches: fabric as u128, links }.check(limits)?;
    let mut draft = TopologyDraft::default();
    add_gpus(&mut draft, boxes, gpus);
    for in_box in 0..boxes {
        for (a, b, count) in &inside {
            draft.add_both(&gpu(in_box, *a), &gpu(in_box, *b), rate(50 * GB * count), Latency::default());
        }
    }
    add_fabric(&mut draft, (boxes, gpus), (NodeKind::PLAIN_SWITCH, rate(16 * GB)));
    Ok(draft)
}

/// `rail:boxes=4,gpus=8,nv=450GB/s,nic=50GB/s,spine=0`: GPU j of every box with `nic` to rail switch j; with a spine,
/// every rail switch with that rate to it.
pub(super) fn rail(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let (boxes, gpus) = (arguments.count("boxes", None)?, arguments.count("gpus", Some(8))?);
    let (nv, nic) = (arguments.rate("nv", 450 * GB)?, arguments.rate("nic", 50 * GB)?);
    let spine = arguments.optional_rate("spine")?.filter(|_| boxes > 1);
    let ranks = product(&[boxes, gpus]);
    let rails = if boxes > 1 { gpus } else { 0 };
    let switches = sum(&[boxes as u128, rails as u128, u128::from(spine.is_some())]);
    let to_spine = if spine.is_some() { rails } else { 0 };
    let pairs = sum(&[ranks, product(&[boxes, rails]), to_spine as u128]);
    Size { ranks, switches, links: pairs.saturating_mul(2) }.check(limits)?;
    let mut draft = TopologyDraft::default();
    add_gpus(&mut draft, boxes, gpus);
    add_box_switches(&mut draft, (boxes, gpus), (NodeKind::PLAIN_SWITCH, nv));
    for on_rail in 0..rails {
        let id = format!("rail{on_rail}");
        let attributes = Attributes { rail: Some(id.clone()), ..Attributes::default() };
        draft.add_node(id.as_str(), NodeKind::PLAIN_SWITCH, attributes);
        for in_box in 0..boxes {
            draft.add_both(&gpu(in_box, on_rail), &id, nic, Latency::default());
        }
    }
    if rails > 0 {
        for (rank, node) in draft.nodes.iter_mut().take(boxes * gpus).enumerate() {
            node.attributes.rail = Some(format!("rail{}", rank % gpus));
        }
    }
    if let Some(rate) = spine {
        draft.add_switch("spine");
        (0..rails).for_each(|rail| draft.add_both(&format!("rail{rail}"), "spine", rate, Latency::default()));
    }
    Ok(draft)
}

fn rate(bytes_per_sec: u64) -> Capacity {
    Capacity::from_bytes_per_sec(bytes_per_sec).expect("rates of hardware are positive")
}

pub(super) fn gpu(in_box: usize, index: usize) -> String {
    format!("b{in_box}g{index}")
}

pub(super) fn in_box(name: usize) -> Attributes {
    Attributes { box_name: Some(format!("b{name}")), ..Attributes::default() }
}

pub(super) fn add_gpus(draft: &mut TopologyDraft, boxes: usize, gpus: usize) {
    for of_box in 0..boxes {
        (0..gpus).for_each(|index| draft.add_node(gpu(of_box, index), NodeKind::Compute, in_box(of_box)));
    }
}

/// A switch in each box with a link of this rate to each of its GPUs.
pub(super) fn add_box_switches(
    draft: &mut TopologyDraft,
    (boxes, gpus): (usize, usize),
    (kind, rate): (NodeKind, Capacity),
) {
    for of_box in 0..boxes {
        let switch = format!("b{of_box}nv");
        draft.add_node(switch.as_str(), kind, in_box(of_box));
        (0..gpus).for_each(|index| draft.add_both(&gpu(of_box, index), &switch, rate, Latency::default()));
    }
}

/// Every GPU to one switch, if there is more than one box.
pub(super) fn add_fabric(draft: &mut TopologyDraft, (boxes, gpus): (usize, usize), (kind, rate): (NodeKind, Capacity)) {
    if boxes < 2 {
        return;
    }
    draft.add_node(FABRIC, kind, Attributes::default());
    for of_box in 0..boxes {
        (0..gpus).for_each(|index| draft.add_both(&gpu(of_box, index), FABRIC, rate, Latency::default()));
    }
}
