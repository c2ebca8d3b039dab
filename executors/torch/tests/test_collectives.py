"""Every collective, type, operator and length beside Gloo: the bytes must be equal."""

import itertools
import os
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

import canopy_torch
import ranks
import torch
import torch.distributed as dist

PLANS = Path(os.environ["CANOPY_TEST_PLANS"])
FOLDERS = {2: "ring2", 4: "ring4", 8: "torus8"}
LENGTHS = [0, 1, 2, 3, 7, 8, 13, 64, 127, 1009, 4096]
LONG = [65537, 250007]
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8]
Op = dist.ReduceOp


class Comparison:
    """Calls of the default group beside those of a group of Gloo."""

    def __init__(self, rank: int, rank_count: int) -> None:
        self.rank, self.rank_count = rank, rank_count
        self.gloo = dist.new_group(backend="gloo")
        self.checks = 0

    def data(self, length: int, dtype: torch.dtype, seed: int, low: int = -8, high: int = 9) -> torch.Tensor:
        """Whole numbers, small enough that every sum is exact in every type."""
        generator = torch.Generator().manual_seed(seed * 1000 + self.rank)
        if dtype is torch.uint8:
            low, high = 0, 9
        return torch.randint(low, high, (length,), generator=generator).to(dtype)

    def same(self, what: str, found: torch.Tensor, wanted: torch.Tensor) -> None:
        self.checks += 1
        equal = found.shape == wanted.shape and found.dtype == wanted.dtype
        if equal and found.numel():
            equal = torch.equal(found.contiguous().view(torch.uint8), wanted.contiguous().view(torch.uint8))
        if not equal:
            raise AssertionError(
                f"rank {self.rank}, {what}: {found.flatten()[:8]} where Gloo has {wanted.flatten()[:8]}"
            )

    # ---- the collectives

    def all(self, length: int, dtype: torch.dtype) -> None:
        for part in (self.reductions, self.one_to_all, self.gathers, self.scatters, self.reduce_scatters):
            part(length, dtype)

    def operators(self, dtype: torch.dtype) -> Iterator[Op]:
        yield from (Op.SUM, Op.MAX, Op.MIN)
        if not dtype.is_floating_point:
            yield from (Op.BXOR, Op.BOR, Op.BAND)

    def reductions(self, length: int, dtype: torch.dtype) -> None:
        what = f"{dtype} × {length}"
        for op in self.operators(dtype):
            a = self.data(length, dtype, 1)
            b = a.clone()
            dist.all_reduce(a, op)
            # Gloo does not know bit operators for all types of integers.
            wide = b.long() if op in (Op.BXOR, Op.BOR, Op.BAND) else b
            dist.all_reduce(wide, op, group=self.gloo)
            self.same(f"all_reduce {op} of {what}", a, wide.to(dtype))
        a = self.data(length, dtype, 2, 1, 3)
        b = a.clone()
        dist.all_reduce(a, Op.PRODUCT)
        dist.all_reduce(b, Op.PRODUCT, group=self.gloo)
        self.same(f"all_reduce PRODUCT of {what}", a, b)
        for root in (0, self.rank_count - 1):
            a = self.data(length, dtype, 4)
            b, kept = a.clone(), a.clone()
            dist.reduce(a, root)
            dist.reduce(b, root, group=self.gloo)
            at_root = self.rank == root
            self.same(f"reduce to {root} of {what}", a, b if at_root else (kept if root == 0 else a))

    def one_to_all(self, length: int, dtype: torch.dtype) -> None:
        for root in (0, self.rank_count - 1):
            a = self.data(length, dtype, 3)
            b = a.clone()
            dist.broadcast(a, root)
            dist.broadcast(b, root, group=self.gloo)
            self.same(f"broadcast from {root} of {dtype} × {length}", a, b)

    def gathers(self, length: int, dtype: torch.dtype) -> None:
        n, what = self.rank_count, f"{dtype} × {length}"
        given = self.data(length, dtype, 5)
        a, b = torch.full((length * n,), 99).to(dtype), torch.full((length * n,), 98).to(dtype)
        dist.all_gather_into_tensor(a, given)
        dist.all_gather_into_tensor(b, given, group=self.gloo)
        self.same(f"all_gather_into_tensor of {what}", a, b)
        own = torch.full((length * n,), 97).to(dtype)
        mine = own[self.rank * length : (self.rank + 1) * length]
        mine.copy_(given)
        dist.all_gather_into_tensor(own, mine)
        self.same(f"all_gather_into_tensor in place of {what}", own, b)
        parts = [torch.zeros(length, dtype=dtype) for _ in range(n)]
        dist.all_gather(parts, given)
        self.same(f"all_gather of {what}", torch.cat(parts), b)
        here = [torch.zeros(length, dtype=dtype) for _ in range(n)] if self.rank == 0 else None
        dist.gather(given, here, dst=0)
        if here is not None:
            self.same(f"gather of {what}", torch.cat(here), b)

    def scatters(self, length: int, dtype: torch.dtype) -> None:
        n, what = self.rank_count, f"{dtype} × {length}"
        parts = [self.data(length, dtype, 20 + q) for q in range(n)] if self.rank == 0 else None
        a, b = torch.zeros(length, dtype=dtype), torch.ones(length, dtype=dtype)
        dist.scatter(a, parts, src=0)
        dist.scatter(b, parts, src=0, group=self.gloo)
        self.same(f"scatter of {what}", a, b)
        given = self.data(length * n, dtype, 7)
        a, b = torch.zeros(length * n, dtype=dtype), torch.ones(length * n, dtype=dtype)
        dist.all_to_all_single(a, given)
        dist.all_to_all_single(b, given, group=self.gloo)
        self.same(f"all_to_all_single of {what}", a, b)

    def reduce_scatters(self, length: int, dtype: torch.dtype) -> None:
        n, what = self.rank_count, f"{dtype} × {length}"
        given = self.data(length * n, dtype, 6)
        kept, summed = given.clone(), given.clone()
        dist.all_reduce(summed, group=self.gloo)
        wanted = summed[self.rank * length : (self.rank + 1) * length]
        a = torch.full((length,), 99).to(dtype)
        dist.reduce_scatter_tensor(a, given)
        self.same(f"reduce_scatter_tensor of {what}", a, wanted)
        self.same(f"input of reduce_scatter_tensor of {what}", given, kept)
        a = torch.zeros(length, dtype=dtype)
        dist.reduce_scatter(a, [given[q * length : (q + 1) * length] for q in range(n)])
        self.same(f"reduce_scatter of {what}", a, wanted)
        mine = given[self.rank * length : (self.rank + 1) * length]
        dist.reduce_scatter_tensor(mine, given)
        self.same(f"reduce_scatter_tensor in place of {what}", mine, wanted)


