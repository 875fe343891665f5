"""Builds the archives and reads what they contain."""

import csv
import io
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Archives:
    """The wheel and the sdist of one version."""

    wheel: Path
    sdist: Path


def build(folder: Path) -> Archives:
    """Build the sdists, and the wheels from them, and check all. Raises CalledProcessError.

    Returns the archives of the client. Those of the local control plane are in the folder, too.
    """
    python = [sys.executable, "-m"]
    for package in (ROOT, ROOT / "control_plane"):
        _run([*python, "build", f"--outdir={folder}", str(package)])
    [wheel] = folder.glob("neonctl_async-*.whl")
    [sdist] = folder.glob("neonctl_async-*.tar.gz")
    _run([*python, "twine", "check", "--strict", *map(str, folder.iterdir())])
    _run([*python, "check_wheel_contents", str(wheel)])
    return Archives(wheel, sdist)


def _run(command: list[str]) -> None:
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)


def wheel_records(wheel: Path) -> dict[str, str]:
    """Return the hash of each file of a wheel, as its RECORD lists them."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
        return parsed_records(archive.read(name).decode())


def parsed_records(text: str) -> dict[str, str]:
    """Return the hashes of a RECORD file, without padding as installers read them."""
    return {
        name: digest.partition("=")[2].rstrip("=")
        for name, digest, _ in csv.reader(io.StringIO(text))
        if digest
    }


def differences(wheel: Mapping[str, str], installed: Mapping[str, str]) -> list[str]:
    """Return the files of the wheel that are not installed with the same bytes.

    An installer may add files, such as ``INSTALLER`` and the command.
    """
    return sorted(name for name, digest in wheel.items() if installed.get(name) != digest)
