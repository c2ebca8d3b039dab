"""From chunks to elements: the program of a rank for a message of a certain length.

Chunk k of the C chunks of a share of N elements has the elements from ⌊kN/C⌋ up to ⌊(k+1)N/C⌋, so every N works, and
messages without elements are left out at both ends. A chunk of scratch has room for the longest. A message of several
chunks is contiguous on the wire; in scratch it is so only if every chunk but its last is of the longest kind. Other
messages are received beside, and laid out afterwards: packed tightly, a later and longer chunk would overwrite the
neighbour of the chunk whose place it takes.

Long messages are cut, alike at both ends: what has arrived is added up, still in the processor's cache, while the rest
is on its way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from canopy_torch.plan import Buffer, Collective, PlanError, Span
from canopy_torch.symbols import CheckedRank

PROGRAMS_MAX = 256
"""Most lengths whose programs a plan keeps: a training step has as many as it has buckets and layers."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Adjacent elements of a buffer."""

    buffer: Buffer
    first: int
    count: int

    @property
    def end(self) -> int:
        return self.first + self.count


@dataclass(frozen=True, slots=True)
class Send:
    """Pieces that are one message."""

    peer: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Receive:
    """A message that arrives in one piece."""

    peer: int
    piece: Piece


@dataclass(frozen=True, slots=True)
class Work:
    """Local work, once the messages before `waits_for` are complete: first the receives of the step, then its sends."""

    reduces: bool
    source: Piece
    target: Piece
    waits_for: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ElementStep:
    """A step, in elements."""

    receives: tuple[Receive, ...]
    sends: tuple[Send, ...]
    works: tuple[Work, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in elements, and the elements of scratch they need."""

    steps: tuple[ElementStep, ...]
    scratch_elements: int


class Programs:
    """The programs of one rank for the lengths used last."""

    def __init__(self, checked: CheckedRank) -> None:
        self._checked = checked
        self._kept: OrderedDict[tuple[int, int], Program] = OrderedDict()

    @property
    def checked(self) -> CheckedRank:
        return self._checked

    def of(self, share_elements: int, cut_elements: int) -> Program:
        """The program for shares (messages, where there are no shares) of this length."""
        key = (share_elements, cut_elements)
        program = self._kept.pop(key, None)
        if program is None:
            program = compile_program(self._checked, share_elements, cut_elements)
        self._kept[key] = program
        if len(self._kept) > PROGRAMS_MAX:
            self._kept.popitem(last=False)
        return program


def compile_program(checked: CheckedRank, share_elements: int, cut_elements: int) -> Program:
    """Messages are cut to `cut_elements`. Cost: linear in the chunks that the rank moves, and in the cuts."""
    return _Compiler(checked, share_elements, cut_elements).program()


class _Compiler:
    def __init__(self, checked: CheckedRank, share_elements: int, cut_elements: int) -> None:
        self._checked, self._share, self._cut = checked, share_elements, cut_elements
        self._share_chunks = checked.head.share_chunks
        self._edge = [k * share_elements // self._share_chunks for k in range(self._share_chunks + 1)]
        self._longest = -(-share_elements // self._share_chunks)
        self._scratch = checked.program.scratch_chunks
        self._lengths = [0] * self._scratch
        """Elements of each chunk of scratch, as far as the program has come."""

    def program(self) -> Program:
        steps, room = [], self._scratch * self._longest
        arriving, leaving = _Waits(self._checked, self._share), _Waits(self._checked, self._share)
        for step, classes in zip(self._checked.program.steps, self._checked.classes):
            sends = [
                Send(message.peer, part)
                for message in step.sends
                for part in cut(self._pieces(message.span), self._cut)
            ]
            receives: list[Receive] = []
            works: list[tuple[bool, Piece, Piece]] = []
            beside = self._scratch * self._longest
            for message, chunks in zip(step.receives, classes):
                if message.span.buffer == "s":
                    self._place(message.span.first, [self._edge[k + 1] - self._edge[k] for k in chunks])
                pieces = self._pieces(message.span)
                arrives = pieces
                if len(pieces) > 1:
                    arrives = (Piece("s", beside, sum(piece.count for piece in pieces)),)
                    for piece in pieces:
                        works.append((False, Piece("s", beside, piece.count), piece))
                        beside += piece.count
                receives += [Receive(message.peer, part) for (part,) in cut(arrives, self._cut)]
            room = max(room, beside)
            for local in step.locals:
                works += self._local(local.reduces, local.source, local.target)
            steps.append(_in_order(receives, sends, works, arriving, leaving))
        return Program(tuple(steps), room)

    def _place(self, first: int, lengths: list[int]) -> None:
        self._lengths[first : first + len(lengths)] = lengths

    def _chunk(self, buffer: Buffer, chunk: int) -> tuple[int, int]:
        """First element and length of a chunk."""
        if buffer == "s":
            return chunk * self._longest, self._lengths[chunk]
        share, k = divmod(chunk, self._share_chunks)
        return share * self._share + self._edge[k], self._edge[k + 1] - self._edge[k]

    def _pieces(self, span: Span) -> tuple[Piece, ...]:
        """A span as pieces that are contiguous and not empty."""
        if span.buffer != "s":
            start, _ = self._chunk(span.buffer, span.first)
            last, length = self._chunk(span.buffer, span.first + span.count - 1)
            return (Piece(span.buffer, start, last + length - start),) if last + length > start else ()
        pieces: list[Piece] = []
        for chunk in range(span.first, span.first + span.count):
            start, length = self._chunk("s", chunk)
            if length and pieces and pieces[-1].end == start:
                pieces[-1] = Piece("s", pieces[-1].first, pieces[-1].count + length)
            elif length:
                pieces.append(Piece("s", start, length))
        return tuple(pieces)

    def _local(self, reduces: bool, source: Span, target: Span) -> list[tuple[bool, Piece, Piece]]:
        works: list[tuple[bool, Piece, Piece]] = []
        for k in range(source.count):
            first, length = self._chunk(source.buffer, source.first + k)
            if not reduces and target.buffer == "s":
                self._lengths[target.first + k] = length
            to, room = self._chunk(target.buffer, target.first + k)
            if length != room:
                raise PlanError(f"{self._checked.head.name}: chunks of {length} and {room} elements meet")
            if not length:
                continue
            if works and works[-1][1].end == first and works[-1][2].end == to:
                _, before, before_to = works[-1]
                first, to, length = before.first, before_to.first, before.count + length
                works.pop()
            works.append((reduces, Piece(source.buffer, first, length), Piece(target.buffer, to, length)))
        return works


class _Waits:
    """Finds the messages of a step that meet a piece of memory: receives first, then sends, by their numbers."""

    def __init__(self, checked: CheckedRank, share_elements: int) -> None:
        # In place, input and output are one memory, in which one of them may begin later.
        head, later = checked.head, checked.rank * share_elements
        both = head.in_place and checked.program.input_chunks > 0 and checked.program.output_chunks > 0
        self._space: dict[Buffer, tuple[str, int]] = {"i": ("i", 0), "o": ("o", 0), "s": ("s", 0)}
        if both and head.collective in (Collective.ALLGATHER, Collective.GATHER):
            self._space["i"] = ("o", later)
        elif both and head.collective in (Collective.REDUCE_SCATTER, Collective.SCATTER):
            self._space["o"] = ("i", later)
        elif both:
            self._space["o"] = ("i", 0)
        self._found: dict[str, list[tuple[int, int, int]]] = {}
        self._longest = 0

    def begin(self, messages: Iterable[tuple[int, Piece]]) -> None:
        """Takes the messages of a step."""
        self._found, self._longest = {}, 0
        for number, piece in messages:
            space, start = self._place(piece)
            self._found.setdefault(space, []).append((start, start + piece.count, number))
            self._longest = max(self._longest, piece.count)
        for found in self._found.values():
            found.sort()

    def meeting(self, piece: Piece) -> list[int]:
        """The messages that meet a piece."""
        space, start = self._place(piece)
        found = self._found.get(space, [])
        low = bisect_left(found, (start - self._longest, 0, 0))
        high = bisect_left(found, (start + piece.count, 0, 0))
        return [number for _, end, number in found[low:high] if end > start]

    def edges(self, piece: Piece) -> list[int]:
        """Where messages that meet a piece end within it."""
        space, start = self._place(piece)
        found = self._found.get(space, [])
        low = bisect_left(found, (start - self._longest, 0, 0))
        high = bisect_left(found, (start + piece.count, 0, 0))
        return sorted({end - start for _, end, _ in found[low:high] if start < end < start + piece.count})

    def _place(self, piece: Piece) -> tuple[str, int]:
        space, later = self._space[piece.buffer]
        return space, piece.first + later


def _in_order(
    receives: list[Receive],
    sends: list[Send],
    works: list[tuple[bool, Piece, Piece]],
    arriving: _Waits,
    leaving: _Waits,
) -> ElementStep:
    """Notes for each work which messages it must wait for, so that sums begin while other messages are on their way.

    It must not read or write where a message is still to arrive, nor write what a send has yet to read. Work on what
    several messages bring is divided among them.
    """
    arriving.begin((index, receive.piece) for index, receive in enumerate(receives))
    leaving.begin((index, piece) for index, send in enumerate(sends, len(receives)) for piece in send.pieces)
    noted = []
    for reduces, source, target in works:
        edges = [0, *arriving.edges(source), source.count]
        for start, end in zip(edges, edges[1:]):
            read = Piece(source.buffer, source.first + start, end - start)
            written = Piece(target.buffer, target.first + start, end - start)
            waits = {*arriving.meeting(read), *arriving.meeting(written), *leaving.meeting(written)}
            noted.append(Work(reduces, read, written, tuple(sorted(waits))))
    return ElementStep(tuple(receives), tuple(sends), tuple(noted))


def cut(pieces: tuple[Piece, ...], most: int) -> list[tuple[Piece, ...]]:
    """A message as messages of `most` elements, and a last one of at most as many."""
    parts: list[tuple[Piece, ...]] = []
    part: list[Piece] = []
    room = most
    for piece in pieces:
        first = piece.first
        while first < piece.end:
            count = min(room, piece.end - first)
            part.append(Piece(piece.buffer, first, count))
            first, room = first + count, room - count
            if room == 0:
                parts.append(tuple(part))
                part, room = [], most
    return [*parts, tuple(part)] if part else parts
