#!/usr/bin/env python3
"""Requests a plan from a running canopyd, checks every byte, and writes the file in one step.

    plan.py dgx-a100:boxes=2 --collective allgather --format msccl-xml -o plan.xml
"""

import argparse
import json
import sys
from pathlib import Path

import grpc

from canopy import v1
from canopy.connection import Unreachable, default_server
from canopy.errors import refusal
from canopy.planning import COLLECTIVES, FORMATS, plan
from canopy.stream import StreamError


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
        default=default_server(),
        help="https://host:port, unix:/path or host:port [default: $CANOPY_SERVER, else 127.0.0.1:7423]",
    )
    return parser.parse_args()


def main() -> int:
    args = arguments()
    try:
        reply = plan(
            args.topology,
            args.collective,
            format=args.format,
            placement=args.placement,
            output=args.output,
            deadline_s=args.deadline,
            server=args.server,
        ).reply
    except grpc.RpcError as error:
        why = refusal(error)
        print(f"error: {why.message}", file=sys.stderr)
        for place, what in why.fields:
            print(f"  at {place}" + ("" if what in why.message else f": {what}"), file=sys.stderr)
        return why.exit_status
    except Unreachable as error:
        print(f"error: {error}", file=sys.stderr)
        return 6
    except (StreamError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    summary = {
        "plan": reply.plan.name,
        "cache": v1.CacheOutcome.Name(reply.cache).removeprefix("CACHE_OUTCOME_").lower(),
        "ranks": reply.plan.topology.ranks,
        "algbw": reply.plan.quality.achieved.exact,
        "bound": reply.plan.quality.bound.exact,
        "optimality": reply.plan.quality.optimality.exact,
        "checked": list(reply.plan.checked),
        "bytes": reply.plan.artifacts[0].size_bytes,
        "sha256": reply.plan.artifacts[0].sha256,
    }
    print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
