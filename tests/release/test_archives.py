"""The files of the wheel and the sdist.

``make dist`` also runs ``check-wheel-contents``: the wheel has exactly the files of both packages.
"""

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

DATA_FILES = {
    "neonctl_async/py.typed",
    "neonctl_async/local/api/description/endpoints-license.txt",
    "neonctl_async/local/api/description/endpoints.json",
    "neonctl_async/local/postgres/tables.sql",
    "neonctl_async/local/storage/migrations/0001_first.sql",
    "neonctl_async/local/storage/migrations/0002_people.sql",
    "neonctl_async/local/storage/migrations/0003_branches_of_operations.sql",
    "neonctl_async/local/storage/migrations/0004_search_of_operations.sql",
    "neonctl_async/local/storage/migrations/0005_services.sql",
    "neonctl_async/local/storage/migrations/0006_credentials.sql",
    "neonctl_async/local/storage/migrations/0007_silent_retries.sql",
    "neonctl_async/local/storage/migrations/0008_slugs.sql",
    "neonctl_async/local/storage/schema.sql",
    "pytest_neonctl_async/py.typed",
}
CONSOLE = ROOT / "neonctl_async/local/console"
SUFFIXES = {
    "",
    ".cjs",
    ".css",
    ".csv",
    ".dict",
    ".html",
    ".ini",
    ".js",
    ".json",
    ".md",
    ".mjs",
    ".py",
    ".pyi",
    ".sql",
    ".svg",
    ".toml",
    ".txt",
    ".typed",
    ".webp",
    ".yaml",
    ".yml",
}
IGNORED = GitIgnoreSpec.from_lines((ROOT / ".gitignore").read_text().splitlines())


def repository_files(folder: Path = ROOT) -> Iterator[str]:
    """Yield the files of the repository, without those of git and those that git ignores."""
    for path in folder.iterdir():
        name = path.relative_to(ROOT).as_posix() + ("/" if path.is_dir() else "")
        if name.rstrip("/") == ".git" or IGNORED.match_file(name):
            continue
        if path.is_dir():
            yield from repository_files(path)
        else:
            yield name


def wheel_files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {*archive.namelist()}


def sdist_files(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        top = sdist.name.removesuffix(".tar.gz")
        return {str(PurePosixPath(name).relative_to(top)) for name in archive.getnames()}


def test_sdist_contains_the_repository_and_nothing_else(sdist: Path) -> None:
    assert sdist_files(sdist) == {*repository_files(), "PKG-INFO"}


def test_sdist_contains_known_kinds_of_files_only(sdist: Path) -> None:
    assert {PurePosixPath(name).suffix for name in sdist_files(sdist)} <= SUFFIXES


def test_wheel_contains_code_and_known_data_files_only(wheel: Path) -> None:
    names = {name for name in wheel_files(wheel) if "-info/" not in name}
    console = {name for name in repository_files(CONSOLE) if not name.endswith(".py")}
    assert {name for name in names if not name.endswith(".py")} == DATA_FILES | console


def test_files_of_the_console_are_templates_styles_scripts_and_an_icon(wheel: Path) -> None:
    files = {*repository_files(CONSOLE)}
    assert {PurePosixPath(name).suffix for name in files} == {".css", ".html", ".js", ".py", ".svg"}
    assert files <= wheel_files(wheel)


def test_wheel_contains_the_license_and_its_records(wheel: Path) -> None:
    names = {name.partition("-info/")[2] for name in wheel_files(wheel) if "-info/" in name}
    assert names == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}


def test_builds_from_the_tree_and_from_the_sdist_have_the_same_bytes(
    wheel: Path, sdist: Path, tmp_path: Path
) -> None:
    """Build both from the tree; ``dist`` has the wheel that was built from the sdist."""
    build = [sys.executable, "-m", "build", "--sdist", "--wheel", f"--outdir={tmp_path}", str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in (wheel, sdist)
    }
