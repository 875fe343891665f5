"""Old addresses of the site lead to existing sections."""

import re

import pytest

from tests.docs.built import SITE, page
from tests.support.pages import ROOT

SETTINGS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
REDIRECTS = re.findall(
    r"^    ([\w-]+): (\S+/\S*)$", SETTINGS.partition("\n  redirects:")[2], re.MULTILINE
)


@pytest.mark.site
@pytest.mark.parametrize(("old", "new"), REDIRECTS)
def test_old_address_leads_to_a_section(old: str, new: str) -> None:
    text = (SITE / old / "index.html").read_text(encoding="utf-8")
    assert f'href="../{new}"' in text
    location, _, section = new.partition("#")
    assert not section or f'id="{section}"' in page(location)


def test_no_page_has_the_address_of_a_redirect() -> None:
    assert REDIRECTS
    assert [old for old, _ in REDIRECTS if (ROOT / "docs" / f"{old}.md").exists()] == []
