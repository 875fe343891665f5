"""The command line in this process, against a local control plane."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from typer.testing import CliRunner, Result

from neonctl_async.cli.app import app
from neonctl_local import Durations, LocalControlPlane
from tests.cli.served import Served, served


class CommandLine(Protocol):
    """Runs a command, against a local control plane if ``at`` is set."""

    def __call__(
        self, *arguments: str, at: Served | None = None, typed: str | None = None, **env: str
    ) -> Result: ...


@pytest.fixture(scope="session")
def quick() -> Iterator[Served]:
    """Return a local control plane whose operations take no time."""
    with served(
        LocalControlPlane(durations=Durations(default=0), allowed_hosts=["control-plane"])
    ) as control_plane:
        yield control_plane


@pytest.fixture(scope="session")
def slow() -> Iterator[Served]:
    """Return a local control plane whose operations do not finish."""
    with served(LocalControlPlane(durations=Durations(default=1000), lock="none")) as control_plane:
        yield control_plane


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test in an empty directory, because commands write files there."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("NEON_", "NO_COLOR"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def cli() -> CommandLine:
    def run(
        *arguments: str, at: Served | None = None, typed: str | None = None, **env: str
    ) -> Result:
        environment = {**(at.environment if at else {}), **env}
        return CliRunner().invoke(
            app,
            arguments,
            input=typed,
            env=environment,
            prog_name="neonctl-async",
            catch_exceptions=False,
        )

    return run
