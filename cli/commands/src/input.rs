//! The topology argument of every command, T: a file or a generator expression.

use std::fmt::Display;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::str::FromStr;
use std::string::FromUtf8Error;
use std::sync::OnceLock;

use canopy_client::ErrorClass;
use canopy_planner::{PlanError, TopologyInput, Warning, assumptions, read_reported};
use canopy_topology::{
    HOST_FILE_BYTES_MAX, SITE_BYTES_MAX, SiteRates, SiteRatesError, Topology, TopologyLimits, read_nodes,
    read_nodes_file, to_yaml,
};

use crate::clock::Deadline;
use crate::exit::{Failure, words};
use crate::table;
use crate::{around, calibration, messages};

/// Largest plan file that is read.
pub(crate) const PLAN_BYTES_MAX: usize = 1 << 30;

/// What T turned out to be.
#[derive(Debug)]
pub(crate) enum Source {
    /// The text of an existing file; where no such file exists an expression. Not looked at yet.
    Here(TopologyInput),
    /// No such file exists, and it is the id of a topology that a server keeps.
    Stored,
    /// No such file exists, and it is a part of a cluster that a server keeps.
    Cluster(Part),
}

/// Some machines of a cluster that a server keeps, as `clusters/NAME:HOSTLIST` names them; without a list all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) cluster: String,
    pub(crate) nodes: Vec<String>,
}

/// What the names of clusters begin with at a server.
pub(crate) const CLUSTERS: &str = "clusters/";

/// The part of a cluster that T is, if it is one.
pub(crate) fn part_of(text: &str) -> Option<Part> {
    text.starts_with(CLUSTERS).then(|| {
        let (cluster, nodes) = text.split_once(':').unwrap_or((text, ""));
        let nodes = Some(nodes.to_owned()).filter(|nodes| !nodes.is_empty());
        Part { cluster: cluster.to_owned(), nodes: nodes.into_iter().collect() }
    })
}

/// Reads T if it is a file. An existing file wins over an expression of the same spelling.
///
/// # Errors
/// A file that cannot be read or is too large, and a name that can only be meant as a path but leads nowhere.
pub(crate) fn source(text: &str) -> Result<Source, Failure> {
    match as_described(text)? {
        Source::Here(input) => measured(text, input),
        kept => Ok(kept),
    }
}

/// T before `--calibration` changes it.
fn as_described(text: &str) -> Result<Source, Failure> {
    match (read_file(Path::new(text), limits()?.bytes_max), part_of(text)) {
        (Ok(bytes), _) => Ok(Source::Here(text_of_file(bytes))),
        (Err(ReadFailure::Missing), part) if part.is_some() || text.starts_with("topologies/") => {
            if calibration::overlay().is_some() {
                return Err(Failure::input(format!(
                    "`{}` is kept by a server as it is described, and --calibration is for networks that are given here",
                    shortened(text)
                ))
                .help(format!("write it into a file: `canopy network get {} -o FILE`", shortened(text))));
            }
            Ok(part.map_or(Source::Stored, Source::Cluster))
        }
        (Err(ReadFailure::Missing), _) if text.split_once(',').is_some_and(|(file, _)| Path::new(file).is_file()) => {
            let (file, keys) = text.split_once(',').unwrap_or((text, ""));
            Err(Failure::input(format!("{file} is a file, and takes no keys such as `{}`", shortened(keys))).help(
                "take elements away from it with `--fault`, such as `--fault link:A=B` or `--fault 'link:A>B*1/2'`",
            ))
        }
        (Err(ReadFailure::Missing), _) if looks_like_path(text) => {
            Err(Failure::input(format!("`{text}` is neither an existing file nor a generator expression"))
                .help("check the path, or write an expression such as `ring:8` or `dgx-h100:boxes=2`"))
        }
        (Err(ReadFailure::Missing), _) => Ok(Source::Here(TopologyInput::Expression(completed(text)?))),
        (Err(ReadFailure::Other(failure)), _) => Err(failure),
    }
}

/// What T stands for, as `--calibration` says that it was measured.
fn measured(name: &str, input: TopologyInput) -> Result<Source, Failure> {
    let Some(overlay) = calibration::overlay() else { return Ok(Source::Here(input)) };
    let described = read(name, &input, Deadline::after(None))?;
    let topology = overlay.apply(&described).map_err(|error| Failure::input(format!("{name}: {}", words(&error))))?;
    let content = to_yaml(&topology).into_bytes().into();
    Ok(Source::Here(TopologyInput::Document { kind: None, content }))
}

/// Network T as it is described, where `--calibration` changes it; `None` where nothing does.
pub(crate) fn described(text: &str) -> Result<Option<Topology>, Failure> {
    match calibration::overlay().map(|_| as_described(text)).transpose()? {
        Some(Source::Here(input)) => read(text, &input, Deadline::after(None)).map(Some),
        _ => Ok(None),
    }
}

