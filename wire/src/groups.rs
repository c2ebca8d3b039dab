//! The groups of a job as a request states them.

use std::num::NonZeroU64;

use canopy_proto::v1;
use canopy_topology::{Ratio, Transit};
use canopy_training::job::{Class, Job, JobError, Layout, Movement};

use crate::plan::collective_of_wire;
use crate::plan_request::SIZE_BYTES_MAX_LIMIT;
use crate::refused::RequestError;
use crate::stated_fraction::fraction_read;

/// Most classes of groups.
const CLASSES_MAX: usize = 64;
/// Most jobs that run already.
const RUNNING_MAX: usize = 16;
const COLLECTIVES: &str = "a collective, such as COLLECTIVE_ALLREDUCE, or set `next`";

/// Groups of a job, as a request states them.
#[derive(Clone, Debug)]
pub struct StatedJob {
    /// Its parallel dimensions.
    pub layout: Layout,
    /// Its groups, on ranks of the layout.
    pub job: Job,
    /// By rank of the layout, the rank of the network; empty: the same.
    pub places: Vec<u32>,
    /// What ranks do for groups that they are not in.
    pub transit: Transit,
}

/// A job that runs already, and in which time all its groups end.
#[derive(Clone, Debug)]
pub struct StatedRunning {
    /// Its groups.
    pub stated: StatedJob,
    /// More than 0.
    pub seconds: Ratio,
}

impl StatedJob {
    /// Its groups on the ranks of a network.
    ///
    /// # Errors
    /// Ranks that the network does not have, or that are named twice; other numbers of ranks.
    pub fn on(&self, network: u32) -> Result<Job, JobError> {
        match self.places.as_slice() {
            [] if self.job.rank_count == network => Ok(self.job.clone()),
            [] => Err(JobError::Network { layout: self.job.rank_count, network }),
            places => self.job.placed(places, network),
        }
    }
}

/// The job that is asked for.
///
/// # Errors
/// A field is missing or cannot be.
pub fn job(request: &v1::PlanGroupsRequest) -> Result<StatedJob, RequestError> {
    if request.best_order && !request.ranks.is_empty() {
        return Err(RequestError::Both { field: "ranks".to_owned(), other: "best_order" });
    }
    stated(&request.layout, &request.groups, &request.ranks, request.members_only)
}

/// The jobs that run already.
///
/// # Errors
/// A field is missing or cannot be.
pub fn running_jobs(request: &v1::PlanGroupsRequest) -> Result<Vec<StatedRunning>, RequestError> {
    if request.running.len() > RUNNING_MAX {
        let (found, limit) = (request.running.len() as u64, RUNNING_MAX as u64);
        return Err(RequestError::TooMany { field: "running", found, limit });
    }
    let running = |(position, one): (usize, &v1::RunningGroups)| {
        let read = || {
            let stated = stated(&one.layout, &one.groups, &one.ranks, one.members_only)?;
            let remedy = "state in which time all of its groups end, as its plan does";
            let seconds = one.seconds.as_ref().ok_or(RequestError::Missing { field: "seconds", remedy })?;
            let seconds = fraction_read("seconds", seconds)?;
            if seconds.parts().0.bits() == 0 {
                return Err(RequestError::Zero { field: "seconds" });
            }
            Ok(StatedRunning { stated, seconds })
        };
        read().map_err(|error| RequestError::Running { position, error: Box::new(error) })
    };
    request.running.iter().enumerate().map(running).collect()
}

fn stated(
    layout: &str,
    groups: &[v1::GroupClass],
    places: &[u32],
    members_only: bool,
) -> Result<StatedJob, RequestError> {
    let missing = |field, remedy| Err(RequestError::Missing { field, remedy });
    if layout.is_empty() {
        return missing("layout", "state parallel dimensions and their sizes, such as `tp=8 dp=16`");
    }
    if groups.is_empty() {
        return missing("groups", "state what groups of ranks do");
    }
    if groups.len() > CLASSES_MAX {
        let (found, limit) = (groups.len() as u64, CLASSES_MAX as u64);
        return Err(RequestError::TooMany { field: "groups", found, limit });
    }
    let layout: Layout = layout.parse().map_err(RequestError::Layout)?;
    let classes = groups.iter().enumerate().map(class).collect::<Result<Vec<Class>, _>>()?;
    let transit = if members_only { Transit::Unused } else { Transit::Forward };
    let job = Job::new(&layout, classes)?;
    Ok(StatedJob { layout, job, places: places.to_vec(), transit })
}

