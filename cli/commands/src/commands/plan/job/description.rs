//! The file that describes a job.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use canopy_proto::v1::{GroupClass, PlanGroupsRequest, RunningGroups};
use canopy_topology::yaml_in_words;
use canopy_wire::collective_on_the_wire;
use serde::Deserialize;

use crate::args;
use crate::exit::Failure;
use crate::input;
use crate::request;

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
    /// Ranks of the network, such as `0-7,16-23`; all of them if it is left out.
    ranks: Option<String>,
    #[serde(default)]
    running: Vec<Running>,
}

/// A job that runs already.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Running {
    /// Its description, beside this one.
    job: String,
    /// In which time all its groups end.
    time: String,
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
            let error = error.without_snippet();
            let line = error.location().map_or(1, |location| location.line());
            Failure::input(format!("{}: line {line}: {}", path.display(), yaml_in_words(error)))
                .help("`canopy tools plan-job --help` shows what such a file looks like")
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

    /// The request on a network; without one, on that of the description. It is the server that judges the groups.
    pub(super) fn request(&self, network: Option<&str>) -> Result<PlanGroupsRequest, Failure> {
        let topology = match network {
            Some(network) => request::topology(network)?,
            None => request::topology(&self.network())?,
        };
        let running = self.document.running.iter().enumerate().map(|(number, running)| self.running(number, running));
        Ok(PlanGroupsRequest {
            topology: Some(topology),
            layout: self.document.layout.clone(),
            groups: self.groups()?,
            members_only: !self.document.forward,
            ranks: self.ranks()?,
            running: running.collect::<Result<_, _>>()?,
            ..PlanGroupsRequest::default()
        })
    }

    fn wrong(&self, field: &str, problem: impl Display) -> Failure {
        Failure::input(format!("{}: {field}: {problem}", self.path.display()))
    }

    fn groups(&self) -> Result<Vec<GroupClass>, Failure> {
        let class = |(number, stated): (usize, &Stated)| {
            let wrong = |field: &str, problem: String| self.wrong(&format!("groups[{number}].{field}"), problem);
            let collective = Some(stated.collective.as_str()).filter(|name| *name != "next");
            let collective = collective.map(args::collective_kind).transpose();
            let collective = collective.map_err(|problem| wrong("collective", problem))?;
            Ok(GroupClass {
                name: stated.name.clone(),
                over: match &stated.over {
                    Names::One(name) => vec![name.clone()],
                    Names::Several(names) => names.clone(),
                },
                collective: collective.map(collective_on_the_wire).unwrap_or_default().into(),
                next: collective.is_none(),
                size_bytes: args::size_bytes(&stated.size).map_err(|problem| wrong("size", problem))?,
            })
        };
        self.document.groups.iter().enumerate().map(class).collect()
    }

    fn ranks(&self) -> Result<Vec<u32>, Failure> {
        let ranks = self.document.ranks.as_deref().map(args::rank_list).transpose();
        Ok(ranks.map_err(|problem| self.wrong("ranks", problem))?.map(args::RankList::into_ranks).unwrap_or_default())
    }

    /// A job that runs already; what it runs beside is not looked at.
    fn running(&self, number: usize, Running { job, time }: &Running) -> Result<RunningGroups, Failure> {
        let other = Self::read(&self.path.with_file_name(job))?;
        let time = args::duration(time).map_err(|problem| self.wrong(&format!("running[{number}].time"), problem))?;
        Ok(RunningGroups {
            layout: other.document.layout.clone(),
            groups: other.groups()?,
            ranks: other.ranks()?,
            members_only: !other.document.forward,
            seconds: canopy_wire::fraction(&format!("{}/1000000000", time.as_nanos())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PlanGroupsRequest, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let asked = Description::read(file.path()).and_then(|description| description.request(None));
        asked.map_err(|failure| failure.sentence())
    }

    #[test]
    fn classes_have_one_dimension_or_several() {
        let asked = read(
            "topology: ring:8\nlayout: tp=2 dp=4\ngroups:\n\
             - {name: tp, over: tp, collective: allreduce, size: 64MiB}\n\
             - {name: all, over: [tp, dp], collective: all-to-all, size: 1KiB}\n\
             - {name: pp, over: dp, collective: next, size: 8}\n",
        )
        .unwrap();
        let said: Vec<_> = asked.groups.iter().map(|class| (class.over.len(), class.next, class.size_bytes)).collect();
        assert_eq!(said, [(1, false, 64 << 20), (2, false, 1 << 10), (1, true, 8)]);
        assert!(!asked.members_only && asked.layout == "tp=2 dp=4");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("layout: tp=2\n", "topology"),
            (
                "topology: ring:8\nlayout: tp=2\ngroups: [{name: a, over: tp, collective: sum, size: 1}]\n",
                "groups[0].collective",
            ),
            (
                "topology: ring:8\nlayout: tp=2\ngroups: [{name: a, over: tp, collective: next, size: x}]\n",
                "groups[0].size",
            ),
            ("topology: r\nlayout: tp=2\ncolour: red\ngroups: []\n", "colour"),
            ("topology: ring:8\nlayout: tp=2\nranks: 3-x\ngroups: []\n", "ranks"),
            (
                "topology: ring:8\nlayout: tp=2\nrunning: [{job: /no/such.yaml, time: 1s}]\ngroups: []\n",
                "/no/such.yaml",
            ),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }
}
