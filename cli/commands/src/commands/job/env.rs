//! `canopy job env`: what a task must have in its environment to use the plans of its job.
//!
//! Reads the folder of the job and the environment; asks nobody.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use canopy_bundle::{Runtime, Variable};
use canopy_topology::{HOST_FILE_BYTES_MAX, expand_hosts};
use clap::ValueEnum;

use crate::args;
use crate::exit::Failure;
use crate::input;
use crate::output::listable;
use crate::stdout::write_stdout;

use super::Manners;
use super::bundle::{BundleError, Manifest};
use super::rank_order::{OrderError, nodes_of_ranks};
use super::variables::{missing, variables as of_files};

/// Print the variables that make a task use the plans of its job
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy job env --format slurm-task-prolog --dir /run/canopy/$SLURM_JOB_ID
  canopy job env --format slurm-task-prolog --dir plans --nodes-file \"$SLURM_HOSTFILE\"    # srun --distribution=arbitrary

Prints `export NAME=value` lines and nothing else, and no variable that the environment has already or that would
contradict one: a task whose user chose another value for one of them, MSCCL_CONFIG, or an NCCL_ALGO without MSCCL,
gets nothing. Nothing is printed either where a file is damaged, where SLURM_JOB_ID is not that of the folder, or where
the nodes of the folder are others than those of SLURM_JOB_NODELIST or --nodes-file, or in another order. Runtimes
without variables (mscclpp-0.9 and later, oneccl) get CANOPY_JOB_DIR.
Ends with status 0 whatever happens, unless --strict is given.")]
pub(crate) struct EnvArgs {
    /// Who reads the lines
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Format,
    /// Folder that `canopy job fetch` wrote
    #[arg(long, value_name = "DIR", env = "CANOPY_JOB_DIR", hide_env_values = true)]
    dir: PathBuf,
    /// File with the node of each rank, one per line, such as $SLURM_HOSTFILE: the order that the plans must be for
    /// [default: that of SLURM_JOB_NODELIST]
    #[arg(long, value_name = "FILE")]
    nodes_file: Option<PathBuf>,
    /// Longest time, such as 1s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::duration)]
    deadline: Duration,
    /// Report by the exit status where there is nothing to print, and why
    #[arg(long)]
    strict: bool,
}

/// Who reads the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Slurm's TaskProlog, which takes the text after `=` as it stands, without quotes
    SlurmTaskProlog,
}

/// Prints the lines, all or none.
pub(crate) fn run(args: EnvArgs) -> Result<(), Failure> {
    let manners = Manners { strict: args.strict, deadline: args.deadline };
    super::guarded(manners, move || {
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .collect();
        let order = args.nodes_file.as_deref().map(order_in).transpose()?;
        let lines = match variables(&args.dir, order.as_deref(), &environment) {
            Ok(variables) => variables,
            // A job that nothing was fetched for is no failure of its tasks.
            Err(Obstacle::Bundle(BundleError::Absent { .. })) if !args.strict => return Ok(()),
            Err(obstacle) => return Err(Failure::input(obstacle.to_string())),
        };
        let text: String =
            lines.iter().map(|Variable { name, value, .. }| format!("export {name}={value}\n")).collect();
        match args.format {
            Format::SlurmTaskProlog => write_stdout(text.as_bytes()),
        }
    })
}

/// The nodes in the order of the ranks, as a file says it.
fn order_in(file: &Path) -> Result<Vec<String>, Failure> {
    let refused = |error: OrderError| Failure::input(format!("{}: {error}", file.display()));
    nodes_of_ranks(&input::text(file, HOST_FILE_BYTES_MAX)?).map_err(refused)
}

/// Why there is nothing to print.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error("the folder belongs to job {folder}, and this task to job {task}")]
    OtherJob { folder: String, task: String },
    #[error("the plans are for other nodes than those of SLURM_JOB_NODELIST")]
    OtherNodes,
    #[error("the plans are for other nodes than those of --nodes-file, or for another order")]
    OtherOrder,
    #[error("the plans name no nodes to compare with --nodes-file; fetch them with `--nodes-file`, too")]
    NoNodes,
    #[error("profile `{profile}` is of another version of canopy")]
    UnknownProfile { profile: String },
    #[error("{count} files are listed; {runtime} reads {limit}")]
    TooManyFiles { count: usize, runtime: Runtime, limit: usize },
    #[error("the folder cannot be listed in a variable: its path holds `:` or a line end, or is not UTF-8")]
    Unlistable,
}

