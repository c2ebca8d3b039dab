//! Values of options: durations, sizes, collectives.

mod limits;

use std::collections::BTreeSet;
use std::time::Duration;

use canopy_proto::v1::{self, Fraction, PlanSpec};
use canopy_schedule::{Collective, CollectiveKind, Shares};
use canopy_topology::{Rank, Topology, Transit, closest, read_part, renumbering, same_word};
use clap::ValueEnum;

use crate::blocks::{self, BlockRows};
use crate::exit::Failure;
use crate::input::{digits, file_text, range};
use crate::messages::warn;

pub(crate) use limits::LimitArgs;

/// Which collective, and its root.
#[derive(Debug, clap::Args)]
pub(crate) struct CollectiveArgs {
    /// allgather, reduce-scatter, allreduce, broadcast, reduce, gather, scatter, all-to-all or all-to-all-v
    #[arg(long, short, value_name = "C", value_parser = collective_name)]
    pub(crate) collective: Option<CollectiveName>,
    /// Root of broadcast, reduce, gather and scatter; rank 0 if not given
    #[arg(long, value_name = "RANK")]
    pub(crate) root: Option<u32>,
}

impl CollectiveArgs {
    /// The kind, which every command that takes one needs.
    pub(crate) fn kind(&self) -> Result<CollectiveKind, Failure> {
        let names: Vec<&str> = CollectiveKind::ALL.iter().map(|kind| kind.name()).collect();
        self.collective.map(CollectiveName::kind).ok_or_else(|| {
            Failure::input("no collective is given")
                .help(format!("add `--collective C`, where C is one of {}", names.join(", ")))
        })
    }

    /// The kind where one is given, and all of its blocks have one size.
    pub(crate) fn equal_kind(&self) -> Result<Option<CollectiveKind>, Failure> {
        self.collective.map(CollectiveName::equal_kind).transpose()
    }

    /// The collective on a topology.
    pub(crate) fn on(&self, topology: &Topology) -> Result<Collective, Failure> {
        Collective::new(self.kind()?, self.root.map(Rank::new), topology.rank_count())
            .map_err(|error| Failure::input(error.to_string()))
    }
}

/// Whether output and input share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub(crate) struct MemoryArgs {
    /// Output and input share memory [default: for allreduce]
    #[arg(long, conflicts_with = "out_of_place")]
    in_place: bool,
    /// Output and input are different memory [default: except for allreduce]
    #[arg(long)]
    out_of_place: bool,
}

impl MemoryArgs {
    /// Which it is, where it is said.
    pub(crate) fn in_place(self) -> Option<bool> {
        (self.in_place || self.out_of_place).then_some(self.in_place)
    }
}

/// The name by which an option chooses this.
pub(crate) fn name_of(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Reads a whole number that is not zero.
fn count(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("`{text}` is not a count; write a whole number from 1 on"))
}

/// Reads a whole number that is not zero, and fits 32 bits.
fn count_of_32_bits(text: &str) -> Result<u32, String> {
    u32::try_from(count(text)?).map_err(|_| format!("{text} is too many; write a whole number up to {}", u32::MAX))
}

/// Reads a part of a whole: `1/64`, `1%`, `0.01`.
pub(crate) fn part(text: &str) -> Result<Fraction, String> {
    let part = read_part(text.trim()).filter(|&(numerator, denominator)| {
        0 < numerator && numerator < denominator && denominator <= u64::from(u32::MAX)
    });
    let (numerator, denominator) = part.ok_or_else(|| {
        format!("`{text}` is not a fraction; write a value between 0 and 1, such as 1%, 0.01 or 1/100")
    })?;
    Ok(canopy_wire::fraction_of(numerator, denominator))
}

/// A collective as its name says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectiveName {
    /// Where an all-to-all, one of equal blocks.
    Equal(CollectiveKind),
    /// An all-to-all whose blocks have sizes of their own.
    AllToAllV,
}

