"""The pages that compare clients name the versions that the tests use."""

import re
from importlib.metadata import version

import pytest

from tests.support.pages import ROOT, TEXTS

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PINNED = dict(re.findall(r"^(\w+) = (\d\S*)$", MAKEFILE, re.MULTILINE))
VERSIONS = {
    "neon-api": version("neon-api"),
    "@neon/sdk": PINNED["SDK"],
    "neon": PINNED["NEON_CLI"],
}
NAMED = re.compile(r"`(neon-api|@neon/sdk|neon)` (\d[\d.]*\d)")
PAGES = [page for page, text in TEXTS.items() if page != "CHANGELOG.md" and NAMED.search(text)]


@pytest.mark.parametrize("page", PAGES)
def test_page_names_the_versions_that_the_tests_use(page: str) -> None:
    assert {*NAMED.findall(TEXTS[page])} <= {*VERSIONS.items()}
