"""What users import, listed in exported_names.txt: a name that comes or goes is said there."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

LISTING = Path(__file__).with_name("exported_names.txt").read_text()
PACKAGES = ["neonctl_async", "neonctl_async.types", "neonctl_async.local", "neonctl_async.testing"]
MODULES = [
    "neonctl_async.progress",
    "neonctl_async.telemetry",
    "neonctl_async.testing.recorded",
]
GATHERED = ["neonctl_async.errors", "neonctl_async.hooks"]
PLUGIN = "pytest_neonctl_async.plugin"


def defined(name: str) -> list[str]:
    """The public classes and functions of a module."""
    there = vars(importlib.import_module(name))
    return sorted(one for one, what in there.items() if one[0] != "_" and is_defined_in(name, what))


def is_defined_in(module: str, what: object) -> bool:
    return callable(what) and getattr(what, "__module__", None) == module


def fixtures() -> list[str]:
    there = vars(importlib.import_module(PLUGIN))
    return sorted(name for name in there if name.startswith("neon_"))


def exported() -> Iterator[str]:
    for package in PACKAGES:
        yield from (package, *(f"    {name}" for name in importlib.import_module(package).__all__))
    for module in MODULES:
        yield from (module, *(f"    {name}" for name in defined(module)))
    yield from ("fixtures for pytest", *(f"    {name}" for name in fixtures()))


def test_the_exported_names_are_those_of_the_listing() -> None:
    assert list(exported()) == LISTING.splitlines()


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_whatever_is_public_in_a_package(package: str) -> None:
    there = importlib.import_module(package)
    public = {
        name
        for name, what in vars(there).items()
        if name[0] != "_" and not isinstance(what, ModuleType)
    }
    assert {*there.__all__} - {"__version__"} == public


@pytest.mark.parametrize("module", GATHERED)
def test_the_package_has_all_of_its_errors_and_hooks(module: str) -> None:
    assert {*defined(module)} <= {*importlib.import_module("neonctl_async").__all__}
