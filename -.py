"""Registers the execution plan "canopy-allreduce-16-bbeb60a9576f" with MSCCL++ 0.9 or later.

    import mscclpp
    import this_module
    algorithm = this_module.load(rank)
    if this_module.matches(world_size, message_bytes, in_place):
        ...  # hand `algorithm` to the collection or selector of the communicator
"""

import os

FILE = "-"
NAME = "canopy-allreduce-16-bbeb60a9576f"
# "custom" stands for a collective with a root, whose name is in NAME.
COLLECTIVE = "allreduce"
WORLD_SIZE = 16
# 0: any number.
RANKS_PER_NODE = 8
# Sizes of a message: inclusive bounds, and what they must be a multiple of.
BYTES_MIN = 0
BYTES_MAX = 1073741824
BYTES_MULTIPLE = 1024
IN_PLACE = True


def path():
    """Where the plan lies: beside this module."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), FILE)


def matches(world_size, message_bytes, in_place):
    """Whether the plan is for such a call. The runtime itself does not ask about the number of ranks."""
    return (
        world_size == WORLD_SIZE
        and in_place == IN_PLACE
        and BYTES_MIN <= message_bytes <= BYTES_MAX
        and message_bytes % BYTES_MULTIPLE == 0
    )


def load(rank):
    """The algorithm of one rank, for calls of WORLD_SIZE ranks with RANKS_PER_NODE on each node."""
    from mscclpp import Algorithm, ExecutionPlan

    constraint = Algorithm.Constraint(world_size=WORLD_SIZE, n_ranks_per_node=RANKS_PER_NODE)
    return Algorithm(id=NAME, execution_plan=ExecutionPlan(path(), rank), constraint=constraint)
