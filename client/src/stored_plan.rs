//! The file of a plan that a server keeps, in memory.

use std::path::Path;
use std::time::Duration;

use canopy_client::{FileName, Retries, RetryPolicy};
use canopy_proto::v1::OutputFormat;

use crate::clock;
use crate::connection::{ServerArgs, ask};
use crate::exit::Failure;

/// Largest file that is taken in.
const BYTES_MAX: usize = 1 << 30;

/// The plan in canopy's JSON where `name` is `plans/…` and no file is called so; none for every other name.
///
/// # Errors
/// The server does not have it, or not in that format, or cannot be asked.
pub(crate) async fn stored_plan(
    name: &str,
    server: &ServerArgs,
    deadline: Option<Duration>,
) -> Result<Option<Vec<u8>>, Failure> {
    if !name.starts_with("plans/") || Path::new(name).exists() {
        return Ok(None);
    }
    let file = FileName { plan: name.to_owned(), format: OutputFormat::Json, ..FileName::default() };
    let content = ask(server, deadline, async |connection, left| {
        let mut content = Vec::new();
        // `ask` tries again; a file that broke off begins anew.
        let mut once = Retries::new(RetryPolicy::NEVER, clock::jitter());
        let mut take = |data: &[u8]| {
            if content.len() + data.len() > BYTES_MAX {
                return Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
            }
            content.extend_from_slice(data);
            Ok(())
        };
        connection.shared().download(&file, left, &mut once, &mut take).await?;
        Ok(content)
    });
    content.await.map(Some)
}
