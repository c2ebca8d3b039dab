"""All-to-all of traffic that changes every step, by a plan for each, or without one where none comes in time."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from canopy_torch import statistics
from canopy_torch.moving import MovingExchange, timeout_of
from canopy_torch.moving_plan import BYTES_LIMIT, Matrix, MovingPlan, MovingShape, Part, check_matrix
from canopy_torch.moving_program import PIECES_MAX
from canopy_torch.moving_source import Asker, LateError, Source
from canopy_torch.plan import PlanError

log = logging.getLogger("canopy_torch")

_WHY_NOT = (None, "the source of plans failed", "no plan came in time", "the plan is not for this traffic")
_FAILED, _LATE, _OTHER = 1, 2, 3

_INVALID = -1
"""In place of the bytes of a row, where a rank's arguments are wrong."""


class MovingTraffic:
    """Exchanges rows between the ranks of a group, step by step. Rank 0 asks for plans."""

    def __init__(
        self,
        source: Source | None,
        *,
        group: Any = None,
        wait_s: float = 0.5,
        pieces: int = 1,
        name: str = "moving traffic",
    ) -> None:
        """All ranks of `group`, the default group if `None`, call this together. Only rank 0 needs a source.

        A plan that takes rank 0 longer than `wait_s` is not waited for: that step runs without one.
        """
        if not 1 <= pieces <= PIECES_MAX:
            raise ValueError(f"canopy: pieces is {pieces}; use 1 to {PIECES_MAX}")
        self._group = dist.group.WORLD if group is None else group
        self._members = dist.get_process_group_ranks(self._group)
        self._rank, self._rank_count = dist.get_rank(self._group), len(self._members)
        self._wait_s, self._pieces = wait_s, pieces
        self._asker = Asker(source) if source is not None and self._rank == 0 else None
        # Matrices and plans are numbers for processors, wherever the traffic is.
        self._control: Any = dist.new_group(
            self._members,
            timeout_of(self._group),
            "gloo",
            use_local_synchronization=True,
            group_desc="canopy moving traffic",
        )
        self._said: set[int] = set()
        self._statistics = statistics.Statistics(
            group=name, rank=self._rank, rank_count=self._rank_count, source="moving", plan_count=0, why_not=None
        )
        statistics.keep(self._statistics)

    def step(self, input: torch.Tensor, splits: Sequence[int]) -> torch.Tensor:
        """Sends the first `splits[0]` rows of the input to rank 0, the next `splits[1]` to rank 1, and so on.

        Returns the rows for this rank, by sender. Rows are entries of the first dimension, alike on all ranks.
        Errors: `ValueError` on all ranks if the arguments of one are wrong.
        """
        row_bytes = _row_bytes(input) if input.dim() else 0
        matrix = self._gather(input, splits, row_bytes)
        arrive = [row[self._rank] for row in matrix]
        output = input.new_empty((sum(arrive) // row_bytes, *input.shape[1:]))
        flat_output, flat_input = output.view(-1), input.detach().contiguous().view(-1)
        for rank, row in enumerate(matrix):
            # What a rank keeps needs no plan.
            row[rank] = 0
        if not any(map(any, matrix)):
            flat_output.copy_(flat_input)
            return output
        code, shape, own = self._plan(matrix, input.element_size())
        size_bytes = flat_input.numel() * flat_input.element_size()
        if code == 0 and shape is not None:
            self._statistics.plan_count += 1
            self._statistics.called("all-to-all-v", "plan", None, size_bytes)
            start = time.monotonic()
            MovingExchange.of(shape, self._group).run(flat_output, flat_input, own, self._pieces)
            self._statistics.took("all-to-all-v", "plan", time.monotonic() - start)
        else:
            self._statistics.called("all-to-all-v", "direct exchange", _WHY_NOT[code], size_bytes)
            sends = [split * row_bytes for split in splits]
            dist.all_to_all_single(
                flat_output.view(torch.uint8), flat_input.view(torch.uint8), arrive, sends, group=self._group
            )
        return output

    def close(self) -> None:
        """Ends the source's thread."""
        if self._asker is not None:
            self._asker.close()

    # ---- what all ranks know

    def _gather(self, input: torch.Tensor, splits: Sequence[int], row_bytes: int) -> list[list[int]]:
        """The bytes of all ranks, row by row."""
        count = self._rank_count
        is_valid = (
            row_bytes > 0
            and len(splits) == count
            and min(splits) >= 0
            and sum(splits) == input.shape[0]
            and input.numel() * input.element_size() < BYTES_LIMIT // count
        )
        row = [split * row_bytes for split in splits] if is_valid else [_INVALID] * count
        rows = [torch.empty(count + 1, dtype=torch.int64) for _ in range(count)]
        dist.all_gather(rows, torch.tensor([*row, row_bytes]), group=self._control)
        matrix = torch.stack(rows).tolist()
        # Every rank finds the same error first.
        for rank, row in enumerate(matrix):
            if row[0] == _INVALID:
                raise ValueError(
                    f"canopy: rank {rank} needs an input of rows, and splits for {count} ranks that add up to it"
                )
        for rank, row in enumerate(matrix):
            if row[-1] != matrix[0][-1]:
                raise ValueError(
                    f"canopy: rows of rank {rank} have {row[-1]} bytes, those of rank 0 have {matrix[0][-1]}"
                )
        return [list(map(int, row[:-1])) for row in matrix]

    def _plan(self, matrix: Matrix, element_bytes: int) -> tuple[int, MovingShape | None, list[Part]]:
        """Why not by a plan, 0 if by one; and the parts that this rank has to do with."""
        head, packed = torch.zeros(4, dtype=torch.int64), torch.empty(0, 2, dtype=torch.int64)
        if self._rank == 0:
            code, shape, packed = self._ask(matrix, element_bytes)
            box_size, has_rails = (shape.box_size, shape.has_rails) if shape is not None else (0, False)
            head = torch.tensor([code, len(packed), box_size, int(has_rails)])
        dist.broadcast(head, group_src=0, group=self._control)
        code, count, size, rails = head.tolist()
        if code:
            return code, None, []
        if self._rank != 0:
            packed = torch.empty(count, 2, dtype=torch.int64)
        dist.broadcast(packed, group_src=0, group=self._control)
        return 0, MovingShape(self._rank_count, size, bool(rails)), unpack_own(packed, self._rank)

    def _ask(self, matrix: Matrix, element_bytes: int) -> tuple[int, MovingShape | None, torch.Tensor]:
        """Why no plan, its shape, and the plan packed. The other ranks wait for an answer, whatever happens here."""
        code = _FAILED
        try:
            if self._asker is None:
                raise PlanError("rank 0 has no source")
            check_matrix(matrix, self._rank_count)
            plan = self._asker.ask(matrix, self._wait_s)
            code = _OTHER
            plan.check_serves(matrix)
            return 0, plan.shape, pack(plan.aligned(element_bytes))
        except Exception as error:
            code = _LATE if isinstance(error, LateError) else code
            if code not in self._said:
                self._said.add(code)
                log.warning("canopy: traffic goes straight to its receivers: %s: %s", _WHY_NOT[code], error)
            return code, None, torch.empty(0, 2, dtype=torch.int64)


def pack(plan: MovingPlan) -> torch.Tensor:
    """Two words for each part of a checked plan: four ranks of 16 bits, and bytes."""
    sender, receiver, leaves, enters, size = (torch.tensor(column, dtype=torch.int64) for column in plan.columns)
    return torch.stack([sender << 48 | receiver << 32 | leaves << 16 | enters, size], dim=1)


def unpack_own(packed: torch.Tensor, rank: int) -> list[Part]:
    """The parts that a rank has to do with, of what `pack` packed."""
    ranks = torch.stack([packed[:, 0] >> shift & 0xFFFF for shift in (48, 32, 16, 0)], dim=1)
    chosen = (ranks == rank).any(dim=1)
    return [Part(*row) for row in torch.cat([ranks[chosen], packed[chosen, 1:]], dim=1).tolist()]


def _row_bytes(input: torch.Tensor) -> int:
    elements = 1
    for length in input.shape[1:]:
        elements *= length
    return elements * input.element_size()
