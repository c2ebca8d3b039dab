//! `canopy convert`: makes an MSCCL file for one runtime of one for another, and says what it did.
//!
//! What is written has been read back and judged as `canopy verify` judges any file; a conversion that would not be
//! right is refused with the reason, and nothing is written.

use std::path::PathBuf;

use canopy_plan::{Profile, convert, oneccl, parse_msccl_xml, read_foreign_msccl_xml, write_msccl_xml};
use serde::Serialize;

use super::verify;
use crate::certificate::count;
use crate::exit::{Failure, words};
use crate::input;
use crate::output::{FORMAT_VERSION, FileSummary, print, print_json, write_file, write_stdout};

/// Largest file that is read: what the readers take.
const FILE_BYTES_MAX: usize = 64 << 20;

/// Make an MSCCL XML file for one runtime of a file for another
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Spelling, missing attributes, the meaning of maxBytes and fused operations are repaired, each change is reported, and the
result is proved and run before it is written.

Examples:
  canopy convert ring.xml --from msccl --to msccl-executor -o ring-executor.xml
  canopy convert pairs.xml --from msccl-executor --to rccl-msccl -o pairs-rccl.xml --json

Exit status: 0 when the new file is right, 2 when the file cannot be read or its conversion would not be right.")]
pub(crate) struct ConvertArgs {
    /// MSCCL XML, also with elements that runtimes pass over
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Runtime the file was made for
    #[arg(long, value_name = "P", default_value = "msccl")]
    from: Profile,
    /// Runtime the new file is for
    #[arg(long, value_name = "P")]
    to: Profile,
    /// Where to write it [default: standard output]
    #[arg(long, short, value_name = "FILE", required_if_eq("json", "true"))]
    output: Option<PathBuf>,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Converted {
    canopy: u32,
    command: &'static str,
    from: &'static str,
    to: &'static str,
    changes: Vec<String>,
    warnings: Vec<String>,
    files: Vec<FileSummary>,
}

/// Refuses files of other formats by their names: what they are made of is no MSCCL file with mistakes.
fn require_msccl(text: &str, name: &str) -> Result<(), Failure> {
    let found = match text.trim_start().starts_with('{') {
        true => "JSON",
        false if oneccl::is_plan(text) => "a oneCCL plan",
        false => return Ok(()),
    };
    let what = format!("{name} is {found}, and convert makes MSCCL XML of MSCCL XML alone");
    Err(Failure::input(what).help("ask for the plan in another format with `canopy plan --format`"))
}

/// Converts, judges, writes and reports.
pub(crate) fn run(args: &ConvertArgs) -> Result<(), Failure> {
    let bytes = input::bytes(&args.file, FILE_BYTES_MAX)?;
    let name = args.file.display();
    let text = std::str::from_utf8(&bytes).map_err(|_| Failure::input(format!("{name} is not UTF-8")))?;
    require_msccl(text, &name.to_string())?;
    let file = read_foreign_msccl_xml(text, args.from, &|| false)
        .map_err(|error| Failure::input(format!("{name}: {}", words(&error))))?;
    let conversion = convert(&file, args.from, args.to)
        .map_err(|error| Failure::input(format!("cannot convert {name}: {}", words(&error))))?;
    let written = write_msccl_xml(&conversion.program, args.to);
    let read = parse_msccl_xml(&written, args.to)
        .map_err(|error| Failure::fault(format!("the converted file cannot be read: {}", words(&error))))?;
    if read != conversion.program {
        return Err(Failure::fault("the converted file, read back, is another program"));
    }
    let verdict = verify::judge_program(&read, args.to);
    if let Some(problem) = verdict.problems.first() {
        let problems = count(verdict.problems.len(), "problem");
        return Err(Failure::input(format!(
            "{name} cannot be made right for {}: {problems}, first {problem}",
            args.to
        ))
        .help(format!("verify the file itself with `canopy verify {name} --profile {}`", args.from)));
    }
    report(args, conversion.changes.iter().map(ToString::to_string).collect(), verdict.warnings, &written)
}

fn report(args: &ConvertArgs, changes: Vec<String>, warnings: Vec<String>, written: &str) -> Result<(), Failure> {
    let Some(path) = &args.output else {
        for line in changes.iter().chain(&warnings) {
            crate::exit::say(line);
        }
        return write_stdout(written.as_bytes());
    };
    write_file(path, written.as_bytes())?;
    if args.json {
        let file = FileSummary {
            profile: Some(args.to.name().to_owned()),
            ..FileSummary::of("msccl-xml", path, written.as_bytes())
        };
        let (from, to) = (args.from.name(), args.to.name());
        let (canopy, command, files) = (FORMAT_VERSION, "convert", vec![file]);
        return print_json(&Converted { canopy, command, from, to, changes, warnings, files });
    }
    let mut lines = vec![format!("{} for {}: {}", path.display(), args.to, count(changes.len(), "change"))];
    lines.extend(changes);
    lines.extend(warnings.iter().map(|warning| format!("warning    {warning}")));
    print(&lines.join("\n"))
}
