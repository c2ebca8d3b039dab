//! What a log that was written with `NCCL_DEBUG=INFO` states about the job.

mod call;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use canopy_import::unwrapped;

use crate::exit::Failure;
use crate::input::{beginning, cannot_read};

use super::check::shown;
pub(super) use call::LoggedCall;
pub(super) use version::Version;

/// Most of a log that is read; what decides stands at its beginning.
const LOG_BYTES_MAX: usize = 64 << 20;
/// Most of a line that is looked at.
const LINE_BYTES_MAX: usize = 4096;
/// Most communicators, calls, variables and warnings of each kind that are kept.
const KEPT_MAX: usize = 4096;
/// What precedes the words of NCCL in a line.
const MARKS: [&str; 2] = [" NCCL INFO ", " NCCL WARN "];

/// What a log states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Log {
    /// The version of NCCL.
    pub(super) nccl: Option<Version>,
    /// The version of RCCL.
    pub(super) rccl: Option<Version>,
    /// Whether MSCCL++ speaks.
    pub(super) speaks_mscclpp: bool,
    /// The version of MSCCL++.
    pub(super) mscclpp: Option<Version>,
    /// Whether the part of the executor or of RCCL speaks that runs MSCCL files.
    pub(super) speaks_msccl: bool,
    /// Whether there are several GPUs in a process, with which that part does not start.
    pub(super) has_shared_processes: bool,
    /// Variables that were set.
    pub(super) variables: BTreeMap<String, String>,
    /// Communicators by process and address.
    pub(super) communicators: BTreeMap<(String, String), Communicator>,
    /// Channels of the communicator that has most.
    pub(super) channels: Option<u32>,
    /// Collectives that were called, each kind of call once.
    pub(super) calls: BTreeSet<LoggedCall>,
    /// What is said of tuner plugins.
    pub(super) tuner: Vec<String>,
    /// Warnings about plans.
    pub(super) warnings: BTreeSet<String>,
    /// All other warnings.
    pub(super) other_warnings: BTreeSet<String>,
    /// Machines that write, by the names before their lines.
    pub(super) hosts: BTreeSet<String>,
    /// Network between machines: `IB`, `Socket`, or the name of a plug-in.
    pub(super) network: Option<String>,
    /// Connections between ranks by what carries them: `P2P`, `SHM`, `NET/IB`, `NET/IB/GDRDMA`.
    pub(super) carriers: BTreeMap<String, u64>,
    /// Whether the end of the file was not read.
    pub(super) is_cut: bool,
    /// Whether any line is one of NCCL's.
    pub(super) is_of_nccl: bool,
}

/// A communicator, as one of its ranks states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Communicator {
    pub(super) rank: u32,
    pub(super) ranks: u32,
    pub(super) ranks_per_node: Option<u32>,
}

