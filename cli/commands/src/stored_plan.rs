//! Plans that a server keeps, by their ids: found by the first digits, and their files taken into memory.

use std::path::Path;
use std::time::Duration;

use canopy_client::{Client, ClientError, FileName, Retries, RetryPolicy};
use canopy_proto::v1::{Artifact, GetPlanRequest, ListPlansRequest, OutputFormat};

use crate::clock;
use crate::connection::{Connection, ServerArgs, ask};
use crate::exit::Failure;
use crate::input::{self, PLAN_BYTES_MAX};

/// What ids begin with.
const FOLDER: &str = "plans/";
/// Digits of an id, and the fewest that stand for one.
const DIGITS: usize = 32;
const DIGITS_MIN: usize = 4;
/// Most candidates that are listed where digits are not enough.
const CANDIDATES_MAX: usize = 8;

/// Which files of a plan are of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Canopy's JSON alone.
    Json,
    /// Canopy's JSON, and where there is none the plan's first file.
    Any,
}

/// An id, or the first digits of one: `plans/0123abcd…`, or the digits alone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digits(String);

impl Digits {
    /// Reads what is meant as an id; none for every other name.
    fn read(name: &str) -> Option<Self> {
        let digits = name.strip_prefix(FOLDER).unwrap_or(name);
        let is_hex = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (is_hex && (DIGITS_MIN..=DIGITS).contains(&digits.len())).then(|| Self(digits.to_owned()))
    }

    /// The condition of a list that has all ids with these first digits.
    fn filter(&self) -> String {
        let Self(digits) = self;
        format!("name>={FOLDER}{digits} AND name<={FOLDER}{digits:f<width$}", width = DIGITS)
    }
}

/// Ids of the plans that are named so, each complete: `plans/…` or its digits alone, or the first of them where no other plan has
/// the same.
///
/// # Errors
/// No id, no plan that begins so, or several; the server cannot be asked.
pub(crate) async fn plan_ids(
    names: &[String],
    server: &ServerArgs,
    deadline: Option<Duration>,
) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        ids.push(plan_id(name, server, deadline).await?);
    }
    Ok(ids)
}

/// The one of a single plan.
///
/// # Errors
/// As [`plan_ids`].
pub(crate) async fn plan_id(name: &str, server: &ServerArgs, deadline: Option<Duration>) -> Result<String, Failure> {
    let digits = Digits::read(name).ok_or_else(|| {
        Failure::input(format!("`{}` is not the id of a plan", input::shortened(name))).help(format!(
            "ids look like `plans/0123abcd`: at least {DIGITS_MIN} of {DIGITS} digits 0-9 and a-f; `canopy server plans list` has them"
        ))
    })?;
    let Digits(text) = &digits;
    if text.len() == DIGITS {
        return Ok(format!("{FOLDER}{text}"));
    }
    let request = ListPlansRequest {
        page_size: u32::try_from(CANDIDATES_MAX + 1).unwrap_or(u32::MAX),
        filter: digits.filter(),
        order_by: "id".to_owned(),
        ..ListPlansRequest::default()
    };
    let page =
        ask(server, deadline, async |connection, left| connection.shared().list_plans(request.clone(), left).await)
            .await?;
    only_one(text, page.plans.into_iter().map(|plan| plan.name).collect())
}

/// The one plan that begins with some digits.
///
/// # Errors
/// None, or several, which are listed.
fn only_one(digits: &str, mut ids: Vec<String>) -> Result<String, Failure> {
    if ids.len() == 1
        && let Some(only) = ids.pop()
    {
        return Ok(only);
    }
    if ids.is_empty() {
        return Err(Failure::input(format!("no plan of the server has an id that begins with {FOLDER}{digits}"))
            .help("`canopy server plans list` has the ids of all"));
    }
    let rest = if ids.len() > CANDIDATES_MAX { ", and more" } else { "" };
    ids.truncate(CANDIDATES_MAX);
    let what = format!("several plans begin with {FOLDER}{digits}: {}{rest}", ids.join(", "));
    Err(Failure::input(what).help("give more digits"))
}

/// The content of a plan's file: of an existing one of this name, else of the plan of a server with this id.
///
/// # Errors
/// Neither is there, or it cannot be read or is too large.
pub(crate) async fn plan_bytes(
    path: &Path,
    server: &ServerArgs,
    deadline: Option<Duration>,
    wanted: Wanted,
) -> Result<Vec<u8>, Failure> {
    let stored = match path.to_str() {
        Some(name) => stored_plan(name, server, deadline, wanted).await?,
        None => None,
    };
    stored.map_or_else(|| input::bytes(path, PLAN_BYTES_MAX), Ok)
}

