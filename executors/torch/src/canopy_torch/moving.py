"""Runs plans of moving traffic on tensors: three exchanges with a few peers each, in place of one with all ranks."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from canopy_torch.moving_plan import MovingPlan, MovingShape, Part
from canopy_torch.moving_program import (
    Exchange,
    MovingProgram,
    Slice,
    across_peers,
    inside_peers,
    own_parts,
    program,
)
from canopy_torch.plan import PlanError

_known: weakref.WeakKeyDictionary[Any, dict[MovingShape, MovingExchange]] = weakref.WeakKeyDictionary()


class MovingExchange:
    """The sub-groups of a rank for plans of one shape: its box, and the ranks that its NIC reaches."""

    def __init__(self, shape: MovingShape, group: Any = None) -> None:
        """All ranks of `group`, the default group if `None`, must call this at the same time."""
        group = dist.group.WORLD if group is None else group
        members = dist.get_process_group_ranks(group)
        if len(members) != shape.rank_count:
            raise PlanError(f"ranks: the plan is for {shape.rank_count}, the group has {len(members)}")
        if list(members) != sorted(members):
            raise ValueError("canopy: the ranks of the group are not in ascending order")
        self.shape = shape
        self.rank = dist.get_rank(group)
        timeout = timeout_of(group)
        self._inside = _sub_group([members[peer] for peer in inside_peers(shape, self.rank)], timeout, "canopy inside")
        self._across = _sub_group([members[peer] for peer in across_peers(shape, self.rank)], timeout, "canopy across")

    @classmethod
    def of(cls, shape: MovingShape, group: Any = None) -> MovingExchange:
        """Makes the sub-groups at the first call for a group and a shape, and keeps them as long as the group."""
        group = dist.group.WORLD if group is None else group
        kept = _known.setdefault(group, {})
        if shape not in kept:
            kept[shape] = cls(shape, group)
        return kept[shape]

    def all_to_all_v(self, output: torch.Tensor, input: torch.Tensor, plan: MovingPlan, *, pieces: int = 1) -> None:
        """Exchanges rows by a plan. `input` has the row for each rank in their order, `output` gets that of each rank.

        Bytes for the rank itself are not in the plan: what it does not cover of both is copied. Pieces are exchanges
        of a part of all traffic each: one goes across while the next one goes through the box.
        Errors: `PlanError` if the plan is not for these tensors.
        """
        if plan.shape != self.shape:
            raise PlanError(f"the plan is for {plan.shape}, the exchange for {self.shape}")
        self.run(output, input, own_parts(plan, self.rank), pieces)

    def run(self, output: torch.Tensor, input: torch.Tensor, own: Sequence[Part], pieces: int = 1) -> None:
        """As `all_to_all_v`, by those parts of a checked plan that this rank has to do with."""
        _check_tensors(output, input)
        parts = _in_elements(own, input.element_size())
        kept = input.numel() - sum(part.size for part in parts if part.sender == self.rank)
        if kept < 0:
            raise PlanError(f"the plan sends {-kept} elements more than the input has")
        made = program(self.shape, self.rank, parts, kept, pieces)
        if made.output_count != output.numel():
            raise PlanError(
                f"by the plan, {made.output_count} elements arrive, {kept} of them from the rank itself; "
                f"the output has {output.numel()}"
            )
        with torch.no_grad():
            _Run(made, (self._inside, self._across, self._inside), input.detach()).into(output.detach())


def all_to_all_v(
    output: torch.Tensor, input: torch.Tensor, plan: MovingPlan, *, group: Any = None, pieces: int = 1
) -> None:
    """As `MovingExchange.all_to_all_v`, with sub-groups that are made at the first call and kept."""
    MovingExchange.of(plan.shape, group).all_to_all_v(output, input, plan, pieces=pieces)


class _Run:
    """One exchange of traffic: its buffers and the messages under way."""

    def __init__(self, made: MovingProgram, groups: tuple[Any, Any, Any], input: torch.Tensor) -> None:
        self._made, self._groups, self._input = made, groups, input
        self._buffers = {0: input}
        self._works: dict[int, tuple[Any, torch.Tensor]] = {}

    def into(self, output: torch.Tensor) -> None:
        """All ranks of a group start exchanges in the same order, whatever arrives first."""
        count = len(self._made.pieces)
        self._start(0, 0)
        for piece in range(count):
            self._wait(piece, 0)
            if piece + 1 < count:
                self._start(piece + 1, 0)
            self._start(piece, 1)
            if piece:
                self._wait(piece - 1, 1)
                self._start(piece - 1, 2)
        self._wait(count - 1, 1)
        self._start(count - 1, 2)
        for piece in range(count):
            self._wait(piece, 2)
        slices = [self._view(piece) for piece in self._made.output]
        if slices:
            torch.cat(slices, out=output)

    def _start(self, piece: int, number: int) -> None:
        exchange: Exchange = self._made.pieces[piece][number]
        received = self._input.new_empty(sum(exchange.receives))
        buffer = 1 + 3 * piece + number
        self._buffers[buffer] = received
        if len(exchange.sends) == 1:
            return
        slices = [self._view(part) for part in exchange.slices]
        sent = slices[0] if len(slices) == 1 else torch.cat(slices) if slices else self._input.new_empty(0)
        size = self._input.element_size()
        # As bytes: backends do not know all types.
        work = dist.all_to_all_single(
            received.view(torch.uint8),
            sent.view(torch.uint8),
            [count * size for count in exchange.receives],
            [count * size for count in exchange.sends],
            group=self._groups[number],
            async_op=True,
        )
        self._works[buffer] = (work, sent)

    def _wait(self, piece: int, number: int) -> None:
        started = self._works.pop(1 + 3 * piece + number, None)
        if started is not None:
            started[0].wait()

    def _view(self, piece: Slice) -> torch.Tensor:
        return self._buffers[piece.buffer].narrow(0, piece.first, piece.count)


def timeout_of(group: Any) -> timedelta | None:
    """The time-out of a group, which torch does not hand on to groups made of its ranks; `None` if it does not say."""
    for device in ("cpu", "cuda"):
        with contextlib.suppress(RuntimeError, AttributeError):
            timeout = group._get_backend(torch.device(device)).options._timeout
            if isinstance(timeout, timedelta):
                return timeout
    return None


def _sub_group(ranks: list[int], timeout: timedelta | None, name: str) -> Any:
    """A group of ranks of the default group, of which only these make it; `None` for a rank alone."""
    if len(ranks) == 1:
        return None
    backend = None
    if "canopy" in str(dist.get_backend_config()):
        # The plans of that backend are not for these calls.
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    return dist.new_group(ranks, timeout, backend, use_local_synchronization=True, group_desc=name)


def _check_tensors(output: torch.Tensor, input: torch.Tensor) -> None:
    for name, tensor in (("output", output), ("input", input)):
        if tensor.dim() != 1 or not tensor.is_contiguous():
            raise ValueError(f"canopy: {name} is not one-dimensional and contiguous")
    if output.dtype != input.dtype or output.device != input.device:
        raise ValueError("canopy: output and input differ in type or device")


def _in_elements(own: Sequence[Part], element_bytes: int) -> list[Part]:
    for part in own:
        if part.size % element_bytes:
            raise PlanError(
                f"bytes: {part.size} from rank {part.sender} to rank {part.receiver} are not whole elements of "
                f"{element_bytes} bytes; use plan.aligned({element_bytes})"
            )
    return [part._replace(size=part.size // element_bytes) for part in own]
