"""Pages and searches of long lists."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, Self, TypeVar
from urllib.parse import urlencode

import msgspec

from neonctl_local.console.fields import natural_number

T = TypeVar("T")

ROWS: Final = 50
"""The largest number of rows on a page."""


class ListPage(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list.

    ``newer`` and ``older`` are the URL queries of the pages before and after it, or empty.
    ``found`` rows of ``total`` match the search.
    """

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


class ListQuery(msgspec.Struct, frozen=True):
    """The page of a list that a person requests: its number, from 1, and a search."""

    search: str
    number: int

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """Return the requested page. An invalid number means the first page."""
        number = natural_number(query.get("page", "")) or 1
        return cls(query.get("search", "").strip(), number)

    @property
    def first(self) -> int:
        """The number of rows before the page."""
        return (self.number - 1) * ROWS

    def within(self, found: int) -> Self:
        """Return this page, or the last page if this one is beyond the end of the list."""
        last = -(-found // ROWS) or 1
        return msgspec.structs.replace(self, number=min(self.number, last))

    def page(self, rows: Sequence[T], *, found: int, total: int) -> ListPage[T]:
        """Return the page with these rows."""
        has_older = self.first + ROWS < found
        return ListPage(
            rows=rows,
            total=total,
            found=found,
            first=self.first,
            search=self.search,
            newer=self._query(self.number - 1) if self.number > 1 else "",
            older=self._query(self.number + 1) if has_older else "",
        )

    def _query(self, number: int) -> str:
        query = {"search": self.search} if self.search else {}
        return "?" + urlencode(query | {"page": str(number)})


def list_page(
    newest_first: Sequence[T], query: Mapping[str, str], texts: Callable[[T], Iterable[str]]
) -> ListPage[T]:
    """Return the requested page of a complete list. A search ignores case.

    ``texts`` returns the strings of a row that are searched.
    """
    wanted, rows = ListQuery.of(query), newest_first
    sought = wanted.search.casefold()
    if sought:
        rows = [row for row in rows if any(sought in text.casefold() for text in texts(row))]
    wanted = wanted.within(len(rows))
    shown = rows[wanted.first : wanted.first + ROWS]
    return wanted.page(shown, found=len(rows), total=len(newest_first))
