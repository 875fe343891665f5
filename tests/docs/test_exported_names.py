"""Packages list all their public names, and the root exports every error and hook."""

import importlib
from types import ModuleType

import pytest

PACKAGES = [
    "neonctl_async",
    "neonctl_async.types",
    "neonctl_local",
    "neonctl_async.provisioning.fleet",
    "neonctl_async.testing",
    "pytest_neonctl_async",
]
REEXPORTED = ["neonctl_async.errors", "neonctl_async.hooks"]


def defined(module: str) -> list[str]:
    """Return the public classes and functions of a module."""
    content = vars(importlib.import_module(module))
    return sorted(
        name
        for name, value in content.items()
        if name[0] != "_" and callable(value) and getattr(value, "__module__", None) == module
    )


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
