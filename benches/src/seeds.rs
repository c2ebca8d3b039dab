//! Published values beside ours: the tables of `docs/seeds.md`, whose rows are commands of `canopy`.
//!
//! A row is `| place | published | canopy | command | field | remark |`. Its commands run with `--json`; its field is
//! arithmetic over fields of the objects that they print, `a:` or nothing for the first command, `b:` for the second and so on:
//! `algbw / 75e9`, `a:sizes.0.time_ps / b:sizes.0.time_ps`, `topologies.[expression=torus:3x3].t_b`. A row whose value is not
//! the published one, to the digits that were published, has a remark that says what it is then ([`Outcome`]) and why. The
//! page has a table of how many rows came out how, [`counts`].

mod field;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use field::Field;

/// Reason why a row has no value.
pub type RowError = Box<dyn Error + Send + Sync>;

/// The cells of a row, in order.
const CELLS: usize = 6;
/// Start of a command's cell; other tables of the page have no such cell.
const COMMAND: &str = "| `";
/// Start of the heading of the table of counts.
const COUNTS: &str = "| document | rows |";
/// Mark of a command that takes longer than a test should.
const SLOW: &str = "(slow)";

/// A published value and how ours is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its line in the page, from 0.
    pub line: usize,
    /// Table, figure or section that publishes the value.
    pub place: String,
    /// The published value: a number with the digits that were printed, a fraction, or one after `≤` or `≥`.
    pub published: String,
    /// Our value as the page has it.
    pub ours: String,
    /// The arguments of `canopy`, of each command.
    pub commands: Vec<Vec<String>>,
    /// Arithmetic over what they print.
    pub field: String,
    /// Why the values differ, or what else a reader should know.
    pub remark: String,
    /// Whether its commands take longer than a test should.
    pub is_slow: bool,
}

/// All rows of a page.
///
/// # Errors
/// A row of a table with commands has too many or too few cells.
pub fn rows(page: &str) -> Result<Vec<Row>, RowError> {
    let lines = page.lines().enumerate().filter(|(_, text)| text.starts_with('|') && text.contains(COMMAND));
    lines.map(|(line, text)| row(line, text).map_err(|error| format!("line {}: {error}", line + 1).into())).collect()
}

fn row(line: usize, text: &str) -> Result<Row, RowError> {
    let cells: Vec<&str> = text.trim().trim_matches('|').split('|').map(str::trim).collect();
    let &[place, published, ours, command, field, remark] = cells.as_slice() else {
        return Err(format!("{} cells instead of {CELLS}", cells.len()).into());
    };
    let codes = command.split('`').skip(1).step_by(2);
    let words = |code: &str| code.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect();
    Ok(Row {
        line,
        place: place.to_owned(),
        published: published.to_owned(),
        ours: ours.to_owned(),
        commands: codes.map(words).collect(),
        field: field.trim_matches('`').to_owned(),
        remark: remark.to_owned(),
        is_slow: command.contains(SLOW),
    })
}

/// What became of a published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Ours is the same, to the digits that were printed.
    Published,
    /// Ours is at most a thousandth away.
    Near,
    /// The remark proves that it cannot hold.
    Refuted,
    /// It was measured, on machines or in a simulator of machines and their software; the source has no model that gives it.
    Measured,
    /// Neither reproduced nor refuted.
    Open,
}

impl Outcome {
    const ALL: [Self; 5] = [Self::Published, Self::Near, Self::Refuted, Self::Measured, Self::Open];

    /// Heading of its column; a remark begins with it and a colon where values differ.
    const fn name(self) -> &'static str {
        match self {
            Self::Published => "as published",
            Self::Near => "within 0.1 %",
            Self::Refuted => "refuted",
            Self::Measured => "measured",
            Self::Open => "open",
        }
    }
}

