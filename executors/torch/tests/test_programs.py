"""All ranks of every plan in one process, over many lengths and in random order. No process group is made."""

import dataclasses
import os
import random
import unittest
from pathlib import Path

import emulator
from canopy_torch.plan import Plan, PlanError
from canopy_torch.reader import read_plan
from canopy_torch.symbols import check

PLANS = Path(os.environ["CANOPY_TEST_PLANS"])
LENGTHS = [*range(0, 18), 23, 31, 32, 33, 97, 101, 997]


def all_plans() -> list[Path]:
    """Those that canopy made, and those written by hand because canopy makes none of their kind."""
    return sorted([*PLANS.rglob("*.xml"), *(Path(__file__).parent / "plans").glob("*.xml")])


class Programs(unittest.TestCase):
    def test_every_plan_keeps_its_promise_at_every_length(self) -> None:
        runs = 0
        seen = set()
        for path in all_plans():
            plan = check(read_plan(path.read_bytes(), path.name), path.name)
            seen.add((plan.head.collective, plan.head.in_place))
            for length in LENGTHS:
                with self.subTest(plan=path.name, length=length):
                    random_ = random.Random(f"{path.name} {length}")
                    self.assertIsNone(emulator.run(plan, length, random_))
                runs += 1
        self.assertGreater(len({collective for collective, _ in seen}), 7, "plans of all collectives")
        self.assertEqual({in_place for _, in_place in seen}, {False, True})
        print(f"{len(all_plans())} plans, {runs} runs")

    def test_a_changed_program_is_refused(self) -> None:
        """Each way to break a plan must be noticed by the run on symbols."""
        refused = kept = 0
        for path in all_plans()[::3]:
            plan = read_plan(path.read_bytes(), path.name)
            random_ = random.Random(path.name)
            for way in (drop_send, drop_receive, drop_local, swap_steps, move_message):
                broken = way(plan, random_)
                if broken is None or broken == plan:
                    continue
                try:
                    checked = check(broken, path.name)
                except PlanError:
                    refused += 1
                else:
                    # A change may be without effect: then the result must be right.
                    kept += 1
                    for length in (1, 13, 101):
                        self.assertIsNone(emulator.run(checked, length, random_), f"{way.__name__} of {path.name}")
        self.assertGreater(refused, 10 * kept)


def changed(plan: Plan, rank: int, step: int, **fields: object) -> Plan:
    program = plan.programs[rank]
    steps = list(program.steps)
    steps[step] = dataclasses.replace(steps[step], **fields)
    programs = list(plan.programs)
    programs[rank] = dataclasses.replace(program, steps=tuple(steps))
    return dataclasses.replace(plan, programs=tuple(programs))


def drop(plan: Plan, random_: random.Random, name: str) -> Plan | None:
    places = [
        (rank, position)
        for rank, program in enumerate(plan.programs)
        for position, step in enumerate(program.steps)
        if getattr(step, name)
    ]
    if not places:
        return None
    rank, position = random_.choice(places)
    items = list(getattr(plan.programs[rank].steps[position], name))
    del items[random_.randrange(len(items))]
    return changed(plan, rank, position, **{name: tuple(items)})


def drop_send(plan: Plan, random_: random.Random) -> Plan | None:
    return drop(plan, random_, "sends")


def drop_receive(plan: Plan, random_: random.Random) -> Plan | None:
    return drop(plan, random_, "receives")


def drop_local(plan: Plan, random_: random.Random) -> Plan | None:
    return drop(plan, random_, "locals")


def swap_steps(plan: Plan, random_: random.Random) -> Plan | None:
    places = [rank for rank, program in enumerate(plan.programs) if len(program.steps) > 1]
    if not places:
        return None
    rank = random_.choice(places)
    steps = list(plan.programs[rank].steps)
    position = random_.randrange(len(steps) - 1)
    steps[position], steps[position + 1] = steps[position + 1], steps[position]
    programs = list(plan.programs)
    programs[rank] = dataclasses.replace(programs[rank], steps=tuple(steps))
    return dataclasses.replace(plan, programs=tuple(programs))


def move_message(plan: Plan, random_: random.Random) -> Plan | None:
    """One send takes the chunks beside its own."""
    places = [
        (rank, position, index)
        for rank, program in enumerate(plan.programs)
        for position, step in enumerate(program.steps)
        for index, send in enumerate(step.sends)
        if send.span.first > 0
    ]
    if not places:
        return None
    rank, position, index = random_.choice(places)
    sends = list(plan.programs[rank].steps[position].sends)
    span = sends[index].span
    sends[index] = dataclasses.replace(sends[index], span=dataclasses.replace(span, first=span.first - 1))
    return changed(plan, rank, position, sends=tuple(sends))


if __name__ == "__main__":
    unittest.main()
