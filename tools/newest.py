"""Compares the versions of Neon's packages that the tests pin with the newest published ones.

``make drift`` runs it first. It prints a line for each package as soon as the registry answers. The
exit status is 0 if all are the newest, 1 if there are newer ones, and 2 if a registry is silent.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
TIMEOUT: Final = 30
"""The longest wait for a registry, in seconds."""
NPM: Final = ("npm", "view", "--loglevel=error", "--fetch-retries=0", "--fetch-timeout=20000")
PIP: Final = (sys.executable, "-m", "pip", "index", "versions", "--retries=0", "--timeout=20")
_HINT: Final = (
    "npm and pip use the settings and the proxy of this machine. For a registry with a private "
    "certificate authority, set NODE_EXTRA_CA_CERTS and PIP_CERT to the file of its certificate."
)


class Pin(NamedTuple):
    """A package of Neon, its version, and where the version is set."""

    package: str
    version: str
    place: str

    def newest(self) -> str:
        """Return the newest version. Raises RegistryError if the registry does not return it."""
        if self.place.endswith("pyproject.toml"):
            return _answer(*PIP, self.package).partition("(")[2].partition(")")[0]
        return _answer(*NPM, self.package, "version")


class RegistryError(Exception):
    """A registry does not answer."""


def pins(root: Path = ROOT) -> Iterator[Pin]:
    """Yield the packages that the Makefile and ``pyproject.toml`` pin."""
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    versions = dict(re.findall(r"^(\w+) = (\d\S*)$", makefile, re.MULTILINE))
    for package, name in re.findall(r"(?<![\w/@-])(@neon\w*/[\w-]+|neon)@\$\((\w+)\)", makefile):
        yield Pin(package, versions[name], f"{name} in the Makefile")
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    for package, version in re.findall(r'"(neon-[\w-]+)==([\d.]+)"', project):
        yield Pin(package, version, f"{package} in pyproject.toml")


def _answer(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise RegistryError(f"no answer within {TIMEOUT} seconds") from None
    except OSError as error:
        raise RegistryError(f"{command[0]} cannot be run: {error.strerror}") from None
    if done.returncode or not done.stdout.strip():
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise RegistryError(" ".join(lines[:3]) or f"{command[0]} printed nothing")
    return done.stdout.split("\n")[0].strip()


def main() -> int:
    """Print the versions, and return the exit status."""
    found = list(dict.fromkeys(pins()))
    print(f"Asking npm and PyPI for the newest versions of {len(found)} packages of Neon:")
    newer: list[str] = []
    for pin in found:
        print(f"{pin.package} {pin.version}, newest", end=" ", flush=True)
        try:
            newest = pin.newest()
        except RegistryError as error:
            print("unknown", flush=True)
            print(f"error: {error}\n{_HINT}", file=sys.stderr)
            return 2
        print(newest, flush=True)
        if newest != pin.version:
            newer.append(f"  {pin.package} {newest}: set {pin.place}")
    print(*(["New:", *newer] if newer else ["All are the newest."]), sep="\n")
    return 1 if newer else 0


if __name__ == "__main__":
    sys.exit(main())
