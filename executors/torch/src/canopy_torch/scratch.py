"""Scratch memory that is kept from call to call: new memory costs a page fault for every 4 KiB."""

from __future__ import annotations

import threading

import torch

KEPT_BYTES = 256 << 20
"""Most memory that a group keeps, in bytes."""


class Scratch:
    """Memory of one group. Used by several threads at once."""

    def __init__(self) -> None:
        self._free: list[torch.Tensor] = []
        self._lock = threading.Lock()

    def take(self, like: torch.Tensor, count: int) -> torch.Tensor:
        """Elements of the kind of `like`. On GPUs, torch itself keeps memory."""
        if like.is_cuda:
            return like.new_empty(count)
        size_bytes = count * like.element_size()
        with self._lock:
            memory = self._free.pop() if self._free else None
        if memory is None or memory.numel() < size_bytes:
            memory = torch.empty(size_bytes, dtype=torch.uint8)
        return memory[:size_bytes].view(like.dtype)

    def give(self, taken: torch.Tensor) -> None:
        """Takes memory back that no message will write to any more."""
        if taken.is_cuda:
            return
        memory = torch.empty(0, dtype=torch.uint8).set_(taken.untyped_storage())
        with self._lock:
            kept_bytes = sum(free.numel() for free in self._free)
            if kept_bytes + memory.numel() <= KEPT_BYTES:
                self._free.append(memory)
                # The largest is taken next.
                self._free.sort(key=torch.Tensor.numel)
