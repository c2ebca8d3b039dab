//! The commands of those who run a server: `plans`, `jobs`, `stats` and `drain`.

mod archive;
mod diff;
pub(super) mod drain;
pub(super) mod jobs;
pub(super) mod plans;
pub(super) mod show;
pub(super) mod stats;

use std::time::Duration;

use canopy_client::ClientError;

use crate::args;
use crate::connection::ServerArgs;
use crate::exit::Failure;

/// What all of them take.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct CommonArgs {
    /// Longest time to wait for the server, such as 10s
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = args::duration)]
    pub(in crate::commands) deadline: Duration,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    pub(in crate::commands) json: bool,
    #[command(flatten)]
    pub(in crate::commands) server: ServerArgs,
}

/// Most entries the server puts on a page.
const PAGE_MAX: u32 = 1000;

/// At most `limit` entries of a list, with what its last page says besides. `page` is told how many entries to ask for
/// and the token of the page; it answers with the entries, the token of the next page, and the rest.
pub(in crate::commands) async fn pages<T, R, F>(limit: usize, page: F) -> Result<(Vec<T>, R), ClientError>
where
    F: AsyncFn(u32, String) -> Result<(Vec<T>, String, R), ClientError>,
{
    let (mut entries, mut token) = (Vec::new(), String::new());
    loop {
        let wanted = u32::try_from(limit.saturating_sub(entries.len())).unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
        let (mut more, next, rest) = page(wanted, token).await?;
        entries.append(&mut more);
        token = next;
        if entries.len() >= limit || token.is_empty() {
            entries.truncate(limit);
            return Ok((entries, rest));
        }
    }
}

/// Names such as `plans/…`, where the part before the stroke may be left out.
pub(in crate::commands) fn full_name(folder: &str, name: &str) -> String {
    if name.starts_with(folder) { name.to_owned() } else { format!("{folder}{name}") }
}

/// `-hits,ranks` as the server spells it: `hits desc, ranks`.
pub(in crate::commands) fn order(fields: &[String]) -> Result<String, Failure> {
    let spell = |field: &String| {
        let field = field.trim();
        let (name, falling) = field.strip_prefix('-').map_or((field, ""), |name| (name, " desc"));
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            return Err(Failure::input(format!("`{field}` is not a field to sort by")).help("such as -hits,ranks"));
        }
        Ok(format!("{name}{falling}"))
    };
    Ok(fields.iter().map(spell).collect::<Result<Vec<_>, _>>()?.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minus_means_falling_order() {
        let fields = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(order(&fields("-hits,ranks")).unwrap(), "hits desc, ranks");
        assert_eq!(order(&[]).unwrap(), "");
        for bad in ["", "-", "--hits", "hits desc", "hits,"] {
            assert!(order(&fields(bad)).is_err(), "{bad}");
        }
    }
}
