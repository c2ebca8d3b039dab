//! Which GPUs NVLink joins, through NVSwitches or pair by pair.

use std::collections::{BTreeSet, HashMap};

use super::table::{Cell, Table};
use crate::host::groups::Groups;
use crate::host::rates::{self, Generation};

/// Most links of a GPU to others pair by pair. With NVSwitches, cells state all links for every pair: sums are larger.
const DIRECT_MAX: u64 = 18;
/// Links of GPUs that have as many to others altogether.
const WHOLE: [u64; 4] = [4, 6, 12, 18];
/// Links of GPUs at NVSwitches.
const SWITCHED: [u64; 4] = [6, 8, 12, 18];

/// GPUs that reach each other by NVLink.
pub(super) struct Board {
    pub(super) is_switched: bool,
    /// Positions of two GPUs and the number of links between them, as the table says.
    pub(super) pairs: Vec<(usize, usize, u64)>,
    /// By GPU: its links, were they to NVSwitches.
    pub(super) links: Vec<(usize, u64)>,
    /// Most links of a GPU.
    pub(super) links_most: u64,
    pub(super) generation: Generation,
}

/// Finds them, in the order of their first GPUs. O(cells).
pub(super) fn boards(table: &Table) -> Vec<Board> {
    let mut groups = Groups::new(table.devices.len());
    let pairs = || {
        table.pairs().filter_map(|(a, b, cell)| match cell {
            Cell::NvLink(count) => Some((a, b, count)),
            _ => None,
        })
    };
    pairs().for_each(|(a, b, _)| groups.join(a, b));
    let members = groups.members();
    let board_of: HashMap<usize, usize> =
        members.iter().enumerate().flat_map(|(board, gpus)| gpus.iter().map(move |&gpu| (gpu, board))).collect();
    let mut pairs_of = vec![Vec::new(); members.len()];
    pairs().for_each(|pair| pairs_of[board_of[&pair.0]].push(pair));
    let is_grace = is_grace(table);
    pairs_of.into_iter().filter(|pairs| !pairs.is_empty()).map(|pairs| board(pairs, is_grace)).collect()
}

/// Whether two GPUs share a Grace CPU, which gives the memory of each a NUMA node: GB200 and GB300. A GH200 has one GPU.
fn is_grace(table: &Table) -> bool {
    let gpus = || table.devices.iter().filter(|device| device.is_gpu && device.has_memory_node);
    let places: BTreeSet<_> = gpus().map(|device| &device.place).collect();
    places.len() < gpus().count()
}

/// All links of a GPU lead to NVSwitches if there are too many for direct ones, or as many as such GPUs have to each.
fn board(pairs: Vec<(usize, usize, u64)>, is_grace: bool) -> Board {
    let mut sums: HashMap<usize, (u64, u64)> = HashMap::new();
    for &(a, b, count) in &pairs {
        for gpu in [a, b] {
            let (sum, most) = sums.entry(gpu).or_default();
            *sum += count;
            *most = (*most).max(count);
        }
    }
    let sum = sums.values().map(|(sum, _)| *sum).max().unwrap_or(0);
    let most = sums.values().map(|(_, most)| *most).max().unwrap_or(0);
    let all_alike = sums.len() * (sums.len() - 1) / 2 == pairs.len() && pairs.iter().all(|pair| pair.2 == most);
    let is_whole = WHOLE.contains(&sum);
    let is_switched = sums.len() > 2 && (sum > DIRECT_MAX || all_alike && !is_whole && SWITCHED.contains(&most));
    let mut links: Vec<(usize, u64)> = sums.iter().map(|(&gpu, &(_, most))| (gpu, most)).collect();
    links.sort_unstable();
    let links_most = if is_switched { most } else { sum };
    Board { is_switched, pairs, links, links_most, generation: rates::nvidia(links_most, most, is_grace) }
}
