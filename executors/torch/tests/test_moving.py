"""Moving traffic: readers, programs of all ranks, exchanges on tensors, and steps with and without plans."""

import contextlib
import json
import os
import random
import tempfile
import time
import unittest
from typing import Any

import canopy_torch
import moving_plans
import ranks
import torch
import torch.distributed as dist
from canopy_torch.moving import MovingExchange, all_to_all_v
from canopy_torch.moving_plan import BYTES_LIMIT, PARTS_MAX, MovingPlan, MovingShape, Part
from canopy_torch.moving_program import own_parts
from canopy_torch.moving_reader import of_messages, read_line
from canopy_torch.moving_source import ServerPlans
from canopy_torch.moving_traffic import MovingTraffic, pack, unpack_own
from canopy_torch.plan import PlanError

SHAPES = [MovingShape(8, size, has_rails) for size in (4, 2, 1) for has_rails in (True, False)]
GOOD: dict[str, Any] = {
    "format": "canopy-moving",
    "version": 1,
    "number": 7,
    "ranks": 4,
    "box_size": 2,
    "fabric": "rails",
    "seconds": "3/2",
    "seconds_bound": "1/1",
    "from": [0, 0, 1, 2],
    "to": [1, 2, 2, 3],
    "leaves": [9, 1, 0, 0],
    "enters": [9, 3, 2, 0],
    "bytes": [5, 8, 1, 2],
}


def line(**changes: Any) -> bytes:
    members = {name: value for name, value in (GOOD | changes).items() if value is not None}
    return json.dumps(members).encode() + b"\n"


class Message:
    """What is read of a message of protobuf: times are fractions, which are messages."""

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, Message(exact=value) if name.startswith("seconds") else value)


