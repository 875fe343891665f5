"""The built reference lists parameters and fields with their types, defaults and units."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import pytest

from tests.docs.built import SITE, page, tables
from tests.docs.test_reference import PAGES
from tests.support.methods import Method, public_methods, resources

pytestmark = pytest.mark.site


@cache
def reference() -> Mapping[str, Sequence[Sequence[str]]]:
    """The rows of all tables of the reference, by the path of their object."""
    pages = [page(f"reference/{path.stem}") for path in PAGES if path.stem != "README"]
    return {path: rows for html in pages for path, rows in tables(html).items()}


def methods() -> Iterator[tuple[str, Method]]:
    """Yield the path of each method in the reference, and the method."""
    paths = {resource: f"{kind.__module__}.{kind.__name__}" for resource, kind in resources()}
    for method in public_methods():
        yield f"{paths[method.resource]}.{method.name}", method


def row(path: str, name: str) -> Sequence[str]:
    """Return the row of a parameter or field."""
    return next(cells for cells in reference()[path] if cells[0] == name)


def test_no_page_shows_the_type_of_unset() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in SITE.glob("reference/**/*.html")}
    assert len(texts) > 30
    assert [str(path) for path, text in texts.items() if "UnsetType" in text] == []


def test_table_lists_the_parameters_of_each_method() -> None:
    listed = {
        path: {cells[0].lstrip("*") for cells in reference().get(path, [])[1:]}
        for path, _ in methods()
    }
    assert len(listed) > 150
    expected = {path: {*method.arguments} for path, method in methods()}
    assert listed == expected


def test_table_has_type_default_and_unit() -> None:
    branches = "neonctl_async.provisioning.branches.Branches"
    assert row(f"{branches}.create", "name")[:3] == ["name", "str", "not sent"]
    assert row(f"{branches}.create", "project_id")[:3] == ["project_id", "str", "required"]
    assert row(f"{branches}.ephemeral", "timeout")[:3] == [
        "timeout", "float | None, seconds", "300.0",
    ]  # fmt: skip
    assert row("neonctl_async.Timeout", "read")[:3] == ["read", "float, seconds", "20.0"]


def test_description_of_a_parameter_is_in_its_row() -> None:
    path = "neonctl_async.provisioning.branches.Branches.connection_uri"
    assert row(path, "pooled")[3] == "Connect through the pooler."


def test_times_and_sizes_have_a_unit() -> None:
    rows = [cells for table in reference().values() for cells in table]
    measured = [cells for cells in rows if cells[0].endswith(("_seconds", "_bytes", "timeout"))]
    numbers = [cells for cells in measured if "int" in cells[1] or "float" in cells[1]]
    assert len(numbers) > 50
    assert [cells for cells in numbers if not cells[1].endswith(("seconds", "bytes"))] == []
