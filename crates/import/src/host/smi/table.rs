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
    /// Whether its memory is a NUMA node of its own, as beside Grace CPUs.
    pub(super) has_memory_node: bool,
}

impl Device {
    /// Whether it is in one NUMA node with another, as both say.
    pub(super) fn shares_node(&self, other: &Self) -> bool {
        let node = |device: &Self| device.place.as_deref()?.strip_prefix("NUMA ")?.parse::<u32>().ok();
        node(self).is_some() && node(self) == node(other)
    }

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

/// Whether a file that begins like this is one: the row of a GPU, or the heading of the columns.
pub(crate) fn begins(start: &str) -> bool {
    let is_row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|first| is_numbered(first, "gpu"))
            && (line.contains("cpu affinity") || words.any(|word| word == "x"))
    };
    start.contains("gpu") && start.lines().any(is_row)
}

/// `GPU7` and the like.
fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads the table and its legends. O(bytes).
pub(super) fn read(source: Source<'_>) -> Result<Table, ImportError> {
    let mut reader: Option<Reader> = None;
    for line in source.lines() {
        let (number, line) = line?;
        let words = words_of(line);
        match &mut reader {
            None => reader = Reader::begin(number, &words, source)?,
            Some(reader) => reader.add(number, &words)?,
        }
    }
    let missing = "there is no row of device names above the rows of GPUs; send all that `nvidia-smi topo -m` prints";
    reader.ok_or_else(|| FileError::whole(KIND, missing))?.finish()
}

/// The words of a line. Wide tables have no blank before the heading `CPU Affinity`.
fn words_of(line: &str) -> Vec<&str> {
    let (names, rest) = match line.find("CPU Affinity") {
        Some(place) => line.split_at(place),
        None => (line, ""),
    };
    names.split_whitespace().chain(rest.split_whitespace()).collect()
}

/// Whether words are the heading of a table: names of GPUs, and no cells.
fn is_heading(words: &[&str]) -> bool {
    let is_gpu = |word: &&&str| is_numbered(word, "GPU");
    words.first().is_some_and(|first| is_gpu(&first))
        && words.get(1).is_none_or(|second| *second == "CPU" || cell(second).is_err())
        && !words.contains(&"X")
}

/// A row of cells.
#[derive(Clone)]
struct Row {
    line: usize,
    cells: Vec<Cell>,
    /// The last cell with what is glued to it, if the row has no blank between them: `NV120-31`.
    glued: Option<String>,
    /// Affinities, as far as the row has them.
    affinities: Vec<String>,
}

/// The table up to some line.
struct Reader {
    devices: Vec<Device>,
    position: HashMap<String, usize>,
    /// Rows that have come.
    rows: Vec<Option<Row>>,
    /// Whether a column says the NUMA node.
    has_numa: bool,
    legend: HashMap<String, String>,
}

