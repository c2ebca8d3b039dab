"""Runs the programs of all ranks once, on symbols instead of data: a plan is used only if this ends as promised.

A symbol is a chunk of the message and the set of ranks whose contributions it holds. The run fails unless

* messages of two ranks match in order, with equal counts;
* the plan ends even if no send completes before its receive is posted;
* no message of a step writes what another one of that step reads or writes;
* nothing is read before it is written, and every contribution is added once;
* chunks lie only where they fit: a chunk of a share is as long as the one whose place it takes;
* every output holds what the collective promises, and inputs change in place only.

Lengths follow, too. A receiver cannot see in its own program how long a chunk is that it gets into scratch: the run
notes which chunk of its share it is. Cost: linear in the chunks moved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from canopy_torch.plan import Collective, Plan, PlanError, PlanHead, RankProgram, Span, Step

EMPTY = -1
"""The chunk of a place that nothing was written to."""


@dataclass(frozen=True, slots=True)
class CheckedRank:
    """The program of one rank of a plan that was checked as a whole."""

    head: PlanHead
    rank: int
    program: RankProgram
    classes: tuple[tuple[tuple[int, ...], ...], ...]
    """For each step and each of its receives: which chunks of their shares arrive."""
    writes_input: bool
    """Whether the rank writes to its input, which happens in place only."""


class CheckedPlan:
    """A plan that keeps what its collective promises."""

    def __init__(self, plan: Plan, runs: list["_Run"]) -> None:
        self.head = plan.head
        self._plan = plan
        self._runs = runs

    def of(self, rank: int) -> CheckedRank:
        """The part of one rank."""
        run = self._runs[rank]
        return CheckedRank(self.head, rank, self._plan.programs[rank], tuple(run.classes), run.writes_input)


def check(plan: Plan, place: str) -> CheckedPlan:
    """Runs a plan. `place` names it in messages. Errors: `PlanError`."""
    try:
        runs = [_Run(plan.head, rank, program) for rank, program in enumerate(plan.programs)]
        _Network(runs).run()
        for run in runs:
            run.check_end()
        return CheckedPlan(plan, runs)
    except PlanError as error:
        raise PlanError(f"{place}: {error}; make the plan again, or look at it with `canopy verify`") from None


class _Run:
    """One rank: the symbols in its memory, and how far it is."""

    def __init__(self, head: PlanHead, rank: int, program: RankProgram) -> None:
        self.head, self.rank, self.program = head, rank, program
        inputs, outputs = expected_chunks(head, rank)
        if (program.input_chunks, program.output_chunks) != (inputs, outputs):
            found = f"{program.input_chunks} chunks of input and {program.output_chunks} of output"
            raise PlanError(f"rank {rank} has {found}, where {head.collective.value} needs {inputs} and {outputs}")
        self._base = self._lay_out(inputs, outputs)
        cells = max(self._base["i"] + inputs, self._base["o"] + outputs)
        self._base["s"] = cells
        self._chunk = [EMPTY] * (cells + program.scratch_chunks)
        self._ranks = [0] * (cells + program.scratch_chunks)
        for k, chunk in enumerate(_input_chunks(head, rank, inputs)):
            self._chunk[self._base["i"] + k] = chunk
            self._ranks[self._base["i"] + k] = 1 << rank
        self.position = 0
        self.posted = False
        self.open = 0
        """Messages of the step that wait for their peer."""
        self.arrivals: list[tuple[list[int], list[int]] | None] = []
        self.classes: list[tuple[tuple[int, ...], ...]] = []
        self.writes_input = False

    def _lay_out(self, inputs: int, outputs: int) -> dict[str, int]:
        """Where buffers begin. In place, a rank with both has one memory for both."""
        head, share = self.head, self.head.share_chunks
        if not head.in_place or not inputs or not outputs:
            return {"i": 0, "o": inputs}
        if head.collective in (Collective.ALLGATHER, Collective.GATHER):
            return {"i": self.rank * share, "o": 0}
        if head.collective in (Collective.REDUCE_SCATTER, Collective.SCATTER):
            return {"i": 0, "o": self.rank * share}
        return {"i": 0, "o": 0}

    @property
    def step(self) -> Step | None:
        """The step that the rank is in; `None` at its end."""
        return self.program.steps[self.position] if self.position < len(self.program.steps) else None

    def read(self, span: Span) -> tuple[list[int], list[int]]:
        start = self._base[span.buffer] + span.first
        chunks = self._chunk[start : start + span.count]
        if EMPTY in chunks:
            raise PlanError(f"rank {self.rank}, step {self.position}: {_text(span)} is read before it is written")
        return chunks, self._ranks[start : start + span.count]

    def write(self, span: Span, symbols: tuple[list[int], list[int]]) -> None:
        chunks, ranks = symbols
        if len(chunks) != span.count:
            raise PlanError(f"rank {self.rank}, step {self.position}: {len(chunks)} chunks arrive in {_text(span)}")
        self._check_target(span)
        if span.buffer != "s":
            share = self.head.share_chunks
            for k, chunk in enumerate(chunks, span.first):
                if chunk % share != k % share:
                    raise PlanError(
                        f"rank {self.rank}, step {self.position}: a chunk of another length comes to {_text(span)}"
                    )
        start = self._base[span.buffer] + span.first
        self._chunk[start : start + span.count] = chunks
        self._ranks[start : start + span.count] = ranks

    def _check_target(self, span: Span) -> None:
        if span.buffer != "i":
            return
        if not self.head.in_place or self.head.collective is Collective.SCATTER:
            raise PlanError(
                f"rank {self.rank}, step {self.position}: {_text(span)} is written, which belongs to the caller"
            )
        self.writes_input = True

    def add(self, source: Span, target: Span) -> None:
        if not self.head.collective.reduces:
            raise PlanError(f"rank {self.rank}, step {self.position}: {self.head.collective.value} adds nothing up")
        self._check_target(target)
        chunks, ranks = self.read(source)
        before, ranks_before = self.read(target)
        if chunks != before:
            raise PlanError(f"rank {self.rank}, step {self.position}: different chunks are added up in {_text(target)}")
        if any(a & b for a, b in zip(ranks, ranks_before)):
            raise PlanError(f"rank {self.rank}, step {self.position}: a contribution is added twice in {_text(target)}")
        start = self._base[target.buffer] + target.first
        self._ranks[start : start + target.count] = [a | b for a, b in zip(ranks, ranks_before)]

    def check_overlap(self, step: Step) -> None:
        """Receives must not meet each other, nor what is sent in their step, nor a source its own target."""
        received = sorted(self._range(message.span) for message in step.receives)
        for (_, end), (start, _) in zip(received, received[1:]):
            if start < end:
                raise PlanError(f"rank {self.rank}, step {self.position}: two messages arrive at one place")
        if _meet(received, sorted(self._range(message.span) for message in step.sends)):
            raise PlanError(f"rank {self.rank}, step {self.position}: a message arrives where another one is sent from")
        for local in step.locals:
            if local.source.count != local.target.count or _meet(
                [self._range(local.source)], [self._range(local.target)]
            ):
                raise PlanError(f"rank {self.rank}, step {self.position}: source and target of local work overlap")

    def _range(self, span: Span) -> tuple[int, int]:
        start = self._base[span.buffer] + span.first
        return start, start + span.count

    def finish_step(self) -> None:
        """All messages of the step have met their peers: writes what arrived, and works on it."""
        step = self.step
        assert step is not None, "a rank at its end waits for nothing"
        share, classes = self.head.share_chunks, []
        for message, arrived in zip(step.receives, self.arrivals):
            assert arrived is not None, "no message is open"
            self.write(message.span, arrived)
            classes.append(tuple(chunk % share for chunk in arrived[0]))
        self.classes.append(tuple(classes))
        for local in step.locals:
            if local.reduces:
                self.add(local.source, local.target)
            else:
                self.write(local.target, self.read(local.source))
        self.position, self.posted = self.position + 1, False

    def check_end(self) -> None:
        expected = _output_symbols(self.head, self.rank, self.program.output_chunks)
        start = self._base["o"]
        for k, symbol in enumerate(expected):
            if (self._chunk[start + k], self._ranks[start + k]) != symbol:
                raise PlanError(f"rank {self.rank} ends without chunk {k} of its output")


class _Network:
    """All ranks, and the messages that have not met their peers. A send and its receive complete together."""

    def __init__(self, runs: list[_Run]) -> None:
        self._runs = runs
        self._sends: dict[tuple[int, int], deque[tuple[list[int], list[int]]]] = {}
        self._receives: dict[tuple[int, int], deque[int]] = {}

    def run(self) -> None:
        ready = deque(range(len(self._runs)))
        while ready:
            run = self._runs[ready.popleft()]
            while (step := run.step) is not None:
                if not run.posted:
                    ready.extend(self._post(run, step))
                if run.open:
                    break
                run.finish_step()
        waiting = [run.rank for run in self._runs if run.step is not None]
        if waiting:
            raise PlanError(f"rank {waiting[0]} waits for ever in step {self._runs[waiting[0]].position}")

    def _post(self, run: _Run, step: Step) -> Iterable[int]:
        """Starts all messages of a step, and returns the other ranks that have become ready by that."""
        run.check_overlap(step)
        run.posted, run.open = True, len(step.sends) + len(step.receives)
        run.arrivals = [None] * len(step.receives)
        ready = []
        for message in step.sends:
            pair = (run.rank, message.peer)
            self._sends.setdefault(pair, deque()).append(run.read(message.span))
            ready += self._meet(pair)
        for index, message in enumerate(step.receives):
            pair = (message.peer, run.rank)
            self._receives.setdefault(pair, deque()).append(index)
            ready += self._meet(pair)
        return (rank for rank in ready if rank != run.rank)

    def _meet(self, pair: tuple[int, int]) -> list[int]:
        sends, receives = self._sends.get(pair), self._receives.get(pair)
        if not sends or not receives:
            return []
        sender, receiver = self._runs[pair[0]], self._runs[pair[1]]
        receiver.arrivals[receives.popleft()] = sends.popleft()
        sender.open -= 1
        receiver.open -= 1
        return [run.rank for run in (sender, receiver) if run.open == 0]


def expected_chunks(head: PlanHead, rank: int) -> tuple[int, int]:
    """Chunks of a rank's input and output."""
    whole, share, is_root = head.chunk_count, head.share_chunks, head.root == rank
    match head.collective:
        case Collective.ALLGATHER:
            return share, whole
        case Collective.REDUCE_SCATTER:
            return whole, share
        case Collective.ALLREDUCE | Collective.ALL_TO_ALL:
            return whole, whole
        case Collective.BROADCAST:
            return whole if is_root else 0, whole
        case Collective.REDUCE:
            return whole, whole if is_root else 0
        case Collective.GATHER:
            return share, whole if is_root else 0
        case Collective.SCATTER:
            return whole if is_root else 0, share


