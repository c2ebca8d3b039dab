//! Which plan each call gets, by the rules of the runtime, and why none.

use canopy_bundle::{Call, Folder, Mismatch, Operator, Runtime, Selection, select};
use canopy_schedule::CollectiveKind;

use crate::sizes::in_words;
use crate::table::count;

use super::check::{Checks, shown};
use super::log::Log;

/// The check of this module.
const CHECK: &str = "calls";
/// Most calls of which a problem is listed each.
const LISTED_MAX: usize = 8;
/// Bytes of an element if neither log nor arguments state them: a float.
const ELEMENT_BYTES: u64 = 4;

/// A call that the user names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) collective: CollectiveKind,
    pub(super) bytes: u64,
    pub(super) in_place: Option<bool>,
}

/// The calls to look at: the one that is named, on each communicator of the log or for the ranks of each file; else
/// those of the log.
pub(super) fn of(asked: Option<Asked>, log: Option<&Log>, folder: &Folder) -> Vec<Call<'static>> {
    let ranks_per_node = |ranks: u32| log.and_then(|log| log.ranks_per_node(ranks));
    // Where the log does not say how ranks are spread, a plan is not refused for it.
    let stated = |ranks: u32| folder.files.iter().find(|file| file.ranks == ranks).and_then(|file| file.ranks_per_node);
    let spread = |ranks: u32| ranks_per_node(ranks).or_else(|| stated(ranks)).unwrap_or(ranks);
    let Some(Asked { collective, bytes, in_place }) = asked else {
        let calls = log.into_iter().flat_map(|log| &log.calls);
        return calls
            .map(|call| Call {
                collective: call.collective,
                ranks: call.ranks,
                ranks_per_node: spread(call.ranks),
                rank_map: None,
                bytes: call.bytes,
                in_place: call.in_place,
                element_bytes: call.element_bytes,
                operator: call.operator(),
            })
            .collect();
    };
    let mut sizes: Vec<u32> = log.map(|log| log.rank_counts().into_iter().collect()).unwrap_or_default();
    if sizes.is_empty() {
        sizes = folder.files.iter().map(|file| file.ranks).collect();
        sizes.sort_unstable();
        sizes.dedup();
    }
    let call = |ranks: u32| Call {
        collective,
        ranks,
        ranks_per_node: spread(ranks),
        rank_map: None,
        bytes,
        in_place: in_place.unwrap_or(collective == CollectiveKind::Allreduce),
        element_bytes: ELEMENT_BYTES,
        operator: Operator::Sum,
    };
    sizes.into_iter().map(call).collect()
}

