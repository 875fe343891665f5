"""The public names are those in exported_names.txt, so that a change of them is noticed."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

LISTING = Path(__file__).with_name("exported_names.txt").read_text()
PACKAGES = [
    "neonctl_async",
    "neonctl_async.types",
    "neonctl_local",
    "neonctl_async.provisioning.fleet",
    "neonctl_async.testing",
]
MODULES = [
    "neonctl_async.progress",
    "neonctl_async.telemetry",
    "neonctl_async.testing.recorded",
]
REEXPORTED = ["neonctl_async.errors", "neonctl_async.hooks"]
PLUGIN = "pytest_neonctl_async.plugin"


def defined(module: str) -> list[str]:
    """Return the public classes and functions of a module."""
    content = vars(importlib.import_module(module))
    return sorted(
        name
        for name, value in content.items()
        if name[0] != "_" and callable(value) and getattr(value, "__module__", None) == module
    )


def fixtures() -> list[str]:
    return sorted(
        name for name in vars(importlib.import_module(PLUGIN)) if name.startswith("neon_")
    )


def exported() -> Iterator[str]:
    for package in PACKAGES:
        yield from (package, *(f"    {name}" for name in importlib.import_module(package).__all__))
    for module in MODULES:
        yield from (module, *(f"    {name}" for name in defined(module)))
    yield from ("fixtures for pytest", *(f"    {name}" for name in fixtures()))


def test_exported_names_are_listed() -> None:
    assert list(exported()) == LISTING.splitlines()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_of_a_package_is_in_all(package: str) -> None:
    content = importlib.import_module(package)
    public = {
        name
        for name in dir(content)
        if name[0] != "_" and not isinstance(getattr(content, name), ModuleType)
    }
    assert {*content.__all__} - {"__version__"} == public


@pytest.mark.parametrize("module", REEXPORTED)
def test_package_exports_every_error_and_hook(module: str) -> None:
    assert {*defined(module)} <= {*importlib.import_module("neonctl_async").__all__}
