#!/usr/bin/env python3
"""Compares times of `canopy simulate` with those of SimGrid for the same messages, and prints them as a Markdown table.

    /usr/bin/python3 benches/simgrid/compare.py target/release/canopy

For several networks, collectives, sizes and ways of cutting transfers: makes the plan, simulates it, exports it, has
replay.py run it under SimGrid in both of its ways to tell latency, and says by how much the times differ. Ends with
status 1 where one differs by more than the limit. Needs SimGrid's Python module (Debian: python3-simgrid).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Without and with switches, and one whose links have different latencies.
NETWORKS = ["ring:8,lat=500ns", "torus:4x4,lat=500ns", "dgx-a100:boxes=2,lat=700ns", "examples/two-boxes.yaml"]
COLLECTIVES = ["allgather", "allreduce", "all-to-all"]
# Size, and the largest piece.
SIZES = [("64KiB", "whole"), ("4MiB", "128KiB"), ("256MiB", "whole")]
WAYS = ("delay", "link")
REPLAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replay.py")


def output(command, folder):
    """Standard output of a command that must succeed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("CANOPY_")}
    env["CANOPY_DATA_DIR"] = os.path.join(folder, "data")
    done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stderr}")
    return done.stdout


def time_of(done):
    """What replay.py found; nothing where latency of links cannot be told."""
    if done.returncode == 0:
        return float(done.stdout)
    if "take --latency delay" in done.stderr:
        return None
    sys.exit(f"replay.py failed with status {done.returncode}:\n{done.stderr}")


def compare(canopy, folder, network, collective, alpha):
    """Rows of one plan: size, pieces, messages, canopy's seconds, SimGrid's with delays and with latency of links."""
    file = os.path.join(ROOT, network)
    given = file if os.path.exists(file) else network
    output([canopy, "plan", given, "--collective", collective, "--format", "json", "-o", "plan.json"], folder)
    for size, piece in SIZES:
        how = ["--size", size, "--piece", piece]
        simulated = output([canopy, "simulate", "plan.json", *how, "--alpha", alpha, "--json"], folder)
        own = json.loads(simulated.splitlines()[-1])["sizes"][0]
        output([canopy, "export", "plan.json", "--format", "simgrid", *how, "-o", "out"], folder)
        replay = [sys.executable, REPLAY, "out", "--alpha", alpha, "--latency"]
        theirs = [time_of(subprocess.run([*replay, way], cwd=folder, capture_output=True, text=True)) for way in WAYS]
        yield size, piece, own["messages"], own["time_ps"] * 1e-12, *theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("canopy", help="the program")
    parser.add_argument("--alpha", default="1us", help="what every message takes first (1us)")
    parser.add_argument("--limit", type=float, default=5.0, help="greatest difference in percent (5)")
    arguments = parser.parse_args()
    canopy = os.path.abspath(arguments.canopy)
    print("| network | collective | size | pieces | messages | canopy µs | SimGrid, delays µs | differs | SimGrid, links µs | differs |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    worst = 0.0
    for network in NETWORKS:
        for collective in COLLECTIVES:
            with tempfile.TemporaryDirectory() as folder:
                for row in compare(canopy, folder, network, collective, arguments.alpha):
                    size, piece, messages, own, *theirs = row
                    cells = [f"`{network}`", collective, size, piece, str(messages), f"{own * 1e6:.3f}"]
                    for time in theirs:
                        if time is None:
                            cells += ["-", "-"]
                            continue
                        percent = (time / own - 1) * 100
                        worst = max(worst, abs(percent))
                        cells += [f"{time * 1e6:.3f}", f"{percent:+.3f} %"]
                    print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nGreatest difference: {worst:.3f} %")
    sys.exit(worst > arguments.limit)


if __name__ == "__main__":
    main()
