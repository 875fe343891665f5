"""The files on the page about databases for tests are a test suite that passes."""

import re
from collections.abc import Mapping

import pytest

from tests.support.pages import TEXTS, code_blocks, kinds
from tests.support.postgres import skip_without_postgres


def files(page: str) -> Mapping[str, str]:
    """Return the code of each block with a title, by its title: the name of a file."""
    found: dict[str, str] = {}
    for kind in kinds(TEXTS[page]):
        if title := re.search(r'title="(.+)"', kind):
            [(_, found[title[1]])] = code_blocks(TEXTS[page], kind)
    return found


@pytest.mark.process
def test_suite_of_the_page_passes(pytester: pytest.Pytester) -> None:
    skip_without_postgres()
    shown = files("docs/test-databases.md")
    for name, code in shown.items():
        (pytester.path / name).write_text(code)
    tests = sum(code.count("def test_") for code in shown.values())
    result = pytester.runpytest_subprocess("-W", "error", "-p", "no:randomly")
    result.assert_outcomes(passed=tests)


def test_readme_shows_files_of_the_page() -> None:
    assert files("README.md").items() <= files("docs/test-databases.md").items()