/// The content of a plan's file where `name` is the id of a plan, or the first digits of one, and no file is called so; none for
/// every other name.
///
/// # Errors
/// The server does not have it, or not in that format, or cannot be asked; several plans begin so.
pub(crate) async fn stored_plan(
    name: &str,
    server: &ServerArgs,
    deadline: Option<Duration>,
    wanted: Wanted,
) -> Result<Option<Vec<u8>>, Failure> {
    if Path::new(name).exists() || (Digits::read(name).is_none() && !name.starts_with(FOLDER)) {
        return Ok(None);
    }
    let plan = plan_id(name, server, deadline).await?;
    let json = FileName { plan: plan.clone(), format: OutputFormat::Json, ..FileName::default() };
    let file = match wanted {
        Wanted::Json => json,
        Wanted::Any => {
            let files = artifacts(&plan, server, deadline).await?;
            let first = files.iter().find(|file| file.format() == OutputFormat::Json).or(files.first());
            first.map_or(json, |file| file_name(&plan, file))
        }
    };
    content(&file, server, deadline).await.map(Some)
}

/// The files that a server has of a plan.
///
/// # Errors
/// The server does not have it, or cannot be asked.
pub(crate) async fn artifacts(
    plan: &str,
    server: &ServerArgs,
    deadline: Option<Duration>,
) -> Result<Vec<Artifact>, Failure> {
    let request = GetPlanRequest { name: plan.to_owned(), placement: None };
    let plan =
        ask(server, deadline, async |connection, left| connection.shared().get_plan(request.clone(), left).await);
    Ok(plan.await?.artifacts)
}

/// A file of a plan by what the server says of it.
pub(crate) fn file_name(plan: &str, artifact: &Artifact) -> FileName {
    FileName {
        plan: plan.to_owned(),
        format: artifact.format(),
        profile: artifact.profile.clone(),
        instances: artifact.instances,
        ..FileName::default()
    }
}

/// The content of a file.
///
/// # Errors
/// The server does not have it, or cannot be asked.
pub(crate) async fn content(
    file: &FileName,
    server: &ServerArgs,
    deadline: Option<Duration>,
) -> Result<Vec<u8>, Failure> {
    // `ask` tries again; a file that broke off begins anew.
    let content =
        async |connection: &Connection, left| in_memory(connection.shared(), file, left, RetryPolicy::NEVER).await;
    ask(server, deadline, content).await
}

/// The content of a file, as far as there is room for it.
pub(crate) async fn in_memory(
    client: &Client,
    file: &FileName,
    left: Option<Duration>,
    policy: RetryPolicy,
) -> Result<Vec<u8>, ClientError> {
    let mut content = Vec::new();
    let mut take = |data: &[u8]| {
        if content.len() + data.len() > PLAN_BYTES_MAX {
            return Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
        }
        content.extend_from_slice(data);
        Ok(())
    };
    client.download(file, left, &mut Retries::new(policy, clock::jitter()), &mut take).await?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_digits_with_or_without_their_folder() {
        for (name, digits) in [
            ("plans/0123abcd", "0123abcd"),
            ("0123", "0123"),
            ("8dc356423ddd72175ea44876fd13e740", "8dc356423ddd72175ea44876fd13e740"),
        ] {
            assert_eq!(Digits::read(name), Some(Digits(digits.to_owned())), "{name}");
        }
        for name in
            ["", "012", "plans/", "plans/012", "ring", "ABCD1", "0123x", "plan.json", "./0123", "topologies/0123"]
        {
            assert_eq!(Digits::read(name), None, "{name}");
        }
        assert_eq!(Digits::read(&"0".repeat(33)), None);
    }

    #[test]
    fn digits_of_several_plans_are_refused_with_the_plans() {
        let ids = |count: usize| (0..count).map(|number| format!("plans/0a1b{number}")).collect::<Vec<_>>();
        assert_eq!(only_one("0a1b", ids(1)).unwrap(), "plans/0a1b0");
        let refusal = |count| format!("{:?}", only_one("0a1b", ids(count)).unwrap_err());
        assert!(refusal(0).contains("no plan of the server"));
        let two = refusal(2);
        assert!(two.contains("several plans begin with plans/0a1b: plans/0a1b0, plans/0a1b1\""), "{two}");
        assert!(refusal(9).contains("plans/0a1b7, and more"), "{}", refusal(9));
    }

    #[test]
    fn first_digits_stand_for_a_range_of_ids() {
        let filter = Digits("0a1b".to_owned()).filter();
        assert_eq!(filter, format!("name>=plans/0a1b AND name<=plans/0a1b{}", "f".repeat(28)));
    }
}
