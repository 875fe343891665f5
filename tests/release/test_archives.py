"""What the wheel and the sdist hold: no file too many, none too few."""

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from pathspec import GitIgnoreSpec

from tests.release.conftest import ROOT

pytestmark = pytest.mark.release

PACKAGES = ("neonctl_async/", "pytest_neonctl_async/")
BESIDE_THE_CODE = {
    "neonctl_async/py.typed",
    "neonctl_async/local/storage/schema.sql",
    "pytest_neonctl_async/py.typed",
}
KINDS = {
    "",
    ".css",
    ".csv",
    ".dict",
    ".ini",
    ".json",
    ".md",
    ".mjs",
    ".py",
    ".sql",
    ".svg",
    ".toml",
    ".txt",
    ".typed",
    ".yml",
}
IGNORED = GitIgnoreSpec.from_lines((ROOT / ".gitignore").read_text().splitlines())


def files(folder: Path = ROOT) -> Iterator[str]:
    """The files of the repository, those of git itself and what it ignores left out."""
    for path in folder.iterdir():
        name = path.relative_to(ROOT).as_posix() + ("/" if path.is_dir() else "")
        if name.rstrip("/") == ".git" or IGNORED.match_file(name):
            continue
        if path.is_dir():
            yield from files(path)
        else:
            yield name


def of_the_wheel(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def of_the_sdist(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        top = sdist.name.removesuffix(".tar.gz")
        return {str(PurePosixPath(name).relative_to(top)) for name in archive.getnames()}


def test_the_sdist_holds_the_repository_and_nothing_else(sdist: Path) -> None:
    assert of_the_sdist(sdist) == {*files(), "PKG-INFO"}


def test_every_file_of_the_sdist_is_of_a_kind_that_belongs_there(sdist: Path) -> None:
    assert {PurePosixPath(name).suffix for name in of_the_sdist(sdist)} <= KINDS


def test_the_wheel_holds_the_two_packages_as_they_are_in_the_tree(wheel: Path) -> None:
    held = {name: content for name, content in of_the_wheel(wheel).items() if "-info/" not in name}
    there = {name for name in files() if name.startswith(PACKAGES)}
    assert held == {name: (ROOT / name).read_bytes() for name in there}


def test_the_packages_are_code_and_what_is_known_to_go_with_it(wheel: Path) -> None:
    held = {name for name in of_the_wheel(wheel) if "-info/" not in name}
    assert {name for name in held if not name.endswith(".py")} == BESIDE_THE_CODE


def test_the_wheel_has_its_licence_and_its_records(wheel: Path) -> None:
    held = {name.partition("-info/")[2] for name in of_the_wheel(wheel) if "-info/" in name}
    assert held == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}


def test_tree_and_sdist_build_the_same_wheel_and_both_archives_are_the_same_each_time(
    wheel: Path, sdist: Path, tmp_path: Path
) -> None:
    """In ``dist`` is the wheel that the sdist built."""
    build = [sys.executable, "-m", "build", "--sdist", "--wheel", f"--outdir={tmp_path}", str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in (wheel, sdist)
    }
