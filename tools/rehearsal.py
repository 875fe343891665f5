"""``python -m tools.rehearsal``: install the wheels in dist/ with pip, uv and pipx, and use them.

Each installer creates two empty environments. The one with the client alone contains no module of
the local control plane. The one with the extras ``cli`` and ``local`` runs the quick start and the
command line. Dependencies come from the package indexes of the machine.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
DROPPED = ("PYTHON", "VIRTUAL_ENV", "NEON_", "PIPX_", "COVERAGE")
"""Prefixes of variables that would change what is installed, or what the quick start uses."""
FIND_SERVER = "from importlib.util import find_spec; print(find_spec('neonctl_local'))"


class Environment:
    """An environment below a folder, with the client in it."""

    def __init__(self, installer: str, extras: str, folder: Path) -> None:
        pipx = ("PIPX_HOME", "PIPX_BIN_DIR", "PIPX_MAN_DIR", "PIPX_COMPLETION_DIR")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
        self._variables = kept | {name: str(folder / name) for name in pipx}
        self._folder = folder
        folder.mkdir()
        self._python = folder / "environment" / "bin" / "python"
        for command in self._commands(installer, f"neonctl-async{extras}"):
            self.output(*command)

    def _commands(self, installer: str, requirement: str) -> Sequence[Sequence[str]]:
        module, target = [sys.executable, "-m", installer], str(self._python.parents[1])
        wheels = f"--find-links={ROOT / 'dist'}"
        match installer:
            case "pip":
                create = [sys.executable, "-m", "venv", "--without-pip", target]
                install = [*module, f"--python={self._python}", "install", "--quiet", wheels]
                return create, [*install, requirement]
            case "uv":
                create = [*module, "venv", "--quiet", f"--python={sys.executable}", target]
                # The cache of uv may have a file of the same name from an earlier rehearsal.
                fresh = ["--refresh-package=neonctl-async", "--refresh-package=neonctl-local"]
                install = [*module, "pip", "install", "--quiet", f"--python={self._python}"]
                return create, [*install, wheels, *fresh, requirement]
            case _:
                self._python = self._folder / "PIPX_HOME/venvs/neonctl-async/bin/python"
                pip = f"--pip-args={shlex.quote(wheels)}"
                return [[*module, "install", f"--python={sys.executable}", pip, requirement]]

    def output(self, *command: str) -> str:
        """Return the output of a program of the environment, or of a whole path."""
        name, *arguments = command
        run = subprocess.run(
            [self._python.parent / name, *arguments],  # an absolute path stays as it is
            cwd=self._folder,
            env=self._variables,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return run.stdout


def rehearse(installer: str, folder: Path) -> None:
    """Install the wheels with pip, uv or pipx. Raise if they do not work."""
    alone, complete = (
        Environment(installer, extras, folder / name)
        for name, extras in (("alone", ""), ("complete", "[cli,local]"))
    )
    if alone.output("python", "-c", FIND_SERVER) != "None\n":
        raise RuntimeError(f"{installer}: the client contains the local control plane")
    quick_start = str(ROOT / "examples" / "quickstart.py")
    if "preview is ready" not in complete.output("python", "-W", "error", quick_start):
        raise RuntimeError(f"{installer}: the quick start created no branch")
    print(f"{installer}: ok, version {complete.output('neonctl-async', '--version').strip()}")


if __name__ == "__main__":
    for each in ("pip", "uv", "pipx"):
        with TemporaryDirectory(prefix="rehearsal-") as created:
            rehearse(each, Path(created))
