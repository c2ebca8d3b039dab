//! The variables by which a runtime finds plans, or decides against them.

use std::path::{Path, PathBuf};

use canopy_bundle::Runtime;

use crate::commands::job::variables::lists_msccl;

use super::check::{Checks, shown};
use super::environment::Environment;
use super::log::Log;
use super::plans::Plans;

/// The check of this module.
const CHECK: &str = "environment";

/// The plans that the variables lead to; none where they lead nowhere.
pub(super) fn plans(environment: &Environment) -> Option<Plans> {
    if let Some(list) = environment.get("MSCCL_XML_FILES") {
        return Some(Plans::listed(list.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect()));
    }
    let folders = ["MSCCL_ALGO_DIR", "MSCCLPP_EXECUTION_PLAN_DIR", "CANOPY_JOB_DIR"];
    folders.into_iter().find_map(|name| Plans::at(Path::new(environment.get(name)?)).ok())
}

/// Checks the variables of a runtime. `named` are plans that the user named, which the variables must lead to.
pub(super) fn check(
    checks: &mut Checks,
    runtime: Runtime,
    environment: &Environment,
    log: Option<&Log>,
    named: Option<&Plans>,
) {
    let before = checks.problems();
    match runtime {
        Runtime::Msccl => msccl(checks, environment, named),
        Runtime::MscclExecutor => {
            switched_on(checks, environment, "NCCL_MSCCL_ENABLE");
            folder(checks, runtime, environment, "MSCCL_ALGO_DIR", named);
            if let Some(library) = environment.get("MSCCL_SCHEDULER") {
                let what =
                    format!("MSCCL_SCHEDULER is {}: that library picks the files, by its own rules", shown(library));
                checks.unknown(CHECK, what, "unset MSCCL_SCHEDULER to use the rules of the executor");
            }
        }
        Runtime::RcclMsccl => {
            switched_on(checks, environment, "RCCL_MSCCL_ENABLE");
            if environment.number("RCCL_MSCCL_FORCE_ENABLE") != Some(1) {
                let what = "RCCL_MSCCL_FORCE_ENABLE is not 1, so RCCL uses plans only on machine models it knows";
                checks.unknown(CHECK, what, "export RCCL_MSCCL_FORCE_ENABLE=1");
            }
            folder(checks, runtime, environment, "MSCCL_ALGO_DIR", named);
        }
        Runtime::Mscclpp08 => folder(checks, runtime, environment, "MSCCLPP_EXECUTION_PLAN_DIR", named),
        Runtime::Mscclpp09 | Runtime::Mscclpp10 => {
            let what = format!("{runtime} reads no folder: the program registers its plans");
            checks.unknown(
                CHECK,
                what,
                "make sure that the program imports `loader.py`, or the module beside the plan",
            );
        }
        Runtime::OneCcl => checks.ok(CHECK, "oneccl reads the path that its caller names"),
        // Advice is another matter.
        Runtime::Nccl => return,
    }
    if log.is_some_and(|log| log.has_shared_processes) {
        let what = "a process drives several GPUs, with which MSCCL does not start";
        checks.problem(CHECK, what, "run one process per GPU");
    }
    if checks.problems() == before && !matches!(runtime, Runtime::OneCcl) && !runtime.is_registered() {
        checks.ok(CHECK, "the variables lead to the plans");
    }
}

fn msccl(checks: &mut Checks, environment: &Environment, named: Option<&Plans>) {
    if let Some(algorithms) = environment.get("NCCL_ALGO").filter(|list| !lists_msccl(list)) {
        let what = format!("NCCL_ALGO is {}, which does not contain MSCCL", shown(algorithms));
        checks.problem(CHECK, what, "unset NCCL_ALGO, or export NCCL_ALGO=MSCCL,RING,TREE");
    }
    if let Some(config) = environment.get("MSCCL_CONFIG") {
        let what = format!("MSCCL_CONFIG is {}: its `<load>` elements decide, not MSCCL_XML_FILES", shown(config));
        return checks.problem(CHECK, what, "unset MSCCL_CONFIG, or load the plans there");
    }
    let Some(list) = environment.get("MSCCL_XML_FILES") else {
        let value = match named {
            Some(plans) if !plans.paths.is_empty() => list_of(&plans.paths),
            _ => "/path/plan.xml".to_owned(),
        };
        return checks.problem(CHECK, "MSCCL_XML_FILES is not set", format!("export MSCCL_XML_FILES={value}"));
    };
    let paths: Vec<&str> = list.split(':').filter(|path| !path.is_empty()).collect();
    for path in &paths {
        if let Err(error) = std::fs::metadata(path) {
            let what = format!("MSCCL_XML_FILES names {}, which cannot be read: {error}", shown(path));
            checks.problem(CHECK, what, "name files that every node of the job can read");
        }
    }
    let limit = runtime_files_max(Runtime::Msccl);
    if let Some(ignored) = paths.get(limit..).filter(|ignored| !ignored.is_empty()) {
        let what = format!("MSCCL_XML_FILES names {} files, and the runtime loads {limit}", paths.len());
        checks.problem(CHECK, what, format!("remove {}, or put it among the first {limit}", shown(&ignored.join(" "))));
    }
    let others = |path: &&PathBuf| !paths.iter().any(|listed| is_same(Path::new(listed), path));
    if let Some(missing) = named.and_then(|plans| plans.paths.iter().find(others)) {
        let what = format!("MSCCL_XML_FILES does not name {}", missing.display());
        checks.problem(
            CHECK,
            what,
            format!("export MSCCL_XML_FILES={}", named.map_or_else(String::new, |plans| list_of(&plans.paths))),
        );
    }
}

