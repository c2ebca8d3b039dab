"""Runs a program by sends and receives of an inner backend."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import torch

from canopy_torch.program import ElementStep, Piece, Program
from canopy_torch.scratch import Scratch

Reduction = Callable[[torch.Tensor, torch.Tensor], object]
"""Combines the second tensor into the first."""

REDUCTIONS: Mapping[str, Reduction] = {
    "SUM": lambda target, source: target.add_(source),
    "AVG": lambda target, source: target.add_(source),
    "PRODUCT": lambda target, source: target.mul_(source),
    "MIN": lambda target, source: torch.minimum(target, source, out=target),
    "MAX": lambda target, source: torch.maximum(target, source, out=target),
    "BAND": lambda target, source: target.bitwise_and_(source),
    "BOR": lambda target, source: target.bitwise_or_(source),
    "BXOR": lambda target, source: target.bitwise_xor_(source),
}

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def can_reduce(op: str | None, dtype: torch.dtype) -> bool:
    """Whether sums of this type are made here: each as Gloo and NCCL make them, bit by bit where they are exact."""
    if dtype in _FLOATS:
        return op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX")
    return dtype in _INTEGERS and op in REDUCTIONS and op != "AVG"


class StepError(RuntimeError):
    """A message of a plan failed or came too late."""


class Execution:
    """One run of a program of one rank."""

    def __init__(
        self,
        inner: Any,
        scratch: Scratch,
        tag: int,
        memory: Mapping[str, torch.Tensor | None],
        like: torch.Tensor,
        reduction: Reduction | None,
        deadline: float,
    ) -> None:
        self._inner, self._scratch, self._tag, self._memory, self._like = inner, scratch, tag, dict(memory), like
        self._reduction, self._deadline = reduction, deadline

    def run(self, program: Program) -> None:
        """Errors: `StepError`."""
        scratch = None
        if program.scratch_elements:
            scratch = self._memory["s"] = self._scratch.take(self._like, program.scratch_elements)
        for number, step in enumerate(program.steps):
            if step.receives or step.sends:
                self._messages(number, step)
            else:
                for work in step.works:
                    self._work(work.reduces, work.source, work.target)
        # Not after an error: messages may still arrive there.
        if scratch is not None:
            self._scratch.give(scratch)

    def _messages(self, number: int, step: ElementStep) -> None:
        """Receives are posted first, so that what arrives has a place to go to; local work follows what it needs."""
        is_group = self._like.is_cuda
        if is_group:
            # One launch for all messages of the step. Waiting for it is a matter of the stream.
            self._inner._start_coalescing()
        pending: list[Any] = []
        for receive in step.receives:
            pending.append(self._inner.recv([self._view(receive.piece)], receive.peer, self._tag))
        held = []
        for send in step.sends:
            views = [self._view(piece) for piece in send.pieces]
            message = views[0] if len(views) == 1 else torch.cat(views)
            held.append(message)
            pending.append(self._inner.send([message], send.peer, self._tag))
        if is_group:
            grouped = self._inner._end_coalescing()
            if grouped is not None:
                grouped.wait()
            pending = [None] * len(pending)
        for work in step.works:
            for index in work.waits_for:
                self._wait(number, step, pending, index)
            self._work(work.reduces, work.source, work.target)
        for index in range(len(pending)):
            self._wait(number, step, pending, index)

    def _wait(self, number: int, step: ElementStep, pending: list[Any], index: int) -> None:
        work, pending[index] = pending[index], None
        if work is None:
            return
        left_s = self._deadline - time.monotonic()
        try:
            if left_s <= 0:
                raise RuntimeError("timed out")
            if work.wait(timedelta(seconds=max(left_s, 0.001))) is False:
                raise RuntimeError("aborted")
        except RuntimeError as error:
            receives = len(step.receives)
            way = (
                f"from rank {step.receives[index].peer}"
                if index < receives
                else f"to rank {step.sends[index - receives].peer}"
            )
            raise StepError(f"step {number}, message {way}: {error}") from None

    def _work(self, reduces: bool, source: Piece, target: Piece) -> None:
        if not reduces:
            self._view(target).copy_(self._view(source))
        elif self._reduction is not None:
            self._reduction(self._view(target), self._view(source))

    def _view(self, piece: Piece) -> torch.Tensor:
        tensor = self._memory[piece.buffer]
        assert tensor is not None, "a checked plan uses only buffers that its rank has"
        return tensor.narrow(0, piece.first, piece.count)
