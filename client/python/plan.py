#!/usr/bin/env python3
"""Requests a plan from a running canopyd, checks every byte, and writes the file in one step.

    plan.py dgx-a100:boxes=2 --collective allgather --format msccl-xml -o plan.xml
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import grpc

from canopy import v1
from canopy.connection import channel
from canopy.errors import refusal
from canopy.stream import StreamError, receive
from canopy.v1 import planner_pb2_grpc

COLLECTIVES = ["allgather", "reduce-scatter", "allreduce", "broadcast", "reduce"]
FORMATS = {
    "json": v1.OUTPUT_FORMAT_JSON,
    "msccl-xml": v1.OUTPUT_FORMAT_MSCCL_XML,
    "mscclpp-json": v1.OUTPUT_FORMAT_MSCCLPP_JSON,
}
RETRY = {
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


def topology_source(text: str) -> v1.TopologySource:
    """The content of a file if one has this name, else a generator expression."""
    path = Path(text)
    if not path.is_file():
        return v1.TopologySource(expression=text)
    content = path.read_bytes()
    formats = {b"<": v1.DOCUMENT_FORMAT_NCCL_XML, b"{": v1.DOCUMENT_FORMAT_JSON}
    form = formats.get(content.lstrip()[:1], v1.DOCUMENT_FORMAT_YAML)
    return v1.TopologySource(document=v1.TopologyDocument(format=form, content=content))


def placement(text: str) -> v1.Placement:
    """The placement of the ranks, in rank order: NODE:DEVICE,NODE:DEVICE,…"""
    slots = []
    for item in text.split(","):
        node, _, device = item.rpartition(":")
        if not node or not (device.isascii() and device.isdigit()):
            raise argparse.ArgumentTypeError(f"`{item}` is not a placement; write NODE:DEVICE for each rank")
        slots.append(v1.RankSlot(node=node, device=int(device)))
    return v1.Placement(slots=slots)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Requests a plan from a running canopyd.")
    parser.add_argument("topology", help="generator expression or file")
    parser.add_argument("--collective", "-c", choices=COLLECTIVES, required=True)
    parser.add_argument("--format", "-f", choices=FORMATS, default="json")
    parser.add_argument("--placement", type=placement, metavar="NODE:DEVICE,...", help="devices of the ranks, by rank")
    parser.add_argument("--output", "-o", type=Path, required=True, help="file to write")
    parser.add_argument("--deadline", type=float, default=30.0, metavar="SECONDS")
    parser.add_argument(
        "--server",
        default=os.environ.get("CANOPY_SERVER") or "127.0.0.1:7423",
        help="https://host:port, unix:/path or host:port [default: $CANOPY_SERVER, else 127.0.0.1:7423]",
    )
    return parser.parse_args()


def request(args: argparse.Namespace) -> v1.PlanRequest:
    kind = v1.Collective.Value("COLLECTIVE_" + args.collective.replace("-", "_").upper())
    return v1.PlanRequest(
        topology=topology_source(args.topology),
        collective=v1.CollectiveSpec(kind=kind),
        outputs=[v1.OutputSpec(format=FORMATS[args.format])],
        placement=args.placement,
    )


def plan(args: argparse.Namespace) -> v1.PlanReply:
    """Receives into a temporary file; renames it once it is complete and checked."""
    options = [("grpc.service_config", json.dumps(RETRY))]
    file = tempfile.NamedTemporaryFile(dir=args.output.absolute().parent, delete=False)
    try:
        with file, channel(args.server, options) as opened:
            stub = planner_pb2_grpc.PlannerStub(opened)
            # A server that is just starting is waited for, within the deadline.
            events = stub.PlanStream(request(args), timeout=args.deadline, wait_for_ready=True)
            reply = receive(events, lambda _index, _artifact: file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(file.name, 0o644)
        os.replace(file.name, args.output)
        return reply
    except BaseException:
        os.unlink(file.name)
        raise


def main() -> int:
    args = arguments()
    try:
        reply = plan(args)
    except grpc.RpcError as error:
        why = refusal(error)
        print(f"error: {why.message}", file=sys.stderr)
        for place, what in why.fields:
            print(f"  at {place}" + ("" if what in why.message else f": {what}"), file=sys.stderr)
        return why.exit_status
    except (StreamError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    summary = {
        "plan": reply.plan.id,
        "cache": v1.CacheOutcome.Name(reply.cache).removeprefix("CACHE_OUTCOME_").lower(),
        "ranks": reply.plan.topology.ranks,
        "algbw": reply.plan.quality.achieved,
        "bound": reply.plan.quality.bound,
        "optimality": reply.plan.quality.optimality,
        "checked": list(reply.plan.checked),
        "bytes": reply.plan.artifacts[0].size_bytes,
        "sha256": reply.plan.artifacts[0].sha256,
    }
    print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
