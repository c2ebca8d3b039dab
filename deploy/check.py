"""Checks the files of this folder against each other, against the server and with promtool.

Usage: check.py PATH_OF_CANOPYD. Needs PyYAML, prometheus-client, promtool and the root of the repository as working directory.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

DEPLOY = Path("deploy")
PROMETHEUS = DEPLOY / "prometheus"
RUNBOOKS = Path("docs/operations/alerts")
METRICS_PAGE = Path("docs/reference/metrics.md")
DASHBOARD = DEPLOY / "grafana/canopy.json"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def promtool(*arguments, **options):
    run("promtool", *arguments, **options)


def require(condition, what):
    if not condition:
        sys.exit(what)


def dashboard_expressions():
    """Every query of the dashboard, with Grafana's variables filled in."""
    dashboard = json.loads(DASHBOARD.read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    require(len(ids) == len(set(ids)), f"{DASHBOARD}: two panels have one id")
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    require(len(queries) >= 20, f"{DASHBOARD}: only {len(queries)} queries")
    return [query.replace("$__rate_interval", "5m").replace("$instance", ".*") for query in queries]


def check_rules(expressions):
    promtool("check", "config", "--syntax-only", PROMETHEUS / "prometheus.yaml")
    promtool("check", "rules", PROMETHEUS / "alerts.yaml")
    promtool("test", "rules", PROMETHEUS / "alerts_test.yaml")
    rules = [{"record": f"dashboard:{index}", "expr": query} for index, query in enumerate(expressions)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
        file.flush()
        promtool("check", "rules", file.name)


def check_metrics(expressions):
    """Every metric that an alert or a panel reads is one that the server writes."""
    rules = yaml.safe_load((PROMETHEUS / "alerts.yaml").read_text())["groups"]
    expressions = expressions + [rule["expr"] for group in rules for rule in group["rules"]]
    read = {name for query in expressions for name in re.findall(r"\bcanopy_\w+", query)}
    sources = "\n".join(path.read_text() for path in Path("server/src").rglob("*.rs"))
    written = set(re.findall(r"\"(canopy_\w+)\"", sources))
    missing = {name for name in read if not {name, name.removesuffix("_bucket"), name.removesuffix("_sum")} & written}
    require(not missing, f"no source of the server names {', '.join(sorted(missing))}")
    tested = (PROMETHEUS / "alerts_test.yaml").read_text()
    for group in rules:
        for rule in group["rules"]:
            require(rule["alert"] in tested, f"alerts_test.yaml does not raise {rule['alert']}")


def check_runbooks():
    """Every alert has its page, every page its alert, and all agree on the severity."""
    groups = yaml.safe_load((PROMETHEUS / "alerts.yaml").read_text())["groups"]
    rules = {rule["alert"]: rule for group in groups for rule in group["rules"]}
    pages = {path.stem for path in RUNBOOKS.glob("*.md")}
    require(rules.keys() <= pages, f"{RUNBOOKS} lacks a page for {', '.join(sorted(rules.keys() - pages))}")
    require(pages <= rules.keys(), f"{RUNBOOKS}: no alert is called {', '.join(sorted(pages - rules.keys()))}")
    index_path = RUNBOOKS.with_suffix(".md")
    index = index_path.read_text()
    for name, rule in rules.items():
        path, severity = RUNBOOKS / f"{name}.md", rule["labels"]["severity"]
        given = rule["annotations"].get("runbook_url")
        require(given == str(path), f"{name}: runbook_url is {given}, not {path}")
        page = path.read_text()
        require(page.startswith(f"# {name}\n"), f"{path} does not begin with the name of its alert")
        require(f"| severity | {severity} |" in page, f"{path} does not state the severity {severity}")
        headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
        expected = ["Meaning", "Impact", "Check", "Fix", "Escalate"]
        require(headings == expected, f"{path}: the sections are {headings}, not {expected}")
        row = f"| [{name}]({RUNBOOKS.name}/{name}.md) | {severity} |"
        require(row in index, f"{index_path} has no row that begins with {row}")


def check_metrics_page():
    """The page of metrics has every metric of the server, and no other."""
    names, process = (Path(f"server/src/metrics/{name}.rs").read_text() for name in ("names", "process"))
    written = set(re.findall(r'"(canopy_\w+)"', names)) | set(re.findall(r'"(process_\w+)"', process))
    row = re.compile(r"^\| `((?:canopy|process)_\w+)` \| (?:counter|gauge|histogram)\b", re.MULTILINE)
    described = row.findall(METRICS_PAGE.read_text())
    require(len(described) == len(set(described)), f"{METRICS_PAGE} describes a metric twice")
    missing, unknown = written - set(described), set(described) - written
    require(not missing, f"{METRICS_PAGE} lacks {', '.join(sorted(missing))}")
    require(not unknown, f"{METRICS_PAGE}: the server has no metric {', '.join(sorted(unknown))}")


def check_server(canopyd):
    """The sample is what the server prints and reads, and a real parser reads the server's metrics."""
    sample = DEPLOY / "canopyd.toml"
    remedy = f"{sample} is not what the server prints; write it anew: canopyd --print-config > {sample}"
    require(run(canopyd, "--print-config") == sample.read_text(), remedy)
    run(canopyd, "--config", sample, "check-config")
    with tempfile.TemporaryDirectory() as folder:
        command = [canopyd, "--dev", "--listen", "127.0.0.1:0", "--data-dir", f"{folder}/data", "--log-format", "json"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                lines = (json.loads(line) for line in server.stderr)
                address = next(line["admin"] for line in lines if line["message"] == "serving canopy.v1")
                with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
                    promtool("check", "metrics", input=page.read().decode())
                headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
                asked = urllib.request.Request(f"http://{address}/metrics", headers=headers)
                with urllib.request.urlopen(asked, timeout=10) as page:
                    families = list(text_string_to_metric_families(page.read().decode()))
                require(len(families) > 40, f"the page in the OpenMetrics format has only {len(families)} metrics")
            finally:
                server.terminate()


def check_documents():
    """Every YAML file can be read; labels, ports and mounted files agree."""
    # Templates of Helm are not YAML; chart/test.sh renders them.
    paths = [path for path in sorted(DEPLOY.rglob("*.yaml")) if "templates" not in path.parts]
    documents = {path: list(yaml.safe_load_all(path.read_text())) for path in paths}
    for path, content in documents.items():
        require(content and all(content), f"{path} holds an empty document")
    objects = documents[DEPLOY / "kubernetes/canopyd.yaml"]
    by_kind = {document["kind"]: document["spec"] for document in objects if "spec" in document}
    template = by_kind["StatefulSet"]["template"]
    require(by_kind["StatefulSet"]["replicas"] == 1, "leases and faults are those of one server: canopyd has one replica")
    labels = template["metadata"]["labels"]
    selectors = [
        by_kind["Service"]["selector"],
        by_kind["StatefulSet"]["selector"]["matchLabels"],
        by_kind["PodDisruptionBudget"]["selector"]["matchLabels"],
        by_kind["NetworkPolicy"]["podSelector"]["matchLabels"],
    ]
    require(all(selector == labels for selector in selectors), "a selector does not select the pods of canopyd")
    container = template["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for port in by_kind["Service"]["ports"]:
        require(port["targetPort"] in ports, f"the service leads to no port named {port['targetPort']}")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container[probe]["httpGet"]
        require(asked["port"] in ports and asked["scheme"] == "HTTPS", f"the {probe} asks another port, or in plain text")
    job = documents[DEPLOY / "kubernetes/init-container.yaml"][0]["spec"]["template"]["spec"]
    claims = {claim["metadata"]["name"] for claim in by_kind["StatefulSet"]["volumeClaimTemplates"]}
    for pod, volumes in [(template["spec"], claims), (job, set())]:
        volumes = volumes | {volume["name"] for volume in pod.get("volumes", [])}
        for part in pod["containers"] + pod.get("initContainers", []):
            for mount in part["volumeMounts"]:
                require(mount["name"] in volumes, f"{part['name']} mounts {mount['name']}, which is not there")
    compose = documents[DEPLOY / "compose.yaml"][0]
    for name, service in compose["services"].items():
        for port in service["ports"]:
            require(port.startswith("127.0.0.1:"), f"{name} publishes {port} beyond this machine")
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            exists = (DEPLOY / source).exists() if source.startswith(".") else source in compose["volumes"]
            require(exists, f"{name} mounts {source}, which is not there")


def check_image():
    """What the image copies is there and is not hidden from the build."""
    dockerfile = Path("Dockerfile").read_text()
    shown = {line[1:] for line in Path(".dockerignore").read_text().splitlines() if line.startswith("!")}
    for line in re.findall(r"^COPY (?!--)(.+)$", dockerfile, re.MULTILINE):
        for source in line.split()[:-1]:
            require(Path(source).exists() and source in shown, f"Dockerfile copies {source}, which is not there")
    rust = re.search(r'^rust-version = "(.+)"', Path("Cargo.toml").read_text(), re.MULTILINE)[1]
    require(f"ARG RUST_IMAGE=rust:{rust}-" in dockerfile, f"Dockerfile does not build with Rust {rust}")
    named = [line for line in re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE) if not line.startswith("${")]
    require(not named, f"Dockerfile takes {named} by name: a build could not state its digest")


def check_unit():
    """systemd reads the unit without complaint and finds it well confined: an exposure of at most 1.5 out of 10."""
    if shutil.which("systemd-analyze") is None:
        reason = "the systemd unit is not checked: systemd-analyze is not installed"
        require(os.environ.get("CANOPY_REQUIRE_ALL", "0") in ("", "0"), f"{reason}; CANOPY_REQUIRE_ALL is set")
        print(f"skipped: {reason}")
        return
    unit = DEPLOY / "systemd/canopyd.service"
    with tempfile.TemporaryDirectory() as folder:
        # The program is not installed where it is checked.
        copy = Path(folder) / unit.name
        copy.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE))
        run("systemd-analyze", "verify", "--man=no", copy)
        run("systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", copy)


if __name__ == "__main__":
    expressions = dashboard_expressions()
    check_rules(expressions)
    check_metrics(expressions)
    check_runbooks()
    check_metrics_page()
    check_server(sys.argv[1])
    check_documents()
    check_image()
    check_unit()
    print("deploy: ok")
