//! Rates of NVLink and xGMI: a square matrix over objects, in MB/s.

use std::collections::BTreeMap;

use canopy_topology::{Capacity, Latency, NodeKind, shorten};

use super::{Builder, End, KIND};
use crate::error::{FileError, ImportError};
use crate::source::Source;
use crate::xml::Element;

/// What a matrix of rates is called; others hold latencies and hops.
const NAMES: [&str; 2] = ["NVLinkBandwidth", "XGMIBandwidth"];
/// The vertex of all NVSwitches.
const NVSWITCH: &str = "nvs";

impl Builder {
    /// Links of all matrices; NVSwitches are one vertex, and rates to them add up.
    pub(super) fn add_matrices(&mut self, root: &Element, source: Source<'_>) -> Result<(), ImportError> {
        let is_matrix = |element: &&Element| {
            matches!(element.name.as_str(), "distances2" | "distances2hetero")
                && element.attribute("name").is_some_and(|name| NAMES.contains(&name))
        };
        let mut rates = BTreeMap::new();
        for matrix in root.children.iter().filter(is_matrix) {
            self.add_matrix(matrix, source, &mut rates)?;
        }
        source.require(self.machine.draft.nodes.len(), rates.len())?;
        if rates.keys().any(|(from, to)| [from, to].contains(&&End::NvSwitch)) {
            self.add_node(NVSWITCH, NodeKind::PLAIN_SWITCH, Some("all NVSwitches".to_owned()));
        }
        for ((from, to), rate) in rates {
            let Some(capacity) = Capacity::from_bytes_per_sec(rate) else { continue };
            let id = |end| match end {
                End::Node(id) => id,
                End::NvSwitch => NVSWITCH.to_owned(),
            };
            self.machine.draft.add_link(id(from), id(to), capacity, Latency::default());
            self.matrix_links += 1;
        }
        Ok(())
    }

    fn add_matrix(
        &mut self,
        matrix: &Element,
        source: Source<'_>,
        rates: &mut BTreeMap<(End, End), u64>,
    ) -> Result<(), ImportError> {
        let error =
            |problem: String| ImportError::from(FileError::at(KIND, matrix.line, problem).of_field(&matrix.name));
        let numbers = |name| {
            let words = matrix.children_named(name).flat_map(|child| child.text.split_whitespace());
            // The type of an object may stand before its number.
            let number = |word: &str| {
                let number = word.rsplit(':').next().and_then(|number| number.parse::<u64>().ok());
                number
                    .ok_or_else(|| error(format!("`{}` is no number; send the file as lstopo wrote it", shorten(word))))
            };
            words.map(number).collect::<Result<Vec<u64>, _>>()
        };
        let (objects, values) = (numbers("indexes")?, numbers("u64values")?);
        source.require(objects.len(), 0)?;
        let count = objects.len();
        if values.len() != count.saturating_mul(count) || matrix.number("nbobjs")? != u64::try_from(count).ok() {
            let found = values.len();
            return Err(error(format!(
                "{count} objects have {found} values, not one for each two; send the whole file"
            )));
        }
        let ends: Vec<Option<End>> = objects.iter().map(|index| self.end_of.get(index).cloned()).collect();
        for (place, &value) in values.iter().enumerate() {
            let (a, b) = (place / count, place % count);
            if value == 0 || a == b {
                continue;
            }
            let (Some(from), Some(to)) = (&ends[a], &ends[b]) else {
                self.lost_links += 1;
                continue;
            };
            if from == to {
                continue;
            }
            let rate = rates.entry((from.clone(), to.clone())).or_default();
            let sum = value.checked_mul(1_000_000).and_then(|value| rate.checked_add(value));
            *rate = sum.ok_or_else(|| error(format!("{value} MB/s is more than any link has; use smaller numbers")))?;
        }
        Ok(())
    }
}
