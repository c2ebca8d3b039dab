//! Whether a joint schedule is right, decided without the engine.

use canopy_tacos::{Fault, Joint, Sends, Sent, Tenant, Work, judge, judge_delivery};

/// What is wrong with a joint schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JointFault {
    #[error("sends of {found} tenants and works where there are {expected}")]
    Count { found: usize, expected: usize },
    #[error("tenant {tenant}, work {work}: {source}")]
    Work { tenant: usize, work: usize, source: Fault },
    #[error("tenant {tenant}, work {work}: a send starts at {start}, outside {begin} to {end}")]
    Outside { tenant: usize, work: usize, start: u64, begin: u64, end: u64 },
    #[error("thing {thing} is taken by tenant {first} until {until}, and by tenant {second} at {start}")]
    Taken { thing: u32, first: usize, second: usize, start: u64, until: u64 },
    #[error("the last work ends at {found}, not at {stated}")]
    End { found: u64, stated: u64 },
}

/// Who has a thing from when until when.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Taken {
    thing: u32,
    start: u64,
    until: u64,
    tenant: usize,
}

/// Judges a joint schedule: each work by itself right and begun when the one before has ended, nothing taken twice at a
/// time, and the end as stated.
///
/// # Errors
/// [`JointFault`], the first. O(claims · log claims) beyond [`judge`] for each work.
pub(crate) fn judge_joint(tenants: &[Tenant], joint: &Joint) -> Result<(), JointFault> {
    require(joint.sends.len(), tenants.len())?;
    let mut taken: Vec<Taken> = Vec::new();
    let mut found = 0;
    for (number, (tenant, works)) in tenants.iter().zip(&joint.sends).enumerate() {
        require(works.len(), tenant.works().len())?;
        let mut begin = 0;
        for (work, (todo, sends)) in tenant.works().iter().zip(works).enumerate() {
            judge_work(tenant, todo, sends, begin, (number, work))?;
            begin = begin.max(sends.end);
            for sent in &sends.sends {
                taken.extend(tenant.claims()[sent.link as usize].iter().map(|claim| {
                    let (thing, start) = (claim.thing, sent.start);
                    Taken { thing, start, until: start + claim.ticks, tenant: number }
                }));
            }
        }
        found = found.max(begin);
    }
    taken.sort_unstable();
    for pair in taken.windows(2) {
        let (before, next) = (pair[0], pair[1]);
        if before.thing == next.thing && next.start < before.until {
            let (thing, until, start) = (next.thing, before.until, next.start);
            return Err(JointFault::Taken { thing, first: before.tenant, second: next.tenant, start, until });
        }
    }
    if found != joint.end {
        return Err(JointFault::End { found, stated: joint.end });
    }
    Ok(())
}

const fn require(found: usize, expected: usize) -> Result<(), JointFault> {
    if found == expected { Ok(()) } else { Err(JointFault::Count { found, expected }) }
}

/// Judges a work as if it were alone and began at 0.
fn judge_work(
    tenant: &Tenant,
    todo: &Work,
    sends: &Sends,
    begin: u64,
    (number, work): (usize, usize),
) -> Result<(), JointFault> {
    let fault = |source: Fault| JointFault::Work { tenant: number, work, source };
    let end = sends.end;
    let outside = |start: u64| JointFault::Outside { tenant: number, work, start, begin, end };
    let mut seen: Vec<Sent> = Vec::with_capacity(sends.sends.len());
    for (send, &sent) in sends.sends.iter().enumerate() {
        let Sent { start, link, chunk } = sent;
        let known = tenant.network().links().get(link as usize).ok_or(fault(Fault::Unknown { send, link, chunk }))?;
        let arrival = start.checked_add(known.latency).filter(|&arrival| arrival <= end && start >= begin);
        let arrival = arrival.ok_or(outside(start))?;
        let is_sum = matches!(todo, Work::Sum(_));
        seen.push(Sent { start: if is_sum { end - arrival } else { start - begin }, ..sent });
    }
    if matches!(todo, Work::Sum(_)) {
        seen.sort_unstable();
    }
    let last = seen.iter().map(|sent| sent.start + tenant.network().link(sent.link).latency).max().unwrap_or(0);
    // Nothing ends where nothing moves.
    let lasted = if seen.is_empty() { 0 } else { end - begin };
    match todo {
        Work::Copy(task) => judge(tenant.network(), task, &Sends { sends: seen, end: lasted }),
        // How long before its end a sum begins is its own affair.
        Work::Sum(task) => judge(&tenant.network().transposed(), task, &Sends { sends: seen, end: last }),
        Work::Deliver(demands) => judge_delivery(tenant.network(), demands, &Sends { sends: seen, end: lasted }),
    }
    .map_err(fault)
}
