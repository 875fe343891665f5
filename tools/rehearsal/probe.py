"""Checks an installed ``neonctl-async``. It runs in the new environment, and prints JSON.

The output has the records of the installed files, the extras whose requirements are installed, and
the problems. The module imports nothing of the project but the installed packages.
"""

import asyncio
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions

PACKAGE = "neonctl-async"
LOCAL = "neonctl-local"
BASE = ("neonctl_async", "neonctl_async.testing", "neonctl_async.types")


def canonical(name: str) -> str:
    """Return the name of a package in the form that all spellings share."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(package: str = PACKAGE) -> dict[str, set[str]]:
    """Return the packages that each extra requires, and those that the local control plane does."""
    found: dict[str, set[str]] = {}
    for requirement in distribution(package).requires or []:
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if extra and name:
            found.setdefault(extra[1], set()).add(canonical(name[0]))
    if package == PACKAGE and is_installed(LOCAL):
        for extra_of_both, needs in requirements(LOCAL).items():
            found[extra_of_both] |= needs
    return found


def is_installed(name: str) -> bool:
    """Return whether a package is installed."""
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def imported_packages() -> set[str]:
    """Return the packages whose modules are imported."""
    owners = packages_distributions()
    top = {name.partition(".")[0] for name in sys.modules}
    return {canonical(owner) for name in top for owner in owners.get(name, [])}


def check_imports(optional: set[str]) -> Iterator[str]:
    """Import the base, and yield a problem for each optional package that it imports."""
    for name in BASE:
        importlib.import_module(name)
    for name in sorted(optional & imported_packages()):
        yield f"the import of the base imports {name}"


def use_console() -> None:
    """Sign in to the console of a local control plane."""
    from neonctl_local import LocalControlPlane  # noqa: PLC0415 - after check_imports

    async def sign_in() -> None:
        async with LocalControlPlane() as control_plane:
            print(control_plane.console_url, file=sys.stderr)

    asyncio.run(sign_in())


def use_redis() -> None:
    """Share a rate budget through Redis, without a connection."""
    from neonctl_async import RateBudget  # noqa: PLC0415 - after check_imports

    RateBudget.shared("redis://127.0.0.1:1/0")


def use_postgres() -> None:
    """Start and stop a local control plane with real databases."""
    from neonctl_local import LocalControlPlane  # noqa: PLC0415 - after check_imports

    async def start() -> None:
        async with LocalControlPlane(postgres=True):
            pass

    asyncio.run(start())


def importing(name: str) -> Callable[[], None]:
    """Return a function that imports a module."""

    def import_module() -> None:
        importlib.import_module(name)

    return import_module


USES: dict[str, list[Callable[[], None]]] = {
    "cli": [importing("neonctl_async.progress")],
    "console": [use_console],
    "local": [importing("neonctl_local")],
    "otel": [importing("neonctl_async.telemetry")],
    "postgres": [use_postgres],
    "redis": [use_redis],
    "testing": [importing("neonctl_async.testing.recorded")],
}
"""The code that needs each extra. The command, which needs ``cli``, is checked from outside."""


def check_use(extra: str, use: Callable[[], None], *, installed: bool) -> Iterator[str]:
    """Yield a problem if an installed extra fails, or the error names no command."""
    try:
        use()
    except Exception as error:  # noqa: BLE001 - the type of the error is part of the problem
        problem = f"{type(error).__name__}: {error}"
        if installed:
            yield f"the extra {extra} is installed, but fails: {problem}"
        elif not re.search(rf"pip install 'neonctl-(async|local)\[{extra}\]'", str(error)):
            yield f"the error without the extra {extra} names no command: {problem}"
    else:
        if not installed:
            yield f"the extra {extra} is missing, but nothing reports it"


def records() -> dict[str, str]:
    """Return the hash of each installed file of the two packages and their metadata."""
    return {
        str(file): file.hash.value
        for file in distribution(PACKAGE).files or []
        if file.hash is not None and file.suffix != ".pyc"
    }


def main() -> None:
    """Run all checks and print the results."""
    required = requirements()
    installed = {name for name, needs in required.items() if all(map(is_installed, needs))}
    problems = [*check_imports({name for needs in required.values() for name in needs})]
    if missing := required.keys() - USES.keys():
        problems.append(f"no check uses the extras {sorted(missing)}")
    for extra, uses in USES.items():
        if extra in {"console", "local", "postgres"} and not is_installed(LOCAL):
            continue  # the command line shows how to install the server
        for use in uses:
            problems += check_use(extra, use, installed=extra in installed)
    found = distribution(PACKAGE)
    print(
        json.dumps(
            {
                "version": found.version,
                "extras": sorted(installed),
                "from_index": found.read_text("direct_url.json") is None,
                "records": records(),
                "problems": problems,
            }
        )
    )


if __name__ == "__main__":
    main()