/// The page with the table that counts what became of its rows: a line for each of its sections, and for all.
///
/// # Errors
/// A row is malformed, or differs and does not say what became of it.
pub fn with_counts(page: &str) -> Result<String, RowError> {
    let rows = rows(page)?;
    let lines: Vec<&str> = page.lines().collect();
    let heading = |line: usize| lines.get(..line)?.iter().rev().find_map(|line| line.strip_prefix("## "));
    let mut found: Vec<(&str, [usize; Outcome::ALL.len()])> = Vec::new();
    for row in &rows {
        let title = heading(row.line).ok_or_else(|| format!("line {}: no heading", row.line + 1))?;
        if found.last().is_none_or(|&(last, _)| last != title) {
            found.push((title, [0; Outcome::ALL.len()]));
        }
        let outcome = row.outcome(&row.ours).map_err(|error| format!("line {}: {error}", row.line + 1))?;
        let place = Outcome::ALL.iter().position(|&other| other == outcome).unwrap_or_default();
        found.last_mut().into_iter().for_each(|(_, counts)| counts[place] += 1);
    }
    let all = std::array::from_fn(|place| found.iter().map(|(_, counts)| counts[place]).sum());
    found.push(("all", all));
    let line = |(title, counts): &(&str, [usize; Outcome::ALL.len()])| {
        let cells: String = counts.iter().map(|count| format!(" {count} |")).collect();
        format!("| {title} | {} |{cells}", counts.iter().sum::<usize>())
    };
    let begin = lines.iter().position(|line| line.starts_with(COUNTS)).ok_or("the page has no table of counts")?;
    let length = lines[begin..].iter().take_while(|line| line.starts_with('|')).count();
    // The lines of the heading stay.
    let (before, after) = (&lines[..begin + 2], &lines[begin + length..]);
    let counted: Vec<String> = found.iter().map(line).collect();
    let counted: Vec<&str> = counted.iter().map(String::as_str).collect();
    Ok([before, counted.as_slice(), after].concat().join("\n") + "\n")
}

/// Runs commands, each once however many rows have it.
#[derive(Debug)]
pub struct Runner<'a> {
    canopy: &'a Path,
    root: &'a Path,
    found: Mutex<BTreeMap<Vec<String>, Value>>,
}

impl<'a> Runner<'a> {
    /// Runs a program in a folder that the commands name files from.
    pub const fn new(canopy: &'a Path, root: &'a Path) -> Self {
        Self { canopy, root, found: Mutex::new(BTreeMap::new()) }
    }

    /// The value that the commands of a row give, as the page writes it.
    ///
    /// # Errors
    /// A command fails, or the field is not in what it prints.
    pub fn value(&self, row: &Row) -> Result<String, RowError> {
        let objects: Vec<Value> = row.commands.iter().map(|words| self.object(words)).collect::<Result<_, _>>()?;
        Ok(written(Field::new(&row.field, &objects).value()?))
    }

    fn object(&self, words: &[String]) -> Result<Value, RowError> {
        let found = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = found().get(words) {
            return Ok(known.clone());
        }
        let object = object(self.canopy, self.root, words)?;
        found().insert(words.to_vec(), object.clone());
        Ok(object)
    }
}

impl Row {
    /// Whether a value is the published one, to its digits.
    ///
    /// # Errors
    /// The published value or ours is not a number.
    pub fn agrees(&self, ours: &str) -> Result<bool, RowError> {
        let ours = number(ours)?;
        if let Some(most) = self.published.strip_prefix("≤ ") {
            return Ok(ours <= number(most)? * (1.0 + NEARLY));
        }
        if let Some(least) = self.published.strip_prefix("≥ ") {
            return Ok(ours >= number(least)? * (1.0 - NEARLY));
        }
        let published = number(&self.published)?;
        let unit = if self.published.contains('/') { 0.0 } else { last_digit(&self.published) };
        Ok((ours - published).abs() <= unit / 2.0 + published.abs() * NEARLY)
    }

    /// What became of the published value if ours is this.
    ///
    /// # Errors
    /// A value is not a number; ours differs, and the remark does not say what that is.
    pub fn outcome(&self, ours: &str) -> Result<Outcome, RowError> {
        if self.agrees(ours)? {
            return Ok(Outcome::Published);
        }
        let limit = self.published.trim_start_matches(['≤', '≥', ' ']);
        if (number(ours)? - number(limit)?).abs() <= number(limit)?.abs() * NEAR {
            return Ok(Outcome::Near);
        }
        let says =
            |outcome: &Outcome| self.remark.strip_prefix(outcome.name()).is_some_and(|rest| rest.starts_with(": "));
        let told = [Outcome::Refuted, Outcome::Measured, Outcome::Open].into_iter().find(says);
        told.ok_or_else(|| format!("{}: {ours} is not {}, and no remark says why", self.place, self.published).into())
    }

    /// A line of the page with another value of ours.
    pub fn with_value(page_line: &str, value: &str) -> String {
        let mut cells: Vec<String> = page_line.split('|').map(str::to_owned).collect();
        if let Some(cell) = cells.get_mut(3) {
            *cell = format!(" {value} ");
        }
        cells.join("|")
    }
}

/// Relative error of a value that is printed with five digits.
const NEARLY: f64 = 1e-4;
/// Relative error of a value that another solver found.
const NEAR: f64 = 1e-3;

