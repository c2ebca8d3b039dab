//! Who uses which link while all groups of a job run at once.

use std::path::Path;

use canopy_draw::{SharesDrawing, UseClass, draw_shares};
use canopy_schedule::{SharedPart, shared_links};
use canopy_topology::Ratio;

use crate::commands::verify::groups;
use crate::exit::{Failure, words};
use crate::group_plans::{Folder, Planned, class};
use crate::output::MANIFEST;
use crate::sizes::in_words;
use crate::table::count;

/// The folder of a job's plans, if the argument is a folder or a manifest.
///
/// # Errors
/// It is a folder of something else, or cannot be read.
pub(super) fn folder(subject: &str) -> Result<Option<Folder>, Failure> {
    let path = Path::new(subject);
    let is_other = |what: &str| {
        Failure::input(format!("{subject} {what}"))
            .help("give the folder that `canopy tools plan-job JOB.yaml -o DIR` wrote, or a single plan")
    };
    if path.is_dir() && !path.join(MANIFEST).is_file() {
        return Err(is_other(&format!("is a folder without {MANIFEST}")));
    }
    let found = Folder::open(path)?;
    if found.is_none() && path.is_dir() {
        return Err(is_other("is a folder of something else than the plans of a job's groups"));
    }
    Ok(found)
}

/// Checks the plans and draws who uses which link.
pub(super) fn draw(name: &str, folder: &Folder) -> Result<String, Failure> {
    let planned = groups::sound(folder)?;
    let (classes, numbers) = classes(&planned);
    let parts: Vec<(usize, SharedPart<'_>)> = numbers.into_iter().zip(groups::parts(&planned)).collect();
    let links = shared_links(&folder.network, &parts, classes.len()).map_err(|error| Failure::input(words(&error)))?;
    let network = &folder.network;
    let called = network.name().unwrap_or(name);
    let time = folder.manifest.seconds.parse::<Ratio>().map_or(0.0, |time| time.to_f64() * 1e3);
    let title = format!("Who uses which link of {called}: {} at once, {time:.3} ms", count(planned.len(), "group"));
    let ranks = network.rank_count();
    let others = network.nodes().len().saturating_sub(usize::try_from(ranks).unwrap_or(usize::MAX));
    let mut notes = vec![format!(
        "{}, {}, {}. A part is the bytes of a class over what the link can carry in the {time:.3} ms that all groups take \
         together.",
        count(ranks, "rank"),
        count(others, "other node"),
        count(network.links().len(), "link"),
    )];
    if !folder.manifest.lost_ranks.is_empty() {
        notes.push(format!("{} gone; groups go on without.", ranks_are(folder.manifest.lost_ranks.len())));
    }
    Ok(draw_shares(&SharesDrawing {
        title: &title,
        notes: &notes,
        topology: network,
        classes: &classes,
        links: &links,
    }))
}

fn ranks_are(number: usize) -> String {
    format!("{} {}", count(number, "rank"), if number == 1 { "is" } else { "are" })
}

/// The classes in order of their first groups, and by group the number of its class.
fn classes(planned: &[Planned<'_>]) -> (Vec<UseClass>, Vec<usize>) {
    let mut names: Vec<&str> = Vec::new();
    let numbers = planned.iter().map(|one| {
        let name = class(&one.group.name);
        names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        })
    });
    let numbers: Vec<usize> = numbers.collect();
    let found = names.iter().enumerate().map(|(number, name)| {
        let own: Vec<&Planned<'_>> =
            planned.iter().zip(&numbers).filter(|(_, class)| **class == number).map(|(one, _)| one).collect();
        of(name, &own)
    });
    (found.collect(), numbers)
}

/// A class and its groups.
fn of(name: &str, own: &[&Planned<'_>]) -> UseClass {
    let mut does: Vec<&str> = own.iter().map(|one| one.group.collective.as_str()).collect();
    does.dedup();
    let sizes = || own.iter().map(|one| one.group.size_bytes.get());
    let size = match (sizes().min(), sizes().max()) {
        (Some(least), Some(most)) if least < most => format!("{} to {}", in_words(least), in_words(most)),
        (_, most) => in_words(most.unwrap_or(0)),
    };
    UseClass {
        name: name.to_owned(),
        does: if let [one] = does.as_slice() { (*one).to_owned() } else { "several".to_owned() },
        groups: own.len(),
        ranks: own.iter().map(|one| one.members.len()).max().unwrap_or(0),
        size,
    }
}
