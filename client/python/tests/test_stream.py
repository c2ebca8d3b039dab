"""The stream checks must object to every way in which a stream can be damaged."""

import copy
import hashlib
import io
import unittest

from canopy import v1
from canopy.stream import StreamError, receive

FILES = [b"first file", b"", b"the third one"]
PIECE_BYTES = 4


def digest(data):
    return hashlib.sha256(data).hexdigest()


def stream():
    """A faultless stream of three files, one of them empty."""
    artifacts = [v1.Artifact(size_bytes=len(data), sha256=digest(data)) for data in FILES]
    reply = v1.PlanResponse(plan=v1.Plan(name="plans/x", artifacts=artifacts))
    events = [
        v1.PlanEvent(accepted=v1.Accepted()),
        v1.PlanEvent(progress=v1.Progress(stage="trees")),
        v1.PlanEvent(final=reply),
    ]
    for index, data in enumerate(FILES):
        for offset in range(0, len(data), PIECE_BYTES):
            piece = data[offset : offset + PIECE_BYTES]
            content = v1.ContentPiece(artifact=index, offset=offset, data=piece, sha256=digest(piece))
            events.append(v1.PlanEvent(content=content))
    return numbered(events)


def numbered(events):
    events = [copy.deepcopy(event) for event in events]
    for sequence, event in enumerate(events):
        event.sequence = sequence
    return events


def collect(events):
    files = {}
    reply = receive(events, lambda index, _: files.setdefault(index, io.BytesIO()))
    return reply, [files[index].getvalue() for index in sorted(files)]


class Stream(unittest.TestCase):
    def test_a_faultless_stream_arrives(self):
        stages = []
        events = stream()
        receive(events, lambda *_: io.BytesIO(), lambda progress: stages.append(progress.stage))
        self.assertEqual(stages, ["trees"])
        reply, files = collect(events)
        self.assertEqual((reply.plan.name, files), ("plans/x", FILES))

    def test_every_missing_doubled_or_swapped_event_is_noticed(self):
        events = stream()
        for at in range(len(events)):
            if events[at].WhichOneof("event") == "progress":
                continue
            doubled = events[: at + 1] + events[at:]
            missing = events[:at] + events[at + 1 :]
            for broken in [doubled, missing]:
                self.refused(broken, at)
                self.refused(numbered(broken), at)
        for at in range(2, len(events) - 1):
            swapped = [*events]
            swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
            self.refused(numbered(swapped), at)

    def test_every_flipped_bit_is_noticed(self):
        for at, event in enumerate(stream()):
            if event.WhichOneof("event") != "content":
                continue
            for honest_piece in [False, True]:
                broken = stream()
                piece = broken[at].content
                piece.data = bytes([piece.data[0] ^ 1]) + piece.data[1:]
                if honest_piece:
                    piece.sha256 = digest(piece.data)
                self.refused(broken, at)

    def test_a_piece_is_never_written_past_the_end_or_beside_the_plan(self):
        data = b"more"
        for artifact, offset in [(0, len(FILES[0])), (1, 0), (3, 0)]:
            content = v1.ContentPiece(artifact=artifact, offset=offset, data=data, sha256=digest(data))
            broken = numbered([*stream(), v1.PlanEvent(content=content)])
            self.refused(broken, artifact)

    def refused(self, events, what):
        with self.assertRaises(StreamError, msg=what):
            collect(events)


if __name__ == "__main__":
    unittest.main()