class Reader(unittest.TestCase):
    def test_a_line(self) -> None:
        ways = (Part(0, 1, 0, 1, 5), Part(0, 2, 1, 3, 8), Part(1, 2, 0, 2, 1), Part(2, 3, 2, 3, 2))
        for text in (line(), json.dumps(GOOD, separators=(",", ":"), sort_keys=True).encode()):
            plan = read_line(text, "x")
            self.assertEqual((plan.number, plan.shape), (7, MovingShape(4, 2, True)))
            # Within a box, what the plan says of NICs has no meaning.
            self.assertEqual(tuple(plan.parts()), ways)
            self.assertEqual((plan.seconds, plan.seconds_bound), ("3/2", "1/1"))
        empty = line(**{name: [] for name in ("from", "to", "leaves", "enters", "bytes")})
        self.assertEqual(len(read_line(empty, "x")), 0)

    def test_messages(self) -> None:
        tiers = Message(ranks=4, box_size=2, rails=True)
        self.assertEqual(of_messages(Message(**GOOD), tiers), read_line(line(), "x"))
        for changes, why in (
            ({"bytes": [0, 1, 1, 1]}, "bytes.0.: 0 is"),
            ({"seconds": ""}, "seconds: '' is"),
            ({"to": [1]}, "to: 1 entries"),
        ):
            with self.assertRaisesRegex(PlanError, "^" + why):
                of_messages(Message(**(GOOD | changes)), tiers)
        self.assertRaises(PlanError, of_messages, Message(**GOOD), Message(ranks=0, box_size=0, rails=True))

    def test_hostile_lines(self) -> None:
        for changes, why in (
            ({"format": "canopy"}, "format: 'canopy'"),
            ({"version": 2}, "version: 2 is not 1"),
            ({"version": None}, "version: missing"),
            ({"number": 1 << 64}, "number: not below"),
            ({"number": "7"}, "number: not a whole number"),
            ({"number": -1}, "no member that it may have at character"),
            ({"ranks": 1025}, "ranks: 1025 is not between"),
            ({"ranks": 0}, "ranks: 0 is not between"),
            ({"box_size": 0}, "box_size: 0 does not divide"),
            ({"box_size": 3}, "box_size: 3 does not divide"),
            ({"fabric": "ring"}, "fabric: 'ring'"),
            ({"fabric": 1}, "fabric: not a text"),
            ({"seconds": "1.5"}, "seconds: '1.5' is not a fraction"),
            ({"seconds": "1/0"}, "seconds: '1/0' is not a fraction"),
            ({"seconds": "1" * 300}, "seconds: "),
            ({"seconds_bound": "2/1"}, "seconds_bound: greater than seconds"),
            ({"from": [0, 0, 1]}, "to: 4 entries, where from has 3"),
            ({"from": [0, 0, 1, 4]}, "from.3.: 4 is not a rank"),
            ({"from": [0, 0, 1, -1]}, "no member that it may have"),
            ({"from": [0, 0, 1, 1.0]}, "no member that it may have"),
            ({"from": [0, 0, 1, [1]]}, "no member that it may have"),
            ({"from": None}, "from: missing"),
            ({"from": "0"}, "from: not a list"),
            ({"from": [0, 0, 1, 10**20]}, "from: a number of 20 digits"),
            ({"to": [1, 2, 2, 4]}, "to.3.: 4 is not a rank"),
            ({"to": [1, 2, 2, 2]}, "to.3.: 2 is the sender itself"),
            ({"leaves": [0, 2, 0, 0]}, "leaves.1.: 2 is not in the box of rank 0"),
            ({"enters": [0, 1, 2, 0]}, "enters.1.: 1 is not in the box of rank 2"),
            ({"enters": [0, 2, 2, 0]}, "enters.1.: 2 is not on the rail of rank 1"),
            ({"bytes": [5, 0, 1, 2]}, "bytes.1.: 0 is not at least 1"),
            ({"bytes": [5, BYTES_LIMIT - 5, 1, 2]}, "bytes: the sum is not below"),
            ({"extra": 1}, "extra: not part of a plan"),
        ):
            with self.subTest(why), self.assertRaisesRegex(PlanError, "^x: .*" + why):
                read_line(line(**changes), "x")

    def test_hostile_texts(self) -> None:
        good = line().strip()
        many = b"[" + b"0," * PARTS_MAX + b"0]"
        for text in (
            b"",
            b"{",
            b"{}",
            b"[]",
            b"[" * 1_000_000,
            b'{"from":' * 200_000,
            b" " * 1_000_000,
            b'{"from":[' + b" " * 1_000_000,
            b'{"from":[1,,2]}',
            b'{"from":[1 2]}',
            b'{"from":[01]}',
            b'{"from":[' + b"9" * 3_000_000 + b"]}",
            b'{"number":' + b"9" * 3_000_000 + b"}",
            b'{"seconds":"' + b"9" * 3_000_000 + b'"}',
            b'{"from":' + many + b"}",
            b"{" + b'"number":1,' * 200_000,
            good[:-1],
            good + good,
            good[:-1] + b',"number":7}',
            good[:-1] + b',"seconds":"\\u0031/1"}',
            "{“from”:1}".encode(),
            b"\xff" + good,
            good.replace(b":", b"\0"),
        ):
            start = time.monotonic()
            with self.subTest(text[:60]), self.assertRaises(PlanError) as caught:
                read_line(text, "x")
            self.assertLess(len(str(caught.exception)), 300)
            self.assertLess(time.monotonic() - start, 5, text[:60])

    def test_damaged_lines(self) -> None:
        """Whatever is read is a plan that can run."""
        good, read = line(), 0
        for seed in range(3000):
            random_ = random.Random(seed)
            text = bytearray(good)
            for _ in range(random_.choice([1, 1, 2])):
                text[random_.randrange(len(text))] = random_.choice(b'0123456789,[]{}":/ ax')
            with contextlib.suppress(PlanError):
                plan = read_line(bytes(text), "x")
                read += 1
                rows = [[0] * plan.shape.rank_count for _ in range(plan.shape.rank_count)]
                for part in plan.parts():
                    rows[part.sender][part.receiver] += part.size % 50
                small = moving_plans.of_parts(plan.shape, [part._replace(size=part.size % 50) for part in plan.parts()])
                kept = [0] * plan.shape.rank_count
                outputs = moving_plans.emulate(small, rows, kept, 1)
                for rank, output in enumerate(outputs):
                    self.assertEqual(output, moving_plans.expected(rank, rows, kept))
        self.assertGreater(read, 100)


