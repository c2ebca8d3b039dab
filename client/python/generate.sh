#!/usr/bin/env bash
# Generates src/canopy/v1 from the service's .proto files. Needs grpcio-tools (requirements.txt).
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
proto=../../proto

rm -rf src/canopy/v1
"$python" -m grpc_tools.protoc -I "$proto" \
    --python_out=src --pyi_out=src --grpc_python_out=src \
    "$proto"/canopy/v1/*.proto
# All messages in one place, whichever file they are from: canopy.v1.PlanRequest.
for file in "$proto"/canopy/v1/*.proto; do
    echo "from canopy.v1.$(basename "$file" .proto)_pb2 import *"
done >src/canopy/v1/__init__.py
PYTHONPATH=src "$python" stubs.py src/canopy/v1
