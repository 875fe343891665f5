"""Every public object has a docstring and a place in docs/reference."""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import neonctl_async
import neonctl_async.types
from tests.support.methods import public_records, resources

PAGES = sorted((Path(__file__).parents[2] / "docs" / "reference").glob("*.md"))
SHOWN = [
    name
    for page in PAGES
    for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]
"""The paths of the objects that mkdocstrings shows on the pages."""
MODULES = [
    "neonctl_async",
    "neonctl_async.types",
    "neonctl_local",
    "neonctl_async.progress",
    "neonctl_async.provisioning.fleet",
    "neonctl_async.telemetry",
    "neonctl_async.testing",
    "neonctl_async.testing.recorded",
    "pytest_neonctl_async",
    "pytest_neonctl_async.django",
]
WITHOUT_PLACE = {"UNSET", "UnsetType", "__version__"}
"""Names without a place: the page on types describes ``UNSET`` of msgspec; tables hide its type."""


def public_names(module: str) -> set[str]:
    """Return the names in ``__all__``, or the classes and functions that the module defines."""
    content: dict[str, Any] = vars(import_module(module))
    defined = {
        name
        for name, value in content.items()
        if getattr(value, "__module__", None) == module and not name.startswith("_")
    }
    public = set(content.get("__all__", defined)) - WITHOUT_PLACE
    if module == "neonctl_async.types":  # the root exports some of its names
        public -= set(neonctl_async.__all__)
    return {f"{module}.{name}" for name in public}


def documented(path: str) -> Iterator[tuple[str, object]]:
    """Yield an object and its public methods and properties, including inherited ones."""
    value = pkgutil.resolve_name(path)
    if inspect.isclass(value) or inspect.isfunction(value):
        yield path, value
    if inspect.isclass(value):
        for owner in value.__mro__:
            for name, member in vars(owner).items() if is_local(owner) else ():
                if not name.startswith("_") and is_method(member):
                    yield f"{path}.{name}", member


def is_local(kind: type) -> bool:
    return kind.__module__.startswith(("neonctl_async", "pytest_neonctl_async"))


def is_method(member: object) -> bool:
    return inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)


@pytest.mark.parametrize("module", MODULES)
def test_reference_shows_every_public_name_once(module: str) -> None:
    names = public_names(module)
    assert names
    assert {name for name in names if SHOWN.count(name) != 1} == set(), "run make format"


def test_reference_shows_every_resource_of_the_client() -> None:
    kinds = [kind for _, kind in resources()]
    assert {f"{kind.__module__}.{kind.__name__}" for kind in kinds} <= set(SHOWN)


def test_every_object_of_the_reference_has_a_docstring() -> None:
    objects = [item for path in SHOWN for item in documented(path)]
    assert len(objects) > 300
    assert [name for name, value in objects if not value.__doc__] == []


def test_every_record_of_a_method_can_be_imported() -> None:
    found = {record.__name__ for record in public_records()}
    assert len(found) > 50
    assert found <= {*neonctl_async.types.__all__}, "run make format"
