//! The commands of those who run a server: `plans`, `jobs`, `stats`, `quota`, `backup`, `fsck`, `config`, `log-filter`, `reload`
//! and `drain`.

pub(super) mod archive;
pub(super) mod config;
mod diff;
pub(super) mod drain;
pub(super) mod fsck;
mod get;
pub(super) mod jobs;
pub(super) mod log_filter;
pub(super) mod plans;
pub(super) mod quota;
pub(super) mod reload;
pub(super) mod show;
pub(super) mod stats;

use std::collections::BTreeMap;
use std::time::Duration;

use canopy_client::{Client, ClientError};
use serde::Serialize;

use crate::args;
use crate::clock;
use crate::connection::{self, Connection, ServerArgs};
use crate::exit::Failure;
use crate::messages::say;
use crate::output::print_json;
use crate::stdout::print;
use crate::table::Table;

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

/// Makes some calls as in [`connection::ask`], within the deadline.
pub(in crate::commands) async fn ask<T, F>(args: &CommonArgs, calls: F) -> Result<T, Failure>
where
    F: AsyncFn(&Client, Option<Duration>) -> Result<T, ClientError>,
{
    let calls = async |connection: &Connection, left| calls(connection.shared(), left).await;
    connection::ask(&args.server, Some(args.deadline), calls).await
}

/// What all lists take. Which fields there are, each list says below its help.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct ListArgs {
    /// Only entries that match: `field op value` with AND, OR, NOT and parentheses
    #[arg(long, value_name = "FILTER", default_value = "", hide_default_value = true)]
    filter: String,
    /// Fields to sort by, each with `-` before it for falling order
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Most entries to list
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    pub(in crate::commands) common: CommonArgs,
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

/// Which page of a list is asked for, of which entries and in which order.
#[derive(Clone, Debug)]
pub(in crate::commands) struct Page {
    pub(in crate::commands) filter: String,
    pub(in crate::commands) page_size: u32,
    pub(in crate::commands) page_token: String,
    pub(in crate::commands) order_by: String,
}

/// Something that is listed: an object in JSON, a row of a table for people.
pub(in crate::commands) trait Entry: Serialize {
    /// What several are called, also in JSON.
    const NAME: &'static str;
    /// Over the table.
    const HEADING: &'static [&'static str];

    /// The row.
    fn cells(self) -> Vec<String>;
}

/// A table of entries.
pub(in crate::commands) fn table<E: Entry>(entries: Vec<E>) -> String {
    let mut table = Table::new(E::HEADING);
    entries.into_iter().for_each(|entry| table.row(entry.cells()));
    table.text()
}

/// JSON object of a list.
#[derive(Serialize)]
struct Listed<E> {
    #[serde(flatten)]
    entries: BTreeMap<&'static str, Vec<E>>,
    total: u64,
}

/// Asks for the entries that are wanted and prints them. `page` answers with those of a page, the token of the next one, and how many
/// the server has.
pub(in crate::commands) async fn list<E, F>(command: &str, args: &ListArgs, page: F) -> Result<(), Failure>
where
    E: Entry,
    F: AsyncFn(&Client, Page, Option<Duration>) -> Result<(Vec<E>, String, u64), ClientError>,
{
    let (filter, order_by) = (&args.filter, order(&args.sort)?);
    let listed = ask(&args.common, async |client, left| {
        pages(args.limit, async |page_size, page_token| {
            let asked = Page { filter: filter.clone(), page_size, page_token, order_by: order_by.clone() };
            page(client, asked, left).await
        })
        .await
    });
    let (entries, total) = listed.await?;
    if args.common.json {
        return print_json(command, &Listed { entries: BTreeMap::from([(E::NAME, entries)]), total });
    }
    let count = entries.len();
    print(&table(entries))?;
    if (count as u64) < total {
        say(&format!("{count} of {total} {}; see more with `--limit`", E::NAME));
    }
    Ok(())
}

/// A plan's id as tables show it: enough of it to name the plan.
pub(in crate::commands) fn short_id(id: &str) -> &str {
    const CHARACTERS: usize = "plans/".len() + 12;
    id.get(..CHARACTERS).unwrap_or(id)
}

/// `12s`, `3m`, `5h`, `2d`: an age for people.
pub(in crate::commands) fn age_in_words(seconds: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("d", 86_400), ("h", 3_600), ("m", 60)];
    let unit = UNITS.iter().find(|(_, length)| seconds >= *length);
    unit.map_or_else(|| format!("{seconds}s"), |(name, length)| format!("{}{name}", seconds / length))
}

/// Seconds since this second after 1970.
pub(in crate::commands) fn seconds_since(unix_seconds: i64) -> u64 {
    (clock::since_1970_ms() / 1000).saturating_sub(unix_seconds.try_into().unwrap_or(0))
}

/// Names such as `plans/…`, where the part before the stroke may be left out.
pub(in crate::commands) fn full_name(folder: &str, name: &str) -> String {
    if name.starts_with(folder) { name.to_owned() } else { format!("{folder}{name}") }
}

/// `-hits,ranks` as the server spells it: `hits desc, ranks`.
fn order(fields: &[String]) -> Result<String, Failure> {
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