/// The nodes of a job, as a list or a file of them; none if neither is given.
pub(crate) fn nodes(list: Option<&str>, file: Option<&Path>) -> Result<Option<Vec<String>>, Failure> {
    match (list, file) {
        (Some(list), _) => read_nodes(list).map(Some).map_err(|error| Failure::input(error.to_string())),
        (None, Some(file)) => {
            let refused = |error| Failure::input(format!("{}: {error}", file.display()));
            read_nodes_file(&text(file, HOST_FILE_BYTES_MAX)?).map(Some).map_err(refused)
        }
        (None, None) => Ok(None),
    }
}

/// Names the file of what the site states of families.
const SITE_VARIABLE: &str = "CANOPY_FAMILY_RATES";

/// An expression with the rates that the site states of its family.
///
/// # Errors
/// The file of the site cannot be read.
pub(crate) fn completed(expression: &str) -> Result<String, Failure> {
    let Some(path) = std::env::var_os(SITE_VARIABLE).filter(|path| !path.is_empty()) else {
        return Ok(expression.to_owned());
    };
    let refused = |error: SiteRatesError| Failure::input(format!("{}: {}", Path::new(&path).display(), words(&error)));
    let rates = SiteRates::read(&text(Path::new(&path), SITE_BYTES_MAX)?).map_err(refused)?;
    Ok(rates.apply(expression).unwrap_or_else(|| expression.to_owned()))
}

/// T where it must be here.
///
/// # Errors
/// As [`source`]; a topology that a server keeps.
pub(crate) fn unread(text: &str) -> Result<TopologyInput, Failure> {
    match source(text)? {
        Source::Here(input) => Ok(input),
        Source::Stored | Source::Cluster(_) => {
            Err(Failure::input(format!("`{}` is kept by a server, and is needed here", shortened(text)))
                .help(format!("write it into a file: `canopy network get {} -o FILE`", shortened(text))))
        }
    }
}

/// The content of a file, in the format that it begins like.
fn text_of_file(bytes: Vec<u8>) -> TopologyInput {
    TopologyInput::Document { kind: None, content: bytes.into() }
}

/// Builds the topology that a text stands for, with warnings of its importer on standard error: one that can be searched.
pub(crate) fn topology(text: &str) -> Result<Topology, Failure> {
    read_within(text, &unread(text)?, &limits()?.searched(), Deadline::after(None))
}

/// What `--fault` leaves of T, one that can be searched, within a deadline.
pub(crate) fn topology_until(text: &str, deadline: Deadline) -> Result<Topology, Failure> {
    around::left_of(read_within(text, &unread(text)?, &limits()?.searched(), deadline)?)
}

/// The same of any size.
pub(crate) fn large_topology_until(text: &str, deadline: Deadline) -> Result<Topology, Failure> {
    around::left_of(read(text, &unread(text)?, deadline)?)
}

/// Reads a topology document; `name` is where it came from.
pub(crate) fn document(name: &str, bytes: Vec<u8>, deadline: Deadline) -> Result<Topology, Failure> {
    read(name, &text_of_file(bytes), deadline)
}

/// Reads what T stands for; `name` is T.
pub(crate) fn read(name: &str, input: &TopologyInput, deadline: Deadline) -> Result<Topology, Failure> {
    read_within(name, input, &limits()?, deadline)
}

fn read_within(
    name: &str,
    input: &TopologyInput,
    limits: &TopologyLimits,
    deadline: Deadline,
) -> Result<Topology, Failure> {
    let read = read_reported(input, limits, &|| deadline.is_past());
    let (topology, _, report) = read.map_err(|error| match error {
        PlanError::Stopped => Failure::new(ErrorClass::Deadline, format!("the deadline came before {name} was read"))
            .help("allow more time"),
        error => refused(name, error),
    })?;
    report.understood.iter().for_each(|line| messages::detail(|| format!("{name}: {line}")));
    warn(name, &assumptions(&report));
    Ok(topology)
}

/// Says what the reader of T wants to be known; which devices its ranks are is for who runs a plan.
pub(crate) fn warn(name: &str, warnings: &[Warning]) {
    let of_network = warnings.iter().filter(|warning| warning.code != "RANK_MAP_ASSUMED");
    of_network.for_each(|warning| messages::warn(format_args!("{name}: {}", warning.text)));
}

/// Why T is no topology, or nothing can be planned on it.
pub(crate) fn refused(name: &str, error: PlanError) -> Failure {
    match error {
        PlanError::Expression(error) => {
            let failure = located(format!("`{}`: {}", shortened(name), words(&error)), error.field());
            if name.contains([':', '(']) {
                failure
            } else {
                failure.help(format!("no file `{name}` exists, so it was read as a generator expression"))
            }
        }
        PlanError::Document(error) => located(format!("{name}: {}", words(&error)), error.field()),
        PlanError::Root(error) => Failure::input(error.to_string()),
        // Its parts are for who is asked about the network.
        PlanError::Apart { failure, .. } => refused(name, *failure),
        error if error.is_cancellation() => {
            Failure::new(ErrorClass::Deadline, "deadline exceeded before the plan was made").help("raise `--deadline`")
        }
        error if error.fault().is_some() => Failure::fault(words(&error)),
        error => Failure::new(ErrorClass::Infeasible, words(&error)),
    }
}

