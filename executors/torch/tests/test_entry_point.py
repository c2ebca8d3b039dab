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
import os, sys, tempfile, torch, torch.distributed as dist

def run(rank, store, backend):
    assert "canopy_torch" not in sys.modules
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=2)
    x = torch.full((1000,), rank + 1.0)
    dist.all_reduce(x)
    assert bool((x == 3).all()), x
    import canopy_torch
    assert canopy_torch.report()[0]["calls"][0]["ran_on"].startswith("canopy-allreduce-2-"), canopy_torch.report()
    assert "executors" not in canopy_torch.__file__, canopy_torch.__file__
    dist.destroy_process_group()

for backend in ("canopy", "cpu:canopy"):
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(2):
            process = os.fork()
            if process == 0:
                run(rank, f"{folder}/store", backend)
                os._exit(0)
            ranks.append(process)
        assert [os.waitpid(process, 0)[1] for process in ranks] == [0, 0]
"""


class EntryPoint(unittest.TestCase):
    def test_torch_finds_the_backend(self) -> None:
        """The import of torch alone may take a minute where other programs use the memory."""
        environment = os.environ | {"CANOPY_PLAN_DIR": str(PLANS / "ring2"), "GLOO_SOCKET_IFNAME": "lo"}
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", PROGRAM],
                env=environment,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=600,
            )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_package_has_types(self) -> None:
        files = [str(file) for file in importlib.metadata.files("canopy-torch") or ()]
        self.assertIn("canopy_torch/py.typed", files)


if __name__ == "__main__":
    unittest.main()
