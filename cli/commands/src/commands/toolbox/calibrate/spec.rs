//! Runs as they are named: FILE, FILE=COLLECTIVE or FILE=COLLECTIVE/ALGORITHM, each with @T or without.

use std::path::Path;

use canopy_calibrate::LIBRARY;
use canopy_schedule::CollectiveKind;
use canopy_stock::nccl::Algorithm;

use crate::exit::{Failure, words};

/// A run as it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) file: String,
    pub(super) collective: Option<CollectiveKind>,
    pub(super) algorithm: Option<String>,
    pub(super) network: Option<String>,
}

/// By what a run was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// NCCL or RCCL, by the algorithm that it chooses.
    Library,
    /// NCCL or RCCL, by this algorithm at every size.
    Forced(Algorithm),
    /// An algorithm of canopy's.
    Own(String),
}

impl Spec {
    pub(super) fn of(text: &str) -> Result<Self, Failure> {
        let nothing = |file: &str| Self { file: file.to_owned(), collective: None, algorithm: None, network: None };
        if Path::new(text).is_file() {
            return Ok(nothing(text));
        }
        let (run, network) = match text.split_once('@') {
            Some((run, network)) => (run, Some(network.to_owned())),
            None => (text, None),
        };
        let Some((file, plan)) = run.rsplit_once('=').filter(|_| !Path::new(run).is_file()) else {
            return Ok(Self { network, ..nothing(run) });
        };
        let (collective, algorithm) = match plan.split_once('/') {
            Some((collective, algorithm)) => (collective, Some(algorithm.to_owned())),
            None => (plan, None),
        };
        let collective: CollectiveKind = collective.parse().map_err(|error| {
            Failure::input(format!("`{text}`: {}", words(&error))).help("write FILE=COLLECTIVE/ALGORITHM@T")
        })?;
        Ok(Self { collective: Some(collective), algorithm, network, ..nothing(file) })
    }
}

impl By {
    /// `nccl`, `nccl-ring` and its kin; words of NCCL alone where the file is one of NCCL's. All others are canopy's.
    pub(super) fn of(stated: Option<&str>, of_file: Option<&str>) -> Option<Self> {
        let name = stated.or(of_file)?;
        let word = match name.strip_prefix(LIBRARY) {
            Some("") => return Some(Self::Library),
            Some(word) => word.strip_prefix('-').unwrap_or(name),
            None if of_file == Some(LIBRARY) => name,
            None => return Some(Self::Own(name.to_owned())),
        };
        let word = if word == "rings" { "ring" } else { word };
        let known = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == word);
        Some(known.map_or_else(|| Self::Own(name.to_owned()), Self::Forced))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_name_collective_algorithm_and_network() {
        let spec = Spec::of("a=b.txt=allgather/ring@dgx-h100:boxes=1").unwrap();
        assert_eq!((spec.file.as_str(), spec.collective), ("a=b.txt", Some(CollectiveKind::Allgather)));
        assert_eq!((spec.algorithm.as_deref(), spec.network.as_deref()), (Some("ring"), Some("dgx-h100:boxes=1")));
        let spec = Spec::of("x.txt@ring:8").unwrap();
        assert_eq!((spec.file.as_str(), spec.collective, spec.network.as_deref()), ("x.txt", None, Some("ring:8")));
        assert!(Spec::of("x.txt=allgater").is_err());
    }

    #[test]
    fn words_of_nccl_are_told_from_algorithms_of_canopy() {
        let own = |name: &str| Some(By::Own(name.to_owned()));
        for (stated, of_file, by) in [
            (None, Some("nccl"), Some(By::Library)),
            (Some("nccl"), Some("auto"), Some(By::Library)),
            (Some("ring"), Some("nccl"), Some(By::Forced(Algorithm::Ring))),
            (Some("ring"), Some("auto"), own("ring")),
            (Some("nccl-rings"), Some("auto"), Some(By::Forced(Algorithm::Ring))),
            (Some("nccl-nvlstree"), None, Some(By::Forced(Algorithm::NvlsTree))),
            (Some("forest"), Some("nccl"), own("forest")),
            (Some("nccl-foo"), None, own("nccl-foo")),
            (None, None, None),
        ] {
            assert_eq!(By::of(stated, of_file), by, "{stated:?} {of_file:?}");
        }
    }
}
