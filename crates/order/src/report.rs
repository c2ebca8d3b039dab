//! An order of a network's machines with all that is to be said of it.

use canopy_topology::{HostsError, Topology};

use crate::fabric::{Fabric, NoMachines};
use crate::job::{Group, GroupError, Job};
use crate::part::PartError;
use crate::times::{Times, order_times};
use crate::{Ordered, Stopped, order};

/// An order beside the one given and the one by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Machines of the job, as given.
    pub fabric: Fabric,
    /// The order found.
    pub found: Ordered,
    /// Times of the given order, of that by name and of the one found.
    pub times: [Times; 3],
    /// Times of the order by name with numbers in names as numbers; `None` if that is the order by name.
    pub by_number: Option<Times>,
}

impl Report {
    /// Machines in the order found: the place that was given, the name, and how many ranks it has.
    pub fn machines(&self) -> impl Iterator<Item = (usize, &str, u32)> {
        let machine = |&given: &usize| {
            let (name, &ranks) = (self.fabric.machines().get(given)?, self.fabric.rank_counts().get(given)?);
            Some((given, name.as_str(), ranks))
        };
        self.found.order.iter().filter_map(machine)
    }
}

/// Why there is no order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum OrderError {
    #[error(transparent)]
    Machines(#[from] NoMachines),
    #[error("nodes: {_0}")]
    Hosts(#[from] HostsError),
    #[error(transparent)]
    Part(#[from] PartError),
    #[error(transparent)]
    Groups(#[from] GroupError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Orders the machines of a network, or some of them, for groups of their ranks from the innermost to the outermost; without
/// groups for all ranks together.
///
/// * **Errors.** [`OrderError`].
/// * **Cost.** As [`order`], and the trials of chance.
pub fn report(
    topology: &Topology,
    machines: Option<&[String]>,
    groups: &[Group],
    stop: &dyn Fn() -> bool,
) -> Result<Report, OrderError> {
    let all = Fabric::of(topology)?;
    let fabric = match machines {
        Some(machines) => all.part(machines)?,
        None => all,
    };
    let job = Job::of(groups, fabric.rank_count(), fabric.machines().len())?;
    let found = order(&fabric, &job, stop)?;
    let given: Vec<usize> = (0..found.order.len()).collect();
    let of = |order: &[usize]| order_times(&fabric, &job, order, &found.bound, stop);
    let times = [of(&given)?, of(&found.names)?, of(&found.order)?];
    let by_number = Some(&found.numbers).filter(|numbers| **numbers != found.names);
    let by_number = by_number.map(|numbers| of(numbers)).transpose()?;
    Ok(Report { fabric, found, times, by_number })
}
