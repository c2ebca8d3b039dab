"""Reads plans of moving traffic: the line that `canopy tools plan-moving` writes, and the messages of a server.

The line is flat, and so is the reader: it knows no nesting, no escapes and no numbers but whole ones. Anything that is
not part of the format is refused. Sizes are limited before anything is stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from canopy_torch.moving_plan import PARTS_MAX, MovingPlan, MovingShape
from canopy_torch.plan import PlanError

TEXT_MAX = 128 << 20
"""Longest line, in bytes."""

_LISTS = ("from", "to", "leaves", "enters", "bytes")
_NUMBERS = ("version", "number", "ranks", "box_size")
_TEXTS = ("format", "fabric", "seconds", "seconds_bound")
_FABRICS = {"rails": True, "full": False}

_MEMBER = re.compile(
    r'\s*"(?P<name>[a-z_]{1,40})"\s*:\s*(?:"(?P<text>[^"\\\x00-\x1f]{0,500})"|(?P<number>0|[1-9][0-9]{0,19})'
    r"|\[(?P<list>[0-9, ]*)\])\s*(?P<end>[,}])"
)
_TIME = re.compile(r"(0|[1-9][0-9]{0,199})(?:/([1-9][0-9]{0,199}))?")
_LONG = re.compile(r"[0-9]{20}")


def read_line(text: bytes, place: str) -> MovingPlan:
    """Reads one line. `place` names it in messages. Errors: `PlanError`. Cost: linear in the text."""
    if len(text) > TEXT_MAX:
        raise PlanError(f"{place}: {len(text)} bytes are over the limit of {TEXT_MAX}")
    try:
        return _plan(_members(text.decode("ascii")))
    except UnicodeDecodeError:
        raise PlanError(f"{place}: not a plan of moving traffic: characters beyond ASCII") from None
    except PlanError as error:
        raise PlanError(f"{place}: {error}") from None


def of_messages(plan: Any, tiers: Any) -> MovingPlan:
    """The plan of a `canopy.v1.MovingPlan` on the network of a `canopy.v1.MovingTiers`. Errors: `PlanError`."""
    shape = MovingShape(tiers.ranks, tiers.box_size, tiers.rails)
    # Python's own word.
    lists: list[Sequence[int]] = [getattr(plan, name) for name in _LISTS]
    seconds, bound = plan.seconds.exact, plan.seconds_bound.exact
    _check_times(seconds, bound)
    return MovingPlan.make(plan.number, shape, lists, seconds, bound)


def _members(text: str) -> dict[str, Any]:
    members: dict[str, Any] = {}
    opening = re.match(r"\s*\{", text)
    if opening is None:
        raise PlanError("not a plan of moving traffic: no `{` at the start")
    position, end = opening.end(), ","
    while end == ",":
        member = _MEMBER.match(text, position)
        if member is None:
            raise PlanError(f"not a plan of moving traffic: no member that it may have at character {position}")
        name, position, end = member["name"], member.end(), member["end"]
        if name in members:
            raise PlanError(f"{name}: given twice")
        if name in _LISTS:
            members[name] = _numbers(name, member["list"])
        elif name in _NUMBERS:
            if member["number"] is None:
                raise PlanError(f"{name}: not a whole number")
            members[name] = int(member["number"])
        elif name in _TEXTS:
            if member["text"] is None:
                raise PlanError(f"{name}: not a text")
            members[name] = member["text"]
        else:
            raise PlanError(f"{name}: not part of a plan of version 1")
    if text[position:].strip(" \t\r\n"):
        raise PlanError("text after the plan")
    for name in (*_TEXTS, *_NUMBERS, *_LISTS):
        if name not in members:
            raise PlanError(f"{name}: missing")
    return members


def _numbers(name: str, text: str | None) -> list[int]:
    if text is None:
        raise PlanError(f"{name}: not a list of whole numbers")
    if text.count(",") >= PARTS_MAX:
        raise PlanError(f"{name}: over the limit of {PARTS_MAX} parts")
    if _LONG.search(text):
        raise PlanError(f"{name}: a number of 20 digits or more")
    try:
        return list(json.loads(f"[{text}]"))
    except ValueError:
        raise PlanError(f"{name}: not a list of whole numbers") from None


def _plan(members: dict[str, Any]) -> MovingPlan:
    if members["format"] != "canopy-moving":
        raise PlanError(f"format: {members['format'][:80]!r} is not 'canopy-moving'")
    if members["version"] != 1:
        raise PlanError(f"version: {members['version']} is not 1")
    if members["fabric"] not in _FABRICS:
        raise PlanError(f"fabric: {members['fabric'][:80]!r} is neither 'rails' nor 'full'")
    if members["number"] >= 1 << 64:
        raise PlanError("number: not below 2^64")
    _check_times(members["seconds"], members["seconds_bound"])
    shape = MovingShape(members["ranks"], members["box_size"], _FABRICS[members["fabric"]])
    lists = [members[name] for name in _LISTS]
    return MovingPlan.make(members["number"], shape, lists, members["seconds"], members["seconds_bound"])


def _check_times(seconds: str, bound: str) -> None:
    times = []
    for name, text in (("seconds", seconds), ("seconds_bound", bound)):
        matched = _TIME.fullmatch(text)
        if matched is None:
            raise PlanError(f"{name}: {text[:80]!r} is not a fraction such as '1/2'")
        times.append(Fraction(int(matched[1]), int(matched[2] or 1)))
    if times[1] > times[0]:
        raise PlanError("seconds_bound: greater than seconds")
