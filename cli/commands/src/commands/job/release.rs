//! `canopy job release`: removes what `fetch` left for a job.

use std::path::{Path, PathBuf};
use std::time::Duration;

use canopy_client::RequestId;
use canopy_proto::v1::ReleaseLeaseRequest;

use crate::args;
use crate::connection::{ServerArgs, ask};
use crate::exit::Failure;
use crate::output::MANIFEST;

use super::Manners;
use super::bundle::{BundleError, Manifest, PLANS, is_files_folder, is_ours, is_plan_file, is_temporary};

/// Remove the plans of a job that has ended
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy job release --job \"$SLURM_JOB_ID\" --dir /run/canopy/$SLURM_JOB_ID

Removes the files that `canopy job fetch` made in the folder, and the folder if nothing else is in it. With --lease the job's leases
end, too.
Ends with status 0 whatever happens, unless --strict is given.")]
pub(crate) struct ReleaseArgs {
    /// Id of the job
    #[arg(long, value_name = "J", value_parser = super::job_id)]
    job: String,
    /// Folder that `canopy job fetch` wrote
    #[arg(long, value_name = "DIR", env = "CANOPY_JOB_DIR", hide_env_values = true)]
    dir: PathBuf,
    /// Longest time, such as 2s
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = args::duration)]
    deadline: Duration,
    /// End the leases that the job holds at the server, which `canopy job fetch --lease` acquired
    #[arg(long)]
    lease: bool,
    /// Report failures by the exit status
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Removes the files. That there are none is no failure.
pub(crate) fn run(args: ReleaseArgs) -> Result<(), Failure> {
    let manners = Manners { strict: args.strict, deadline: args.deadline };
    super::guarded(manners, move || {
        let removed = release(&args.dir, &args.job);
        if args.lease {
            crate::running::interruptible(end_leases(&args))?;
        }
        removed
    })
}

/// Ends the leases of the job.
async fn end_leases(args: &ReleaseArgs) -> Result<(), Failure> {
    args.server.require_server().await?;
    let request = ReleaseLeaseRequest {
        job: args.job.clone(),
        request_id: RequestId::random().to_string(),
        ..ReleaseLeaseRequest::default()
    };
    let released = ask(&args.server, Some(args.deadline), async |connection, left| {
        connection.shared().release_lease(request.clone(), left).await
    });
    released.await.map(|_| ())
}

fn release(folder: &Path, job: &str) -> Result<(), Failure> {
    match Manifest::read(folder) {
        Ok(manifest) if manifest.job != job => {
            return Err(Failure::input(format!(
                "{} belongs to job {}, not to job {job}; nothing was removed",
                folder.display(),
                manifest.job
            )));
        }
        // What cannot be read serves nobody.
        Ok(_) | Err(BundleError::Absent { .. } | BundleError::Malformed { .. }) => {}
        Err(error @ (BundleError::Read { .. } | BundleError::Damaged { .. })) => return Err(error.into()),
    }
    let refuse = |error: std::io::Error| Failure::input(format!("cannot empty {}: {error}", folder.display()));
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(refuse)?,
    };
    let (mut names, mut folders) = (Vec::new(), Vec::new());
    for entry in entries {
        let entry = entry.map_err(refuse)?;
        // Not that of what a link leads to.
        let kind = entry.file_type().map_err(refuse)?;
        let name = entry.file_name();
        match name.to_str() {
            Some(text) if kind.is_file() && is_ours(text) => names.push(name),
            Some(text) if kind.is_dir() && is_files_folder(text) => folders.push(name),
            _ => {}
        }
    }
    // The manifest first: without it, nobody looks for the files.
    names.sort_by_key(|name| name.to_str() != Some(MANIFEST));
    for name in names {
        std::fs::remove_file(folder.join(name)).map_err(refuse)?;
    }
    for name in folders {
        remove_plans(&folder.join(name)).map_err(refuse)?;
    }
    remove_empty(folder).map_err(refuse)
}

/// Removes a folder of plans, but for what is in it besides.
fn remove_plans(folder: &Path) -> std::io::Result<()> {
    let plans = folder.join(PLANS);
    if std::fs::symlink_metadata(&plans).is_ok_and(|found| found.is_dir()) {
        for entry in std::fs::read_dir(&plans)? {
            let entry = entry?;
            let is_plan = |name: &str| is_plan_file(name) || is_temporary(name);
            if entry.file_name().to_str().is_some_and(is_plan) && entry.file_type()?.is_file() {
                std::fs::remove_file(entry.path())?;
            }
        }
        remove_empty(&plans)?;
    }
    remove_empty(folder)
}

/// Removes a folder if nothing is in it.
fn remove_empty(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::DirectoryNotEmpty => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_fetch_made_goes() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("17");
        let plans = folder.join("files-0123456789ab/plans");
        std::fs::create_dir_all(plans.join("00-allgather-0123456789ab.xml")).unwrap();
        std::fs::create_dir_all(folder.join("files-ba9876543210/plans")).unwrap();
        std::os::unix::fs::symlink(base.path(), folder.join("files-aaaaaaaaaaaa")).unwrap();
        Manifest::new("17", None, "msccl").write(&folder).unwrap();
        for name in ["env", "loader.py", ".canopy-x.tmp", "notes.txt", "00-allgather-0123456789ab.xml"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        for name in ["01-allreduce-0123456789ab.xml", "02-reduce-0123456789ab.json", ".canopy-x.tmp", "notes.txt"] {
            std::fs::write(plans.join(name), "").unwrap();
        }
        assert!(release(&folder, "18").is_err(), "another job's");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 9);
        release(&folder, "17").unwrap();
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let stay = ["00-allgather-0123456789ab.xml", "files-0123456789ab", "files-aaaaaaaaaaaa", "notes.txt"];
        assert_eq!(names(&folder), stay);
        assert_eq!(names(&plans), ["00-allgather-0123456789ab.xml", "notes.txt"]);
    }

    #[test]
    fn a_folder_that_is_empty_then_goes_too_and_may_be_gone() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("17");
        std::fs::create_dir(&folder).unwrap();
        Manifest::new("17", None, "msccl").write(&folder).unwrap();
        release(&folder, "17").unwrap();
        assert!(!folder.exists());
        release(&folder, "17").unwrap();
    }
}
