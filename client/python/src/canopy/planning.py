"""`plan()`: one plan, with every byte of its files checked."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from canopy import v1
from canopy.connection import connect, default_server
from canopy.stream import receive
from canopy.v1 import planner_pb2_grpc


def _words(enum: object, prefix: str) -> dict[str, int]:
    """The values of an enum by the words of the command line, such as `all-to-all`; not the unspecified one."""
    known = enum.items()  # type: ignore[attr-defined]
    return {name.removeprefix(prefix).lower().replace("_", "-"): value for name, value in known if value != 0}


COLLECTIVES = _words(v1.Collective, "COLLECTIVE_")
"""Collectives by name, such as `allgather`."""
FORMATS = _words(v1.OutputFormat, "OUTPUT_FORMAT_")
"""Formats of files by name, such as `msccl-xml`."""

_RETRY = {
    "methodConfig": [
        {
            "name": [{"service": "canopy.v1.Planner"}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "5s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}


@dataclass(frozen=True)
class Planned:
    """A plan and its files."""

    reply: v1.PlanResponse
    """The plan, its quality, and how it was obtained."""
    files: tuple[bytes, ...]
    """The contents of its files, in the order of the request; empty if they were written to `output`."""


def topology_source(text: str) -> v1.TopologySource:
    """The content of a file if one has this name, a stored network (`topologies/…`), else a generator expression."""
    if text.startswith("topologies/"):
        return v1.TopologySource(name=text)
    path = Path(text)
    if not path.is_file():
        return v1.TopologySource(expression=text)
    # The server recognises what the content is.
    return v1.TopologySource(document=v1.TopologyDocument(content=path.read_bytes()))


def plan(
    topology: str | v1.TopologySource,
    collective: str,
    *,
    format: str = "json",
    root: int | None = None,
    placement: v1.Placement | None = None,
    output: Path | str | None = None,
    deadline_s: float = 30.0,
    server: str | None = None,
    environment: Mapping[str, str] = os.environ,
    spec: v1.PlanSpec | None = None,
) -> Planned:
    """A plan for `collective`, such as `allgather`, on a network.

    `topology` is a generator expression, the name of a file, or `topologies/…`. `spec` states what the other
    arguments do not. With `output`, the file is written there, and has its name only once it is complete. `deadline_s`
    is the time to the plan. `server`, `CANOPY_SERVER` of the environment or 127.0.0.1:7423 is asked.

    Errors: `Unreachable` names the server that does not answer; `grpc.RpcError` for refusals (`canopy.errors.refusal` reads them);
    `StreamError` if bytes are damaged; `ValueError` for an unknown collective or format; `OSError` for files.
    """
    asked = v1.PlanSpec()
    if spec is not None:
        asked.CopyFrom(spec)
    asked.topology.CopyFrom(topology_source(topology) if isinstance(topology, str) else topology)
    asked.collective.kind = _known(COLLECTIVES, collective, "collective")
    if root is not None:
        asked.collective.root = root
    if placement is not None:
        asked.placement.CopyFrom(placement)
    if not asked.outputs:
        asked.outputs.append(v1.OutputSpec(format=_known(FORMATS, format, "format")))
    if output is not None and len(asked.outputs) != 1:
        raise ValueError(f"`output` is one file, and {len(asked.outputs)} are asked for")
    options = [("grpc.service_config", json.dumps(_RETRY))]
    with connect(server or default_server(environment), options=options, environment=environment) as channel:
        events = planner_pb2_grpc.PlannerStub(channel).StreamPlan(v1.PlanRequest(spec=asked), timeout=deadline_s)
        if output is not None:
            return Planned(_written(events, Path(output)), ())
        files: dict[int, io.BytesIO] = {}
        reply = receive(events, lambda index, _: files.setdefault(index, io.BytesIO()))
        return Planned(reply, tuple(files[index].getvalue() for index in sorted(files)))


def _known(words: Mapping[str, int], word: str, what: str) -> int:
    if word not in words:
        raise ValueError(f"`{word}` is no {what}; use {', '.join(words)}")
    return words[word]


def _written(events: Iterable[v1.PlanEvent], output: Path) -> v1.PlanResponse:
    """Receives into a temporary file; renames it once it is complete and checked."""
    file = tempfile.NamedTemporaryFile(dir=output.absolute().parent, delete=False)
    try:
        with file:
            reply = receive(events, lambda _index, _artifact: file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(file.name, 0o644)
        os.replace(file.name, output)
        return reply
    except BaseException:
        os.unlink(file.name)
        raise
