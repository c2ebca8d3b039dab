//! The groups of a job as a request states them.

use std::num::NonZeroU64;

use canopy_job::{Class, Job, Layout, Movement};
use canopy_proto::v1;
use canopy_topology::Transit;

use crate::plan::collective_of_wire;
use crate::plan_request::SIZE_BYTES_MAX_LIMIT;
use crate::refused::RequestError;

/// Most classes of groups.
const CLASSES_MAX: usize = 64;
const COLLECTIVES: &str = "a collective, such as COLLECTIVE_ALLREDUCE, or set `next`";

/// The layout of a job, its groups, and what ranks do for groups that they are not in.
///
/// # Errors
/// A field is missing or cannot be.
pub fn job(request: &v1::PlanGroupsRequest) -> Result<(Layout, Job, Transit), RequestError> {
    let missing = |field, remedy| Err(RequestError::Missing { field, remedy });
    if request.layout.is_empty() {
        return missing("layout", "state parallel dimensions and their sizes, such as `tp=8 dp=16`");
    }
    if request.groups.is_empty() {
        return missing("groups", "state what groups of ranks do");
    }
    if request.groups.len() > CLASSES_MAX {
        let (found, limit) = (request.groups.len() as u64, CLASSES_MAX as u64);
        return Err(RequestError::TooMany { field: "groups", found, limit });
    }
    let layout: Layout = request.layout.parse().map_err(RequestError::Layout)?;
    let classes = request.groups.iter().enumerate().map(class).collect::<Result<Vec<Class>, _>>()?;
    let transit = if request.members_only { Transit::Unused } else { Transit::Forward };
    let job = Job::new(&layout, classes)?;
    Ok((layout, job, transit))
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
        let (layout, job, transit) = job(&request()).unwrap();
        assert_eq!(layout.rank_count(), 4);
        let names: Vec<&str> = job.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["tp.0", "tp.1", "pp.0", "pp.1"]);
        assert_eq!(transit, Transit::Forward);
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
