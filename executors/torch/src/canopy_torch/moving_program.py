"""What one rank does for a plan of moving traffic. Knows nothing of torch.

Three exchanges: inside the box, across, and inside the box again. Each sends one message to each peer, which is the
parts in the order of sender, receiver and place in the plan: both ends find the same order by themselves. Traffic may
be cut into pieces, each of them three exchanges of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from canopy_torch.moving_plan import MovingPlan, MovingShape, Part

INPUT = 0
"""The buffer of what the caller gives. What exchange `e` of piece `p` receives is the buffer `1 + 3 * p + e`."""
PIECES_MAX = 64


@dataclass(frozen=True, slots=True)
class Slice:
    """Adjacent elements of a buffer."""

    buffer: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """One message to each peer and one from each; peers by their place in the exchange's group."""

    slices: tuple[Slice, ...]
    """What is sent, one after the other, in the order of peers."""
    sends: tuple[int, ...]
    """Elements for each peer."""
    receives: tuple[int, ...]
    """Elements from each peer."""


@dataclass(frozen=True, slots=True)
class MovingProgram:
    """What one rank does."""

    pieces: tuple[tuple[Exchange, Exchange, Exchange], ...]
    """Exchanges inside, across and inside."""
    output: tuple[Slice, ...]
    """The output, from its start to its end."""
    input_count: int
    """Elements of the input."""
    output_count: int
    """Elements of the output."""


def inside_peers(shape: MovingShape, rank: int) -> range:
    """The ranks of a rank's box."""
    start = rank - rank % shape.box_size
    return range(start, start + shape.box_size)


def across_peers(shape: MovingShape, rank: int) -> range:
    """The ranks whose NICs a rank's NIC is joined with, itself included."""
    if shape.has_rails:
        return range(rank % shape.box_size, shape.rank_count, shape.box_size)
    return range(shape.rank_count)


def own_parts(plan: MovingPlan, rank: int) -> list[Part]:
    """Those that a rank sends, passes on or receives, in the order of the plan."""
    return [Part._make(row) for row in zip(*plan.columns) if rank in row[:4]]


def program(shape: MovingShape, rank: int, own: Sequence[Part], kept: int = 0, pieces: int = 1) -> MovingProgram:
    """The program of a rank, from the parts that it has to do with and the elements that it keeps for itself.

    Cost: linear in those parts times pieces, but for sorting them.
    """
    if not 1 <= pieces <= PIECES_MAX:
        raise ValueError(f"pieces is {pieces}; use 1 to {PIECES_MAX}")
    parts = sorted(own, key=lambda part: (part.sender, part.receiver))
    starts, input_count = _starts(parts, rank, kept)
    cuts = [_piece(shape, rank, parts, starts, piece, pieces) for piece in range(pieces)]
    output = _Slices()
    output_count = 0
    is_kept_due = True
    for index, part in enumerate(parts):
        if part.receiver != rank:
            continue
        if is_kept_due and part.sender > rank:
            output.add(Slice(INPUT, starts[-1], kept))
            is_kept_due = False
        output_count += part.size
        for _, arrived in cuts:
            output.add(arrived[index])
    if is_kept_due:
        output.add(Slice(INPUT, starts[-1], kept))
    return MovingProgram(
        tuple(exchanges for exchanges, _ in cuts), tuple(output.found), input_count, output_count + kept
    )


class _Slices:
    """Slices in order; those that follow each other in memory become one."""

    def __init__(self) -> None:
        self.found: list[Slice] = []

    def add(self, added: Slice) -> None:
        if not added.count:
            return
        last = self.found[-1] if self.found else None
        if last is not None and last.buffer == added.buffer and last.first + last.count == added.first:
            added = Slice(last.buffer, last.first, last.count + added.count)
            self.found.pop()
        self.found.append(added)


def _starts(parts: Sequence[Part], rank: int, kept: int) -> tuple[list[int], int]:
    """Where each part starts in the rank's input, at the end where it keeps its own; and the length of the input."""
    starts, position, kept_at = [], 0, None
    for part in parts:
        if part.sender == rank and kept_at is None and part.receiver > rank:
            kept_at = position
            position += kept
        starts.append(position if part.sender == rank else 0)
        if part.sender == rank:
            position += part.size
    if kept_at is None:
        kept_at = position
        position += kept
    return [*starts, kept_at], position


def _piece(
    shape: MovingShape, rank: int, parts: Sequence[Part], starts: Sequence[int], piece: int, pieces: int
) -> tuple[tuple[Exchange, Exchange, Exchange], dict[int, Slice]]:
    """The exchanges of a piece, and where each part for this rank is after them."""
    cut = [(part.size * piece // pieces, part.size * (piece + 1) // pieces) for part in parts]
    # Where each part is that this rank has so far.
    at = {
        index: Slice(INPUT, starts[index] + low, high - low)
        for index, (part, (low, high)) in enumerate(zip(parts, cut))
        if part.sender == rank
    }
    size = shape.box_size
    exchanges = []
    for number in range(3):
        sent: dict[int, list[int]] = {}
        received: dict[int, list[int]] = {}
        for index, part in enumerate(parts):
            source, target = _hop(shape, part, number)
            if source == target:
                continue
            if source == rank:
                sent.setdefault(target, []).append(index)
            elif target == rank:
                received.setdefault(source, []).append(index)
        peers = across_peers(shape, rank) if number == 1 else inside_peers(shape, rank)
        exchange, at_next = _exchange(peers, sent, received, at, cut, 1 + 3 * piece + number)
        exchanges.append(exchange)
        at.update(at_next)
    return (exchanges[0], exchanges[1], exchanges[2]), at


def _hop(shape: MovingShape, part: Part, exchange: int) -> tuple[int, int]:
    """From where to where an exchange takes a part: twice the same rank if it does not."""
    if shape.are_boxmates(part.sender, part.receiver):
        return (part.sender, part.receiver) if exchange == 0 else (part.receiver, part.receiver)
    way = (part.sender, part.leaves, part.enters, part.receiver)
    return way[exchange], way[exchange + 1]


def _exchange(
    peers: Sequence[int],
    sent: dict[int, list[int]],
    received: dict[int, list[int]],
    at: dict[int, Slice],
    cut: Sequence[tuple[int, int]],
    buffer: int,
) -> tuple[Exchange, dict[int, Slice]]:
    slices, sends, receives = _Slices(), [], []
    at_next: dict[int, Slice] = {}
    position = 0
    for peer in peers:
        count = 0
        for index in sent.get(peer, ()):
            slices.add(at[index])
            count += at[index].count
        sends.append(count)
        start = position
        for index in received.get(peer, ()):
            low, high = cut[index]
            at_next[index] = Slice(buffer, position, high - low)
            position += high - low
        receives.append(position - start)
    return Exchange(tuple(slices.found), tuple(sends), tuple(receives)), at_next
