"""Plans from a running server: by topology, and by the leases of a job."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import canopy_torch
import grpc
import ranks
import torch
import torch.distributed as dist
from canopy import v1
from canopy.v1 import leases_pb2_grpc, planner_pb2_grpc
from google.protobuf.duration_pb2 import Duration

CANOPYD = os.environ["CANOPY_TEST_SERVER"]


def allreduce(rank: int, rank_count: int) -> None:
    for length in (3000, 100_000):
        tensor = torch.ones(length)
        dist.all_reduce(tensor)
        assert bool((tensor == rank_count).all())
    if rank == 0:
        print("report " + json.dumps(canopy_torch.report()[0]))


class Server(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        command = [CANOPYD, "--data-dir", f"{folder.name}/data"]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.send_signal, signal.SIGTERM)
        self.address = f"unix:{folder.name}/data/canopy.sock"
        # This process must not have a channel while it forks: a child asks for it.
        deadline = time.monotonic() + 60
        while not Path(f"{folder.name}/data/canopy.sock").exists():
            self.assertLess(time.monotonic(), deadline, "the server does not start")
            time.sleep(0.05)

    def in_child(self, body: ranks.Body) -> None:
        ranks.check(ranks.run(1, body, backend="gloo"))

    def run_ranks(self, **environment: str) -> str:
        return ranks.check(ranks.run(4, allreduce, environment={"CANOPY_SERVER": self.address, **environment}))

    def test_plans_of_a_topology(self) -> None:
        said = self.run_ranks(CANOPY_TOPOLOGY="ring:4", CANOPY_SIZES="1KiB..1MiB")
        self.assertEqual(said.count('"ran_on": "canopy-allreduce-4-'), said.count('"ran_on"'), said)
        self.assertIn('"plans"', said)

    def test_plans_of_a_job(self) -> None:
        address = self.address

        def lease(_: int, __: int) -> None:
            with grpc.insecure_channel(address, options=[("grpc.default_authority", "localhost")]) as channel:
                spec = v1.PlanSpec(
                    topology=v1.TopologySource(expression="ring:4"),
                    collective=v1.CollectiveSpec(kind=v1.COLLECTIVE_ALLREDUCE),
                    outputs=[v1.OutputSpec(format=v1.OUTPUT_FORMAT_ONECCL_XML)],
                )
                planner_pb2_grpc.PlannerStub(channel).Plan(v1.PlanRequest(spec=spec), timeout=30)
                asked = v1.AcquireLeaseRequest(job="training (a)", specs=[spec], ttl=Duration(seconds=600))
                leases_pb2_grpc.LeasesStub(channel).AcquireLease(asked, timeout=30)

        self.in_child(lease)
        said = self.run_ranks(CANOPY_JOB="training (a)")
        self.assertEqual(said.count('"ran_on": "canopy-allreduce-4-'), 1, said)

    def test_refusals(self) -> None:
        for environment, why in (
            ({"CANOPY_JOB": 'a"b'}, "use a name without quotes"),
            ({"CANOPY_JOB": "other"}, "job 'other' has no lease"),
            ({"CANOPY_TOPOLOGY": "rings:4"}, "rings"),
            ({"CANOPY_TOPOLOGY": "ring:5"}, "for 4 ranks"),
            ({"CANOPY_TOPOLOGY": "clusters/a:b"}, "canopy job fetch"),
            (
                {"CANOPY_TOPOLOGY": "ring:4", "CANOPY_SERVER": "unix:/none", "CANOPY_PLANNING_SECONDS": "1"},
                "unix:/none",
            ),
        ):
            said = self.run_ranks(**environment)
            lines = [line for line in said.splitlines() if "uses no plans" in line]
            self.assertEqual(len(lines), 1, said)
            self.assertIn(why, lines[0])


if __name__ == "__main__":
    unittest.main()
