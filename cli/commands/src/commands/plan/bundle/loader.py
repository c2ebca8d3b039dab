"""Registers the execution plans of this folder with MSCCL++ 0.9 or later, which finds no plans by itself.

    import loader
    plan = loader.pick("allreduce", world_size, ranks_per_node, message_bytes, in_place)
    if plan is not None:
        algorithm = loader.algorithm(plan, rank)
        ...  # hand it to the collection or selector of the communicator, or execute it

`manifest.json` beside this module says which plan is for which calls. Sizes are those of the whole message: the output of
an allgather, the input of all others.
"""

import functools
import json
import os

FOLDER = os.path.dirname(os.path.abspath(__file__))


@functools.lru_cache(maxsize=None)
def plans():
    """All plans, each with what its calls must be; `size_bytes_end` is the first size that is too large."""
    with open(os.path.join(FOLDER, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    # The manifest of a job lists files, each with what its calls must be; that of a bundle lists items with files.
    items = manifest["items"] if "items" in manifest else [dict(file, files=[file]) for file in manifest["files"]]
    return [
        {
            "path": plan["path"],
            "collective": item["collective"],
            "world_size": item["ranks"],
            # 0: any number.
            "ranks_per_node": item.get("ranks_per_node", 0),
            "in_place": item["in_place"],
            # None: the collective has no root.
            "root": item.get("root"),
            "size_bytes_min": plan["size_bytes_min"],
            "size_bytes_end": plan["size_bytes_end"] if "size_bytes_end" in plan else plan["size_bytes_max"] + 1,
            "size_bytes_multiple": plan["alignment_elements"],
        }
        for item in items
        for plan in item["files"]
    ]


def pick(collective, world_size, ranks_per_node, message_bytes, in_place, root=0):
    """The plan for a call, or None where the runtime's own algorithm is meant to serve it."""
    for plan in plans():
        if (
            plan["collective"] == collective
            and plan["world_size"] == world_size
            and plan["ranks_per_node"] in (0, ranks_per_node)
            and plan["in_place"] == in_place
            and plan["root"] in (None, root)
            and plan["size_bytes_min"] <= message_bytes < plan["size_bytes_end"]
            and message_bytes % plan["size_bytes_multiple"] == 0
        ):
            return plan
    return None


def ranks_per_host():
    """Ranks of this job on this host, as its launcher states them; None if it does not."""
    launchers = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE")
    stated = (os.environ.get(name, "") for name in launchers)
    return next((int(text) for text in stated if text.isdigit() and int(text) > 0), None)


def algorithm(plan, rank, ranks_per_node=None):
    """The algorithm of one rank for a plan. The runtime takes it only for exactly so many ranks on each host."""
    from mscclpp import Algorithm, ExecutionPlan

    per_node = ranks_per_node or plan["ranks_per_node"] or ranks_per_host()
    if not per_node:
        raise ValueError("the plan does not say how many ranks a host has: pass ranks_per_node")
    constraint = Algorithm.Constraint(world_size=plan["world_size"], n_ranks_per_node=per_node)
    loaded = ExecutionPlan(os.path.join(FOLDER, plan["path"]), rank)
    return Algorithm(id=plan["path"], execution_plan=loaded, constraint=constraint)
