"""Has the alerts fire for real, and clear again. Started by live.sh, which says how.

The durations of alerts.yaml are divided by 60, as far as scrapes each second allow; thresholds stay as they are. Each
scene does one harm to a server, waits for its alerts, undoes it, and waits until they have cleared. Scenes run at the
same time, on servers of their own. Alerts about a share of what all servers do have a Prometheus of their own, too, as
the calls of other scenes would count.
"""

import contextlib
import itertools
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse
import urllib.request
from pathlib import Path

WORK, PROMETHEUS, CANOPYD, CANOPY = (Path(path) for path in sys.argv[1:5])
ONLY = set(sys.argv[5:])
RULES = Path("alerts.yaml")

SPEED = 60
# The least range of a query: a rate needs two scrapes, and one may be late.
RANGE_MIN_S = 5
# Ranges that cannot shrink, since the server tries again every 4 s at any speed.
RANGES_S = {"CanopyReplanWritesFail": 20}
# Longest time for an alert to fire, and to clear.
PATIENCE_S = 60
UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}

NOT_FOR_REAL = {
    "CanopyVerifierRejected": "only a bug in canopy raises it",
    "CanopyRivalRejected": "only a bug in canopy raises it",
}


def scaled(text):
    """The rules at another speed."""
    alert, lines = None, []

    def shorter(match):
        seconds = int(match[2]) * UNITS_S[match[3]] / SPEED
        return f"{match[1]}{max(RANGES_S.get(alert, RANGE_MIN_S), round(seconds))}s"

    for line in text.splitlines():
        if found := re.match(r"\s+- alert: (\w+)", line):
            alert = found[1]
        if found := re.match(r"(\s+for: )(\d+)([smhd])$", line):
            line = f"{found[1]}{max(1, int(found[2]) * UNITS_S[found[3]] // SPEED)}s"
        elif not re.match(r"\s+(summary|description):", line):
            line = re.sub(r"(\[|offset )(\d+)([smhd])\b", shorter, line)
            # An age in seconds; a certificate's end is a matter of the calendar.
            line = re.sub(r"(_timestamp_seconds > )(\d+)", lambda age: f"{age[1]}{int(age[2]) // SPEED}", line)
        lines.append(line)
    return "\n".join(lines) + "\n"


