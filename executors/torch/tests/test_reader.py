"""Files that are not plans, or that would take much time or memory, are refused with a clear text."""

import hashlib
import json
import os
import random
import tempfile
import time
import unittest
from pathlib import Path

from canopy_torch import reader, source
from canopy_torch.choice import PlanFile, PlanSet
from canopy_torch.plan import PlanError
from canopy_torch.reader import read_plan
from canopy_torch.symbols import check

PLANS = Path(os.environ["CANOPY_TEST_PLANS"])
EXCHANGE = (Path(__file__).parent / "plans" / "exchange.xml").read_text()


def refusal(text: str | bytes) -> str:
    """Why a file is refused, by the reader or by the run on symbols."""
    try:
        check(read_plan(text if isinstance(text, bytes) else text.encode(), "x.xml"), "x.xml")
    except PlanError as error:
        return str(error)
    return "nothing"


class Reader(unittest.TestCase):
    def refused(self, old: str, new: str, why: str) -> None:
        """The plan by hand with one change."""
        self.assertIn(old, EXCHANGE)
        self.assertIn(why, refusal(EXCHANGE.replace(old, new, 1)))

    def test_the_plan_itself_is_fine(self) -> None:
        self.assertEqual(refusal(EXCHANGE), "nothing")

    def test_what_is_not_xml(self) -> None:
        for text in (
            "",
            "plan",
            "{}",
            "<onecclplan",
            EXCHANGE[:300],
            EXCHANGE + "<",
            EXCHANGE.replace("</step>", "", 1),
        ):
            self.assertIn("not XML", refusal(text), text[:40])
        self.assertIn("not XML", refusal(b"\xff\xfe\x00"))
        self.assertIn("not XML", refusal(EXCHANGE.replace("UTF-8", "x-user-defined", 1)))

    def test_what_xml_can_do_besides(self) -> None:
        bomb = '<!DOCTYPE onecclplan [<!ENTITY a "aaaaaaaaaa">' + "".join(
            f'<!ENTITY {c} "{f"&{p};" * 10}">' for p, c in zip("abcdefgh", "bcdefghi")
        )
        body = EXCHANGE.split("?>", 1)[1]
        self.assertIn("document types are not part", refusal(bomb + "]>" + body.replace('value="hand"', 'value="&i;"')))
        self.assertIn("document types are not part", refusal('<!DOCTYPE p SYSTEM "file:///etc/passwd">' + body))
        self.refused('value="hand"', 'value="&x;"', "undefined entity")
        self.refused("<sync/>", "<?php?><sync/>", "processing instructions are not part")
        self.refused("<sync/>", "<![CDATA[x]]><sync/>", "CDATA sections are not part")
        self.refused("<sync/>", "text<sync/>", "text between elements is not part")

    def test_what_the_grammar_does_not_list(self) -> None:
        self.refused("<onecclplan ", "<plan ", "<plan> as the first element")
        self.refused("<sync/>", "<sink/>", "<sink> in <step>")
        self.refused("<step ", "<meta key='a' value='b'/><step ", "<meta> in <rank>")
        self.refused("<sync/>", '<sync on="1"/>', "<sync> has no attribute on")
        self.refused('version="1"', 'version="2"', "version '2' is not supported")
        self.refused('name="exchange"', 'name="a b"', "use 1 to 63 letters")
        self.refused('coll="allreduce"', 'coll="barrier"', "is not a collective")
        self.refused('coll="allreduce"', 'coll="broadcast"', "broadcast needs a root")
        self.refused('coll="allreduce"', 'coll="allreduce" root="0"', "allreduce has no root")
        self.refused('coll="allreduce"', 'coll="reduce" root="2"', "root 2 is not one of 2 ranks")
        self.refused('nranks="2"', 'nranks="3"', "2 of 3 ranks")
        self.refused('nranks="2"', 'nranks="1"', "use 2 to 65535")
        self.refused('nranks="2"', 'nranks="٢"', "write a plain decimal number")
        self.refused('nchunks="2"', 'nchunks="0"', "cannot be shared equally")
        self.refused('inplace="1"', 'inplace="yes"', "write 0 or 1")
        self.refused('instances="3"', 'instances="65"', "use 1 to 64")
        self.refused('minbytes="0" maxbytes="0"', 'minbytes="9" maxbytes="8"', "no message is from")
        self.refused('<rank id="1"', '<rank id="0"', "it is there twice")
        self.refused('t="0"', 't="1"', "step 1 follows 0 steps")
        self.refused('peer="1"', 'peer="0"', "is not another rank")
        self.refused('peer="1"', 'peer="2"', "is not another rank")
        self.refused('buf="i"', 'buf="x"', "buffers are i, o and s")
        self.refused('off="0" cnt="2"', 'off="1" cnt="2"', "names 2 chunks from 1 on")
        self.refused('off="0" cnt="2"', 'off="0" cnt="0"', "names 0 chunks")
        self.refused('off="0" cnt="2"', 'off="-1" cnt="2"', "write a plain decimal number")
        self.refused('off="0" cnt="2"', 'off="0" cnt="99999999999999999999"', "write a plain decimal number")
        self.refused("<sync/>", "", "does not stand after the first <sync>")
        self.refused("<sync/>", '<sync scope="all"/>', "waits for all ranks, which is not supported")
        self.refused('cnt="2"/>', 'cnt="2" route="0"/>', "which torch cannot choose")
        self.refused('<rank id="0"', '<routes><route/></routes><rank id="0"', "which torch cannot choose")
        self.refused('value="hand"/>', 'value="hand"/><meta key="rank_map" value="a:0"/>', "for each of 2 ranks")
        self.refused('value="hand"/>', 'value="hand"/><meta key="rank_map" value="a:0,b"/>', "write HOST:INDEX")

    def test_devices_of_the_ranks(self) -> None:
        for value, devices in (
            ("a:0,b:4294967295", ("a:0", "b:4294967295")),
            ("[fe80::1]:7,a_b.example:0", ("[fe80::1]:7", "a_b.example:0")),
            ("a&amp;&quot;&lt;b&gt;:0,ä→:1", ('a&"<b>:0', "ä→:1")),
        ):
            text = EXCHANGE.replace('value="hand"/>', f'value="hand"/><meta key="rank_map" value="{value}"/>', 1)
            self.assertEqual(read_plan(text.encode(), "x.xml").head.rank_map, devices)
        for wrong in ("a b:0,c:1", "a:0,b:c", "a:0,:1", "a:0,,c:1", "a:0,b:-1"):
            self.refused('value="hand"/>', f'value="hand"/><meta key="rank_map" value="{wrong}"/>', "the rank map")

    def test_what_canopy_states(self) -> None:
        """The devices of `check.sh`, in the manifest and in the files."""
        devices = ("gpu-7.example:0", "gpu-7.example:1", "gpu-8:4", "gpu-8:5")
        files = source.read_folder(str(PLANS / "placed4"), 4)
        self.assertTrue(files)
        for file in files:
            self.assertEqual(file.rank_map, devices)
            self.assertEqual(read_plan(file.content, file.place).head.rank_map, devices)

    def test_what_the_run_on_symbols_finds(self) -> None:
        self.refused('<rank id="0" i_chunks="2"', '<rank id="0" i_chunks="3"', "where allreduce needs 2 and 2")
        self.refused(
            '<recv peer="1" buf="s" off="1"', '<recv peer="1" buf="s" off="0"', "two messages arrive at one place"
        )
        self.refused('<send peer="0" buf="i" off="1" cnt="1"/>', "", "waits for ever")
        self.refused(
            '<recv peer="1" buf="s" off="1"', '<recv peer="1" buf="i" off="1"', "where another one is sent from"
        )
        self.refused('<reduce src="s" srcoff="0" dst="i" dstoff="0" cnt="2"/>', "", "ends without chunk 0")
        self.refused(
            'srcoff="0" dst="i" dstoff="0" cnt="2"',
            'srcoff="0" dst="i" dstoff="1" cnt="1"',
            "different chunks are added up",
        )
        apart = EXCHANGE.replace('inplace="1"', 'inplace="0"')
        self.assertIn("is read before it is written", refusal(apart))
        self.assertIn("which belongs to the caller", refusal(apart.replace("<reduce", "<copy")))

    def test_sizes_are_limited(self) -> None:
        self.refused('s_chunks="2"', 's_chunks="99999999999"', f"over {reader.CHUNKS_MAX} chunks")
        self.assertIn("over the limit of", refusal(b" " * (reader.BYTES_MAX + 1)))
        self.refused('value="hand"', f'value="{"x" * (reader.VALUE_MAX + 1)}"', "over 1048576 characters")
        metas = "".join(f'<meta key="k{k}" value=""/>' for k in range(100))
        self.refused('<meta key="made-by"', metas + '<meta key="made-by"', "at most 64")
        many = '<send peer="1" buf="i" off="0" cnt="2"/>' * 200_000
        start = time.process_time()
        self.assertNotEqual(refusal(EXCHANGE.replace('<send peer="1"', many + '<send peer="1"', 1)), "nothing")
        moves = EXCHANGE.replace('nchunks="2"', 'nchunks="1000000"').replace('_chunks="2"', '_chunks="600000"')
        moves = moves.replace(
            '<send peer="1" buf="i" off="0" cnt="2"/>', '<send peer="1" buf="i" off="0" cnt="600000"/>' * 20
        )
        self.assertIn("plan with fewer", refusal(moves))
        self.assertLess(time.process_time() - start, 60)

    def test_garbage(self) -> None:
        """Bytes of real plans changed at random: either a clear refusal, or a plan that keeps its promise."""
        random_ = random.Random(1)
        paths = sorted(path for path in PLANS.rglob("*.xml") if path.stat().st_size < 20_000)
        for _ in range(300):
            text = bytearray(random_.choice(paths).read_bytes())
            for _ in range(random_.randint(1, 3)):
                at = random_.randrange(len(text))
                match random_.randrange(3):
                    case 0:
                        text[at] = random_.randrange(256)
                    case 1:
                        text[at:at] = text[random_.randrange(len(text)) :][:30]
                    case 2:
                        del text[at : at + random_.randint(1, 40)]
            refusal(bytes(text))  # Anything but PlanError fails here.


