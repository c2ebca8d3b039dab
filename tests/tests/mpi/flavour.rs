//! The MPI libraries of the tests, their compilers and launchers.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use canopy_prerequisites::{compiler_with, program};
use canopy_tests::{Run, workspace};
use tempfile::TempDir;

/// Ranks of a job.
pub(crate) const RANKS: u32 = 8;

/// Held while a job runs: jobs side by side take the processors from each other, and those of Open MPI share a folder.
static ONE_JOB: Mutex<()> = Mutex::new(());

/// An MPI library of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    OpenMpi,
    Mpich,
}

impl Flavour {
    /// Whether its compiler and launcher are there; says so if not.
    #[track_caller]
    pub(crate) fn is_there(self) -> bool {
        compiler_with(&self.named("mpicc"), "mpi.h") && program(&self.named("mpirun")).is_some()
    }

    fn named(self, tool: &str) -> String {
        match self {
            Self::OpenMpi => format!("{tool}.openmpi"),
            Self::Mpich => format!("{tool}.mpich"),
        }
    }

    /// The library to preload: tests are linked beside what they depend on.
    pub(crate) fn library(self) -> PathBuf {
        let file = match self {
            Self::OpenMpi => "libcanopy_mpi_openmpi.so",
            Self::Mpich => "libcanopy_mpi_mpich.so",
        };
        let own = env::current_exe().unwrap();
        let library = own.parent().unwrap().join(file);
        assert!(library.is_file(), "{} is not built", library.display());
        library
    }

    /// Compiles one of the programs, which knows nothing of plans.
    pub(crate) fn compile(self, folder: &Path, source: &str) -> PathBuf {
        let program = folder.join(Path::new(source).file_stem().unwrap());
        let compiled = Command::new(self.named("mpicc"))
            .args(["-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"])
            .arg(&program)
            .arg(workspace().join(source))
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        program
    }

    /// Runs a program with so many ranks, and variables of all of them.
    pub(crate) fn run(self, command: &[&str], variables: &BTreeMap<&str, String>) -> Run {
        self.run_groups(&[(RANKS, command, variables.clone())])
    }

    /// Runs groups of ranks that differ in their commands and variables.
    pub(crate) fn run_groups(self, groups: &[(u32, &[&str], BTreeMap<&str, String>)]) -> Run {
        let _alone = ONE_JOB.lock();
        let folder = TempDir::new().unwrap();
        let mut mpirun = Command::new("timeout");
        mpirun.arg("300").arg(self.named("mpirun")).env("TMPDIR", folder.path());
        if self == Self::OpenMpi {
            mpirun.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,vader"]);
        }
        for (number, (ranks, command, variables)) in groups.iter().enumerate() {
            if number > 0 {
                mpirun.arg(":");
            }
            mpirun.args(["-np", &ranks.to_string()]);
            for (name, value) in variables {
                match self {
                    Self::OpenMpi => mpirun.args(["-x", &format!("{name}={value}")]),
                    Self::Mpich => mpirun.args(["-env", name, value]),
                };
            }
            mpirun.args(*command);
        }
        Run::from(mpirun.output().unwrap())
    }

    /// What a rank needs to run plans of a folder.
    pub(crate) fn variables(self, plans: &Path) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            ("LD_PRELOAD", self.library().display().to_string()),
            ("CANOPY_PLAN_DIR", plans.display().to_string()),
            ("CANOPY_MPI_REPORT", "1".to_owned()),
        ])
    }
}
