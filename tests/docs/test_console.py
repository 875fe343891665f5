"""The pictures of docs/console.md are small, and the page shows all of them."""

import re

from tests.support.pages import ROOT, TEXTS

PAGE = TEXTS["docs/console.md"]
FOLDER = ROOT / "docs" / "pictures" / "console"


def test_page_shows_each_picture() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(pictures/console/(.+?)\)", PAGE)
    assert sorted(shown) == sorted(path.name for path in FOLDER.iterdir())


def test_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert {name: size for name, size in sizes.items() if size > 60_000} == {}