impl Log {
    /// Reads a file, at most its first 64 MiB.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = beginning(path, LOG_BYTES_MAX).map_err(|error| cannot_read(path, &error))?;
        let mut log = Self::of_bytes(&bytes);
        if !log.is_of_nccl {
            // Terminals, chats and web pages may have put something around it.
            let text = String::from_utf8_lossy(&bytes);
            let is_log = |text: &str| Self::of_bytes(text.as_bytes()).is_of_nccl;
            log = unwrapped(&text, &is_log).map_or(log, |text| Self::of_bytes(text.as_bytes()));
        }
        log.is_cut = bytes.len() > LOG_BYTES_MAX;
        if !log.is_of_nccl {
            return Err(Failure::input(format!("{} has no line of NCCL or RCCL", path.display()))
                .help("run the job with NCCL_DEBUG=INFO and give what it prints, or its NCCL_DEBUG_FILE"));
        }
        Ok(log)
    }

    /// Reads the lines of a log.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let mut log = Self::default();
        for line in bytes.split(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(line.get(..LINE_BYTES_MAX).unwrap_or(line));
            log.line(line.trim_end());
        }
        log
    }

    /// Numbers of ranks of all communicators.
    pub(super) fn rank_counts(&self) -> BTreeSet<u32> {
        self.communicators.values().map(|communicator| communicator.ranks).collect()
    }

    /// Ranks on each machine of a communicator of this size, where the log states one number.
    pub(super) fn ranks_per_node(&self, ranks: u32) -> Option<u32> {
        let found: BTreeSet<u32> = self
            .communicators
            .values()
            .filter(|communicator| communicator.ranks == ranks)
            .filter_map(|communicator| communicator.ranks_per_node)
            .collect();
        found.first().copied().filter(|_| found.len() == 1)
    }

    fn line(&mut self, line: &str) {
        self.versions(line);
        let Some((process, words, is_warning)) = MARKS.iter().find_map(|mark| {
            let (process, words) = line.split_once(mark)?;
            Some((process, words, mark.contains("WARN")))
        }) else {
            return;
        };
        self.is_of_nccl = true;
        // Warnings begin with the place in the source that they come from, and so do words of functions that failed.
        let is_of_msccl = words.contains("MSCCL") || [process, words].iter().any(|part| part.contains("msccl/"));
        let process = process_of(process);
        if let Some((host, _)) = process.rsplit_once(':').filter(|_| self.hosts.len() < KEPT_MAX) {
            // A launcher writes its own mark without a blank: `[1,0]<stdout>:gpu001:4711`.
            self.hosts.insert(host.rsplit([':', '>']).next().unwrap_or(host).to_owned());
        }
        if is_warning {
            let warnings = if is_of_msccl { &mut self.warnings } else { &mut self.other_warnings };
            if warnings.len() < KEPT_MAX {
                warnings.insert(shown(words));
            }
        }
        if words.contains("MSCCL doesn't support multiple GPUs in one process") {
            self.has_shared_processes = true;
        }
        // The part is there though a file is not to its liking; RCCL and stock NCCL name plans nowhere.
        self.speaks_msccl |= words.starts_with("MSCCL:")
            || words.starts_with("Using MSCCL")
            || is_of_msccl && (is_warning || words.contains("msccl/"))
            || self.has_shared_processes;
        if words.starts_with("TUNER/") && self.tuner.len() < KEPT_MAX {
            self.tuner.push(shown(words));
        }
        self.traffic(words);
        self.variable(words);
        self.communicator(process, words);
        self.channels(words);
        if self.calls.len() < KEPT_MAX {
            let communicator = |address: &str| self.communicators.get(&(process.to_owned(), address.to_owned()));
            let call = LoggedCall::read(words, communicator);
            self.calls.extend(call);
        }
    }

    fn versions(&mut self, line: &str) {
        for (mark, is_rccl) in [("RCCL version", true), ("NCCL version", false)] {
            let Some((_, rest)) = line.split_once(mark) else { continue };
            let Some(found) = Version::read(rest.trim_start_matches([' ', ':'])) else { continue };
            self.is_of_nccl = true;
            // Before its own banner, RCCL printed that of NCCL.
            let place = if is_rccl || found.text.contains("hip") { &mut self.rccl } else { &mut self.nccl };
            place.get_or_insert(found);
            return;
        }
        let lower = line.to_ascii_lowercase();
        for name in ["mscclpp", "msccl++"] {
            for rest in lower.match_indices(name).filter_map(|(at, _)| lower.get(at + name.len()..)) {
                self.mscclpp(rest);
            }
        }
    }

    /// What follows the name of MSCCL++ in a line.
    fn mscclpp(&mut self, rest: &str) {
        // A variable or a path says nothing about what runs.
        if rest.starts_with(['_', '/', '-', '.']) {
            return;
        }
        self.speaks_mscclpp = true;
        self.is_of_nccl = true;
        let rest = rest.trim_start_matches([' ', ':']);
        let rest = rest.strip_prefix("version").unwrap_or(rest).trim_start_matches([' ', ':', 'v']);
        if let Some(found) = Version::read(rest) {
            self.mscclpp.get_or_insert(found);
        }
    }

    /// `Using network IB`, and `Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0/GDRDMA`.
    fn traffic(&mut self, words: &str) {
        if let Some(name) = words.strip_prefix("Using network ") {
            self.network = Some(shown(name.trim()));
        }
        let Some((_, carrier)) = words.split_once(" via ").filter(|_| words.starts_with("Channel ")) else { return };
        let mut parts = carrier.split(['/', ' ', '(']);
        let name = match (parts.next(), parts.next()) {
            (Some("NET"), Some(network)) if carrier.contains("/GDRDMA") => format!("NET/{network}/GDRDMA"),
            (Some("NET"), Some(network)) => format!("NET/{network}"),
            (Some(name @ ("P2P" | "SHM")), _) => name.to_owned(),
            _ => return,
        };
        if self.carriers.len() < KEPT_MAX || self.carriers.contains_key(&name) {
            *self.carriers.entry(shown(&name)).or_default() += 1;
        }
    }

    /// `NCCL_ALGO set by environment to Ring`.
    fn variable(&mut self, words: &str) {
        let Some((name, value)) =
            words.split_once(" set by environment to ").or_else(|| words.split_once(" set by env to "))
        else {
            return;
        };
        let name = name.rsplit(' ').next().unwrap_or_default();
        let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_name) || self.variables.len() >= KEPT_MAX {
            return;
        }
        // Numbers end with a full stop.
        let number = value.strip_suffix('.').filter(|digits| digits.parse::<i64>().is_ok());
        self.variables.insert(name.to_owned(), number.unwrap_or(value).to_owned());
    }

    /// `comm 0x55 rank 0 nranks 16 cudaDev 0` and `comm 0x55 rank 0 nRanks 16 nNodes 2 localRanks 8`.
    fn communicator(&mut self, process: &str, words: &str) {
        let Some(address) = word_after(words, "comm") else { return };
        let number = |name: &str| word_after(words, name).and_then(|word| word.parse::<u32>().ok());
        let (Some(rank), Some(ranks)) = (number("rank"), number("nranks").or_else(|| number("nRanks"))) else { return };
        let key = (process.to_owned(), address.to_owned());
        if ranks == 0 || (self.communicators.len() >= KEPT_MAX && !self.communicators.contains_key(&key)) {
            return;
        }
        let known = self.communicators.entry(key).or_default();
        let ranks_per_node = number("localRanks").or(known.ranks_per_node.filter(|_| known.ranks == ranks));
        *known = Communicator { rank, ranks, ranks_per_node };
    }

    /// `Channel 00/08 : 0 1 2 3` and `8 coll channels, …`.
    fn channels(&mut self, words: &str) {
        let of_channel = words.strip_prefix("Channel ").and_then(|rest| {
            let (_, rest) = rest.split_once('/')?;
            let (count, rest) = rest.split_once(' ')?;
            rest.trim_start().starts_with(':').then(|| count.parse::<u32>().ok())?
        });
        let of_sum = words.split_once(" coll channels").and_then(|(count, _)| count.rsplit(' ').next()?.parse().ok());
        if let Some(count) = of_channel.or(of_sum) {
            self.channels = self.channels.max(Some(count));
        }
    }
}

