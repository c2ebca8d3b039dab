"""The backend `canopy` of `torch.distributed`, and its registration."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from canopy_torch import compat
from canopy_torch.collectives import Collectives
from canopy_torch.group import shutdown_all


class CanopyBackend(Collectives, compat.GroupBase):  # type: ignore[misc]
    """A process group that runs canopy's plans by an inner backend's sends and receives."""

    def __init__(
        self,
        store: Any,
        rank: int,
        rank_count: int,
        timeout: timedelta,
        ranks: Sequence[int] = (),
        name: str = "",
    ) -> None:
        compat.GroupBase.__init__(self, rank, rank_count)
        if compat.HAS_PYTHON_BACKENDS:
            self._options = compat.c10d.Backend.Options("canopy", timeout)
        self._begin(store, rank, rank_count, timeout, ranks, name)

    if compat.HAS_PYTHON_BACKENDS:

        @property
        def supports_splitting(self) -> bool:
            return True

        @property
        def supports_coalescing(self) -> bool:
            return False

        @property
        def options(self) -> Any:
            return self._options

        def split(self, store: Any, ranks: list[int], options: Any) -> CanopyBackend | None:
            """The group of some of these ranks; `None` on the others."""
            if self._rank not in ranks:
                return None
            timeout = options._timeout if options is not None else self._timeout
            # As ranks of the default group, which plans for a part of the network name.
            members = [self._ranks[rank] for rank in ranks] if self._ranks else ranks
            return CanopyBackend(store, ranks.index(self._rank), len(ranks), timeout, members, "split")

        def perform_nocolor_split(self, device: torch.device) -> None:
            """Ranks outside of a new group have nothing to do."""

    else:

        def _get_backend(self, device: torch.device) -> Any:
            return self._inner(device)


# Versions before 2.13 call methods by older names.
for _new, _old in compat.OLD_NAMES.items():
    setattr(CanopyBackend, _old, getattr(CanopyBackend, _new))


def _create(options: Any, _: Any = None) -> CanopyBackend:
    ranks = list(options.global_ranks_in_group)
    return CanopyBackend(
        options.store, options.group_rank, options.group_size, options.timeout, ranks, options.group_id
    )


def _create_of_four(store: Any, rank: int, rank_count: int, timeout: timedelta) -> CanopyBackend:
    return CanopyBackend(store, rank, rank_count, timeout)


def register() -> None:
    """Makes `canopy` a backend of `torch.distributed`. Entry points of torch 2.14 and later call this by themselves."""
    if hasattr(dist.Backend, "CANOPY"):
        return
    try:
        dist.Backend.register_backend("canopy", _create, extended_api=True, devices=["cpu", "cuda"])
    except TypeError:
        # torch 1.13 knows neither of the two options.
        dist.Backend.register_backend("canopy", _create_of_four)
    atexit.register(shutdown_all)
