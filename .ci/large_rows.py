#!/usr/bin/env python3
"""Plans a handful of large networks, named and unnamed, and checks that each plan is optimal and takes no longer than it may.

    .ci/large_rows.py CANOPY [NAME …]

Time is that of the processors for the whole command, cold, on a data folder of its own. Ceilings are about three times what a
row takes on a core of an AMD EPYC, so that only a search that takes another way exceeds them. Unnamed networks are relabelled:
ids, ranks and the order of nodes and links at random, no names of boxes, and rates times a factor.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

# Expression, factor of the rates (none: as named), and processor time in seconds.
ROWS = [
    ("dgx-a100:boxes=128", None, 2),
    ("torus:32x32", None, 4),
    ("dgx-a100:boxes=128,faults=nics:3@1/2+gpus:2+seed:1", 1.17, 3),
    ("mi250:boxes=64,faults=links-inside:1+seed:1", 0.83, 2),
    ("leaf-spine:leaves=32,hosts=16,spines=16,oversub=2,faults=links:8@1/2+gpus:3+seed:1", 1.17, 1),
    ("random-regular:n=1024,d=4,seed=7,faults=links:4+seed:1", 0.83, 2),
    ("rail:boxes=58,gpus=16,nv=200GB/s,nic=50GB/s,faults=gpus:1+seed:1", 1.17, 3),
]


def rate(text, factor):
    """A rate in whole bytes per second, times a factor."""
    units = {"GB/s": 10**9, "MB/s": 10**6, "kB/s": 10**3, "B/s": 1}
    unit = next(unit for unit in units if text.endswith(unit))
    return f"{max(1, round(float(text.removesuffix(unit)) * units[unit] * factor))}B/s"


def unnamed(topology, factor, rng):
    """The network under other names, in another order, at other rates."""
    nodes = topology["nodes"]
    rng.shuffle(nodes)
    ids = {node["id"]: f"x{number}" for number, node in enumerate(nodes)}
    ranks = iter(range(len(nodes)))
    anonymous = []
    for node in nodes:
        switch = node.get("kind", "compute") != "compute"
        plain = {"id": ids[node["id"]], "kind": node["kind"]} if switch else {"id": ids[node["id"]], "rank": next(ranks)}
        anonymous.append(plain)
    links = topology["links"]
    rng.shuffle(links)
    for link in links:
        link.update({"from": ids[link["from"]], "to": ids[link["to"]], "bandwidth": rate(link["bandwidth"], factor)})
    return {"canopy": 1, "nodes": anonymous, "links": links}


def planned(canopy, network, folder):
    """The object that a cold plan prints, and the processor time of the command."""
    environment = dict(os.environ, CANOPY_DATA_DIR=str(folder / "data"))
    environment.pop("CANOPY_SERVER", None)
    command = [canopy, "plan", network, "-c", "allgather", "-o", str(folder / "plan.json"), "--json", "--deadline", "60s"]
    before = os.times()
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    if run.returncode != 0:
        sys.exit(f"no plan for {network}: {run.stderr.strip()}")
    return json.loads(run.stdout.splitlines()[-1]), spent


def main():
    canopy, *names = sys.argv[1:]
    failures = []
    for expression, factor, ceiling in ROWS:
        if names and expression not in names:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            network = expression
            if factor is not None:
                network = str(folder / "network.json")
                subprocess.run([canopy, "topology", "generate", expression, "-o", network], check=True, capture_output=True)
                topology = json.loads(pathlib.Path(network).read_text())
                pathlib.Path(network).write_text(json.dumps(unnamed(topology, factor, random.Random(expression))))
            plan, spent = planned(canopy, network, folder)
        named = "named" if factor is None else f"unnamed, rates × {factor}"
        print(f"{spent:6.2f} s of at most {ceiling} s, {plan['optimality']} of the bound: {expression} ({named})", flush=True)
        if plan["optimality"] != "1/1" or spent > ceiling:
            failures.append(expression)
    if failures:
        sys.exit(f"too slow or not optimal: {', '.join(failures)}")


if __name__ == "__main__":
    main()
