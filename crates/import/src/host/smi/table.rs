//! The text of the table to cells.

use std::collections::HashMap;

use canopy_topology::shorten;

use super::KIND;
use crate::error::{FileError, ImportError};
use crate::source::Source;

/// Longest name of a device.
const NAME_MAX: usize = 64;
/// Most links that one cell may state.
const LINKS_MAX: u64 = 64;

/// How two devices meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// `X`: it is the same.
    Own,
    /// `NV4`: by so many NVLinks.
    NvLink(u64),
    /// `PIX`, `PXB`, formerly `PSB`: below a host bridge.
    Near,
    /// `PHB`, `NODE`: in one NUMA node.
    Host,
    /// `SYS`, formerly `SOC`: across NUMA nodes.
    Far,
}

/// A GPU or a NIC.
pub(super) struct Device {
    /// As the table has it, and as a node is called.
    pub(super) name: String,
    pub(super) id: String,
    pub(super) is_gpu: bool,
    /// Its NUMA node, else the CPUs that are near to it.
    pub(super) place: Option<String>,
}

impl Device {
    /// Whether it is `NIC0`, which the legend explains.
    pub(super) fn is_numbered_nic(&self) -> bool {
        is_numbered(&self.name, "NIC")
    }
}

/// The table, square and symmetric.
pub(super) struct Table {
    pub(super) devices: Vec<Device>,
    cells: Vec<Vec<Cell>>,
    /// Names of devices behind `NIC0`.
    pub(super) legend: HashMap<String, String>,
}

impl Table {
    /// Each two devices, the earlier one first.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize, Cell)> {
        let row = |(a, row): (usize, &'_ Vec<Cell>)| -> Vec<(usize, usize, Cell)> {
            row.iter().enumerate().skip(a + 1).map(|(b, &cell)| (a, b, cell)).collect()
        };
        self.cells.iter().enumerate().flat_map(row)
    }
}

/// Whether a file that begins like this is one: the row of the first GPU, or the heading of the columns.
pub(crate) fn begins(start: &str) -> bool {
    let is_row = |line: &str| {
        let line = without_escapes(line);
        let mut words = line.split_whitespace();
        words.next() == Some("gpu0") && (words.next() == Some("x") || line.contains("cpu affinity"))
    };
    start.contains("gpu0") && start.lines().any(is_row)
}

/// `GPU7` and the like.
fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The text without codes that underline it on a terminal.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| matches!(letter, '@'..='~'));
        plain.push_str(end.and_then(|end| part.get(end + 1..)).unwrap_or_default());
    }
    plain
}

