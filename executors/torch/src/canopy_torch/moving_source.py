"""Where plans of moving traffic come from, and how long they may take. Knows nothing of torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from canopy_torch.moving_plan import Matrix, MovingPlan
from canopy_torch.moving_reader import of_messages
from canopy_torch.server import HELP, topology_source
from canopy_torch.source import SourceError

Source = Callable[[Matrix], MovingPlan]
"""Makes a plan for a matrix of bytes. May raise anything."""


class LateError(SourceError):
    """A source did not answer in time."""


class Asker:
    """Asks a source in a thread of its own, so that no step waits for it longer than it wants.

    While the source works, the latest matrix waits; those before it are never asked for.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._changed = threading.Condition()
        self._number = 0
        self._waits: tuple[int, Matrix] | None = None
        self._answer: tuple[int, MovingPlan | Exception] | None = None
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def ask(self, matrix: Matrix, wait_s: float) -> MovingPlan:
        """Errors: `LateError`, `SourceError`."""
        deadline = time.monotonic() + wait_s
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="canopy moving", daemon=True)
                self._thread.start()
            self._number += 1
            number = self._number
            self._waits = (number, matrix)
            self._changed.notify_all()
            while self._answer is None or self._answer[0] != number:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self._is_closed:
                    raise LateError(f"no plan within {wait_s} s")
                self._changed.wait(left_s)
            answer = self._answer[1]
        if isinstance(answer, SourceError):
            raise answer
        if isinstance(answer, Exception):
            raise SourceError(f"{type(answer).__name__}: {answer}")
        return answer

    def close(self) -> None:
        """Ends the thread once the source has answered."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def _work(self) -> None:
        while True:
            with self._changed:
                while self._waits is None and not self._is_closed:
                    self._changed.wait()
                if self._is_closed or self._waits is None:
                    return
                (number, matrix), self._waits = self._waits, None
            answer: MovingPlan | Exception
            try:
                answer = self._source(matrix)
            except Exception as error:
                answer = error
            with self._changed:
                self._answer = (number, answer)
                self._changed.notify_all()


class ServerPlans:
    """A source: the plans of a canopy server for a network, by the client of client/python."""

    def __init__(self, server: str, topology: str, *, answer_s: float = 60.0) -> None:
        """`server` is https://host:port, unix:/path or host:port; `topology` an expression, a file or `topologies/…`.

        A stream that has not answered for `answer_s` is closed, and the next matrix opens another.
        Errors: `SourceError`.
        """
        try:
            from canopy import v1
            from canopy.moving import MovingPlans
        except ImportError as error:
            raise SourceError(f"{error.name} is not installed; help: {HELP}") from None
        self._open: Callable[[], Any] = lambda: MovingPlans(server, topology_source(v1, topology))
        self._server, self._answer_s = server, answer_s
        self._plans: Any = None

    def __call__(self, matrix: Matrix) -> MovingPlan:
        import grpc
        from canopy.errors import refusal
        from canopy.moving import MovingRefused

        if self._plans is None:
            self._plans = self._open()
        plans = self._plans
        try:
            number = plans.send([count for row in matrix for count in row])
            while True:
                plan = plans.next_plan(self._answer_s)
                if plan.number == number:
                    return of_messages(plan, plans.tiers)
        except MovingRefused as error:
            raise SourceError(f"{self._server}: {error}") from None
        except grpc.RpcError as error:
            self.close()
            raise SourceError(f"{self._server}: {refusal(error).message or error.code()}") from None
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Ends the stream."""
        plans, self._plans = self._plans, None
        if plans is not None:
            plans.close()