impl CollectiveName {
    pub(crate) const fn kind(self) -> CollectiveKind {
        match self {
            Self::Equal(kind) => kind,
            Self::AllToAllV => CollectiveKind::AllToAll,
        }
    }

    /// The kind, for commands that take no weights of blocks.
    pub(crate) fn equal_kind(self) -> Result<CollectiveKind, Failure> {
        match self {
            Self::Equal(kind) => Ok(kind),
            Self::AllToAllV => Err(Failure::input("all-to-all-v needs block sizes, which this command does not take")
                .help("make the plan with `canopy plan T --collective all-to-all-v --blocks FILE`, and give its file")),
        }
    }
}

/// Reads the name of a collective.
pub(crate) fn collective_name(name: &str) -> Result<CollectiveName, String> {
    if same_word(name, "all-to-all-v") || same_word(name, "nccl-all-to-all-v") {
        return Ok(CollectiveName::AllToAllV);
    }
    let names = CollectiveKind::ALL.iter().map(|kind| kind.name());
    CollectiveKind::spelt(name).map(CollectiveName::Equal).map_err(|error| match closest(name, names) {
        Some(meant) => format!("unknown collective `{}`; did you mean `{meant}`?", error.name),
        None => error.to_string(),
    })
}

/// Reads the name of a collective, for commands that take no weights of blocks.
pub(crate) fn collective_kind(name: &str) -> Result<CollectiveKind, String> {
    match collective_name(name)? {
        CollectiveName::Equal(kind) => Ok(kind),
        CollectiveName::AllToAllV => {
            Err("all-to-all-v needs --blocks of `canopy plan`; here all blocks have one size".to_owned())
        }
    }
}

/// Reads `30s`, `1.5m`, `250ms`: a positive number with `ns`, `us`, `ms`, `s`, `m` or `h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match duration_or_zero(text)? {
        Duration::ZERO => Err("the duration is zero; give a positive one, such as `30s`".to_owned()),
        positive => Ok(positive),
    }
}

/// Reads a duration that may be zero; `0` is the one number that needs no unit.
pub(crate) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 6] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let text = text.trim();
    let is_bare = text.ends_with(|c: char| c.is_ascii_digit());
    let as_seconds = is_bare.then(|| scaled(&format!("{text}s"), &UNITS)).flatten();
    match (scaled(text, &UNITS), as_seconds) {
        (Some(nanos), _) => Ok(Duration::from_nanos(nanos)),
        (None, Some(0)) => Ok(Duration::ZERO),
        (None, Some(_)) => {
            Err(format!("`{text}` has no unit; write `{text}s` for seconds or `{text}ms` for milliseconds"))
        }
        (None, None) => {
            Err(format!("`{text}` is not a duration; write a number with ns, us, ms, s, m or h, such as `30s`"))
        }
    }
}

/// Reads `64MiB`, `64M`, `1.5GB`, `4096`: bytes, or a number with a unit, in any case. `K`, `M`, `G` and `T` alone are
/// powers of 2¹⁰, as in nccl-tests; with a `B` they are powers of 10³.
pub(crate) fn size_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 15] = [
        ("", 1),
        ("b", 1),
        ("k", 1 << 10),
        ("m", 1 << 20),
        ("g", 1 << 30),
        ("t", 1 << 40),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
        ("bytes", 1),
    ];
    let error = || format!("`{text}` is not a size; write bytes, or a number with KiB, MiB, GiB, kB, MB or GB");
    match scaled(&text.to_ascii_lowercase(), &UNITS).ok_or_else(error)? {
        0 => Err("the size is zero; give a positive one, such as `64MiB`".to_owned()),
        bytes => Ok(bytes),
    }
}

/// The number before the unit times the unit's factor, exactly; `None` where that is no whole number in range.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let unit_start = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_start);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || decimals.is_empty() || decimals.len() > 18 {
        return None;
    }
    let (whole, decimals_value): (u128, u128) = (whole.parse().ok()?, decimals.parse().ok()?);
    let divisor = 10_u128.pow(u32::try_from(decimals.len()).ok()?);
    let scaled = whole.checked_mul(divisor)?.checked_add(decimals_value)?.checked_mul(u128::from(*factor))?;
    if scaled.is_multiple_of(divisor) { u64::try_from(scaled / divisor).ok() } else { None }
}

