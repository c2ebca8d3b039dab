//! The file that describes a job.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use canopy_job::{Class, Job, Layout, Movement};
use canopy_topology::Transit;
use serde::Deserialize;

use crate::args;
use crate::exit::Failure;
use crate::input;

/// Longest file.
const BYTES_MAX: usize = 1 << 20;

/// A job as its file states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    topology: String,
    layout: String,
    #[serde(default = "yes")]
    forward: bool,
    groups: Vec<Stated>,
}

const fn yes() -> bool {
    true
}

/// A class of groups.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    name: String,
    over: Names,
    collective: String,
    size: String,
}

/// One name, or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

/// A job, and where it is described.
#[derive(Clone, Debug)]
pub(super) struct Description {
    path: PathBuf,
    document: Document,
}

impl Description {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = input::text(path, BYTES_MAX)?;
        let document = serde_saphyr::from_str(&text).map_err(|error| {
            Failure::input(format!("{}: {error}", path.display()))
                .help("`canopy plan-job --help` shows what such a file looks like")
        })?;
        Ok(Self { path: path.to_owned(), document })
    }

    /// The network as an argument of a command: a file is named from the folder of the description.
    pub(super) fn network(&self) -> String {
        let beside = self.path.parent().map(|folder| folder.join(&self.document.topology));
        match beside.filter(|path| path.is_file()).and_then(|path| path.to_str().map(str::to_owned)) {
            Some(path) => path,
            None => self.document.topology.clone(),
        }
    }

    /// What ranks do for groups that they are not in.
    pub(super) const fn transit(&self) -> Transit {
        if self.document.forward { Transit::Forward } else { Transit::Unused }
    }

    /// The groups.
    pub(super) fn job(&self) -> Result<Job, Failure> {
        let refused = |problem: String| Failure::input(format!("{}: {problem}", self.path.display()));
        let layout: Layout = self.document.layout.parse().map_err(|error| refused(format!("layout: {error}")))?;
        let class = |(number, stated): (usize, &Stated)| {
            let wrong = |field: &str, problem: String| refused(format!("groups[{number}].{field}: {problem}"));
            let size = args::size_bytes(&stated.size).map_err(|problem| wrong("size", problem))?;
            let movement = match stated.collective.as_str() {
                "next" => Movement::Next,
                name => {
                    Movement::Collective(args::collective_kind(name).map_err(|problem| wrong("collective", problem))?)
                }
            };
            Ok(Class {
                name: stated.name.clone(),
                over: match &stated.over {
                    Names::One(name) => vec![name.clone()],
                    Names::Several(names) => names.clone(),
                },
                movement,
                size_bytes: NonZeroU64::new(size).ok_or_else(|| wrong("size", "state at least 1 byte".to_owned()))?,
            })
        };
        let classes = self.document.groups.iter().enumerate().map(class).collect::<Result<Vec<Class>, Failure>>()?;
        Job::new(&layout, classes).map_err(|error| refused(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Job, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let job = Description::read(file.path()).and_then(|description| description.job());
        job.map_err(|failure| failure.sentence())
    }

    #[test]
    fn classes_have_one_dimension_or_several() {
        let job = read(
            "topology: ring:8\nlayout: tp=2 dp=4\ngroups:\n\
             - {name: tp, over: tp, collective: allreduce, size: 64MiB}\n\
             - {name: all, over: [tp, dp], collective: all-to-all, size: 1KiB}\n\
             - {name: pp, over: dp, collective: next, size: 8}\n",
        )
        .unwrap();
        assert_eq!(job.groups.len(), 4 + 1 + 6);
        assert_eq!(job.groups[0].size_bytes.get(), 64 << 20);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("layout: tp=2\n", "topology"),
            ("topology: ring:8\nlayout: tp\ngroups: []\n", "layout: `tp` is not a dimension"),
            ("topology: ring:8\nlayout: tp=2\ngroups: []\n", "no groups"),
            (
                "topology: r\nlayout: tp=2\ngroups: [{name: a, over: tp, collective: sum, size: 1}]\n",
                "groups[0].collective",
            ),
            ("topology: r\nlayout: tp=2\ngroups: [{name: a, over: tp, collective: next, size: 0}]\n", "groups[0].size"),
            ("topology: r\nlayout: tp=2\ncolour: red\ngroups: []\n", "colour"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }
}