fn class((position, stated): (usize, &v1::GroupClass)) -> Result<Class, RequestError> {
    let field = |name: &str| format!("groups[{position}].{name}");
    let collective = collective_of_wire(stated.collective);
    let movement = match (collective, stated.next) {
        (Some(kind), false) => Movement::Collective(kind),
        (None, true) if stated.collective == 0 => Movement::Next,
        (Some(_), true) => return Err(RequestError::Both { field: field("collective"), other: "next" }),
        (None, _) => {
            let (field, number) = (field("collective"), stated.collective);
            return Err(RequestError::UnknownValue { field, number, known: COLLECTIVES });
        }
    };
    let size = Some(stated.size_bytes).filter(|&size| size <= SIZE_BYTES_MAX_LIMIT).and_then(NonZeroU64::new);
    let size_bytes = size.ok_or_else(|| RequestError::GroupSize {
        field: field("size_bytes"),
        found: stated.size_bytes,
        limit: SIZE_BYTES_MAX_LIMIT,
    })?;
    Ok(Class { name: stated.name.clone(), over: stated.over.clone(), movement, size_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fraction::fraction_of;

    fn request() -> v1::PlanGroupsRequest {
        let class = |name: &str, over: &str, collective: v1::Collective| v1::GroupClass {
            name: name.to_owned(),
            over: vec![over.to_owned()],
            collective: collective.into(),
            size_bytes: 1 << 20,
            ..v1::GroupClass::default()
        };
        let next = v1::GroupClass { next: true, ..class("pp", "pp", v1::Collective::Unspecified) };
        v1::PlanGroupsRequest {
            layout: "tp=2 pp=2".to_owned(),
            groups: vec![class("tp", "tp", v1::Collective::Allreduce), next],
            ..v1::PlanGroupsRequest::default()
        }
    }

    #[test]
    fn a_job_is_read() {
        let stated = job(&request()).unwrap();
        let StatedJob { layout, job, transit, .. } = &stated;
        assert_eq!(layout.rank_count(), 4);
        let names: Vec<&str> = job.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["tp.0", "tp.1", "pp.0", "pp.1"]);
        assert_eq!(*transit, Transit::Forward);
        assert_eq!(stated.on(4).unwrap(), *job);
        assert_eq!(stated.on(5).unwrap_err().field(), "layout");
    }

    #[test]
    fn running_jobs_are_read_with_their_places() {
        let v1::PlanGroupsRequest { layout, groups, .. } = request();
        let seconds = Some(fraction_of(3, 50));
        let one = v1::RunningGroups { layout, groups, ranks: vec![7, 5, 3, 1], members_only: true, seconds };
        let asked = |one| v1::PlanGroupsRequest { running: vec![one], ..request() };
        let read = running_jobs(&asked(one.clone())).unwrap();
        let ranks: Vec<u32> = read[0].stated.on(8).unwrap().groups[2].ranks.iter().map(|rank| rank.number()).collect();
        assert_eq!((read[0].stated.transit, ranks), (Transit::Unused, vec![7, 3]));
        let field = |one| running_jobs(&asked(one)).unwrap_err().field();
        for seconds in ["", "0", "-1", "0.5", "1/0"] {
            assert_eq!(
                field(v1::RunningGroups { seconds: Some(v1::Fraction::new(seconds, 0.0)), ..one.clone() }),
                "running[0].seconds"
            );
        }
        assert_eq!(field(v1::RunningGroups { seconds: None, ..one.clone() }), "running[0].seconds");
        assert_eq!(field(v1::RunningGroups { layout: String::new(), ..one.clone() }), "running[0].layout");
        let many = v1::PlanGroupsRequest { running: vec![one; 17], ..request() };
        assert_eq!(running_jobs(&many).unwrap_err().field(), "running");
        let both = v1::PlanGroupsRequest { ranks: vec![0, 1, 2, 3], best_order: true, ..request() };
        assert_eq!(job(&both).unwrap_err().field(), "ranks");
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_field() {
        type Change<'a> = &'a dyn Fn(&mut v1::PlanGroupsRequest);
        let field = |change: Change<'_>| {
            let mut asked = request();
            change(&mut asked);
            job(&asked).unwrap_err().field()
        };
        let cases: [(Change<'_>, &str); 13] = [
            (&|asked| asked.layout.clear(), "layout"),
            (&|asked| asked.layout = "tp=x".to_owned(), "layout"),
            (&|asked| asked.layout = format!("tp={}", u32::MAX), "layout"),
            (&|asked| asked.groups.clear(), "groups"),
            (&|asked| asked.groups = vec![asked.groups[0].clone(); 65], "groups"),
            (&|asked| asked.groups[1].name = "tp".to_owned(), "groups"),
            (&|asked| asked.groups[1].name = "../tp".to_owned(), "groups[1].name"),
            (&|asked| asked.groups[0].over = vec!["dp".to_owned()], "groups[0].over"),
            (&|asked| asked.groups[0].collective = 99, "groups[0].collective"),
            (&|asked| asked.groups[0].next = true, "groups[0].collective"),
            (&|asked| asked.groups[1].next = false, "groups[1].collective"),
            (&|asked| asked.groups[0].size_bytes = 0, "groups[0].size_bytes"),
            (&|asked| asked.groups[0].size_bytes = u64::MAX, "groups[0].size_bytes"),
        ];
        for (change, expected) in cases {
            assert_eq!(field(change), expected);
        }
    }
}
