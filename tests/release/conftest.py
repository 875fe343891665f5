"""The archives that ``make dist`` has built, and environments with the wheel installed."""

import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from neonctl_async import __version__

ROOT = Path(__file__).parents[2]


class Installed(NamedTuple):
    """An environment with the wheel installed, and an empty folder to run programs in."""

    python: Path
    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program that sees nothing but the environment."""
        name, *arguments = command
        return subprocess.run(
            [self.python.with_name(name), *arguments],
            cwd=self.folder,
            env={"PATH": os.defpath, "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )

    def output(self, *command: str) -> str:
        """Return the output of a program that succeeds without a warning."""
        run = self.run(*command)
        assert (run.stderr, run.returncode) == ("", 0)
        return run.stdout


@pytest.fixture(scope="session")
def wheel() -> Path:
    return ROOT / "dist" / f"neonctl_async-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="session")
def sdist() -> Path:
    return ROOT / "dist" / f"neonctl_async-{__version__}.tar.gz"


@pytest.fixture(scope="session")
def local_wheel() -> Path:
    """The wheel of the local control plane."""
    return ROOT / "dist" / f"neonctl_local-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="session")
def local_sdist() -> Path:
    return ROOT / "dist" / f"neonctl_local-{__version__}.tar.gz"


@pytest.fixture(scope="session")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Installed]:
    def install(extras: str) -> Installed:
        home = tmp_path_factory.mktemp("installed")
        environment = home / "environment"
        venv.create(environment, symlinks=True)
        installed = Installed(environment / "bin" / "python", home / "folder")
        installed.folder.mkdir()
        pip = [sys.executable, "-m", "pip", "--quiet", f"--python={installed.python}"]
        found = f"--find-links={wheel.parent}"
        subprocess.run([*pip, "install", "--no-compile", found, f"{wheel}{extras}"], check=True)
        return installed

    return install


@pytest.fixture(scope="session")
def bare(install: Callable[[str], Installed]) -> Installed:
    """An environment with the wheel, without extras."""
    return install("")


@pytest.fixture(scope="session")
def with_cli(install: Callable[[str], Installed]) -> Installed:
    """An environment with the command line, without the local control plane."""
    return install("[cli]")


@pytest.fixture(scope="session")
def with_local(install: Callable[[str], Installed]) -> Installed:
    """An environment with the local control plane, without its extras."""
    return install("[local]")


@pytest.fixture(scope="session")
def complete(install: Callable[[str], Installed]) -> Installed:
    """An environment with the wheel and the extras whose code it checks."""
    return install("[cli,console,otel,testing]")
