"""Runs the programs and calls of the page `docs/guides/api-by-example.md` against a server.

Usage: examples.py PAGE HOST:PORT. Its `grpcurl` lines are done here: their JSON is read by the descriptors of the stubs.
"""

import json
import re
import shlex
import sys
from pathlib import Path

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory

from canopy import v1

ADDRESS = "127.0.0.1:7423"


def call(line: str, address: str, names: dict[str, str]) -> None:
    """Makes the call of a `grpcurl` line; every field of its JSON must exist."""
    words = shlex.split(line)
    body, method = words[words.index("-d") + 1], words[-1]
    service, name = method.split("/")
    for word, value in names.items():
        body = body.replace(word, value)
    described = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
    request = json_format.ParseDict(json.loads(body), message_factory.GetMessageClass(described.input_type)())
    answer = message_factory.GetMessageClass(described.output_type)
    with grpc.insecure_channel(address) as channel:
        kind = channel.unary_stream if described.server_streaming else channel.unary_unary
        made = kind(
            f"/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )(request, timeout=30)
        answers = list(made) if described.server_streaming else [made]
        assert answers, line
        print(method, len(answers), sep=": ")


def main() -> None:
    page, address = Path(sys.argv[1]).read_text(), sys.argv[2]
    assert v1.PlanRequest.DESCRIPTOR.full_name == "canopy.v1.PlanRequest"
    known: dict[str, object] = {}
    programs = calls = 0
    for kind, block in re.findall(r"^```(python|sh)\n(.*?)^```$", page, re.M | re.S):
        if kind == "python":
            exec(compile(block.replace(ADDRESS, address), "example", "exec"), known)
            programs += 1
            continue
        for line in block.splitlines():
            if line.startswith("grpcurl"):
                # The plan of the first program stands for any.
                made = known.get("made")
                call(line, address, {"PLAN": made.plan.name} if made else {})
                calls += 1
    assert programs >= 5 and calls >= 7, (programs, calls)
    known["channel"].close()


main()
