//! The parts of a network: switches by their ports, and cables by kind and length.

use serde::Serialize;

use crate::cost::floor::{Lengths, all_pairs, places};
use crate::cost::network::{Network, slim_fly_degree};
use crate::cost::parameters::Layout;

/// The material of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Medium {
    /// Copper.
    Electrical,
    /// Fibre.
    Optical,
}

impl Medium {
    /// Its name for people and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Electrical => "electrical",
            Self::Optical => "optical",
        }
    }
}

/// The ends of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A switch and an endpoint.
    Terminal,
    /// Two switches of one rack.
    Inside,
    /// Two switches of different racks.
    Between,
}

impl Purpose {
    /// Its name for people and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Inside => "inside",
            Self::Between => "between",
        }
    }
}

/// Equal cables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cables {
    /// Their material.
    pub medium: Medium,
    /// Their ends.
    pub purpose: Purpose,
    /// Length of each, in centimetres.
    pub length_cm: u64,
    /// How many there are.
    pub count: u128,
}

/// Equal switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Ports that are in use.
    pub ports: u64,
    /// Ports that lead to endpoints.
    pub terminal_ports: u64,
    /// How many there are.
    pub count: u64,
}

/// All parts of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bill {
    /// Endpoints, which are not priced.
    pub endpoints: u64,
    /// Switches of each kind.
    pub switches: Vec<Part>,
    /// Cables by purpose and length, without counts of 0.
    pub cables: Vec<Cables>,
}

impl Bill {
    /// Number of switches of all kinds.
    pub fn switch_count(&self) -> u64 {
        self.switches.iter().map(|part| part.count).sum()
    }

    /// Number of cables of a kind.
    pub fn cable_count(&self, medium: Medium) -> u128 {
        self.cables.iter().filter(|cables| cables.medium == medium).map(|cables| cables.count).sum()
    }

    /// Number of cables that lead to other racks.
    pub fn cables_between(&self) -> u128 {
        self.cables.iter().filter(|cables| cables.purpose == Purpose::Between).map(|cables| cables.count).sum()
    }
}

impl Network {
    /// The parts of a network on a floor of racks.
    ///
    /// | network | a rack holds | cables within it | cables between racks |
    /// |---|---|---|---|
    /// | `dfc2` | a switch | to endpoints | optical, along the rows and columns of the grid |
    /// | `dragonfly-router` | a group | to endpoints and in the group | optical, one for every two racks of a block |
    /// | `slim-fly` | a subgroup of each kind, 2q switches | to endpoints and in the rack | optical, 2q for every two racks of a block |
    /// | `torus` | a switch | to endpoints | electrical, all as long as a folded ring needs |
    /// | `fat-tree` | a pod, or k/2 switches of the top | to endpoints and in the pod | optical, the top's racks amid the others |
    ///
    /// * **Source.** Pham 2026, equations (4.11) to (4.13), for `dfc2`; its section 4.4.2 says no more of the others than that they
    ///   are as in Besta and Hoefler 2014, section VI, whose racks of a Slim Fly these are; of Dragonflies and fat trees the racks
    ///   are a choice.
    /// * **In.** A network that [`Network::checked`] has let pass. **Cost.** O(racks); of a fat tree O(k²).
    pub fn bill(&self, layout: &Layout) -> Bill {
        let narrow = |count: u128| u64::try_from(count).expect("a checked network has at most 10⁹ of these");
        let (endpoints, switches) = (self.wide_endpoints(), narrow(self.wide_switches()));
        let uniform = |ports, terminal_ports| vec![Part { ports, terminal_ports, count: switches }];
        let mut cables = vec![inside(Purpose::Terminal, endpoints, layout)];
        let wide = u128::from;
        let parts = match self {
            Self::Dfc2 { rows, columns, terminals } => {
                let mut lengths = Lengths::new();
                // (4.11), once for each row and once for each column.
                for far in 1..*columns {
                    *lengths.entry(layout.between(far, 0)).or_default() += wide(columns - far) * wide(*rows);
                }
                for far in 1..*rows {
                    *lengths.entry(layout.between(0, far)).or_default() += wide(rows - far) * wide(*columns);
                }
                cables.extend(optical(lengths, 1));
                uniform(rows + columns - 2 + terminals, *terminals)
            }
            Self::DragonflyRouter { p, a, h } => {
                let groups = a * h + 1;
                cables.push(inside(Purpose::Inside, wide(switches) * wide(a - 1) / 2, layout));
                cables.extend(optical(all_pairs(groups, layout), 1));
                uniform(p + a - 1 + h, *p)
            }
            Self::SlimFly { q, terminals } => {
                let degree = slim_fly_degree(*q);
                // In each of q racks: two subgroups whose switches have degree − q cables each, and q cables between the two.
                cables.push(inside(Purpose::Inside, wide(*q) * wide(*q) * wide(degree - q + 1), layout));
                cables.extend(optical(all_pairs(*q, layout), 2 * wide(*q)));
                uniform(degree + terminals, *terminals)
            }
            Self::Torus { extents, terminals } => {
                let dimensions = extents.len() as u64;
                let (medium, purpose) = (Medium::Electrical, Purpose::Between);
                let count = wide(switches) * wide(dimensions);
                cables.push(Cables { medium, purpose, length_cm: layout.folded_cm, count });
                uniform(2 * dimensions + terminals, *terminals)
            }
            Self::FatTree { k } => {
                let half = k / 2;
                cables.push(inside(Purpose::Inside, wide(*k) * wide(half) * wide(half), layout));
                cables.extend(optical(fat_tree_tops(*k, layout), wide(half)));
                let of_pods = Part { ports: *k, terminal_ports: half, count: k * half };
                vec![of_pods, Part { terminal_ports: 0, count: switches - of_pods.count, ..of_pods }]
            }
        };
        cables.retain(|cables| cables.count > 0);
        Bill { endpoints: narrow(endpoints), switches: parts, cables }
    }
}

const fn inside(purpose: Purpose, count: u128, layout: &Layout) -> Cables {
    Cables { medium: Medium::Electrical, purpose, length_cm: layout.inside_rack_cm, count }
}

/// So many fibres between racks for each that is counted.
fn optical(lengths: Lengths, times: u128) -> impl Iterator<Item = Cables> {
    let (medium, purpose) = (Medium::Optical, Purpose::Between);
    lengths.into_iter().map(move |(length_cm, count)| Cables { medium, purpose, length_cm, count: count * times })
}

/// Cables between the pods' racks and those of the top, one for each pair, in a nearly square block: half of the pods, the top,
/// then the other pods.
fn fat_tree_tops(k: u64, layout: &Layout) -> Lengths {
    let half = k / 2;
    let racks: Vec<(u64, u64)> = places(k + half).collect();
    let is_top = |rack: u64| (half..k).contains(&rack);
    let mut lengths = Lengths::new();
    for (_, top) in (0..).zip(&racks).filter(|(rack, _)| is_top(*rack)) {
        for (_, pod) in (0..).zip(&racks).filter(|(rack, _)| !is_top(*rack)) {
            *lengths.entry(layout.between(top.0.abs_diff(pod.0), top.1.abs_diff(pod.1))).or_default() += 1;
        }
    }
    lengths
}
