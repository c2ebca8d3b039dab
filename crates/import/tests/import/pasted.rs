//! Files as people have them: what terminals, launchers, chats and web pages put around them goes, and what cannot be mended
//! is answered in two lines.

use std::fmt::Write as _;

use canopy_import::{Content, FileKind, ImportError, read_content};
use canopy_prerequisites::real_cases;
use canopy_topology::{ReadError, TopologyLimits};

use crate::small::SMALL;

/// Something around a file, or in it.
struct Change {
    name: &'static str,
    make: fn(&str) -> Vec<u8>,
    /// Whether the answer must be that of the file itself.
    is_harmless: bool,
}

const fn harmless(name: &'static str, make: fn(&str) -> Vec<u8>) -> Change {
    Change { name, make, is_harmless: true }
}

const fn harmful(name: &'static str, make: fn(&str) -> Vec<u8>) -> Change {
    Change { name, make, is_harmless: false }
}

/// Each line with something before it.
fn tagged(text: &str, tag: impl Fn(usize) -> String) -> Vec<u8> {
    let lines = text.lines().enumerate().map(|(number, line)| format!("{}{line}\n", tag(number)));
    lines.collect::<String>().into_bytes()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const CHANGES: &[Change] = &[
    harmless("a prompt", |text| format!("$ cat out.txt\n{text}\n$ ").into_bytes()),
    harmless("a prompt of root", |text| format!("[root@mgmt ~]# show\n{text}[root@mgmt ~]# ").into_bytes()),
    harmless("an environment", |text| format!("(base) user@gpu-01:~/a b$ show -x\n{text}").into_bytes()),
    harmless("a prompt of a pod", |text| format!("root@pod-0:/workspace# nvidia-smi topo -m\n{text}").into_bytes()),
    harmless("PowerShell", |text| format!("PS C:\\Users\\x> show\n{text}\nPS C:\\Users\\x>").into_bytes()),
    harmless("a command", |text| format!("sudo kubectl exec a -- nvidia-smi topo -m\n{text}").into_bytes()),
    harmless("a fence", |text| format!("```\n{text}\n```\n").into_bytes()),
    harmless("a fence with a language", |text| format!("```console\n{text}```\n").into_bytes()),
    harmless("prose and fences", |text| {
        format!("This is our machine:\n\n~~~text\n$ cat out.txt\n{text}\n~~~\n\nThanks for looking.\n").into_bytes()
    }),
    harmless("two fences", |text| format!("We ran\n```sh\nshow --all\n```\nand got\n```\n{text}\n```\n").into_bytes()),
    harmless("details", |text| {
        format!("<details>\n<summary>Click me</summary>\n\n```xml\n{text}\n```\n</details>\n").into_bytes()
    }),
    harmless("a page", |text| format!("<div class=\"x\"><pre><code>{}</code></pre></div>", escaped(text)).into_bytes()),
    harmless("entities", |text| escaped(text).into_bytes()),
    harmless("colours", |text| tagged(text, |_| "\u{1b}[0m\u{1b}[1;32m".to_owned())),
    harmless("a title", |text| format!("\u{1b}]0;user@host: ~\u{7}\u{1b}[?2004h{text}\u{1b}[?2004l").into_bytes()),
    harmless("line ends of Windows", |text| text.replace('\n', "\r\n").into_bytes()),
    harmless("line ends of old", |text| text.replace('\n', "\r").into_bytes()),
    harmless("a byte order mark", |text| format!("\u{feff}{text}").into_bytes()),
    harmless("two bytes a character", |text| {
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    }),
    harmless("wide blanks", |text| text.replace("  ", "\u{a0} ").into_bytes()),
    harmless("invisible characters", |text| text.replace('\n', "\u{200b}\n").into_bytes()),
    harmless("mpirun", |text| tagged(text, |_| "[1,0]<stdout>:".to_owned())),
    harmless("mpirun with a blank", |text| tagged(text, |_| "[1,0]<stdout>: ".to_owned())),
    harmless("srun", |text| tagged(text, |_| "0: ".to_owned())),
    harmless("pdsh", |text| tagged(text, |_| "node1: ".to_owned())),
    harmless("a pod", |text| tagged(text, |_| "[pod/trainer-0/main] ".to_owned())),
    harmless("times of a log", |text| tagged(text, |line| format!("2025-01-07T10:00:{:02}.123456Z ", line % 60))),
    harmless("times within a pod", |text| tagged(text, |_| "[pod/a/b] 2025-01-07T10:00:00Z stdout F ".to_owned())),
    harmless("the journal", |text| tagged(text, |_| "Jan  7 10:00:00 gpu01 job[123]: ".to_owned())),
    harmless("compose", |text| tagged(text, |_| "trainer-1  | ".to_owned())),
    harmless("Ray", |text| tagged(text, |_| "(Worker pid=12, ip=10.0.0.1) ".to_owned())),
    harmless("numbers of lines", |text| tagged(text, |line| format!("{:6}\t", line + 1))),
    harmless("a mail", |text| tagged(text, |_| "> ".to_owned())),
    harmless("an indented block", |text| tagged(text, |_| "    ".to_owned())),
    harmless("ranks with the same output", |text| {
        let lines = text.lines().flat_map(|line| [format!("0: {line}\n"), format!("1: {line}\n")]);
        lines.collect::<String>().into_bytes()
    }),
    harmless("a gathering", |text| format!("----------------\nnode1\n----------------\n{text}\n").into_bytes()),
    harmless("blank lines", |text| format!("\n\n\n{text}\n\n   \n").into_bytes()),
    harmful("ranks with other outputs", |text| {
        let mut both = String::new();
        for line in text.lines() {
            let _ = write!(both, "a: {line}\nb: {}\n", line.replace('0', "1"));
        }
        both.into_bytes()
    }),
    harmful("cut in half", |text| text.get(..text.len() / 2).unwrap_or(text).as_bytes().to_vec()),
    harmful("cut before its end", |text| text.get(..text.len() * 9 / 10).unwrap_or(text).as_bytes().to_vec()),
    harmful("without its first line", |text| text.split_once('\n').map_or("", |(_, rest)| rest).into()),
    harmful("without its middle", |text| {
        let lines: Vec<&str> = text.lines().collect();
        let (third, rest) = lines.split_at(lines.len() / 3);
        format!("{}\n...\n{}\n", third.join("\n"), rest[rest.len() / 2..].join("\n")).into_bytes()
    }),
    harmful("two pastes", |text| format!("{text}\n{text}").into_bytes()),
    harmful("two fences of files", |text| format!("a\n```\n{text}\n```\nb\n```\n{text}\n```\n").into_bytes()),
    harmful("tabs", |text| text.replace("  ", "\t").into_bytes()),
    harmful("lost marks", |text| text.replace('#', "").into_bytes()),
    harmful("one line", |text| text.replace('\n', " ").into_bytes()),
    harmful("no indentation", |text| text.lines().map(|line| format!("{}\n", line.trim())).collect::<String>().into()),
    harmful("a page around it", |text| format!("<html><body>{text}</body></html>").into_bytes()),
    harmful("other text", |text| format!("what is this? {}", text.chars().rev().collect::<String>()).into_bytes()),
];

/// All that a file says, without the sentences about it.
fn said(bytes: &[u8]) -> Result<String, ImportError> {
    let (_, content) = read_content(bytes, &TopologyLimits::STANDARD, &|| false)?;
    Ok(match content {
        Content::Network(draft, _) => format!("{draft:?}"),
        Content::Machine(machine) => format!("{:?} {:?} {:?}", machine.draft, machine.ports, machine.cpus),
        Content::Fabric(fabric) => format!("{:?} {:?} {:?}", fabric.switches, fabric.links, fabric.hosts),
    })
}

/// The answer to a changed file is that of the file, or, where the change may do harm, two lines.
fn check(name: &str, text: &str, change: &Change) -> Result<(), String> {
    let problem = |what: String| Err(format!("{name}, {}: {what}", change.name));
    match (said(text.as_bytes()), said(&(change.make)(text))) {
        (Ok(whole), Ok(changed)) if whole == changed || !change.is_harmless => Ok(()),
        (Ok(_), Ok(changed)) => problem(format!("read as {changed}")),
        (_, Err(error)) if change.is_harmless => problem(error.to_string()),
        // What a network lacks is said as of any network.
        (_, Err(ImportError::Document(ReadError::Topology(_)))) => Ok(()),
        (Err(_), Ok(_)) => Ok(()),
        (_, Err(error)) => {
            let message = error.to_string();
            let has_two_lines = message.split_once("; ").is_some_and(|(what, help)| !what.is_empty() && help.len() > 8);
            if has_two_lines && !message.contains('\n') { Ok(()) } else { problem(message) }
        }
    }
}

#[track_caller]
fn check_all<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut problems = Vec::new();
    for (name, text) in files {
        problems.extend(CHANGES.iter().filter_map(|change| check(name, text, change).err()));
    }
    assert!(problems.is_empty(), "{} of them:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn what_is_around_a_file_goes_and_what_is_broken_is_said_in_two_lines() {
    assert!(CHANGES.len() >= 30);
    let own = "canopy: 1\nnodes:\n- {id: a}\n- {id: b}\nlinks:\n- {from: a, to: b, bandwidth: 1GB/s, both: true}\n";
    let kinds = SMALL.iter().map(|(kind, text)| (kind.name(), *text));
    check_all(kinds.chain([("canopy's own", own)]));
}

/// Reduced files of users: those that are read are read with anything around them.
#[test]
fn files_of_users_are_read_with_anything_around_them() {
    let Some(folder) = real_cases() else { return };
    let mut files: Vec<(String, String)> = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if let Ok(text) = std::fs::read_to_string(&path)
            && said(text.as_bytes()).is_ok()
        {
            files.push((path.file_name().unwrap().to_string_lossy().into_owned(), text));
        }
    }
    assert!(files.len() >= 20, "{files:?}");
    check_all(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
}

/// Nothing is left of a launcher's tag in names, and what was left out of a text is said.
#[test]
fn what_is_missing_is_said() {
    let text = "SwitchName=a Nodes=n[1-2]\n...\nSwitchName=c Nodes=n[5-6]\n";
    let Ok((FileKind::SlurmConf, Content::Fabric(fabric))) =
        read_content(text.as_bytes(), &TopologyLimits::STANDARD, &|| false)
    else {
        panic!("not read")
    };
    assert_eq!(fabric.nodes(), ["n1", "n2", "n5", "n6"]);
    assert!(fabric.report.left_out[0].contains("line 2 stands for others"), "{:?}", fabric.report);
}

/// Text of no kind names the kinds and the nearest, whatever it is.
#[test]
fn text_of_no_kind_is_answered_with_kinds() {
    for (text, words) in [
        ("", "the file is empty; send one of these kinds: NCCL XML, "),
        ("hello", "begins with `hello`; send one of these kinds: NCCL XML, nvidia-smi table, "),
        ("NVLink of GPU0 and GPU1 is fine\n", "nearest to nvidia-smi table; send what `nvidia-smi topo -m` writes"),
        ("lid 4 of the InfiniBand switch\n", "nearest to ibnetdiscover; send what `ibnetdiscover` writes"),
        ("switch lists of slurm, linkspeed 1\n", "nearest to topology.conf; "),
        ("NAME STATUS\n", "begins with `NAME STATUS`"),
        ("NAME   STATUS   ROLES   AGE   VERSION\na   Ready   x   1d   v1\n", "kubectl get nodes -o yaml"),
        ("Machine (503GB total)\n  Package L#0\n", "lstopo --of xml"),
        ("LLDP neighbors:\nInterface: eth0\n", "-f json"),
        ("bash: ibnetdiscover: command not found\n", "run the program where it is installed"),
    ] {
        let error = said(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
        assert!(error.contains("; ") && !error.contains("YAML line"), "{text}: {error}");
    }
}

/// A text of marks that mean something around files is answered in time that grows as it does.
#[test]
#[expect(clippy::disallowed_methods, reason = "what grows with the square of a text takes minutes here")]
fn endless_marks_are_answered_soon() {
    let marks = [
        "<p",
        "<summary>",
        "> ",
        "```\n",
        "(a) ",
        "[1,",
        "0: \n",
        "a: \n",
        "$ ",
        "\u{1b}[",
        "&lt;",
        "<system ",
        "...\n",
    ];
    for mark in marks {
        let text = mark.repeat((1 << 18) / mark.len());
        let begun = std::time::Instant::now();
        let _ = said(text.as_bytes());
        assert!(begun.elapsed().as_secs() < 20, "{mark:?} took {:?}", begun.elapsed());
    }
}
