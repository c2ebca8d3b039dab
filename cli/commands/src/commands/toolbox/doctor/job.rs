//! Checks of a job without plans, by its log: machines, networks, variables that take something from the library, warnings, and
//! the way to a gain.

use canopy_bundle::Runtime;

use super::check::{Checks, shown};
use super::environment::Environment;
use super::log::{Communicator, Log};
use super::runtime::Running;
use crate::table::count;

/// Most warnings that are shown.
const WARNINGS_MAX: usize = 8;

/// A variable that takes something from the library, or from its choice.
struct Setting {
    name: &'static str,
    matters: Matters,
    /// Rest of the sentence `NAME is VALUE: …`.
    effect: &'static str,
    help: &'static str,
}

/// With which values a variable matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Matters {
    Always,
    /// 0.
    IfOff,
    /// 1.
    IfOn,
}

const fn setting(name: &'static str, matters: Matters, effect: &'static str, help: &'static str) -> Setting {
    Setting { name, matters, effect, help }
}

const UNSET: &str = "unset it, unless measurements say that it helps";

const SETTINGS: [Setting; 24] = [
    setting("NCCL_ALGO", Matters::Always, "no other algorithm is taken, also where one is faster", UNSET),
    setting("NCCL_PROTO", Matters::Always, "no other protocol is taken, also where one is faster", UNSET),
    setting("NCCL_P2P_DISABLE", Matters::IfOn, "GPUs of a machine do not use NVLink or PCIe between them", "unset it"),
    setting("NCCL_P2P_LEVEL", Matters::Always, "GPUs that are farther apart go through host memory", UNSET),
    setting("NCCL_SHM_DISABLE", Matters::IfOn, "GPUs without P2P go over the network within a machine", "unset it"),
    setting("NCCL_IB_DISABLE", Matters::IfOn, "InfiniBand and RoCE are not used, sockets are", "unset it"),
    setting("NCCL_NET", Matters::Always, "no other network is looked for", UNSET),
    setting("NCCL_NET_GDR_LEVEL", Matters::Always, "GPUs that are farther from a NIC go through host memory", UNSET),
    setting("NCCL_NET_GDR_READ", Matters::IfOff, "what GPUs send passes through host memory", UNSET),
    setting("NCCL_IB_HCA", Matters::Always, "no other NIC is used", "name every NIC of the fabric, or unset it"),
    setting("NCCL_CROSS_NIC", Matters::IfOff, "a ring leaves a machine by the NIC by which it came", CROSS_NIC),
    setting(
        "NCCL_CROSS_NIC",
        Matters::IfOn,
        "rings may go from rail to rail, over the spine",
        "on a fabric of rails, unset it",
    ),
    setting("NCCL_NVLS_ENABLE", Matters::IfOff, "NVSwitches do not add up", UNSET),
    setting("NCCL_MNNVL_ENABLE", Matters::IfOff, "NVLink between machines is not used", UNSET),
    setting("NCCL_COLLNET_ENABLE", Matters::IfOff, "switches of the fabric do not add up", UNSET),
    setting("NCCL_PXN_DISABLE", Matters::IfOn, "a GPU does not use the NIC of another one", UNSET),
    setting("NCCL_MAX_NCHANNELS", Matters::Always, "more channels, and so more NICs and NVLinks, are not used", UNSET),
    setting("NCCL_MAX_CTAS", Matters::Always, "more channels, and so more NICs and NVLinks, are not used", UNSET),
    setting("NCCL_NTHREADS", Matters::Always, "a channel has these threads", UNSET),
    setting("NCCL_BUFFSIZE", Matters::Always, "a channel has a buffer of this size", UNSET),
    setting(
        "NCCL_TOPO_FILE",
        Matters::Always,
        "the machine is taken to be as this file says",
        "check that it is of this kind of machine",
    ),
    setting(
        "NCCL_GRAPH_FILE",
        Matters::Always,
        "rings and trees are those of this file",
        "check that it is of this job",
    ),
    setting("NCCL_CUMEM_ENABLE", Matters::IfOff, "NVLS and NVLink between machines are off, too", UNSET),
    setting("NCCL_DMABUF_ENABLE", Matters::IfOff, "GPUDirect RDMA needs the module nvidia-peermem", UNSET),
];

const CROSS_NIC: &str = "where each GPU has a NIC of its own, unset it: rings stay on their rails anyway";

