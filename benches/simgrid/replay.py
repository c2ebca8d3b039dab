#!/usr/bin/env python3
"""Replays messages that `canopy tools export --format simgrid` wrote, under SimGrid's fluid model of networks.

    canopy tools export plan.json --format simgrid --size 64MiB -o folder
    python3 benches/simgrid/replay.py folder --alpha 1us

Prints the seconds until the last message has arrived. Needs SimGrid's Python module (Debian: python3-simgrid).

The model: links are shared max-min fair, without factors, TCP windows or weights of latency. A message takes alpha, then
crosses its route. Its weight is a number of flows that each carry an equal part of it, since that is what it stands for.

Latency is told in one of two ways. `delay`: the links have none, and a message has arrived its route's latencies after
its last byte. `link`: the links have theirs, which SimGrid spends before the first byte. A piece then follows the one
before it, which left a latency before it arrived, by alpha less that latency; where alpha is shorter, there is no telling
SimGrid when to start it, and the run is refused.
"""

import argparse
import heapq
import json
import math
import os
import sys
import tempfile
import xml.etree.ElementTree as ET

UNITS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
REFUSED = "messages follow each other on a route by less than its latency: take --latency delay, or whole transfers of trees"
# Most flows that stand for one message.
FLOWS_MAX = 64


def seconds(text):
    """A time such as `1us`; `0` needs no unit."""
    for unit in ("ps", "ns", "us", "ms", "s"):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * UNITS[unit]
    if float(text) == 0:
        return 0.0
    raise argparse.ArgumentTypeError(f"`{text}` has no unit; write one of {', '.join(UNITS)}")


def read_platform(path, keep_latency):
    """Latency of each route in seconds, and the platform that SimGrid is to load."""
    tree = ET.parse(path)
    zone = tree.getroot().find("zone")
    latency = {link.get("id"): seconds(link.get("latency")) for link in zone.iter("link")}
    routes = {
        (route.get("src"), route.get("dst")): sum(latency[link.get("id")] for link in route.iter("link_ctn"))
        for route in zone.iter("route")
    }
    if not keep_latency:
        for link in zone.iter("link"):
            link.set("latency", "0ns")
    text = ET.tostring(tree.getroot(), encoding="unicode")
    doctype = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    return routes, doctype + text


