"""What ran on plans, and what did not, for `canopy_torch.report()`."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any

GROUPS_MAX = 1024
"""Groups that a report covers; older ones are left out."""


@dataclass(slots=True)
class _Calls:
    calls: int = 0
    size_bytes: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Statistics:
    """Counts of one group."""

    group: str
    rank: int
    rank_count: int
    source: str
    plan_count: int
    why_not: str | None
    refused: tuple[tuple[str, str], ...] = ()
    _calls: dict[tuple[str, str, str | None], _Calls] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def called(self, collective: str, ran_on: str, why: str | None, size_bytes: int) -> None:
        """Counts a call. `why` says why it did not run on a plan."""
        with self._lock:
            calls = self._calls.setdefault((collective, ran_on, why), _Calls())
            calls.calls += 1
            calls.size_bytes += size_bytes

    def took(self, collective: str, ran_on: str, seconds: float) -> None:
        """Adds the time of a call that ran on a plan."""
        with self._lock:
            self._calls.setdefault((collective, ran_on, None), _Calls()).seconds += seconds

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        with self._lock:
            rows = [
                {"collective": collective, "ran_on": ran_on, "why": why, "calls": c.calls, "bytes": c.size_bytes}
                | ({"seconds": round(c.seconds, 6)} if why is None else {})
                for (collective, ran_on, why), c in self._calls.items()
            ]
        return {
            "group": self.group,
            "rank": self.rank,
            "ranks": self.rank_count,
            "source": self.source,
            "plans": self.plan_count,
            "why_not": self.why_not,
            "refused": [{"plan": plan, "why": why} for plan, why in self.refused],
            "calls": rows,
        }


_groups: deque[Statistics] = deque(maxlen=GROUPS_MAX)


def keep(statistics: Statistics) -> None:
    """Adds a group to the report of this process."""
    _groups.append(statistics)


def report() -> list[dict[str, Any]]:
    """For each group of this process: its plans, and its calls by collective and by what they ran on.

    `ran_on` is the name of a plan, or of the inner backend, and `why` says why a call did not run on a plan. `bytes`
    are those of whole messages; `seconds` are this rank's, from the start of a plan to its end.
    """
    return [statistics.as_dict() for statistics in list(_groups)]
