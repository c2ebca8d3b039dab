"""Receives the events of StreamPlan and checks their order, offsets, lengths and digests."""

import hashlib
from collections.abc import Callable, Iterable
from typing import BinaryIO

from canopy import v1


class StreamError(Exception):
    """The stream broke the protocol; discard everything received."""


def receive(
    events: Iterable[v1.PlanEvent],
    open_file: Callable[[int, v1.Artifact], BinaryIO],
    on_progress: Callable[[v1.Progress], None] = lambda _: None,
) -> v1.PlanResponse:
    """Writes every file of a plan to what `open_file` returns for its index and description; answers the final header.

    The files may be used only once this has returned. Raises StreamError, and whatever `events` and the files raise.
    """
    reply = None
    files: list[_File] = []
    current = 0
    for expected, event in enumerate(events):
        if event.sequence != expected:
            raise StreamError(f"expected event {expected}, received event {event.sequence}")
        kind = event.WhichOneof("event")
        if (kind == "accepted") != (expected == 0):
            raise StreamError(f"event {expected} is `{kind}`; a stream starts with one `accepted`")
        if kind == "progress" and reply is None:
            on_progress(event.progress)
        elif kind == "final" and reply is None:
            reply = event.final
            files = [_File(artifact, open_file(index, artifact)) for index, artifact in enumerate(reply.plan.artifacts)]
        elif kind == "content" and reply is not None:
            current = _take(files, current, event.content)
        elif kind is not None and kind != "accepted":
            raise StreamError(f"unexpected event {expected}: `{kind}`")
    if reply is None:
        raise StreamError("the stream ended before the plan")
    for index, file in enumerate(files):
        file.finish(index)
    return reply


def _take(files: list["_File"], current: int, piece: v1.ContentPiece) -> int:
    if not current <= piece.artifact < len(files):
        raise StreamError(f"a piece of file {piece.artifact} of {len(files)} came after one of file {current}")
    if hashlib.sha256(piece.data).hexdigest() != piece.sha256:
        raise StreamError(f"the piece of file {piece.artifact} at {piece.offset} does not match its SHA-256")
    files[piece.artifact].write(piece)
    return piece.artifact


class _File:
    """A file being received, and the digest of what has arrived."""

    def __init__(self, artifact: v1.Artifact, sink: BinaryIO) -> None:
        self._artifact = artifact
        self._sink = sink
        self._digest = hashlib.sha256()
        self._size_bytes = 0

    def write(self, piece: v1.ContentPiece) -> None:
        if piece.offset != self._size_bytes:
            raise StreamError(f"expected byte {self._size_bytes} of file {piece.artifact}, received byte {piece.offset}")
        if self._size_bytes + len(piece.data) > self._artifact.size_bytes:
            raise StreamError(f"file {piece.artifact} is longer than its {self._artifact.size_bytes} bytes")
        self._sink.write(piece.data)
        self._digest.update(piece.data)
        self._size_bytes += len(piece.data)

    def finish(self, index: int) -> None:
        if self._size_bytes != self._artifact.size_bytes:
            raise StreamError(f"file {index} ended after {self._size_bytes} of {self._artifact.size_bytes} bytes")
        if self._digest.hexdigest() != self._artifact.sha256:
            raise StreamError(f"file {index} does not match its SHA-256")
