"""Moving traffic by plans of a running server, and by the lines that `canopy tools plan-moving` writes."""

import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import canopy_torch
import moving_plans
import ranks
import torch
from canopy_torch.moving import all_to_all_v
from canopy_torch.moving_plan import MovingPlan
from canopy_torch.moving_reader import read_line
from canopy_torch.moving_source import ServerPlans
from canopy_torch.moving_traffic import MovingTraffic

CANOPY, CANOPYD = os.environ["CANOPY_TEST_PROGRAM"], os.environ["CANOPY_TEST_SERVER"]
NETWORKS = ("rail:boxes=2,gpus=4", "dgx-h100:boxes=2,gpus=4")


class Watched:
    """The plans of a server, and what they do."""

    def __init__(self, address: str, network: str) -> None:
        self._plans, self.relayed = ServerPlans(address, network), 0
        self.nics: set[int] = set()
        """Ranks whose NICs are used."""

    def __call__(self, rows: moving_plans.Rows) -> MovingPlan:
        plan = self._plans(rows)
        for part in plan.parts():
            if not plan.shape.are_boxmates(part.sender, part.receiver):
                self.relayed += part.leaves != part.sender
                self.nics |= {part.leaves, part.enters}
        return plan

    def close(self) -> None:
        self._plans.close()


def skewed(step: int, rank_count: int) -> moving_plans.Rows:
    """One rank sends more than its NIC should have to."""
    rows = moving_plans.matrix(random.Random(step), rank_count, 2000)
    rows[step % rank_count] = [10 * count for count in rows[step % rank_count]]
    return rows


def input_of(rank: int, row: list[int], step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randint(-(1 << 40), 1 << 40, (sum(row),), generator=generator)


def output_of(rank: int, rows: moving_plans.Rows, step: int) -> torch.Tensor:
    pieces = [input_of(sender, row, step).split(row)[rank] for sender, row in enumerate(rows)]
    return torch.cat(pieces)


def walk(address: str, network: str, dead: set[int]) -> ranks.Body:
    def body(rank: int, rank_count: int) -> None:
        source = Watched(address, network) if rank == 0 else None
        traffic = MovingTraffic(source, wait_s=60, pieces=2)
        for step in range(10):
            rows = skewed(step, rank_count)
            output = traffic.step(input_of(rank, rows[rank], step), rows[rank])
            assert torch.equal(output, output_of(rank, rows, step)), step
        traffic.close()
        calls = canopy_torch.report()[-1]["calls"]
        assert [(call["ran_on"], call["calls"]) for call in calls] == [("plan", 10)], calls
        if source is not None:
            assert source.relayed, "no rank has help"
            assert source.nics == {*range(rank_count)} - dead, source.nics
            print(f"10 steps, {source.relayed} parts relayed: checks")

    return body


def follow(line: bytes) -> ranks.Body:
    """An exchange by a plan out of a file, on a matrix that the plan says."""

    def body(rank: int, rank_count: int) -> None:
        plan = read_line(line, "plan").aligned(8)
        rows = [[0] * rank_count for _ in range(rank_count)]
        for part in plan.parts():
            rows[part.sender][part.receiver] += part.size // 8
        output = torch.zeros_like(output_of(rank, rows, 1))
        all_to_all_v(output, input_of(rank, rows[rank], 1), plan)
        assert torch.equal(output, output_of(rank, rows, 1))

    return body


class Server(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        server = subprocess.Popen([CANOPYD, "--data-dir", str(self.folder / "data")], stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.send_signal, signal.SIGTERM)
        socket = self.folder / "data/canopy.sock"
        self.address = f"unix:{socket}"
        # This process must not have a channel while it forks.
        deadline = time.monotonic() + 60
        while not socket.exists():
            self.assertLess(time.monotonic(), deadline, "the server does not start")
            time.sleep(0.05)

    def test_steps(self) -> None:
        for network in NETWORKS:
            with self.subTest(network):
                said = ranks.check(ranks.run(8, walk(self.address, network, set()), backend="gloo"))
                print(said.strip())

    def test_around_a_dead_nic(self) -> None:
        # On its rail there is only rank 7 besides.
        command = [CANOPY, "faults", "report", NETWORKS[0], "nic:b0g3", "--server", self.address]
        subprocess.run(command, check=True, capture_output=True)
        print(ranks.check(ranks.run(8, walk(self.address, NETWORKS[0], {3, 7}), backend="gloo")).strip())

    def test_lines_of_the_command(self) -> None:
        matrices, written = self.folder / "traffic.jsonl", self.folder / "plans.jsonl"
        asked = [[[8 * count for count in row] for row in skewed(step, 8)] for step in range(3)]
        lines = [json.dumps({"number": 5 * step + 1, "bytes": rows}) for step, rows in enumerate(asked)]
        matrices.write_text("\n".join(lines))
        for network in NETWORKS:
            command = [CANOPY, "plan-moving", network, str(matrices), "-o", str(written), "--server", self.address]
            subprocess.run(command, check=True, capture_output=True)
            texts = written.read_bytes().splitlines()
            plans = [read_line(text, "plan") for text in texts]
            self.assertEqual([plan.number for plan in plans], [1, 6, 11])
            for plan, rows in zip(plans, asked):
                plan.check_serves(rows)
                self.assertEqual((plan.shape.box_size, plan.shape.has_rails), (4, network.startswith("rail")))
            ranks.check(ranks.run(8, follow(texts[1]), backend="gloo"))
            written.unlink()


if __name__ == "__main__":
    unittest.main()
