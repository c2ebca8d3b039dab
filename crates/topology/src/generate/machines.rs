//! Machines that vendors sell, as boxes of GPUs joined by one switch for all boxes or by rails and spines.
//!
//! A row of constants says what a machine is made of: what joins the GPUs of a box, and a NIC. Every rate is that of one
//! direction, as vendors state it for a link; keys replace each for sites that have others.

use crate::draft::TopologyDraft;
use crate::generate::arguments::{Arguments, value_error};
use crate::generate::boxes::{FABRIC, add_box_switches, add_fabric, add_gpus, gpu, in_box};
use crate::generate::error::ExpressionError;
use crate::generate::fabrics::divided;
use crate::generate::size::{Size, product, sum};
use crate::limits::TopologyLimits;
use crate::model::{Attributes, NodeKind};
use crate::units::{Capacity, Latency};

/// 10⁹ bytes per second.
const GB: u64 = 1_000_000_000;
/// 10⁸ bytes per second.
const TENTH: u64 = 100_000_000;

/// A machine of one vendor.
#[derive(Clone, Copy)]
pub(super) struct Model {
    gpus: usize,
    inside: Inside,
    /// Rate of a NIC; each GPU has one unless `nics` says otherwise.
    nic: u64,
}

/// What joins the GPUs of a box.
#[derive(Clone, Copy)]
enum Inside {
    /// Each with one switch.
    Switch(u64),
    /// Each with every other.
    Mesh(u64),
}

/// NVLink 3: 12 links of 25 GB/s. Eight HDR NICs of 200 Gb/s.
pub(super) const DGX_A100: Model = Model { gpus: 8, inside: Inside::Switch(300 * GB), nic: 25 * GB };
/// NVLink 4: 18 links of 25 GB/s. Eight NDR NICs of 400 Gb/s. H200 boxes are joined alike.
pub(super) const DGX_H100: Model = Model { gpus: 8, inside: Inside::Switch(450 * GB), nic: 50 * GB };
/// NVLink 5: 18 links of 50 GB/s. Eight NDR NICs of 400 Gb/s.
pub(super) const DGX_B200: Model = Model { gpus: 8, inside: Inside::Switch(900 * GB), nic: 50 * GB };
/// NVLink 5. Eight XDR NICs of 800 Gb/s.
pub(super) const DGX_B300: Model = Model { gpus: 8, inside: Inside::Switch(900 * GB), nic: 100 * GB };
/// 18 trays of four GPUs on NVLink 5. A NIC of 400 Gb/s for each GPU.
pub(super) const GB200_NVL72: Model = Model { gpus: 72, inside: Inside::Switch(900 * GB), nic: 50 * GB };
/// The same with NICs of 800 Gb/s.
pub(super) const GB300_NVL72: Model = Model { gpus: 72, inside: Inside::Switch(900 * GB), nic: 100 * GB };
/// Seven Infinity Fabric links of 64 GB/s. Eight NICs of 400 Gb/s. MI325X boxes are joined alike.
pub(super) const MI300X: Model = Model { gpus: 8, inside: Inside::Mesh(64 * GB), nic: 50 * GB };
/// Seven Infinity Fabric links of 76.8 GB/s. Eight NICs of 400 Gb/s.
pub(super) const MI355X: Model = Model { gpus: 8, inside: Inside::Mesh(768 * TENTH), nic: 50 * GB };

/// Keys of boxes whose GPUs are joined by a switch.
pub(super) const SWITCHED_KEYS: &[&str] = &["boxes", "gpus", "nv", "nics", "nic", "nvls", "sharp"];
/// The same where a box is a rack.
pub(super) const RACK_KEYS: &[&str] = &["racks", "gpus", "nv", "nics", "nic", "nvls", "sharp"];
/// Keys of boxes whose GPUs are joined each with every other.
pub(super) const MESH_KEYS: &[&str] = &["boxes", "gpus", "xgmi", "nics", "nic", "sharp"];
/// Keys of pods.
pub(super) const POD_KEYS: &[&str] =
    &["boxes", "su", "gpus", "rails", "spines", "oversub", "nv", "nic", "nvls", "sharp"];

type Draft = Result<TopologyDraft, ExpressionError>;

/// `dgx-h100:boxes=2`, `hgx:boxes=2,nics=4`: boxes on one switch, which stands for a fabric that blocks nowhere.
pub(super) fn boxes(arguments: &Arguments<'_>, limits: &TopologyLimits, model: Model) -> Draft {
    build(arguments, limits, ("boxes", model))
}

/// `gb200-nvl72:racks=4`: the same for racks whose GPUs are on the same switches.
pub(super) fn racks(arguments: &Arguments<'_>, limits: &TopologyLimits, model: Model) -> Draft {
    build(arguments, limits, ("racks", model))
}

