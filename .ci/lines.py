#!/usr/bin/env python3
"""Counts the lines of Rust that are no tests, benchmarks or generated code, by top folder.

    .ci/lines.py [COMMIT...]

Tests are files in folders `tests` and `benches`, files `tests.rs`, and what stands behind `#[cfg(test)]` and `mod tests {` in a file.
"""

import collections
import re
import subprocess
import sys


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def is_counted(path):
    folders = path.split("/")
    is_test = {"tests", "benches", "generated", "fuzz"} & set(folders[:-1]) or folders[-1] == "tests.rs"
    return path.endswith(".rs") and not is_test


def lines(commit):
    found = collections.Counter()
    paths = [path for path in git("ls-tree", "-r", "--name-only", commit).splitlines() if is_counted(path)]
    request = "".join(f"{commit}:{path}\n" for path in paths)
    batch = subprocess.run(["git", "cat-file", "--batch"], input=request.encode(), check=True, capture_output=True).stdout
    for path in paths:
        head, batch = batch.split(b"\n", 1)
        size = int(head.split()[2])
        text, batch = batch[:size].decode(), batch[size + 1 :]
        code = re.split(r"^#\[cfg\((?:all\()?test.*\n(?:#.*\n)*mod tests \{", text, maxsplit=1, flags=re.MULTILINE)[0]
        found["/".join(path.split("/")[: 2 if path.startswith("crates/") else 1])] += code.count("\n")
    return found


for commit in sys.argv[1:] or ["HEAD"]:
    found = lines(commit)
    for folder, count in sorted(found.items(), key=lambda row: -row[1]):
        print(f"{count:8}  {folder}")
    print(f"{sum(found.values()):8}  in all at {commit}\n")
