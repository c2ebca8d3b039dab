#!/usr/bin/env python3
"""Compares what two builds of the command line plan: files, exit status and messages must be the same.

    .ci/same_plans.py OLD NEW

Some 230 plans: every collective and format on networks of several kinds, algorithms by name, shares, groups, small messages,
and faults. Each build has a folder of its own for what it keeps. Times in messages are left out of the comparison.
"""

import hashlib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

COLLECTIVES = "allgather reduce-scatter allreduce broadcast reduce gather scatter all-to-all".split()
FORMATS = [
    ["json"],
    ["msccl-xml"],
    ["msccl-xml", "--instances", "2"],
    ["mscclpp-json"],
    ["oneccl-xml"],
    ["routes-xml"],
]
NETWORKS = ["dgx-a100:boxes=2", "torus:3x4", "hypercube:3"]
FAULTS = [
    "dgx-a100:boxes=2,faults=nics:2@1/2+seed:3",
    "dgx-a100:boxes=4,faults=gpus:2+seed:1",
    "torus:4x4,down=0.0-0.1",
    "mi250:boxes=2,nodes-down=b0g5",
    "rail:boxes=4,faults=nics:3+seed:2",
]
ALGORITHMS = (
    "forest flow bfb tsmcf tacos tacos-published direct-xy ring-xy taccl-like expansion multitree blink direct ring sssp ewsp dor "
    "pmcf pmcf-shortest pairwise bruck recursive-doubling binomial double-tree local-ring bine swing"
).split()
TIMES = re.compile(r"\d+(\.\d+)? ?(ns|us|µs|ms|s|min)\b")


def cases():
    for network, collective, form in itertools.product(NETWORKS, COLLECTIVES, FORMATS):
        yield [network, "-c", collective, "-f", *form]
    for network, collective in itertools.product(FAULTS, ["allgather", "allreduce", "all-to-all", "broadcast"]):
        yield [network, "-c", collective]
    for algorithm, collective in itertools.product(ALGORITHMS, ["allgather", "allreduce", "all-to-all"]):
        yield ["torus:4x4", "-c", collective, "--algorithm", algorithm]
    for size in ["4KiB", "1MiB", "64MiB"]:
        yield ["dgx-a100:boxes=2", "-c", "allreduce", "--size", size, "-f", "msccl-xml"]
        yield ["ring:8", "-c", "allgather", "--size", size]
    yield ["ring:6", "-c", "allgather", "--shares", "1,2,0,3x3"]
    yield ["dgx-a100:boxes=4", "-c", "allgather", "--ranks", "0-7,16-23"]
    yield ["dgx-h100:boxes=2", "-c", "allreduce", "-f", "mscclpp-json"]
    yield ["fat-tree:k=4", "-c", "allreduce", "--trees-per-root", "2"]
    yield ["no-such-network:3", "-c", "allgather"]


def planned(program, data, arguments):
    """Exit status, digests of the files that were written, and messages of one build."""
    out = tempfile.mkdtemp(dir=data)
    environment = {**os.environ, "CANOPY_DATA_DIR": os.path.join(data, "store"), "NO_COLOR": "1"}
    command = [program, "plan", *arguments, "-o", "plan"]
    done = subprocess.run(command, cwd=out, env=environment, capture_output=True, timeout=300)
    files = [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in sorted(pathlib.Path(out).iterdir())]
    return done.returncode, files, TIMES.sub("", done.stderr.decode())


def main():
    programs = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        wanted, different, made = list(cases()), 0, 0
        data = [os.path.join(folder, str(position)) for position in range(2)]
        for path in data:
            os.mkdir(path)
        for arguments in wanted:
            runs = [pool.submit(planned, program, path, arguments) for program, path in zip(programs, data)]
            old, new = [run.result() for run in runs]
            made += len(new[1])
            if old != new:
                different += 1
                what = [name for name, was, now in zip(["status", "files", "messages"], old, new) if was != now]
                print(f"different {', '.join(what)}: {' '.join(arguments)}\n  old: {old[2]}\n  new: {new[2]}")
        print(f"{len(wanted)} plans with {made} files compared, {different} different")
    return different > 0 or made == 0


if __name__ == "__main__":
    sys.exit(main())