def exact(rank: int, rank_count: int) -> None:
    compared = Comparison(rank, rank_count)
    for length, dtype in itertools.product(LENGTHS, TYPES):
        compared.all(length, dtype)
    for length in LONG:
        compared.all(length, torch.float32)
    ran = {
        call["collective"]: call["why"]
        for group in canopy_torch.report()
        for call in group["calls"]
        if call["why"] is None
    }
    assert len(ran) == 8, f"not all collectives ran on plans: {canopy_torch.report()}"
    if rank == 0:
        print(f"{compared.checks} checks on {rank_count} ranks")


def forms(rank: int, rank_count: int) -> None:
    """What is not a plain call on plain memory."""
    compared = Comparison(rank, rank_count)
    strided(compared)
    averages(compared)
    in_flight(compared)
    coalesced(compared)
    others(compared)
    crossed_groups(compared)


def strided(compared: Comparison) -> None:
    n, rank = compared.rank_count, compared.rank
    a = torch.arange(30.0).view(5, 6).t() + rank
    b = a.contiguous()
    dist.all_reduce(a)
    dist.all_reduce(b, group=compared.gloo)
    compared.same("all_reduce of a transposed matrix", a.contiguous(), b)
    a = (torch.arange(24.0).view(4, 6) * (rank + 1))[:, ::2]
    b = a.contiguous()
    dist.broadcast(a, 0)
    dist.broadcast(b, 0, group=compared.gloo)
    compared.same("broadcast of every second column", a.contiguous(), b)
    a, b = torch.zeros(2 * n, 3).t(), torch.zeros(3, 2 * n)
    given = (torch.arange(6.0) + rank).view(3, 2)
    dist.all_gather_into_tensor(b.view(-1), given.reshape(-1))
    parts = [torch.zeros(2, 3).t() for _ in range(n)]
    dist.all_gather(parts, given)
    compared.same("all_gather into strided parts", torch.cat([part.reshape(-1) for part in parts]), b.reshape(-1))


def averages(compared: Comparison) -> None:
    n, rank = compared.rank_count, compared.rank
    a = compared.data(1000, torch.float32, 9)
    b = a.clone()
    dist.all_reduce(a, Op.AVG)
    dist.all_reduce(b, group=compared.gloo)
    compared.same("all_reduce AVG", a, b / n)
    given = compared.data(10 * n, torch.float64, 10)
    summed, out = given.clone(), torch.zeros(10, dtype=torch.float64)
    dist.reduce_scatter_tensor(out, given, Op.AVG)
    dist.all_reduce(summed, group=compared.gloo)
    compared.same("reduce_scatter_tensor AVG", out, summed[rank * 10 : (rank + 1) * 10] / n)


