"""Checks rendered manifests: schemas of Kubernetes, what objects say of each other, and what the chart repeats.

Usage: check.py COMMAND ARGUMENT…, from the root of the repository.

  golden RENDERED                    prints it without the copies of the alerts and of the dashboard
  manifests VERSION FILE…            schemas of this version of Kubernetes, such as 1.35, and references between objects
  same FILE FILE                     both hold the same objects, in whichever order
  sources CHART                      an unpacked chart holds the alerts, the dashboard and the version of the repository
  values                             schema, values and the page of the chart name the same settings
  config FILE FOLDER                 writes each canopyd.toml of a rendered file into the folder, with paths below it
  kustomize BASE SHARED              what both ways to run the servers have in common is equal
  examples                           the init containers of all jobs are equal
  page FOLDER                        writes the values and the kustomization.yaml that the page shows into the folder
"""

import importlib.util
import json
import re
import sys
from pathlib import Path

import yaml

CHART = Path("deploy/chart/canopy")
KUBERNETES = Path("deploy/kubernetes")
ALERTS = Path("deploy/prometheus/alerts.yaml")
DASHBOARD = Path("deploy/grafana/canopy.json")
PAGE = Path("docs/operations/kubernetes.md")
SAMPLE = Path("deploy/canopyd.toml")
# What the chart writes into canopyd.toml from other values, and what has no use in a pod.
WRITTEN = {
    "access", "admin_listen", "archive_signers", "audit", "data_dir", "database", "database_password_file", "dev",
    "drain_timeout", "family_rates", "listen", "role", "tls_certificate", "tls_client_ca", "tls_key", "tokens",
    "users_socket", "workers",
}  # fmt: skip
WORKLOADS = {"Deployment", "StatefulSet", "Job"}


def require(condition, what):
    if not condition:
        sys.exit(what)


def documents(path):
    return [document for document in yaml.safe_load_all(Path(path).read_text()) if document is not None]


def indented(text, by):
    return "".join(f"{' ' * by}{line}" for line in text.splitlines(keepends=True))


def golden(rendered):
    """Large files are compared with their sources here, so that a change of them is no change of a golden file."""
    text = Path(rendered).read_text()
    dashboard = indented(DASHBOARD.read_text(), 4)
    alerts = indented(ALERTS.read_text(), 2).replace("\n  \n", "\n\n")
    published = re.sub(r"runbook_url: docs/(.*)\.md", r"runbook_url: https://docs.example/canopy/\1.html", alerts)
    for source, path in [(dashboard, DASHBOARD), (alerts, ALERTS), (published, ALERTS)]:
        lines = [line.rstrip() for line in source.rstrip("\n").split("\n")]
        begins = len(lines[0]) - len(lines[0].lstrip())
        text = "\n".join(line.rstrip() for line in text.split("\n")).replace(
            "\n".join(lines), f"{' ' * begins}# {path}"
        )
    if "kind: PrometheusRule" in text:
        require(f"# {ALERTS}" in text, f"{rendered}: the rules are not those of {ALERTS}")
    if "grafana_dashboard" in text:
        require(f"# {DASHBOARD}" in text, f"{rendered}: the dashboard is not {DASHBOARD}")
    print(text, end="")


# Schemas


