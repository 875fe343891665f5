"""The page on the console shows all pictures of it."""

import re

from tests.support.pages import ROOT, TEXTS

PAGE = TEXTS["docs/console.md"]
FOLDER = ROOT / "docs" / "pictures" / "console"


def test_page_shows_each_picture() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(pictures/console/(.+?)\)", PAGE)
    assert sorted(shown) == sorted(path.name for path in FOLDER.iterdir())