class Run:
    """Starts messages when what they wait for has happened, and hears from SimGrid when flows end."""

    def __init__(self, engine, comm, messages, routes, alpha, keep_latency):
        self.engine, self.comm, self.messages, self.alpha, self.keep = engine, comm, messages, alpha, keep_latency
        self.latency = [routes[message["from"], message["to"]] for message in messages]
        # What each message still waits for, and who waits for it to arrive or to leave.
        self.missing = [len(message["after"]) + ("behind" in message) + len(message.get("turn", ())) for message in messages]
        self.after = [[] for _ in messages]
        self.behind = [[] for _ in messages]
        self.turn = [[] for _ in messages]
        for number, message in enumerate(messages):
            for before in message["after"]:
                self.after[before].append(number)
            if "behind" in message:
                self.behind[message["behind"]].append(number)
            for before in message.get("turn", ()):
                self.turn[before].append(number)
        divisor = math.gcd(*(message["weight"] for message in messages))
        self.flows = [message["weight"] // divisor for message in messages]
        if max(self.flows) > FLOWS_MAX:
            sys.exit(f"a message stands for {max(self.flows)} flows, more than {FLOWS_MAX}: take another plan")
        early = lambda message, latency: "behind" in message and latency > alpha or "turn" in message and latency > 0
        if keep_latency and any(map(early, messages, self.latency)):
            sys.exit(REFUSED)
        self.left_flows = [0] * len(messages)
        # Soonest time at which a message may be put on the network, by what has happened so far.
        self.soonest = [alpha] * len(messages)
        self.timers = []
        self.pending, self.owner = [], []
        self.end = 0.0

    def at(self, time, what, number):
        heapq.heappush(self.timers, (time, what, number))

    def met(self, number, soonest):
        """One of the things that a message waits for has happened."""
        self.soonest[number] = max(self.soonest[number], soonest)
        self.missing[number] -= 1
        if self.missing[number] == 0:
            self.at(self.soonest[number], "launch", number)

    def launch(self, number, now):
        message, flows = self.messages[number], self.flows[number]
        if message["bytes"] == 0:
            # SimGrid never ends a flow of no bytes that it has to wait for.
            self.left(number, now + (self.latency[number] if self.keep else 0.0))
            return
        hosts = [self.engine.host_by_name(message[end]) for end in ("from", "to")]
        self.left_flows[number] = flows
        for flow in range(flows):
            part = message["bytes"] * (flow + 1) // flows - message["bytes"] * flow // flows
            if part == 0:
                self.left_flows[number] -= 1
                continue
            self.pending.append(self.comm.sendto_async(*hosts, part))
            self.owner.append(number)

    def left(self, number, now):
        """The last byte is out; with latency of the links, it is there as well."""
        latency = self.latency[number]
        for waiting in self.behind[number]:
            self.met(waiting, now + self.alpha - (latency if self.keep else 0.0))
        # α has passed meanwhile, if not later than this.
        for waiting in self.turn[number]:
            self.met(waiting, now - (latency if self.keep else 0.0))
        self.at(now if self.keep else now + latency, "arrive", number)

    def arrive(self, number, now):
        self.end = max(self.end, now)
        for waiting in self.after[number]:
            self.met(waiting, now + self.alpha)

    def loop(self, clock, sleep):
        for number, missing in enumerate(self.missing):
            if missing == 0:
                self.at(self.alpha, "launch", number)
        while self.timers or self.pending:
            # A tenth of a picosecond of tolerance: sums of floats are not equal where exact ones are.
            while self.timers and self.timers[0][0] <= clock() + 1e-13:
                time, what, number = heapq.heappop(self.timers)
                getattr(self, what)(number, time)
            if not self.pending:
                if self.timers:
                    sleep(max(self.timers[0][0] - clock(), 0.0))
                continue
            wait = self.timers[0][0] - clock() if self.timers else -1.0
            if self.timers and wait <= 0:
                continue
            done = self.comm.wait_any_for(self.pending, wait)
            if done >= 0:
                self.pending.pop(done)
                number = self.owner.pop(done)
                self.left_flows[number] -= 1
                if self.left_flows[number] == 0:
                    self.left(number, clock())
        if any(self.missing):
            sys.exit("messages wait in a circle")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="what `canopy tools export --format simgrid` wrote")
    parser.add_argument("--alpha", type=seconds, default=1e-6, help="what every message takes first (1us)")
    parser.add_argument("--latency", choices=("delay", "link"), default="delay", help="how latency is told")
    arguments = parser.parse_args()
    with open(os.path.join(arguments.folder, "messages.json"), encoding="utf-8") as file:
        messages = json.load(file)["messages"]
    keep = arguments.latency == "link"
    routes, platform = read_platform(os.path.join(arguments.folder, "platform.xml"), keep)
    try:
        from simgrid import Actor, Comm, Engine, this_actor
    except ImportError:
        sys.exit("SimGrid's Python module is missing; on Debian: apt-get install python3-simgrid, and run /usr/bin/python3")
    settings = {
        "network/model": "CM02",
        "network/crosstraffic": "0",
        "network/bandwidth-factor": "1",
        "network/latency-factor": "1",
        "network/weight-S": "0",
        "network/TCP-gamma": "0",
        # Times below a nanosecond count, and shares of equal flows are equal.
        "surf/precision": "1e-13",
        "maxmin/precision": "1e-9",
    }
    # Lines about settings would stand before the result.
    words = [f"--cfg={name}:{value}" for name, value in settings.items()]
    engine = Engine([sys.argv[0], "--log=xbt_cfg.thresh:warning", *words])
    with tempfile.NamedTemporaryFile("w", suffix=".xml", encoding="utf-8") as file:
        file.write(platform)
        file.flush()
        engine.load_platform(file.name)
    run = Run(engine, Comm, messages, routes, arguments.alpha, keep)
    # An actor's thread has no other way to say that something went wrong.
    failures = []

    def act():
        try:
            run.loop(lambda: Engine.clock, this_actor.sleep_for)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    Actor.create("replay", engine.host_by_name(messages[0]["from"]), act)
    engine.run()
    if failures:
        raise failures[0]
    print(f"{run.end:.12f}")


if __name__ == "__main__":
    main()
