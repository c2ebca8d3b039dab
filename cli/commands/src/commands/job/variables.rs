//! What has to be in the environment of a task for its runtime to use the plans of a job.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use canopy_bundle::{Runtime, Variable};

use super::bundle::Manifest;

/// Says where the folder of a job is to whoever hands plans over by itself: the module that registers them, a program
/// that is given a path.
const FOLDER: &str = "CANOPY_JOB_DIR";

/// The variables for the files of a job, whose folder is an absolute path; none where there are no files.
pub(super) fn variables(runtime: Runtime, manifest: &Manifest, folder: &str) -> Vec<Variable> {
    let Some(files) = manifest.files_folder() else { return Vec::new() };
    let below =
        |path: &str| path.strip_prefix(files).and_then(|path| path.strip_prefix('/')).unwrap_or(path).to_owned();
    let paths: Vec<String> = manifest.files.iter().map(|file| below(&file.path)).collect();
    let mut found = runtime.variables(&paths);
    for variable in &mut found {
        variable.value = variable.value.replace("{dir}", &format!("{folder}/{files}"));
    }
    if found.is_empty() {
        let purpose = match runtime {
            _ if runtime.is_registered() => "the folder with loader.py, which registers the plans",
            _ => "the folder; manifest.json in it names the plans",
        };
        found.push(Variable { name: FOLDER, value: folder.to_owned(), purpose });
    }
    found
}

/// Variables by which a user decides against plans, or for others, beside those that name plans.
const fn rivals(runtime: Runtime) -> &'static [&'static str] {
    match runtime {
        Runtime::Msccl => &["MSCCL_CONFIG", "NCCL_ALGO"],
        _ => &[],
    }
}

/// Those of the variables that an environment lacks. None at all where its user chose otherwise: one of them has another
/// value, or some other variable contradicts them.
pub(super) fn missing(
    runtime: Runtime,
    variables: Vec<Variable>,
    environment: &BTreeMap<String, String>,
) -> Vec<Variable> {
    let is_open = |name: &&str| match (*name, environment.get(*name)) {
        (_, None) => true,
        ("NCCL_ALGO", Some(algorithms)) => lists_msccl(algorithms),
        (_, Some(_)) => false,
    };
    let agrees = |variable: &Variable| environment.get(variable.name).is_none_or(|found| *found == variable.value);
    if !rivals(runtime).iter().all(is_open) || !variables.iter().all(agrees) {
        return Vec::new();
    }
    variables.into_iter().filter(|variable| !environment.contains_key(variable.name)).collect()
}

/// microsoft/msccl runs plans where `NCCL_ALGO` is unset or lists MSCCL; a list after `^` says what not to use.
pub(in crate::commands) fn lists_msccl(algorithms: &str) -> bool {
    let (excluded, list) = match algorithms.strip_prefix('^') {
        Some(list) => (true, list),
        None => (false, algorithms),
    };
    list.split(',').any(|name| name.trim().eq_ignore_ascii_case("MSCCL")) != excluded
}

/// The variables as a POSIX shell reads them; it sets none where one of them, or of those that contradict them, is set.
pub(super) fn shell(runtime: Runtime, variables: &[Variable]) -> String {
    if variables.is_empty() {
        return "# There are no plans: the runtime's own algorithms serve the job.\n".to_owned();
    }
    let names = variables.iter().map(|variable| variable.name).chain(rivals(runtime).iter().copied());
    let unset: String = names.map(|name| format!("${{{name}+x}}")).collect();
    let mut text = format!("if [ -z \"{unset}\" ]; then\n");
    for Variable { name, value, purpose } in variables {
        let value = value.replace('\'', r"'\''");
        // Writing to a text cannot fail.
        let _written = write!(text, "    # {purpose}\n    export {name}='{value}'\n");
    }
    text + "fi\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &'static str, value: &str) -> Variable {
        Variable { name, value: value.to_owned(), purpose: "what for" }
    }

    fn names(runtime: Runtime, variables: &[Variable], environment: &[(&str, &str)]) -> Vec<&'static str> {
        let environment = environment.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        missing(runtime, variables.to_vec(), &environment).into_iter().map(|variable| variable.name).collect()
    }

    #[test]
    fn what_is_there_is_not_set_again_and_what_differs_is_a_choice() {
        let all = [variable("NCCL_MSCCL_ENABLE", "1"), variable("MSCCL_ALGO_DIR", "/run/x/plans")];
        let ask = |environment: &[(&str, &str)]| names(Runtime::MscclExecutor, &all, environment);
        assert_eq!(ask(&[]), ["NCCL_MSCCL_ENABLE", "MSCCL_ALGO_DIR"]);
        assert_eq!(ask(&[("NCCL_MSCCL_ENABLE", "1")]), ["MSCCL_ALGO_DIR"]);
        assert_eq!(ask(&[("NCCL_MSCCL_ENABLE", "0")]), [""; 0]);
        assert_eq!(ask(&[("MSCCL_ALGO_DIR", "/home/user")]), [""; 0]);
        assert_eq!(ask(&[("MSCCL_CONFIG", "of another runtime")]).len(), 2);
    }

    #[test]
    fn lists_of_algorithms_are_read_as_the_runtime_does() {
        for (list, is_open) in
            [("Ring", false), ("Ring,MSCCL", true), ("msccl", true), ("^MSCCL", false), ("^Ring", true), ("", false)]
        {
            assert_eq!(lists_msccl(list), is_open, "{list}");
        }
    }

    #[test]
    fn a_shell_sets_all_or_nothing() {
        let text = shell(Runtime::Msccl, &[variable("MSCCL_XML_FILES", "/run/it's/a.xml")]);
        let expected = "if [ -z \"${MSCCL_XML_FILES+x}${MSCCL_CONFIG+x}${NCCL_ALGO+x}\" ]; then\n    \
                        # what for\n    export MSCCL_XML_FILES='/run/it'\\''s/a.xml'\nfi\n";
        assert_eq!(text, expected);
        assert!(shell(Runtime::Msccl, &[]).starts_with('#'));
    }
}
