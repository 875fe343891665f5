"""The templates escape all values, and need nothing that the content security policy forbids."""

import re
from pathlib import Path

import pytest

from tests.support.pages import ROOT

TEMPLATES = sorted((ROOT / "neonctl_async/local/console/templates").rglob("*.html"))
CONSTANT = re.compile(r'"[^"{}]*"\|safe')


@pytest.fixture(params=TEMPLATES, ids=lambda path: path.name)
def source(request: pytest.FixtureRequest) -> str:
    """The source of a template, without comments."""
    path: Path = request.param
    return re.sub(r"{#.*?#}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_only_constants_are_not_escaped(source: str) -> None:
    rest = CONSTANT.sub("", source)
    assert not re.search(r"\|\s*safe|autoescape|\|\s*tojson|Markup", rest)


def test_each_value_of_an_attribute_is_quoted(source: str) -> None:
    without_tags = re.sub(r"{%.*?%}", "", source, flags=re.DOTALL)
    assert not re.search(r'=[^\s<>"]*{{', re.sub(r'"[^"]*"', '""', without_tags))


def test_addresses_start_with_a_path_of_the_console(source: str) -> None:
    for address in re.findall(r"\b(?:src|href|action)=\"([^\"]*)\"", source):
        assert address.startswith(("/console", "{{", "#")) or not address, address


def test_there_is_no_inline_script_style_or_handler(source: str) -> None:
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=\"|javascript:", source)
    for attributes, content in re.findall(r"<script([^>]*)>([^<]*)", source):
        assert 'src="/console/static/' in attributes
        assert not content.strip()


def test_posted_form_contains_the_token(source: str) -> None:
    for form in re.split(r"<form\b", source)[1:]:
        start = form.partition("</form>")[0]
        assert ("csrf" in start) == ('method="post"' in start), start
