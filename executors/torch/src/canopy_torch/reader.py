"""Reads plans of format `oneccl-xml`, version 1. The grammar is in docs/runtimes/oneccl.md.

The reader refuses everything the grammar does not list: document types and with them entities, processing
instructions, text, CDATA, unknown elements and attributes. Sizes are limited before anything is stored.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import NoReturn
from xml.parsers import expat

from canopy_torch.plan import Buffer, Collective, Local, Message, Plan, PlanError, PlanHead, RankProgram, Span, Step

BYTES_MAX = 64 << 20
"""Largest file, in bytes."""
RANKS_MAX = 65535
META_MAX = 64
VALUE_MAX = 1 << 20
"""Longest attribute, in characters: a rank map of 65535 ranks has about a million."""
INSTRUCTIONS_MAX = 1 << 21
"""Most messages and local instructions of all ranks: they take about 200 bytes each in memory."""
CHUNKS_MAX = 1 << 22
"""Most chunks of all ranks' buffers."""
MOVES_MAX = 1 << 23
"""Most chunks moved by all instructions."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,63}")
_PLACE = re.compile(r"[^\s,\x00-\x1f\x7f-\x9f]{1,255}:[0-9]{1,10}")
_BUFFERS: tuple[Buffer, ...] = ("i", "o", "s")
_PARENTS = {
    "onecclplan": None,
    "meta": "onecclplan",
    "routes": "onecclplan",
    "rank": "onecclplan",
    "step": "rank",
    "send": "step",
    "recv": "step",
    "sync": "step",
    "copy": "step",
    "reduce": "step",
}


def read_plan(text: bytes, place: str) -> Plan:
    """Reads a file. `place` names it in messages. Errors: `PlanError`. Cost: linear in the text."""
    if len(text) > BYTES_MAX:
        raise PlanError(
            f"{place}: {len(text)} bytes are over the limit of {BYTES_MAX}; plan with fewer ranks or chunks"
        )
    return _Reader(place).read(text)


class _Reader:
    """Follows the text once. Handlers of expat get the elements in order."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._open: list[str] = []
        self._parser = expat.ParserCreate()
        self._head: dict[str, str] = {}
        self._meta: dict[str, str] = {}
        self._rank_count = 0
        self._programs: dict[int, RankProgram] = {}
        self._rank: tuple[int, int, int, int] | None = None
        self._steps: list[Step] = []
        self._instructions = self._chunks = self._moves = 0
        self._begin_step()

    def read(self, text: bytes) -> Plan:
        parser = self._parser
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._refuse("document types")
        parser.ProcessingInstructionHandler = self._refuse("processing instructions")
        parser.StartCdataSectionHandler = self._refuse("CDATA sections")
        try:
            # In pieces: expat allocates in proportion to what it is given at once.
            for start in range(0, len(text), 1 << 16):
                parser.Parse(text[start : start + (1 << 16)], False)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise PlanError(f"{self._place}: not XML: {error}") from None
        except (ValueError, LookupError) as error:
            if isinstance(error, PlanError):
                raise
            # Encodings that Python does not know.
            raise PlanError(f"{self._place}: not XML in UTF-8: {error}") from None
        return self._finish(hashlib.sha256(text).hexdigest())

    # ---- elements

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        parent = self._open[-1] if self._open else None
        if tag not in _PARENTS or _PARENTS[tag] != parent:
            where = f"in <{parent}>" if parent else "as the first element"
            self._fail(f"<{_shown(tag)}> {where} is not part of a oneCCL plan of version 1")
        for value in attributes.values():
            if len(value) > VALUE_MAX:
                self._fail(f"an attribute of <{tag}> has over {VALUE_MAX} characters")
        self._open.append(tag)
        _STARTS[tag](self, attributes)

    def _end(self, tag: str) -> None:
        self._open.pop()
        if tag == "step":
            self._end_step()
        elif tag == "rank":
            self._end_rank()

    def _text(self, text: str) -> None:
        if text.strip(" \t\r\n"):
            self._fail("text between elements is not part of a plan")

    def _start_plan(self, attributes: dict[str, str]) -> None:
        known = ("version", "name", "coll", "root", "nranks", "nchunks", "inplace", "instances", "minbytes", "maxbytes")
        self._known("onecclplan", attributes, known)
        if attributes.get("version") != "1":
            self._fail(f"version {_shown(attributes.get('version', ''))!r} is not supported; write version 1")
        self._head = attributes
        self._rank_count = self._number("onecclplan", attributes, "nranks")
        if not 2 <= self._rank_count <= RANKS_MAX:
            self._fail(f"nranks is {self._rank_count}; use 2 to {RANKS_MAX}")

    def _start_meta(self, attributes: dict[str, str]) -> None:
        self._known("meta", attributes, ("key", "value"))
        key = self._label("meta", attributes, "key")
        if self._programs or key in self._meta or len(self._meta) == META_MAX:
            self._fail(f"<meta> {key} is one too many: keys differ, stand before all ranks, and are at most {META_MAX}")
        self._meta[key] = self._given("meta", attributes, "value")

    def _start_routes(self, _: dict[str, str]) -> None:
        self._fail("the plan names routes through the fabric, which torch cannot choose; plan without routes")

    def _start_rank(self, attributes: dict[str, str]) -> None:
        self._known("rank", attributes, ("id", "i_chunks", "o_chunks", "s_chunks"))
        names = ("id", "i_chunks", "o_chunks", "s_chunks")
        rank, inputs, outputs, scratch = (self._number("rank", attributes, name) for name in names)
        if rank >= self._rank_count or rank in self._programs:
            self._fail(f"<rank> {rank} is not one of 0 to {self._rank_count - 1}, or it is there twice")
        self._chunks += inputs + outputs + scratch
        if self._chunks > CHUNKS_MAX:
            self._fail(f"the ranks have over {CHUNKS_MAX} chunks; plan with fewer chunks")
        self._rank, self._steps = (rank, inputs, outputs, scratch), []

    def _end_rank(self) -> None:
        assert self._rank is not None, "the parser closes what it has opened"
        rank, inputs, outputs, scratch = self._rank
        self._programs[rank] = RankProgram(inputs, outputs, scratch, tuple(self._steps))
        self._rank = None

    # ---- steps: send* recv* [ sync (copy | reduce)* sync? ]

    def _begin_step(self) -> None:
        self._sends: list[Message] = []
        self._receives: list[Message] = []
        self._locals: list[Local] = []
        self._syncs = 0

    def _start_step(self, attributes: dict[str, str]) -> None:
        self._known("step", attributes, ("t",))
        step = self._number("step", attributes, "t")
        if step != len(self._steps):
            self._fail(f"step {step} follows {len(self._steps)} steps; they are numbered 0, 1, 2, …")
        if self._steps and not self._synced:
            self._fail(f"step {step - 1} has no <sync>, which every step needs that another one follows")
        self._begin_step()

    def _end_step(self) -> None:
        self._synced = self._syncs > 0
        self._steps.append(Step(tuple(self._sends), tuple(self._receives), tuple(self._locals)))

    def _start_send(self, attributes: dict[str, str]) -> None:
        if self._receives or self._syncs:
            self._fail("<send> follows <recv> or <sync>; sends come first in a step")
        self._sends.append(self._message("send", attributes))

    def _start_receive(self, attributes: dict[str, str]) -> None:
        if self._syncs:
            self._fail("<recv> follows <sync>; messages come first in a step")
        self._receives.append(self._message("recv", attributes))

    def _start_sync(self, attributes: dict[str, str]) -> None:
        self._known("sync", attributes, ("scope",))
        scope = attributes.get("scope", "local")
        if scope == "all":
            self._fail('<sync scope="all"> waits for all ranks, which is not supported; use scope="local"')
        if scope != "local":
            self._fail(f"the scope {_shown(scope)!r} of <sync> is neither local nor all")
        self._syncs += 1
        if self._syncs > 2:
            self._fail("<sync> is one too many in this step")

    def _start_copy(self, attributes: dict[str, str]) -> None:
        self._add_local("copy", attributes)

    def _start_reduce(self, attributes: dict[str, str]) -> None:
        self._add_local("reduce", attributes)

    def _add_local(self, tag: str, attributes: dict[str, str]) -> None:
        self._known(tag, attributes, ("src", "srcoff", "dst", "dstoff", "cnt"))
        if self._syncs != 1:
            self._fail(f"<{tag}> does not stand after the first <sync> of its step")
        source = self._span(tag, attributes, "src", "srcoff")
        target = self._span(tag, attributes, "dst", "dstoff")
        self._locals.append(Local(tag == "reduce", source, target))

    def _message(self, tag: str, attributes: dict[str, str]) -> Message:
        self._known(
            tag, attributes, ("peer", "buf", "off", "cnt", "route") if tag == "send" else ("peer", "buf", "off", "cnt")
        )
        if "route" in attributes:
            self._fail("<send> names a route through the fabric, which torch cannot choose; plan without routes")
        assert self._rank is not None, "messages stand in ranks"
        peer = self._number(tag, attributes, "peer")
        if peer >= self._rank_count or peer == self._rank[0]:
            self._fail(f"peer {peer} of <{tag}> in rank {self._rank[0]} is not another rank of {self._rank_count}")
        return Message(peer, self._span(tag, attributes, "buf", "off"))

    def _span(self, tag: str, attributes: dict[str, str], buffer_key: str, first_key: str) -> Span:
        assert self._rank is not None, "spans stand in ranks"
        buffer = self._buffer(tag, attributes, buffer_key)
        first, count = self._number(tag, attributes, first_key), self._number(tag, attributes, "cnt")
        chunks = self._rank[1 + _BUFFERS.index(buffer)]
        if count == 0 or first + count > chunks:
            self._fail(f"<{tag}> names {count} chunks from {first} on of a buffer {buffer!r} with {chunks}")
        self._instructions += 1
        self._moves += count
        if self._instructions > INSTRUCTIONS_MAX or self._moves > MOVES_MAX:
            self._fail(
                f"the plan has over {INSTRUCTIONS_MAX} instructions or moves over {MOVES_MAX} chunks; plan with fewer"
            )
        return Span(buffer, first, count)

    # ---- attributes

    def _known(self, tag: str, attributes: dict[str, str], names: tuple[str, ...]) -> None:
        for name in attributes:
            if name not in names:
                self._fail(f"<{tag}> has no attribute {_shown(name)}")

    def _given(self, tag: str, attributes: dict[str, str], name: str) -> str:
        value = attributes.get(name)
        if value is None:
            self._fail(f"<{tag}> lacks {name}")
        return value

    def _number(self, tag: str, attributes: dict[str, str], name: str, default: str | None = None) -> int:
        value = attributes.get(name, default)
        if value is None:
            self._fail(f"<{tag}> lacks {name}")
        if not _NUMBER.fullmatch(value):
            self._fail(f"{name} of <{tag}> is {_shown(value)!r}; write a plain decimal number")
        return int(value)

    def _label(self, tag: str, attributes: dict[str, str], name: str) -> str:
        value = self._given(tag, attributes, name)
        if not _LABEL.fullmatch(value):
            self._fail(f"{name} of <{tag}> is {_shown(value)!r}; use 1 to 63 letters, digits, `_`, `-` and `.`")
        return value

    def _buffer(self, tag: str, attributes: dict[str, str], name: str) -> Buffer:
        value = self._given(tag, attributes, name)
        for buffer in _BUFFERS:
            if value == buffer:
                return buffer
        self._fail(f"{name} of <{tag}> is {_shown(value)!r}; buffers are i, o and s")

    # ---- the whole

    def _finish(self, digest: str) -> Plan:
        if self._rank_count == 0:
            self._fail("the file is empty")
        if len(self._programs) != self._rank_count:
            self._fail(f"the file has {len(self._programs)} of {self._rank_count} ranks")
        attributes = self._head
        try:
            collective = Collective(attributes.get("coll", ""))
        except ValueError:
            self._fail(f"coll is {_shown(attributes.get('coll', ''))!r}, which is not a collective of this format")
        instances = self._number("onecclplan", attributes, "instances", "1")
        if not 1 <= instances <= 64:
            self._fail(f"instances is {instances}; use 1 to 64")
        chunk_count = self._number("onecclplan", attributes, "nchunks")
        if chunk_count == 0 or (collective.has_shares and chunk_count % self._rank_count):
            self._fail(f"nchunks {chunk_count} cannot be shared equally by {self._rank_count} ranks")
        bytes_min = self._number("onecclplan", attributes, "minbytes", "0")
        bytes_max = self._number("onecclplan", attributes, "maxbytes", "0")
        if 0 < bytes_max < bytes_min:
            self._fail(f"no message is from minbytes {bytes_min} up to maxbytes {bytes_max}")
        head = PlanHead(
            name=self._label("onecclplan", attributes, "name"),
            digest=digest,
            collective=collective,
            root=self._root(collective),
            rank_count=self._rank_count,
            chunk_count=chunk_count,
            in_place=self._in_place(),
            bytes_min=bytes_min,
            bytes_max=bytes_max or None,
            rank_map=self._rank_map(),
        )
        return Plan(head, tuple(self._programs[rank] for rank in range(self._rank_count)))

    def _root(self, collective: Collective) -> int | None:
        if collective.has_root != ("root" in self._head):
            self._fail(f"{collective.value} {'needs a root' if collective.has_root else 'has no root'}")
        if not collective.has_root:
            return None
        root = self._number("onecclplan", self._head, "root")
        if root >= self._rank_count:
            self._fail(f"root {root} is not one of {self._rank_count} ranks")
        return root

    def _in_place(self) -> bool:
        value = self._head.get("inplace", "0")
        if value not in ("0", "1"):
            self._fail(f"inplace is {_shown(value)!r}; write 0 or 1")
        return value == "1"

    def _rank_map(self) -> tuple[str, ...] | None:
        value = self._meta.get("rank_map")
        return None if value is None else parse_rank_map(value.split(","), self._rank_count, self._place)

    def _refuse(self, what: str) -> Callable[..., None]:
        def handler(*_: object) -> None:
            self._fail(f"{what} are not part of a plan")

        return handler

    def _fail(self, problem: str) -> NoReturn:
        raise PlanError(f"{self._place}, line {self._parser.CurrentLineNumber}: {problem}")


def parse_rank_map(items: object, rank_count: int, place: str) -> tuple[str, ...]:
    """Checks the devices of the ranks: `host:index` for each rank."""
    if not isinstance(items, list) or len(items) != rank_count:
        raise PlanError(f"{place}: the rank map does not name a device for each of {rank_count} ranks")
    for item in items:
        if not isinstance(item, str) or not _PLACE.fullmatch(item):
            raise PlanError(f"{place}: {_shown(str(item))!r} in the rank map is not a device; write HOST:INDEX")
    return tuple(items)


def _shown(text: str) -> str:
    """At most 40 characters of a text from a file, for a message."""
    return text if len(text) <= 40 else text[:40] + "…"


_STARTS: dict[str, Callable[[_Reader, dict[str, str]], None]] = {
    "onecclplan": _Reader._start_plan,
    "meta": _Reader._start_meta,
    "routes": _Reader._start_routes,
    "rank": _Reader._start_rank,
    "step": _Reader._start_step,
    "send": _Reader._start_send,
    "recv": _Reader._start_receive,
    "sync": _Reader._start_sync,
    "copy": _Reader._start_copy,
    "reduce": _Reader._start_reduce,
}
