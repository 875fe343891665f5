"""The commands of pip, uv and pipx that create an environment and install the package into it."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.rehearsal.plan import PACKAGE, Installation

DROPPED = ("PYTHON", "VIRTUAL_ENV", "NEON_", "PIPX_", "PYENV_VERSION", "COVERAGE")
"""Prefixes of variables that would change what is installed or checked."""


NO_COMPILE = "--no-compile"
"""An option of pip that saves time, because the checks import few of the installed modules."""


@dataclass(frozen=True)
class Commands:
    """The commands of an installation, their environment, and the Python that they create."""

    commands: Sequence[Sequence[str]]
    environment: Mapping[str, str]
    python: Path

    @property
    def program(self) -> Path:
        """The path of the installed command."""
        return self.python.with_name(PACKAGE)


def commands(installation: Installation, interpreter: str, index: str, folder: Path) -> Commands:
    """Return the commands that install into an environment below ``folder``.

    ``index`` is added to the package indexes of the machine, which serve the dependencies.
    """
    environment = folder / "environment"
    match installation.installer:
        case "pip":
            return _with_pip(installation, interpreter, index, environment)
        case "uv":
            return _with_uv(installation, interpreter, index, environment)
        case _:
            return _with_pipx(installation, interpreter, index, folder)


def shared_pip(folder: Path) -> Path:
    """Return the folder of the pip that pipx uses, which all its installations share."""
    return folder.parent / "pipx-shared"


def prepare_pipx(folder: Path) -> None:
    """Create the shared pip before two installations do so at the same time."""
    subprocess.run(
        [sys.executable, "-m", "pipx", "upgrade-shared", "--quiet"],
        env=cleaned(os.environ)
        | {"PIPX_HOME": str(folder / "pipx"), "PIPX_SHARED_LIBS": str(folder / "pipx-shared")},
        check=True,
        capture_output=True,
        text=True,
    )


def cleaned(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that would change an installation."""
    kept = {name: value for name, value in environment.items() if not name.startswith(DROPPED)}
    direct = [kept.get("NO_PROXY", kept.get("no_proxy", "")), "127.0.0.1"]
    return kept | {
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "NO_PROXY": ",".join(filter(None, direct)),
    }


def _with_pip(
    installation: Installation, interpreter: str, index: str, environment: Path
) -> Commands:
    python = environment / "bin" / "python"
    # The cache of pip would return the wheel that another version has built from the sdist.
    sdist = ["--no-cache-dir", "--no-binary", PACKAGE] if installation.from_sdist else []
    # This pip runs on the Python of the environment, which needs no copy of pip then.
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *sdist]
    return Commands(
        [
            [interpreter, "-m", "venv", "--without-pip", str(environment)],
            [*install, NO_COMPILE, "--extra-index-url", index, installation.requirement],
        ],
        cleaned(os.environ),
        python,
    )


def _with_uv(
    installation: Installation, interpreter: str, index: str, environment: Path
) -> Commands:
    python = environment / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    sdist = ["--no-binary", PACKAGE] if installation.from_sdist else []
    # The cache of uv would return a file of the same name from an earlier rehearsal.
    install = [*uv, "pip", "install", "--quiet", "--refresh-package", PACKAGE, *sdist]
    return Commands(
        [
            [*uv, "venv", "--quiet", "--no-project", "--python", interpreter, str(environment)],
            [*install, "--python", str(python), "--index", index, installation.requirement],
        ],
        cleaned(os.environ) | {"UV_NO_CONFIG": "1"},
        python,
    )


def _with_pipx(installation: Installation, interpreter: str, index: str, folder: Path) -> Commands:
    home = folder / "pipx"
    arguments = shlex.join([NO_COMPILE, "--extra-index-url", index])
    install = [sys.executable, "-m", "pipx", "install", "--quiet", "--backend", "pip"]
    return Commands(
        [[*install, "--python", interpreter, f"--pip-args={arguments}", installation.requirement]],
        cleaned(os.environ)
        | {
            "PIPX_HOME": str(home),
            "PIPX_SHARED_LIBS": str(shared_pip(folder)),
            "PIPX_BIN_DIR": str(folder / "bin"),
            "PIPX_MAN_DIR": str(folder / "man"),
            "PIPX_COMPLETION_DIR": str(folder / "completion"),
        },
        home / "venvs" / PACKAGE / "bin" / "python",
    )
