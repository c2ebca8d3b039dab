"""From chunks to elements: the program of a rank for a message of a certain length.

Chunk k of the C chunks of a share of N elements has the elements from ⌊kN/C⌋ up to ⌊(k+1)N/C⌋, so every N works, and
messages without elements are left out at both ends. A chunk of scratch has room for the longest. A message of several
chunks is contiguous on the wire; in scratch it is so only if every chunk but its last is of the longest kind. Other
messages are received beside, and laid out afterwards: packed tightly, a later and longer chunk would overwrite the
neighbour of the chunk whose place it takes.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from canopy_torch.plan import Buffer, PlanError, Span
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
        self._kept: OrderedDict[int, Program] = OrderedDict()

    @property
    def checked(self) -> CheckedRank:
        return self._checked

    def of(self, share_elements: int) -> Program:
        """The program for shares (messages, where there are no shares) of this length."""
        program = self._kept.pop(share_elements, None)
        if program is None:
            program = compile_program(self._checked, share_elements)
        self._kept[share_elements] = program
        if len(self._kept) > PROGRAMS_MAX:
            self._kept.popitem(last=False)
        return program


def compile_program(checked: CheckedRank, share_elements: int) -> Program:
    """Cost: linear in the chunks that the rank moves."""
    return _Compiler(checked, share_elements).program()


class _Compiler:
    def __init__(self, checked: CheckedRank, share_elements: int) -> None:
        self._checked, self._share = checked, share_elements
        self._share_chunks = checked.head.share_chunks
        self._edge = [k * share_elements // self._share_chunks for k in range(self._share_chunks + 1)]
        self._longest = -(-share_elements // self._share_chunks)
        self._scratch = checked.program.scratch_chunks
        self._lengths = [0] * self._scratch
        """Elements of each chunk of scratch, as far as the program has come."""

    def program(self) -> Program:
        steps, room = [], self._scratch * self._longest
        for step, classes in zip(self._checked.program.steps, self._checked.classes):
            sends = [Send(message.peer, self._pieces(message.span)) for message in step.sends]
            sends = [send for send in sends if send.pieces]
            receives: list[Receive] = []
            works: list[tuple[bool, Piece, Piece]] = []
            beside = self._scratch * self._longest
            for message, arriving in zip(step.receives, classes):
                if message.span.buffer == "s":
                    self._place(message.span.first, [self._edge[k + 1] - self._edge[k] for k in arriving])
                pieces = self._pieces(message.span)
                if len(pieces) == 1:
                    receives.append(Receive(message.peer, pieces[0]))
                elif pieces:
                    total = sum(piece.count for piece in pieces)
                    receives.append(Receive(message.peer, Piece("s", beside, total)))
                    for piece in pieces:
                        works.append((False, Piece("s", beside, piece.count), piece))
                        beside += piece.count
            room = max(room, beside)
            for local in step.locals:
                works += self._local(local.reduces, local.source, local.target)
            steps.append(_ordered(receives, sends, works, self._checked))
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


def _ordered(
    receives: list[Receive], sends: list[Send], works: list[tuple[bool, Piece, Piece]], checked: CheckedRank
) -> ElementStep:
    """Notes for each work which messages it must wait for, so that sums begin while other messages are on their way.

    It reads what a receive brings, and must not write what a send has yet to read. In place, input and output are one
    memory of which the offset is not known here: there, work on either waits for all messages of the other, too.
    """
    one_memory = checked.head.in_place
    noted = []
    for reduces, source, target in works:
        waits = [
            index
            for index, receive in enumerate(receives)
            if _touch(receive.piece, source, one_memory) or _touch(receive.piece, target, one_memory)
        ]
        for index, send in enumerate(sends, len(receives)):
            if any(_touch(piece, target, one_memory) for piece in send.pieces):
                waits.append(index)
        noted.append(Work(reduces, source, target, tuple(waits)))
    return ElementStep(tuple(receives), tuple(sends), tuple(noted))


def _touch(one: Piece, other: Piece, one_memory: bool) -> bool:
    if one.buffer != other.buffer:
        return one_memory and "s" not in (one.buffer, other.buffer)
    return one.first < other.end and other.first < one.end
