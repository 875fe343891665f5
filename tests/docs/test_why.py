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
    [(methods, published)] = re.findall(r"(\d+) of the (\d+) published", page)
    table = (DOCS / "endpoints.md").read_text(encoding="utf-8")
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\| (\d+) of (\d+); `request\(\)`", readme) == [(methods, published)]
    assert int(methods) == len(METHODS)
    assert int(published) == len(
        re.findall(r"^\| `(?:GET|POST|PUT|PATCH|DELETE) ", table, re.MULTILINE)
    )
    [theirs] = re.findall(r"(\d+) methods", page)
    names = {name for name in dir(NEON_API) if not name.startswith("_")}
    assert int(theirs) == len(names - {"from_environ"})
