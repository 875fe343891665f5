"""The search of the built site finds the page about a word first and comparisons last."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from pathlib import Path

import pytest

from tests.contract.node import node
from tests.docs.built import SITE
from tools.search import COMPARISONS, TAGS

pytestmark = pytest.mark.site

FIRST = {
    "branch": "branches/",
    "cancel": "waiting/",
    "docker": "local-databases/",
    "error": "errors/",
    "idempotent": "ensure/",
    "pool": "connecting/",
    "psql": "connecting/",
    "pytest": "test-databases/",
    "rate limit": "retries/",
    "retry": "retries/",
    "timeout": "waiting/",
    "wait": "waiting/",
}
"""The page that each query finds first."""


@pytest.fixture(scope="module")
def found() -> Mapping[str, Sequence[str]]:
    """The pages that each query finds, best first, according to the site's own search."""
    tags = [tag for words in TAGS.values() for tag in words.split()]
    program = Path(__file__).parent / "search.cjs"
    command = [node(), str(program), str(SITE), *FIRST, *tags]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pages: Mapping[str, Sequence[str]] = json.loads(output)
    return pages


def test_query_finds_its_page_first(found: Mapping[str, Sequence[str]]) -> None:
    assert {query: next(iter(found[query]), None) for query in FIRST} == FIRST


def test_each_tag_finds_its_page_first(found: Mapping[str, Sequence[str]]) -> None:
    wrong = {
        tag: found[tag][:1]
        for page, words in TAGS.items()
        for tag in words.split()
        if found[tag][:1] != [page] and page not in COMPARISONS
    }
    assert wrong == {}


def test_comparisons_come_last(found: Mapping[str, Sequence[str]]) -> None:
    for query in FIRST:
        after_first = dropwhile(lambda page: page not in COMPARISONS, found[query])
        assert [page for page in after_first if page not in COMPARISONS] == [], query


@pytest.mark.parametrize("page", ["why/", "benchmarks/"])
def test_comparison_is_found_by_its_own_words(
    page: str, found: Mapping[str, Sequence[str]]
) -> None:
    assert {word: found[word][0] for word in TAGS[page].split()} == dict.fromkeys(
        TAGS[page].split(), page
    )
