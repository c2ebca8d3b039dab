"""A lease is followed from its first plan to the one around a fault, and to the plan of before: against a real server."""

import contextlib
import sys
from collections.abc import Iterator

import grpc

from canopy import v1
from canopy.connection import connect, default_server
from canopy.leases import follow_lease
from canopy.planning import plan
from canopy.v1 import faults_pb2_grpc, leases_pb2_grpc


def main() -> None:
    topology = v1.TopologySource(expression="torus:4x4")
    healthy = plan(topology, "allgather").reply.plan.name
    with connect(default_server()) as channel:
        spec = v1.PlanSpec(topology=topology, collective=v1.CollectiveSpec(kind=v1.COLLECTIVE_ALLGATHER))
        leases = leases_pb2_grpc.LeasesStub(channel)
        lease = leases.AcquireLease(v1.AcquireLeaseRequest(job="python", specs=[spec]), timeout=30)
        with contextlib.closing(follow_lease(lease.name)) as events:
            check(events, channel, topology, lease, healthy)
    print(f"followed {lease.name}", file=sys.stderr)


def check(events: Iterator, channel: grpc.Channel, topology: v1.TopologySource, lease: v1.Lease, healthy: str) -> None:
    first = next(events)
    assert isinstance(first, v1.Lease) and first.plans[0].current == healthy, first
    fault = v1.Fault(link=v1.LinkTarget(**{"from": "00", "to": "01"}))
    event = v1.FaultEvent(source="test", event_id="1", fault=fault)
    report = v1.ReportFaultsRequest(topology=topology, events=[event])
    reply = faults_pb2_grpc.FaultsStub(channel).ReportFaults(report, timeout=30)
    assert reply.leases == 1, reply
    while not (event := next(events)).superseded.is_final:
        pass
    assert event.lease == lease.name and event.superseded.new_plan != healthy, event


main()