/// Words of warnings, and what to do about them.
const REMEDIES: [(&str, &str); 12] = [
    ("No space left on device", "give the container a larger /dev/shm, such as `--shm-size=8g`"),
    ("shared memory", "give the container a larger /dev/shm, such as `--shm-size=8g`"),
    ("Duplicate GPU", "give each rank a GPU of its own: check CUDA_VISIBLE_DEVICES and the local rank"),
    ("out of memory", "leave the library some memory of the GPU, or lower NCCL_BUFFSIZE"),
    (
        "status=12",
        "a NIC or a cable lost its peer: look for the port that is down, and report it: `canopy faults report`",
    ),
    ("retry", "a NIC or a cable lost its peer: look for the port that is down, and report it: `canopy faults report`"),
    ("ibv_reg_mr", "let the container lock memory: `--ulimit memlock=-1`, capability IPC_LOCK"),
    ("ibv_", "check the port with `ibv_devinfo`; a container needs /dev/infiniband"),
    ("onnect", "check that the machines reach each other by the interface of NCCL_SOCKET_IFNAME, and the firewall"),
    ("imeout", "a rank is late or dead: look at the last call of each rank"),
    ("ismatch", "all ranks must call the same collectives in the same order, with equal sizes and releases"),
    ("driver", "update the driver of the GPUs, or take a library for its release of CUDA"),
];

/// Makes all checks of this module.
pub(super) fn report(checks: &mut Checks, environment: &Environment, log: Option<&Log>, running: Option<&Running>) {
    let Some(log) = log else {
        settings(checks, environment, &[]);
        let help = "name a log, or the plans with `--plans` and the runtime they are for with `--profile`";
        return checks.unknown("files", "nothing says which plans the job should use", help);
    };
    place(checks, log);
    carriers(checks, environment, log);
    settings(checks, environment, &[]);
    for warning in log.other_warnings.iter().take(WARNINGS_MAX) {
        let remedy = REMEDIES.iter().find(|(words, _)| warning.contains(words)).map(|(_, help)| *help);
        let help = remedy.unwrap_or("look for the first warning of the first rank that failed");
        checks.problem("log", format!("the runtime warns: {warning}"), help);
    }
    if running.is_some_and(|running| running.runtime == Some(Runtime::Nccl)) {
        gain(checks, environment, log);
    }
}

/// The communicator with most ranks.
fn largest(log: &Log) -> Option<Communicator> {
    log.communicators.values().copied().max_by_key(|communicator| (communicator.ranks, communicator.ranks_per_node))
}

/// Number of machines of the largest communicator, where the log says it.
fn machines(log: &Log) -> Option<u32> {
    let Communicator { ranks, ranks_per_node, .. } = largest(log)?;
    ranks_per_node.filter(|&each| each > 0).map(|each| ranks.div_ceil(each))
}

fn place(checks: &mut Checks, log: &Log) {
    let Some(Communicator { ranks, ranks_per_node, .. }) = largest(log) else {
        let help = "the log needs the lines of INIT: NCCL_DEBUG=INFO without NCCL_DEBUG_SUBSYS";
        return checks.unknown("job", "the log names no communicator", help);
    };
    let each = ranks_per_node.zip(machines(log)).map(|(each, machines)| {
        if machines == 1 { " on 1 machine".to_owned() } else { format!(" on {machines} machines, {each} on each") }
    });
    let channels = log.channels.map(|channels| format!("; {}", count(channels, "channel")));
    let ranks = count(ranks, "rank");
    checks.ok("job", format!("{ranks}{}{}", each.unwrap_or_default(), channels.unwrap_or_default()));
}

/// Checks the networks that carry the data of the job.
fn carriers(checks: &mut Checks, environment: &Environment, log: &Log) {
    const CHECK: &str = "network";
    let is_set = |name: &str| environment.number(name).is_some_and(|value| value > 0);
    let has_machines = machines(log).map_or(log.hosts.len() > 1, |machines| machines > 1);
    let of = |name: &str| log.carriers.get(name).copied().unwrap_or_default();
    let is_socket = log.network.as_deref() == Some("Socket") || of("NET/Socket") > 0;
    let by_host = log.carriers.iter().find(|(name, _)| name.starts_with("NET/") && !name.ends_with("/GDRDMA"));
    if has_machines && is_socket {
        let help = if is_set("NCCL_IB_DISABLE") {
            "unset NCCL_IB_DISABLE"
        } else {
            "if they have InfiniBand or RoCE: `ibv_devinfo` must list its ports in the job, also in a container (/dev/infiniband)"
        };
        checks.problem(CHECK, "sockets join the machines (Using network Socket), not InfiniBand or RoCE", help);
    } else if let Some((name, found)) = by_host.filter(|_| has_machines) {
        let what = format!("{} pass through host memory ({name} without GDRDMA)", count(*found, "connection"));
        checks.note(
            CHECK,
            what,
            "load the module nvidia-peermem, or take a kernel with DMA-BUF, and check NCCL_NET_GDR_LEVEL",
        );
    } else if let Some(network) = &log.network {
        checks.ok(CHECK, format!("{network}{}", if has_machines { "" } else { ", which one machine does not need" }));
    }
    if of("SHM") > 0 && !is_set("NCCL_P2P_DISABLE") {
        let what =
            format!("{} between GPUs of a machine pass through host memory (SHM)", count(of("SHM"), "connection"));
        let help =
            "`nvidia-smi topo -p2p r` says whether P2P works; ACS, an IOMMU or a virtual machine can turn it off";
        checks.note(CHECK, what, help);
    }
}

