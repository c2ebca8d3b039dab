//! Advice: tables by which stock runtimes choose among their own algorithms.
//!
//! NCCL and its relatives choose by formulas, which [`crate::nccl::Stock`] models. Each of them reads a table in a format
//! of its own, with its own rules for which row a call gets:
//!
//! | module | format | a call gets |
//! |---|---|---|
//! | `nccl/csv` | NVIDIA's example tuner plugin, RCCL | the first row that matches; both sizes inclusive |
//! | `nccl/ncclx` | `NCCLX_TUNER_CONFIG_FILE` | the first row that matches; bytes per rank, in intervals |
//! | `nccl/coll_config` | `ncclCollConfig_t` of NCCL 2.31, as JSON and as a C header | the one row that matches |
//!
//! MPI libraries choose among textbook algorithms, which are compared on the network itself, by a formula (`mpi`):
//!
//! | module | format | a call gets |
//! |---|---|---|
//! | `mpi/openmpi` | `coll_tuned_dynamic_rules_filename` of Open MPI 4.1 and 5.0 | the last rule whose sizes are not above its own |
//! | `mpi/mpich` | `MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE` of MPICH 4 | the algorithm below the conditions that hold first |
//!
//! The module is pure: models in, text out.

mod mpi;
mod nccl;

pub use mpi::{
    Candidate, MPICH_COLLECTIVES, MpiChoice, MpichError, OPENMPI_COLLECTIVES, Paths, RANKS_MAX, mpich_choices,
    mpich_tree, openmpi_choices, openmpi_rules,
};
pub use nccl::{
    ADVICE_BYTES_MIN, CollConfig, TUNED, coll_config_header, coll_config_json, coll_configs, nccl_algorithms, nccl_csv,
    ncclx_csv, rccl_csv, tuner_word,
};
