#!/usr/bin/env python3
"""Times an all_reduce by a plan beside Gloo's own, in turn, in the same processes on this machine.

    bench.py PLANS [--ranks 4] [--megabytes 64] [--rounds 9]

All ranks share the cores and the loopback interface of this machine, where a plan has nothing to gain: the ratio says
what the executor costs, not what a plan is worth on a network.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))

import canopy_torch  # noqa: E402
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402


def compared(times: dict[str, list[float]]) -> str:
    """Medians. The first round is left out: it connects."""
    plan, own = (statistics.median(times[name][1:]) for name in ("plan", "gloo"))
    return f"plan {plan * 1e3:.2f} ms, gloo {own * 1e3:.2f} ms, ratio {plan / own:.2f}"


def body(sizes: list[int], rounds: int) -> ranks.Body:
    def run(rank: int, rank_count: int) -> None:
        gloo = dist.new_group(backend="gloo")
        for size_bytes in sizes:
            tensor = torch.zeros(size_bytes // 4)
            wall: dict[str, list[float]] = {"plan": [], "gloo": []}
            processor: dict[str, list[float]] = {"plan": [], "gloo": []}
            for name, group in [("plan", None), ("gloo", gloo)] * (rounds + 1):
                dist.barrier(group=gloo)
                start, start_processor = time.perf_counter(), time.process_time()
                dist.all_reduce(tensor, group=group)
                taken = torch.tensor([time.perf_counter() - start, time.process_time() - start_processor])
                slowest = taken[:1].clone()
                dist.all_reduce(slowest, dist.ReduceOp.MAX, group=gloo)
                dist.all_reduce(taken, group=gloo)
                wall[name].append(float(slowest))
                processor[name].append(float(taken[1]))
            if rank == 0:
                print(f"{size_bytes / 1e6:.3f} MB, wall time of the slowest rank: {compared(wall)}")
                print(f"{size_bytes / 1e6:.3f} MB, processor time of all ranks: {compared(processor)}")
        if rank == 0:
            for call in canopy_torch.report()[0]["calls"]:
                print(
                    f"{call['collective']} ran on {call['ran_on']}: {call['calls']} calls"
                    + (f", {call['why']}" if call["why"] else "")
                )

    return run


def main() -> int:
    parser = argparse.ArgumentParser(description="Times an all_reduce by a plan beside Gloo's own.")
    parser.add_argument("plans", help="folder of plans")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[64.0], help="sizes of messages in 10⁶ bytes")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--most", type=float, help="fail if a ratio of processor times is over this")
    args = parser.parse_args()
    sizes = [int(size * 1e6) // 4 * 4 for size in args.megabytes]
    ended = ranks.run(args.ranks, body(sizes, args.rounds), environment={"CANOPY_PLAN_DIR": args.plans})
    said = ranks.check(ended)
    print(said, end="")
    worst = max(float(line.rpartition(" ")[2]) for line in said.splitlines() if "processor time" in line)
    if args.most is not None and worst > args.most:
        print(f"the ratio {worst:.2f} is over {args.most:.2f}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
