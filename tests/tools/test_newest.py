"""``make drift`` names the packages of Neon that are newer. Scripts replace npm and pip."""

import os
import re
from pathlib import Path

import pytest

from tests.support.pages import ROOT
from tools import newest

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="npm and pip are shell scripts"),
]


@pytest.fixture
def registries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with scripts that return the pinned version of each package."""
    versions = "\n".join(f"{pin.package}) echo {pin.version};;" for pin in newest.pins())
    npm = f"#!/bin/sh\ncase $1 in\n{versions}\nesac\n"
    pip = "#!/bin/sh\necho 'neon-api (0.3.0)'\necho 'Available versions: 0.3.0'\n"
    for name, text in (("npm", npm), ("pip", pip)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
        monkeypatch.setattr(newest, name.upper(), (str(tmp_path / name),))
    return tmp_path


def test_all_packages_of_neon_are_compared() -> None:
    assert {pin.package for pin in newest.pins()} == {
        "@neon/sdk",
        "@neondatabase/api-client",
        "neon",
        "@neondatabase/serverless",
        "@neondatabase/mcp-server-neon",
        "neon-api",
    }
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for pin in newest.pins():
        assert pin.package == "neon-api" or re.search(rf"{pin.package}@\$", makefile)


def test_newest_packages_are_success(registries: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del registries
    assert newest.main() == 0
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert first == "Asking npm and PyPI for the newest versions of 6 packages of Neon:"
    assert len(lines) == 6
    assert last == "All are the newest."


def test_newer_packages_are_named_with_the_place_of_their_version(
    registries: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (registries / "pip").write_text("#!/bin/sh\necho 'neon-api (0.4.0)'\n")
    assert newest.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert "neon-api 0.3.0, newest 0.4.0" in lines
    assert lines[-2:] == ["New:", "  neon-api 0.4.0: set neon-api in pyproject.toml"]
