"""Registers the execution plan @NAME@ with MSCCL++ 0.9 or later.

    import mscclpp
    import this_module
    algorithm = this_module.load(rank)
    if this_module.matches(world_size, message_bytes, in_place):
        ...  # hand `algorithm` to the collection or selector of the communicator
"""

import os

FILE = @FILE@
NAME = @NAME@
# "custom" stands for a collective with a root, or for slots that are filled in part: NAME says which.
COLLECTIVE = @COLLECTIVE@
WORLD_SIZE = @WORLD_SIZE@
# Of each host; 0: not known here.
RANKS_PER_NODE = @RANKS_PER_NODE@
# Sizes of a message: inclusive bounds, and what they must be a multiple of.
BYTES_MIN = @BYTES_MIN@
BYTES_MAX = @BYTES_MAX@
BYTES_MULTIPLE = @BYTES_MULTIPLE@
IN_PLACE = @IN_PLACE@


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


def ranks_per_host():
    """Ranks of this job on this host, as its launcher states them; None if it does not."""
    launchers = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE")
    stated = (os.environ.get(name, "") for name in launchers)
    return next((int(text) for text in stated if text.isdigit() and int(text) > 0), None)


def load(rank, ranks_per_node=None):
    """The algorithm of one rank, for calls of WORLD_SIZE ranks. The runtime takes it only for exactly so many ranks on each host."""
    from mscclpp import Algorithm, ExecutionPlan

    per_node = ranks_per_node or RANKS_PER_NODE or ranks_per_host()
    if not per_node:
        raise ValueError("the plan does not say how many ranks a host has: pass ranks_per_node")
    constraint = Algorithm.Constraint(world_size=WORLD_SIZE, n_ranks_per_node=per_node)
    return Algorithm(id=NAME, execution_plan=ExecutionPlan(path(), rank), constraint=constraint)
