"""Writes the manual page canopyd(8) from what `canopyd --help` prints.

Usage: manual.py CANOPYD VERSION. `canopy man` writes the pages of the command line.
"""

import re
import subprocess
import sys

FOOT = r"""
.SH SIGNALS
.TP
SIGTERM, SIGINT
Refuse new requests, finish running ones within `drain_timeout`, and end with status 0. A second signal ends the process at once.
.TP
SIGHUP
Read the log filter, rules of access, tokens and certificates again.
.SH EXIT STATUS
.TP
0
ended in order
.TP
2
the configuration is invalid, or a check failed
.TP
4
a fault: disk, address in use, bug
.TP
6
another process uses the data directory
.TP
130
ended by a second signal
.SH FILES
.TP
/etc/canopy/canopyd.toml
configuration of the systemd unit
.TP
/var/lib/canopy
plans, audit log and Unix socket of the systemd unit
.SH SEE ALSO
canopy(1), canopy\-server\-serve(1), canopy\-server\-drain(1), canopy\-server\-tokens(1)
"""


def roff(text):
    """Text that roff prints as it is."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return r"\&" + escaped if escaped.startswith(".") else escaped


def help_of(*command):
    done = subprocess.run([*command, "--help"], check=True, capture_output=True, text=True)
    return done.stdout.rstrip("\n")


def blocks(text):
    """The part before the first heading, and the lines below each heading such as `Options:`."""
    parts = {"": []}
    lines = parts[""]
    for line in text.split("\n"):
        heading = re.fullmatch(r"([A-Z][a-z]+):", line)
        if heading:
            lines = parts.setdefault(heading[1], [])
        else:
            lines.append(line)
    return parts


def entries(lines):
    """Pairs of an option and its paragraphs. Options are indented by at most six columns, their texts by more."""
    found = []
    for line in lines:
        if re.match(r" {2,6}[-<\[]", line):
            name, *text = re.split(r" {2,}", line.strip(), maxsplit=1)
            found.append((name, text))
        elif found:
            found[-1][1].append(line.strip())
    return found


def options(lines, known=()):
    page = []
    for name, text in entries(lines):
        if name in known:
            continue
        page += [".TP", rf"\fB{roff(name)}\fR"]
        for line in filter(None, text):
            value = re.match(r"- (\S+): +(.*)", line)
            # Values and the variable of the environment have lines of their own.
            page += [".br"] if value or line.startswith("[env:") else []
            page.append(rf"\fB{roff(value[1])}\fR: {roff(value[2])}" if value else roff(line))
    return page


def usage(text):
    return next(line.removeprefix("Usage: ") for line in text.split("\n") if line.startswith("Usage: "))


def main(canopyd, version):
    text = help_of(canopyd)
    parts = blocks(text)
    about = parts[""][0]
    page = [f'.TH canopyd 8 "" "canopyd {version}"', ".SH NAME", rf"canopyd \- {roff(about[0].lower() + about[1:])}"]
    page += [".SH SYNOPSIS", roff(usage(text)), ".SH DESCRIPTION", roff(about) + ".", "Without a command, canopyd serves."]
    page += ["Settings come from defaults, then the file, then the environment, then options; later ones win."]
    page += [".SH OPTIONS", *options(parts["Options"])]
    known = {name for name, _ in entries(parts["Options"])}
    page.append(".SH COMMANDS")
    for line in parts["Commands"]:
        command = re.match(r"  (\S+)", line)
        if not command or command[1] == "help":
            continue
        text = help_of(canopyd, command[1])
        parts = blocks(text)
        page += [f".SS {roff(command[1])}", rf"\fB{roff(usage(text))}\fR", ".PP", roff(parts[""][0].rstrip(".")) + "."]
        page += options(parts.get("Arguments", []) + parts.get("Options", []), known)
    print("\n".join(page) + FOOT, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
