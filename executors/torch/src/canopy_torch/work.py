"""What a collective returns."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch

from canopy_torch import compat

MARGIN_S = 30.0
"""The executor has deadlines of its own: with this margin, its message, which says more, comes first."""


class CanopyWork(compat.WorkBase):  # type: ignore[misc]
    """A collective under way. torch's C++ code calls `wait` and `get_future` only.

    On GPUs, everything is queued on a stream when the work is finished: `wait` makes the current stream wait for it.
    """

    def __init__(self, tensors: Sequence[torch.Tensor], limit_s: float) -> None:
        super().__init__()
        self._tensors = list(tensors)
        self._limit_s = limit_s
        self._done = threading.Event()
        self._error: Exception | None = None
        self._future: Any = None
        self._lock = threading.Lock()
        self._device = self._tensors[0].device if self._tensors and self._tensors[0].is_cuda else None
        self._queued: Any = None

    def finish(self, error: Exception | None = None) -> None:
        """Ends the work. Called once."""
        with self._lock:
            self._error = error
            if self._device is not None and error is None:
                self._queued = torch.cuda.Event()  # type: ignore[no-untyped-call]
                self._queued.record(torch.cuda.current_stream(self._device))
            self._done.set()
            future = self._future
        if future is not None:
            self._resolve(future)

    def _resolve(self, future: Any) -> None:
        if self._error is None:
            future.set_result(self._tensors)
        else:
            future.set_exception(self._error)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits for the end. Errors: that of the collective, or that the time is over."""
        seconds = timeout.total_seconds() if timeout is not None else 0.0
        if not self._done.wait(seconds if seconds > 0 else self._limit_s + MARGIN_S):
            raise RuntimeError("canopy: the collective did not end in time")
        if self._error is not None:
            raise RuntimeError(str(self._error))
        if self._queued is not None:
            torch.cuda.current_stream(self._device).wait_event(self._queued)
        return True

    def get_future(self) -> Any:
        """A future of the list of tensors, as hooks of DDP expect it."""
        with self._lock:
            if self._future is not None:
                return self._future
            devices: Any = [self._device] if self._device is not None else None
            self._future = torch.futures.Future(devices=devices)
            is_done = self._done.is_set()
        if is_done:
            self._resolve(self._future)
        return self._future

    def is_completed(self) -> bool:
        return self._done.is_set()

    def is_success(self) -> bool:
        return self._done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def result(self) -> list[torch.Tensor]:
        return self._tensors

    def synchronize(self) -> None:
        self.wait()
