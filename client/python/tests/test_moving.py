"""The client of PlanMoving against a scripted stub: order, refusals, errors, and matrices that are replaced."""

import threading
import unittest
from unittest import mock

import grpc
from google.rpc import error_details_pb2

from canopy import v1
from canopy.moving import MovingPlans, MovingRefused
from canopy.stream import StreamError

TIERS = v1.PlanMovingEvent(tiers=v1.MovingTiers(ranks=4, box_size=2, rails=True))
MATRIX = [0, 1, 2, 3] * 4
HALF = v1.Fraction(exact="1/2", value=0.5)


def plan(number, **changes):
    lists = {"from": [0, 1], "to": [2, 3], "leaves": [1, 1], "enters": [3, 3], "bytes": [5, 6]} | changes
    return v1.PlanMovingEvent(plan=v1.MovingPlan(number=number, seconds=HALF, seconds_bound=HALF, **lists))


def refused(number):
    error = v1.ErrorStatus(code=9, message="rank 3 is lost")
    error.details.add().Pack(error_details_pb2.ErrorInfo(reason="MOVING_STRANDED", domain="canopy"))
    return v1.PlanMovingEvent(refusal=v1.MovingRefusal(number=number, error=error))


class Failed(grpc.RpcError):
    """What a call raises that has failed."""


class Call:
    """Events of a script. A function in it gets the iterator of requests, and returns an event or raises."""

    def __init__(self, requests, script):
        self._events = (step(requests) if callable(step) else step for step in script)
        self.is_cancelled = False

    def __iter__(self):
        return self._events

    def cancel(self):
        self.is_cancelled = True


class Moving(unittest.TestCase):
    def plans(self, *script):
        """The client, on a stub that runs the script."""
        self.calls = []

        def stub(_):
            return mock.Mock(PlanMoving=lambda requests: self.calls.append(Call(requests, script)) or self.calls[-1])

        with mock.patch("canopy.v1.planner_pb2_grpc.PlannerStub", stub):
            network = v1.TopologySource(expression="boxes")
            plans = MovingPlans("127.0.0.1:1", network, fault_policy=v1.FAULT_POLICY_IGNORE)
        self.addCleanup(plans.close)
        return plans

    def test_the_network_then_matrices(self):
        seen = []

        def planned(requests):
            seen.append(next(requests).matrix)
            return plan(seen[-1].number)

        def first(requests):
            seen.append(next(requests).network)
            return TIERS

        with self.plans(first, planned, planned) as plans:
            self.assertEqual(plans.send(MATRIX), 1)
            answer = plans.next_plan(10)
            self.assertEqual((answer.number, list(answer.bytes)), (1, [5, 6]))
            self.assertEqual((plans.tiers.ranks, plans.tiers.box_size, plans.tiers.rails), (4, 2, True))
            self.assertEqual(plans.send([1] * 16), 2)
            self.assertEqual(plans.next_plan(10).number, 2)
            network, one, other = seen
            self.assertEqual(network.topology.expression, "boxes")
            self.assertEqual(network.fault_policy, v1.FAULT_POLICY_IGNORE)
            self.assertEqual((list(one.bytes), list(other.bytes)), (MATRIX, [1] * 16))
        self.assertTrue(self.calls[0].is_cancelled)

    def test_a_matrix_that_waits_is_replaced(self):
        go_on = threading.Event()

        def slow(requests):
            next(requests)
            go_on.wait(10)
            return TIERS

        plans = self.plans(slow, lambda requests: plan(next(requests).matrix.number))
        for number in (1, 2, 3):
            self.assertEqual(plans.send(MATRIX), number)
        go_on.set()
        self.assertEqual(plans.next_plan(10).number, 3)

    def test_a_refusal_and_another_network(self):
        other = v1.PlanMovingEvent(tiers=v1.MovingTiers(ranks=4, box_size=1))
        plans = self.plans(TIERS, refused(1), plan(2), other, plan(3))
        with self.assertRaisesRegex(MovingRefused, "rank 3 is lost") as caught:
            plans.next_plan(10)
        self.assertEqual((caught.exception.number, caught.exception.code), (1, 9))
        self.assertEqual(caught.exception.reason, "MOVING_STRANDED")
        self.assertEqual((plans.next_plan(10).number, plans.tiers.box_size), (2, 2))
        self.assertEqual((plans.next_plan(10).number, plans.tiers.box_size), (3, 1))

    def test_errors_stay(self):
        def fails(_):
            raise Failed

        plans = self.plans(TIERS, fails)
        for _ in range(2):
            self.assertRaises(Failed, plans.next_plan, 10)
        self.assertTrue(self.calls[0].is_cancelled)

    def test_late(self):
        go_on = threading.Event()
        plans = self.plans(TIERS, lambda _: go_on.wait(10) and plan(1))
        self.assertRaises(TimeoutError, plans.next_plan, 0.01)
        go_on.set()
        self.assertEqual(plans.next_plan(10).number, 1)

    def test_broken_streams(self):
        for script in (
            [],
            [plan(1)],
            [refused(1)],
            [TIERS, plan(0)],
            [TIERS, plan(2), plan(2)],
            [TIERS, plan(2), refused(1)],
            [TIERS, plan(1, to=[2])],
            [TIERS, plan(1, bytes=[])],
        ):
            plans = self.plans(*script)
            with self.assertRaises(StreamError, msg=str(script)):
                for _ in range(3):
                    plans.next_plan(10)


if __name__ == "__main__":
    unittest.main()