/// The process that writes a line, of what stands before NCCL's mark: `host:pid` of `1: host:pid:tid [gpu] file.cc:7`.
///
/// Threads differ within a process.
fn process_of(before: &str) -> &str {
    let is_gpu = |word: &str| {
        let number = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let words: Vec<&str> = before.split_whitespace().collect();
    let gpu = words.iter().rposition(|word| is_gpu(word)).filter(|&position| position > 0);
    let writer = gpu.map_or_else(|| words.first(), |position| words.get(position - 1));
    writer.and_then(|word| word.rsplit_once(':')).map_or("", |(process, _)| process)
}

/// The word after another.
fn word_after<'a>(words: &'a str, name: &str) -> Option<&'a str> {
    let mut words = words.split_whitespace();
    words.find(|word| *word == name)?;
    words.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "gpu001:4711:4720 [0] NCCL INFO";

    fn log(lines: &[&str]) -> Log {
        let lines: Vec<String> = lines.iter().map(|line| format!("{HEAD} {line}")).collect();
        Log::of_bytes(lines.join("\n").as_bytes())
    }

    #[test]
    fn variables_communicators_and_channels_are_read() {
        let log = log(&[
            "NCCL_ALGO set by environment to Ring",
            "NCCL_MAX_NCHANNELS set by environment to 4.",
            "comm 0x55d0 rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0",
            "ncclCommInitRank comm 0x55d0 rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 88000 - Init COMPLETE",
            "Channel 00/08 :    0   1   2   3",
            "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels",
            "Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM",
            "TUNER/Plugin: Using internal tuner plugin.",
            "Connected all rings",
        ]);
        assert_eq!(log.variables["NCCL_ALGO"], "Ring");
        assert_eq!(log.variables["NCCL_MAX_NCHANNELS"], "4");
        let known = Communicator { rank: 3, ranks: 16, ranks_per_node: Some(8) };
        assert_eq!(log.communicators.values().collect::<Vec<_>>(), [&known]);
        assert_eq!((log.channels, log.ranks_per_node(16), log.tuner.len()), (Some(8), Some(8), 1));
        assert!(log.is_of_nccl && !log.speaks_msccl);
    }

    #[test]
    fn banners_say_which_library_it_is() {
        let of = |line: &str| Log::of_bytes(line.as_bytes());
        assert_eq!(of("NCCL version 2.20.5+cuda12.4").nccl.unwrap().numbers, [2, 20, 5]);
        assert!(of("NCCL version 2.12.12.MSCCL.0.7.4+cuda11.8").nccl.unwrap().text.contains("MSCCL"));
        assert_eq!(of("RCCL version : 2.27.7-HEAD:0d2c4fd").rccl.unwrap().numbers, [2, 27, 7]);
        assert_eq!(of("RCCL version 2.18.3+hip5.6 HEAD:1").rccl.unwrap().numbers, [2, 18, 3]);
        let log = of("gpu1:1:1 [0] MSCCLPP INFO mscclpp version: 0.7.0");
        assert!(log.speaks_mscclpp && log.nccl.is_none(), "{log:?}");
        assert!(!log_of_variable().speaks_mscclpp);
    }

    fn log_of_variable() -> Log {
        log(&["MSCCLPP_EXECUTION_PLAN_DIR set by environment to /plans"])
    }

    /// The executor names its files, and the place in its source from which it warns.
    #[test]
    fn the_executor_speaks_by_its_files_and_its_source() {
        for line in [
            "a:5:8 [7] NCCL INFO Using MSCCL Algo files from /x/msccl-algorithms",
            "a:5:8 [7] include/msccl/msccl_parser.h:70 NCCL WARN Attribute minBytes of node algo not found",
            "a:5:8 [7] NCCL INFO misc/msccl/msccl_parser.cc:769 -> 3",
        ] {
            let log = Log::of_bytes(line.as_bytes());
            assert!(log.speaks_msccl, "{line}");
            assert_eq!(log.warnings.len(), usize::from(line.contains("WARN")), "{line}");
        }
        let other = Log::of_bytes(b"a:5:8 [7] NCCL INFO Using network IB\na:5:8 [7] net.cc:7 NCCL WARN no port");
        assert!(!other.speaks_msccl && other.warnings.is_empty(), "{other:?}");
        assert_eq!(other.other_warnings.iter().collect::<Vec<_>>(), ["no port"]);
        assert_eq!((other.network.as_deref(), other.hosts.len()), (Some("IB"), 1));
    }

    #[test]
    fn a_process_is_known_behind_what_launchers_write() {
        for (before, process) in [
            ("gpu1:5:8 [7]", "gpu1:5"),
            ("gpu1:5:8 [7] transport/net.cc:7", "gpu1:5"),
            ("12: gpu1:5:8 [7]", "gpu1:5"),
            ("[pod/worker-0/main] gpu1:5:8 [7] net.cc:7", "gpu1:5"),
            ("2026-01-01T10:00:00 gpu1:5:8 [0]", "gpu1:5"),
            ("gpu1:5:8", "gpu1:5"),
            ("[7]", ""),
            ("", ""),
        ] {
            assert_eq!(process_of(before), process, "{before}");
        }
        let tagged = Log::of_bytes(b"[1,0]<stdout>:gpu1:5:8 [7] NCCL INFO Connected all rings");
        assert_eq!(tagged.hosts.iter().collect::<Vec<_>>(), ["gpu1"]);
    }

    #[test]
    fn what_carries_the_data_is_counted() {
        let log = log(&[
            "Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM",
            "Channel 00/0 : 3[3] -> 4[4] via SHM/direct/direct",
            "Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0/GDRDMA",
            "Channel 01/0 : 3[3] -> 11[3] [send] via NET/IB/3(2)/GDRDMA",
            "Channel 01/0 : 3[3] -> 11[3] [send] via NET/Socket/0",
            "Channel 00/08 : 0 1 2 3",
        ]);
        let expected = [("NET/IB/GDRDMA", 2), ("NET/Socket", 1), ("P2P", 1), ("SHM", 1)];
        assert_eq!(log.carriers.iter().map(|(name, &count)| (name.as_str(), count)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn calls_are_read_with_their_communicator() {
        let log = log(&[
            "comm 0x55d0 rank 1 nranks 4 cudaDev 1 - Init COMPLETE",
            "AllGather: opCount 0 sendbuff 0x1000 recvbuff 0x0 count 1024 datatype 7 op 0 root 0 comm 0x55d0 [nranks=4] stream 0x1",
            "AllReduce: opCount 1 sendbuff 0x1000 recvbuff 0x2000 count 256 datatype 6 op 4 root 0 comm 0x55d0 [nranks=4] stream 0x1",
        ]);
        let calls: Vec<_> = log.calls.iter().collect();
        assert_eq!(calls.len(), 2, "{calls:?}");
        assert!(calls.iter().any(|call| call.in_place && call.bytes == 16384 && call.element_bytes == 4), "{calls:?}");
        assert!(calls.iter().any(|call| !call.in_place && call.bytes == 512), "{calls:?}");
    }

    #[test]
    fn nothing_in_a_log_makes_it_fail() {
        for bytes in
            [&b""[..], b"\n\n", b"\xff\xfe NCCL INFO \xff", b" NCCL INFO ", b"x NCCL INFO comm", b"NCCL version "]
        {
            Log::of_bytes(bytes);
        }
        let endless = [b"a:1:2 [0] NCCL INFO Channel 00/".as_slice(), &[b'9'; 100_000]].concat();
        assert_eq!(Log::of_bytes(&endless).channels, None);
        for words in [
            "AllReduce: opCount 0 sendbuff 0xffffffffffffffff recvbuff 0x1 count 18446744073709551615 datatype 8 op 0 comm 0x1",
            "AllGather: sendbuff nil recvbuff (nil) count -1 datatype 99",
            " set by environment to ",
            "Channel / :",
            " coll channels",
            "comm 0x1 rank 4294967296 nranks 0",
        ] {
            log(&[words]);
        }
    }
}