/// Most ranks that a list may name: as many as the largest plan has.
const RANKS_MAX: usize = 1 << 16;

/// Ranks in the order in which they are named, each once, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankList(Vec<u32>);

impl RankList {
    pub(crate) fn ranks(&self) -> &[u32] {
        &self.0
    }

    pub(crate) fn into_ranks(self) -> Vec<u32> {
        self.0
    }
}

/// Reads `0,4,8-15`: ranks and ranges of ranks, both ends included, in this order.
pub(crate) fn rank_list(text: &str) -> Result<RankList, String> {
    let ranks = listed_ranks(text)?;
    let mut seen = BTreeSet::new();
    match ranks.iter().find(|&&rank| !seen.insert(rank)) {
        Some(rank) => Err(format!("rank {rank} is named twice; name each once")),
        None => Ok(RankList(ranks)),
    }
}

/// The same where the order says nothing: rising, and each once however often it is named.
pub(crate) fn rank_set(text: &str) -> Result<RankList, String> {
    let ranks: BTreeSet<u32> = listed_ranks(text)?.into_iter().collect();
    Ok(RankList(ranks.into_iter().collect()))
}

fn listed_ranks(text: &str) -> Result<Vec<u32>, String> {
    let error = || format!("`{text}` is not a list of ranks; write numbers and ranges such as 0,4,8-15");
    let mut ranks = Vec::new();
    for part in text.split(',') {
        let (first, last) = range(part).ok_or_else(error)?;
        if (last - first) as usize >= RANKS_MAX {
            return Err(format!("{first}-{last} are too many ranks; name at most {RANKS_MAX}"));
        }
        ranks.extend(first..=last);
        if ranks.len() > RANKS_MAX {
            return Err(format!("more than {RANKS_MAX} ranks are named; leave the list out for all ranks"));
        }
    }
    Ok(ranks)
}

/// Who takes part, and how large their shares are.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PartArgs {
    /// Sizes of the ranks' shares in proportion, such as 1,0,2x6 (2 six times), or @FILE with numbers; equal if not given
    #[arg(long, value_name = "W,...", value_parser = weight_list)]
    pub(crate) shares: Option<WeightList>,
    /// File with the sizes of the blocks of all-to-all-v in proportion: a row for each rank, in it a whole number for what it
    /// has for each rank, 0 for nothing; as JSON, [[0,3],[1,0]], or lines of numbers between commas or blanks
    #[arg(long, value_name = "FILE", value_parser = blocks::read, conflicts_with = "shares")]
    pub(crate) blocks: Option<BlockRows>,
    /// Ranks that take part, such as 0-7,16; in the plan and for other options they are numbered anew, in this order
    #[arg(long, value_name = "R,...", value_parser = rank_list)]
    pub(crate) ranks: Option<RankList>,
    /// What the compute nodes outside --ranks do [default: unused]
    #[arg(long, value_name = "WHAT", value_enum, requires = "ranks")]
    pub(crate) transit: Option<TransitName>,
}

/// What the compute nodes outside a group do for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TransitName {
    /// Forward what others send through them; files of runtimes cannot say so
    Forward,
    /// Nothing
    #[default]
    Unused,
}

impl PartArgs {
    /// The request, of those who take part.
    pub(crate) fn in_request(&self, request: PlanSpec, collective: &CollectiveArgs) -> Result<PlanSpec, Failure> {
        let transit = match self.transit {
            None => v1::GroupTransit::Unspecified,
            Some(TransitName::Forward) => v1::GroupTransit::Forward,
            Some(TransitName::Unused) => v1::GroupTransit::Unused,
        };
        Ok(PlanSpec {
            shares: self.weights(collective)?,
            ranks: self.ranks.clone().map(RankList::into_ranks).unwrap_or_default(),
            transit: transit.into(),
            ..request
        })
    }

