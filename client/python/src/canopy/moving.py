"""Plans of moving traffic: matrices of bytes go to a server, and come back as routes, the latest first."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import grpc

from canopy import v1
from canopy.connection import channel
from canopy.errors import reason
from canopy.stream import StreamError
from canopy.v1 import planner_pb2_grpc

MESSAGE_MAX = 256 << 20
"""Largest message in bytes: plans for many ranks are larger than gRPC's own limit."""


class MovingRefused(Exception):
    """A matrix has no plan. The stream goes on."""

    def __init__(self, refusal: v1.MovingRefusal) -> None:
        super().__init__(refusal.error.message)
        self.number: int = refusal.number
        self.code: int = refusal.error.code
        self.reason: str = reason(refusal.error)


class MovingPlans:
    """A stream of PlanMoving: send matrices at any time, and take their plans in order.

    The server plans the latest matrix that it has; those before it never get a plan. Use it from one thread, or send
    from one and take from another.
    """

    def __init__(
        self,
        server: str,
        topology: v1.TopologySource,
        *,
        fault_policy: v1.FaultPolicy = v1.FAULT_POLICY_UNSPECIFIED,
        options: Sequence[tuple[str, Any]] = (),
    ) -> None:
        """Connects to `https://host:port`, `host:port` or `unix:/path`. Errors: as of `canopy.connection.channel`."""
        limits = [("grpc.max_receive_message_length", MESSAGE_MAX), ("grpc.max_send_message_length", MESSAGE_MAX)]
        self.tiers: v1.MovingTiers | None = None
        """The network of the plan that was taken last; `None` before the first."""
        self._number = 0
        self._changed = threading.Condition()
        self._matrix: v1.MovingMatrix | None = None
        self._is_ended = False
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._channel = channel(server, [*limits, *options])
        network = v1.MovingNetwork(topology=topology, fault_policy=fault_policy)
        self._call = planner_pb2_grpc.PlannerStub(self._channel).PlanMoving(self._requests(network))
        threading.Thread(target=self._receive, name="canopy moving", daemon=True).start()

    def send(self, matrix: Sequence[int]) -> int:
        """Sends bytes row by row, `ranks × ranks` of them, and returns the number that the plan will have.

        Does not wait. A matrix that has not left this process yet is replaced.
        """
        with self._changed:
            self._number += 1
            self._matrix = v1.MovingMatrix(number=self._number, bytes=matrix)
            self._changed.notify_all()
            return self._number

    def next_plan(self, timeout_s: float | None = None) -> v1.MovingPlan:
        """The next plan, on the network `tiers`.

        Errors: `MovingRefused` for a matrix without a plan, `TimeoutError`, `StreamError` if the server breaks the
        protocol, and `grpc.RpcError` once the call has failed.
        """
        if self._error is not None:
            raise self._error
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(f"no plan within {timeout_s} s") from None
        if isinstance(event, BaseException):
            self._error = event
            raise event
        if isinstance(event, v1.MovingRefusal):
            raise MovingRefused(event)
        self.tiers, plan = event
        return plan

    def close(self) -> None:
        """Ends the call."""
        self._end()
        self._call.cancel()
        self._channel.close()

    def __enter__(self) -> MovingPlans:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _requests(self, network: v1.MovingNetwork) -> Iterator[v1.PlanMovingRequest]:
        """Runs in a thread of gRPC, which takes a request when there is room for it."""
        yield v1.PlanMovingRequest(network=network)
        while True:
            with self._changed:
                while self._matrix is None and not self._is_ended:
                    self._changed.wait()
                if self._is_ended:
                    return
                matrix, self._matrix = self._matrix, None
            yield v1.PlanMovingRequest(matrix=matrix)

    def _receive(self) -> None:
        try:
            for item in checked(self._call):
                self._events.put(item)
            self._events.put(StreamError("the server ended the stream"))
        except (grpc.RpcError, StreamError) as error:
            self._events.put(error)
            self._call.cancel()
        self._end()

    def _end(self) -> None:
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()


def checked(events: Any) -> Iterator[tuple[v1.MovingTiers, v1.MovingPlan] | v1.MovingRefusal]:
    """Plans with their networks, and refusals. Raises StreamError, and whatever `events` raises."""
    tiers, last = None, 0
    for event in events:
        kind = event.WhichOneof("event")
        if kind == "tiers":
            tiers = event.tiers
            continue
        if kind is None:
            # A kind of event that is newer than this client.
            continue
        if tiers is None:
            raise StreamError(f"`{kind}` came before the network")
        answer = getattr(event, kind)
        if answer.number <= last:
            raise StreamError(f"an answer to matrix {answer.number} came after one to matrix {last}")
        last = answer.number
        if kind == "refusal":
            yield answer
            continue
        lists = [getattr(answer, name) for name in ("from", "to", "leaves", "enters", "bytes")]
        if len({len(numbers) for numbers in lists}) != 1:
            raise StreamError(f"the lists of plan {last} differ in length")
        yield tiers, answer
