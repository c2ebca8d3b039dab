"""Training by DDP and FSDP2, and functional collectives: the parameters end as with Gloo."""

import json
import os
import unittest
from pathlib import Path
from typing import Any

import canopy_torch
import ranks
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PLANS = Path(os.environ["CANOPY_TEST_PLANS"])
FORMS: list[dict[str, Any]] = [
    {"bucket_cap_mb": 25},
    {"bucket_cap_mb": 0.01},
    {"bucket_cap_mb": 0.01, "gradient_as_bucket_view": True},
    {"bucket_cap_mb": 0.01, "static_graph": True},
    {"bucket_cap_mb": 0.01, "find_unused_parameters": True},
]


def whole_numbers(group: Any, rank: int, form: dict[str, Any]) -> list[torch.Tensor]:
    """One step of a linear model, all of whose numbers are whole: every sum of gradients is exact in any order.

    Averages over two, four or eight ranks are exact, too.
    """
    torch.manual_seed(1 + rank)
    model = nn.Sequential(nn.Linear(37, 211, bias=False), nn.Linear(211, 13, bias=False))
    for parameter in model.parameters():
        parameter.data = torch.randint(-3, 4, parameter.shape).float()
    trained = DistributedDataParallel(model, process_group=group, **form)
    optimizer = torch.optim.SGD(trained.parameters(), lr=1.0)
    given = torch.randint(-3, 4, (8, 37), generator=torch.Generator().manual_seed(rank)).float()
    trained(given).sum().backward()
    optimizer.step()
    return [parameter.detach().clone() for parameter in model.parameters()]


def real_numbers(group: Any, rank: int, form: dict[str, Any]) -> list[torch.Tensor]:
    torch.manual_seed(7 + rank)
    model = nn.Sequential(nn.Linear(37, 211), nn.ReLU(), nn.BatchNorm1d(211), nn.Linear(211, 5))
    trained = DistributedDataParallel(model, process_group=group, **form)
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(5):
        given, wanted = torch.randn(16, 37, generator=generator), torch.randn(16, 5, generator=generator)
        optimizer.zero_grad()
        ((trained(given) - wanted) ** 2).mean().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in model.parameters()]


def data_parallel(rank: int, rank_count: int) -> None:
    gloo = dist.new_group(backend="gloo")
    for form in FORMS:
        for found, wanted in zip(whole_numbers(None, rank, form), whole_numbers(gloo, rank, form)):
            assert torch.equal(found, wanted), f"{form}: the bytes differ"
        found_all = real_numbers(None, rank, form)
        for found, wanted in zip(found_all, real_numbers(gloo, rank, form)):
            worst = float((found - wanted).abs().max())
            assert worst < 1e-6, f"{form}: {worst}"
        for found in found_all:
            everywhere = [torch.empty_like(found) for _ in range(rank_count)]
            dist.all_gather(everywhere, found, group=gloo)
            assert all(torch.equal(found, other) for other in everywhere), f"{form}: ranks differ"
    assert any(call["collective"] == "allreduce" and call["why"] is None for call in calls()), calls()


def with_hook(rank: int, rank_count: int) -> None:
    """A hook of DDP that uses futures."""

    def hook(_, bucket):  # type: ignore[no-untyped-def]
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0])

    torch.manual_seed(1)
    trained = DistributedDataParallel(nn.Linear(10, 10))
    trained.register_comm_hook(None, hook)
    trained(torch.full((2, 10), float(rank))).sum().backward()
    total = 2.0 * sum(range(rank_count))
    assert bool((trained.module.weight.grad == total).all()), trained.module.weight.grad


def sharded(rank: int, rank_count: int) -> None:
    """FSDP2, and the functional collectives that compiled code uses."""
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def train(mesh: DeviceMesh) -> list[torch.Tensor]:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
        for layer in (model[0], model[2], model):
            fully_shard(layer, mesh=mesh)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        generator = torch.Generator().manual_seed(rank)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(4, 16, generator=generator)).pow(2).mean().backward()
            optimizer.step()
        return [parameter.full_tensor().detach() for parameter in model.parameters()]

    found = train(init_device_mesh("cpu", (rank_count,)))
    wanted = train(DeviceMesh.from_group(dist.new_group(backend="gloo"), "cpu"))
    for a, b in zip(found, wanted):
        assert float((a - b).abs().max()) < 1e-6
    x = functional.wait_tensor(functional.all_reduce(torch.full((7,), float(rank)), "sum", dist.group.WORLD))
    assert bool((x == sum(range(rank_count))).all()), x
    y = functional.all_gather_tensor(torch.full((3,), float(rank)), 0, dist.group.WORLD)
    assert y.tolist() == [float(q) for q in range(rank_count) for _ in range(3)], y
    z = functional.reduce_scatter_tensor(torch.ones(4 * rank_count), "avg", 0, dist.group.WORLD)
    assert z.tolist() == [1.0] * 4, z
    planned = {call["collective"] for call in calls() if call["why"] is None}
    assert {"allgather", "reducescatter", "allreduce"} <= planned, calls()


def meshes(rank: int, rank_count: int) -> None:
    """Groups of rows and columns, and a group split from another."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, rank_count // 2), mesh_dim_names=("rows", "columns"))
    for name in ("rows", "columns"):
        members = dist.get_process_group_ranks(mesh.get_group(name))
        x = torch.full((1000,), float(rank))
        dist.all_reduce(x, group=mesh.get_group(name))
        assert bool((x == sum(members)).all()), (name, members, x)
    names = {group["ranks"] for group in canopy_torch.report()}
    assert names == {2, 4}, json.dumps(canopy_torch.report())


def calls() -> list[dict[str, Any]]:
    return [call for group in canopy_torch.report() for call in group["calls"]]


class Training(unittest.TestCase):
    def run_on(self, body: ranks.Body, backend: str = "canopy") -> None:
        ranks.check(ranks.run(4, body, backend=backend, environment={"CANOPY_PLAN_DIR": str(PLANS / "ring4")}))

    def test_data_parallel(self) -> None:
        self.run_on(data_parallel)

    def test_hooks(self) -> None:
        self.run_on(with_hook)

    def test_sharded(self) -> None:
        self.run_on(sharded)

    def test_meshes(self) -> None:
        both = PLANS / "both"
        ranks.check(ranks.run(4, meshes, environment={"CANOPY_PLAN_DIR": str(both)}))

    def test_names_of_devices(self) -> None:
        self.run_on(with_hook, "cpu:canopy,cuda:canopy")
        self.run_on(with_hook, "cpu:canopy")


if __name__ == "__main__":
    unittest.main()
