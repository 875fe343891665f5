"""The files on the page about databases for tests are a test suite that passes."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.pages import TEXTS, code_blocks, kinds
from tests.support.postgres import skip_without_postgres

PAGE = "docs/test-databases.md"


def files_of_the_page() -> Mapping[str, str]:
    """Return the code of each block with a title, by its title: the name of the file."""
    files: dict[str, str] = {}
    for kind in kinds(TEXTS[PAGE]):
        if title := re.search(r'title="(.+)"', kind):
            [(_, files[title[1]])] = code_blocks(TEXTS[PAGE], kind)
    return files


@pytest.mark.process
def test_suite_of_the_page_passes(pytester: pytest.Pytester) -> None:
    skip_without_postgres()
    files = files_of_the_page()
    for name, code in files.items():
        Path(pytester.path, name).write_text(code)
    tests = sum(len(re.findall(r"^(?:async )?def test_", code, re.M)) for code in files.values())
    result = pytester.runpytest_subprocess("-W", "error", "-p", "no:randomly")
    result.assert_outcomes(passed=tests)
