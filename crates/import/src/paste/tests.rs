//! A file that nothing is around says the same when it is cleaned, and each rule takes what it is for.

use super::clean;

fn cleaned(text: &str) -> String {
    match clean(text, &|_| false) {
        Ok(Some(cleaned)) => cleaned.text,
        Ok(None) => text.to_owned(),
        Err(error) => panic!("{error}"),
    }
}

/// Cleaned again, nothing more goes.
#[test]
fn files_that_nothing_is_around_stay_as_they_are() {
    for text in [
        include_str!("../../tests/data/astra.yml"),
        include_str!("../../tests/data/amd-smi-topology.txt"),
        include_str!("../../tests/data/four-gpus.xml"),
        include_str!("../../tests/data/graph.graphml"),
        include_str!("../../tests/data/h100-host.xml"),
        include_str!("../../tests/data/iblinkinfo.out"),
        include_str!("../../tests/data/ibnetdiscover.out"),
        include_str!("../../tests/data/kubernetes-nodes.yaml"),
        include_str!("../../tests/data/links.csv"),
        include_str!("../../tests/data/lldp.json"),
        include_str!("../../tests/data/lstopo.xml"),
        include_str!("../../tests/data/platform.xml"),
        include_str!("../../tests/data/rocm-smi-topo.txt"),
        include_str!("../../tests/data/topograph.yaml"),
        include_str!("../../tests/data/topology.conf"),
        include_str!("../../tests/data/topology.yaml"),
    ] {
        assert_eq!(cleaned(text), text);
    }
}

/// Lines keep their numbers.
#[test]
fn lines_that_go_are_left_empty() {
    for (text, expected) in [
        ("$ cat a\nx = 1\n", "\nx = 1\n"),
        ("[root@a ~]# ibnetdiscover\nvendid=1\n[root@a ~]#", "\nvendid=1\n"),
        ("a\n...\nb", "a\n\nb"),
        ("```\na\n```\n", "\na\n\n"),
        ("<details>\n<summary>a</summary>\nb\n</details>", "\n\nb\n"),
        ("0: a\n0:  b\n0: c\n", "a\n b\nc\n"),
        ("1: x\n1: y\n1: z\nsome words\n", "1: x\n1: y\n1: z\nsome words\n"),
        ("> a\n> > b\n", "a\n> b\n"),
        ("  a\n    b\n", "a\n  b\n"),
        ("\u{1b}[4mGPU0\u{1b}[0m X", "GPU0 X"),
    ] {
        assert_eq!(cleaned(text), expected, "{text}");
    }
}

/// What looks like a tag is none where each line has another.
#[test]
fn keys_of_yaml_are_no_machines() {
    for text in ["a: 1\nb: 2\nc: 3\nd: 4\n", "[1]\t\"S-1\"[2]\n[2]\t\"S-1\"[3]\n", "x: 1\nx: 2\n"] {
        assert_eq!(cleaned(text), text);
    }
}
