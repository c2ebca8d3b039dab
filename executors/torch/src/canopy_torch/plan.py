"""Plans as they are read: a program of steps for each rank. Knows nothing of torch, files or message lengths."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

Buffer = Literal["i", "o", "s"]
"""The caller's input, the caller's output, or scratch."""


class PlanError(ValueError):
    """Why a plan cannot be used. The text says what is wrong and what to do."""


class Collective(enum.Enum):
    """The collectives that plans exist for, by their names in files."""

    ALLGATHER = "allgather"
    ALLREDUCE = "allreduce"
    REDUCE_SCATTER = "reducescatter"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    GATHER = "gather"
    SCATTER = "scatter"
    ALL_TO_ALL = "alltoall"

    @property
    def has_shares(self) -> bool:
        """Whether the message consists of a share for each rank, and chunks are counted within a share."""
        return self not in (Collective.ALLREDUCE, Collective.BROADCAST, Collective.REDUCE)

    @property
    def has_root(self) -> bool:
        """Whether one rank is the root."""
        return self in (Collective.BROADCAST, Collective.REDUCE, Collective.GATHER, Collective.SCATTER)

    @property
    def reduces(self) -> bool:
        """Whether contributions of ranks are combined."""
        return self in (Collective.ALLREDUCE, Collective.REDUCE_SCATTER, Collective.REDUCE)


@dataclass(frozen=True, slots=True)
class Span:
    """Adjacent chunks of a buffer."""

    buffer: Buffer
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Message:
    """What a rank sends to its peer, or receives from it."""

    peer: int
    span: Span


@dataclass(frozen=True, slots=True)
class Local:
    """Work within a rank: `target = source`, or `target = target + source`. Both spans have equal counts."""

    reduces: bool
    source: Span
    target: Span


@dataclass(frozen=True, slots=True)
class Step:
    """Messages that proceed together; once all are complete, the local work, in order."""

    sends: tuple[Message, ...]
    receives: tuple[Message, ...]
    locals: tuple[Local, ...]


@dataclass(frozen=True, slots=True)
class RankProgram:
    """What one rank does, and the number of chunks of its buffers."""

    input_chunks: int
    output_chunks: int
    scratch_chunks: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class PlanHead:
    """Everything about a plan but its steps."""

    name: str
    digest: str
    """SHA-256 of the file, in hexadecimal digits."""
    collective: Collective
    root: int | None
    rank_count: int
    chunk_count: int
    """Chunks of the whole message."""
    in_place: bool
    bytes_min: int
    bytes_max: int | None
    """Largest message in bytes, inclusive; `None` if there is no limit."""
    rank_map: tuple[str, ...] | None
    """`host:index` of each rank's device, if the plan is for certain devices."""

    @property
    def share_chunks(self) -> int:
        """Chunks of a share; of the message, where it has no shares."""
        return self.chunk_count // self.rank_count if self.collective.has_shares else self.chunk_count

    def fits(self, collective: Collective, root: int | None, size_bytes: int) -> bool:
        """Whether the plan is for this call on its number of ranks; `size_bytes` is the size of the whole message."""
        return (
            self.collective is collective
            and self.root == root
            and self.bytes_min <= size_bytes
            and (self.bytes_max is None or size_bytes <= self.bytes_max)
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as its file states it, not yet checked."""

    head: PlanHead
    programs: tuple[RankProgram, ...]
