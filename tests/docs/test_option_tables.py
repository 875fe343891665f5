"""The tables of options in docs have the names and defaults of the code."""

import ast
import inspect
import re
from collections.abc import Iterator

import msgspec
import pytest

from neonctl_async import (
    NeonClient,
    PollPolicy,
    RateBudget,
    RetryPolicy,
    Timeout,
    WaitOptions,
)
from neonctl_async.errors import APIError
from neonctl_async.provisioning.fleet import Fleet
from neonctl_async.transport.retry import may_retry
from tests.support.pages import TEXTS, code_blocks

CLASSES = {each.__name__: each for each in (PollPolicy, RateBudget, RetryPolicy, Timeout)}


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        ("docs/polling.md", PollPolicy()),
        ("docs/retries.md", RetryPolicy()),
        ("docs/retries.md", RateBudget()),
        ("docs/waiting.md", WaitOptions()),
    ],
)
def test_table_shows_the_default_of_each_option(page: str, settings: msgspec.Struct) -> None:
    options = {*settings.__struct_fields__} - {"store"}  # RateBudget.shared() sets it
    for name in sorted(options):
        default = getattr(settings, name)
        shown = {repr(default), re.sub("'", '"', repr(default))}
        assert any(f"| `{name}` | `{value}` |" in TEXTS[page] for value in shown), name


def test_table_shows_the_options_of_apply() -> None:
    for name, parameter in inspect.signature(Fleet.apply).parameters.items():
        assert name == "self" or f"`{name}={parameter.default!r}`" in TEXTS["docs/recipes.md"], name


def shown_settings() -> Iterator[tuple[str, object]]:
    """Yield the settings from ``timeout`` on in the first example of the page, evaluated."""
    _, code = next(code_blocks(TEXTS["docs/settings.md"], "python"))
    calls = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    client = next(call for call in calls if ast.unparse(call.func) == "NeonClient")
    names = [keyword.arg or "" for keyword in client.keywords]
    for keyword in client.keywords[names.index("timeout") :]:
        yield keyword.arg or "", eval(ast.unparse(keyword.value), dict(CLASSES))


def test_example_of_the_settings_shows_the_defaults() -> None:
    parameters = inspect.signature(NeonClient).parameters
    for name, value in shown_settings():
        default = parameters[name].default
        if isinstance(value, msgspec.Struct):
            assert value == type(value)(), name
        else:
            assert (value or None) == (default or None), name


def test_table_shows_which_statuses_are_retried() -> None:
    section = TEXTS["docs/retries.md"].partition("## What is retried")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d{3}[^|]*) \| (\w+) \| (\w+)[^|]*\|$", section, re.MULTILINE)
    shown = {
        int(status): (of_reads == "retry", of_others == "retry")
        for statuses, of_reads, of_others in rows
        for status in re.findall(r"\d{3}", statuses)
    }
    assert shown[401] == (False, False)
    for status in range(400, 600):
        error = APIError(status=status, message="failed", method="POST", path="/projects")
        retried = (may_retry(error, is_read=True), may_retry(error, is_read=False))
        assert shown.get(status, (False, False)) == retried, status
