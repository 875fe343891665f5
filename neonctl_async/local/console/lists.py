"""Pages of a list that the API returns completely, with a search."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar
from urllib.parse import urlencode

import msgspec

T = TypeVar("T")

ROWS: Final = 50
"""The number of rows of a page."""

_MAX_DIGITS: Final = 6


class ListPage(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list. ``newer`` and ``older`` are the queries of its neighbours, or empty."""

    rows: Sequence[T]
    total: int
    found: int
    first: int
    search: str
    newer: str
    older: str

    @property
    def summary(self) -> str:
        """The position of the page in the list: ``51 to 100 of 240``. Empty for a short list."""
        if self.found <= ROWS:
            return ""
        return f"{self.first + 1:,} to {self.first + len(self.rows):,} of {self.found:,}"


def list_page(
    newest_first: Sequence[T], query: Mapping[str, str], texts: Callable[[T], Iterable[str]]
) -> ListPage[T]:
    """Return the rows of the page in ``query`` that contain its search, ignoring case.

    ``texts`` returns the texts of a row that can contain the search. After the last page comes the
    last page, because rows may have been deleted since.
    """
    search = query.get("search", "").strip()
    sought = search.casefold()
    rows = newest_first
    if sought:
        rows = [row for row in rows if any(sought in text.casefold() for text in texts(row))]
    number = min(_number(query.get("page", "")), -(-len(rows) // ROWS) or 1)
    first = (number - 1) * ROWS
    return ListPage(
        rows=rows[first : first + ROWS],
        total=len(newest_first),
        found=len(rows),
        first=first,
        search=search,
        newer=_query(search, number - 1) if number > 1 else "",
        older=_query(search, number + 1) if first + ROWS < len(rows) else "",
    )


def _number(text: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    return max(1, int(text)) if is_number else 1


def _query(search: str, number: int) -> str:
    query = {"search": search} if search else {}
    return "?" + urlencode(query | {"page": str(number)})
