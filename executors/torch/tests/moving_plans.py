"""Random matrices and random plans for them, and a run of all ranks of a plan in one process."""

from __future__ import annotations

import random

from canopy_torch.moving_plan import MovingPlan, MovingShape, Part
from canopy_torch.moving_program import MovingProgram, Slice, across_peers, inside_peers, own_parts, program

Rows = list[list[int]]


def matrix(random_: random.Random, rank_count: int, most: int, unit: int = 1) -> Rows:
    """Every third pair or so has nothing, and so has a rank now and then."""
    silent = random_.randrange(rank_count) if random_.random() < 0.5 else None
    return [
        [
            0
            if sender == receiver or silent in (sender, receiver)
            else max(0, random_.randrange(-most // 2, most + 1)) * unit
            for receiver in range(rank_count)
        ]
        for sender in range(rank_count)
    ]


def plan(random_: random.Random, shape: MovingShape, rows: Rows, unit: int = 1, number: int = 1) -> MovingPlan:
    """Splits each pair at random, over random NICs, and lists pairs in any order."""
    size = shape.box_size
    ways: list[tuple[int, int, int, int, int]] = []
    for sender, row in enumerate(rows):
        for receiver, count in enumerate(row):
            left = count // unit
            while left:
                part = random_.randrange(1, left + 1) if random_.random() < 0.7 else left
                left -= part
                place = random_.randrange(size)
                leaves = sender - sender % size + place
                enters = receiver - receiver % size + (place if shape.has_rails else random_.randrange(size))
                ways.append((sender, receiver, leaves, enters, part * unit))
    pairs = sorted({way[:2] for way in ways})
    random_.shuffle(pairs)
    order = {pair: index for index, pair in enumerate(pairs)}
    ways.sort(key=lambda way: order[way[:2]])
    return MovingPlan.make(number, shape, [list(column) for column in zip(*ways)] or [[]] * 5)


def rows_of(rank: int, kept: int, row: list[int]) -> list[tuple[int, int, int]]:
    """An input whose every element says whose it is: sender, receiver, place in the row."""
    return [(rank, to, i) for to, count in enumerate(row) for i in range(kept if to == rank else count)]


def of_parts(shape: MovingShape, parts: list[Part]) -> MovingPlan:
    """A plan that is not checked."""
    senders, receivers, leaves, enters, sizes = map(list, zip(*parts)) if parts else ([] for _ in range(5))
    return MovingPlan(1, shape, (senders, receivers, leaves, enters, sizes))


def emulate(made: MovingPlan, rows: Rows, kept: list[int], pieces: int) -> list[list[tuple[int, int, int]]]:
    """The outputs of all ranks, exchange by exchange. Fails where two ends of a message disagree."""
    shape = made.shape
    programs = [
        program(shape, rank, own_parts(made, rank), kept[rank], pieces) for rank in range(shape.rank_count)
    ]
    memory = [{0: rows_of(rank, kept[rank], rows[rank])} for rank in range(shape.rank_count)]
    for rank, one in enumerate(programs):
        assert one.input_count == len(memory[rank][0])
    for piece in range(pieces):
        for number in range(3):
            sent = [_messages(one, memory[rank], piece, number) for rank, one in enumerate(programs)]
            for rank, one in enumerate(programs):
                peers = (across_peers if number == 1 else inside_peers)(shape, rank)
                received = []
                for peer, count in zip(peers, one.pieces[piece][number].receives, strict=True):
                    their = list((across_peers if number == 1 else inside_peers)(shape, peer)).index(rank)
                    assert len(sent[peer][their]) == count, "both ends expect the same"
                    received += sent[peer][their]
                memory[rank][1 + 3 * piece + number] = received
    outputs = [_read(memory[rank], one.output) for rank, one in enumerate(programs)]
    for one, output in zip(programs, outputs):
        assert one.output_count == len(output)
    return outputs


def _messages(
    one: MovingProgram, memory: dict[int, list[tuple[int, int, int]]], piece: int, number: int
) -> list[list[tuple[int, int, int]]]:
    exchange = one.pieces[piece][number]
    packed, messages = _read(memory, exchange.slices), []
    assert sum(exchange.sends) == len(packed)
    start = 0
    for count in exchange.sends:
        messages.append(packed[start : start + count])
        start += count
    return messages


def _read(memory: dict[int, list[tuple[int, int, int]]], slices: tuple[Slice, ...]) -> list[tuple[int, int, int]]:
    read = []
    for piece in slices:
        assert 0 <= piece.first < piece.first + piece.count <= len(memory[piece.buffer])
        read += memory[piece.buffer][piece.first : piece.first + piece.count]
    return read


def expected(rank: int, rows: Rows, kept: list[int]) -> list[tuple[int, int, int]]:
    """What a rank must have in the end."""
    return [
        (sender, rank, i) for sender, row in enumerate(rows) for i in range(kept[rank] if sender == rank else row[rank])
    ]
