//! The text of the tables to numbers and words.

use std::collections::{HashMap, HashSet};

use canopy_topology::shorten;

use super::KIND;
use crate::error::{FileError, ImportError};
use crate::source::Source;

/// Longest name of a GPU.
const NAME_MAX: usize = 16;

/// How two GPUs meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// `0`: it is the same.
    Own,
    Xgmi,
    /// `PCIE`, and what the tool does not know.
    Host,
}

/// What the tables say, by GPU in their order.
pub(super) struct Tables {
    pub(super) gpus: Vec<String>,
    pub(super) types: Vec<Vec<Word>>,
    pub(super) hops: Option<Vec<Vec<u64>>>,
    pub(super) numa: Vec<Option<u64>>,
}

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    ["weight", "hops", "link type"].iter().any(|what| start.contains(&format!("{what} between two gpus =")))
}

/// What lines are about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Hops,
    Types,
    Other,
}

/// A square table: names of columns, then rows with their lines.
#[derive(Default)]
struct Square<'a> {
    columns: Vec<&'a str>,
    rows: Vec<(usize, &'a str, Vec<&'a str>)>,
}

/// Reads the tables. O(bytes).
pub(super) fn read(source: Source<'_>) -> Result<Tables, ImportError> {
    let (mut hops, mut types, mut numa) = (Square::default(), Square::default(), HashMap::new());
    let mut section = Section::Other;
    for line in source.lines() {
        let (number, line) = line?;
        if line.starts_with("==") {
            section = match line.trim_matches(['=', ' ', '\r']) {
                title if title.eq_ignore_ascii_case("hops between two gpus") => Section::Hops,
                title if title.eq_ignore_ascii_case("link type between two gpus") => Section::Types,
                _ => Section::Other,
            };
            continue;
        }
        match section {
            Section::Hops => hops.add(number, line)?,
            Section::Types => types.add(number, line)?,
            Section::Other => numa.extend(numa_node(line)),
        }
    }
    if types.columns.is_empty() {
        let problem = "there is no table `Link Type between two GPUs`; send all that `rocm-smi --showtopo` prints";
        return Err(FileError::whole(KIND, problem).into());
    }
    source.require(types.columns.len(), 0)?;
    let gpus: Vec<String> = types.columns.iter().map(|name| (*name).to_owned()).collect();
    let names = types.columns.clone();
    let types = types.read(&names, |text| match text {
        "0" => Some(Word::Own),
        "XGMI" => Some(Word::Xgmi),
        "PCIE" | "UNKNOWN" | "N/A" => Some(Word::Host),
        _ => None,
    })?;
    if let Some((gpu, _)) =
        types.iter().enumerate().find(|(a, row)| (0..row.len()).any(|b| (*a == b) != (row[b] == Word::Own)))
    {
        let problem =
            format!("row `{}` has 0 for another GPU or a link to itself; 0 stands for the GPU itself", gpus[gpu]);
        return Err(FileError::whole(KIND, problem).of_field(&gpus[gpu]).into());
    }
    let hops = (!hops.columns.is_empty()).then(|| hops.read(&names, |text| text.parse().ok())).transpose()?;
    let node_of = |gpu: &String| numa.get(gpu).copied();
    let numa = gpus.iter().map(node_of).collect();
    Ok(Tables { numa, types, hops, gpus })
}

fn is_gpu(word: &str) -> bool {
    let digits = word.strip_prefix("GPU").unwrap_or_default();
    word.len() <= NAME_MAX && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// `GPU[0] : (Topology) Numa Node: 1`, in older versions `GPU 0`; negative numbers mean that there is none.
fn numa_node(line: &str) -> Option<(String, u64)> {
    let (device, node) = line.split_once(": (Topology) Numa Node:")?;
    let number = device.trim().strip_prefix("GPU")?.trim_matches(['[', ']', ' ']);
    Some((format!("GPU{number}"), node.trim().parse().ok()?))
}

impl<'a> Square<'a> {
    fn add(&mut self, line: usize, text: &'a str) -> Result<(), ImportError> {
        let mut words = text.split_whitespace();
        let Some(first) = words.next().filter(|first| is_gpu(first)) else { return Ok(()) };
        let rest: Vec<&str> = words.collect();
        if !self.columns.is_empty() {
            self.rows.push((line, first, rest));
            return Ok(());
        }
        self.columns = vec![first];
        let mut known = HashSet::from([first]);
        for &name in &rest {
            if !is_gpu(name) || !known.insert(name) {
                let problem = format!("column `{}` must be a GPU that is no other column", shorten(name));
                return Err(FileError::at(KIND, line, problem).into());
            }
            self.columns.push(name);
        }
        Ok(())
    }

    /// The table with its words read, symmetric, with these columns and rows.
    fn read<T: Copy + PartialEq>(
        &self,
        names: &[&str],
        word: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<Vec<T>>, ImportError> {
        let rows: Vec<&str> = self.rows.iter().map(|(_, name, _)| *name).collect();
        if self.columns != names || rows != names {
            let problem =
                "GPUs are missing from a table that another has; all need the same rows and columns, in one order";
            return Err(FileError::whole(KIND, problem).into());
        }
        let mut table: Vec<Vec<T>> = Vec::with_capacity(names.len());
        for (a, (line, name, texts)) in self.rows.iter().enumerate() {
            let error = |problem: String| ImportError::from(FileError::at(KIND, *line, problem).of_field(name));
            if texts.len() != names.len() {
                let (found, wanted) = (texts.len(), names.len());
                return Err(error(format!("row `{name}` has {found} cells for {wanted} GPUs; send the whole table")));
            }
            let unknown =
                |text: &str| error(format!("row `{name}` has `{}`; send what rocm-smi prints", shorten(text)));
            let row =
                texts.iter().map(|text| word(text).ok_or_else(|| unknown(text))).collect::<Result<Vec<T>, _>>()?;
            if let Some(b) = (0..a).find(|&b| table[b][a] != row[b]) {
                let other = names[b];
                return Err(error(format!(
                    "row `{name}` and row `{other}` do not agree on each other; send the output as it is"
                )));
            }
            table.push(row);
        }
        Ok(table)
    }
}
