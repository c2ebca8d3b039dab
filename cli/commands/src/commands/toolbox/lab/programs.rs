//! Programs that the helper inside the lab runs, and what may go wrong there.

use std::io;
use std::process::{Command as Process, Stdio};

use canopy_lab::{Command, Program};

/// Why a request was not done.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Trouble {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// Standard error of a program, in one line.
pub(super) fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    lines.join("; ")
}

/// Runs a command to its end; returns what it printed.
pub(super) fn run_command(command: &Command) -> Result<Vec<u8>, Trouble> {
    let name = command.program.name();
    let cannot = |error: io::Error| Trouble::new(format!("cannot run {name}: {error}"));
    let stdin = if command.input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = Process::new(name)
        .args(&command.args)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    if let Some(mut input) = child.stdin.take() {
        // A program that ended early says why.
        let _written = io::Write::write_all(&mut input, command.input.as_bytes());
    }
    let output = child.wait_with_output().map_err(cannot)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let args = command.args.join(" ");
    let shown: String = args.chars().take(120).collect();
    let trouble = Trouble::new(format!("`{name} {shown}` failed: {}", text(&output.stderr)));
    Err(match command.program {
        Program::Tc => trouble.help("the kernel needs the module sch_tbf: `modprobe sch_tbf` as root"),
        Program::Ip if command.input.contains("type veth") => {
            trouble.help("the kernel needs the module veth: `modprobe veth` as root")
        }
        Program::Ip | Program::Nsenter => trouble,
    })
}