fn runtime_files_max(runtime: Runtime) -> usize {
    runtime.rules().map_or(usize::MAX, |rules| rules.files_max)
}

/// Paths as a variable lists them.
fn list_of(paths: &[PathBuf]) -> String {
    let limit = runtime_files_max(Runtime::Msccl);
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
    paths.iter().take(limit).map(absolute).collect::<Vec<_>>().join(":")
}

/// A switch that is on unless it is 0.
fn switched_on(checks: &mut Checks, environment: &Environment, name: &'static str) {
    if environment.number(name) == Some(0) {
        checks.problem(CHECK, format!("{name} is 0, which turns plans off"), format!("export {name}=1"));
    }
}

/// A folder of which every file is read.
fn folder(checks: &mut Checks, runtime: Runtime, environment: &Environment, name: &'static str, named: Option<&Plans>) {
    let wanted = named.and_then(Plans::folder);
    let export = || {
        let folder = wanted.map_or_else(|| "/path/plans".to_owned(), |folder| list_of(&[folder.to_owned()]));
        format!("export {name}={folder}")
    };
    let Some(found) = environment.get(name) else {
        let instead = match runtime {
            Runtime::MscclExecutor => ", so the executor reads `msccl-algorithms` beside its library",
            Runtime::RcclMsccl => ", so RCCL reads `../share/rccl/msccl-algorithms` from its library",
            _ => "",
        };
        return checks.problem(CHECK, format!("{name} is not set{instead}"), export());
    };
    match std::fs::read_dir(found) {
        Err(error) => {
            let what = format!("{name} is {}, which cannot be read: {error}", shown(found));
            checks.problem(CHECK, what, "name a folder that every node of the job can read");
        }
        Ok(_) => {
            if let Some(wanted) = wanted.filter(|wanted| !is_same(wanted, Path::new(found))) {
                let what = format!("{name} is {}, and the plans are in {}", shown(found), wanted.display());
                checks.problem(CHECK, what, export());
            }
        }
    }
}

/// Whether two paths lead to one place.
fn is_same(a: &Path, b: &Path) -> bool {
    match (std::fs::canonicalize(a), std::fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn messages(runtime: Runtime, pairs: &[(&str, &str)]) -> Vec<String> {
        let pairs: BTreeMap<String, String> =
            pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut checks = Checks::default();
        check(&mut checks, runtime, &Environment::default().with(&pairs), None, None);
        checks.list().iter().map(|check| check.message.clone()).collect()
    }

    #[test]
    fn each_runtime_has_its_own_variables() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let fine = ["the variables lead to the plans"];
        assert_eq!(messages(Runtime::Msccl, &[]), ["MSCCL_XML_FILES is not set"]);
        assert_eq!(messages(Runtime::Msccl, &[("MSCCL_XML_FILES", path)]), fine);
        let ring = messages(Runtime::Msccl, &[("MSCCL_XML_FILES", path), ("NCCL_ALGO", "Ring,Tree")]);
        assert_eq!(ring, ["NCCL_ALGO is Ring,Tree, which does not contain MSCCL"]);
        let missing = messages(Runtime::Msccl, &[("MSCCL_XML_FILES", "/nowhere/a.xml")]);
        assert!(missing[0].starts_with("MSCCL_XML_FILES names /nowhere/a.xml, which cannot be read"), "{missing:?}");
        let five = [path; 5].join(":");
        let many = messages(Runtime::Msccl, &[("MSCCL_XML_FILES", five.as_str())]);
        assert_eq!(many, ["MSCCL_XML_FILES names 5 files, and the runtime loads 4"]);
        assert!(messages(Runtime::MscclExecutor, &[])[0].starts_with("MSCCL_ALGO_DIR is not set"));
        let off = messages(Runtime::MscclExecutor, &[("MSCCL_ALGO_DIR", path), ("NCCL_MSCCL_ENABLE", "0")]);
        assert_eq!(off, ["NCCL_MSCCL_ENABLE is 0, which turns plans off"]);
        let rccl = [("MSCCL_ALGO_DIR", path), ("RCCL_MSCCL_FORCE_ENABLE", "1")];
        assert_eq!(messages(Runtime::RcclMsccl, &rccl), fine);
        assert_eq!(messages(Runtime::Mscclpp08, &[]), ["MSCCLPP_EXECUTION_PLAN_DIR is not set"]);
    }
}