/// Runs `canopy` without any server, and with a data folder of its own.
fn object(canopy: &Path, root: &Path, words: &[String]) -> Result<Value, RowError> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(canopy);
    command.args(words).arg("--json").current_dir(root).stdin(Stdio::null());
    command.env_remove("CANOPY_SERVER").env("CANOPY_DATA_DIR", folder.path().join("data"));
    if words.first().is_some_and(|word| word == "plan") {
        command.arg("-o").arg(folder.path().join("plan.json"));
    }
    if words.first().is_some_and(|word| word == "find") {
        command.args(["--deadline", "10m"]);
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("`{}`: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(serde_json::from_str(text.lines().last().unwrap_or_default())?)
}

/// A number of a page: decimal, or a fraction.
fn number(text: &str) -> Result<f64, RowError> {
    let parsed = match text.split_once('/') {
        Some((above, below)) => above.trim().parse::<f64>()? / below.trim().parse::<f64>()?,
        None => text.trim().parse()?,
    };
    if parsed.is_finite() { Ok(parsed) } else { Err(format!("`{text}` is not a number").into()) }
}

/// Worth of a unit of the last printed digit: 0.01 for `2.17`, 1e-4 for `2.17e-2`.
fn last_digit(text: &str) -> f64 {
    let (digits, power) = text.split_once('e').unwrap_or((text, "0"));
    let after_point = digits.split_once('.').map_or(0, |(_, after)| after.len());
    let power: i32 = power.parse().unwrap_or(0);
    10_f64.powi(power - i32::try_from(after_point).unwrap_or(i32::MAX))
}

/// Five digits, without zeros at the end; a power of ten if it is small.
fn written(value: f64) -> String {
    let magnitude = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    if magnitude < -2.0 {
        return format!("{value:.4e}");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 6, at least 0")]
    let places = (4.0 - magnitude).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Values\n\n| document | rows | … |\n|---|\n| old |\n\n## First\n\n| place | published | canopy | command | field | remark |\n|---|---|---|---|---|---|\n\
        | 1 | 2.170e-2 | 0.0217 | `bound 'line:1(complete:3)' -c all-to-all` (slow) | `bound.algbw / 64` | why |\n";

    #[test]
    fn rows_are_read() {
        let rows = rows(PAGE).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].commands, [["bound", "line:1(complete:3)", "-c", "all-to-all"]]);
        assert!(rows[0].is_slow && rows[0].line == 10 && rows[0].remark == "why");
        let line = PAGE.lines().nth(10).unwrap();
        assert_eq!(Row::with_value(line, "7"), line.replace("0.0217 ", "7 "));
        assert!(super::rows("| a | `a` |").unwrap_err().to_string().starts_with("line 1: "));
    }

    #[test]
    fn values_agree_to_the_digits_that_were_published() {
        let with = |published: &str| Row { published: published.to_owned(), ..rows(PAGE).unwrap().remove(0) };
        for (published, ours, agrees) in [
            ("2.17e-2", "0.021708", true),
            ("2.17e-2", "0.02176", false),
            ("99", "99.4", true),
            ("99", "99.6", false),
            ("1/9", "0.11111", true),
            ("≤ 4", "4", true),
            ("≥ 0.95", "0.94", false),
        ] {
            assert_eq!(with(published).agrees(ours).unwrap(), agrees, "{published} {ours}");
        }
        assert!(with("four").agrees("4").is_err());
    }

    #[test]
    fn rows_are_counted() {
        let counted = with_counts(PAGE).unwrap();
        let table = "| document | rows | … |\n|---|\n| First | 1 | 1 | 0 | 0 | 0 | 0 |\n| all | 1 | 1 | 0 | 0 | 0 | 0 |\n\n## First";
        assert!(counted.contains(table), "{counted}");
        assert_eq!(with_counts(&counted).unwrap(), counted);
        for (ours, remark, counts) in [
            ("0.021704", "why", "1 | 0 | 0 | 0 | 0"),
            ("0.02172", "why", "0 | 1 | 0 | 0 | 0"),
            ("0.03", "refuted: why", "0 | 0 | 1 | 0 | 0"),
            ("0.03", "measured: why", "0 | 0 | 0 | 1 | 0"),
            ("0.03", "open: why", "0 | 0 | 0 | 0 | 1"),
        ] {
            let page = PAGE.replace("0.0217 ", &format!("{ours} ")).replace("| why |", &format!("| {remark} |"));
            assert!(with_counts(&page).unwrap().contains(&format!("| First | 1 | {counts} |")), "{ours} {remark}");
        }
        let untold = with_counts(&PAGE.replace("0.0217 ", "0.03 ")).unwrap_err();
        assert!(untold.to_string().contains("no remark says why"), "{untold}");
    }

    #[test]
    fn values_are_written_with_five_digits() {
        for (value, text) in
            [(1.0 / 3.0, "0.33333"), (12345.678, "12346"), (0.000_217_08, "2.1708e-4"), (4.0, "4"), (0.0, "0")]
        {
            assert_eq!(written(value), text);
        }
    }
}
