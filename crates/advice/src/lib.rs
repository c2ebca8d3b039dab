//! Advice: tables by which stock runtimes choose among their own algorithms.
//!
//! NCCL and its relatives choose by formulas, which [`canopy_nccl::Stock`] models. Each of them reads a table in a format
//! of its own, with its own rules for which row a call gets:
//!
//! | module | format | a call gets |
//! |---|---|---|
//! | `nccl/csv` | NVIDIA's example tuner plugin, RCCL | the first row that matches; both sizes inclusive |
//! | `nccl/ncclx` | `NCCLX_TUNER_CONFIG_FILE` | the first row that matches; bytes per rank, in intervals |
//! | `nccl/coll_config` | `ncclCollConfig_t` of NCCL 2.31, as JSON and as a C header | the one row that matches |
//!
//! The crate is pure: models in, text out.

mod nccl;

pub use nccl::{
    ADVICE_BYTES_MIN, Advice, CollConfig, TUNED, coll_config_header, coll_config_json, coll_configs, nccl_algorithms,
    nccl_csv, ncclx_csv, rccl_csv, tuner_csv, tuner_word,
};