/// Reads the table and its legends. O(bytes).
pub(super) fn read(source: Source<'_>) -> Result<Table, ImportError> {
    let mut reader: Option<Reader> = None;
    for line in source.lines() {
        let (number, line) = line?;
        let line = without_escapes(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        match &mut reader {
            None => reader = Reader::begin(number, &words, source)?,
            Some(reader) => reader.add(number, &words)?,
        }
    }
    let missing = "there is no row of device names that begins with GPU0; send all that `nvidia-smi topo -m` prints";
    reader.ok_or_else(|| FileError::whole(KIND, missing))?.finish()
}

/// The table up to some line.
struct Reader {
    devices: Vec<Device>,
    position: HashMap<String, usize>,
    /// Rows that have come, with their lines.
    rows: Vec<Option<(usize, Vec<Cell>)>>,
    /// Whether a column says the NUMA node.
    has_numa: bool,
    legend: HashMap<String, String>,
}

impl Reader {
    /// The heading, if the line is one: names of devices, then `CPU Affinity`, `NUMA Affinity` and `GPU NUMA ID`.
    fn begin(line: usize, words: &[&str], source: Source<'_>) -> Result<Option<Self>, ImportError> {
        if !words.first().is_some_and(|first| is_numbered(first, "GPU")) || words.contains(&"X") {
            return Ok(None);
        }
        let names = words.iter().take_while(|word| !matches!(**word, "CPU" | "NUMA" | "GPU"));
        let (mut devices, mut position) = (Vec::new(), HashMap::new());
        for &name in names {
            let id = name.replace([':', '>', '=', ','], "-");
            if name.len() > NAME_MAX || name.contains(char::is_control) {
                let problem = format!("`{}` is no name of a device; it must be GPU0, NIC0 or the like", shorten(name));
                return Err(FileError::at(KIND, line, problem).into());
            }
            if position.insert(name.to_owned(), devices.len()).is_some() {
                return Err(FileError::at(KIND, line, format!("`{name}` is a column twice; name it once")).into());
            }
            devices.push(Device { name: name.to_owned(), id, is_gpu: is_numbered(name, "GPU"), place: None });
        }
        source.require(devices.len(), 0)?;
        let rows = vec![None; devices.len()];
        let has_numa = words.windows(2).any(|pair| pair == ["NUMA", "Affinity"]);
        Ok(Some(Self { devices, position, rows, has_numa, legend: HashMap::new() }))
    }

    /// A row, or a line of a legend; others say nothing.
    fn add(&mut self, line: usize, words: &[&str]) -> Result<(), ImportError> {
        let [first, rest @ ..] = words else { return Ok(()) };
        let error = |problem: String| ImportError::from(FileError::at(KIND, line, problem).of_field(first));
        if let (Some(name), [device]) = (first.strip_suffix(':'), rest) {
            if self.position.contains_key(name) && device.len() <= NAME_MAX {
                self.legend.insert(name.to_owned(), (*device).to_owned());
            }
            return Ok(());
        }
        let Some(&place) = self.position.get(*first) else {
            if rest.contains(&"X") {
                return Err(error(format!(
                    "row `{}` is no device of the columns; add a column or remove it",
                    shorten(first)
                )));
            }
            return Ok(());
        };
        let count = self.devices.len();
        let Some(texts) = rest.get(..count) else {
            return Err(error(format!(
                "row `{first}` has {} cells for {count} columns; send the whole table",
                rest.len()
            )));
        };
        let cells = texts.iter().map(|text| cell(text).map_err(error)).collect::<Result<Vec<_>, _>>()?;
        if self.rows[place].replace((line, cells)).is_some() {
            return Err(error(format!("row `{first}` comes twice; keep one")));
        }
        let said =
            |number: usize| rest.get(count + number).filter(|text| text.starts_with(|c: char| c.is_ascii_digit()));
        let numa = said(1).filter(|_| self.has_numa).map(|numa| format!("NUMA {numa}"));
        self.devices[place].place = numa.or_else(|| said(0).map(|cpus| format!("CPUs {cpus}")));
        Ok(())
    }

    fn finish(self) -> Result<Table, ImportError> {
        let Self { devices, rows, legend, .. } = self;
        let mut cells = Vec::with_capacity(rows.len());
        let mut lines = Vec::with_capacity(rows.len());
        for (row, device) in rows.into_iter().zip(&devices) {
            let missing = || {
                let problem = format!("there is no row of `{}`; send the whole table", device.name);
                FileError::whole(KIND, problem).of_field(&device.name)
            };
            let (line, row) = row.ok_or_else(missing)?;
            cells.push(row);
            lines.push(line);
        }
        for (a, row) in cells.iter().enumerate() {
            for (b, &cell) in row.iter().enumerate().take(a + 1) {
                let (from, to) = (&devices[a].name, &devices[b].name);
                let problem = if (cell == Cell::Own) != (a == b) {
                    format!("row `{from}` has {} for `{to}`; X stands for the device itself alone", words(cell))
                } else if cell != cells[b][a] {
                    let (here, there) = (words(cell), words(cells[b][a]));
                    format!("row `{from}` has {here} for `{to}`, and row `{to}` {there} for `{from}`; they must agree")
                } else {
                    continue;
                };
                return Err(FileError::at(KIND, lines[a], problem).of_field(from).into());
            }
        }
        Ok(Table { devices, cells, legend })
    }
}

fn cell(text: &str) -> Result<Cell, String> {
    let unknown = || {
        let text = shorten(text);
        format!(
            "cell `{text}` is none of X, NV1 to NV{LINKS_MAX}, PIX, PXB, PHB, NODE and SYS; give the output of \
             `nvidia-smi topo -m`"
        )
    };
    Ok(match text {
        "X" => Cell::Own,
        "PIX" | "PXB" | "PSB" => Cell::Near,
        "PHB" | "NODE" => Cell::Host,
        "SYS" | "SOC" => Cell::Far,
        _ => {
            let count = text.strip_prefix("NV").and_then(|count| count.parse().ok());
            Cell::NvLink(count.filter(|count| (1..=LINKS_MAX).contains(count)).ok_or_else(unknown)?)
        }
    })
}

fn words(cell: Cell) -> String {
    match cell {
        Cell::Own => "X".to_owned(),
        Cell::NvLink(count) => format!("NV{count}"),
        Cell::Near => "PIX or PXB".to_owned(),
        Cell::Host => "PHB or NODE".to_owned(),
        Cell::Far => "SYS".to_owned(),
    }
}
