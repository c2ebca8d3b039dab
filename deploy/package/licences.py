"""Prints the licences of all crates that the given crates are linked with, and their texts, each text once.

Usage: licences.py CRATE…. Asks `cargo metadata`, so that it needs no network once the crates are built.
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def linked(metadata, names):
    """The crates of others that these crates are linked with, by name and version."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [package["id"] for package in metadata["packages"] if package["name"] in names]
    if len(waiting) != len(names):
        sys.exit(f"not all of {', '.join(names)} are crates of this workspace")
    seen = set()
    while waiting:
        crate = waiting.pop()
        if crate in seen:
            continue
        seen.add(crate)
        # Of the kind `null` are dependencies of the program; others are of tests and of the build.
        waiting += [dep["pkg"] for dep in nodes[crate]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return sorted((packages[crate] for crate in seen if packages[crate]["source"]), key=lambda p: (p["name"], p["version"]))


def texts(package):
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.name.upper().startswith(NAMES) and path.is_file())
    return [path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip() for path in files]


def main(names):
    command = ["cargo", "metadata", "--locked", "--format-version=1"]
    host = next(line for line in subprocess.check_output(["rustc", "-vV"], text=True).splitlines() if line.startswith("host: "))
    command.append(f"--filter-platform={host.removeprefix('host: ')}")
    packages = linked(json.loads(subprocess.check_output(command)), names)

    print("canopy and canopyd contain the crates below and the standard library of Rust (MIT OR Apache-2.0).")
    print("The licence of each crate follows its name; the texts that the crates come with follow the list.\n")
    owners = {}
    for package in packages:
        print(f"{package['name']} {package['version']}: {package['license'] or 'see its text'}")
        for text in texts(package):
            owners.setdefault(text, []).append(f"{package['name']} {package['version']}")
    for text, names in owners.items():
        print(f"\n{'=' * 79}\n{', '.join(names)}\n{'=' * 79}\n\n{text}")


if __name__ == "__main__":
    main(sys.argv[1:])
