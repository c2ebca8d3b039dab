//! `canopy server audit`: whether the audit log of a server is whole.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use canopy_access::audit::{Broken, Chain, LINE_BYTES_MAX, is_file_name};
use clap::Subcommand;
use serde::Serialize;

use crate::exit::Failure;
use crate::output::print_json;
use crate::stdout::print;
use crate::table::count;

/// A server's audit log: verify
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Each line names the hash of the line before it. Keep the last number and hash somewhere else: with --expect, lines
that were taken from the end are noticed as well.

Examples:
  canopy server audit verify /var/lib/canopy/audit
  canopy server audit verify /var/lib/canopy/audit --expect 1042:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
pub(crate) enum AuditCommand {
    /// Verify that no line was changed, taken out or put in
    Verify(VerifyArgs),
}

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Folder of the log
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Line that the log must hold: its number and hash
    #[arg(long, value_name = "NUMBER:HASH")]
    expect: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a log holds.
#[derive(Serialize)]
struct Verified {
    files: usize,
    lines: u64,
    first: u64,
    last: u64,
    hash: String,
}

/// Runs the command.
pub(crate) fn run(command: AuditCommand) -> Result<(), Failure> {
    let AuditCommand::Verify(args) = command;
    let verified = verify(&args)?;
    if args.json {
        return print_json("audit verify", &verified);
    }
    let Verified { files, lines, first, last, hash } = verified;
    print(&format!(
        "{}, {first} to {last}, in {} as they were written\nlast line: {last}:{hash}",
        count(lines, "line"),
        count(files, "file")
    ))
}

fn verify(args: &VerifyArgs) -> Result<Verified, Failure> {
    let expected = args.expect.as_deref().map(expectation).transpose()?;
    let mut has_expected = expected.is_none();
    let paths = files(&args.folder)?;
    let mut chain: Option<Chain> = None;
    let (mut lines, mut first) = (0, 0);
    for path in &paths {
        let cannot = |error: std::io::Error| Failure::input(format!("cannot read {}: {error}", path.display()));
        let mut reader = BufReader::new(File::open(path).map_err(cannot)?);
        for number in 1_u64.. {
            let mut line = String::new();
            let length = (&mut reader).take(LINE_BYTES_MAX).read_line(&mut line).map_err(cannot)?;
            if length == 0 {
                break;
            }
            let broken = |why: Broken| {
                Failure::input(format!("{}, line {number}: {why}", path.display()))
                    .help("compare it with the copy that you keep elsewhere")
            };
            if !line.ends_with('\n') {
                return Err(broken(Broken::NoHash));
            }
            let line = line.trim_end_matches('\n');
            match &mut chain {
                Some(chain) => _ = chain.follow(line).map_err(broken)?,
                // Files before the first one may have been removed to make room.
                None => chain = Some(Chain::after(line).map_err(broken)?.0),
            }
            lines += 1;
            let at = chain.as_ref().map_or((0, ""), |chain| (chain.number(), chain.hash()));
            first = if first == 0 { at.0 } else { first };
            has_expected |= expected.as_ref().is_some_and(|(number, hash)| (*number, hash.as_str()) == at);
        }
    }
    let chain = chain.unwrap_or_default();
    if !has_expected {
        let wanted = args.expect.as_deref().unwrap_or_default();
        return Err(Failure::input(format!(
            "the log does not hold line {wanted}: its end was taken away or written anew"
        )));
    }
    Ok(Verified { files: paths.len(), lines, first, last: chain.number(), hash: chain.hash().to_owned() })
}

fn expectation(text: &str) -> Result<(u64, String), Failure> {
    let parsed = text.split_once(':').and_then(|(number, hash)| Some((number.parse().ok()?, hash.to_owned())));
    parsed.ok_or_else(|| {
        Failure::input(format!("--expect: `{text}` is not NUMBER:HASH"))
            .help("copy the last line of `canopy server audit verify`")
    })
}

/// The files of a log, oldest first.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |error: std::io::Error| Failure::input(format!("cannot read {}: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if is_file_name(name) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