fn build(arguments: &Arguments<'_>, limits: &TopologyLimits, (unit, model): (&'static str, Model)) -> Draft {
    let (boxes, gpus) = (arguments.count(unit, Some(1))?, arguments.count("gpus", Some(model.gpus))?);
    let nics = Nics::of(arguments, gpus, model.nic)?;
    let fabric = usize::from(boxes > 1);
    let inside = match model.inside {
        Inside::Switch(_) => sum(&[product(&[boxes, gpus])]),
        Inside::Mesh(_) => product(&[boxes, gpus]).saturating_mul(gpus as u128 - 1) / 2,
    };
    let shared = product(&[fabric, boxes, nics.shared()]);
    let pairs = sum(&[inside, product(&[fabric, boxes, gpus]), shared]);
    let box_switches = if matches!(model.inside, Inside::Switch(_)) { boxes } else { 0 };
    let switches = sum(&[box_switches as u128, fabric as u128, shared]);
    Size { ranks: product(&[boxes, gpus]), switches, links: pairs.saturating_mul(2) }.check(limits)?;
    let mut draft = TopologyDraft::default();
    add_gpus(&mut draft, boxes, gpus);
    match model.inside {
        Inside::Switch(rate) => {
            let kind = switch(arguments, "nvls")?;
            add_box_switches(&mut draft, (boxes, gpus), (kind, arguments.rate("nv", rate)?));
        }
        Inside::Mesh(rate) => add_meshes(&mut draft, boxes, gpus, arguments.rate("xgmi", rate)?),
    }
    let kind = switch(arguments, "sharp")?;
    match nics {
        Nics::Own(rate) => add_fabric(&mut draft, (boxes, gpus), (kind, rate)),
        Nics::Shared { of_box, rate } => add_shared_nics(&mut draft, (boxes, gpus), (kind, of_box, rate)),
    }
    Ok(draft)
}

/// NICs of a box.
enum Nics {
    /// Each GPU has its own, or several, of this rate together.
    Own(Capacity),
    /// So many, each shared by as many GPUs.
    Shared { of_box: usize, rate: Capacity },
}

impl Nics {
    fn of(arguments: &Arguments<'_>, gpus: usize, default: u64) -> Result<Self, ExpressionError> {
        let (nics, rate) = (arguments.count("nics", Some(gpus))?, arguments.rate("nic", default)?);
        match arguments.find("nics") {
            Some(argument) if !nics.is_multiple_of(gpus) && !gpus.is_multiple_of(nics) => Err(value_error(
                argument,
                "a number of NICs that divides the number of GPUs of a box, or a multiple of it",
            )),
            _ if nics < gpus => Ok(Self::Shared { of_box: nics, rate }),
            _ => divided(rate, (nics / gpus) as u128, 1, "NICs of a GPU", "nics, nic").map(Self::Own),
        }
    }

    /// How many in a box are shared.
    const fn shared(&self) -> usize {
        match *self {
            Self::Own(_) => 0,
            Self::Shared { of_box, .. } => of_box,
        }
    }
}

/// A switch that replicates and adds up if this key says so.
fn switch(arguments: &Arguments<'_>, key: &str) -> Result<NodeKind, ExpressionError> {
    let is_on = arguments.flag(key)?.is_some();
    Ok(NodeKind::Switch { multicast: is_on, aggregate: is_on })
}

fn add_meshes(draft: &mut TopologyDraft, boxes: usize, gpus: usize, rate: Capacity) {
    for of_box in 0..boxes {
        for first in 0..gpus {
            (first + 1..gpus)
                .for_each(|second| draft.add_both(&gpu(of_box, first), &gpu(of_box, second), rate, Latency::default()));
        }
    }
}

/// NIC `b0nic1` is a switch between its GPUs, which are next to each other, and the fabric.
fn add_shared_nics(
    draft: &mut TopologyDraft,
    (boxes, gpus): (usize, usize),
    (kind, nics, rate): (NodeKind, usize, Capacity),
) {
    if boxes < 2 {
        return;
    }
    draft.add_node(FABRIC, kind, Attributes::default());
    for of_box in 0..boxes {
        for nic in 0..nics {
            let id = format!("b{of_box}nic{nic}");
            draft.add_node(id.as_str(), NodeKind::PLAIN_SWITCH, in_box(of_box));
            let share = gpus / nics;
            let own = nic * share..(nic + 1) * share;
            own.for_each(|index| draft.add_both(&gpu(of_box, index), &id, rate, Latency::default()));
            draft.add_both(&id, FABRIC, rate, Latency::default());
        }
    }
}

