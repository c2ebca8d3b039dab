//! What the command line shows of its user to a server.

use std::path::{Path, PathBuf};

use canopy_client::{Credentials, Token};

use crate::exit::Failure;
use crate::input;

/// Most bytes of a file of certificates, of a key, and of a token.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Files with what is shown.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ShownArgs {
    /// Certificates that sign the server's (PEM) [default: those of the system]
    #[arg(long, value_name = "FILE", env = "CANOPY_CA", hide_env_values = true)]
    ca: Option<PathBuf>,
    /// Client certificate to show (PEM)
    #[arg(long, value_name = "FILE", env = "CANOPY_CERT", hide_env_values = true, requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", env = "CANOPY_KEY", hide_env_values = true, requires = "cert")]
    key: Option<PathBuf>,
    /// File with the token to show
    #[arg(long, value_name = "FILE", env = "CANOPY_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,
}

impl ShownArgs {
    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be read, or others may read what is secret.
    pub(crate) fn read(&self) -> Result<Credentials, Failure> {
        let text = |path: &PathBuf| input::text(path, FILE_BYTES_MAX);
        let secret = |path: &PathBuf| not_for_others(path).and_then(|()| text(path));
        let certificate = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Some((text(certificate)?, secret(key)?)),
            _ => None,
        };
        let token = |path: &PathBuf| {
            let refused = |error| Failure::input(format!("{}: {error}", path.display()));
            Token::read(&secret(path)?).map_err(refused)
        };
        Ok(Credentials {
            authorities: self.ca.as_ref().map(text).transpose()?,
            certificate,
            token: self.token_file.as_ref().map(token).transpose()?,
        })
    }
}

/// A secret that everybody on the machine can read is none.
fn not_for_others(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(found) = std::fs::metadata(path) else { return Ok(()) };
    let mode = found.permissions().mode();
    if found.is_file() && mode & 0o007 != 0 {
        let refused = format!("{}: everybody may read this secret (mode {:o})", path.display(), mode & 0o777);
        return Err(Failure::input(refused).help(format!("take the rights away: chmod 600 {}", path.display())));
    }
    Ok(())
}
