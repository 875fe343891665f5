"""The pages about the local control plane have all options, with the values of the code."""

import inspect
import re
from collections.abc import Mapping

import msgspec
import pytest

from neonctl_local import (
    BackgroundIntervals,
    ConnectionLimits,
    Durations,
    Fault,
    LocalControlPlane,
    PostgresSettings,
    RateLimits,
)
from neonctl_local.console.sql.statements import BOUNDS, STATEMENT_SECONDS
from tests.support.pages import TEXTS

PERIODS = {"day": 86_400.0, "hour": 3600.0, "minute": 60.0}


def first_cells(page: str, heading: str) -> str:
    """Return the first cells of the table that starts with ``heading``."""
    text = TEXTS[page]
    table = text[text.index(f"| {heading} ") :].partition("\n\n")[0]
    return "\n".join(line.split(" | ")[0] for line in table.splitlines()[2:])


def second_cells(page: str, heading: str) -> Mapping[str, str]:
    """Return the second cell of each row of a table, by the name in the first one."""
    text = TEXTS[page]
    table = text[text.index(f"| {heading} ") :].partition("\n\n")[0]
    rows = (line.strip("| ").split(" | ") for line in table.splitlines()[2:])
    return {row[0].strip("`"): row[1].strip("`") for row in rows}


def test_options_of_the_server_are_complete() -> None:
    shown = first_cells("docs/local-control-plane.md", "`LocalControlPlane(…)`")
    named = set(re.findall(r"`(\w+)=", shown))
    assert named == {*inspect.signature(LocalControlPlane).parameters}


@pytest.mark.parametrize(
    ("page", "options"),
    [
        ("local-control-plane", Durations),
        ("local-control-plane", Fault),
        ("local-databases", PostgresSettings),
    ],
)
def test_options_of_a_class_are_complete(page: str, options: type[msgspec.Struct]) -> None:
    heading = "field of `Fault`" if options is Fault else f"`{options.__name__}(…)`"
    shown = first_cells(f"docs/{page}.md", heading)
    assert {*re.findall(r"`(\w+)[=`]", shown)} == {*options.__struct_fields__}


@pytest.mark.parametrize(
    ("page", "limits"), [("local-control-plane", RateLimits), ("local-databases", ConnectionLimits)]
)
def test_limits_have_the_defaults_of_the_code(page: str, limits: type[msgspec.Struct]) -> None:
    shown = second_cells(f"docs/{page}.md", f"`{limits.__name__}(…)`")
    defaults = {field.name: field.default for field in msgspec.structs.fields(limits)}
    assert {name: value.strip('"') for name, value in shown.items()} == {
        name: str(default) for name, default in defaults.items()
    }


def test_background_work_has_the_defaults_of_the_code() -> None:
    shown = second_cells("docs/local-control-plane.md", "`BackgroundIntervals(…)`")
    seconds: dict[str, float] = {}
    for name, text in shown.items():
        number, unit = text.split()
        seconds[name] = float(number) * PERIODS[unit.rstrip("s")]
    assert seconds == msgspec.structs.asdict(BackgroundIntervals())


def test_console_page_has_the_limits_of_the_code() -> None:
    limits = second_cells("docs/console.md", "limit of a statement")
    assert limits["time"] == f"{STATEMENT_SECONDS} seconds"
    assert limits["rows shown"] == f"{BOUNDS.rows:,}"
    assert limits["characters of a value"] == f"{BOUNDS.cell:,}"
