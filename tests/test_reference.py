"""docs/reference shows what there is, as it is called."""

import griffe
import pytest

from tools.reference.pages import FOLDER, Pages, call
from tools.reference.source import Source


@pytest.fixture(scope="module")
def source() -> Source:
    return Source()


def test_the_pages_say_what_the_docstrings_say(source: Source) -> None:
    wanted = Pages(source).texts()
    there = {page.name: page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md")}
    stale = [name for name in wanted | there if wanted.get(name) != there.get(name)]
    assert not stale, "run `make docs`, and commit docs/reference"


def test_what_the_reference_shows_has_a_docstring(source: Source) -> None:
    assert source.undocumented() == []


def test_every_record_that_methods_take_or_give_can_be_imported(source: Source) -> None:
    assert source.unexported() == []


@pytest.mark.parametrize(
    ("definition", "shown"),
    [
        ("async def f(self, a: str) -> Answer: ...", "await f(a: str) -> Answer"),
        ("def f(self) -> Coroutine[None, None, Answer]: ...", "await f() -> Answer"),
        ("def f(self) -> Paginator[Answer]: ...", "async for … in f() -> Paginator[Answer]"),
        (
            "async def f(self) -> AsyncGenerator[Answer]: ...",
            "async for … in f() -> AsyncGenerator[Answer]",
        ),
        (
            "@asynccontextmanager\nasync def f(self) -> AsyncGenerator[Answer]: ...",
            "async with f() -> Answer",
        ),
        (
            "def f(self) -> AbstractAsyncContextManager[Answer]: ...",
            "async with f() -> Answer",
        ),
        (
            "async def f(self, *, a: str | UnsetType = UNSET) -> builtins.list[Answer]: ...",
            "await f(*, a: str = ...) -> list[Answer]",
        ),
    ],
)
def test_a_method_is_shown_as_it_is_called(definition: str, shown: str) -> None:
    with griffe.temporary_visited_module(definition) as module:
        assert call("f", module.functions["f"]) == shown
