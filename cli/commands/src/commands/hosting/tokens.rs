//! `canopy server tokens`: makes and revokes the tokens of a server, in the file that the server reads.
//!
//! The file is found as the server finds it: by its configuration. The server reads the file again when an unknown token
//! is shown, and twice a second otherwise, so it needs no message.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use canopy_access::{Policy, Purpose, Roles, StoredToken, TokenChance, TokenError, Tokens};
use canopy_server::Settings;
use clap::Subcommand;
use serde::Serialize;

use crate::args;
use crate::clock;
use crate::exit::Failure;
use crate::input;
use crate::messages;
use crate::output::{print_json, print_member};
use crate::stdout::print;
use crate::table::Table;

/// Most bytes of the file of tokens, and of that of rules.
const FILE_BYTES_MAX: usize = 4 << 20;
/// How long a token is valid where nothing is said.
const LIFETIME_DEFAULT: Duration = Duration::from_secs(90 * 24 * 3600);

/// Tokens that callers show to a server: create, list, revoke
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Tokens are kept as salted hashes in a file of the server, by default tokens.json in its data folder. The file is that of
the server's configuration: --config, else /etc/canopy/canopyd.toml if it exists. A new token counts at once, a revoked one is
refused within a second.

Examples:
  sudo -u canopy canopy server tokens create kueue --role planner --tenant red --ttl 720h
  canopy server tokens create me --role planner,fault-reporter --data-dir ~/canopy -o me.token
  canopy server tokens list
  canopy server tokens revoke kueue")]
pub(crate) enum TokensCommand {
    /// Make a token and print it: the only time that it can be seen
    Create(CreateArgs),
    /// List all tokens, without their secrets
    List(ListArgs),
    /// Revoke a token by its name or identifier
    Revoke(RevokeArgs),
}

/// The file of tokens.
#[derive(Debug, clap::Args)]
pub(crate) struct FileArgs {
    /// Configuration of the server, which says where its tokens and rules are [default: /etc/canopy/canopyd.toml, if it
    /// exists and neither --tokens nor --data-dir is given]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// File of tokens [default: that of the configuration, else tokens.json in the data folder]
    #[arg(long, value_name = "FILE", env = "CANOPY_TOKENS", hide_env_values = true)]
    tokens: Option<PathBuf>,
    /// Data folder of the server [default: that of the configuration, else $XDG_DATA_HOME/canopy, else
    /// ~/.local/share/canopy]
    #[arg(long, value_name = "DIR", env = "CANOPY_DATA_DIR", hide_env_values = true)]
    data_dir: Option<PathBuf>,
    /// File of rules that names further roles [default: that of the configuration]
    #[arg(long, value_name = "FILE", env = "CANOPY_ACCESS", hide_env_values = true)]
    access: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `create`.
#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// Whose token it is, for people and logs
    name: String,
    /// What it may do: viewer, planner, fault-reporter, operator, admin, or a role of the rules
    #[arg(long = "role", value_name = "ROLE", value_delimiter = ',', required = true)]
    roles: Vec<String>,
    /// For which tenant, the first where calls name none; `*` for all [default: what is shared]
    #[arg(long = "tenant", value_name = "TENANT", value_delimiter = ',')]
    tenants: Vec<String>,
    /// How long it is valid [default: 2160h, 90 days]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    ttl: Option<Duration>,
    /// File for the token, which only its owner may read [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    file: FileArgs,
}

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    file: FileArgs,
}

/// Arguments of `revoke`.
#[derive(Debug, clap::Args)]
pub(crate) struct RevokeArgs {
    /// Its name or identifier
    name: String,
    #[command(flatten)]
    file: FileArgs,
}

/// A token as it is shown.
#[derive(Serialize)]
struct Row {
    id: String,
    name: String,
    roles: Vec<String>,
    tenants: Vec<String>,
    state: &'static str,
    expires_ms: u64,
}

/// A token that was made.
#[derive(Serialize)]
struct Created<'a> {
    /// The token itself, where it is not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    /// The server's file of tokens, which was changed.
    file: &'a str,
    #[serde(flatten)]
    row: Row,
}

