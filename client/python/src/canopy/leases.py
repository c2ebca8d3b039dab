"""`follow_lease()`: a lease, and what becomes of its plans, over restarts of the server."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

import grpc

from canopy import v1
from canopy.connection import Unreachable, connect, default_server
from canopy.v1 import leases_pb2_grpc

_AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN)
_PAUSE_S = (0.1, 5.0)
"""Time before the first and before later attempts to reach a server that has gone."""


def follow_lease(
    lease: str,
    *,
    server: str | None = None,
    environment: Mapping[str, str] = os.environ,
    patience_s: float = 600.0,
) -> Iterator[v1.Lease | v1.ReplanEvent]:
    """The lease as it is, then each event of it as it happens, without a gap.

    `lease` is `leases/…`. Ends after the event that says that the lease has expired. If the server goes away, the watch
    continues where it was once a server answers again; after `patience_s` without one, `Unreachable` is raised.

    Errors: `Unreachable`, naming the server that does not answer within 2 s of the call; `grpc.RpcError` if the lease is unknown, or if
    events were missed that are no longer kept (OUT_OF_RANGE).
    """
    address = server or default_server(environment)
    channel = connect(address, environment=environment)
    try:
        stub = leases_pb2_grpc.LeasesStub(channel)
        # The token is older than the answer to GetLease, so nothing is missed between them.
        token = stub.ListLeases(v1.ListLeasesRequest(page_size=1), timeout=30).resume_token
        yield stub.GetLease(v1.GetLeaseRequest(name=lease), timeout=30)
        pause_s, gone_since = _PAUSE_S[0], None
        while True:
            try:
                watch = v1.WatchLeasesRequest(resume_token=token, lease=lease)
                for event in stub.WatchLeases(watch):
                    pause_s, gone_since, token = _PAUSE_S[0], None, event.resume_token
                    kind = event.WhichOneof("event")
                    if kind in ("superseded", "lost", "expired"):
                        yield event
                    if kind == "expired":
                        return
            except grpc.RpcError as error:
                if error.code() not in _AGAIN:
                    raise
            gone_since = time.monotonic() if gone_since is None else gone_since
            if time.monotonic() - gone_since > patience_s:
                raise Unreachable(address, patience_s)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S[1])
    finally:
        channel.close()
