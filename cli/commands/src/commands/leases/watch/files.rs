//! New plans of leases as files in a folder, each replaced as a whole.

use std::path::{Path, PathBuf};

use canopy_client::{Client, ClientError, RetryPolicy};
use canopy_plan::Format;
use canopy_proto::v1::{Artifact, GetPlanRequest};
use canopy_wire::format_of_wire;

use super::Line;
use crate::connection::CallError;
use crate::exit::Failure;
use crate::messages::say;
use crate::output::FileSummary;
use crate::runtime::format_name;
use crate::stored_plan::{file_name, in_memory};
use crate::whole_file::cannot_write;

/// Longest time for one file of a plan.
const FILE_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(60);
/// Longest part of a file's name that a job gives.
const JOB_CHARS_MAX: usize = 100;

/// Where plans are written.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder if there is none.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(path).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path: path.to_owned() })
    }

    /// Writes the files of a new plan, and notes them in the event. Of a plan that the server no longer has, as a later one took its
    /// place, it says so; where a job has no plan any more, which files are those of the last one.
    pub(super) async fn keep(&self, line: &mut Line, client: &Client) -> Result<(), CallError> {
        let stem = stem(line);
        let Some(plan) = &line.new_plan else {
            say(&format!("no new plan: files {} in {} are of {}", stem, self.path.display(), line.old_plan));
            return Ok(());
        };
        let request = GetPlanRequest { name: plan.clone(), placement: None };
        let artifacts = match client.get_plan(request, Some(FILE_TIME_MAX)).await {
            Ok(plan) => plan.artifacts,
            Err(error) if is_gone(&error) => {
                say(&format!("{plan} is gone from the server and was not written: {error}"));
                line.error = Some(format!("not written: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let mut files = Vec::with_capacity(artifacts.len());
        for artifact in &artifacts {
            let name = file_name(plan, artifact);
            let bytes = match in_memory(client, &name, Some(FILE_TIME_MAX), RetryPolicy::STANDARD).await {
                Ok(bytes) => bytes,
                Err(error) if is_gone(&error) => {
                    say(&format!("a file of {plan} is gone from the server and was not written: {error}"));
                    line.error = Some(format!("not written: {error}"));
                    break;
                }
                Err(error) => return Err(error.into()),
            };
            let path = self.path.join(file(&stem, artifact));
            let written = FileSummary::written(format_name(artifact.format()), &path, &bytes);
            files.push(written.map_err(CallError::Here)?.for_profile(&artifact.profile));
        }
        line.files = files;
        Ok(())
    }
}

/// Whether the server answered that it does not have it, so that asking again is of no use.
fn is_gone(error: &ClientError) -> bool {
    matches!(error.class(), canopy_client::ErrorClass::Input)
}

/// What names of files begin with: which job, lease and plan of the lease they are of.
fn stem(line: &Line) -> String {
    let clean = |text: &str| -> String {
        let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        text.chars().take(JOB_CHARS_MAX).map(|character| if allowed(character) { character } else { '_' }).collect()
    };
    let lease = clean(line.lease.strip_prefix("leases/").unwrap_or(&line.lease));
    match line.job.is_empty() {
        true => format!("{lease}-{}", line.item),
        false => format!("{}-{lease}-{}", clean(&line.job), line.item),
    }
}

/// The name of a plan's file: its runtime is in it, but for canopy's own format.
fn file(stem: &str, artifact: &Artifact) -> String {
    let several = artifact.instances.filter(|&instances| instances > 1);
    let instances = several.map_or_else(String::new, |instances| format!(".x{instances}"));
    match format_of_wire(artifact.format().into()) {
        None | Some(Format::Json) => format!("{stem}.json"),
        Some(format) => format!("{stem}.{}{instances}.{}", artifact.profile, format.ending()),
    }
}