class Programs(unittest.TestCase):
    def test_all_ranks_in_one_process(self) -> None:
        runs = 0
        for seed in range(400):
            random_ = random.Random(seed)
            rank_count, size = random_.choice([(8, 4), (8, 2), (8, 1), (8, 8), (12, 3), (1, 1)])
            shape = MovingShape(rank_count, size, random_.random() < 0.5)
            rows = moving_plans.matrix(random_, rank_count, random_.choice([1, 9, 40]))
            kept = [random_.randrange(4) for _ in range(rank_count)]
            direct = MovingPlan.direct(1, shape, rows)
            for plan in (moving_plans.plan(random_, shape, rows), direct):
                plan.check_serves(rows)
                outputs = moving_plans.emulate(plan, rows, kept, random_.choice([1, 2, 3, 7]))
                for rank, output in enumerate(outputs):
                    self.assertEqual(output, moving_plans.expected(rank, rows, kept), f"seed {seed}, rank {rank}")
                runs += 1
        print(f"{runs} runs")

    def test_another_matrix(self) -> None:
        random_ = random.Random(1)
        rows = moving_plans.matrix(random_, 8, 9)
        plan = moving_plans.plan(random_, SHAPES[0], rows)
        changed = [list(row) for row in rows]
        changed[2][5] += 1
        why = f"{rows[2][5]} go from rank 2 to rank 5, where the matrix has {changed[2][5]}"
        with self.assertRaisesRegex(PlanError, why):
            plan.check_serves(changed)
        self.assertRaises(PlanError, plan.check_serves, rows[:7])

    def test_parts_of_whole_elements(self) -> None:
        for seed in range(100):
            random_ = random.Random(seed)
            rows = moving_plans.matrix(random_, 8, 30, unit=4)
            plan = moving_plans.plan(random_, SHAPES[0], rows)
            aligned = plan.aligned(4)
            aligned.check_serves(rows)
            self.assertTrue(all(part.size % 4 == 0 < part.size for part in aligned.parts()))
            for rank in range(8):
                loads = [sum(part.size for part in one.parts() if part.leaves == rank) for one in (plan, aligned)]
                self.assertLess(abs(loads[0] - loads[1]), 4 * max(1, len(plan)))
        with self.assertRaisesRegex(PlanError, "bytes: 7 from rank 0 to rank 1 are not a multiple of 2"):
            moving_plans.of_parts(SHAPES[0], [Part(0, 1, 0, 1, 3), Part(0, 1, 0, 1, 4)]).aligned(2)

    def test_packed_parts(self) -> None:
        random_ = random.Random(3)
        shape = MovingShape(1024, 8, False)
        parts = [
            Part(*(random_.randrange(1024) for _ in range(4)), random_.randrange(1, BYTES_LIMIT)) for _ in range(5000)
        ]
        plan = moving_plans.of_parts(shape, parts)
        packed = pack(plan)
        for rank in (0, 1, 511, 1023):
            self.assertEqual(unpack_own(packed, rank), own_parts(plan, rank))
        self.assertEqual(unpack_own(pack(moving_plans.of_parts(shape, [])), 0), [])


def values(rank: int, kept: int, row: list[int], dtype: torch.dtype, seed: int) -> torch.Tensor:
    """The input of a rank: elements that depend on both ends."""
    row = [kept if to == rank else count for to, count in enumerate(row)]
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randint(0, 256, (sum(row),), generator=generator).to(dtype)


def by_sends(rank: int, rows: list[list[int]], kept: list[int], dtype: torch.dtype, seed: int) -> torch.Tensor:
    """The output of a rank: every rank's input is known here."""
    slices = []
    for sender, row in enumerate(rows):
        input = values(sender, kept[sender], row, dtype, seed)
        row = [kept[sender] if to == sender else count for to, count in enumerate(row)]
        slices.append(input.narrow(0, sum(row[:rank]), row[rank]))
    return torch.cat(slices)