def in_flight(compared: Comparison) -> None:
    """Many at once, waited for in another order; and the futures that hooks use."""
    works, found, wanted = [], [], []
    for q in range(20):
        a = compared.data(1000 + q, torch.float32, 30 + q)
        b = a.clone()
        dist.all_reduce(b, group=compared.gloo)
        found.append(a)
        wanted.append(b)
        works.append(dist.all_reduce(a, async_op=True))
    for work in reversed(works):
        work.wait()
    for q, (a, b) in enumerate(zip(found, wanted)):
        compared.same(f"asynchronous all_reduce {q}", a, b)
    a = torch.ones(77)
    value = dist.all_reduce(a, async_op=True).get_future().then(lambda f: f.value()[0] * 2).wait()
    compared.same("the future of an all_reduce", value, torch.full((77,), 2.0 * compared.rank_count))


def coalesced(compared: Comparison) -> None:
    found = [compared.data(50 + q, torch.float32, 70 + q) for q in range(4)]
    wanted = [x.clone() for x in found]
    with dist._coalescing_manager():
        for x in found:
            dist.all_reduce(x)
    for y in wanted:
        dist.all_reduce(y, group=compared.gloo)
    for x, y in zip(found, wanted):
        compared.same("coalesced all_reduce", x, y)


def others(compared: Comparison) -> None:
    """What has no plan: objects, barriers, messages of the user's own, booleans, uneven splits."""
    n, rank = compared.rank_count, compared.rank
    objects = [None] * n
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": q} for q in range(n)], objects
    dist.barrier()
    a, b = torch.full((5,), float(rank)), torch.zeros(5)
    operations = [dist.P2POp(dist.isend, a, (rank + 1) % n), dist.P2POp(dist.irecv, b, (rank - 1) % n)]
    for request in dist.batch_isend_irecv(operations):
        request.wait()
    compared.same("a message of the user's own", b, torch.full((5,), float((rank - 1) % n)))
    a = torch.tensor([rank == 0, True])
    dist.broadcast(a, 0)
    compared.same("broadcast of booleans", a, torch.tensor([True, True]))
    splits = [q + 1 for q in range(n)]
    a = torch.full((sum(splits),), float(rank))
    b = torch.zeros(n * (rank + 1))
    dist.all_to_all_single(b, a, [rank + 1] * n, splits)
    compared.same("all_to_all_single with splits", b, torch.arange(float(n)).repeat_interleave(rank + 1))
    c = torch.complex(torch.full((9,), float(rank)), torch.ones(9))
    dist.all_reduce(c)
    compared.same("all_reduce of complex numbers", torch.view_as_real(c)[:, 1], torch.full((9,), float(n)))


def crossed_groups(compared: Comparison) -> None:
    """Two groups of the same ranks, used in different orders; and groups of some of the ranks."""
    n, rank = compared.rank_count, compared.rank
    everybody = list(range(n))
    first, second = dist.new_group(everybody), dist.new_group(everybody)
    x, y = torch.full((100003,), rank + 1.0), torch.full((100003,), rank + 2.0)
    order = [(first, x), (second, y)] if rank % 2 else [(second, y), (first, x)]
    for work in [dist.all_reduce(t, group=g, async_op=True) for g, t in order]:
        work.wait()
    compared.same("crossed groups", x, torch.full((100003,), n * (n + 1) / 2))
    compared.same("crossed groups", y, torch.full((100003,), n * (n + 1) / 2 + n))
    halves = [dist.new_group(everybody[: n // 2]), dist.new_group(everybody[n // 2 :])]
    half = halves[rank * 2 // n]
    x = torch.full((1000,), float(rank))
    dist.all_reduce(x, group=half)
    mine = everybody[: n // 2] if rank < n // 2 else everybody[n // 2 :]
    compared.same("groups of half the ranks", x, torch.full((1000,), float(sum(mine))))


class Collectives(unittest.TestCase):
    def run_on(self, rank_count: int, body: Callable[[int, int], None], folder: str | None = None, **more: str) -> str:
        environment = {"CANOPY_PLAN_DIR": str(PLANS / (folder or FOLDERS[rank_count])), **more}
        return ranks.check(ranks.run(rank_count, body, environment=environment))

    def test_two_ranks(self) -> None:
        print(self.run_on(2, exact))

    def test_four_ranks(self) -> None:
        print(self.run_on(4, exact))

    def test_eight_ranks(self) -> None:
        print(self.run_on(8, exact))

    def test_plans_in_place(self) -> None:
        print(self.run_on(4, in_place_plans, "in4"))

    def test_other_forms_of_calls(self) -> None:
        for rank_count in (2, 4):
            self.run_on(rank_count, forms)

    def test_debugging_of_torch(self) -> None:
        self.run_on(4, forms, TORCH_DISTRIBUTED_DEBUG="DETAIL")


def in_place_plans(rank: int, rank_count: int) -> None:
    compared = Comparison(rank, rank_count)
    for length, dtype in itertools.product((0, 1, 13, 1009), (torch.float32, torch.int64)):
        compared.all(length, dtype)
    ran = {call["collective"] for group in canopy_torch.report() for call in group["calls"] if call["why"] is None}
    assert len(ran) == 7, ran
    if rank == 0:
        print(f"{compared.checks} checks of plans in place")


if __name__ == "__main__":
    unittest.main()
