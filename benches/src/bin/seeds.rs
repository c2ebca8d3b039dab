//! The published values of the five documents beside ours: runs the commands of `docs/seeds.md` and says what each gives.
//!
//! `cargo build --release -p canopy-cli -p canopy-tools && cargo run --release -p canopy-benches --bin seeds`
//!
//! Exits with 1 if a value differs from that of the page; `--write` writes it there instead. `--only TEXT` runs the rows with
//! this text, `--quick` those that the tests run.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use canopy_benches::{seeds, timed};
use clap::Parser;

#[derive(Parser)]
struct Options {
    /// The program; the one beside this one if it is not stated.
    #[arg(long)]
    canopy: Option<PathBuf>,
    /// Writes new values into the page.
    #[arg(long)]
    write: bool,
    /// Runs the rows that contain this text.
    #[arg(long)]
    only: Option<String>,
    /// Leaves out the slow rows.
    #[arg(long)]
    quick: bool,
}

#[expect(clippy::print_stdout, reason = "the values are the result")]
fn main() -> Result<ExitCode, Box<dyn Error + Send + Sync>> {
    let options = Options::parse();
    let canopy = match options.canopy {
        Some(path) => fs::canonicalize(path)?,
        None => std::env::current_exe()?.with_file_name("canopy"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("this package lies below the root")?;
    let page_path = root.join("docs/seeds.md");
    let page = fs::read_to_string(&page_path)?;
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let runner = seeds::Runner::new(&canopy, root);
    let mut wrong = 0;
    for row in seeds::rows(&page)? {
        let text = lines.get(row.line).cloned().unwrap_or_default();
        if options.quick && row.is_slow || options.only.as_ref().is_some_and(|only| !text.contains(only.as_str())) {
            continue;
        }
        let (value, time) = timed(|| runner.value(&row));
        let place = format!("{:6.2} s  {} | {}", time.as_secs_f64(), row.place, row.published);
        let value = match value {
            Ok(value) => value,
            Err(error) => {
                println!("{place} | failed: {error}");
                wrong += 1;
                continue;
            }
        };
        let outcome = row.outcome(&value);
        let changed = value != row.ours;
        wrong += u32::from(outcome.is_err() || changed && !options.write);
        let mark = outcome.map_or_else(|error| error.to_string(), |outcome| format!("{outcome:?}"));
        println!("{place} | {value} | {}{mark}", if changed { "CHANGED " } else { "" });
        if options.write
            && let Some(line) = lines.get_mut(row.line)
        {
            *line = seeds::Row::with_value(&text, &value);
        }
    }
    println!("{wrong} not as the page says");
    if options.write {
        let written = lines.join("\n") + "\n";
        // Values that say no reason yet are written too, for someone to look at.
        fs::write(&page_path, seeds::with_counts(&written).unwrap_or(written))?;
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
