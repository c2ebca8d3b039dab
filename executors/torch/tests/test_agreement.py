"""Ranks use the same plans, or none: and say why, or fail if that is asked for."""

import json
import os
import shutil
import socket
import tempfile
import unittest
from collections.abc import Callable, Mapping
from pathlib import Path

import canopy_torch
import ranks
import torch
import torch.distributed as dist
from canopy_torch.agreement import pack, unpack
from canopy_torch.choice import PlanFile, same_place
from canopy_torch.source import SourceError

PLANS = Path(os.environ["CANOPY_TEST_PLANS"])
CANOPY = os.environ["CANOPY_TEST_PROGRAM"]
HERE = socket.gethostname()


def sum_of_ones(rank: int, rank_count: int) -> None:
    """Prints what the group says of itself."""
    tensor = torch.ones(100_000)
    dist.all_reduce(tensor)
    assert bool((tensor == rank_count).all())
    group = canopy_torch.report()[0]
    print("report " + json.dumps(group))


class Agreement(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def copy(self, name: str, source: str = "ring4") -> Path:
        return Path(shutil.copytree(PLANS / source, self.folder / name))

    def falls_back(self, why: str, of_rank: Callable[[int], Mapping[str, str]]) -> None:
        """One line says why no plan is used; with `CANOPY_STRICT=1`, all ranks fail with it, whichever asks."""
        ended = ranks.run(4, sum_of_ones, of_rank=of_rank)
        said = ranks.check(ended)
        lines = [line for line in said.splitlines() if line.startswith("canopy:")]
        self.assertEqual(len(lines), 1, said)
        self.assertIn(why, lines[0])
        self.assertEqual(said.count('"ran_on": "gloo"'), 4, said)
        strict = ranks.run(4, sum_of_ones, of_rank=lambda rank: {**of_rank(rank), "CANOPY_STRICT": str(int(rank == 3))})
        for one in strict:
            self.assertEqual(one.status, 1, one.text)
            self.assertIn("AgreementError: canopy: ", one.text)
            self.assertIn(why, one.text)

    def runs_plans(self, of_rank: Callable[[int], Mapping[str, str]], rank_count: int = 4) -> str:
        said = ranks.check(ranks.run(rank_count, sum_of_ones, of_rank=of_rank))
        self.assertEqual(said.count('"ran_on": "canopy-allreduce-'), rank_count, said)
        return said

    def test_other_plans_on_one_rank(self) -> None:
        other = self.copy("other")
        manifest = json.loads((other / "manifest.json").read_text())
        manifest["items"] = manifest["items"][1:]
        (other / "manifest.json").write_text(json.dumps(manifest))
        self.falls_back(
            "rank 2 has other plans than rank 0",
            lambda rank: {"CANOPY_PLAN_DIR": str(other if rank == 2 else PLANS / "ring4")},
        )

    def test_a_changed_file(self) -> None:
        changed = self.copy("changed")
        plan = next((changed / "plans").iterdir())
        plan.write_bytes(plan.read_bytes().replace(b'cnt="1"', b'cnt="2"', 1))
        self.falls_back(
            "is not the file that",
            lambda rank: {"CANOPY_PLAN_DIR": str(changed if rank == 1 else PLANS / "ring4")},
        )

    def test_no_plans(self) -> None:
        self.falls_back("CANOPY_PLAN_DIR, CANOPY_TOPOLOGY or CANOPY_JOB is not set", lambda _: {})
        self.falls_back(
            "rank 1: CANOPY_PLAN_DIR is not set, as it is on rank 0",
            lambda rank: {} if rank == 1 else {"CANOPY_PLAN_DIR": str(PLANS / "ring4")},
        )
        self.falls_back("cannot read", lambda _: {"CANOPY_PLAN_DIR": str(self.folder / "none")})
        self.falls_back("for 4 ranks", lambda _: {"CANOPY_PLAN_DIR": str(PLANS / "ring2")})

    def test_settings_that_mean_nothing(self) -> None:
        self.falls_back("write sizes such as", lambda rank: {"CANOPY_SIZES": "big"} if rank == 1 else {})

    def with_devices(self, devices: list[str]) -> Path:
        folder = self.copy("placed")
        manifest = json.loads((folder / "manifest.json").read_text())
        for item in manifest["items"]:
            item["rank_map"] = devices
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return folder

    def test_plans_for_these_devices(self) -> None:
        folder = self.with_devices([f"{HERE.split('.')[0]}.example.org:{rank}" for rank in range(4)])
        self.runs_plans(lambda _: {"CANOPY_PLAN_DIR": str(folder)})

    def test_plans_for_other_devices(self) -> None:
        folder = self.with_devices([f"{HERE}:{rank}" for rank in (0, 1, 3, 2)])
        self.falls_back(
            f"rank 2 is on {HERE}:2, and the plan is for {HERE}:3", lambda _: {"CANOPY_PLAN_DIR": str(folder)}
        )

    def test_devices_in_the_file(self) -> None:
        """A folder of files without a manifest; one of two plans is for other devices, and the other one runs."""
        plan = next(path for path in (PLANS / "ring4" / "plans").iterdir() if "allreduce" in path.name).read_text()
        head, rest = plan.split("\n", 1)
        for name, index in (("a.xml", 9), ("b.xml", 0)):
            devices = ",".join(f"{HERE}:{rank + index}" for rank in range(4))
            (self.folder / name).write_text(f'{head}\n<meta key="rank_map" value="{devices}"/>\n{rest}')
        said = self.runs_plans(lambda _: {"CANOPY_PLAN_DIR": str(self.folder)})
        self.assertIn(f"rank 0 is on {HERE}:0, and the plan is for {HERE}:9", said)

    def test_a_job_folder(self) -> None:
        """What `canopy job fetch` writes."""
        self.runs_plans(lambda _: {"CANOPY_PLAN_DIR": str(PLANS / "fetched4")})

    def test_plans_made_at_the_start(self) -> None:
        environment = {
            "CANOPY_TOPOLOGY": "ring:4",
            "CANOPY_PROGRAM": CANOPY,
            "CANOPY_DATA_DIR": str(self.folder / "data"),
            "CANOPY_SIZES": "1KiB..1MiB",
            "CANOPY_COLLECTIVES": "allreduce,allgather",
        }
        said = ranks.check(ranks.run(4, made_at_start, environment=environment))
        self.assertIn("plan of ring:4", said)

    def test_plans_that_cannot_be_made(self) -> None:
        self.falls_back("unknown", lambda _: {"CANOPY_TOPOLOGY": "rings:4", "CANOPY_PROGRAM": CANOPY})
        self.falls_back("there is no program", lambda _: {"CANOPY_TOPOLOGY": "ring:4", "CANOPY_PROGRAM": "no-canopy"})

    def test_packing(self) -> None:
        files = [PlanFile("a", b"x" * 10_000_000, None), PlanFile("b", os.urandom(9_000_000), ("h:0", "h:1"))]
        pieces = pack(files)
        self.assertGreater(len(pieces), 1)
        self.assertEqual(unpack(pieces), files)
        other_end = bytes([pieces[0][-1] ^ 1])
        for damaged in (pieces[:-1], [pieces[0][:-1] + other_end, *pieces[1:]], [b""]):
            with self.assertRaises(SourceError):
                unpack(damaged)

    def test_names_of_hosts(self) -> None:
        for one, other, same in (
            ("gpu1:0", "gpu1:0", True),
            ("GPU1:0", "gpu1.example.org:0", True),
            ("gpu1.a.org:0", "gpu1.b.org:0", False),
            ("gpu1:0", "gpu1:1", False),
            ("gpu1:0", "gpu2:0", False),
            ("gpu1:0", "gpu1:?", False),
        ):
            self.assertEqual(same_place(one, other), same, (one, other))


def made_at_start(rank: int, rank_count: int) -> None:
    sum_of_ones(rank, rank_count)
    # A group of two has plans of its own: for the network among its ranks.
    pair = dist.new_group([1, 2])
    if rank in (1, 2):
        tensor = torch.ones(10_000)
        dist.all_reduce(tensor, group=pair)
        assert bool((tensor == 2).all())
        assert canopy_torch.report()[1]["calls"][0]["ran_on"].startswith("canopy-allreduce-2-"), canopy_torch.report()
    dist.barrier()


if __name__ == "__main__":
    unittest.main()
