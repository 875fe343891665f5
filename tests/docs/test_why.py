"""The numbers and versions in the comparison with other clients are right."""

import re
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.support.methods import METHODS
from tests.support.pages import TEXTS, names_side_by_side

DOCS = Path(__file__).parents[2] / "docs"
# Imported by name, because the package has no types.
NEON_API: Any = import_module("neon_api").NeonAPI

SDK = r"`@neon/sdk` (\d[\d.]*\d)"
PAGES = ("README.md", "docs/why.md", "docs/from-neon-api.md", "docs/from-neon-sdk.md")


def test_pages_state_the_number_of_methods() -> None:
    page = (DOCS / "why.md").read_text(encoding="utf-8")
    numbers = re.findall(r"(\d+) of the (\d+) published", page)
    table = (DOCS / "endpoints.md").read_text(encoding="utf-8")
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert numbers == re.findall(r"^(\d+) of (\d+) endpoints have a method", table, re.MULTILINE)
    assert numbers == re.findall(r"endpoints with a method \| (\d+) of (\d+), all", readme)
    rows = re.findall(
        r"^\| \[`neon\.(.*)`\]\(.+\) \| `(?:GET|POST|PUT|PATCH|DELETE) .*` \| (.*) \|$",
        table,
        re.MULTILINE,
    )
    published = [method for method, stability in rows if stability != "unpublished"]
    [(methods, endpoints)] = numbers
    assert int(endpoints) == len(published)
    assert int(methods) == len(published) - published.count("request")
    assert {method for method, _ in rows} == {"request", *map(str, METHODS)}
    [theirs] = re.findall(r"(\d+) methods", page)
    names = {name for name in dir(NEON_API) if not name.startswith("_")}
    assert int(theirs) == len(names - {"from_environ"})


def test_page_states_the_number_of_methods_of_the_sdk() -> None:
    [(endpoints, methods)] = re.findall(
        r"all, (\d+), in .* (\d+) in its main layer", TEXTS["docs/why.md"]
    )
    assert f" of {endpoints} endpoints have a method" in TEXTS["docs/endpoints.md"]
    names = names_side_by_side(TEXTS["docs/from-neon-sdk.md"])
    assert int(methods) == sum(len(theirs) for theirs, _ in names)


@pytest.mark.parametrize("page", PAGES)
def test_page_compares_the_versions_that_the_tests_use(page: str) -> None:
    [sdk] = re.findall(SDK, TEXTS["docs/endpoints.md"])
    assert {*re.findall(SDK, TEXTS[page])} <= {sdk}
    assert {*re.findall(r"`neon-api` (\d[\d.]*\d)", TEXTS[page])} <= {version("neon-api")}
