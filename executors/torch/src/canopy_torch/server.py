"""Plans from a canopy server, by the client of client/python (the extra `canopy-torch[server]`).

With a job's name, the plans are those that its leases name at this moment: after a fault, groups made from then on
get the plans that the server has made around it. A group keeps its plans for its life.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from typing import Any

from canopy_torch.choice import PlanFile
from canopy_torch.reader import BYTES_MAX
from canopy_torch.settings import Settings
from canopy_torch.source import FILES_MAX, TOTAL_MAX, SourceError

HELP = "pip install 'canopy-torch[server]'"


class PlanServer:
    """Calls of one server, all of them within one deadline."""

    def __init__(self, settings: Settings) -> None:
        try:
            import grpc
            from canopy import v1
            from canopy.connection import channel
            from canopy.v1 import leases_pb2_grpc, planner_pb2_grpc, plans_pb2_grpc
        except ImportError as error:
            raise SourceError(f"CANOPY_SERVER is set, and {error.name} is not installed; help: {HELP}") from None
        assert settings.server is not None, "the caller names a server"
        self._settings, self._grpc, self._v1 = settings, grpc, v1
        self._deadline = time.monotonic() + settings.planning_s
        try:
            self._channel = channel(settings.server)
        except (OSError, ValueError) as error:
            raise SourceError(f"{settings.server}: {error}") from None
        self._planner = planner_pb2_grpc.PlannerStub(self._channel)
        self._plans = plans_pb2_grpc.PlansStub(self._channel)
        self._leases = leases_pb2_grpc.LeasesStub(self._channel)

    def files(self, rank_count: int, ranks: Sequence[int]) -> list[PlanFile]:
        """The plans for a group; `ranks` are its ranks in the topology, all if empty. Errors: `SourceError`."""
        try:
            if self._settings.job is not None:
                return self._of_job(self._settings.job)
            if self._settings.topology is not None:
                return self._of_topology(self._settings.topology, rank_count, ranks)
        except self._grpc.RpcError as error:
            from canopy.errors import refusal

            raise SourceError(f"{self._settings.server}: {refusal(error).message or error.code()}") from None
        finally:
            self._channel.close()
        raise SourceError(
            "CANOPY_SERVER is set alone; set CANOPY_TOPOLOGY to the network, or CANOPY_JOB to a job with a lease"
        )

    def _left_s(self) -> float:
        return max(0.001, self._deadline - time.monotonic())

    def _of_job(self, job: str) -> list[PlanFile]:
        """The current plans of the job's leases, as far as they have a file of steps."""
        v1 = self._v1
        if '"' in job or "\\" in job:
            raise SourceError(f"CANOPY_JOB is {job[:80]!r}; use a name without quotes and backslashes")
        request = v1.ListLeasesRequest(page_size=1000, filter=f'job = "{job}"')
        leases = self._leases.ListLeases(request, timeout=self._left_s(), wait_for_ready=True).leases
        plans = [plan for lease in leases for plan in lease.plans]
        if not plans:
            raise SourceError(
                f"job {job[:80]!r} has no lease at {self._settings.server}; acquire one, or set CANOPY_TOPOLOGY"
            )
        current = list(dict.fromkeys(plan.current for plan in plans if plan.current))
        if not current:
            raise SourceError(
                f"{plans[0].original} of job {job[:80]!r} has no plan that works: {plans[0].error.message}"
            )
        return [self._fetch(plan) for plan in current[:FILES_MAX]]

    def _of_topology(self, topology: str, rank_count: int, ranks: Sequence[int]) -> list[PlanFile]:
        v1, settings = self._v1, self._settings
        low, high = settings.sizes
        kinds = (v1.Collective.Value("COLLECTIVE_" + name.replace("-", "_").upper()) for name in settings.collectives)
        request = v1.PlanBundleRequest(
            topology=topology_source(v1, topology),
            communicators=[v1.BundleCommunicator(name="group", ranks=ranks)] if ranks else [],
            collectives=[v1.CollectiveSpec(kind=kind) for kind in kinds],
            size_bytes_min=low,
            size_bytes_max=high,
            output=v1.OutputSpec(format=v1.OUTPUT_FORMAT_ONECCL_XML),
        )
        reply = self._planner.PlanBundle(request, timeout=self._left_s(), wait_for_ready=True)
        listed = [(item, file) for item in reply.items if item.ranks == rank_count for file in item.files]
        if not listed:
            why = next(
                (item.error.message for item in reply.items if item.error.message), f"no plan is for {rank_count} ranks"
            )
            raise SourceError(f"{settings.server} made no plans for {topology[:80]}: {why}")
        return [self._fetch(file.plan, file.path, file.artifact.sha256) for _, file in listed[:FILES_MAX]]

    def _fetch(self, plan: str, path: str | None = None, expected: str | None = None) -> PlanFile:
        """One file, with its digest checked."""
        v1 = self._v1
        request = v1.FetchPlanFileRequest(name=plan, format=v1.OUTPUT_FORMAT_ONECCL_XML)
        content = bytearray()
        for event in self._plans.FetchPlanFile(request, timeout=self._left_s()):
            if event.WhichOneof("event") == "artifact":
                expected = expected or event.artifact.sha256
            else:
                content += event.content.data
            if len(content) > min(BYTES_MAX, TOTAL_MAX):
                raise SourceError(f"the file of {plan} is over the limit of {BYTES_MAX} bytes")
        if hashlib.sha256(content).hexdigest() != expected:
            raise SourceError(f"the file of {plan} does not match its SHA-256; start again")
        return PlanFile(path or plan, bytes(content))


def topology_source(v1: Any, text: str) -> Any:
    """The content of a file if one has this name, a stored topology or cluster, or a generator expression."""
    if text.startswith("topologies/"):
        return v1.TopologySource(id=text)
    if text.startswith("clusters/"):
        raise SourceError(
            "CANOPY_TOPOLOGY names a part of a cluster, which `canopy job fetch` takes: write its folder to CANOPY_PLAN_DIR"
        )
    if not os.path.isfile(text):
        return v1.TopologySource(expression=text)
    with open(text, "rb") as file:
        return v1.TopologySource(document=v1.TopologyDocument(content=file.read()))
