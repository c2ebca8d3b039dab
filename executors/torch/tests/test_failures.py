"""A rank that dies, stops or is late: all others get an error in time, and their group is of no more use."""

import os
import signal
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import ranks
import torch
import torch.distributed as dist

PLANS = Path(os.environ["CANOPY_TEST_PLANS"])
TIMEOUT_S = 6.0
VICTIM = 2


def collectives_until_error(is_async: bool, end: Callable[[], None]) -> ranks.Body:
    def body(rank: int, rank_count: int) -> None:
        tensor = torch.ones(1 << 18)
        for _ in range(3):
            dist.all_reduce(tensor)
        dist.barrier()
        if rank == VICTIM:
            end()
        start = time.monotonic()
        try:
            for _ in range(1000):
                work = dist.all_reduce(tensor, async_op=is_async)
                if is_async:
                    work.wait()
        except RuntimeError as error:
            print(f"after {time.monotonic() - start:.2f} s: {error}")
        else:
            raise AssertionError("no error")
        try:
            dist.all_reduce(tensor)
        except RuntimeError as error:
            assert "ended with an error before" in str(error), error
        else:
            raise AssertionError("the group works again")
        start = time.monotonic()
        dist.destroy_process_group()
        assert time.monotonic() - start < 5, "the end takes long"

    return body


class Failures(unittest.TestCase):
    def others_fail(self, end: Callable[[], None], is_async: bool, within_s: float) -> None:
        environment = {"CANOPY_PLAN_DIR": str(PLANS / "ring4")}
        body = collectives_until_error(is_async, end)
        ended = ranks.run(4, body, environment=environment, timeout_s=TIMEOUT_S, deadline_s=120, spare=(VICTIM,))
        for rank, one in enumerate(ended):
            if rank != VICTIM:
                self.assertEqual(one.status, 0, f"rank {rank}: {one.text[-3000:]}")
                after_s = float(one.text.partition("after ")[2].partition(" s")[0])
                self.assertLess(after_s, within_s, one.text)
                self.assertIn(f"canopy: rank {rank}, allreduce by canopy-allreduce-4-", one.text)

    def test_a_killed_rank(self) -> None:
        """Connections close at once, and rank 0, which is no neighbour of rank 2 in this plan, hears of it, too."""
        for is_async in (False, True):
            self.others_fail(lambda: os.kill(os.getpid(), signal.SIGKILL), is_async, TIMEOUT_S)

    def test_a_stopped_rank(self) -> None:
        self.others_fail(lambda: os.kill(os.getpid(), signal.SIGSTOP), False, TIMEOUT_S + 6)

    def test_a_late_rank(self) -> None:
        self.others_fail(lambda: time.sleep(100), True, TIMEOUT_S + 6)


if __name__ == "__main__":
    unittest.main()
