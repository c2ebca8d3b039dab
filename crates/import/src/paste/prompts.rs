//! What a terminal shows besides the output: prompts, commands, and marks of what was left out.

use std::borrow::Cow;

use super::{Lines, is_blank};

/// Commands whose outputs are read, and by which people get at them.
const COMMANDS: [&str; 36] = [
    "nvidia-smi",
    "rocm-smi",
    "amd-smi",
    "lstopo",
    "lstopo-no-graphics",
    "hwloc-ls",
    "ibnetdiscover",
    "iblinkinfo",
    "kubectl",
    "oc",
    "scontrol",
    "lldpcli",
    "lldpctl",
    "cat",
    "less",
    "more",
    "head",
    "tail",
    "sudo",
    "srun",
    "salloc",
    "mpirun",
    "mpiexec",
    "pdsh",
    "clush",
    "docker",
    "podman",
    "nerdctl",
    "ssh",
    "env",
    "exit",
    "logout",
    "clear",
    "module",
    "python",
    "python3",
];

/// Marks of lines that whoever pastes left out.
const ELLIPSES: [&str; 7] = ["...", "…", "[...]", "[…]", "....", "<snip>", "[snip]"];

/// Shortest line of one mark that is a ruler; `---` parts documents of YAML.
const RULER_MIN: usize = 8;

/// Removes prompts, commands and marks of what is missing; says where something is.
pub(super) fn pass_over(lines: &mut Lines<'_>) -> Vec<String> {
    let mut doubts = Vec::new();
    let (first, last) = {
        let mut said = (0..lines.len()).filter(|&line| !is_blank(&lines[line]) && !is_of_terminal(&lines[line]));
        let first = said.next().unwrap_or_default();
        (first, said.next_back().unwrap_or(first))
    };
    for (number, line) in lines.iter_mut().enumerate() {
        let is_gap = ELLIPSES.contains(&line.trim());
        if is_gap && (first..last).contains(&number) {
            let line = number + 1;
            doubts.push(format!("line {line} stands for others that are not in the text: what they say is missing"));
        }
        if is_gap || is_of_terminal(line) {
            *line = Cow::Borrowed("");
        }
    }
    doubts
}

/// Whether a line is a prompt, a command or a ruler.
pub(super) fn is_of_terminal(line: &str) -> bool {
    let line = line.trim_end();
    is_prompt(line) || is_command(line) || is_ruler(line)
}

/// `----------------`, as `clush -b` and `dshbak` put around names of machines.
fn is_ruler(line: &str) -> bool {
    let first = line.chars().next().filter(|mark| matches!(mark, '-' | '=' | '*' | '_' | '#'));
    line.len() >= RULER_MIN && first.is_some_and(|mark| line.chars().all(|c| c == mark))
}

fn is_command(line: &str) -> bool {
    let mut words = line.split_whitespace();
    // Variables may be set before it.
    let is_variable = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
    };
    let is_name = |word: &str| COMMANDS.contains(&word.rsplit('/').next().unwrap_or(word));
    words.find(|word| !is_variable(word)).is_some_and(is_name) && !line.starts_with([' ', '\t'])
}

/// `$ command`, `user@host:~$ command`, `[user@host dir]# command`, `host:~ # command`, `PS C:\> command` and the like.
fn is_prompt(line: &str) -> bool {
    let bare = |rest: &str| rest.is_empty() || rest.starts_with(' ') && is_command(rest.trim_start());
    let mut line = line.trim_start();
    // Environments of Python stand before it.
    while let Some((_, rest)) = line.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        line = rest;
    }
    if ["❯", "➜", "λ", "PS C:\\", "C:\\"].iter().any(|start| line.starts_with(start)) {
        return true;
    }
    if let Some(rest) = line.strip_prefix('$') {
        return rest.is_empty() || rest.starts_with(' ');
    }
    if let Some(rest) = line.strip_prefix(['#', '%', '>']) {
        return !rest.is_empty() && bare(rest);
    }
    let is_in_prompts = |c: char| c.is_ascii_alphanumeric() || "@._-:~/[]() +".contains(c);
    let Some(mark) = line.find(|c| !is_in_prompts(c)) else { return false };
    let (before, rest) = line.split_at(mark);
    let Some(rest) = rest.strip_prefix(['$', '#', '%', '>']) else { return false };
    let names_user = before.split(' ').next().is_some_and(|word| word.contains('@'));
    let ends = rest.is_empty() || rest.starts_with(' ');
    ends && names_user || !before.trim().contains("  ") && bare(rest) && !before.is_empty() && before.len() <= 80
}
