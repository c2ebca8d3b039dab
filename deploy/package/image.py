"""Writes an OCI image of canopyd without a container engine, as one archive that also `docker load` reads.

Usage: image.py PROGRAMS DOCUMENTS VERSION REVISION FILE. PROGRAMS is the folder with `canopyd` and `canopy`, DOCUMENTS the
folder of their licences. SOURCE_DATE_EPOCH is the time of all files.

The image holds the programs, the shared libraries that they load, the certificate authorities of Debian's package
`ca-certificates`, and the licences of all of them. The same input gives the same bytes. Paths, user and settings are those
of the `Dockerfile`.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

USER = 65532
DATA = "var/lib/canopy"
PROGRAMS = ("canopyd", "canopy")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Not /etc/ssl/certs: that has what was added on this machine, too.
AUTHORITIES = Path("/usr/share/ca-certificates/mozilla")
ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/{DATA}:/usr/sbin/nologin\n",
    "etc/group": f"root:x:0:\nnonroot:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


class Tree:
    """Files that become a tar archive whose bytes depend on nothing but them."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.entries = {}

    def _add(self, path, kind, mode, owner=0, content=b"", link=""):
        for parent in reversed(Path(path).parents):
            if str(parent) != "." and str(parent) not in self.entries:
                self._add(str(parent), tarfile.DIRTYPE, 0o755)
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode, entry.mtime, entry.linkname = kind, mode, self.epoch, link
        entry.uid = entry.gid = owner
        entry.size = len(content)
        self.entries[path] = (entry, content)

    def folder(self, path, mode=0o755, owner=0):
        self._add(path, tarfile.DIRTYPE, mode, owner)

    def file(self, path, content, mode=0o644):
        self._add(path, tarfile.REGTYPE, mode, content=content)

    def link(self, path, target):
        self._add(path, tarfile.SYMTYPE, 0o777, link=target)

    def archive(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for _, (entry, content) in sorted(self.entries.items()):
                tar.addfile(entry, io.BytesIO(content))
        return out.getvalue()


def libraries(programs):
    """The files that the loader maps for these programs, and the loader itself."""
    found = set()
    for program in programs:
        said = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        if "not found" in said:
            sys.exit(f"{program} needs a library that is not on this machine:\n{said}")
        found |= {Path(path) for path in re.findall(r"(/\S+) \(0x", said)}
    return sorted(found)


def owner(path):
    """The Debian package that a file belongs to, or None."""
    if shutil.which("dpkg-query") is None:
        return None
    # On merged systems a package names its file by one of two paths.
    for name in dict.fromkeys([str(path), str(path.resolve()), str(path.resolve()).removeprefix("/usr")]):
        done = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.split(": ")[0].split(",")[0]
    return None


def fill(layer, programs, documents):
    """Puts everything into the image; returns the Debian packages that it has files of."""
    packages = set()
    for folder in ("dev", "proc", "run", "sys"):
        layer.folder(folder)
    layer.folder("tmp", 0o1777)
    # The only place that canopyd writes to.
    layer.folder(DATA, 0o700, USER)
    for path, text in ACCOUNTS.items():
        layer.file(path, text.encode())
    for name in PROGRAMS:
        layer.file(f"usr/local/bin/{name}", (programs / name).read_bytes(), 0o755)
    for path in sorted(path for path in documents.rglob("*") if path.is_file()):
        layer.file(f"usr/share/doc/canopy/{path.relative_to(documents)}", path.read_bytes())

    for path in libraries(programs / name for name in PROGRAMS):
        # As the loader sees it: folders such as /lib may be links to others.
        top = path.parts[1]
        if Path("/", top).is_symlink():
            layer.link(top, os.readlink(f"/{top}"))
        place = path.parent.resolve() / path.name
        layer.file(str(place).removeprefix("/"), path.read_bytes(), 0o755)
        packages.add(owner(path))
    if AUTHORITIES.is_dir():
        authorities = sorted(AUTHORITIES.glob("*.crt"))
        layer.file("etc/ssl/certs/ca-certificates.crt", b"".join(path.read_bytes() for path in authorities))
        packages.add("ca-certificates")
    else:
        print("the image has no certificate authorities: install ca-certificates to add them", file=sys.stderr)

    # Scanners find the versions of packages here, and whose they are in os-release.
    packages.discard(None)
    for package in sorted(packages):
        name = package.split(":")[0]
        status = subprocess.check_output(["dpkg-query", "--status", package])
        layer.file(f"var/lib/dpkg/status.d/{name}", status)
        copyright_file = Path("/usr/share/doc", name, "copyright")
        if copyright_file.is_file():
            layer.file(f"usr/share/doc/{name}/copyright", copyright_file.read_bytes())
    layer.file("etc/os-release", Path("/etc/os-release").read_bytes())


def encoded(document):
    return json.dumps(document, indent=2, sort_keys=True).encode() + b"\n"


def digest(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def main(programs, documents, version, revision, output):
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    layer = Tree(epoch)
    fill(layer, Path(programs), Path(documents))
    unpacked = layer.archive()
    packed = gzip.compress(unpacked, compresslevel=6, mtime=0)

    labels = {
        "org.opencontainers.image.title": "canopy",
        "org.opencontainers.image.description": "Planner of collective communication: canopyd and canopy",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": revision,
        "org.opencontainers.image.created": created,
    }
    config = encoded({
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "created": created,
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/usr/local/bin/canopyd"],
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", f"CANOPY_DATA_DIR=/{DATA}"],
            "ExposedPorts": {"7423/tcp": {}, "7424/tcp": {}},
            "Volumes": {f"/{DATA}": {}},
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(unpacked)]},
        "history": [{"created": created, "created_by": "deploy/package.sh oci"}],
    })

    def described(kind, content):
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(content), "size": len(content)}

    manifest = encoded({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("config.v1+json", config),
        "layers": [described("layer.v1.tar+gzip", packed)],
        "annotations": labels,
    })
    name = f"canopy:{version}"
    reference = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": f"docker.io/library/{name}"}
    index = encoded({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described("manifest.v1+json", manifest) | {"annotations": reference}],
    })

    def blob(content):
        return f"blobs/{digest(content).replace(':', '/')}"

    archive = Tree(epoch)
    archive.file("oci-layout", encoded({"imageLayoutVersion": "1.0.0"}))
    archive.file("index.json", index)
    for content in (manifest, config, packed):
        archive.file(blob(content), content)
    # For `docker load`, which looks for this file and ignores the index.
    archive.file("manifest.json", encoded([{"Config": blob(config), "RepoTags": [name], "Layers": [blob(packed)]}]))
    Path(output).write_bytes(archive.archive())


if __name__ == "__main__":
    main(*sys.argv[1:])