/// Asks the rules of the runtime for each call.
pub(super) fn check(checks: &mut Checks, runtime: Runtime, folder: &Folder, calls: &[Call<'_>]) {
    if folder.files.is_empty() {
        return;
    }
    if calls.is_empty() {
        let help = "name one with `-c allreduce --size 64MiB`, or log them with NCCL_DEBUG_SUBSYS=INIT,ENV,COLL";
        return checks.unknown(CHECK, "no call is known that a plan could serve", help);
    }
    let (mut served, mut failing) = (0, Vec::new());
    for call in calls {
        match failure(runtime, folder, call) {
            None => served += 1,
            Some((what, help)) => failing.push((format!("{}: {what}", describe(call)), help)),
        }
    }
    if served > 0 {
        checks.ok(CHECK, format!("plans serve {served} of {} calls", calls.len()));
    }
    let more = failing.len().saturating_sub(LISTED_MAX);
    failing.into_iter().take(LISTED_MAX).for_each(|(what, help)| checks.problem(CHECK, what, help));
    if more > 0 {
        checks.problem(CHECK, format!("{} without a plan", count(more, "more call")), "solve those above first");
    }
}

fn describe(call: &Call<'_>) -> String {
    let place = if call.in_place { "in place" } else { "out of place" };
    format!("{} of {} on {} ranks, {place}", call.collective.name(), in_words(call.bytes), call.ranks)
}

/// Why a call does not run a plan, and what to do; none where it does.
fn failure(runtime: Runtime, folder: &Folder, call: &Call<'_>) -> Option<(String, String)> {
    let path = |position: usize| shown(folder.files.get(position).map_or("", |file| &file.path));
    let (what, help) = match select(runtime, folder, call) {
        Selection::File(_) => return None,
        Selection::Stock { reasons } => {
            // The file that comes nearest is the one that was meant.
            let nearest =
                reasons.iter().enumerate().max_by_key(|(position, reason)| (nearness(reason), usize::MAX - position));
            let Some((position, reason)) = nearest else {
                return Some(("the folder is empty".to_owned(), "plan it".to_owned()));
            };
            let (what, help) = advice(reason, call);
            (format!("{} {what}", path(position)), help)
        }
        Selection::Undetermined { files } => {
            let files: Vec<String> = files.into_iter().take(LISTED_MAX).map(path).collect();
            let what =
                format!("{} match, and the runtime takes the one that its folder lists first", files.join(" and "));
            (what, "keep one of them in the folder".to_owned())
        }
        Selection::Broken { path, attribute } => {
            let what = match attribute {
                Some(attribute) => format!("{} has no `{attribute}`, so every communicator fails", shown(&path)),
                None => format!("{} is not a plan, so every communicator fails", shown(&path)),
            };
            (what, format!("write it again with `canopy convert FILE --to {runtime} -o NEW`, or move it away"))
        }
        Selection::Fails(position) => {
            let what =
                format!("{} is chosen, and fails because the message does not divide into its chunks", path(position));
            (what, "use a size that is a multiple of the plan's alignment".to_owned())
        }
        Selection::AdviceOnly => return None,
    };
    Some((what, help))
}

/// How many rules a file passed before the one that it fails.
const fn nearness(reason: &Mismatch) -> u32 {
    match reason {
        Mismatch::Collective => 0,
        Mismatch::Ranks { .. } => 1,
        Mismatch::RanksPerNode { .. } => 2,
        Mismatch::Devices | Mismatch::InPlace { .. } => 3,
        Mismatch::TooSmall { .. } | Mismatch::TooLarge { .. } => 4,
        Mismatch::Indivisible { .. } => 5,
        Mismatch::Operator => 6,
        Mismatch::NotLoaded { .. } | Mismatch::Later => 7,
    }
}

/// What is said of a file, and what to do.
fn advice(reason: &Mismatch, call: &Call<'_>) -> (String, String) {
    let name = call.collective.name();
    match *reason {
        Mismatch::Collective => ("is for another collective".to_owned(), format!("plan it with `-c {name}`")),
        Mismatch::Ranks { found } => (format!("is for {found} ranks"), format!("plan for {} ranks", call.ranks)),
        Mismatch::RanksPerNode { found } => {
            let help = format!("plan for {} ranks on each machine", call.ranks_per_node);
            (format!("is for {found} ranks on each machine"), help)
        }
        Mismatch::Devices => ("is for other devices".to_owned(), "plan with the job's `--placement`".to_owned()),
        Mismatch::InPlace { call_is_in_place: true } => (
            "is for calls out of place only".to_owned(),
            "plan with `--in-place`, or use another output buffer".to_owned(),
        ),
        Mismatch::InPlace { call_is_in_place: false } => {
            ("is for calls in place only".to_owned(), "plan with `--out-of-place`, or use one buffer".to_owned())
        }
        Mismatch::TooSmall { min } => {
            let help = format!("plan for it with `--sizes {}..…`", in_words(call.bytes).replace(' ', ""));
            (format!("begins at {}", in_words(min)), help)
        }
        Mismatch::TooLarge { last } => {
            let help = format!("plan for it with `--size {}`", in_words(call.bytes).replace(' ', ""));
            (format!("ends at {}", in_words(last)), help)
        }
        Mismatch::Indivisible { count } => {
            let help = "pad the message, or plan with fewer chunks (`--max-chunks`)".to_owned();
            (format!("needs messages that are a multiple of {count} elements"), help)
        }
        Mismatch::Operator => {
            let help = "call it with a sum, and divide afterwards for an average".to_owned();
            ("is for other reductions than the one of the call".to_owned(), help)
        }
        Mismatch::NotLoaded { limit } => {
            let what = format!("is not among the first {limit} files, which are all that the runtime loads");
            (what, "put it first, or remove others".to_owned())
        }
        Mismatch::Later => ("comes after another file".to_owned(), "put it first".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use canopy_bundle::{Divisor, PlanFileFacts};

    use super::*;

    fn folder() -> Folder {
        let file = PlanFileFacts {
            path: "a.xml".to_owned(),
            collective: Some(CollectiveKind::Allreduce),
            ranks: 16,
            ranks_per_node: None,
            rank_map: None,
            in_place: true,
            out_of_place: Some(false),
            bytes_min: Some(1 << 20),
            bytes_max: Some(1 << 30),
            divisor: Divisor::Elements(48),
        };
        Folder { files: vec![file], others: Vec::new() }
    }

    fn message(change: impl Fn(&mut Call)) -> Option<String> {
        let asked = Asked { collective: CollectiveKind::Allreduce, bytes: 48 << 20, in_place: None };
        let mut calls = of(Some(asked), None, &folder());
        assert_eq!((calls.len(), calls[0].ranks, calls[0].in_place), (1, 16, true));
        change(&mut calls[0]);
        failure(Runtime::MscclExecutor, &folder(), &calls[0]).map(|(what, _)| what)
    }

    #[test]
    fn each_rule_is_named_by_what_the_file_says() {
        assert_eq!(message(|_| {}), None);
        for (change, what) in [
            (&(|call: &mut Call| call.ranks = 8) as &dyn Fn(&mut Call), "a.xml is for 16 ranks"),
            (&|call: &mut Call| call.in_place = false, "a.xml is for calls in place only"),
            (&|call: &mut Call| call.bytes = 48 << 10, "a.xml begins at 1 MiB"),
            (&|call: &mut Call| call.bytes = 48 << 30, "a.xml ends at 1 GiB"),
            (&|call: &mut Call| call.bytes = 64 << 20, "a.xml needs messages that are a multiple of 48 elements"),
            (&|call: &mut Call| call.collective = CollectiveKind::Allgather, "a.xml is for another collective"),
            (
                &|call: &mut Call| call.operator = Operator::Average,
                "a.xml is for other reductions than the one of the call",
            ),
        ] {
            assert_eq!(message(change).as_deref(), Some(what));
        }
    }

    #[test]
    fn calls_are_counted_and_unknown_without_any() {
        let mut checks = Checks::default();
        check(&mut checks, Runtime::Msccl, &folder(), &[]);
        assert_eq!(checks.list()[0].message, "no call is known that a plan could serve");
    }
}