impl Row {
    fn of(token: &StoredToken, now_ms: u64) -> Self {
        let state = match token {
            StoredToken { revoked_ms: Some(_), .. } => "revoked",
            StoredToken { expires_ms, .. } if *expires_ms <= now_ms => "expired",
            StoredToken { .. } => "valid",
        };
        Self {
            id: token.id.clone(),
            name: token.name.clone(),
            roles: token.roles.clone(),
            tenants: token.tenants.clone(),
            state,
            expires_ms: token.expires_ms,
        }
    }
}

/// Runs the command.
pub(crate) fn run(command: TokensCommand) -> Result<(), Failure> {
    match command {
        TokensCommand::Create(args) => create(&args),
        TokensCommand::List(args) => list(&args),
        TokensCommand::Revoke(args) => revoke(&args),
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let now_ms = clock::since_1970_ms();
    let lifetime = u64::try_from(args.ttl.unwrap_or(LIFETIME_DEFAULT).as_millis()).unwrap_or(u64::MAX);
    let purpose = Purpose {
        name: &args.name,
        roles: &args.roles,
        tenants: &args.tenants,
        expires_ms: now_ms.saturating_add(lifetime),
    };
    let chance = chance()?;
    let files = args.file.files()?;
    let made = changed(&files, |tokens, roles| tokens.create(&purpose, roles, now_ms, &chance))?;
    if let Some(path) = &args.output {
        write_secret(path, format!("{}\n", *made.text).as_bytes(), |_| Ok(()))?;
    }
    let row = Row::of(&made.stored, now_ms);
    let changed = files.tokens.display().to_string();
    match (&args.output, args.file.json) {
        (None, true) => print_json("tokens create", &Created { token: Some(&made.text), file: &changed, row }),
        (Some(_), true) => print_json("tokens create", &Created { token: None, file: &changed, row }),
        (None, false) => {
            messages::say(&format!("token {} of {} is in {changed}", row.id, row.name));
            print(&made.text)
        }
        (Some(path), false) => {
            print(&format!("{}: token {} of {}, which is in {changed}", path.display(), row.id, row.name))
        }
    }
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let now_ms = clock::since_1970_ms();
    let files = args.file.files()?;
    let tokens = read(&files.tokens, &files.roles()?)?;
    let rows: Vec<Row> = tokens.iter().map(|token| Row::of(token, now_ms)).collect();
    if args.file.json {
        return print_member("tokens list", "tokens", rows);
    }
    let mut table = Table::new(&["ID", "NAME", "ROLES", "TENANTS", "STATE", "DAYS LEFT"]);
    for row in rows {
        let days = row.expires_ms.saturating_sub(now_ms) / (24 * 3600 * 1000);
        let tenants = if row.tenants.is_empty() { "-".to_owned() } else { row.tenants.join(",") };
        table.row([row.id, row.name, row.roles.join(","), tenants, row.state.to_owned(), days.to_string()]);
    }
    print(&table.text())
}

fn revoke(args: &RevokeArgs) -> Result<(), Failure> {
    let now_ms = clock::since_1970_ms();
    let files = args.file.files()?;
    let revoked = changed(&files, |tokens, _| tokens.revoke(&args.name, now_ms))?;
    let rows: Vec<Row> = revoked.iter().map(|token| Row::of(token, now_ms)).collect();
    if args.file.json {
        return print_member("tokens revoke", "revoked", rows);
    }
    let lines: Vec<String> = rows.iter().map(|row| format!("revoked {} of {}", row.id, row.name)).collect();
    print(&format!("{}, in {}", lines.join("\n"), files.tokens.display()))
}

/// Configuration of a server that was installed from a package.
const INSTALLED_CONFIG: &str = "/etc/canopy/canopyd.toml";

/// The files of a server that decide about tokens.
struct Files {
    tokens: PathBuf,
    /// Rules that name further roles.
    access: Option<PathBuf>,
}

impl FileArgs {
    /// The files that the server itself reads: what a flag names goes before the configuration.
    fn files(&self) -> Result<Files, Failure> {
        let installed = Path::new(INSTALLED_CONFIG);
        let config = match &self.config {
            None if self.tokens.is_none() && self.data_dir.is_none() && installed.exists() => Some(installed),
            stated => stated.as_deref(),
        };
        let refused = |error: canopy_server::ConfigError| Failure::input(error.to_string());
        let configured = config.map(Settings::read).transpose().map_err(refused)?.unwrap_or_default();
        let tokens = match self.tokens.clone().or(configured.tokens.filter(|_| self.data_dir.is_none())) {
            Some(path) => path,
            None => match self.data_dir.clone().or(configured.data_dir) {
                Some(folder) => folder.join("tokens.json"),
                None => canopy_service::data_dir_default()
                    .map_err(|error| Failure::input(error.to_string()))?
                    .join("tokens.json"),
            },
        };
        Ok(Files { tokens, access: self.access.clone().or(configured.access) })
    }
}

impl Files {
    fn roles(&self) -> Result<Roles, Failure> {
        let Some(path) = &self.access else { return Ok(Roles::default()) };
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let text = input::text(path, FILE_BYTES_MAX)?;
        let read = |named: &canopy_access::IssuerFiles| {
            std::fs::read_to_string(folder.join(&named.path)).map_err(|error| error.to_string())
        };
        let refused = |error| Failure::input(format!("{}: {error}", path.display()));
        Policy::read(&text, read).map(|policy| policy.roles().clone()).map_err(refused)
    }
}

fn read(path: &Path, roles: &Roles) -> Result<Tokens, Failure> {
    if !path.exists() {
        return Ok(Tokens::default());
    }
    let refused = |error: TokenError| Failure::input(format!("{}: {error}", path.display()));
    Tokens::read(&input::text(path, FILE_BYTES_MAX)?, roles).map_err(refused)
}

/// Changes the file of tokens under its lock.
fn changed<T>(files: &Files, change: impl FnOnce(&mut Tokens, &Roles) -> Result<T, TokenError>) -> Result<T, Failure> {
    let path = &files.tokens;
    let roles = files.roles()?;
    let cannot = |error: std::io::Error| cannot_write(path, &error);
    let folder = folder_of(path);
    std::fs::create_dir_all(folder).map_err(cannot)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let lock_path = path.with_file_name(name);
    let lock = File::create(&lock_path).map_err(cannot)?;
    hand_over(&lock, folder).map_err(cannot)?;
    lock.lock().map_err(cannot)?;
    let mut tokens = read(path, &roles)?;
    let outcome = change(&mut tokens, &roles).map_err(|error| Failure::input(error.to_string()))?;
    // The server must be able to read it.
    write_secret(path, tokens.write().as_bytes(), |file| hand_over(file, folder))?;
    Ok(outcome)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::input(format!("cannot write {}: {error}", path.display()));
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => failure.help(
            "run it as the user that the server runs as (sudo -u canopy canopy server tokens …), or name another server's folder \
             with --data-dir",
        ),
        _ => failure,
    }
}

/// Writes a file that only its owner may read, whole or not at all; `prepare` sees it while it is empty.
fn write_secret(path: &Path, bytes: &[u8], prepare: impl FnOnce(&File) -> std::io::Result<()>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| cannot_write(path, &error);
    // Temporary files are their owner's alone.
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path)).map_err(cannot)?;
    prepare(file.as_file()).map_err(cannot)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(cannot)?;
    file.persist(path).map(drop).map_err(|error| cannot(error.error))
}

/// Gives a new file to the owner of its folder where root has made it; other users own what they make.
fn hand_over(file: &File, folder: &Path) -> std::io::Result<()> {
    let owner = std::fs::metadata(folder)?;
    let own = file.metadata()?;
    if own.uid() != 0 || (own.uid(), own.gid()) == (owner.uid(), owner.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()))
}

/// Chance from the system, good enough for secrets.
fn chance() -> Result<TokenChance, Failure> {
    let mut chance = [0; size_of::<TokenChance>()];
    getrandom::fill(&mut chance).map_err(|error| Failure::fault(format!("the system gives no chance: {error}")))?;
    Ok(chance)
}