def exchanges(rank: int, rank_count: int) -> None:
    checks = 0
    for seed, shape in enumerate(SHAPES * 4):
        for dtype, pieces in ((torch.float32, 1), (torch.uint8, 3), (torch.bfloat16, 2)):
            random_ = random.Random(f"{seed} {pieces}")
            unit = torch.empty(0, dtype=dtype).element_size()
            rows = moving_plans.matrix(random_, rank_count, random_.choice([2, 50, 3000]))
            kept = [random_.randrange(30) for _ in range(rank_count)]
            in_bytes = [[count * unit for count in row] for row in rows]
            plan = moving_plans.plan(random_, shape, in_bytes, unit=unit)
            output = by_sends(rank, rows, kept, dtype, seed).zero_()
            all_to_all_v(output, values(rank, kept[rank], rows[rank], dtype, seed), plan, pieces=pieces)
            assert torch.equal(output, by_sends(rank, rows, kept, dtype, seed)), (seed, shape, dtype)
            checks += 1
    # Made once for each shape, whoever asks.
    assert MovingExchange.of(SHAPES[0]) is MovingExchange.of(MovingShape(8, 4, True))
    if rank == 0:
        print(f"{checks} checks")


def refusals(rank: int, rank_count: int) -> None:
    shape = SHAPES[0]
    rows = [[0 if s == t else 8 for t in range(rank_count)] for s in range(rank_count)]
    plan = MovingPlan.direct(1, shape, rows)
    exchange = MovingExchange.of(shape)
    whole = torch.zeros(7 * 8, dtype=torch.uint8)
    *parts, last = plan.parts()
    cut = moving_plans.of_parts(shape, [*parts, last._replace(size=3), last._replace(size=5)])
    for attempt, why in (
        (lambda: exchange.all_to_all_v(whole.new_zeros(56), whole[:55], plan), "sends 1 elements more than the input"),
        (lambda: exchange.all_to_all_v(whole.new_zeros(55), whole, plan), "56 elements arrive"),
        (lambda: exchange.all_to_all_v(whole.view(7, 8), whole, plan), "output is not one-dimensional"),
        (lambda: exchange.all_to_all_v(whole, torch.zeros(112, dtype=torch.uint8)[::2], plan), "input is not one-"),
        (lambda: exchange.all_to_all_v(whole.float(), whole, plan), "differ in type"),
        (lambda: exchange.all_to_all_v(whole.clone(), whole, plan, pieces=0), "pieces is 0"),
        (lambda: exchange.all_to_all_v(whole.clone(), whole, MovingPlan.direct(1, SHAPES[1], rows)), "the plan is for"),
        (lambda: MovingExchange(MovingShape(4, 2, True)), "the plan is for 4, the group has 8"),
    ):
        try:
            attempt()
        except ValueError as error:
            assert why in str(error), error
        else:
            raise AssertionError(why)
    if rank in (6, 7):
        try:
            exchange.all_to_all_v(torch.zeros(14), torch.zeros(14), cut)
        except PlanError as error:
            assert "bytes: 3 from rank 7 to rank 6 are not whole elements of 4 bytes; use plan.aligned(4)" in str(error)
        else:
            raise AssertionError("parts of elements")


def part_of_the_ranks(rank: int, rank_count: int) -> None:
    """The ranks of a group count as 0, 1, 2, …"""
    members = [1, 3, 4, 6]
    group = dist.new_group(members)
    if rank not in members:
        return
    own = members.index(rank)
    for shape in (MovingShape(4, 2, True), MovingShape(4, 2, False)):
        rows = moving_plans.matrix(random.Random(5), 4, 90)
        plan = moving_plans.plan(random.Random(6), shape, rows)
        output = by_sends(own, rows, [0] * 4, torch.uint8, 1).zero_()
        all_to_all_v(output, values(own, 0, rows[own], torch.uint8, 1), plan, group=group, pieces=2)
        assert torch.equal(output, by_sends(own, rows, [0] * 4, torch.uint8, 1))


def walk(traffic: MovingTraffic, rank: int, rank_count: int, steps: range, width: int = 3) -> None:
    """Steps whose traffic changes, with rows of a few elements."""
    for step in steps:
        random_ = random.Random(step)
        rows = moving_plans.matrix(random_, rank_count, random_.choice([1, 40]))
        kept = [random_.randrange(3) for _ in range(rank_count)]
        wide, kept_wide = [[count * width for count in row] for row in rows], [count * width for count in kept]
        splits = [kept[rank] if to == rank else count for to, count in enumerate(rows[rank])]
        input = values(rank, kept_wide[rank], wide[rank], torch.float32, step).view(-1, width)
        output = traffic.step(input, splits)
        expected = by_sends(rank, wide, kept_wide, torch.float32, step).view(-1, width)
        assert torch.equal(output, expected), step


