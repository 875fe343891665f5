"""docs/troubleshooting.md quotes messages that the packages still write."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pages import ROOT, TEXTS

PAGE = TEXTS["docs/troubleshooting.md"]
PACKAGES = ("neonctl_async", "pytest_neonctl_async", "control_plane/neonctl_local")
OF_OTHERS = (
    "401 Unauthorized",  # the status and phrase of a response
    "unrecognized configuration parameter",
    "unexpected keyword argument",
    "connect() got an unexpected keyword argument",
    "remaining connection slots are reserved",
    "no matching distribution found",
    "failed to resolve host",
    "Name or service not known",
    "neon.invalid",
    "server closed the connection unexpectedly",
    "connection is closed",
    "ScopeMismatch",
    "asyncio_default_fixture_loop_scope",
    'extension "…" is not available',
    'permission denied to set role "…"',
)
"""Messages of Postgres, drivers, pip and pytest, and words that are no message."""


def quoted() -> Iterator[str]:
    """Yield the messages in the first column of the tables."""
    for line in PAGE.splitlines():
        if line.startswith("| `"):
            yield from re.findall(r"`([^`]+)`", line.split(" | ")[0])


def texts(source: Path) -> Iterator[str]:
    """Yield the texts of a module, with an ellipsis in place of each value."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (
                value.value if isinstance(value, ast.Constant) else "…" for value in node.values
            )
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"%(\.\d)?[sdfg]", "…", node.value)


@pytest.fixture(scope="module")
def written() -> str:
    """All texts of the packages, one per line."""
    sources = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return "\n".join(text.replace("\n", " ") for path in sources for text in texts(path))


@pytest.mark.parametrize("message", [each for each in quoted() if not each.startswith(OF_OTHERS)])
def test_quoted_message_is_still_written(message: str, written: str) -> None:
    parts = [re.escape(part) for part in message.strip("… ").split("…")]
    assert re.search(".*".join(parts), written), "the page quotes a message that no code writes"
