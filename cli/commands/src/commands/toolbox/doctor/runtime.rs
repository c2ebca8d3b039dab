//! Which runtime the job loaded, which one the plans are for, and whether the one runs the plans of the other.

use std::path::Path;

use canopy_bundle::Runtime;
use canopy_plan::Format;

use super::check::{Checks, shown};
use super::environment::Environment;
use super::log::Log;
use super::plans::{Plans, format_at};

/// The check of this module.
const CHECK: &str = "runtime";
/// The first release of RCCL that loads no plans.
const RCCL_WITHOUT_PLANS: [u32; 3] = [2, 28, 3];

/// A runtime as the log of a job shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Running {
    /// None: a release that no plan is made for, or one of several.
    pub(super) runtime: Option<Runtime>,
    /// Its name and release.
    pub(super) name: String,
    /// Whether it is a release of MSCCL++ before the schema.
    is_before_schema: bool,
}

/// The runtime that a log shows.
pub(super) fn running(log: &Log) -> Option<Running> {
    let found = |runtime, name: String| Some(Running { runtime, name: shown(&name), is_before_schema: false });
    if let Some(version) = &log.rccl {
        let loads_plans = version.numbers < RCCL_WITHOUT_PLANS;
        let runtime = if loads_plans { Runtime::RcclMsccl } else { Runtime::Nccl };
        return found(Some(runtime), format!("RCCL {}", version.short()));
    }
    if log.speaks_mscclpp {
        let Some(version) = &log.mscclpp else { return found(None, "MSCCL++".to_owned()) };
        let (runtime, is_before_schema) = match version.numbers {
            [0, 0..=7, _] => (None, true),
            [0, 8, _] => (Some(Runtime::Mscclpp08), false),
            [0, 9, _] => (Some(Runtime::Mscclpp09), false),
            _ => (Some(Runtime::Mscclpp10), false),
        };
        return Some(Running { runtime, name: format!("MSCCL++ {}", version.short()), is_before_schema });
    }
    match &log.nccl {
        Some(version) if version.text.contains("MSCCL") => {
            found(Some(Runtime::Msccl), format!("microsoft/msccl on NCCL {}", version.short()))
        }
        Some(version) if log.speaks_msccl => {
            found(Some(Runtime::MscclExecutor), format!("the MSCCL executor on NCCL {}", version.short()))
        }
        Some(version) => found(Some(Runtime::Nccl), format!("stock NCCL {}", version.short())),
        None if log.speaks_msccl => found(None, "the MSCCL executor or RCCL".to_owned()),
        None => None,
    }
}

/// Whether variables name plans, or advice.
pub(super) fn names_plans(environment: &Environment) -> bool {
    environment.get("CANOPY_JOB_DIR").is_some() || by_variable(environment, None).is_some()
}

/// The runtime whose variables name plans, or advice; `loaded` is the one that the job loaded.
fn by_variable(environment: &Environment, loaded: Option<Runtime>) -> Option<Runtime> {
    let is_set = |name: &str| environment.get(name).is_some();
    let by_folder = || match loaded {
        Some(Runtime::RcclMsccl) => Runtime::RcclMsccl,
        _ if is_set("RCCL_MSCCL_ENABLE") || is_set("RCCL_MSCCL_FORCE_ENABLE") => Runtime::RcclMsccl,
        _ => Runtime::MscclExecutor,
    };
    match () {
        () if is_set("MSCCL_XML_FILES") || is_set("MSCCL_CONFIG") => Some(Runtime::Msccl),
        () if is_set("MSCCL_ALGO_DIR") => Some(by_folder()),
        () if is_set("MSCCLPP_EXECUTION_PLAN_DIR") => Some(Runtime::Mscclpp08),
        () if is_set("NCCL_TUNER_CONFIG_FILE") || is_set("NCCL_TUNER_PLUGIN") => Some(Runtime::Nccl),
        () => None,
    }
}

/// The runtime that the plans are for: as the manifest says, as the variables say, as the files look.
pub(super) fn planned(environment: &Environment, plans: Option<&Plans>, running: Option<&Running>) -> Option<Runtime> {
    let manifest = plans.and_then(|plans| plans.manifest.as_ref());
    if let Some(runtime) = manifest.and_then(|manifest| manifest.profile.parse().ok()) {
        return Some(runtime);
    }
    let loaded = running.and_then(|running| running.runtime);
    let first = plans.and_then(|plans| plans.paths.first()).map(|path| path.as_path());
    let of_format = |format: Format| match (format, loaded) {
        (Format::MscclXml, Some(loaded)) if loaded.msccl_profile().is_some() => Some(loaded),
        (Format::MscclXml, _) => Some(Runtime::Msccl),
        (Format::MscclppJson, Some(loaded)) if loaded.executor_profile().is_some() => Some(loaded),
        (Format::MscclppJson, _) => Some(Runtime::Mscclpp10),
        (Format::OnecclXml, _) => Some(Runtime::OneCcl),
        (Format::Json | Format::RoutesXml, _) => None,
    };
    let by_file = || first.and_then(|path: &Path| format_at(path)).and_then(of_format);
    by_variable(environment, loaded).or_else(by_file).or_else(|| loaded.filter(|runtime| runtime.rules().is_some()))
}