class Schemas:
    """Schemas of one version of Kubernetes, and of operators."""

    def __init__(self, version):
        from jsonschema import Draft7Validator
        from referencing import Registry
        from referencing.jsonschema import DRAFT7

        self.validator = Draft7Validator
        package = Path(importlib.util.find_spec("kubernetes_validate").origin).parent
        self.folder = package / f"kubernetes-json-schema/v{version}.0-local-strict"
        require(self.folder.is_dir(), f"there are no schemas of Kubernetes {version}")
        definitions = json.loads((self.folder / "_definitions.json").read_text())
        self.registry = Registry().with_resource("/api/_definitions.json", DRAFT7.create_resource(definitions))
        core = "/api/_definitions.json#/$defs/io.k8s.api"
        names = {
            "pod": f"{core}.core.v1.PodTemplateSpec",
            "job": f"{core}.batch.v1.JobTemplateSpec",
            "secretKey": f"{core}.core.v1.SecretKeySelector",
            "resources": f"{core}.core.v1.ResourceRequirements",
        }
        text = Path("deploy/chart/schemas.yaml").read_text()
        own = yaml.safe_load(re.sub(r"\$ref: (\w+)\b", lambda found: f"$ref: '{names[found[1]]}'", text))
        metadata = {"$ref": "/api/_definitions.json#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
        self.own = {
            name: {
                "definitions": own["definitions"],
                "type": "object",
                "additionalProperties": False,
                "required": ["metadata"],
                "properties": {"apiVersion": {}, "kind": {}, "metadata": metadata, "spec": spec},
            }
            for name, spec in own["kinds"].items()
        }

    def of(self, document):
        version, kind = document["apiVersion"], document["kind"]
        if f"{version} {kind}" in self.own:
            return self.own[f"{version} {kind}"]
        group, _, level = version.rpartition("/")
        name = "-".join(part for part in [kind.lower(), group.split(".")[0], level] if part)
        path = self.folder / f"{name}.json"
        require(path.is_file(), f"there is no schema of {version} {kind}")
        return json.loads(path.read_text())

    def check(self, document, where):
        for error in self.validator(self.of(document), registry=self.registry).iter_errors(document):
            place = ".".join(str(part) for part in error.absolute_path)
            sys.exit(f"{where}, {document['kind']} {document['metadata'].get('name')}: {place}: {error.message[:300]}")


def pods(document):
    """Names and specifications of the pods that an object leads to, whatever its kind."""
    found = []

    def search(part, labels, path):
        if isinstance(part, dict):
            if "containers" in part:
                found.append((path, labels, part))
                return
            inner = part.get("metadata", {}).get("labels", {}) if isinstance(part.get("metadata"), dict) else labels
            for key, value in part.items():
                search(value, inner, f"{path}.{key}")
        elif isinstance(part, list):
            for index, value in enumerate(part):
                search(value, labels, f"{path}.{index}")

    search(document, {}, f"{document['kind']} {document['metadata']['name']}")
    return found


def check_pod(path, spec, claims):
    """Mounts, ports, probes and confinement of one pod."""
    volumes = {volume["name"] for volume in spec.get("volumes", [])} | claims
    containers = spec.get("initContainers", []) + spec["containers"]
    used = set()
    for part in containers:
        where = f"{path}, container {part['name']}"
        for mount in part.get("volumeMounts", []):
            require(mount["name"] in volumes, f"{where} mounts {mount['name']}, which is not there")
            used.add(mount["name"])
        ports = {port["name"] for port in part.get("ports", [])}
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = part.get(name, {}).get("httpGet")
            require(asked is None or asked["port"] in ports, f"{where}: the {name} asks a port that is not there")
        limits = part.get("resources", {}).get("limits", {})
        require("memory" in limits or part["image"].startswith("training:"), f"{where} has no limit of memory")
        for entry in part.get("env", []):
            reference = entry.get("valueFrom", {}).get("resourceFieldRef")
            if reference:
                kind, _, name = reference["resource"].partition(".")
                require(name in part["resources"][kind], f"{where}: {entry['name']} reads {reference['resource']}")
    require(volumes <= used, f"{path}: no container mounts {', '.join(sorted(volumes - used))}")
    require(spec.get("automountServiceAccountToken") is False or "training" in path, f"{path} has a token")
    for part in containers:
        if not part["image"].startswith("training:"):
            check_restricted(f"{path}, container {part['name']}", spec, part)


def check_restricted(where, pod, part):
    """What the profile `restricted` of Pod Security asks for, and a root file system that is read only."""
    security = {**pod.get("securityContext", {}), **part.get("securityContext", {})}
    require(security.get("runAsNonRoot") is True, f"{where} may run as root")
    require(security.get("allowPrivilegeEscalation") is False, f"{where} may escalate its privileges")
    require(security.get("readOnlyRootFilesystem") is True, f"{where} writes to its root file system")
    require(security.get("capabilities") == {"drop": ["ALL"]}, f"{where} has capabilities")
    require(security.get("seccompProfile") == {"type": "RuntimeDefault"}, f"{where} has no seccomp profile")


def check_graces(document, objects):
    """A pod of canopyd has time for the wait before SIGTERM, its drain, and 15 s more."""
    for path, _, spec in pods(document):
        for part in spec["containers"]:
            if part["name"] != "canopyd":
                continue
            drain = 25
            for volume in spec.get("volumes", []):
                config = objects.get(("ConfigMap", volume.get("configMap", {}).get("name")), {}).get("data", {})
                found = re.search(r'^drain_timeout = "(\d+)s"$', config.get("canopyd.toml", ""), re.MULTILINE)
                drain = int(found[1]) if found else drain
            wait = part.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
            grace = spec["terminationGracePeriodSeconds"]
            require(grace >= wait + drain + 15, f"{path}: {grace} s are too few for {wait} s and a drain of {drain} s")


def selects(selector, labels):
    return all(labels.get(key) == value for key, value in selector.items())


def check_references(path, found):
    """Selectors select, services lead to ports, and volumes name objects of the file or ones that exist before."""
    objects = {(document["kind"], document["metadata"]["name"]): document for document in found}
    require(len(objects) == len(found), f"{path} holds two objects of one kind and name")
    all_pods = [(place, labels, spec) for document in found for place, labels, spec in pods(document)]
    for document in found:
        kind, name, spec = document["kind"], document["metadata"]["name"], document.get("spec", {})
        where = f"{path}, {kind} {name}"
        if kind in WORKLOADS and "selector" in spec:
            labels = spec["template"]["metadata"]["labels"]
            require(selects(spec["selector"]["matchLabels"], labels), f"{where} does not select its pods")
            for constraint in spec["template"]["spec"].get("topologySpreadConstraints", []):
                require(selects(constraint["labelSelector"]["matchLabels"], labels), f"{where} spreads other pods")
        if kind == "StatefulSet":
            require(("Service", spec["serviceName"]) in objects, f"{where} names a service that is not there")
        selector = {
            "Service": lambda: spec["selector"],
            "PodDisruptionBudget": lambda: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda: spec["podSelector"]["matchLabels"],
        }.get(kind)
        if selector:
            selected = [pod for _, labels, pod in all_pods if selects(selector(), labels)]
            require(selected, f"{where} selects no pod")
            for port in spec.get("ports", []):
                for pod in selected:
                    ports = {port["name"] for part in pod["containers"] for port in part.get("ports", [])}
                    require(port["targetPort"] in ports, f"{where} leads to no port {port['targetPort']}")
        if kind == "ServiceMonitor":
            services = [other for other in found if other["kind"] == "Service"]
            watched = [one for one in services if selects(spec["selector"]["matchLabels"], one["metadata"]["labels"])]
            require(len(watched) == 1, f"{where} watches {len(watched)} services")
            names = {port["name"] for port in watched[0]["spec"]["ports"]}
            require({end["port"] for end in spec["endpoints"]} <= names, f"{where} reads a port that is not there")
        claims = {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
        for place, _, pod in pods(document):
            check_pod(place, pod, claims)
            for volume in pod.get("volumes", []):
                check_volume(where, volume, objects)
        check_graces(document, objects)


def check_volume(where, volume, objects):
    """What the file itself defines has the keys that are read."""
    sources = volume.get("projected", {}).get("sources", [volume])
    for source in sources:
        for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
            named = source.get(field)
            if not named:
                continue
            known = objects.get((kind, named.get("name") or named.get("secretName")))
            if known:
                keys = known.get("data", known.get("stringData", {}))
                for item in named.get("items", []):
                    require(item["key"] in keys, f"{where}: {known['metadata']['name']} has no key {item['key']}")


def manifests(version, *paths):
    schemas = Schemas(version)
    count = 0
    for path in paths:
        found = documents(path)
        require(found, f"{path} holds no object")
        for document in found:
            schemas.check(document, path)
        check_references(path, found)
        count += len(found)
    print(f"{count} objects fit Kubernetes {version} and each other")


# The chart and what it repeats


def same(first, second):
    def key(document):
        return document["kind"], document["metadata"]["name"]

    one, other = (sorted(documents(path), key=key) for path in (first, second))
    for left, right in zip(one, other, strict=False):
        require(left == right, f"{first} and {second} differ: {key(left)}, {key(right)}")
    require(len(one) == len(other), f"{first} has {len(one)} objects, {second} {len(other)}")


def sources(unpacked):
    chart = Path(unpacked)
    for name, source in [("files/alerts.yaml", ALERTS), ("files/dashboard.json", DASHBOARD)]:
        packed = chart / name
        require(not packed.is_symlink() and packed.read_bytes() == source.read_bytes(), f"{name} is not {source}")
    version = re.search(r'^version = "(.+)"', Path("Cargo.toml").read_text(), re.MULTILINE)[1]
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    for field in ("version", "appVersion"):
        require(about[field] == version, f"Chart.yaml: {field} is {about[field]}, and canopy is {version}")
    require(not (chart / "ci").exists(), "the package holds the values of the tests")


def leaves(values, schema, path=""):
    """Names of all values, and whether the schema is strict at each of them."""
    properties = schema.get("properties")
    if properties is None:
        return {path}
    require(schema.get("additionalProperties") is False, f"the schema allows unknown values below {path or 'the root'}")
    if not path:
        # Helm adds it.
        properties = {key: value for key, value in properties.items() if key != "global"}
    if path == "config":
        return {path}
    if path:
        require(values.keys() <= properties.keys(), f"the schema does not know a value below {path}")
    found = set()
    for key, value in properties.items():
        inner = f"{path}.{key}" if path else key
        optional = path.endswith("issuerRef")
        require(optional or key in values, f"values.yaml does not state {inner}")
        found |= leaves(values.get(key, {}), value, inner)
    return found


def values():
    schema = json.loads((CHART / "values.schema.json").read_text())
    stated = yaml.safe_load((CHART / "values.yaml").read_text())
    found = leaves(stated, schema)
    known = set(re.findall(r"^(?:# )?(\w+) = ", SAMPLE.read_text(), re.MULTILINE)) - WRITTEN
    allowed = set(schema["properties"]["config"]["properties"])
    require(known == allowed, f"the schema of `config` and {SAMPLE} differ: {', '.join(sorted(known ^ allowed))}")
    page = PAGE.read_text()
    for name in found:
        parts = name.split(".")
        prefixes = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
        require(any(f"`{prefix}`" in page for prefix in prefixes), f"{PAGE} does not name {name}")
    for name in set(re.findall(r"^\| `([\w.]+)`", page, re.MULTILINE)):
        require(any(leaf == name or leaf.startswith(f"{name}.") for leaf in found), f"{PAGE}: no value {name}")
    print(f"{len(found)} values are in the schema, in values.yaml and on the page")


def config(path, folder):
    """Files that the settings name are below the folder: /etc/canopy-tls/tls.crt is FOLDER/etc/canopy-tls/tls.crt."""
    found = {document["metadata"]["name"]: document for document in documents(path) if document["kind"] == "ConfigMap"}
    written = 0
    for name, document in found.items():
        text = document.get("data", {}).get("canopyd.toml")
        if text is None:
            continue
        written += 1
        folder_of = Path(folder) / name
        rooted = text.replace("/etc/canopy", f"{folder_of}/etc/canopy")
        for place, content in document["data"].items():
            target = folder_of / "etc/canopy" / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content if place != "canopyd.toml" else rooted)
        for named in re.findall(rf"{re.escape(str(folder_of))}/etc/[\w./-]+", rooted):
            target = Path(named)
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.touch(mode=0o640)
        print(folder_of / "etc/canopy/canopyd.toml")
    require(written > 0, f"{path} has no canopyd.toml")


def kustomize(base, shared):
    common = ["Namespace", "ServiceAccount", "Service", "PodDisruptionBudget"]
    one, other = ({document["kind"]: document for document in documents(path)} for path in (base, shared))
    for kind in common:
        require(one[kind] == other[kind], f"{base} and {shared} have different objects of kind {kind}")
    left, right = one["NetworkPolicy"]["spec"], other["NetworkPolicy"]["spec"]
    require(left["ingress"] == right["ingress"], "the two network policies admit different callers")
    left, right = (found[kind]["spec"]["template"] for found, kind in ((one, "StatefulSet"), (other, "Deployment")))
    require(left["metadata"] == right["metadata"], "pods of the two have different labels")
    for field in ("securityContext", "serviceAccountName", "terminationGracePeriodSeconds"):
        require(left["spec"][field] == right["spec"][field], f"pods of the two have different {field}")
    (left,), (right,) = left["spec"]["containers"], right["spec"]["containers"]
    for field in ("image", "ports", "startupProbe", "readinessProbe", "livenessProbe", "securityContext"):
        require(left[field] == right[field], f"containers of the two have different {field}")


def fetching():
    """Every init container that fetches plans, by file."""
    paths = [KUBERNETES / "init-container.yaml", *sorted((KUBERNETES / "examples").glob("*.yaml"))]
    for path in paths:
        for document in documents(path):
            for _, _, spec in pods(document):
                for part in spec.get("initContainers", []):
                    yield path, part


def examples():
    plans = [(path, part) for path, part in fetching() if part["name"] == "plans"]
    require(len(plans) >= 5, "the examples fetch no plans")
    varying = ("clusters/", "dgx-", "--nodes-file=")

    def alike(part):
        return {**part, "args": [word for word in part["args"] if not word.startswith(varying)]}

    for path, part in plans:
        require(alike(part) == alike(plans[0][1]), f"{path} fetches plans otherwise than {plans[0][0]}")


def page(folder):
    """Each block of YAML with values is a file of its own."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    require(len(blocks) >= 5, f"{PAGE} has {len(blocks)} blocks of YAML")
    for index, block in enumerate(blocks):
        is_kustomization = yaml.safe_load(block).get("kind") == "Kustomization"
        (Path(folder) / ("kustomization.yaml" if is_kustomization else f"values-{index}.yaml")).write_text(block)
    rules = re.search(r"^```toml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (Path(folder) / "access.toml").write_text(rules[1])


if __name__ == "__main__":
    commands = {
        function.__name__: function
        for function in (golden, manifests, same, sources, values, config, kustomize, examples, page)
    }
    commands[sys.argv[1]](*sys.argv[2:])
