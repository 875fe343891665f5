"""The page on secrets names tests that exist."""

import re

from tests.support.pages import ROOT, TEXTS


def test_named_test_files_exist() -> None:
    named = re.findall(r"`(tests/[\w./]+)`", TEXTS["docs/secrets.md"])
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []
