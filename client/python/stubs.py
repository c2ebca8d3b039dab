"""Writes the types of the generated gRPC stubs, `*_pb2_grpc.pyi`, beside them: what each call takes and answers.

Usage: stubs.py FOLDER_OF_THE_GENERATED_PACKAGE, with its parent on the path of modules.
"""

import importlib
import sys
from pathlib import Path

from google.protobuf.descriptor import Descriptor, FileDescriptor, MethodDescriptor

HEAD = '''"""Types of the calls of `canopy.v1`."""

from collections.abc import Iterator

import grpc
from grpc import aio

'''

# By whether the request and the answer are streams.
CALLABLES = {
    (False, False): "UnaryUnaryMultiCallable",
    (False, True): "UnaryStreamMultiCallable",
    (True, False): "StreamUnaryMultiCallable",
    (True, True): "StreamStreamMultiCallable",
}


def module(file: FileDescriptor) -> str:
    return file.name.removesuffix(".proto").replace("/", ".") + "_pb2"


def name(message: Descriptor) -> str:
    return f"{module(message.file)}.{message.name}"


def stub(method: MethodDescriptor) -> str:
    kind = CALLABLES[method.client_streaming, method.server_streaming]
    return f"    {method.name}: grpc.{kind}[{name(method.input_type)}, {name(method.output_type)}]\n"


def servicer(method: MethodDescriptor) -> str:
    asked, answer = name(method.input_type), name(method.output_type)
    asked = f"Iterator[{asked}]" if method.client_streaming else asked
    answer = f"Iterator[{answer}]" if method.server_streaming else answer
    return f"    def {method.name}(self, request: {asked}, context: grpc.ServicerContext) -> {answer}: ...\n"


def types(file: FileDescriptor) -> str:
    services = list(file.services_by_name.values())
    messages = [kind for service in services for method in service.methods for kind in (method.input_type, method.output_type)]
    imports = sorted({f"import {module(message.file)}\n" for message in messages})
    text = HEAD + "".join(imports)
    for service in services:
        methods = list(service.methods)
        text += f"\n\nclass {service.name}Stub:\n"
        text += "    def __init__(self, channel: grpc.Channel | aio.Channel) -> None: ...\n"
        text += "".join(map(stub, methods))
        text += f"\n\nclass {service.name}Servicer:\n" + "".join(map(servicer, methods))
        text += f"\n\ndef add_{service.name}Servicer_to_server(servicer: {service.name}Servicer, server: grpc.Server) -> None: ...\n"
    return text


def main() -> None:
    folder = Path(sys.argv[1])
    for source in sorted(folder.glob("*_pb2.py")):
        file = importlib.import_module(f"canopy.v1.{source.stem}").DESCRIPTOR
        source.with_name(source.stem + "_grpc.pyi").write_text(types(file))


main()