/// Greatest topology: the limits of every server that is told no others, by the same variables.
pub(crate) fn limits() -> Result<TopologyLimits, Failure> {
    let limits = canopy_service::Limits::of_environment();
    limits.map(|limits| limits.topology).map_err(|error| Failure::input(error.to_string()))
}

/// The same where it is read from a plan file, which may be longer.
pub(crate) fn plan_limits() -> Result<TopologyLimits, Failure> {
    Ok(TopologyLimits { bytes_max: PLAN_BYTES_MAX, ..limits()? })
}

/// As much of an expression as a person reads.
pub(crate) fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 121;
    table::shortened(text, CHARACTERS_MAX)
}

/// The bytes of a file that must exist and have at most `limit` bytes.
pub(crate) fn bytes(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    read_file(path, limit).map_err(|failure| match failure {
        ReadFailure::Missing => Failure::input(format!("{}: no such file", path.display()))
            .help("check the path; this command reads a file"),
        ReadFailure::Other(failure) => failure,
    })
}

/// The text of a file that must exist and have at most `limit` bytes.
pub(crate) fn text(path: &Path, limit: usize) -> Result<String, Failure> {
    let refuse = |error: FromUtf8Error| Failure::input(format!("{}: {}", path.display(), error.utf8_error()));
    String::from_utf8(bytes(path, limit)?).map_err(refuse)
}

enum ReadFailure {
    Missing,
    Other(Failure),
}

/// What keeps a file from being read.
pub(crate) fn cannot_read(path: &Path, error: &dyn Display) -> Failure {
    Failure::input(format!("cannot read {}: {error}", path.display()))
}

/// Reads at most the limit and one byte, so that a pipe or a growing file cannot fill the memory.
fn read_file(path: &Path, limit: usize) -> Result<Vec<u8>, ReadFailure> {
    let refuse = |error: std::io::Error| match error.kind() {
        // A name too long for the file system, or with a zero byte, is no file either.
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename | ErrorKind::InvalidInput => {
            ReadFailure::Missing
        }
        _ => ReadFailure::Other(cannot_read(path, &error)),
    };
    let bytes = beginning(path, limit).map_err(refuse)?;
    if bytes.len() > limit {
        let message = format!(
            "{}: the document has more than {limit} bytes; send a smaller one, or raise CANOPY_MAX_REQUEST_BYTES",
            path.display()
        );
        return Err(ReadFailure::Other(Failure::input(message)));
    }
    Ok(bytes)
}

/// The name under which commands read standard input.
pub(crate) const STDIN: &str = "-";

/// What came over standard input: an argument may be looked at more than once, and a stream comes only once.
static STDIN_BYTES: OnceLock<Vec<u8>> = OnceLock::new();

/// All of a file, or one byte more than the limit; `-` is standard input.
///
/// # Errors
/// It cannot be opened or read.
pub(crate) fn beginning(path: &Path, limit: usize) -> std::io::Result<Vec<u8>> {
    if path == Path::new(STDIN) { stdin(limit) } else { read_to(limit, File::open(path)?) }
}

fn stdin(limit: usize) -> std::io::Result<Vec<u8>> {
    if let Some(bytes) = STDIN_BYTES.get() {
        return Ok(bytes.clone());
    }
    let bytes = read_to(limit, std::io::stdin().lock())?;
    Ok(STDIN_BYTES.get_or_init(|| bytes).clone())
}

/// What came over standard input, if it was read.
pub(crate) fn taken_from_stdin() -> Option<&'static [u8]> {
    STDIN_BYTES.get().map(Vec::as_slice)
}

/// All of a stream, or one byte more than the limit.
fn read_to(limit: usize, stream: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn looks_like_path(text: &str) -> bool {
    let extensions = [".yaml", ".yml", ".json", ".xml"];
    text.contains(['/', '\\']) && !text.contains(['=', '('])
        || text.starts_with('.')
        || extensions.iter().any(|extension| text.to_ascii_lowercase().ends_with(extension))
}

/// A failure that names the field, unless its words already do.
fn located(message: String, field: Option<String>) -> Failure {
    match field {
        Some(field) if !message.contains(&field) => Failure::input(message).note(format!("at {field}")),
        _ => Failure::input(message),
    }
}

/// A whole number of digits alone, without a sign, if it fits.
pub(crate) fn digits<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Reads `3` or `8-15`, both ends included.
pub(crate) fn range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    digits(first).zip(digits(last)).filter(|(first, last)| first <= last)
}

/// The text of a file that an option names; `instead` says what to do about one of more than `bytes_max`.
pub(crate) fn file_text(path: &str, bytes_max: usize, instead: &str) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("`{path}` cannot be read: {error}");
    let bytes = beginning(Path::new(path), bytes_max).map_err(unreadable)?;
    let content = String::from_utf8(bytes).map_err(|_| format!("`{path}` is not UTF-8 text"))?;
    if content.len() > bytes_max {
        return Err(format!("`{path}` is longer than {bytes_max} bytes; {instead}"));
    }
    Ok(content)
}
