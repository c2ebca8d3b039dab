"""Names that differ between versions of torch. Versions are told apart by what they have, never by number.

From 2.14 on, classes written in Python can be subclasses of torch's `Backend`. Older versions know subclasses of
`ProcessGroup` only. Some methods got other names in 2.13.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

c10d: Any = torch._C._distributed_c10d
"""The module of torch's C++ classes."""
HAS_PYTHON_BACKENDS = hasattr(dist.Backend, "_ensure_backend_registered")
WorkBase: Any = getattr(dist, "_Work", None) or c10d.Work
GroupBase: Any = c10d.Backend if HAS_PYTHON_BACKENDS else c10d.ProcessGroup

OLD_NAMES = {
    "all_gather_single": "_allgather_base",
    "reduce_scatter_single": "_reduce_scatter_base",
    "all_to_all_single": "alltoall_base",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
}
"""Methods by their names from 2.13 on, and before."""

_REDUCE_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def method_name(name: str) -> str:
    """The name that a backend's method has in this version."""
    return name if hasattr(getattr(c10d, "Backend", c10d.ProcessGroup), name) else OLD_NAMES.get(name, name)


def reduce_op_name(op: Any) -> str | None:
    """The name of a reduce operator; `None` for those with a factor. Operators are compared, never hashed."""
    for name in _REDUCE_OPS:
        if hasattr(dist.ReduceOp, name) and op == getattr(dist.ReduceOp, name):
            return name
    return None


def inner_backend(name: str, store: Any, rank: int, rank_count: int, timeout: timedelta) -> Any:
    """torch's own backend `gloo` or `nccl`, as `init_process_group` would make it."""
    if HAS_PYTHON_BACKENDS:
        dist.Backend._ensure_backend_registered(name)
    plugins: dict[str, Any] = getattr(dist.Backend, "_plugins", {})
    plugin = plugins.get(name.upper())
    if plugin is None:
        return _inner_by_hand(name, store, rank, rank_count, timeout)
    if not plugin.extended_api:
        return plugin.creator_fn(store, rank, rank_count, timeout)
    options = c10d._DistributedBackendOptions()
    options.store, options.group_rank, options.group_size = store, rank, rank_count
    options.timeout, options.group_id = timeout, "canopy"
    return plugin.creator_fn(options, None)


def _inner_by_hand(name: str, store: Any, rank: int, rank_count: int, timeout: timedelta) -> Any:
    """Before 2.14, the two are not in the registry."""
    if name == "gloo":
        return c10d.ProcessGroupGloo(store, rank, rank_count, timeout)
    options = c10d.ProcessGroupNCCL.Options()
    options._timeout = timeout
    return c10d.ProcessGroupNCCL(store, rank, rank_count, options)


def limit_s(options: Any, group_timeout: timedelta) -> float:
    """The seconds that a call has: its own, or those of its group."""
    timeout = getattr(options, "timeout", None)
    seconds = timeout.total_seconds() if timeout is not None else 0.0
    return float(seconds if seconds > 0 else group_timeout.total_seconds())


def is_async(options: Any) -> bool:
    """Whether the caller goes on at once. Versions that do not say so may."""
    return bool(getattr(options, "asyncOp", True))