    /// The weights of shares, or those of blocks row by row; none for equal ones.
    pub(crate) fn weights(&self, collective: &CollectiveArgs) -> Result<Vec<u64>, Failure> {
        match (&self.blocks, collective.collective) {
            (None, Some(CollectiveName::AllToAllV)) => Err(Failure::input("all-to-all-v needs a size for each block")
                .help("add `--blocks FILE`, or use all-to-all for blocks of one size")),
            (Some(_), Some(CollectiveName::Equal(kind))) => {
                Err(Failure::input(format!("`--blocks` works for all-to-all-v only, not for {kind}"))
                    .help("remove `--blocks`, or use `--collective all-to-all-v`"))
            }
            (Some(blocks), _) => Ok(blocks.weights().to_vec()),
            (None, _) => Ok(self.shares.as_ref().map(|list| list.0.clone()).unwrap_or_default()),
        }
    }

    /// The network as those see it who take part; says on standard error how they are numbered.
    pub(crate) fn on(&self, topology: Topology) -> Result<Topology, Failure> {
        let members = self.ranks.as_ref().map(|list| list.ranks().iter().copied().map(Rank::new).collect::<Vec<_>>());
        if let Some(text) = members.and_then(|members| renumbering(&members)) {
            warn(format_args!("RANKS_RENUMBERED: {text}"));
        }
        self.group(topology)
    }

    /// The same without a word about ranks that get other numbers.
    pub(crate) fn group(&self, topology: Topology) -> Result<Topology, Failure> {
        let Some(list) = &self.ranks else { return Ok(topology) };
        let members: Vec<Rank> = list.ranks().iter().copied().map(Rank::new).collect();
        let transit = match self.transit.unwrap_or_default() {
            TransitName::Forward => Transit::Forward,
            TransitName::Unused => Transit::Unused,
        };
        topology.group(&members, transit).map_err(|error| Failure::input(error.to_string()))
    }

    /// The shares of a collective on it.
    pub(crate) fn shares(&self, asked: &CollectiveArgs, topology: &Topology) -> Result<Shares, Failure> {
        let weights = self.weights(asked)?;
        if weights.is_empty() {
            return Ok(Shares::Equal);
        }
        Shares::in_proportion(asked.on(topology)?, topology.rank_count(), weights)
            .map_err(|error| Failure::input(error.to_string()))
    }
}

/// Weights of shares, by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WeightList(Vec<u64>);

/// Longest file of weights that is read.
const WEIGHTS_FILE_BYTES_MAX: usize = 4 << 20;

/// Reads `1,0,2x6`: weights in the order of ranks, each once or so many times; or `@FILE` with the same, on lines or
/// between commas and blanks.
pub(crate) fn weight_list(text: &str) -> Result<WeightList, String> {
    let Some(path) = text.strip_prefix('@') else { return weights(text.split(',')) };
    let content = file_text(path, WEIGHTS_FILE_BYTES_MAX, "give one number for each rank")?;
    let words = content.split(|c: char| c == ',' || c.is_whitespace());
    weights(words.filter(|word| !word.is_empty()))
}