impl Reader {
    /// The heading, if the line is one: names of devices, then `CPU Affinity`, `NUMA Affinity` and `GPU NUMA ID`.
    fn begin(line: usize, words: &[&str], source: Source<'_>) -> Result<Option<Self>, ImportError> {
        if !is_heading(words) {
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
            let is_gpu = is_numbered(name, "GPU");
            devices.push(Device { name: name.to_owned(), id, is_gpu, place: None, has_memory_node: false });
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
        if is_heading(words) {
            let problem = "a second table begins here; send the table of one machine alone";
            return Err(FileError::at(KIND, line, problem).into());
        }
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
        let (mut cells, mut glued) = (Vec::with_capacity(count), None);
        for (column, text) in texts.iter().enumerate() {
            match cell(text) {
                Ok(cell) => cells.push(cell),
                // Which of the digits are those of the cell, the row of the other device says.
                Err(_) if column + 1 == count && is_glued(text) => glued = Some((*text).to_owned()),
                Err(problem) => return Err(error(problem)),
            }
        }
        let affinities = rest.get(count..).unwrap_or_default().iter().map(|text| (*text).to_owned()).collect();
        if self.rows[place].replace(Row { line, cells, glued, affinities }).is_some() {
            return Err(error(format!("row `{first}` comes twice; keep one")));
        }
        Ok(())
    }

    fn finish(self) -> Result<Table, ImportError> {
        let Self { mut devices, rows, legend, has_numa, .. } = self;
        let mut whole = Vec::with_capacity(rows.len());
        for (row, device) in rows.into_iter().zip(&devices) {
            let missing = || {
                let problem = format!("there is no row of `{}`; send the whole table", device.name);
                FileError::whole(KIND, problem).of_field(&device.name)
            };
            whole.push(row.ok_or_else(missing)?);
        }
        unglue(&mut whole, &devices)?;
        for (row, device) in whole.iter().zip(&mut devices) {
            let said = |number: usize| {
                row.affinities.get(number).filter(|text| text.starts_with(|c: char| c.is_ascii_digit()))
            };
            let numa = said(1).filter(|_| has_numa).map(|numa| format!("NUMA {numa}"));
            device.place = numa.or_else(|| said(0).map(|cpus| format!("CPUs {cpus}")));
            device.has_memory_node = said(2).is_some_and(|node| node.parse::<u32>().is_ok());
        }
        for (a, Row { line, cells, .. }) in whole.iter().enumerate() {
            for (b, &cell) in cells.iter().enumerate().take(a + 1) {
                let (from, to, mirrored) = (&devices[a].name, &devices[b].name, whole[b].cells[a]);
                let problem = if (cell == Cell::Own) != (a == b) {
                    format!("row `{from}` has {} for `{to}`; X stands for the device itself alone", words(cell))
                } else if cell != mirrored {
                    let (here, there) = (words(cell), words(mirrored));
                    format!("row `{from}` has {here} for `{to}`, and row `{to}` {there} for `{from}`; they must agree")
                } else {
                    continue;
                };
                return Err(FileError::at(KIND, *line, problem).of_field(from).into());
            }
        }
        Ok(Table { devices, cells: whole.into_iter().map(|row| row.cells).collect(), legend })
    }
}

/// Whether a text is a cell with an affinity behind it.
fn is_glued(text: &str) -> bool {
    let cell = text.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let is_affinity = |c: char| c.is_ascii_digit() || matches!(c, '-' | ',');
    cell.len() < text.len() && cell.contains(['-', ',']) && cell.chars().all(is_affinity)
}

/// Parts last cells from affinities that are glued to them: a cell is what the row of the other device says.
fn unglue(rows: &mut [Row], devices: &[Device]) -> Result<(), ImportError> {
    let last = rows.len().saturating_sub(1);
    for place in 0..rows.len() {
        let Some(text) = rows[place].glued.take() else { continue };
        let mirrored = match place == last {
            true => Some(Cell::Own),
            false => rows.get(last).and_then(|row| row.cells.get(place)).copied(),
        };
        let behind = mirrored.and_then(|cell| spellings(cell).iter().find_map(|word| text.strip_prefix(word.as_str())));
        let (Some(cell), Some(affinity)) = (mirrored, behind) else {
            let name = &devices[place].name;
            let problem = format!(
                "the last cell of row `{name}` is glued to its CPU affinity, `{}`; put a blank between them",
                shorten(&text)
            );
            return Err(FileError::at(KIND, rows[place].line, problem).of_field(name).into());
        };
        rows[place].affinities.insert(0, affinity.to_owned());
        rows[place].cells.push(cell);
    }
    Ok(())
}

/// Words for a cell, as tables have them.
fn spellings(cell: Cell) -> Vec<String> {
    match cell {
        Cell::Own => vec!["X".to_owned()],
        Cell::NvLink(count) => vec![format!("NV{count}")],
        Cell::Near => ["PIX", "PXB", "PSB"].map(str::to_owned).to_vec(),
        Cell::Host => ["PHB", "NODE"].map(str::to_owned).to_vec(),
        Cell::Far => ["SYS", "SOC"].map(str::to_owned).to_vec(),
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
