"""What the environment says."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

SIZES = "1MiB..1GiB"
COLLECTIVES = ("allreduce", "allgather", "reduce-scatter", "broadcast")
KNOWN_COLLECTIVES = (*COLLECTIVES, "reduce", "gather", "scatter", "all-to-all")
PLANNING_S = 60.0

_UNITS = {"B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}


class SettingsError(ValueError):
    """A variable of the environment has a value that means nothing."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Variables of the environment, read when a group is made."""

    plan_dir: str | None
    """`CANOPY_PLAN_DIR`: a bundle, or a folder of plans."""
    server: str | None
    """`CANOPY_SERVER`: https://host:port, unix:/path or host:port."""
    job: str | None
    """`CANOPY_JOB`: the job whose leases name the plans."""
    topology: str | None
    """`CANOPY_TOPOLOGY`: a generator expression or a file, for plans made at the start."""
    program: str
    """`CANOPY_PROGRAM`: the command that plans where no server is named; `canopy` by default."""
    sizes: tuple[int, int]
    """`CANOPY_SIZES`: smallest and largest message in bytes that plans are made for."""
    collectives: tuple[str, ...]
    """`CANOPY_COLLECTIVES`: what plans are made for, separated by commas."""
    planning_s: float
    """`CANOPY_PLANNING_SECONDS`: time for plans made at the start, in seconds."""
    is_strict: bool
    """`CANOPY_STRICT=1`: ranks without common plans are an error."""
    here: str
    """`host:index` of this process; the index is `LOCAL_RANK`, or `?`."""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Errors: `SettingsError`."""

        def value(name: str) -> str | None:
            return environment.get(name) or None

        return cls(
            plan_dir=value("CANOPY_PLAN_DIR"),
            server=value("CANOPY_SERVER"),
            job=value("CANOPY_JOB"),
            topology=value("CANOPY_TOPOLOGY"),
            program=value("CANOPY_PROGRAM") or "canopy",
            sizes=_sizes(value("CANOPY_SIZES") or SIZES),
            collectives=_collectives(value("CANOPY_COLLECTIVES") or ",".join(COLLECTIVES)),
            planning_s=_seconds(value("CANOPY_PLANNING_SECONDS")),
            is_strict=is_strict(environment),
            here=here(environment),
        )


def is_strict(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether ranks without common plans are an error."""
    return environment.get("CANOPY_STRICT") == "1"


def here(environment: Mapping[str, str] = os.environ) -> str:
    """`host:index` of this process."""
    return f"{socket.gethostname()}:{environment.get('LOCAL_RANK') or '?'}"


def _sizes(text: str) -> tuple[int, int]:
    first, dots, last = text.partition("..")
    sizes = (_size(first), _size(last if dots else first))
    if sizes[0] > sizes[1]:
        raise SettingsError(f"CANOPY_SIZES is {text!r}, which ends before it begins; write the smaller size first")
    return sizes


def _size(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,12})([A-Za-z]*)", text.strip())
    unit = _UNITS.get(match[2].upper() or "B") if match else None
    if match is None or unit is None:
        raise SettingsError(f"CANOPY_SIZES has {text[:40]!r}; write sizes such as 1MiB..1GiB")
    return int(match[1]) * unit


def _collectives(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in KNOWN_COLLECTIVES:
            raise SettingsError(f"CANOPY_COLLECTIVES has {name[:40]!r}; use {', '.join(KNOWN_COLLECTIVES)}")
    return names


def _seconds(text: str | None) -> float:
    if text is None:
        return PLANNING_S
    if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,3})?", text) or float(text) == 0:
        raise SettingsError(f"CANOPY_PLANNING_SECONDS is {text[:40]!r}; write seconds such as 60")
    return float(text)
