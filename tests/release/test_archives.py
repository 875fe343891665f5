"""The files of the wheels and the sdists.

``make dist`` also runs ``check-wheel-contents``: each wheel has exactly the files of its packages.
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
    "pytest_neonctl_async/py.typed",
}
LOCAL_DATA_FILES = {
    "neonctl_local/api/description/endpoints-license.txt",
    "neonctl_local/api/description/endpoints.json",
    "neonctl_local/postgres/closed_views.sql",
    "neonctl_local/postgres/emptying.sql",
    "neonctl_local/postgres/tables.sql",
    "neonctl_local/py.typed",
    "neonctl_local/storage/migrations/0001_first.sql",
}
LOCAL = ROOT / "control_plane"
CONSOLE = LOCAL / "neonctl_local" / "console"
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


def repository_files(folder: Path = ROOT, *, top: Path = ROOT) -> Iterator[str]:
    """Yield the files of the repository, without those of git and those that git ignores.

    Their paths are relative to ``top``.
    """
    for path in folder.iterdir():
        name = path.relative_to(ROOT).as_posix() + ("/" if path.is_dir() else "")
        if name.rstrip("/") == ".git" or IGNORED.match_file(name):
            continue
        if path.is_dir():
            yield from repository_files(path, top=top)
        else:
            yield path.relative_to(top).as_posix()


def wheel_files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {*archive.namelist()}


def data_files(wheel: Path) -> set[str]:
    return {
        name for name in wheel_files(wheel) if "-info/" not in name and not name.endswith(".py")
    }


def sdist_files(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        top = sdist.name.removesuffix(".tar.gz")
        return {str(PurePosixPath(name).relative_to(top)) for name in archive.getnames()}


def test_sdist_contains_the_repository_without_the_local_control_plane(sdist: Path) -> None:
    files = {name for name in repository_files() if not name.startswith("control_plane/")}
    assert sdist_files(sdist) == {*files, "PKG-INFO"}


def test_sdist_of_the_local_control_plane_contains_its_folder(local_sdist: Path) -> None:
    files = {*repository_files(LOCAL, top=LOCAL), ".gitignore", "PKG-INFO"}
    assert sdist_files(local_sdist) == files


def test_sdists_contain_known_kinds_of_files_only(sdist: Path, local_sdist: Path) -> None:
    names = sdist_files(sdist) | sdist_files(local_sdist)
    assert {PurePosixPath(name).suffix for name in names} <= SUFFIXES


def test_wheel_contains_no_server_no_template_and_no_sql(wheel: Path) -> None:
    assert data_files(wheel) == DATA_FILES
    folders = {name.partition("/")[0] for name in wheel_files(wheel) if "-info/" not in name}
    assert folders == {"neonctl_async", "pytest_neonctl_async"}


def test_wheel_of_the_local_control_plane_contains_code_and_known_data_files_only(
    local_wheel: Path,
) -> None:
    console = {name for name in repository_files(CONSOLE, top=LOCAL) if not name.endswith(".py")}
    assert data_files(local_wheel) == LOCAL_DATA_FILES | console


def test_files_of_the_console_are_templates_styles_scripts_and_an_icon(local_wheel: Path) -> None:
    files = {*repository_files(CONSOLE, top=LOCAL)}
    assert {PurePosixPath(name).suffix for name in files} == {".css", ".html", ".js", ".py", ".svg"}
    assert files <= wheel_files(local_wheel)


def test_wheels_contain_the_license_and_their_records(wheel: Path, local_wheel: Path) -> None:
    records = {"METADATA", "RECORD", "WHEEL", "licenses/LICENSE"}
    for path, others in ((wheel, {"entry_points.txt"}), (local_wheel, set[str]())):
        names = {name.partition("-info/")[2] for name in wheel_files(path) if "-info/" in name}
        assert names == records | others


def test_both_packages_have_the_same_license() -> None:
    assert (LOCAL / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("folder", [ROOT, LOCAL])
def test_builds_from_the_tree_and_from_the_sdist_have_the_same_bytes(
    folder: Path, tmp_path: Path
) -> None:
    """Build both from the tree; ``dist`` has the wheel that was built from the sdist."""
    build = [
        sys.executable,
        "-m",
        "build",
        "--sdist",
        "--wheel",
        f"--outdir={tmp_path}",
        str(folder),
    ]
    subprocess.run(build, check=True, capture_output=True)
    assert len([*tmp_path.iterdir()]) == 2
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: (ROOT / "dist" / path.name).read_bytes() for path in tmp_path.iterdir()
    }