/// The variables that are missing in an environment for it to use the plans of a folder. They must be for ranks on the
/// nodes of `order`, or of the environment if there is no `order`.
fn variables(
    folder: &Path,
    order: Option<&[String]>,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<Variable>, Obstacle> {
    let manifest = Manifest::read(folder)?;
    if let Some(task) = environment.get("SLURM_JOB_ID").filter(|task| **task != manifest.job) {
        return Err(Obstacle::OtherJob { folder: manifest.job, task: task.clone() });
    }
    match (&manifest.nodes, order, environment.get("SLURM_JOB_NODELIST")) {
        (None, Some(_), _) => return Err(Obstacle::NoNodes),
        (Some(planned), Some(order), _) if planned != order => return Err(Obstacle::OtherOrder),
        (Some(planned), None, Some(list)) if expand_hosts(list).as_ref() != Ok(planned) => {
            return Err(Obstacle::OtherNodes);
        }
        _ => {}
    }
    let runtime =
        manifest.profile.parse().ok().and_then(|runtime: Runtime| runtime.rules().map(|rules| (runtime, rules)));
    let Some((runtime, rules)) = runtime else {
        return Err(Obstacle::UnknownProfile { profile: manifest.profile });
    };
    let folder = listable(folder).map_err(|_| Obstacle::Unlistable)?;
    let text = folder.to_str().ok_or(Obstacle::Unlistable)?;
    let missing = missing(runtime, of_files(runtime, &manifest, text), environment);
    // What nobody is pointed to need not be looked at.
    if missing.is_empty() {
        return Ok(missing);
    }
    let count = manifest.files.len();
    if count > rules.files_max {
        return Err(Obstacle::TooManyFiles { count, runtime, limit: rules.files_max });
    }
    manifest.files.iter().try_for_each(|file| file.check(&folder))?;
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use canopy_wire::sha256_hex;

    use super::super::bundle::{PlanEntry, plan_file_name};
    use super::*;

    const CONTENT: &[u8] = b"<algo/>\n";

    fn variables(folder: &Path, environment: &BTreeMap<String, String>) -> Result<Vec<Variable>, Obstacle> {
        super::variables(folder, None, environment)
    }

    /// A folder with two plans for job 17.
    fn bundle(nodes: Option<&[&str]>) -> (tempfile::TempDir, Manifest) {
        bundle_for("msccl", nodes)
    }

    fn bundle_for(profile: &str, nodes: Option<&[&str]>) -> (tempfile::TempDir, Manifest) {
        let folder = tempfile::tempdir().unwrap();
        let nodes = nodes.map(|nodes| nodes.iter().map(|&node| node.to_owned()).collect());
        let mut manifest = Manifest::new("17", nodes, profile);
        std::fs::create_dir_all(folder.path().join("files-0123456789ab/plans")).unwrap();
        for (position, collective) in ["allgather", "allreduce"].into_iter().enumerate() {
            let name = plan_file_name(position, collective, &sha256_hex(CONTENT), "xml").unwrap();
            let path = format!("files-0123456789ab/plans/{name}");
            std::fs::write(folder.path().join(&path), CONTENT).unwrap();
            manifest.files.push(PlanEntry {
                collective: collective.to_owned(),
                root: None,
                plan: "plans/x".to_owned(),
                format: "msccl-xml".to_owned(),
                path,
                bytes: CONTENT.len() as u64,
                sha256: sha256_hex(CONTENT),
                optimality: "1/1".to_owned(),
                ranks: 8,
                ranks_per_node: None,
                size_bytes_min: 0,
                size_bytes_max: 1 << 30,
                alignment_elements: 1,
                in_place: false,
                fallback: None,
                slice: None,
            });
        }
        manifest.write(folder.path()).unwrap();
        (folder, manifest)
    }

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn the_files_are_listed_for_the_runtime() {
        let (folder, manifest) = bundle(None);
        let found = variables(folder.path(), &environment(&[("SLURM_JOB_ID", "17"), ("NCCL_ALGO", "Ring,MSCCL")]));
        let [Variable { name, value, .. }] = found.unwrap().try_into().unwrap();
        assert_eq!(name, "MSCCL_XML_FILES");
        let expected: Vec<_> = manifest.files.iter().map(|file| folder.path().join(&file.path)).collect();
        assert_eq!(value.split(':').map(PathBuf::from).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_runtime_is_told_in_its_own_way() {
        for (profile, expected) in [
            ("msccl-executor", &[("NCCL_MSCCL_ENABLE", "1"), ("MSCCL_ALGO_DIR", "/files-0123456789ab/plans")][..]),
            (
                "rccl-msccl",
                &[
                    ("RCCL_MSCCL_ENABLE", "1"),
                    ("RCCL_MSCCL_FORCE_ENABLE", "1"),
                    ("MSCCL_ALGO_DIR", "/files-0123456789ab/plans"),
                ],
            ),
            ("mscclpp-0.8", &[("MSCCLPP_EXECUTION_PLAN_DIR", "/files-0123456789ab/plans")]),
            ("mscclpp-0.9", &[("CANOPY_JOB_DIR", "")]),
            ("mscclpp-0.10", &[("CANOPY_JOB_DIR", "")]),
            ("oneccl", &[("CANOPY_JOB_DIR", "")]),
        ] {
            let (folder, _) = bundle_for(profile, None);
            let found = variables(folder.path(), &environment(&[])).unwrap();
            let found: Vec<(&str, &str)> =
                found.iter().map(|variable| (variable.name, variable.value.as_str())).collect();
            let base = folder.path().to_str().unwrap();
            let below = |value: &str| if value == "1" { value.to_owned() } else { format!("{base}{value}") };
            let expected: Vec<(&str, String)> = expected.iter().map(|&(name, value)| (name, below(value))).collect();
            let expected: Vec<(&str, &str)> = expected.iter().map(|(name, value)| (*name, value.as_str())).collect();
            assert_eq!(found, expected, "{profile}");
        }
        for unknown in ["nccl", "msccl-2"] {
            let (folder, _) = bundle_for(unknown, None);
            let found = variables(folder.path(), &environment(&[]));
            assert!(matches!(found, Err(Obstacle::UnknownProfile { .. })), "{unknown}: {found:?}");
        }
    }

    #[test]
    fn what_the_user_chose_stays() {
        let (folder, _) = bundle(None);
        for taken in [
            ("MSCCL_XML_FILES", ""),
            ("MSCCL_XML_FILES", "/home/user/mine.xml"),
            ("MSCCL_CONFIG", "/home/user/list.xml"),
            ("NCCL_ALGO", "Ring"),
            ("NCCL_ALGO", "^MSCCL"),
        ] {
            assert_eq!(variables(folder.path(), &environment(&[taken])).unwrap(), [], "{taken:?}");
        }
        for open in [("NCCL_ALGO", "msccl"), ("NCCL_ALGO", "^Ring"), ("NCCL_DEBUG", "INFO")] {
            assert_eq!(variables(folder.path(), &environment(&[open])).unwrap().len(), 1, "{open:?}");
        }
    }

    #[test]
    fn nothing_is_listed_for_another_job_or_other_nodes() {
        let (folder, _) = bundle(Some(&["gpu1", "gpu2"]));
        let other = variables(folder.path(), &environment(&[("SLURM_JOB_ID", "18")]));
        assert!(matches!(other, Err(Obstacle::OtherJob { .. })));
        for list in ["gpu[1-3]", "gpu2,gpu1", "gpu["] {
            let other = variables(folder.path(), &environment(&[("SLURM_JOB_NODELIST", list)]));
            assert!(matches!(other, Err(Obstacle::OtherNodes)), "{list}");
        }
        assert_eq!(variables(folder.path(), &environment(&[("SLURM_JOB_NODELIST", "gpu[1-2]")])).unwrap().len(), 1);
    }

    #[test]
    fn the_order_of_a_file_counts_and_that_of_the_job_does_not() {
        let of_job = environment(&[("SLURM_JOB_NODELIST", "gpu[1-2]")]);
        let ordered = |planned: Option<&[&str]>, order: [&str; 2]| {
            let (folder, _) = bundle(planned);
            super::variables(folder.path(), Some(&order.map(str::to_owned)), &of_job).map(|found| found.len())
        };
        assert_eq!(ordered(Some(&["gpu2", "gpu1"]), ["gpu2", "gpu1"]).unwrap(), 1);
        for planned in [&["gpu1", "gpu2"][..], &["gpu2", "gpu3"], &["gpu2"], &["gpu2", "gpu1", "gpu3"]] {
            let found = ordered(Some(planned), ["gpu2", "gpu1"]);
            assert!(matches!(found, Err(Obstacle::OtherOrder)), "{planned:?}: {found:?}");
        }
        assert!(matches!(ordered(None, ["gpu2", "gpu1"]), Err(Obstacle::NoNodes)));
    }

    #[test]
    fn a_damaged_file_takes_all_others_with_it() {
        for damage in [&b""[..], b"<algo/>", b"<algo/>X", b"<algo/>\n<more/>"] {
            let (folder, manifest) = bundle(None);
            std::fs::write(folder.path().join(&manifest.files[1].path), damage).unwrap();
            let found = variables(folder.path(), &environment(&[]));
            assert!(matches!(found, Err(Obstacle::Bundle(BundleError::Damaged { .. }))), "{damage:?}: {found:?}");
        }
        let (folder, manifest) = bundle(None);
        std::fs::remove_file(folder.path().join(&manifest.files[0].path)).unwrap();
        assert!(variables(folder.path(), &environment(&[])).is_err());
    }
}