/// Notes variables that take something from the library: those of these names, or all.
pub(super) fn settings(checks: &mut Checks, environment: &Environment, names: &[&str]) {
    for Setting { name, matters, effect, help } in &SETTINGS {
        let is_asked = names.is_empty() || names.contains(name);
        let Some(value) = environment.get(name).filter(|_| is_asked) else { continue };
        let matters = match matters {
            Matters::Always => true,
            Matters::IfOff => environment.number(name) == Some(0),
            Matters::IfOn => environment.number(name) == Some(1),
        };
        if matters {
            checks.note("environment", format!("{name} is {}: {effect}", shown(value)), *help);
        }
    }
}

/// Names the commands that compute what the job can gain.
fn gain(checks: &mut Checks, environment: &Environment, log: &Log) {
    let dump = environment.get("NCCL_TOPO_DUMP_FILE").map(shown);
    let boxes = machines(log).filter(|&machines| machines > 1);
    let file = dump.as_deref().unwrap_or("topo.xml");
    let start = match boxes {
        Some(boxes) => {
            format!(
                "`canopy network replicate {file} --boxes {boxes} --fabric rail -o job.yaml`, then `canopy start job.yaml`"
            )
        }
        None => format!("`canopy start {file}`"),
    };
    let help = match dump {
        Some(_) => start,
        None => format!("write a dump with NCCL_TOPO_DUMP_FILE=topo.xml; then {start}"),
    };
    checks.note("gain", "a log does not say how the GPUs are joined, so not what the job can gain; a dump does", help);
}

#[cfg(test)]
mod tests {
    use super::super::check::Outcome;
    use super::super::runtime;
    use super::*;

    /// Checks of a log with these lines of NCCL.
    fn said(lines: &[&str]) -> Vec<(Outcome, String)> {
        let lines: Vec<String> = lines.iter().map(|line| format!("gpu1:5:8 [0] NCCL INFO {line}")).collect();
        let text = format!("NCCL version 2.27.3+cuda12.4\n{}", lines.join("\n"));
        let log = Log::of_bytes(text.as_bytes());
        let mut checks = Checks::default();
        let environment = Environment::default().with(&log.variables);
        report(&mut checks, &environment, Some(&log), runtime::running(&log).as_ref());
        checks.list().iter().map(|check| (check.outcome, format!("{}: {}", check.check, check.message))).collect()
    }

    const TWO_MACHINES: &str = "comm 0x5 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0";

    #[test]
    fn sockets_between_machines_are_a_problem_and_within_one_are_none() {
        let two = said(&[TWO_MACHINES, "Using network Socket"]);
        assert_eq!(two[0], (Outcome::Ok, "job: 16 ranks on 2 machines, 8 on each".to_owned()));
        assert_eq!(two[1].0, Outcome::Problem, "{two:?}");
        let one = said(&["comm 0x5 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0", "Using network Socket"]);
        assert!(one.iter().all(|(outcome, _)| *outcome != Outcome::Problem), "{one:?}");
    }

    #[test]
    fn what_passes_through_host_memory_is_noted() {
        let lines = [TWO_MACHINES, "Using network IB", "Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0"];
        assert!(
            said(&lines).iter().any(|(outcome, what)| *outcome == Outcome::Note && what.contains("without GDRDMA"))
        );
        let direct = [TWO_MACHINES, "Using network IB", "Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0/GDRDMA"];
        assert!(said(&direct).contains(&(Outcome::Ok, "network: IB".to_owned())), "{:?}", said(&direct));
        let shared = [TWO_MACHINES, "Channel 00/0 : 3[3] -> 4[4] via SHM/direct/direct"];
        assert!(said(&shared).iter().any(|(_, what)| what.starts_with("network: 1 connection between GPUs")));
    }

    #[test]
    fn variables_matter_with_the_values_that_take_something() {
        for setting in &SETTINGS {
            let (on, off) = (
                format!("{} set by environment to 1.", setting.name),
                format!("{} set by environment to 0.", setting.name),
            );
            let matters = |line: &str| said(&[line]).iter().any(|(_, what)| what.contains(setting.effect));
            let expected = match setting.matters {
                Matters::Always => (true, true),
                Matters::IfOff => (false, true),
                Matters::IfOn => (true, false),
            };
            assert_eq!((matters(&on), matters(&off)), expected, "{}", setting.name);
        }
    }

    #[test]
    fn each_warning_has_a_remedy() {
        for (words, help) in &REMEDIES {
            let mut checks = Checks::default();
            let log = Log::of_bytes(format!("gpu1:5:8 [0] net.cc:7 NCCL WARN x {words} y").as_bytes());
            report(&mut checks, &Environment::default(), Some(&log), None);
            let check = checks.list().iter().find(|check| check.check == "log").unwrap();
            let first = REMEDIES.iter().find(|(other, _)| words.contains(other)).map(|(_, help)| *help);
            assert!(check.help.as_deref() == first && !help.is_empty(), "{check:?}");
        }
    }
}