def _input_chunks(head: PlanHead, rank: int, count: int) -> range:
    """Which chunks lie in a rank's input. In an all-to-all, each rank has a message of its own."""
    if head.collective in (Collective.ALLGATHER, Collective.GATHER):
        return range(rank * count, (rank + 1) * count)
    if head.collective is Collective.ALL_TO_ALL:
        return range(rank * count, (rank + 1) * count)
    return range(count)


def _output_symbols(head: PlanHead, rank: int, count: int) -> Iterable[tuple[int, int]]:
    share, everybody = head.share_chunks, (1 << head.rank_count) - 1
    match head.collective:
        case Collective.ALLGATHER | Collective.GATHER:
            return ((k, 1 << (k // share)) for k in range(count))
        case Collective.ALLREDUCE | Collective.REDUCE:
            return ((k, everybody) for k in range(count))
        case Collective.REDUCE_SCATTER:
            return ((rank * share + k, everybody) for k in range(count))
        case Collective.BROADCAST:
            return ((k, 1 << (head.root or 0)) for k in range(count))
        case Collective.SCATTER:
            return ((rank * share + k, 1 << (head.root or 0)) for k in range(count))
        case Collective.ALL_TO_ALL:
            return (
                (peer * head.chunk_count + rank * share + k, 1 << peer)
                for peer in range(head.rank_count)
                for k in range(share)
            )


def _meet(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> bool:
    """Whether sorted ranges of two lists meet; those of `first` do not meet each other."""
    position = 0
    for start, end in second:
        while position < len(first) and first[position][1] <= start:
            position += 1
        # Ranges of `second` may overlap each other, so that the next one may meet this one again.
        if position < len(first) and first[position][0] < end:
            return True
    return False


def _text(span: Span) -> str:
    return (
        f"chunk {span.first} of buffer {span.buffer}"
        if span.count == 1
        else f"chunks {span.first} to {span.first + span.count - 1} of buffer {span.buffer}"
    )
