"""Where plans come from: a folder that each rank reads, or files that rank 0 gets and the others receive from it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from canopy_torch.choice import PlanFile
from canopy_torch.reader import BYTES_MAX, parse_rank_map
from canopy_torch.settings import Settings

MANIFEST_MAX = 64 << 20
"""Largest manifest, in bytes."""
FILES_MAX = 4096
"""Most plans of a folder."""
TOTAL_MAX = 256 << 20
"""Most bytes of all plans of a folder."""


class SourceError(Exception):
    """Why there are no plans. The text says what to do."""


class NoPlansError(SourceError):
    """A folder is fine, and has no plan for this number of ranks."""


def read_folder(folder: str, rank_count: int) -> list[PlanFile]:
    """The plans of a bundle, or of a folder of XML files, for this number of ranks. Errors: `SourceError`."""
    try:
        manifest = os.path.join(folder, "manifest.json")
        files = _of_manifest(folder, manifest, rank_count) if os.path.exists(manifest) else _of_names(folder)
    except OSError as error:
        raise SourceError(
            f"cannot read {folder}: {error.strerror or error}; set CANOPY_PLAN_DIR to a folder of plans"
        ) from None
    if not files:
        raise NoPlansError(
            f"{folder} has no plan of format oneccl-xml for {rank_count} ranks; make some with `canopy plan bundle`"
        )
    return files


def _of_names(folder: str) -> list[PlanFile]:
    names = sorted(name for name in os.listdir(folder) if name.endswith(".xml"))
    if len(names) > FILES_MAX:
        raise SourceError(f"{folder} has {len(names)} files, over the limit of {FILES_MAX}")
    room = TOTAL_MAX
    files = []
    for name in names:
        content = _read(folder, name, min(room, BYTES_MAX))
        room -= len(content)
        files.append(PlanFile(name, content))
    return files


def _of_manifest(folder: str, manifest: str, rank_count: int) -> list[PlanFile]:
    try:
        document = json.loads(_read(folder, "manifest.json", MANIFEST_MAX))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{manifest} is not JSON: {str(error)[:100]}; make the folder again") from None
    try:
        listed = _listed(document, rank_count, manifest)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise SourceError(
            f"{manifest} is not the manifest of a bundle: {str(error)[:200]}; make the folder again"
        ) from None
    if len(listed) > FILES_MAX:
        raise SourceError(f"{manifest} lists {len(listed)} files, over the limit of {FILES_MAX}")
    room, files = TOTAL_MAX, {}
    for path, digest, rank_map in listed:
        if path in files:
            continue  # A file that serves several communicators.
        content = _read(folder, _inside(path, manifest), min(room, BYTES_MAX))
        room -= len(content)
        if hashlib.sha256(content).hexdigest() != digest:
            raise SourceError(f"{path} is not the file that {manifest} lists; make the folder again")
        files[path] = PlanFile(path, content, rank_map)
    return list(files.values())


def _listed(document: Any, rank_count: int, manifest: str) -> list[tuple[str, str, tuple[str, ...] | None]]:
    """Path, digest and devices of each file of a bundle (`items`) or of what `canopy job fetch` wrote (`files`)."""
    if document["kind"] == "plan-bundle":
        if document["format"] != "oneccl-xml":
            raise ValueError(f"its files are {str(document['format'])[:40]!r}, and not oneccl-xml")
        groups = [
            (item, item["files"]) for item in document["items"] if item["ranks"] == rank_count and item.get("files")
        ]
    elif document["kind"] == "job-bundle":
        groups = [(f, [f]) for f in document["files"] if f["format"] == "oneccl-xml" and f["ranks"] == rank_count]
    else:
        raise ValueError(f"its kind is {str(document['kind'])[:40]!r}")
    listed = []
    for item, files in groups:
        rank_map = item.get("rank_map")
        devices = None if rank_map is None else parse_rank_map(rank_map, rank_count, manifest)
        listed += [(str(file["path"]), str(file["sha256"]), devices) for file in files]
    return listed


def _inside(path: str, manifest: str) -> str:
    """A path below the folder, and nothing else."""
    if os.path.isabs(path) or ".." in path.split("/") or "\\" in path or "\0" in path:
        raise SourceError(f"{manifest} lists {path[:80]!r}, which is outside its folder")
    return path


def _read(folder: str, path: str, limit: int) -> bytes:
    with open(os.path.join(folder, path), "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise SourceError(
            f"{path} in {folder} is too large: the limits are {BYTES_MAX} bytes a file, {TOTAL_MAX} in all"
        )
    return content


def plan_with_command(settings: Settings, rank_count: int, ranks: Sequence[int]) -> list[PlanFile]:
    """Runs `canopy plan bundle` in a folder of its own. `ranks` of the topology are the group's; all, if empty."""
    assert settings.topology is not None, "the caller asks for plans of a topology"
    with tempfile.TemporaryDirectory(prefix="canopy-torch-") as work:
        folder = os.path.join(work, "plans")
        low, high = settings.sizes
        command = [settings.program, "plan", settings.topology, "--collective", ",".join(settings.collectives)]
        command += ["--sizes", f"{low}B..{high}B", "--format", "oneccl-xml", "--output", folder, "--quiet"]
        command += ["--deadline", f"{settings.planning_s:g}s"]
        if ranks:
            command += ["--communicator", "group=" + ",".join(map(str, ranks))]
        try:
            # The server's variable is for the server's own way; here the command plans by itself.
            environment = {name: value for name, value in os.environ.items() if name != "CANOPY_SERVER"}
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=settings.planning_s + 30,
                env=environment,
                check=False,
            )
        except FileNotFoundError:
            raise SourceError(
                f"there is no program {settings.program!r} on rank 0; install canopy, or set CANOPY_PROGRAM to its path"
            ) from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SourceError(f"{settings.program} gave no plans: {error}") from None
        if not os.path.isdir(folder):
            said = done.stderr.decode(errors="replace").strip()[-500:]
            raise SourceError(
                f"`canopy plan` made no plans for {settings.topology[:80]}: {said or f'exit status {done.returncode}'}"
            )
        return read_folder(folder, rank_count)
