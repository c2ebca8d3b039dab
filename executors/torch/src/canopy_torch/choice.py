"""The plans of a group of ranks, and which of them serves a call."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from canopy_torch.plan import Collective, PlanError
from canopy_torch.program import Programs
from canopy_torch.reader import read_plan
from canopy_torch.symbols import check


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A file that should contain a plan."""

    place: str
    content: bytes
    rank_map: tuple[str, ...] | None = None
    """The devices of the ranks, if the folder's manifest states them."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A plan that is not used, and why."""

    place: str
    why: str


class PlanSet:
    """Plans for one number of ranks, checked, with the programs of one rank."""

    def __init__(self, plans: Sequence[Programs], refused: Sequence[Refused]) -> None:
        self._plans = tuple(plans)
        self.refused = tuple(refused)

    @classmethod
    def read(cls, files: Iterable[PlanFile], rank: int, rank_count: int) -> PlanSet:
        """Reads and checks files. Those for other numbers of ranks are left out; those that fail are in `refused`."""
        plans: list[Programs] = []
        refused: list[Refused] = []
        for file in files:
            try:
                plan = read_plan(file.content, file.place)
                if plan.head.rank_count != rank_count:
                    continue
                if file.rank_map is not None and plan.head.rank_map not in (None, file.rank_map):
                    raise PlanError(
                        f"{file.place}: the manifest states other devices than the file; fetch the folder again"
                    )
                checked = check(plan, file.place).of(rank)
                if file.rank_map is not None:
                    checked = dataclasses.replace(
                        checked, head=dataclasses.replace(checked.head, rank_map=file.rank_map)
                    )
                plans.append(Programs(checked))
            except PlanError as error:
                refused.append(Refused(file.place, str(error)))
        return cls(plans, refused)

    @property
    def digest(self) -> str:
        """Equal for sets that answer every call alike."""
        text = hashlib.sha256(b"canopy-torch plans 1\n")
        for plan in self._plans:
            head = plan.checked.head
            text.update(f"{head.digest} {','.join(head.rank_map or ())}\n".encode())
        return text.hexdigest()

    def __len__(self) -> int:
        return len(self._plans)

    def placed(self, places: Sequence[str]) -> PlanSet:
        """The plans that are for these devices, `host:index` for each rank, or for any."""
        kept: list[Programs] = []
        refused = list(self.refused)
        for plan in self._plans:
            head = plan.checked.head
            other = next((r for r, wanted in enumerate(head.rank_map or ()) if not same_place(wanted, places[r])), None)
            if other is None or head.rank_map is None:
                kept.append(plan)
            else:
                why = f"rank {other} is on {places[other]}, and the plan is for {head.rank_map[other]}"
                refused.append(Refused(head.name, why))
        return PlanSet(kept, refused)

    def find(self, collective: Collective, root: int | None, size_bytes: int, same_memory: bool) -> Programs | None:
        """The plan for a call, one for the same memory state if there is one. Depends on nothing that ranks may see
        differently: `same_memory` is a property of the call's kind, not of its tensors."""
        found = [plan for plan in self._plans if plan.checked.head.fits(collective, root, size_bytes)]
        return next((plan for plan in found if plan.checked.head.in_place == same_memory), found[0] if found else None)


def same_place(wanted: str, found: str) -> bool:
    """Whether two devices are the same. A host may be named with or without its domain."""
    wanted_host, _, wanted_index = wanted.lower().rpartition(":")
    found_host, _, found_index = found.lower().rpartition(":")
    if wanted_index != found_index:
        return False
    if "." in wanted_host and "." in found_host:
        return wanted_host == found_host
    return wanted_host.partition(".")[0] == found_host.partition(".")[0]
