"""How the ranks of a group come to use the same plans, or none.

Everything goes through the group's store while the group is made. Rank 0 first says where plans come from; if it has
asked for them itself, the files follow. Then each rank states the digest of its plans and its device. Rank 0 compares,
and all obey its verdict. That takes a few writes and reads of each rank, and no message between ranks.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from canopy_torch.choice import PlanFile, PlanSet
from canopy_torch.server import PlanServer
from canopy_torch.settings import Settings, SettingsError, here, is_strict
from canopy_torch.source import TOTAL_MAX, NoPlansError, SourceError, plan_with_command, read_folder

PIECE_BYTES = 4 << 20
"""Values of torch's TCP store have at most 8 MiB."""
REASON_MAX = 2000
"""Longest reason, in characters, that a rank states."""


class AgreementError(RuntimeError):
    """`CANOPY_STRICT=1` is set, and the ranks have no common plans."""


class Store(Protocol):
    """What is used of `torch.distributed.Store`."""

    def set(self, key: str, value: Any) -> None: ...

    def get(self, key: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Agreement:
    """The result, alike on all ranks but for their own programs."""

    plans: PlanSet | None
    source: str
    """Where the plans come from, for people."""
    why_not: str | None
    """Why no plans are used."""


def agree(store: Store, rank: int, rank_count: int, ranks: Sequence[int]) -> Agreement:
    """Finds the plans of a group; `ranks` are its ranks in the default group, empty for that group itself.

    Errors: `AgreementError`, and those of the store if a rank does not come.
    """
    return _Talk(store, rank, rank_count, ranks).agree()


class _Talk:
    def __init__(self, store: Store, rank: int, rank_count: int, ranks: Sequence[int]) -> None:
        self._store, self._rank, self._rank_count, self._ranks = store, rank, rank_count, tuple(ranks)
        self._settings: Settings | None = None
        self._problem: str | None = None
        self._is_missing = False
        """Whether the folder has no plans for the number of a sub-group: no error even if strict."""
        try:
            self._settings = Settings.read()
        except SettingsError as error:
            self._problem = str(error)

    def agree(self) -> Agreement:
        source, plans = self._plans()
        state = {
            "digest": plans.digest if plans is not None else None,
            "problem": self._problem and self._problem[:REASON_MAX],
            "place": here(),
            "strict": is_strict() and not self._is_missing,
        }
        self._put(f"rank/{self._rank}", state)
        if self._rank == 0:
            states = [self._get(f"rank/{rank}") for rank in range(self._rank_count)]
            why_not = verdict(states, source)
            strict = any(state["strict"] for state in states)
            self._put("verdict", {"why_not": why_not, "strict": strict, "places": [state["place"] for state in states]})
        decided = self._get("verdict")
        if plans is not None and decided["why_not"] is None:
            plans = plans.placed(decided["places"])
            if len(plans) == 0:
                decided["why_not"] = "; ".join(dict.fromkeys(refused.why for refused in plans.refused))[
                    :REASON_MAX
                ] or (f"no plan is for {self._rank_count} ranks")
        if decided["why_not"] is not None:
            if decided["strict"]:
                self._part()
                raise AgreementError(f"canopy: {decided['why_not']} (CANOPY_STRICT=1 makes this an error)")
            return Agreement(None, source, decided["why_not"])
        return Agreement(plans, source, None)

    # ---- plans

    def _plans(self) -> tuple[str, PlanSet | None]:
        """Where plans come from, and those of this rank."""
        if self._rank == 0:
            source, files = self._first()
        else:
            source, files = self._next()
        if files is None:
            return source, None
        return source, PlanSet.read(files, self._rank, self._rank_count)

    def _first(self) -> tuple[str, list[PlanFile] | None]:
        """Rank 0: finds the source and says so to the others."""
        settings = self._settings
        source, files = "none", None
        try:
            if settings is None:
                source = "unknown"
            elif settings.plan_dir is not None:
                source = "folder"
                files = read_folder(settings.plan_dir, self._rank_count)
            elif settings.server is not None and (settings.job is not None or settings.topology is not None):
                source = f"server {settings.server}"
                files = PlanServer(settings).files(self._rank_count, self._ranks)
            elif settings.topology is not None:
                source = f"plan of {settings.topology}"[:200]
                files = plan_with_command(settings, self._rank_count, self._ranks)
        except SourceError as error:
            self._fail(error)
        except Exception as error:  # The others wait for an answer, whatever happens here.
            self._problem = f"{type(error).__name__}: {error}"
        shared = pack(files) if files is not None and source != "folder" else []
        for number, piece in enumerate(shared):
            self._store.set(f"canopy/files/{number}", piece)
        self._put("source", {"source": source, "pieces": len(shared)})
        return source, files

    def _next(self) -> tuple[str, list[PlanFile] | None]:
        """The other ranks: do as rank 0 says."""
        said = self._get("source")
        source, settings = str(said["source"]), self._settings
        try:
            if source == "folder":
                if settings is None:
                    return source, None
                if settings.plan_dir is None:
                    raise SourceError("CANOPY_PLAN_DIR is not set, as it is on rank 0")
                return source, read_folder(settings.plan_dir, self._rank_count)
            if said["pieces"]:
                return source, unpack([self._store.get(f"canopy/files/{number}") for number in range(said["pieces"])])
        except SourceError as error:
            self._fail(error)
        except (ValueError, OSError, RecursionError) as error:
            self._problem = f"{type(error).__name__}: {error}"
        return source, None

    def _part(self) -> None:
        """Before an error for all: the store may end with rank 0, which waits until the others know why."""
        self._put(f"knows/{self._rank}", True)
        if self._rank == 0:
            try:
                for rank in range(self._rank_count):
                    self._get(f"knows/{rank}")
            except RuntimeError:
                # A rank that is gone needs no reason.
                pass

    def _fail(self, error: SourceError) -> None:
        self._problem = str(error)
        self._is_missing = isinstance(error, NoPlansError) and bool(self._ranks)

    def _put(self, key: str, value: Any) -> None:
        self._store.set(f"canopy/{key}", json.dumps(value))

    def _get(self, key: str) -> Any:
        return json.loads(self._store.get(f"canopy/{key}"))


def verdict(states: Sequence[Any], source: str) -> str | None:
    """Why the ranks cannot use plans; `None` if they can."""
    for rank, state in enumerate(states):
        if state["problem"] is not None:
            return f"rank {rank}: {state['problem']}"
    if source == "none":
        return "CANOPY_PLAN_DIR, CANOPY_TOPOLOGY or CANOPY_JOB is not set"
    for rank, state in enumerate(states):
        if state["digest"] != states[0]["digest"]:
            return f"rank {rank} has other plans than rank 0"
    return None


def pack(files: Sequence[PlanFile]) -> list[bytes]:
    """Files as pieces that the store takes, with a digest in front."""
    listed = [{"place": file.place, "bytes": len(file.content), "rank_map": file.rank_map} for file in files]
    head = json.dumps(listed).encode()
    content = zlib.compress(len(head).to_bytes(8, "big") + head + b"".join(file.content for file in files), 1)
    content = hashlib.sha256(content).digest() + content
    return [content[start : start + PIECE_BYTES] for start in range(0, len(content), PIECE_BYTES)]


def unpack(pieces: Sequence[bytes]) -> list[PlanFile]:
    """What `pack` packed. Errors: `SourceError`."""
    packed = b"".join(pieces)
    if hashlib.sha256(packed[32:]).digest() != packed[:32]:
        raise SourceError("the plans from rank 0 arrived damaged; start again")
    inflate = zlib.decompressobj()
    content = inflate.decompress(packed[32:], 2 * TOTAL_MAX)
    if inflate.unconsumed_tail:
        raise SourceError(f"the plans from rank 0 are over the limit of {2 * TOTAL_MAX} bytes")
    end = 8 + int.from_bytes(content[:8], "big")
    files, start = [], end
    for item in json.loads(content[8:end]):
        rank_map = None if item["rank_map"] is None else tuple(item["rank_map"])
        files.append(PlanFile(item["place"], content[start : start + item["bytes"]], rank_map))
        start += item["bytes"]
    return files