class Watch:
    """A Prometheus, the servers that it scrapes, and what fires, as it says."""

    def __init__(self, name):
        self.folder = WORK / f"watch-{name}"
        self.folder.mkdir()
        self.servers, self.announcing = {}, threading.Lock()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/api/v1"
        self.announce()
        (self.folder / "alerts.yaml").write_text(scaled(RULES.read_text()))
        jobs = [
            {"job_name": "canopyd", "file_sd_configs": [{"files": [str(self.folder / "http.json")]}]},
            {
                "job_name": "canopyd with tokens",
                "scheme": "https",
                "tls_config": {"insecure_skip_verify": True},
                "authorization": {"credentials_file": str(WORK / "prometheus.token")},
                "file_sd_configs": [{"files": [str(self.folder / "https.json")]}],
                "relabel_configs": [{"target_label": "job", "replacement": "canopyd"}],
            },
        ]
        times = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        settings = {"global": times, "rule_files": [str(self.folder / "alerts.yaml")], "scrape_configs": jobs}
        # JSON is YAML.
        (self.folder / "prometheus.yaml").write_text(json.dumps(settings))
        self.process = subprocess.Popen(
            [PROMETHEUS, f"--config.file={self.folder / 'prometheus.yaml'}",
             f"--storage.tsdb.path={self.folder / 'samples'}", f"--web.listen-address=127.0.0.1:{port}",
             "--log.level=warn", "--enable-feature=exemplar-storage"],
            stdin=subprocess.DEVNULL, stderr=(self.folder / "log").open("wb"),
        )

        def answers():
            if self.process.poll() is not None:
                raise Failed(f"prometheus ended: {(self.folder / 'log').read_text()}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return True
            return False

        until(answers, "prometheus does not start")

    def announce(self):
        """Has Prometheus scrape the servers that were started."""
        with self.announcing:
            for scheme in ("http", "https"):
                targets = [
                    {"targets": [f"127.0.0.1:{server.port}"], "labels": {"instance": server.name}}
                    for server in self.servers.values()
                    if server.scheme == scheme
                ]
                (self.folder / "targets.new").write_text(json.dumps(targets))
                (self.folder / "targets.new").rename(self.folder / f"{scheme}.json")

    def end(self):
        """Ends Prometheus and its servers."""
        for server in self.servers.values():
            if server.process:
                server.process.kill()
        self.process.kill()
        self.process.wait()

    def ask(self, path):
        with urllib.request.urlopen(f"{self.url}/{path}", timeout=5) as answer:
            return json.load(answer)["data"]

    def scrapes(self, instance):
        with contextlib.suppress(OSError):
            found = self.ask("query?query=" + urllib.parse.quote(f'up{{job="canopyd", instance="{instance}"}} == 1'))
            return bool(found["result"])
        return False

    def firing(self, name, instance):
        return any(
            alert["state"] == "firing"
            and alert["labels"]["alertname"] == name
            and alert["labels"].get("instance", instance) == instance
            for alert in self.ask("alerts")["alerts"]
        )

    def wait(self, name, instance, wanted, patience_s):
        """Seconds until it fires, or no longer does; None if it does not happen."""
        started = time.monotonic()
        while (passed := time.monotonic() - started) < patience_s:
            with contextlib.suppress(OSError):
                if self.firing(name, instance) == wanted:
                    return passed
            time.sleep(0.3)
        return None


class Server:
    """A canopyd and the way to it."""

    def __init__(
        self, name, *flags, watch=None, dev=True, data=None, program=CANOPYD, files_max=None, group=None, log=None,
        nice=0, **also
    ):
        self.watch = watch or everyone
        self.name, self.flags, self.program, self.variables = name, flags, program, also
        self.dev = ["--dev"] if dev else []
        if "--listen" not in flags and dev:
            self.dev += ["--listen", "127.0.0.1:0"]
        self.files_max, self.group, self.log, self.nice = files_max, group, log, nice
        self.data = data or WORK / name / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self.socket = self.data / "canopy.sock"
        self.port = free_port()
        self.process, self.scheme = None, "http" if dev else "https"
        if not dev:
            token = WORK / "prometheus.token"
            words = ["tokens", "create", "prometheus", "--role", "viewer", "--data-dir", self.data, "-o", token]
            subprocess.run([CANOPY, *words], check=True, capture_output=True)
        self.watch.servers[name] = self
        self.start()

    def start(self):
        def limit():
            os.nice(self.nice)
            if self.files_max:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self.files_max, self.files_max))
            if self.group:
                (self.group / "cgroup.procs").write_text("0")

        command = [self.program, "--data-dir", self.data, "--admin-listen", f"127.0.0.1:{self.port}"]
        command += ["--log-format", "json", *self.dev, *self.flags]
        log = self.log or (WORK / f"{self.name}.log").open("ab")
        environment = {**os.environ, **{key: str(value) for key, value in self.variables.items()}}
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=log, env=environment, preexec_fn=limit
        )
        until(lambda: self.ready(), f"{self.name} does not start")
        self.watch.announce()
        # A counter rises between two scrapes: what happens before the first one is not seen.
        until(lambda: self.watch.scrapes(self.name), f"{self.name} is not scraped")
        time.sleep(1.5)

    def ready(self):
        if self.process.poll() is not None:
            log = (WORK / f"{self.name}.log").read_text() if not self.log else ""
            raise Failed(f"{self.name} ended with {self.process.returncode}: {log[-2000:]}")
        return self.answers()

    def answers(self):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as way:
            way.connect(str(self.socket))
            return True
        return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends in order, with all written."""
        self.process.terminate()
        self.process.wait()

    def leave(self):
        """Ends, and nobody asks for it any more."""
        del self.watch.servers[self.name]
        self.watch.announce()
        time.sleep(2)
        self.kill()

    def canopy(self, *words, check=True, timeout=60):
        done = subprocess.run(
            [CANOPY, *words], env={**os.environ, "CANOPY_SERVER": f"unix:{self.socket}"}, cwd=WORK, timeout=timeout,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        if check and done.returncode != 0:
            raise Failed(f"canopy {' '.join(map(str, words))}: {done.stderr}")
        return done.stdout + done.stderr

    def begin(self, *words):
        """A call that goes on by itself."""
        return subprocess.Popen(
            [CANOPY, *words], env={**os.environ, "CANOPY_SERVER": f"unix:{self.socket}"}, cwd=WORK,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    def plan(self, network, *words, **options):
        file = WORK / f"{threading.get_ident()}.json"
        return self.canopy("plan", network, "-c", "allgather", "-o", file, *words, **options)

    def metric(self, name):
        page = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5).read().decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if re.match(rf"{name}[ {{]", line))


class Failed(Exception):
    """A scene could not be played."""


def until(happened, what, patience_s=20):
    started = time.monotonic()
    while not happened():
        if time.monotonic() - started > patience_s:
            raise Failed(what)
        time.sleep(0.1)


def free_port():
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        return port.getsockname()[1]


def disk(name, size):
    """A disk of a few megabytes."""
    folder = WORK / name
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "canopy-alerts", folder], check=True)
    return folder


def fill(folder, left=0):
    """Fills the disk of a folder, but for some bytes."""
    figures = os.statvfs(folder)
    file = folder / "other-files"
    with file.open("ab") as other:
        size = max(0, figures.f_bavail * figures.f_frsize - left)
        with contextlib.suppress(OSError):
            os.posix_fallocate(other.fileno(), other.tell(), max(1, size))
    return file


class Streams:
    """Calls that stay open on one connection: as much of HTTP/2 as that needs."""

    PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8

    def __init__(self, server, port=None):
        if port:
            self.way = socket.create_connection(("127.0.0.1", port))
        else:
            self.way = socket.socket(socket.AF_UNIX)
            self.way.connect(str(server.socket))
        self.ended = 0
        # Answers of any length.
        window = self.frame(self.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30))
        self.way.sendall(self.PREFACE + self.frame(self.SETTINGS, 0, 0, b"") + window)
        self.next_stream = 1
        threading.Thread(target=self.answer, daemon=True).start()

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def open(self, path, message=b""):
        def text(value):
            return bytes([len(value)]) + value.encode()

        headers = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost"}
        headers |= {"content-type": "application/grpc", "te": "trailers"}
        # Each a literal with a new name, which no table keeps.
        block = b"".join(b"\0" + text(name) + text(value) for name, value in headers.items())
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        end_of_headers, end_of_stream = 4, 1
        framed = self.frame(self.DATA, end_of_stream, stream, struct.pack(">BI", 0, len(message)) + message)
        self.way.sendall(self.frame(self.HEADERS, end_of_headers, stream, block) + framed)

    def call(self, path, messages, at_once=64):
        """Calls with these messages, of which so many are under way at a time."""
        calls = self.ended
        for message in messages:
            self.open(path, message)
            calls += 1
            until(lambda: calls - self.ended < at_once, f"{path}: {self.ended} of {calls} calls have ended")
        until(lambda: self.ended == calls, f"{path}: {self.ended} of {calls} calls have ended")

    def answer(self):
        acknowledged = end_of_stream = 1
        with contextlib.suppress(OSError), self.way.makefile("rb") as lines:
            while head := lines.read(9):
                payload = lines.read(int.from_bytes(head[:3], "big"))
                if head[3] in (self.SETTINGS, self.PING) and not head[4] & acknowledged:
                    given = payload if head[3] == self.PING else b""
                    self.way.sendall(self.frame(head[3], acknowledged, 0, given))
                elif head[3] in (self.DATA, self.HEADERS) and head[4] & end_of_stream:
                    self.ended += 1

    def close(self):
        with contextlib.suppress(OSError):
            self.way.shutdown(socket.SHUT_RDWR)
        self.way.close()


def field(number, value):
    """A field of a message of Protobuf: a text, a message, or a switch."""
    if value is True:
        return bytes([number << 3, 1])
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(value)]) + value


class Repeating:
    """Does something again and again until it is closed."""

    def __init__(self, work, interval_s=0.0):
        self.ended = threading.Event()

        def go_on():
            while not self.ended.is_set():
                with contextlib.suppress(Failed, OSError, subprocess.TimeoutExpired):
                    work()
                self.ended.wait(interval_s)

        self.thread = threading.Thread(target=go_on, daemon=True)
        self.thread.start()

    def close(self):
        self.ended.set()
        self.thread.join()


results = {}
# The watch of all scenes but those that are a share of what all servers do.
everyone = None


def report(name, text):
    results[name] = text
    print(f"{name}: {text}", flush=True)


class Scene:
    """One harm: the alerts that it raises, and how it is done and undone."""

    def __init__(self, names, play, act):
        self.names, self.play, self.act = names, play, act
        self.fired, self.watch = {}, None

    def run(self):
        try:
            self.watch = Watch(self.names[0]) if self.act == "share" else everyone
            self.play(self)
        except Exception as error:
            problem = str(error) if isinstance(error, Failed) else traceback.format_exc()
            for name in self.names:
                if name not in results:
                    report(name, f"FAILED: {problem}")
        finally:
            if self.watch not in (None, everyone):
                self.watch.end()

    def skip(self, reason):
        for name in self.names:
            report(name, f"not fired for real: {reason}")

    def fires(self, instance, *names, patience_s=PATIENCE_S):
        """Waits until they fire."""
        def wait(name):
            self.fired[name] = self.watch.wait(name, instance, True, patience_s)

        each(wait, names or self.names)

    def clears(self, instance, *names, patience_s=PATIENCE_S):
        """Waits until they have cleared, and says so."""
        def wait(name):
            fired = self.fired.get(name)
            if fired is None:
                return report(name, "FAILED: did not fire")
            cleared = self.watch.wait(name, instance, False, patience_s)
            if cleared is None:
                return report(name, f"FAILED: fired after {fired:.0f} s, did not clear")
            return report(name, f"fired after {fired:.0f} s, cleared {cleared:.0f} s after the cause was gone")

        each(wait, names or self.names)


def each(work, items):
    threads = [threading.Thread(target=work, args=(item,), daemon=True) for item in items]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


SCENES = []


def scene(*names, act="quiet"):
    def add(play):
        SCENES.append(Scene(names, play, act))
        return play

    return add


@scene(
    "CanopyStoreNotWritable", "CanopyReplanWritesFail", "CanopyPlansNotStored", "CanopyJobsNotDurable", "CanopyDiskLow"
)
def full_disk(this):
    """Other files fill the disk, first nearly, then wholly."""
    folder = disk("full", "96m")
    server = Server("full", data=folder / "data")
    server.plan("ring:4")
    nearly = fill(folder, left=7 << 20)
    this.fires("full", "CanopyDiskLow")
    # Each end of these is written down later, which takes more than what is left of a block.
    links = [f"link:{rank}>{rank + 1}*1/2" for rank in range(63)]
    server.canopy("faults", "report", "ring:64", *links, "--expires", "4s")
    fill(folder)
    until(lambda: server.metric("canopy_store_writable") == 0, "the disk is full, and the store is writable")
    sizes = itertools.count(7)
    asking = Repeating(lambda: server.plan(f"ring:{next(sizes)}", check=False), 1)
    rest = [name for name in this.names if name != "CanopyDiskLow"]
    this.fires("full", *rest)
    asking.close()
    nearly.unlink()
    this.clears("full")


@scene("CanopyStoreErrors")
def unreadable_record(this):
    """A record that the system refuses to read."""
    server = Server("unreadable")
    server.plan("ring:4")
    # A start reads records whose summaries a kill may have lost, and fails.
    server.stop()
    record = next(path for path in (server.data / "records-4/plans").glob("??/*") if path.is_file())
    record.rename(WORK / "record")
    record.symlink_to(record)
    server.start()
    asking = Repeating(lambda: server.plan("ring:4", check=False), 1)
    this.fires("unreadable")
    asking.close()
    record.unlink()
    (WORK / "record").rename(record)
    this.clears("unreadable")


@scene("CanopyStoreCorruption", "CanopyQuarantine")
def damaged_record(this):
    """A bit of a record changes on the disk."""
    server = Server("damaged")
    server.plan("ring:4")
    server.kill()
    damage(next(path for path in (server.data / "records-4/plans").glob("??/*") if path.is_file()))
    server.start()
    server.plan("ring:4")
    this.fires("damaged")
    for path in (server.data / "records-4").glob("*/quarantine/*"):
        path.unlink()
    this.clears("damaged")


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@scene("CanopyErrorRateHigh", act="share")
def damaged_topologies(this):
    """Stored topologies are damaged, again and again, and callers ask for them."""
    server = Server("errors", watch=this.watch)
    network = WORK / "errors.yaml"
    server.canopy("topology", "generate", "ring:4", "-o", network)

    def harm():
        server.canopy("topology", "put", network)
        stored = [path for path in (server.data / "records-4/topologies").glob("??/*") if path.is_file()]
        for path in stored:
            damage(path)
            server.canopy("topology", "get", f"topologies/{path.name}", "-o", WORK / "errors.json", check=False)

    asking = Repeating(harm)
    this.fires("errors")
    asking.close()
    this.clears("errors")


@scene("CanopyTopologiesFull", act="noisy")
def many_networks(this):
    """Each job brings a network of its own, and many of them have faults."""
    server = Server("networks", "--fault-debounce", "1s")
    way, kept = Streams(server), 8750

    def network(number):
        return field(1, field(1, f"ring:4,bw={number}MB/s"))

    def events(numbers, *more):
        link = field(1, field(1, "r0") + field(2, "r1"))
        for number in numbers:
            event = field(1, "feed") + field(2, f"{number}{len(more)}") + field(3, link) + b"".join(more)
            yield network(number) + field(2, event)

    way.call("/canopy.v1.Networks/PutTopology", map(network, range(1, kept + 1)))
    broken = range(kept + 1, 9600)
    way.call("/canopy.v1.Faults/ReportFaults", events(broken))
    until(lambda: server.metric("canopy_topologies") > 9500, f"{server.metric('canopy_topologies')} networks are stored")
    this.fires("networks")
    way.call("/canopy.v1.Faults/ReportFaults", events(broken, field(7, True)))
    until(lambda: server.metric("canopy_faults_active") == 0, "faults that were cleared count")
    # Room is made when it is needed.
    way.call("/canopy.v1.Networks/PutTopology", [network(10_000)])
    way.close()
    this.clears("networks")
    server.leave()


@scene("CanopyAuditNotWritable", act="noisy")
def full_audit(this):
    """The disk of the audit log is full."""
    folder = disk("audit", "16m")
    server = Server("audited", "--audit", folder / "log")
    filler = fill(folder)
    # The log has reserved 4 MiB. Calls without a meaning fill them, since each of them has a line.
    way, calls = Streams(server), 0
    while server.metric("canopy_audit_writable") == 1 and calls < 20_000:
        for _ in range(100):
            way.open("/canopy.v1.Leases/ReleaseLease")
        calls += 100
        until(lambda: way.ended == calls, f"{way.ended} of {calls} calls have ended")
    this.fires("audited")
    way.close()
    filler.unlink()
    this.clears("audited")


@scene("CanopyFaultStorm")
def fault_storm(this):
    """A feed repeats ten reports each second."""
    server = Server("storm")
    faults = [f"link:{rank}>{rank + 1}" for rank in range(10)]
    feed = Repeating(lambda: server.canopy("faults", "report", "ring:16", *(f"{fault}*1/2" for fault in faults)), 0.7)
    this.fires("storm")
    feed.close()
    this.clears("storm")


@scene("CanopyReplanSlow")
def slow_replans(this):
    """Faults come while the lease waits for its next replan: the window is too long."""
    server = Server("replans", "--replan-window", "30s", CANOPY_PLAN_AHEAD="false")
    network = ["dgx-a100:boxes=2", "-c", "allgather"]
    server.canopy("fetch", "--job", "7", "--out", WORK / "job7", "--lease", "10m", *network)
    gpus = itertools.cycle(f"b{box}g{gpu}" for box in (0, 1) for gpu in range(8))
    parts = itertools.count(2)

    def fault():
        server.canopy("faults", "report", "dgx-a100:boxes=2", f"nic:{next(gpus)}*1/{next(parts)}")

    reporting = Repeating(fault, 5)
    this.fires("replans", patience_s=90)
    reporting.close()
    this.clears("replans")


@scene("CanopyQueueBacklog", "CanopySynthesisTimeouts", "CanopyFallbacksHigh", act="share")
def busy_worker(this):
    """Long searches have the only worker, and others wait for it."""
    # The others go first, and Prometheus.
    server = Server("busy", "--workers", "1", watch=this.watch, nice=25)
    server.plan("ring:4")

    def search(network):
        file = WORK / f"{network.replace(':', '-')}.json"
        return server.begin("plan", network, "-c", "allgather", "-o", file, "--deadline", "10m")

    # Each takes half a minute or more.
    long = [search("random-euler:n=3000,switches=400,seed=1")]
    until(lambda: server.metric("canopy_synthesis_running") == 1, "the long search does not begin", 40)
    long += [search(f"random-euler:n=3000,switches=400,seed={seed}") for seed in range(2, 8)]
    until(lambda: server.metric("canopy_synthesis_queue_depth") >= len(long) - 1, "long searches do not wait", 40)
    # Each takes a second or so, so that waits are seen for as long as the alert wants.
    others = [search(f"torus:20x{width}") for width in range(30, 46)]
    asking = [
        Repeating(lambda: server.plan("torus:3x5", "--deadline", "500ms", check=False)),
        Repeating(lambda: server.plan("torus:3x4", "--deadline", "500ms", "--on-miss", "fallback", check=False), 0.5),
    ]

    def end_long_searches():
        # By then, the others have waited for longer than half a minute. What waits now is cached afterwards, and the many
        # answers would hide the timeouts.
        time.sleep(70)
        for _ in range(60):
            if "CanopySynthesisTimeouts" in this.fired:
                break
            time.sleep(1)
        for one in long:
            one.kill()
            one.wait()

    ending = threading.Thread(target=end_long_searches, daemon=True)
    ending.start()
    this.fires("busy", patience_s=190)
    ending.join()
    for one in others:
        one.kill()
        one.wait()
    for one in asking:
        one.close()
    this.clears("busy")


@scene("CanopyCachedPlanSlow", act="share")
def slow_hits(this):
    """The host stands still for most of the time, while large networks are asked for again and again."""
    server = Server("hits", watch=this.watch)
    network = "dgx-a100:boxes=128"
    server.plan(network)
    server.plan(network)

    def stand_still():
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.06)
        server.process.send_signal(signal.SIGCONT)
        time.sleep(0.02)

    asking, standing = Repeating(lambda: server.plan(network), 0.3), Repeating(stand_still)
    this.fires("hits")
    standing.close()
    asking.close()
    this.clears("hits")


@scene("CanopyHitRatioDropped", act="share")
def fewer_hits(this):
    """Requests that were cached become requests that never are."""
    server = Server("ratio", watch=this.watch)
    server.plan("ring:4")
    server.plan("ring:4")
    time.sleep(2)

    def burst():
        server.canopy("bench", "ring:4", "-c", "allgather", "--call", "plan", "--burst", "1000", "--concurrency", "4")

    burst()
    sizes = itertools.count(5)
    asking = Repeating(lambda: server.plan(f"ring:{next(sizes)}"), 3)
    this.fires("ratio", patience_s=190)
    asking.close()
    burst()
    this.clears("ratio")


@scene("CanopyDiskNearFull")
def pinned_plans(this):
    """Pinned plans fill the cache."""
    server = Server("pinned", "--store-bytes", str(1 << 20))

    pinned = []
    for size in range(30, 200):
        made = server.plan(f"ring:{size}", check=False)
        if found := re.search(r"(plans/\w+) written", made):
            server.canopy("plans", "pin", found[1], check=False)
            pinned.append(found[1])
        if server.metric('canopy_cache_bytes{tier="disk"}') > 0.93 * (1 << 20):
            break
    this.fires("pinned")
    server.canopy("plans", "unpin", *pinned, check=False)
    this.clears("pinned")


def certificate(folder, days):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", str(days),
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", folder / "new.key", "-out", folder / "new.pem"], check=True, capture_output=True,
    )
    (folder / "new.key").chmod(0o600)
    (folder / "new.key").rename(folder / "server.key")
    (folder / "new.pem").rename(folder / "server.pem")


@scene("CanopyCertificateExpires", "CanopyConfigReloadFailed", "CanopyCredentialsInvalid")
def files_of_the_administrator(this):
    """A certificate that ends in three days; a configuration and rules that cannot be read."""
    folder = WORK / "configured"
    folder.mkdir()
    rules, settings = folder / "access.toml", folder / "canopyd.toml"
    valid = f"""
