"""Plans of moving traffic: which bytes of an all-to-all take which NICs. Knows nothing of torch, files or gRPC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from canopy_torch.plan import PlanError

RANKS_MAX = 1024
PARTS_MAX = 1 << 22
"""Most parts of a plan: four for each pair of the most ranks."""
BYTES_LIMIT = 1 << 60
"""All bytes of a plan are fewer."""

Matrix = Sequence[Sequence[int]]
"""Bytes from each rank to each other one, row by row."""
Columns = tuple[list[int], list[int], list[int], list[int], list[int]]

_NAMES = ("from", "to", "leaves", "enters", "bytes")


@dataclass(frozen=True, slots=True)
class MovingShape:
    """The network that a plan is for. Rank `r` is in box `r // box_size`, at the place `r % box_size`."""

    rank_count: int
    box_size: int
    has_rails: bool
    """Only NICs at the same place of each box are joined. Otherwise each NIC reaches all of other boxes."""

    def __post_init__(self) -> None:
        if not 1 <= self.rank_count <= RANKS_MAX:
            raise PlanError(f"ranks: {self.rank_count} is not between 1 and {RANKS_MAX}")
        if not 1 <= self.box_size <= self.rank_count or self.rank_count % self.box_size:
            raise PlanError(f"box_size: {self.box_size} does not divide {self.rank_count} ranks")

    def are_boxmates(self, one: int, other: int) -> bool:
        """Whether two ranks are in the same box."""
        return one // self.box_size == other // self.box_size


class Part(NamedTuple):
    """Bytes that take one way. Within a box, `leaves` is the sender and `enters` the receiver."""

    sender: int
    receiver: int
    leaves: int
    enters: int
    size: int
    """Bytes, or elements where a program counts in them."""


@dataclass(frozen=True, slots=True)
class MovingPlan:
    """Ways for all bytes of a matrix. Those that `make` and `direct` return are checked."""

    number: int
    """The caller's number of the matrix."""
    shape: MovingShape
    columns: Columns
    """Senders, receivers, where bytes leave, where they enter, and how many, by part."""
    seconds: str = "0/1"
    """Time of the busiest link, `num/den`."""
    seconds_bound: str = "0/1"
    """What no plan beats, `num/den`."""

    @classmethod
    def make(
        cls,
        number: int,
        shape: MovingShape,
        lists: Sequence[Sequence[int]],
        seconds: str = "0/1",
        seconds_bound: str = "0/1",
    ) -> MovingPlan:
        """A plan of the lists `from`, `to`, `leaves`, `enters` and `bytes`. Errors: `PlanError`. Cost: linear."""
        for name, values in zip(_NAMES, lists):
            if len(values) != len(lists[0]):
                raise PlanError(f"{name}: {len(values)} entries, where from has {len(lists[0])}")
        if len(lists[0]) > PARTS_MAX:
            raise PlanError(f"from: {len(lists[0])} parts are over the limit of {PARTS_MAX}")
        senders, receivers, leaves, enters, sizes = map(list, lists)
        columns = (senders, receivers, leaves, enters, sizes)
        _check_columns(shape, columns)
        return cls(number, shape, columns, seconds, seconds_bound)

    @classmethod
    def direct(cls, number: int, shape: MovingShape, matrix: Matrix) -> MovingPlan:
        """All bytes by the NICs of their senders, on rails into the receiver's box at the sender's place."""
        check_matrix(matrix, shape.rank_count)
        size = shape.box_size
        senders, receivers, leaves, enters, sizes = columns = _columns()
        for sender, row in enumerate(matrix):
            for receiver, count in enumerate(row):
                if count:
                    is_moved = shape.has_rails and not shape.are_boxmates(sender, receiver)
                    senders.append(sender)
                    receivers.append(receiver)
                    leaves.append(sender)
                    enters.append(receiver - receiver % size + sender % size if is_moved else receiver)
                    sizes.append(count)
        return cls(number, shape, columns)

    def __len__(self) -> int:
        return len(self.columns[0])

    def parts(self) -> Iterator[Part]:
        """The parts in order. Those of a pair take its bytes in order, the first byte first."""
        return map(Part._make, zip(*self.columns))

    def check_serves(self, matrix: Matrix) -> None:
        """Errors: `PlanError` if the plan moves other bytes than those of the matrix."""
        rank_count = self.shape.rank_count
        if len(matrix) != rank_count:
            raise PlanError(f"ranks: the plan is for {rank_count}, the matrix has {len(matrix)} rows")
        sums = [[0] * rank_count for _ in range(rank_count)]
        senders, receivers, _, _, sizes = self.columns
        for sender, receiver, size in zip(senders, receivers, sizes):
            sums[sender][receiver] += size
        for sender, (planned, asked) in enumerate(zip(sums, matrix)):
            if planned != list(asked):
                receiver = next(r for r, (one, other) in enumerate(zip(planned, asked)) if one != other)
                raise PlanError(
                    f"bytes: {planned[receiver]} go from rank {sender} to rank {receiver}, "
                    f"where the matrix has {asked[receiver]}"
                )

    def aligned(self, unit: int) -> MovingPlan:
        """The same plan with ends of parts moved down to multiples of `unit` bytes, by less than `unit` each.

        Parts of which nothing remains are left out. Errors: `PlanError` if a pair's bytes are not a multiple.
        """
        if not any(size % unit for size in self.columns[4]):
            return self
        rank_count = self.shape.rank_count
        ends: dict[int, int] = {}
        columns = _columns()
        for sender, receiver, leaves, enters, size in zip(*self.columns):
            pair = sender * rank_count + receiver
            start = ends.get(pair, 0)
            end = ends[pair] = start + size
            moved = end // unit * unit - start // unit * unit
            if moved:
                for column, value in zip(columns, (sender, receiver, leaves, enters, moved)):
                    column.append(value)
        for pair, end in ends.items():
            if end % unit:
                sender, receiver = divmod(pair, rank_count)
                raise PlanError(f"bytes: {end} from rank {sender} to rank {receiver} are not a multiple of {unit}")
        return replace(self, columns=columns)


