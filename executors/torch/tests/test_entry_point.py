"""torch finds the backend by its entry point, in the installed package, without an import."""

import importlib.metadata
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PLANS = Path(os.environ["CANOPY_TEST_PLANS"])
PROGRAM = """
import sys, torch, torch.distributed as dist
rank, store = int(sys.argv[1]), sys.argv[2]
assert "canopy_torch" not in sys.modules
dist.init_process_group(sys.argv[3], init_method=f"file://{store}", rank=rank, world_size=2)
x = torch.full((1000,), rank + 1.0)
dist.all_reduce(x)
assert bool((x == 3).all()), x
import canopy_torch
assert canopy_torch.report()[0]["calls"][0]["ran_on"].startswith("canopy-allreduce-2-"), canopy_torch.report()
assert "executors" not in canopy_torch.__file__, canopy_torch.__file__
dist.destroy_process_group()
"""


class EntryPoint(unittest.TestCase):
    def test_torch_finds_the_backend(self) -> None:
        for backend in ("canopy", "cpu:canopy"):
            with tempfile.TemporaryDirectory() as folder:
                environment = os.environ | {"CANOPY_PLAN_DIR": str(PLANS / "ring2"), "GLOO_SOCKET_IFNAME": "lo"}
                command = [sys.executable, "-c", PROGRAM]
                ranks = [
                    subprocess.Popen(
                        [*command, str(rank), f"{folder}/store", backend],
                        env=environment,
                        stderr=subprocess.PIPE,
                        text=True,
                        cwd=folder,
                    )
                    for rank in range(2)
                ]
                for rank in ranks:
                    _, said = rank.communicate(timeout=120)
                    self.assertEqual(rank.returncode, 0, said)

    def test_the_package_has_types(self) -> None:
        files = [str(file) for file in importlib.metadata.files("canopy-torch") or ()]
        self.assertIn("canopy_torch/py.typed", files)


if __name__ == "__main__":
    unittest.main()