listen = "127.0.0.1:0"
access = "{rules}"
tls_certificate = "{folder}/server.pem"
tls_key = "{folder}/server.key"
"""
    certificate(folder, 3)
    rules.write_text('[[grant]]\nuser = 1\nroles = ["viewer"]\n')
    settings.write_text(valid)
    server = Server("configured", "--config", settings, dev=False)
    settings.write_text(f"lisen = 1\n{valid}")
    rules.write_text("[[grant\n")
    server.process.send_signal(signal.SIGHUP)
    this.fires("configured")
    certificate(folder, 300)
    settings.write_text(valid)
    rules.write_text('[[grant]]\nuser = 2\nroles = ["viewer"]\n')
    server.process.send_signal(signal.SIGHUP)
    this.clears("configured")


@scene("CanopyDescriptorsLow")
def few_descriptors(this):
    """Callers hold connections, and the server may open few files."""
    port = free_port()
    server = Server("files", "--listen", f"127.0.0.1:{port}", files_max=64)
    ways = []
    while server.metric("process_open_fds") <= 0.83 * 64 and len(ways) < 40:
        with contextlib.suppress(OSError):
            ways.append(Streams(server, port))
            ways[-1].open("/canopy.v1.Leases/WatchLeases")
    this.fires("files")
    for way in ways:
        way.close()
    this.clears("files")


@scene("CanopyWatchSlotsLow")
def many_watches(this):
    """A program opens watches and does not close them."""
    server = Server("watched")
    ways = []
    for _ in range(13):
        ways.append(Streams(server))
        for _ in range(256):
            ways[-1].open("/canopy.v1.Leases/WatchLeases")
    until(lambda: server.metric("canopy_watchers") > 3300, "the server has fewer watches than were opened")
    this.fires("watched")
    for way in ways:
        way.close()
    this.clears("watched")


@scene("CanopyLogLinesDropped", act="noisy")
def slow_log_reader(this):
    """The reader of the log stands still while a filter lets all lines pass."""
    reader, writer = os.pipe()
    server = Server("logged", log=os.fdopen(writer, "wb"))
    reading = threading.Event()

    def read():
        reading.wait()
        while os.read(reader, 1 << 16):
            pass

    threading.Thread(target=read, daemon=True).start()
    server.canopy("log-filter", "trace")
    calling = Repeating(lambda: server.canopy("bench", "ring:4", "-c", "allgather", "--burst", "200", check=False))
    this.fires("logged")
    calling.close()
    reading.set()
    server.canopy("reload", check=False)
    this.clears("logged")


def memory_group():
    """A control group with a limit of its own, and the file of its limit; None where none can be made."""
    for root, file in [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]:
        group = Path(root) / f"canopy-alerts-{os.getpid()}"
        with contextlib.suppress(OSError):
            group.mkdir()
            if (group / file).exists():
                return group, group / file
            group.rmdir()
    return None


@scene("CanopyMemoryHigh")
def little_memory(this):
    """The limit of the control group is hardly above what the server takes."""
    made = memory_group()
    if made is None:
        return this.skip("this machine has no control group for memory that could be limited")
    group, limit = made
    try:
        before = limit.read_text().strip()
        server = Server("memory", group=group)
        server.plan("ring:4")
        time.sleep(1)
        limit.write_text(str(int(server.metric("process_resident_memory_bytes") * 1.05)))
        this.fires("memory")
        limit.write_text("max" if limit.name == "memory.max" else before if before != "max" else "-1")
        this.clears("memory")
    finally:
        if "memory" in everyone.servers:
            forget("memory")
        with contextlib.suppress(OSError):
            group.rmdir()


def forget(name):
    """Ends a server for good."""
    server = everyone.servers.pop(name)
    everyone.announce()
    server.kill()


SET_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
/* The time of day, an hour later once the file exists that SET_CLOCK names. */
int clock_gettime(clockid_t id, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int outcome = real(id, time);
    const char *file = getenv("SET_CLOCK");
    if (id == CLOCK_REALTIME && file && access(file, F_OK) == 0) time->tv_sec += 3600;
    return outcome;
}
"""


