"""The templates escape all values, and need nothing that the content security policy forbids."""

import re
from collections.abc import Iterator

from tests.support.pages import ROOT

TEMPLATES = sorted((ROOT / "control_plane/neonctl_local/console/templates").rglob("*.html"))
CONSTANT = re.compile(r'"[^"{}]*"\|safe')


def sources() -> Iterator[tuple[str, str]]:
    """Yield the name and the source of each template, without comments."""
    assert TEMPLATES
    for path in TEMPLATES:
        source = path.read_text(encoding="utf-8")
        yield path.name, re.sub(r"{#.*?#}", "", source, flags=re.DOTALL)


def test_only_constants_are_not_escaped() -> None:
    for name, source in sources():
        rest = CONSTANT.sub("", source)
        assert not re.search(r"\|\s*safe|autoescape|\|\s*tojson|Markup", rest), name


def test_each_value_of_an_attribute_is_quoted() -> None:
    for name, source in sources():
        without_tags = re.sub(r"{%.*?%}", "", source, flags=re.DOTALL)
        unquoted = re.sub(r'"[^"]*"', '""', without_tags)
        assert not re.search(r'=[^\s<>"]*{{', unquoted), name


def test_addresses_start_with_a_path_of_the_console() -> None:
    for name, source in sources():
        for address in re.findall(r"\b(?:src|href|action)=\"([^\"]*)\"", source):
            is_own = address.startswith(("/console", "{{", "#"))
            assert is_own or not address, (name, address)


def test_there_is_no_inline_script_style_or_handler() -> None:
    for name, source in sources():
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=\"|javascript:", source), name
        for attributes, content in re.findall(r"<script([^>]*)>([^<]*)", source):
            assert 'src="/console/static/' in attributes, name
            assert not content.strip(), name


def test_posted_form_contains_the_token() -> None:
    for name, source in sources():
        for form in re.split(r"<form\b", source)[1:]:
            start = form.partition("</form>")[0]
            assert ("csrf" in start) == ('method="post"' in start), (name, start)
