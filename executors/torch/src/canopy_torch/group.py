"""A group of ranks: its plans, its inner backends, and the order in which its collectives run."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from canopy_torch import compat, statistics
from canopy_torch.agreement import Agreement, agree
from canopy_torch.executor import REDUCTIONS, Execution, can_reduce
from canopy_torch.plan import Collective
from canopy_torch.program import Programs
from canopy_torch.scratch import Scratch
from canopy_torch.work import CanopyWork

log = logging.getLogger("canopy_torch")

FIRST_TAG = 1 << 30
"""Tags from here on are those of plans."""
CUT_BYTES = 4 << 20
"""Messages between CPUs are cut to at most this many bytes. All ranks need the same number."""
NO_CUT = 1 << 62
"""On GPUs, the messages of a step are one launch, which ends as a whole."""
TAGS = 1 << 20
"""Collectives after which tags begin anew: more than are ever under way."""

Job = Callable[[float], None]
"""A part of a collective; takes the time of `time.monotonic` at which it must be over."""

_alive: set["Group"] = set()
"""torch's wrapper for debugging holds the C++ half of a backend only: this holds the other half until shutdown."""


class Group:
    """State of a process group on one rank; `collectives.Collectives` adds what torch calls."""

    def _begin(
        self, store: Any, rank: int, rank_count: int, timeout: timedelta, ranks: Sequence[int], name: str
    ) -> None:
        self._rank, self._rank_count, self._timeout = rank, rank_count, timeout
        self._ranks = list(ranks)
        self._group_name = name or "0"
        self._inners: dict[str, Any] = {}
        self._scratch = Scratch()
        self._broken: str | None = None
        self._said: set[object] = set()
        self._sequence = 0
        self._queue: queue.SimpleQueue[Callable[[], None] | None] | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        # A rank alone has no messages to plan.
        agreed = agree(store, rank, rank_count, ranks) if rank_count > 1 else Agreement(None, "none", None)
        self._plans = agreed.plans
        refused = agreed.plans.refused if agreed.plans is not None else ()
        self._statistics = statistics.Statistics(
            group=self._group_name,
            rank=rank,
            rank_count=rank_count,
            source=agreed.source,
            plan_count=len(agreed.plans) if agreed.plans is not None else 0,
            why_not=agreed.why_not,
            refused=tuple((plan.place, plan.why) for plan in refused),
        )
        statistics.keep(self._statistics)
        if agreed.why_not is not None:
            self._say("plans", f"group {self._group_name} uses no plans: {agreed.why_not}")
        for plan in refused:
            self._say(plan.place, f"a plan is not used: {plan.why}")
        # Now, while all ranks are here: made at the first collective, two groups that are first used in different
        # orders would wait for each other.
        for kind in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
            inner = "nccl" if kind == "cuda" else "gloo"
            self._inners[kind] = compat.inner_backend(
                inner, compat.c10d.PrefixStore(inner, store), rank, rank_count, timeout
            )
        _alive.add(self)

    def _say(self, key: object, text: str) -> None:
        """Says something once, on the first rank."""
        if key not in self._said:
            self._said.add(key)
            if self._rank == 0:
                log.warning("canopy: %s", text)

    def _inner(self, device: torch.device) -> Any:
        self._check_alive()
        inner = self._inners.get(device.type)
        if inner is None:
            raise RuntimeError(f"canopy: tensors on {device.type} are not supported; use cpu or cuda")
        return inner

    def _check_alive(self) -> None:
        if self._broken is not None:
            raise RuntimeError(f"canopy: the group ended with an error before: {self._broken}")

    # ---- which plan

    def _choose(
        self,
        collective: Collective,
        tensor: torch.Tensor,
        elements: int,
        root: int | None = None,
        op: str | None = None,
        same_memory: bool = False,
    ) -> Programs | None:
        """The plan for a message of this many elements, or `None`: then the inner backend runs, which is said once.

        The answer is the same on all ranks: nothing here depends on what ranks may see differently, such as strides.
        """
        self._check_alive()
        if self._rank_count == 1:
            return None
        size_bytes = elements * tensor.element_size()
        if size_bytes == 0:
            return None
        inner = self._inners.get(tensor.device.type)
        ran_on = str(inner.name()) if inner is not None else tensor.device.type
        if self._plans is None:
            self._statistics.called(collective.value, ran_on, "the group has no plans", size_bytes)
            return None
        why = _unsupported(collective, tensor, op)
        detail = why
        if why is None:
            plan = self._plans.find(collective, root, size_bytes, same_memory)
            if plan is not None:
                return plan
            why = "no plan is for this size" if root is None else "no plan is for this size and root"
            detail = f"no plan is for {size_bytes} bytes" + ("" if root is None else f" with root {root}")
        self._statistics.called(collective.value, ran_on, why, size_bytes)
        self._say((collective, why), f"{collective.value} runs on {ran_on}: {detail} on {self._rank_count} ranks")
        return None

    def _all_or_none(self, collective: Collective, plans: Sequence[Programs | None]) -> list[Programs] | None:
        """The plans of calls that belong together; `None` if one of them has none, or there are no calls."""
        found = [plan for plan in plans if plan is not None]
        if len(found) == len(plans) > 0:
            return found
        for _ in found:
            self._statistics.called(collective.value, "inner", "it belongs to calls that no plan serves", 0)
        return None

    # ---- running

    def _plan_job(
        self,
        plan: Programs,
        share_elements: int,
        source: torch.Tensor | None,
        target: torch.Tensor | None,
        op: str | None = None,
    ) -> Job:
        """A run of a plan on flat tensors. Its tag is taken now, in the order of calls, which all ranks share."""
        with self._lock:
            self._sequence += 1
            tag = FIRST_TAG + self._sequence % TAGS
        like = source if source is not None else target
        assert like is not None, "every rank has input or output"
        inner, head = self._inner(like.device), plan.checked.head
        size_bytes = share_elements * like.element_size() * (head.rank_count if head.collective.has_shares else 1)
        self._statistics.called(head.collective.value, head.name, None, size_bytes)
        program = plan.of(share_elements, NO_CUT if like.is_cuda else CUT_BYTES // like.element_size())
        reduction = REDUCTIONS[op] if op is not None else None

        def job(deadline: float) -> None:
            start = time.monotonic()
            execution = Execution(inner, self._scratch, tag, {"i": source, "o": target}, like, reduction, deadline)
            try:
                execution.run(program)
            except RuntimeError as error:
                raise RuntimeError(
                    f"canopy: rank {self._rank}, {head.collective.value} by {head.name}: {error}"
                ) from None
            if op == "AVG" and target is not None:
                target.div_(self._rank_count)
            self._statistics.took(head.collective.value, head.name, time.monotonic() - start)

        return job

    def _submit(self, jobs: list[Job], tensors: Sequence[torch.Tensor], options: Any) -> CanopyWork:
        """Runs jobs in order: now, if the caller waits or everything goes to a stream; else on the group's thread."""
        limit_s = compat.limit_s(options, self._timeout)
        work = CanopyWork(tensors, limit_s)

        def run() -> None:
            deadline = time.monotonic() + limit_s
            try:
                self._check_alive()
                with torch.no_grad():
                    for job in jobs:
                        job(deadline)
            except Exception as error:
                text = str(error) if str(error).startswith("canopy") else f"canopy: {type(error).__name__}: {error}"
                # Frames would keep tensors and connections.
                error.__traceback__ = None
                jobs.clear()
                self._break(text)
                work.finish(RuntimeError(text))
                return
            jobs.clear()
            work.finish()

        if compat.is_async(options) and not (tensors and tensors[0].is_cuda):
            self._enqueue(run)
        else:
            run()
        return work

    def _enqueue(self, run: Callable[[], None]) -> None:
        with self._lock:
            if self._queue is None:
                self._queue = queue.SimpleQueue()
                self._thread = threading.Thread(target=_drain, args=(self._queue,), name="canopy", daemon=True)
                self._thread.start()
            self._queue.put(run)

    def _break(self, error: str) -> None:
        """Ends the group. Peers that wait for this rank get an error, too, because their connections close."""
        with self._lock:
            if self._broken is not None:
                return
            self._broken = error
            inners = list(self._inners.values())
            self._inners.clear()
        for inner in inners:
            try:
                inner.abort()
            except Exception as failed:
                # Gloo of most versions has no abort: its end closes the connections.
                log.debug("canopy: abort of %s: %s", type(inner).__name__, failed)

    def _call_inner(self, tensor: torch.Tensor, method: str, *arguments: Any) -> Any:
        """The inner backend does it. Options that the caller left out are left out."""
        inner = self._inner(tensor.device)
        return getattr(inner, compat.method_name(method))(*(a for a in arguments if a is not None))

    def _reduce_inner(
        self, tensor: torch.Tensor, method: str, arguments: list[Any], targets: Sequence[torch.Tensor], options: Any
    ) -> Any:
        """As `_call_inner`. Where Gloo knows no averages, a sum is divided."""
        is_average = options is not None and compat.reduce_op_name(options.reduceOp) == "AVG"
        if not is_average or self._inner(tensor.device).name() != "gloo":
            return self._call_inner(tensor, method, *arguments, options)
        options.reduceOp = dist.ReduceOp.SUM
        work = self._call_inner(tensor, method, *arguments, options)

        def divide(_: float) -> None:
            work.wait()
            for target in targets:
                target.div_(self._rank_count) if target.is_floating_point() else target.floor_divide_(self._rank_count)

        return self._submit([divide], targets, options)

    # ---- what torch asks of every backend

    def getBackendName(self) -> str:
        return "canopy"

    def name(self) -> str:
        return "canopy"

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    def _set_sequence_number_for_group(self) -> None:
        """Numbers begin at 0 with the group."""

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def abort(self) -> None:
        self._break("aborted")

    def shutdown(self) -> None:
        with self._lock:
            line, thread, self._queue, self._thread = self._queue, self._thread, None, None
        if line is not None and thread is not None:
            line.put(None)
            thread.join(5)
        with self._lock:
            inners = list(self._inners.values())
            self._inners.clear()
        for inner in inners:
            if hasattr(inner, "shutdown"):
                inner.shutdown()
        _alive.discard(self)


def _unsupported(collective: Collective, tensor: torch.Tensor, op: str | None) -> str | None:
    """Why no plan can serve this kind of call."""
    if tensor.layout is not torch.strided or tensor.device.type not in ("cpu", "cuda"):
        return "the tensor is not dense memory of a CPU or a GPU"
    if collective.reduces and not can_reduce(op, tensor.dtype):
        return f"{op or 'this operator'} of {str(tensor.dtype).removeprefix('torch.')} is not added up by plans"
    return None


def _drain(line: "queue.SimpleQueue[Callable[[], None] | None]") -> None:
    while (run := line.get()) is not None:
        run()


def shutdown_all() -> None:
    """At the end of the process: threads end, and connections close."""
    for group in list(_alive):
        try:
            group.shutdown()
        except Exception as error:
            log.debug("canopy: shutdown: %s", error)