def counts(name: str) -> dict[str | None, int]:
    """Calls in the report, by why they ran without a plan."""
    report = next(report for report in canopy_torch.report() if report["group"] == name)
    return {call["why"]: call["calls"] for call in report["calls"]}


def steps(rank: int, rank_count: int) -> None:
    shapes = iter([*SHAPES, *SHAPES] * 2)
    asked = 0

    def source(rows: moving_plans.Rows) -> MovingPlan:
        nonlocal asked
        asked += 1
        # Of bytes: parts may end within elements.
        return moving_plans.plan(random.Random(asked), next(shapes), rows)

    traffic = MovingTraffic(source if rank == 0 else None, wait_s=30, pieces=2, name="steps")
    walk(traffic, rank, rank_count, range(12))
    empty = traffic.step(torch.empty(0, 3), [0] * rank_count)
    assert empty.shape == (0, 3)
    traffic.close()
    assert counts("steps") == {None: 12}, counts("steps")


def falls_back(rank: int, rank_count: int) -> None:
    failed, late, other = "the source of plans failed", "no plan came in time", "the plan is not for this traffic"
    released = 0.0

    def source(rows: moving_plans.Rows) -> MovingPlan:
        if step == 1:
            raise OSError("gone")
        if step == 2:
            time.sleep(2)
        if step == 3:
            return MovingPlan.direct(1, SHAPES[0], [[0] * 8 for _ in range(8)])
        if step == 4:
            return MovingPlan.direct(1, MovingShape(4, 2, True), [row[:4] for row in rows[:4]])
        if step == 5:
            return None  # type: ignore[return-value]
        return MovingPlan.direct(1, SHAPES[0], rows)

    traffic = MovingTraffic(source if rank == 0 else None, wait_s=1, name="falls back")
    for step in range(7):
        start = time.monotonic()
        walk(traffic, rank, rank_count, range(20 + step, 21 + step))
        released = max(released, time.monotonic() - start)
        if step == 2:
            time.sleep(1.5)
    assert released < 2, released
    assert counts("falls back") == {None: 2, failed: 1, late: 1, other: 3}, counts("falls back")
    # Without a source at all.
    walk(MovingTraffic(None, name="none"), rank, rank_count, range(30, 32))
    assert counts("none") == {failed: 2}
    traffic.close()


def asks_a_server(rank: int, rank_count: int) -> None:
    """Rank 0 is a server, too: one that refuses a matrix, ends a stream, and is late."""
    shape = SHAPES[0]
    source = server = None
    streams, failed, late = 0, "the source of plans failed", "no plan came in time"
    with tempfile.TemporaryDirectory() as folder:
        if rank == 0:
            # Only now: no process forks with gRPC at work.
            from concurrent.futures import ThreadPoolExecutor

            import grpc
            from canopy import v1
            from canopy.v1 import planner_pb2_grpc

            class Planner(planner_pb2_grpc.PlannerServicer):  # type: ignore[misc]
                def PlanMoving(self, requests: Any, context: Any) -> Any:
                    nonlocal streams
                    streams += 1
                    assert next(requests).network.topology.expression == "boxes"
                    yield v1.PlanMovingEvent(tiers=v1.MovingTiers(ranks=8, box_size=4, rails=True))
                    for request in requests:
                        number, count = request.matrix.number, request.matrix.bytes
                        rows = [list(count[8 * sender : 8 * sender + 8]) for sender in range(8)]
                        if step == 2:
                            error = v1.ErrorStatus(message="not this one")
                            yield v1.PlanMovingEvent(refusal=v1.MovingRefusal(number=number, error=error))
                            continue
                        if step == 3:
                            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
                        if step == 5:
                            time.sleep(1.5)
                        columns = moving_plans.plan(random.Random(step), shape, rows).columns
                        lists = dict(zip(("from", "to", "leaves", "enters", "bytes"), columns))
                        half = v1.Fraction(exact="1/2", value=0.5)
                        made = v1.MovingPlan(number=number, seconds=half, seconds_bound=half, **lists)
                        yield v1.PlanMovingEvent(plan=made)

            server = grpc.server(ThreadPoolExecutor(4))
            planner_pb2_grpc.add_PlannerServicer_to_server(Planner(), server)
            server.add_insecure_port(f"unix:{folder}/socket")
            server.start()
            source = ServerPlans(f"unix:{folder}/socket", "boxes")
        traffic = MovingTraffic(source, wait_s=1, name="server")
        for step in range(8):
            walk(traffic, rank, rank_count, range(50 + step, 51 + step))
            if step == 5:
                time.sleep(1)
        traffic.close()
        if rank == 0 and server is not None:
            server.stop(None).wait(10)
            assert streams == 2, streams
    assert counts("server") == {None: 5, failed: 2, late: 1}, counts("server")


