"""Runs a function on several ranks: processes of this machine that share a store."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import IO

import canopy_torch  # noqa: F401  Versions of torch before 2.14 know the backend by this.
import torch
import torch.distributed as dist

Body = Callable[[int, int], None]
"""Gets the rank and the number of ranks, in a process group that is made."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a rank ended."""

    status: int | None
    """Exit status, negative for signals; `None` if it was still there at the deadline."""
    text: str
    """What it printed, errors included."""
    after_s: float


def run(
    rank_count: int,
    body: Body,
    *,
    backend: str = "canopy",
    environment: Mapping[str, str] = {},
    of_rank: Callable[[int], Mapping[str, str]] = lambda _: {},
    timeout_s: float = 60,
    deadline_s: float = 240,
    spare: tuple[int, ...] = (),
) -> list[Ended]:
    """Runs `body` on each rank, and kills what is left at the deadline or once only the ranks in `spare` run."""
    # Rank 0 has the store, and tells its port to the others. This process starts no threads, and can fork again.
    port_from, port_to = os.pipe()
    files = [tempfile.TemporaryFile() for _ in range(rank_count)]
    start = time.monotonic()
    processes = {}
    for rank in range(rank_count):
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            limits = (timeout_s, deadline_s)
            _child(
                rank,
                rank_count,
                body,
                backend,
                {**environment, **of_rank(rank)},
                limits,
                (port_from, port_to),
                files[rank],
            )
        processes[process] = rank
    os.close(port_to)
    os.close(port_from)
    ended: dict[int, tuple[int | None, float]] = {}
    while not {*range(rank_count)} - {*spare} <= {*ended} and time.monotonic() - start < deadline_s:
        for process in [p for p, rank in processes.items() if rank not in ended]:
            gone, status = os.waitpid(process, os.WNOHANG)
            if gone:
                ended[processes[process]] = (os.waitstatus_to_exitcode(status), time.monotonic() - start)
        time.sleep(0.01)
    for process, rank in processes.items():
        if rank not in ended:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            ended[rank] = (None, time.monotonic() - start)
    return [Ended(ended[rank][0], _text(files[rank]), ended[rank][1]) for rank in range(rank_count)]


def check(ended: list[Ended]) -> str:
    """What all ranks printed; fails with the rank that did not end well first."""
    for rank, end in sorted(enumerate(ended), key=lambda item: item[1].after_s):
        if end.status != 0:
            raise AssertionError(f"rank {rank} ended with {end.status} after {end.after_s:.1f} s:\n{end.text[-4000:]}")
    return "".join(end.text for end in ended)


def _child(
    rank: int,
    rank_count: int,
    body: Body,
    backend: str,
    environment: Mapping[str, str],
    limits: tuple[float, float],
    pipe: tuple[int, int],
    file: IO[bytes],
) -> None:
    """Never returns."""
    status = 1
    try:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.stdout = sys.stderr = open(1, "w", buffering=1, closefd=False)
        timeout_s, deadline_s = limits
        faulthandler.dump_traceback_later(max(1.0, deadline_s - 5), file=sys.stderr)
        for name in [name for name in os.environ if name.startswith("CANOPY_")]:
            del os.environ[name]
        os.environ.update({"LOCAL_RANK": str(rank), "GLOO_SOCKET_IFNAME": "lo", **environment})
        torch.set_num_threads(1)
        limit = timedelta(seconds=timeout_s)
        if rank == 0:
            store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=limit, wait_for_workers=False)
            os.write(pipe[1], f"{store.port:8}".encode() * (rank_count - 1))
        else:
            store = dist.TCPStore("127.0.0.1", int(os.read(pipe[0], 8)), is_master=False, timeout=limit)
        dist.init_process_group(backend, store=store, rank=rank, world_size=rank_count, timeout=limit)
        body(rank, rank_count)
        if dist.is_initialized():
            # The store lives in rank 0, which must end last.
            store.set(f"ended/{rank}", "")
            if rank == 0:
                store.wait([f"ended/{other}" for other in range(rank_count)], limit)
            dist.destroy_process_group()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    text = file.read().decode(errors="replace")
    file.close()
    return text