@scene("CanopyClockJumped")
def set_clock(this):
    """Somebody sets the clock: that of one process, by a library before the system's."""
    compiler = shutil.which("cc")
    if compiler is None:
        return this.skip("no C compiler for a clock that can be set")
    source, library, file = WORK / "clock.c", WORK / "clock.so", WORK / "clock-is-set"
    source.write_text(SET_CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    server = Server("clock", LD_PRELOAD=library, SET_CLOCK=file)
    file.touch()
    this.fires("clock")
    return this.clears("clock")


@scene("CanopyVersionSkew")
def two_versions(this):
    """A copy of the program with another version in it."""
    version = subprocess.run([CANOPYD, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    other = re.sub(r"\d+$", lambda last: str((int(last[0]) + 1) % 10).rjust(len(last[0]), "0")[-len(last[0]):], version)
    program = WORK / "bin/canopyd-other"
    program.write_bytes(CANOPYD.read_bytes().replace(version.encode(), other.encode()))
    program.chmod(0o755)
    said = subprocess.run([program, "--version"], check=False, capture_output=True, text=True).stdout
    if other not in said:
        return this.skip("the version of a copy could not be changed")
    Server("other", program=program)
    this.fires("other", patience_s=90)
    forget("other")
    return this.clears("other")


def postgres_program(name):
    of_debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (of_debian[-1] if of_debian else None)


@scene("CanopyDatabaseAway")
def database_away(this):
    """The database stops."""
    initdb, pg_ctl = postgres_program("initdb"), postgres_program("pg_ctl")
    if not initdb or not pg_ctl:
        return this.skip("PostgreSQL is not installed")
    nobody = 65534
    folder = WORK / "database"
    folder.mkdir()
    # PostgreSQL refuses to run as root.
    user = {"user": nobody, "group": nobody, "extra_groups": []} if os.getuid() == 0 else {}
    try:
        os.chown(folder, nobody, nobody)
    except OSError:
        return this.skip("PostgreSQL needs another user than root, and there is none in this namespace")

    def postgres(*words):
        log = (WORK / "postgres.log").open("ab")
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": log, "cwd": folder, **user}
        done = subprocess.run([str(word) for word in words], check=False, **options)
        if done.returncode != 0:
            raise Failed(f"{words[0]} ended with {done.returncode}: {(WORK / 'postgres.log').read_text()[-1000:]}")

    settings = f"-k {folder} -c listen_addresses='' -c fsync=off"
    start = [pg_ctl, "-D", folder / "data", "-w", "-l", folder / "log", "-o", settings, "start"]
    stop = [pg_ctl, "-D", folder / "data", "-m", "immediate", "stop"]
    postgres(initdb, "-D", folder / "data", "-U", "canopy", "-A", "trust", "-N")
    postgres(*start)
    try:
        Server("shared", "--database", f"postgres://canopy@/postgres?host={folder}")
        postgres(*stop)
        this.fires("shared")
        postgres(*start)
        this.clears("shared")
    finally:
        if "shared" in everyone.servers:
            forget("shared")
        with contextlib.suppress(Failed):
            postgres(*stop)


@scene("CanopyInstanceDown")
def one_server_away(this):
    """One server of two is killed."""
    Server("beside")
    server = Server("killed")
    server.kill()
    this.fires("killed")
    server.start()
    this.clears("killed")


def all_servers_away(this):
    """All servers are killed; at the end, since every other scene needs one."""
    server = Server("last")
    for other in list(everyone.servers.values()):
        other.kill()
    this.fires("last")
    server.start()
    this.clears("last")


LAST = Scene(["CanopyDown"], all_servers_away, "last")


def exemplars():
    """Says of how many calls Prometheus has kept the trace with their time."""
    now = time.time()
    query = {"query": "canopy_rpc_duration_seconds_bucket", "start": now - 600, "end": now}
    found = everyone.ask("query_exemplars?" + urllib.parse.urlencode(query))
    traces = {one["labels"]["trace_id"] for series in found for one in series["exemplars"]}
    report("exemplars", f"the traces of {len(traces)} calls" if traces else "FAILED: Prometheus has none")


def main():
    global everyone
    started = time.monotonic()
    # A scrape that comes late is an alert that begins anew.
    with contextlib.suppress(OSError):
        os.nice(-10)
    known = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
    covered = set(NOT_FOR_REAL) | {name for one in [*SCENES, LAST] for name in one.names}
    if known != covered:
        sys.exit(f"alerts without a scene, or scenes without an alert: {', '.join(sorted(known ^ covered))}")
    if unknown := ONLY - known:
        sys.exit(f"alerts.yaml has no alert {', '.join(sorted(unknown))}")
    wanted = [one for one in SCENES if not ONLY or ONLY & set(one.names)]
    everyone = Watch("everyone")
    try:
        # Calls by the thousand take the processors' time.
        acts = [[one for one in wanted if one.act == act] for act in ("noisy", "share")]
        quiet = [one for one in wanted if one.act == "quiet"]
        each(lambda play: play(), [lambda: [each(Scene.run, act) for act in acts], lambda: each(Scene.run, quiet)])
        if not ONLY:
            exemplars()
        if not ONLY or "CanopyDown" in ONLY:
            LAST.run()
    finally:
        everyone.end()
    for name in sorted(NOT_FOR_REAL if not ONLY else ONLY & set(NOT_FOR_REAL)):
        report(name, f"not fired for real: {NOT_FOR_REAL[name]}")
    failed = [name for name, text in results.items() if text.startswith("FAILED")]
    real = [name for name, text in results.items() if text.startswith("fired")]
    seconds = time.monotonic() - started
    print(f"{len(real)} of {len(results)} alerts fired for real and cleared, {len(failed)} failed, in {seconds:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
