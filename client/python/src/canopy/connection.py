"""Channels to a server: plain text on this machine, TLS elsewhere, with what the environment says that the caller shows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc


class _TokenOfFile(grpc.AuthMetadataPlugin):  # type: ignore[misc]
    """Shows the token in a file, read at each call: a mounted one is renewed from time to time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, context: Any, callback: Any) -> None:
        try:
            callback((("authorization", f"Bearer {self._path.read_text().strip()}"),), None)
        except OSError as error:
            callback((), error)


CONNECT_S = 2.0
"""Time in which a server must answer."""


class Unreachable(ConnectionError):
    """No server answers."""

    def __init__(self, server: str, seconds: float) -> None:
        super().__init__(
            f"no server answers at {server} within {seconds:g} s; start one with `canopyd --dev`, or set CANOPY_SERVER"
        )
        self.server = server


def default_server(environment: Mapping[str, str] = os.environ) -> str:
    """`CANOPY_SERVER` of the environment, or the usual address of a server on this machine."""
    return environment.get("CANOPY_SERVER") or "127.0.0.1:7423"


def connect(
    server: str,
    *,
    seconds: float = CONNECT_S,
    options: Sequence[tuple[str, Any]] = (),
    environment: Mapping[str, str] = os.environ,
) -> grpc.Channel:
    """The same as `channel`, with a server at its other end. Errors: `Unreachable`, and those of `channel`."""
    opened = channel(server, options, environment)
    try:
        grpc.channel_ready_future(opened).result(timeout=seconds)
    except grpc.FutureTimeoutError:
        opened.close()
        raise Unreachable(server, seconds) from None
    return opened


def channel(
    server: str,
    options: Sequence[tuple[str, Any]] = (),
    environment: Mapping[str, str] = os.environ,
) -> grpc.Channel:
    """A channel to `https://host:port`, `host:port` or `unix:/path`.

    `CANOPY_CA` names the certificates that sign the server's, `CANOPY_CERT` and `CANOPY_KEY` a client certificate, and
    `CANOPY_TOKEN_FILE` a file with a token. Errors: `OSError` where a file cannot be read, `ValueError` where a token
    would go over a network as plain text.
    """

    def content(name: str) -> bytes | None:
        return Path(environment[name]).read_bytes() if environment.get(name) else None

    all_options = list(options)
    if server.startswith("unix:"):
        # gRPC would send the path of the socket as authority, and HTTP/2 servers refuse that.
        all_options.append(("grpc.default_authority", "localhost"))
    address = server.removeprefix("https://").removeprefix("http://")
    token = environment.get("CANOPY_TOKEN_FILE")
    if server.startswith("https://"):
        credentials = grpc.ssl_channel_credentials(content("CANOPY_CA"), content("CANOPY_KEY"), content("CANOPY_CERT"))
    elif not token:
        return grpc.insecure_channel(address, options=all_options)
    elif server.startswith("unix:"):
        credentials = grpc.local_channel_credentials(grpc.LocalConnectionType.UDS)
    elif address.rpartition(":")[0] in ("localhost", "127.0.0.1", "[::1]"):
        credentials = grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP)
    else:
        raise ValueError(f"the token would go to {server} as plain text; use https://, or a Unix socket")
    if token:
        shown = grpc.metadata_call_credentials(_TokenOfFile(Path(token)))
        credentials = grpc.composite_channel_credentials(credentials, shown)
    return grpc.secure_channel(address, credentials, options=all_options)
