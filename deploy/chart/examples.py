"""Runs the containers of the example jobs, and that of `helm test`, on this machine, against a server that it starts.

Usage: examples.py CANOPYD CANOPY, from the root of the repository.

Init containers run `canopy` with their own arguments; only the server, the credentials and the mounted folders are those
of this machine. The main containers run their own script, in which programs that need GPUs or other machines are small
ones that note how they were called.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

FOLDER = Path("deploy/kubernetes")
MACHINES = ["gpu-a", "gpu-b"]
GPUS = 8

# What each process of the job sees: its ranks, where it finds the first, and its plans.
PYTHON = """#!/bin/sh
echo "${RANK-} ${LOCAL_RANK-} ${MASTER_ADDR-} ${MSCCL_XML_FILES-}" >>"$NOTES"
"""
TORCHRUN = """#!INTERPRETER
import os, subprocess, sys
flags = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--") and "=" in word)
assert flags["nnodes"] == "2", sys.argv
count = int(flags["nproc-per-node"])
rest = [word for word in sys.argv[1:] if not word.startswith("--")]
own = "--no-python" in sys.argv
for local in range(count):
    ranks = {"LOCAL_RANK": str(local), "LOCAL_WORLD_SIZE": str(count)}
    if own:
        host, port = flags["rdzv-endpoint"].split(":")
        assert flags["rdzv-backend"] == "c10d" and flags["rdzv-id"], sys.argv
        ranks |= {"RANK": "wrong", "MASTER_ADDR": host, "MASTER_PORT": port}
    else:
        rank = int(flags["node-rank"]) * count + local
        ranks |= {"RANK": str(rank), "MASTER_ADDR": flags["master-addr"], "MASTER_PORT": flags["master-port"]}
    subprocess.run(rest if own else ["python", *rest], check=True, env=os.environ | ranks)
"""
MPIRUN = """#!INTERPRETER
import os, subprocess, sys
words = sys.argv[1:]
command = words[words.index("/bin/sh"):]
count = int(words[words.index("-np") + 1])
passed = {words[at + 1] for at, word in enumerate(words) if word == "-x"}
clean = {name: value for name, value in os.environ.items() if name in passed | {"PATH", "NOTES"}}
for rank in range(count):
    ranks = {"RANK": rank, "SIZE": count, "LOCAL_RANK": rank % 8}
    ranks = {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in ranks.items()}
    subprocess.run(command, check=True, env=clean | ranks)
"""


def require(condition, what):
    if not condition:
        sys.exit(what)


def run(*command, **options):
    done = subprocess.run(command, check=False, capture_output=True, text=True, **options)
    require(done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stderr


class Machine:
    """A pod on one machine: its folders stand below one folder."""

    def __init__(self, folder, canopy, server):
        (self.folder, self.canopy, self.server) = (folder, canopy, server)
        (folder / "plans").mkdir(parents=True)
        (folder / "bin").mkdir()
        for name, text in [("python", PYTHON), ("torchrun", TORCHRUN), ("mpirun", MPIRUN)]:
            (folder / "bin" / name).write_text(text.replace("INTERPRETER", sys.executable))
            (folder / "bin" / name).chmod(0o755)

    def here(self, text):
        for mounted in ("/plans", "/etc/canopy-network", "/etc/mpi"):
            text = text.replace(mounted, f"{self.folder}{mounted}")
        return text

    def prepare(self, containers):
        for part in containers:
            words = [self.here(word) for word in part["args"]]
            require(part["command"] == ["/usr/local/bin/canopy"], f"{part['name']} runs {part['command']}")
            words = [word for word in words if not word.startswith(("--ca=", "--token-file="))]
            words = [f"--server={self.server}" if word.startswith("--server=") else word for word in words]
            run(self.canopy, *words, *(["--strict"] if words[0] == "fetch" else []))

    def start(self, container, **variables):
        """The lines of all processes."""
        require(container["command"] == ["/bin/sh", "-c"], f"{container['name']} runs {container['command']}")
        notes = self.folder / "notes"
        notes.write_text("")
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        environment = {"PATH": path, "NOTES": str(notes), **variables}
        run("/bin/sh", "-c", self.here(container["args"][0]), env=environment)
        return [line.split(" ") for line in notes.read_text().splitlines()]


def templates(path):
    """Specifications of the pods of a job, by the name of their first container's role."""
    document = next(yaml.safe_load_all(path.read_text()))
    spec = document["spec"]
    match document["kind"]:
        case "Job":
            return {"machine": spec["template"]["spec"]}
        case "JobSet":
            (job,) = spec["replicatedJobs"]
            return {job["name"]: job["template"]["spec"]["template"]["spec"]}
        case "MPIJob":
            return {name: part["template"]["spec"] for name, part in spec["mpiReplicaSpecs"].items()}
        case "PyTorchJob":
            return {name: part["template"]["spec"] for name, part in spec["pytorchReplicaSpecs"].items()}


