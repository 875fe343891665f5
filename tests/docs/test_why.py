"""The numbers of endpoints and methods in the comparison are right."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.methods import METHODS

DOCS = Path(__file__).parents[2] / "docs"
# Imported by name, because the package has no types.
NEON_API: Any = import_module("neon_api").NeonAPI


def test_pages_state_the_number_of_methods() -> None:
    page = (DOCS / "why.md").read_text(encoding="utf-8")
    numbers = re.findall(r"(\d+) of the (\d+) published", page)
    table = (DOCS / "endpoints.md").read_text(encoding="utf-8")
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert numbers == re.findall(r"^(\d+) of (\d+) endpoints have a method", table, re.MULTILINE)
    assert numbers == re.findall(r"endpoints with a method \| (\d+) of (\d+), all", readme)
    rows = re.findall(
        r"^\| `(?:GET|POST|PUT|PATCH|DELETE) .* \| (.*) \| \[`neon\.(.*)`\]\(.+\) \|$",
        table,
        re.MULTILINE,
    )
    published = [method for stability, method in rows if stability != "unpublished"]
    [(methods, endpoints)] = numbers
    assert int(endpoints) == len(published)
    assert int(methods) == len(published) - published.count("request")
    assert {method for _, method in rows} == {"request", *map(str, METHODS)}
    [theirs] = re.findall(r"(\d+) methods", page)
    names = {name for name in dir(NEON_API) if not name.startswith("_")}
    assert int(theirs) == len(names - {"from_environ"})