class Folders(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def refused(self, manifest: object, why: str) -> None:
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        (self.folder / "manifest.json").write_text(text)
        with self.assertRaises(source.SourceError) as raised:
            source.read_folder(str(self.folder), 2)
        self.assertIn(why, str(raised.exception))

    def test_manifests(self) -> None:
        (self.folder / "a.xml").write_text(EXCHANGE)
        digest = hashlib.sha256(EXCHANGE.encode()).hexdigest()

        def bundle(**fields: object) -> object:
            file = {"path": "a.xml", "sha256": digest} | fields
            return {"kind": "plan-bundle", "format": "oneccl-xml", "items": [{"ranks": 2, "files": [file]}]}

        (self.folder / "manifest.json").write_text(json.dumps(bundle()))
        self.assertEqual(len(source.read_folder(str(self.folder), 2)), 1)
        self.refused("{", "is not JSON")
        self.refused("[" * 100_000, "is not JSON")
        for text in ("[]", "null", "{}", '{"kind": []}', '{"kind": "plan-bundle"}', '{"kind": "other"}'):
            self.refused(text, "is not the manifest of a bundle")
        self.refused({"kind": "plan-bundle", "format": "msccl-xml", "items": []}, "and not oneccl-xml")
        self.refused({"kind": "plan-bundle", "format": "oneccl-xml", "items": []}, "for 2 ranks")
        self.refused(bundle(path="../a.xml"), "outside its folder")
        self.refused(bundle(path="/etc/passwd"), "outside its folder")
        self.refused(bundle(path="b.xml"), "cannot read")
        self.refused(bundle(sha256="0" * 64), "is not the file that")

    def test_a_bad_file_beside_a_good_one(self) -> None:
        """The good plan runs, and the report names the bad one."""
        files = [PlanFile("bad.xml", EXCHANGE[:200].encode()), PlanFile("good.xml", EXCHANGE.encode())]
        plans = PlanSet.read(files, 0, 2)
        self.assertEqual(len(plans), 1)
        self.assertEqual([refused.place for refused in plans.refused], ["bad.xml"])
        self.assertEqual(plans.digest, PlanSet.read(files[1:], 1, 2).digest)


if __name__ == "__main__":
    unittest.main()