def check_matrix(matrix: Matrix, rank_count: int) -> None:
    """Errors: `PlanError` unless there are bytes for all pairs, none from a rank to itself."""
    if len(matrix) != rank_count or any(len(row) != rank_count for row in matrix):
        raise PlanError(f"the matrix does not have {rank_count} rows of {rank_count} entries")
    for rank, row in enumerate(matrix):
        if min(row) < 0 or row[rank]:
            raise PlanError(f"row {rank} of the matrix has negative bytes, or bytes from the rank to itself")
    if sum(map(sum, matrix)) >= BYTES_LIMIT:
        raise PlanError(f"the bytes of the matrix are not below {BYTES_LIMIT}")


def _columns() -> Columns:
    return [], [], [], [], []


def _check_columns(shape: MovingShape, columns: Columns) -> None:
    """Makes parts within a box leave and enter at their ends: what a plan says of NICs has no meaning there."""
    senders, receivers, leaves, enters, sizes = columns
    size = shape.box_size
    # Whole columns first, which is fast.
    for name, column in (("from", senders), ("to", receivers)):
        if column and not 0 <= min(column) <= max(column) < shape.rank_count:
            index = next(i for i, rank in enumerate(column) if not 0 <= rank < shape.rank_count)
            raise PlanError(f"{name}[{index}]: {column[index]} is not a rank of {shape.rank_count}")
    if sizes and min(sizes) < 1:
        index = next(i for i, count in enumerate(sizes) if count < 1)
        raise PlanError(f"bytes[{index}]: {sizes[index]} is not at least 1")
    if sum(sizes) >= BYTES_LIMIT:
        raise PlanError(f"bytes: the sum is not below {BYTES_LIMIT}")
    boxes = [rank // size for rank in range(shape.rank_count)]
    for index, (sender, receiver, leave, enter) in enumerate(zip(senders, receivers, leaves, enters)):
        box, other = boxes[sender], boxes[receiver]
        if box == other:
            if sender == receiver:
                raise PlanError(f"to[{index}]: {receiver} is the sender itself")
            leaves[index], enters[index] = sender, receiver
        elif leave // size != box:
            raise PlanError(f"leaves[{index}]: {leave} is not in the box of rank {sender}")
        elif enter // size != other:
            raise PlanError(f"enters[{index}]: {enter} is not in the box of rank {receiver}")
        elif shape.has_rails and leave % size != enter % size:
            raise PlanError(f"enters[{index}]: {enter} is not on the rail of rank {leave}")