def wrong_arguments(rank: int, rank_count: int) -> None:
    traffic = MovingTraffic(lambda rows: MovingPlan.direct(1, SHAPES[0], rows))
    for input, splits, why in (
        (torch.zeros(8), [1] * 8 if rank != 3 else [1] * 7, "rank 3 needs"),
        (torch.zeros(8), [1] * 8 if rank != 2 else [2, 0, *[1] * 5, 2], "rank 2 needs"),
        (torch.zeros(8), [1] * 8 if rank != 2 else [2, -1, *[1] * 6, 1][:8], "rank 2 needs"),
        (torch.zeros(()) if rank == 1 else torch.zeros(8), [1] * 8, "rank 1 needs"),
        (torch.zeros(8, 3 if rank == 1 else 2), [1] * 8, "rows of rank 1 have 12 bytes, those of rank 0 have 8"),
    ):
        try:
            traffic.step(input, splits)
        except ValueError as error:
            assert why in str(error), error
        else:
            raise AssertionError(why)
    # All ranks had the error, and go on.
    walk(traffic, rank, rank_count, range(40, 42))


def a_rank_is_late(rank: int, rank_count: int) -> None:
    traffic = MovingTraffic(lambda rows: MovingPlan.direct(1, SHAPES[0], rows))
    walk(traffic, rank, rank_count, range(60, 62))
    if rank == 2:
        time.sleep(60)
    start = time.monotonic()
    try:
        walk(traffic, rank, rank_count, range(62, 63))
    except RuntimeError:
        assert time.monotonic() - start < 12
        # Without the end of the group, for which all ranks would have to come.
        os._exit(0)
    raise AssertionError("no error")


class Ranks(unittest.TestCase):
    def run_ranks(self, body: ranks.Body, backend: str = "gloo", **environment: str) -> None:
        said = ranks.check(ranks.run(8, body, backend=backend, environment=environment))
        for told in said.splitlines():
            if told.endswith("checks"):
                print(told)

    def test_exchanges(self) -> None:
        self.run_ranks(exchanges)

    def test_on_the_backend_of_plans(self) -> None:
        self.run_ranks(steps, "canopy", CANOPY_PLAN_DIR="/none")

    def test_refusals(self) -> None:
        self.run_ranks(refusals)

    def test_part_of_the_ranks(self) -> None:
        self.run_ranks(part_of_the_ranks)

    def test_steps(self) -> None:
        self.run_ranks(steps)

    def test_steps_without_plans(self) -> None:
        self.run_ranks(falls_back)

    def test_steps_with_a_server(self) -> None:
        self.run_ranks(asks_a_server)

    def test_a_late_rank(self) -> None:
        for backend in ("gloo", "canopy"):
            ended = ranks.run(8, a_rank_is_late, backend=backend, timeout_s=6, deadline_s=60, spare=(2,))
            for rank, one in enumerate(ended):
                if rank != 2:
                    self.assertEqual(one.status, 0, f"rank {rank}: {one.text[-3000:]}")

    def test_wrong_arguments(self) -> None:
        self.run_ranks(wrong_arguments)


if __name__ == "__main__":
    unittest.main()
