"""The collectives, as torch calls them on a backend: on a plan where one fits, else on the inner backend.

Plans work on flat memory. A tensor that is not contiguous is copied, and what came of it is brought back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from canopy_torch import compat
from canopy_torch.group import FIRST_TAG, Group, Job
from canopy_torch.plan import Collective
from canopy_torch.program import Programs

Tensors = list[torch.Tensor]


class Collectives(Group):
    """Methods by torch's newer names; `backend` adds the older ones."""

    # ---- every rank has the whole message

    def allreduce(self, tensors: Tensors, options: Any = None) -> Any:
        return self._allreduce(tensors, options, "allreduce")

    def allreduce_coalesced(self, tensors: Tensors, options: Any = None) -> Any:
        return self._allreduce(tensors, options, "allreduce_coalesced")

    def _allreduce(self, tensors: Tensors, options: Any, method: str) -> Any:
        op = compat.reduce_op_name(options.reduceOp)
        chosen = [self._choose(Collective.ALLREDUCE, t, t.numel(), op=op, same_memory=True) for t in tensors]
        plans = self._all_or_none(Collective.ALLREDUCE, chosen)
        if plans is None or getattr(options, "sparseIndices", None) is not None:
            return self._reduce_inner(tensors[0], method, [tensors], tensors, options)
        jobs: list[Job] = []
        for tensor, plan in zip(tensors, plans):
            flat, back = _flat(tensor)
            source = flat
            if not plan.checked.head.in_place:
                # The plan reads what the caller gave while it writes: a copy of it.
                source = torch.empty_like(flat)
                jobs.append(_copy(source, flat))
            jobs.append(self._plan_job(plan, tensor.numel(), source, flat, op))
            jobs += back
        return self._submit(jobs, tensors, options)

    def broadcast(self, tensors: Tensors, options: Any = None) -> Any:
        tensor, root = tensors[0], options.rootRank
        plan = self._choose(Collective.BROADCAST, tensor, tensor.numel(), root, same_memory=True)
        if plan is None or len(tensors) != 1:
            return self._call_inner(tensor, "broadcast", tensors, options)
        flat, back = _flat(tensor)
        if self._rank != root:
            return self._submit([self._plan_job(plan, tensor.numel(), None, flat), *back], tensors, options)
        # The root has what it sends: a plan for different memory copies it to itself.
        target = flat if plan.checked.head.in_place else torch.empty_like(flat)
        return self._submit([self._plan_job(plan, tensor.numel(), flat, target)], tensors, options)

    def reduce(self, tensors: Tensors, options: Any = None) -> Any:
        tensor, root, op = tensors[0], options.rootRank, compat.reduce_op_name(options.reduceOp)
        plan = self._choose(Collective.REDUCE, tensor, tensor.numel(), root, op, same_memory=True)
        if plan is None or len(tensors) != 1:
            targets = tensors if self._rank == root else []
            return self._reduce_inner(tensor, "reduce", [tensors], targets, options)
        (flat, back), is_root = _flat(tensor), self._rank == root
        source, before = flat, []
        if plan.checked.writes_input if not is_root else not plan.checked.head.in_place:
            # Elsewhere than at the root, the caller keeps its input.
            source = torch.empty_like(flat)
            before = [_copy(source, flat)]
        job = self._plan_job(plan, tensor.numel(), source, flat if is_root else None, op)
        return self._submit([*before, job, *(back if is_root else [])], tensors, options)

    # ---- gather

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, options: Any = None) -> Any:
        return self._all_gather([output], [input], options, "all_gather_single")

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, options: Any = None) -> Any:
        return self._all_gather(outputs, inputs, options, "all_gather_single_coalesced")

    def _all_gather(self, outputs: Tensors, inputs: Tensors, options: Any, method: str) -> Any:
        chosen = [self._choose(Collective.ALLGATHER, i, o.numel()) for o, i in zip(outputs, inputs)]
        plans = self._all_or_none(Collective.ALLGATHER, chosen)
        if plans is None:
            arguments = (outputs, inputs) if method.endswith("coalesced") else (outputs[0], inputs[0])
            return self._call_inner(inputs[0], method, *arguments, options)
        jobs: list[Job] = []
        for plan, output, source in zip(plans, outputs, inputs):
            flat, back = _flat(output)
            jobs += [*self._gather_jobs(plan, flat, source), *back]
        return self._submit(jobs, outputs, options)

    def allgather(self, outputs: list[Tensors], inputs: Tensors, options: Any = None) -> Any:
        source = inputs[0]
        is_even = len(inputs) == 1 and all(o.numel() == source.numel() for o in outputs[0])
        plan = self._choose(Collective.ALLGATHER, source, source.numel() * self._rank_count) if is_even else None
        if plan is None:
            return self._call_inner(source, "allgather", outputs, inputs, options)
        flat = source.new_empty(source.numel() * self._rank_count)
        return self._submit([*self._gather_jobs(plan, flat, source), _spread(flat, outputs[0])], outputs[0], options)

    def allgather_coalesced(self, outputs: list[Tensors], inputs: Tensors, options: Any = None) -> Any:
        return self._call_inner(inputs[0], "allgather_coalesced", outputs, inputs, options)

    def gather(self, outputs: list[Tensors], inputs: Tensors, options: Any = None) -> Any:
        source, root = inputs[0], options.rootRank
        plan = self._choose(Collective.GATHER, source, source.numel() * self._rank_count, root)
        if plan is None:
            return self._call_inner(source, "gather", outputs, inputs, options)
        if self._rank != root:
            flat = _flat(source)[0]
            before = []
            if plan.checked.writes_input:
                kept, flat = flat, torch.empty_like(flat)
                before = [_copy(flat, kept)]
            return self._submit([*before, self._plan_job(plan, source.numel(), flat, None)], inputs, options)
        flat = source.new_empty(source.numel() * self._rank_count)
        return self._submit([*self._gather_jobs(plan, flat, source), _spread(flat, outputs[0])], outputs[0], options)

    def _gather_jobs(self, plan: Programs, output: torch.Tensor, tensor: torch.Tensor) -> list[Job]:
        """A plan that gathers into flat output. An input that lies in its own place there may be read meanwhile."""
        count, source = tensor.numel(), _flat(tensor)[0]
        if not plan.checked.head.in_place:
            return [self._plan_job(plan, count, source, output)]
        mine = output.narrow(0, self._rank * count, count)
        return [_copy(mine, source), self._plan_job(plan, count, mine, output)]

    # ---- scatter

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, options: Any = None) -> Any:
        return self._reduce_scatter([output], [input], options, "reduce_scatter_single")

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, options: Any = None) -> Any:
        return self._reduce_scatter(outputs, inputs, options, "reduce_scatter_single_coalesced")

    def _reduce_scatter(self, outputs: Tensors, inputs: Tensors, options: Any, method: str) -> Any:
        op = compat.reduce_op_name(options.reduceOp)
        chosen = [self._choose(Collective.REDUCE_SCATTER, i, i.numel(), op=op) for i in inputs]
        plans = self._all_or_none(Collective.REDUCE_SCATTER, chosen)
        if plans is None:
            arguments = [outputs, inputs] if method.endswith("coalesced") else [outputs[0], inputs[0]]
            return self._reduce_inner(inputs[0], method, arguments, outputs, options)
        jobs: list[Job] = []
        for plan, output, source in zip(plans, outputs, inputs):
            jobs += self._scatter_jobs(plan, output, _flat(source)[0], op, is_own=False)
        return self._submit(jobs, outputs, options)

    def reduce_scatter(self, outputs: Tensors, inputs: list[Tensors], options: Any = None) -> Any:
        output, op = outputs[0], compat.reduce_op_name(options.reduceOp)
        count = output.numel() * self._rank_count
        is_even = len(outputs) == 1 and all(i.numel() == output.numel() for i in inputs[0])
        plan = self._choose(Collective.REDUCE_SCATTER, output, count, op=op) if is_even else None
        if plan is None:
            return self._reduce_inner(output, "reduce_scatter", [outputs, inputs], outputs, options)
        flat = output.new_empty(count)
        jobs = self._scatter_jobs(plan, output, flat, op, is_own=True)
        return self._submit([_collect(flat, inputs[0]), *jobs], outputs, options)

    def scatter(self, outputs: Tensors, inputs: list[Tensors], options: Any = None) -> Any:
        output, root = outputs[0], options.rootRank
        plan = self._choose(Collective.SCATTER, output, output.numel() * self._rank_count, root)
        if plan is None:
            return self._call_inner(output, "scatter", outputs, inputs, options)
        if self._rank != root:
            flat, back = _flat(output)
            return self._submit([self._plan_job(plan, output.numel(), None, flat), *back], outputs, options)
        flat = output.new_empty(output.numel() * self._rank_count)
        jobs = self._scatter_jobs(plan, output, flat, None, is_own=True)
        return self._submit([_collect(flat, inputs[0]), *jobs], outputs, options)

    def _scatter_jobs(
        self, plan: Programs, output: torch.Tensor, source: torch.Tensor, op: str | None, is_own: bool
    ) -> list[Job]:
        """A plan that scatters flat input, of which it gets a copy if it writes to it or output lies in it."""
        count, (target, back) = output.numel(), _flat(output)
        before: list[Job] = []
        if not is_own and (plan.checked.head.in_place or _share_memory(output, source)):
            kept, source = source, torch.empty_like(source)
            before = [_copy(source, kept)]
        if not plan.checked.head.in_place:
            return [*before, self._plan_job(plan, count, source, target, op), *back]
        mine = source.narrow(0, self._rank * count, count)
        return [*before, self._plan_job(plan, count, source, mine, op), _copy(target, mine), *back]

    # ---- all to all

    def all_to_all_single(
        self, output: torch.Tensor, input: torch.Tensor, output_splits: Any, input_splits: Any, options: Any = None
    ) -> Any:
        plan = None
        # Splits differ from rank to rank, so that nothing but their presence may count.
        if not output_splits and not input_splits:
            plan = self._choose(Collective.ALL_TO_ALL, input, input.numel())
        if plan is None or plan.checked.head.in_place:
            return self._call_inner(input, "all_to_all_single", output, input, output_splits, input_splits, options)
        flat, back = _flat(output)
        job = self._plan_job(plan, input.numel() // self._rank_count, _flat(input)[0], flat)
        return self._submit([job, *back], [output], options)

    def alltoall(self, outputs: Tensors, inputs: Tensors, options: Any = None) -> Any:
        return self._call_inner(inputs[0], "alltoall", outputs, inputs, options)

    # ---- the rest is the inner backend's

    def barrier(self, options: Any = None) -> Any:
        self._check_alive()
        device = getattr(options, "device", None)
        kind = device.type if device is not None and device.type in self._inners else next(iter(self._inners))
        return self._inners[kind].barrier(*([options] if options is not None else []))

    def send(self, tensors: Tensors, peer: int, tag: int = 0) -> Any:
        _check_tag(tag)
        return self._inner(tensors[0].device).send(tensors, peer, tag)

    def recv(self, tensors: Tensors, peer: int, tag: int = 0) -> Any:
        _check_tag(tag)
        return self._inner(tensors[0].device).recv(tensors, peer, tag)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Any:
        _check_tag(tag)
        return self._inner(tensors[0].device).recv_anysource(tensors, tag)


def _check_tag(tag: int) -> None:
    if tag >= FIRST_TAG:
        raise ValueError(f"canopy: tag {tag} is not free; use tags below {FIRST_TAG}, which plans leave to you")


def _flat(tensor: torch.Tensor) -> tuple[torch.Tensor, list[Job]]:
    """A flat view; or flat memory of the same content, and what brings it back.

    The copy is made now, in the order of calls: a tensor may be changed by the next one.
    """
    tensor = tensor.detach()
    if tensor.is_contiguous():
        return tensor.view(-1), []
    flat = tensor.contiguous().view(-1)
    return flat, [_copy(tensor, flat.view(tensor.shape))]


def _copy(target: torch.Tensor, source: torch.Tensor) -> Job:
    """Copies when its turn has come, unless both are one memory."""

    def job(_: float) -> None:
        if target.data_ptr() != source.data_ptr():
            target.copy_(source)

    return job


def _spread(flat: torch.Tensor, parts: Sequence[torch.Tensor]) -> Job:
    def job(_: float) -> None:
        for part, tensor in zip(_parts(flat, parts), parts):
            tensor.copy_(part.view(tensor.shape))

    return job


def _collect(flat: torch.Tensor, parts: Sequence[torch.Tensor]) -> Job:
    def job(_: float) -> None:
        for part, tensor in zip(_parts(flat, parts), parts):
            part.copy_(tensor.reshape(-1))

    return job


def _parts(flat: torch.Tensor, parts: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    count = parts[0].numel()
    return [flat.narrow(0, k * count, count) for k in range(len(parts))]


def _share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