fn weights<'a>(words: impl Iterator<Item = &'a str>) -> Result<WeightList, String> {
    let mut list = Vec::new();
    for word in words {
        let (weight, times) = word.split_once('x').unwrap_or((word, "1"));
        let both = digits::<u64>(weight).zip(digits::<u64>(times)).filter(|&(_, times)| times > 0);
        let (weight, times) = both.ok_or_else(|| {
            let word: String = word.chars().take(80).collect();
            format!("`{word}` is not a weight of a share; write whole numbers such as 1,0,2x6, or @FILE")
        })?;
        let times = usize::try_from(times).ok().filter(|times| *times <= RANKS_MAX - list.len());
        let times = times.ok_or_else(|| format!("more than {RANKS_MAX} weights are given; give one for each rank"))?;
        list.extend(std::iter::repeat_n(weight, times));
    }
    if list.is_empty() { Err("no weights are given; give one for each rank".to_owned()) } else { Ok(WeightList(list)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_and_name_their_unit() {
        assert_eq!(size_bytes("4096"), Ok(4096));
        assert_eq!(size_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(size_bytes("1.5 GB"), Ok(1_500_000_000));
        assert_eq!(size_bytes("0.5KiB"), Ok(512));
        for (text, bytes) in [("64M", 64 << 20), ("64 MB", 64_000_000), ("1g", 1 << 30), ("64mib", 64 << 20), ("8b", 8)]
        {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
        }
        for bad in ["", "MiB", "-1", "1.0000000001kB", "1e3", "99999999999TiB", "0", "1.", ".5MB", "1.2.3MB"] {
            assert!(size_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_begin_at_one() {
        assert_eq!((count("1"), count("18446744073709551615")), (Ok(1), Ok(u64::MAX)));
        for bad in ["", "0", "-1", "1.5", "two", "18446744073709551616"] {
            assert!(count(bad).is_err(), "{bad}");
        }
        assert_eq!(count_of_32_bits("4294967295"), Ok(u32::MAX));
        assert!(count_of_32_bits("4294967296").is_err());
    }

    #[test]
    fn durations_need_a_unit_and_some_time() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for bad in ["30", "", "s", "0s", "0", "-1s", "1d", "999999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!((duration_or_zero("0"), duration_or_zero("0.0us")), (Ok(Duration::ZERO), Ok(Duration::ZERO)));
        for (bare, to_write) in [("30", "`30s`"), (" 1.5 ", "`1.5ms`")] {
            let message = duration_or_zero(bare).unwrap_err();
            assert!(message.contains("has no unit") && message.contains(to_write), "{message}");
        }
        for bad in ["", ".", "1.", "1e3", "-0"] {
            assert!(duration_or_zero(bad).unwrap_err().contains("is not a duration"), "{bad}");
        }
    }

    #[test]
    fn weights_are_listed_and_repeated() {
        assert_eq!(weight_list("3,0,2x3"), Ok(WeightList(vec![3, 0, 2, 2, 2])));
        assert_eq!(weight_list("18446744073709551615"), Ok(WeightList(vec![u64::MAX])));
        for wrong in
            ["", ",", "1,", "-1", "1x0", "x3", "2x", "1.5", "+1", " 1", "2x3x4", "18446744073709551616", "1x65537"]
        {
            assert!(weight_list(wrong).is_err(), "{wrong}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("weights");
        std::fs::write(&file, "1 2\n3,4x2\n\n").unwrap();
        assert_eq!(weight_list(&format!("@{}", file.display())), Ok(WeightList(vec![1, 2, 3, 4, 4])));
        std::fs::write(&file, "\n").unwrap();
        assert!(weight_list(&format!("@{}", file.display())).is_err());
        assert!(weight_list("@").unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn ranks_are_listed_one_by_one_and_in_ranges() {
        assert_eq!(rank_list("3").unwrap().ranks(), [3]);
        assert_eq!(rank_list("8-10,0,11").unwrap().into_ranks(), [8, 9, 10, 0, 11]);
        assert_eq!(rank_list("8-10,0,9").unwrap_err(), "rank 9 is named twice; name each once");
        assert_eq!(rank_set("8-10,0,9").unwrap().into_ranks(), [0, 8, 9, 10]);
        for wrong in ["", ",", "1,", "-1", "3-2", "1-2-3", "+1", " 1", "4294967296", "a", "0-65536", "0-4294967295"] {
            assert!(rank_list(wrong).is_err(), "{wrong}");
        }
        let many: Vec<String> = (0..4_u32).map(|part| format!("{}-{}", part << 15, (part << 15) + 32_767)).collect();
        assert!(rank_list(&many[..2].join(",")).is_ok());
        assert!(rank_list(&many.join(",")).unwrap_err().contains("more than 65536"));
    }
}
