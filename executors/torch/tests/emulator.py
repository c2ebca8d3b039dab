"""Runs the programs of all ranks of a plan in one process, on lists of whole numbers, in random order."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from canopy_torch.plan import Collective, PlanHead
from canopy_torch.program import Piece, Program, compile_program
from canopy_torch.symbols import CheckedPlan

Buffers = dict[str, "View"]


class View:
    """A range of a list: in place, input and output are views of one."""

    def __init__(self, cells: list[int], start: int, count: int) -> None:
        self._cells, self._start, self.count = cells, start, count

    def read(self, first: int, count: int) -> list[int]:
        assert 0 <= first <= first + count <= self.count
        return self._cells[self._start + first : self._start + first + count]

    def write(self, first: int, values: list[int]) -> None:
        assert 0 <= first <= first + len(values) <= self.count
        self._cells[self._start + first : self._start + first + len(values)] = values

    def all(self) -> list[int]:
        return self.read(0, self.count)


class Rank:
    """One rank: its memory, its program, and how far it is."""

    def __init__(self, program: Program, buffers: Buffers) -> None:
        self.program, self.buffers = program, buffers
        self.buffers["s"] = View([5555] * program.scratch_elements, 0, program.scratch_elements)
        self.position, self.posted = 0, False

    @property
    def ended(self) -> bool:
        return self.position == len(self.program.steps)

    def read(self, piece: Piece) -> list[int]:
        return self.buffers[piece.buffer].read(piece.first, piece.count)

    def write(self, piece: Piece, values: list[int]) -> None:
        assert len(values) == piece.count
        self.buffers[piece.buffer].write(piece.first, values)


def run(plan: CheckedPlan, share_elements: int, random_: random.Random) -> str | None:
    """What is wrong with the result; `None` if nothing is."""
    head = plan.head
    # Messages are cut, but not to so many that the run takes long.
    cut_elements = random_.choice((1, 3, 1000) if share_elements < 20 else (share_elements // 5, 1000))
    inputs = [inputs_of(head, rank, share_elements, random_) for rank in range(head.rank_count)]
    ranks, given = [], []
    for rank in range(head.rank_count):
        buffers = buffers_of(head, rank, share_elements, inputs[rank])
        given.append(buffers.get("i"))
        ranks.append(Rank(compile_program(plan.of(rank), share_elements, cut_elements), buffers))
    problem = _run_all(ranks, random_)
    if problem is not None:
        return problem
    for rank, run_ in enumerate(ranks):
        wanted = expected(head, rank, share_elements, inputs)
        if wanted is not None and run_.buffers["o"].all() != wanted:
            return f"rank {rank} has another result"
        view = given[rank]
        if view is not None and not head.in_place and view.all() != inputs[rank]:
            return f"rank {rank} lost its input"
    return None


def _run_all(ranks: list[Rank], random_: random.Random) -> str | None:
    """Messages are copied when they are sent. Local work runs as soon as what it waits for is there, or later."""
    mail: dict[tuple[int, int], deque[list[int]]] = {}
    while not all(rank.ended for rank in ranks):
        moved = False
        for number in random_.sample(range(len(ranks)), len(ranks)):
            rank = ranks[number]
            if rank.ended:
                continue
            step = rank.program.steps[rank.position]
            if not rank.posted:
                for send in step.sends:
                    message = [value for piece in send.pieces for value in rank.read(piece)]
                    mail.setdefault((number, send.peer), deque()).append(message)
                rank.posted = moved = True
            wanted: dict[int, int] = {}
            for receive in step.receives:
                wanted[receive.peer] = wanted.get(receive.peer, 0) + 1
            if any(len(mail.get((peer, number), ())) < count for peer, count in wanted.items()):
                continue
            sent = [
                (send.pieces, [value for piece in send.pieces for value in rank.read(piece)]) for send in step.sends
            ]
            messages = [(receive.piece, mail[(receive.peer, number)].popleft()) for receive in step.receives]
            _finish(rank, step.works, messages, sent, random_)
            rank.position, rank.posted, moved = rank.position + 1, False, True
        if not moved:
            return "the ranks wait for each other"
    return "messages are left over" if any(mail.values()) else None


def _finish(
    rank: Rank,
    works: Any,
    messages: list[tuple[Piece, list[int]]],
    sent: list[tuple[tuple[Piece, ...], list[int]]],
    random_: random.Random,
) -> None:
    """Writes messages in a random order, and works as early as `waits_for` allows: what waits too little gets it wrong.

    A send that nothing has waited for may not have read its memory yet, which therefore must not have changed.
    """
    written: set[int] = set()
    unread = dict(enumerate(sent, len(messages)))

    def arrive(index: int) -> None:
        if index < len(messages) and index not in written:
            written.add(index)
            rank.write(*messages[index])

    for work in works:
        for index in work.waits_for:
            arrive(index)
            unread.pop(index, None)
        for index in random_.sample(range(len(messages)), random_.randint(0, min(2, len(messages)))):
            arrive(index)
        values = rank.read(work.source)
        if work.reduces:
            values = [a + b for a, b in zip(rank.read(work.target), values)]
        rank.write(work.target, values)
        for pieces, message in unread.values():
            assert [value for piece in pieces for value in rank.read(piece)] == message, "a send reads changed memory"
    for index in random_.sample(range(len(messages)), len(messages)):
        arrive(index)


def inputs_of(head: PlanHead, rank: int, n: int, random_: random.Random) -> list[int] | None:
    kind = head.collective
    if kind in (Collective.BROADCAST, Collective.SCATTER) and rank != head.root:
        return None
    whole = kind in (Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL, Collective.SCATTER)
    return [random_.randint(-1000, 1000) for _ in range(n * head.rank_count if whole else n)]


def buffers_of(head: PlanHead, rank: int, n: int, given: list[int] | None) -> Buffers:
    """Input and output, one memory for both if the plan is in place and the rank has both."""
    kind = head.collective
    has_output = kind not in (Collective.REDUCE, Collective.GATHER) or rank == head.root
    whole = kind in (Collective.ALLGATHER, Collective.GATHER, Collective.ALL_TO_ALL)
    output = [7777] * (n * head.rank_count if whole else n)
    if given is None:
        return {"o": View(output, 0, len(output))}
    cells = list(given)
    if not has_output:
        return {"i": View(cells, 0, len(cells))}
    if not head.in_place:
        return {"i": View(cells, 0, len(cells)), "o": View(output, 0, len(output))}
    if kind in (Collective.ALLGATHER, Collective.GATHER):
        output[rank * n : (rank + 1) * n] = cells
        return {"i": View(output, rank * n, n), "o": View(output, 0, len(output))}
    if kind in (Collective.REDUCE_SCATTER, Collective.SCATTER):
        return {"i": View(cells, 0, len(cells)), "o": View(cells, rank * n, n)}
    return {"i": View(cells, 0, len(cells)), "o": View(cells, 0, len(cells))}


def expected(head: PlanHead, rank: int, n: int, inputs: list[list[int] | None]) -> list[int] | None:
    """What the collective promises this rank."""
    given = [values or [] for values in inputs]
    root, mine = head.root or 0, slice(rank * n, (rank + 1) * n)
    match head.collective:
        case Collective.ALLREDUCE:
            return [sum(column) for column in zip(*given)]
        case Collective.REDUCE:
            return [sum(column) for column in zip(*given)] if rank == root else None
        case Collective.REDUCE_SCATTER:
            return [sum(column) for column in zip(*given)][mine]
        case Collective.BROADCAST:
            return given[root]
        case Collective.SCATTER:
            return given[root][mine]
        case Collective.ALLGATHER:
            return [value for values in given for value in values]
        case Collective.GATHER:
            return [value for values in given for value in values] if rank == root else None
        case Collective.ALL_TO_ALL:
            return [value for values in given for value in values[mine]]