/// Compares the two; without a word of plans, says which runtime it is.
pub(super) fn check(
    checks: &mut Checks,
    planned: Option<Option<Runtime>>,
    log: Option<&Log>,
    running: Option<&Running>,
) {
    let Some(running) = running else {
        let what = match log {
            Some(_) => "the log does not say which library the job loaded",
            None => "no log says which library the job loaded",
        };
        return checks.unknown(CHECK, what, "run the job with NCCL_DEBUG=INFO and give its log with `--log`");
    };
    let name = &running.name;
    if running.is_before_schema {
        let what = format!("{name} reads another schema and aborts on these plans");
        return checks.problem(CHECK, what, "update MSCCL++ to 0.10 or later");
    }
    let Some(planned) = planned else {
        return checks.ok(
            CHECK,
            match running.runtime {
                Some(Runtime::Nccl) => format!("{name}, which loads no plans"),
                Some(found) => format!("{name}, which runs plans ({found})"),
                None => name.clone(),
            },
        );
    };
    match (running.runtime, planned) {
        (Some(Runtime::Nccl), Some(Runtime::Nccl)) => checks.ok(CHECK, format!("{name}, which takes tuner advice")),
        (Some(Runtime::Nccl), planned) => {
            let library = match planned {
                Some(planned) => format!("load the library that the plans are for ({planned})"),
                None => "load a library that runs plans".to_owned(),
            };
            let help = format!("{library}, or write tuner advice with `canopy tools advise T --to nccl-csv`");
            let executor = if planned == Some(Runtime::MscclExecutor) { " (or the executor with MSCCL off)" } else { "" };
            checks.problem(CHECK, format!("the job loaded {name}{executor}, which cannot load external plans"), help);
        }
        (None, _) => checks.ok(CHECK, name.clone()),
        (Some(found), None) => checks.ok(CHECK, format!("{name} ({found})")),
        (Some(found), Some(planned)) if found == planned => checks.ok(CHECK, format!("{name} ({found})")),
        (Some(found), Some(planned)) => match (found.executor_profile(), planned.executor_profile()) {
            (Some(older), Some(newer)) if older < newer => checks.problem(
                CHECK,
                format!("the job loaded {name}, which is older than the plans ({planned})"),
                format!("update MSCCL++, or convert the plans with `canopy convert FILE --to {found} -o NEW`"),
            ),
            _ => checks.problem(
                CHECK,
                format!("the job loaded {name} ({found}), and the plans are for {planned}"),
                format!("plan again with `--profile {found}`, or convert a plan with `canopy convert FILE --to {found} -o NEW`"),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Outcome;
    use super::*;

    fn found(line: &str) -> Running {
        running(&Log::of_bytes(line.as_bytes())).unwrap()
    }

    fn outcome(planned: Runtime, line: &str) -> (Outcome, String) {
        let mut checks = Checks::default();
        check(&mut checks, Some(Some(planned)), None, Some(&found(line)));
        (checks.list()[0].outcome, checks.list()[0].message.clone())
    }

    #[test]
    fn the_library_is_known_by_what_it_prints() {
        for (line, runtime) in [
            ("NCCL version 2.20.5+cuda12.4", Some(Runtime::Nccl)),
            ("NCCL version 2.12.12.MSCCL.0.7.4+cuda11.8", Some(Runtime::Msccl)),
            (
                "NCCL version 2.23.4+cuda12.4\na:1:1 [0] NCCL INFO MSCCL: Initialization finished",
                Some(Runtime::MscclExecutor),
            ),
            ("RCCL version : 2.27.7-HEAD:0d2c4fd", Some(Runtime::RcclMsccl)),
            ("RCCL version : 2.28.3-HEAD:0d2c4fd", Some(Runtime::Nccl)),
            ("mscclpp version 0.8.0", Some(Runtime::Mscclpp08)),
            ("mscclpp version 0.9.0", Some(Runtime::Mscclpp09)),
            ("mscclpp version 0.11.0", Some(Runtime::Mscclpp10)),
            ("mscclpp version 0.7.0", None),
        ] {
            assert_eq!(found(line).runtime, runtime, "{line}");
        }
    }

    #[test]
    fn stock_nccl_and_old_releases_are_problems() {
        let (stock, what) = outcome(Runtime::Msccl, "NCCL version 2.20.5+cuda12.4");
        assert_eq!(stock, Outcome::Problem);
        assert_eq!(what, "the job loaded stock NCCL 2.20.5, which cannot load external plans");
        assert_eq!(outcome(Runtime::Nccl, "NCCL version 2.28.0+cuda12.4").0, Outcome::Ok);
        assert_eq!(outcome(Runtime::Msccl, "NCCL version 2.12.12.MSCCL.0.7.4+cuda11.8").0, Outcome::Ok);
        assert!(outcome(Runtime::Mscclpp10, "mscclpp version 0.7.0").1.contains("another schema"));
        assert!(outcome(Runtime::Mscclpp10, "mscclpp version 0.9.0").1.contains("older than the plans"));
        assert_eq!(outcome(Runtime::Msccl, "RCCL version : 2.27.7-HEAD:0d2c4fd").0, Outcome::Problem);
    }
}