/// `pod:boxes=128,su=32,rails=8,oversub=1`: scalable units of `su` boxes with a leaf `su0rail3` for each rail, and spines
/// that join all leaves. GPU g is on rail g modulo `rails`; a leaf has to its spines together what its GPUs have to it,
/// divided by `oversub`.
///
/// Source: NVIDIA DGX SuperPOD reference architecture, the compute fabric.
pub(super) fn pod(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Draft {
    let (boxes, unit) = (arguments.count("boxes", None)?, arguments.count("su", Some(32))?);
    let gpus = arguments.count("gpus", Some(8))?;
    let rails = arguments.count("rails", Some(gpus))?;
    if let (Some(argument), false) = (arguments.find("rails"), gpus.is_multiple_of(rails)) {
        return Err(value_error(argument, "a number of rails that divides the number of GPUs of a box"));
    }
    let (spines, oversub) = (arguments.count("spines", Some(rails))?, arguments.count("oversub", Some(1))?);
    let units = if boxes > 1 { boxes.div_ceil(unit) } else { 0 };
    // One leaf is joined with nothing else.
    let spines = if units * rails > 1 { spines } else { 0 };
    let ranks = product(&[boxes, gpus]);
    let leaves = product(&[units, rails]);
    let switches = sum(&[boxes as u128, leaves, spines as u128]);
    let outside = if units > 0 { ranks } else { 0 };
    let pairs = sum(&[ranks, outside, leaves.saturating_mul(spines as u128)]);
    Size { ranks, switches, links: pairs.saturating_mul(2) }.check(limits)?;
    let (nv, nic) = (arguments.rate("nv", 450 * GB)?, arguments.rate("nic", 50 * GB)?);
    let (inside, fabric) = (switch(arguments, "nvls")?, switch(arguments, "sharp")?);
    let below = product(&[unit.min(boxes), gpus / rails]);
    let uplink = match spines {
        0 => nic,
        _ => divided(
            nic,
            below,
            product(&[spines, oversub]),
            "uplinks of a leaf",
            "su, gpus, rails, nic, spines, oversub",
        )?,
    };
    let mut draft = TopologyDraft::default();
    add_gpus(&mut draft, boxes, gpus);
    add_box_switches(&mut draft, (boxes, gpus), (inside, nv));
    (0..spines).for_each(|spine| draft.add_node(format!("spine{spine}"), fabric, Attributes::default()));
    for of_unit in 0..units {
        for on_rail in 0..rails {
            let id = format!("su{of_unit}rail{on_rail}");
            let attributes = Attributes { rail: Some(format!("rail{on_rail}")), ..Attributes::default() };
            draft.add_node(id.as_str(), fabric, attributes);
            for in_box in of_unit * unit..((of_unit + 1) * unit).min(boxes) {
                let own = (on_rail..gpus).step_by(rails);
                own.for_each(|index| draft.add_both(&gpu(in_box, index), &id, nic, Latency::default()));
            }
            (0..spines).for_each(|spine| draft.add_both(&id, &format!("spine{spine}"), uplink, Latency::default()));
        }
    }
    for (rank, node) in draft.nodes.iter_mut().take(if units > 0 { boxes * gpus } else { 0 }).enumerate() {
        node.attributes.rail = Some(format!("rail{}", rank % gpus % rails));
    }
    Ok(draft)
}

/// Chips of a Trainium 2 host: 4 × 4, each linked both ways with the next of its row and column.
const TRN2_SIDE: usize = 4;

/// `trn2:boxes=2,hosts=4`: boxes of one host of 16 chips in a 4 × 4 torus, or of four hosts whose chips at the same place
/// make rings; each chip with its part of the host's EFA ports to one switch for all boxes.
///
/// Source: AWS Neuron documentation, Trn2 architecture: 1.28 TB/s for the links of a chip in both directions, of which four
/// lead to neighbours in the host (128 GB/s each way) and two to other hosts (64 GB/s); EFA 3.2 Tb/s for 16 chips.
pub(super) fn trn2(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Draft {
    let (boxes, hosts) = (arguments.count("boxes", Some(1))?, arguments.count("hosts", Some(1))?);
    if let (Some(argument), false) = (arguments.find("hosts"), matches!(hosts, 1 | 4)) {
        return Err(value_error(argument, "1 (Trn2) or 4 (Trn2 UltraServer)"));
    }
    let of_host = TRN2_SIDE * TRN2_SIDE;
    let chips = hosts * of_host;
    let (fabric, rings) = (usize::from(boxes > 1), usize::from(hosts > 1));
    let ranks = product(&[boxes, chips]);
    Size { ranks, switches: fabric as u128, links: ranks.saturating_mul(2 * (2 + rings + fabric) as u128) }
        .check(limits)?;
    let (inside, outside) = (arguments.rate("link", 128 * GB)?, arguments.rate("host-link", 64 * GB)?);
    let nic = arguments.rate("nic", 25 * GB)?;
    let mut draft = TopologyDraft::default();
    add_gpus(&mut draft, boxes, chips);
    for of_box in 0..boxes {
        for chip in 0..chips {
            let (host, place) = (chip / of_host, chip % of_host);
            let (row, column) = (place / TRN2_SIDE, place % TRN2_SIDE);
            let at = |host: usize, row: usize, column: usize| {
                gpu(of_box, host % hosts * of_host + row % TRN2_SIDE * TRN2_SIDE + column % TRN2_SIDE)
            };
            let own = at(host, row, column);
            draft.add_both(&own, &at(host, row, column + 1), inside, Latency::default());
            draft.add_both(&own, &at(host, row + 1, column), inside, Latency::default());
            if hosts > 1 {
                draft.add_both(&own, &at(host + 1, row, column), outside, Latency::default());
            }
        }
    }
    add_fabric(&mut draft, (boxes, chips), (NodeKind::PLAIN_SWITCH, nic));
    Ok(draft)
}
