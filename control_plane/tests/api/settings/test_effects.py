"""Each setting of the published description has a tested effect, or the docs call it inert."""

import inspect
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType

from msgspec import UnsetType

from control_plane.tests.api.settings.effects import INERT, SHOWN
from neonctl_local.api.description.published import Schema, description
from neonctl_local.server.routes import ROUTE_NAMES

PAGE = Path(__file__).parents[4] / "docs" / "local-control-plane.md"


def resolved(schema: Schema, name: str) -> tuple[Schema, str]:
    """Return the schema of an object or of the items of a list, and its name."""
    while schema.ref or not isinstance(schema.items, UnsetType):
        if schema.ref:
            schema, name = description().schemas[schema.ref], schema.ref
        elif not isinstance(schema.items, UnsetType):
            schema = schema.items
    return schema, name


def properties(schema: Schema, name: str) -> Iterator[str]:
    """Yield the properties of an object and of the objects in it."""
    schema, name = resolved(schema, name)
    for key, value in schema.properties.items():
        if resolved(value, "")[0].properties:
            yield from properties(value, f"{name}.{key}")
        else:
            yield f"{name}.{key}"


@cache
def settings() -> frozenset[str]:
    """Return the settings of all endpoints that are served. Others refuse them with a 501."""
    return frozenset(
        setting
        for name, endpoint in description().endpoints.items()
        if name in ROUTE_NAMES and not isinstance(endpoint.body, UnsetType)
        for setting in properties(endpoint.body, name)
    )


@cache
def matching(pattern: str) -> list[str]:
    """Return the settings that match a pattern."""
    return [setting for setting in sorted(settings()) if fnmatchcase(setting, pattern)]


def source(test: str) -> str:
    """Return the source of a test, or an empty text if it does not exist."""
    module_name, _, name = f"control_plane.tests.{test}".rpartition(".")
    found = getattr(import_module(module_name), name, None)
    return inspect.getsource(found) if isinstance(found, FunctionType) else ""


def test_each_setting_has_an_effect_or_is_inert() -> None:
    claims = Counter(
        setting
        for claim in (*SHOWN, *INERT)
        for setting in {one for pattern in claim.settings.split() for one in matching(pattern)}
    )
    assert settings() - claims.keys() == set()
    assert [setting for setting, count in claims.items() if count > 1] == []


def test_each_pattern_matches_a_setting() -> None:
    patterns = [pattern for claim in (*SHOWN, *INERT) for pattern in claim.settings.split()]
    assert [pattern for pattern in patterns if not matching(pattern)] == []


def test_named_tests_exist_and_use_the_settings() -> None:
    missing = [
        (shown.test, setting)
        for shown in SHOWN
        for pattern in shown.settings.split()
        for setting in matching(pattern)
        if setting.rpartition(".")[2] not in source(shown.test)
    ]
    assert missing == []


def test_docs_list_the_inert_settings() -> None:
    rows = [f"| {inert.name} | {inert.reason} |" for inert in INERT]
    page = PAGE.read_text(encoding="utf-8")
    table = page[page.index("### Settings without effect") :].split("\n\n")[2]
    assert table.splitlines()[2:] == rows