def check(path, lines, first, master):
    """Eight processes with the ranks from `first` on, which all use plans that are there."""
    ranks = [int(line[0]) for line in lines]
    require(ranks == list(range(first, first + len(lines))), f"{path}: the ranks are {ranks}")
    for _, local, address, plans in lines:
        require(address == master, f"{path}: MASTER_ADDR is {address}, not {master}")
        require(0 <= int(local) < GPUS, f"{path}: LOCAL_RANK is {local}")
        require(len(plans.split(":")) == 2, f"{path}: the plans are {plans}")
        require(all(Path(plan).is_file() for plan in plans.split(":")), f"{path}: {plans} is not there")


def indexed(root, path, canopy, server, master):
    """A pod for each machine, which know their machines by their indices."""
    ((_, spec),) = templates(path).items()
    for index in range(len(MACHINES)):
        machine = Machine(root / f"{path.stem}-{index}", canopy, server)
        machine.prepare(spec["initContainers"])
        lines = machine.start(spec["containers"][0], JOB_COMPLETION_INDEX=str(index))
        require(len(lines) == GPUS, f"{path}: {len(lines)} processes")
        check(path, lines, index * GPUS, master)


def ordered(root, path, canopy, server, network):
    """Ranks follow the order, not the indices."""
    ((_, spec),) = templates(path).items()
    for index, name in enumerate(MACHINES):
        machine = Machine(root / f"{path.stem}-{index}", canopy, server)
        place = machine.folder / "etc/canopy-network/network.yaml"
        place.parent.mkdir(parents=True)
        place.write_text(network)
        machine.prepare(spec["initContainers"])
        order = (machine.folder / "plans/hosts").read_text().split()
        require(sorted(order) == MACHINES, f"{path}: the order is {order}")
        container = spec["containers"][0]
        (variable,) = container["env"]
        require(variable["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}, f"{path}: {variable}")
        lines = machine.start(container, **{variable["name"]: name})
        require(len(lines) == GPUS, f"{path}: {len(lines)} processes")
        check(path, lines, order.index(name) * GPUS, "training-order-machine-0-0.training-order")


def mpi(root, path, canopy, server):
    found = templates(path)
    machine = Machine(root / path.stem, canopy, server)
    machine.prepare(found["Worker"]["initContainers"])
    hosts = machine.folder / "etc/mpi/hostfile"
    hosts.parent.mkdir(parents=True)
    hosts.write_text("".join(f"training-worker-{index}.training.team.svc slots=8\n" for index in range(2)))
    launcher = found["Launcher"]["containers"][0]
    lines = machine.start(launcher)
    require(len(lines) == 2 * GPUS, f"{path}: {len(lines)} processes")
    check(path, lines, 0, "training-worker-0.training.team.svc")


def pytorch(root, path, canopy, server):
    found = templates(path)
    for rank, role in enumerate(["Master", "Worker"]):
        machine = Machine(root / f"{path.stem}-{rank}", canopy, server)
        machine.prepare(found[role]["initContainers"])
        operator = {"RANK": str(rank), "MASTER_ADDR": "training-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "2"}
        (container,) = found[role]["containers"]
        require(container["name"] == "pytorch", f"{path}: the operator looks for a container `pytorch`")
        check(path, machine.start(container, **operator), rank * GPUS, "training-master-0")


def helm_test(root, path, canopy, server):
    """The container of `helm test`, which gets a plan and leaves no file."""
    found = [document for document in yaml.safe_load_all(path.read_text()) if document and document["kind"] == "Pod"]
    require(len(found) == 1, f"{path} has {len(found)} pods")
    Machine(root / "test", canopy, server).prepare(found[0]["spec"]["containers"])


def all_of(root, canopy, server):
    networks = root / "networks"
    networks.mkdir()
    run(canopy, "topology", "generate", "dgx-h100:boxes=2", "--output", networks / "plain.yaml")
    text = (networks / "plain.yaml").read_text()
    for box, name in enumerate(MACHINES):
        text = text.replace(f"box: b{box}", f"box: b{box}, host: {name}")
    (networks / "hall1.yaml").write_text(text)
    run(canopy, "cluster", "put", "hall1", "--network", networks / "hall1.yaml", "--server", server)
    job = networks / "job.yaml"
    run(canopy, "topology", "get", f"clusters/hall1:{','.join(MACHINES)}", "--output", job, "--server", server)
    examples = FOLDER / "examples"
    indexed(root, FOLDER / "init-container.yaml", canopy, server, "training-0.training")
    indexed(root, examples / "jobset.yaml", canopy, server, "training-machine-0-0.training")
    ordered(root, examples / "jobset-order.yaml", canopy, server, job.read_text())
    mpi(root, examples / "mpijob.yaml", canopy, server)
    pytorch(root, examples / "pytorchjob.yaml", canopy, server)
    helm_test(root, Path("deploy/chart/goldens/one.yaml"), canopy, server)


def main(canopyd, canopy):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        command = [canopyd, "--dev", "--listen", "127.0.0.1:0", "--data-dir", root / "data", "--log-format", "json"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                lines = (json.loads(line) for line in process.stderr)
                server = next(line["tcp"] for line in lines if line["message"] == "serving canopy.v1")
                all_of(root, canopy, server)
            finally:
                process.terminate()
    print("the containers of 5 example jobs and of `helm test` do what they should")


if __name__ == "__main__":
    main(*sys.argv[1:])
