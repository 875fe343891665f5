"""Keyset pagination of lists that are sorted by a field of the caller's choice."""

import base64
import binascii
import re
from typing import Annotated, Final, Self, TypeVar

import msgspec
from msgspec import Meta

from neonctl_local.api.request.calls import Call, Json
from neonctl_local.errors import invalid
from neonctl_local.storage.rows import Row, SqlValue

RowT = TypeVar("RowT", bound=Row)

# What base64 does with other characters differs between versions of CPython.
_CURSOR: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}")


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The content of a cursor: the sort order of the list, and the last row of the page."""

    sort_by: str
    sort_order: str
    value: str | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    id: str

    def is_valid_for(self, sort_fields: tuple[str, ...]) -> bool:
        """Return whether the cursor belongs to a list that is sorted by one of these fields."""
        known_order = self.sort_by in sort_fields and self.sort_order in ("asc", "desc")
        # Times are stored as integers, and all other sort fields as text.
        return known_order and isinstance(self.value, int) == self.sort_by.endswith("_at")


class SortedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a sorted list. Rows with equal values are sorted by id, so no row is repeated."""

    sort_by: str
    sort_order: str
    limit: int
    after: Position | None

    @classmethod
    def from_call(
        cls, call: Call, sort_fields: tuple[str, ...], default: str, max_limit: int
    ) -> Self:
        """Return the requested page. With a cursor, the sort order is that of the first page.

        ``default`` is the default sort field. ``max_limit`` is also the default limit.
        """
        limit = call.limit(max_limit)
        after = _position(call.query.get("cursor"), sort_fields)
        if after is not None:
            return cls(sort_by=after.sort_by, sort_order=after.sort_order, limit=limit, after=after)
        return cls(
            sort_by=call.choice("sort_by", sort_fields, default),
            sort_order=call.choice("sort_order", ("asc", "desc"), "desc"),
            limit=limit,
            after=None,
        )

    def clauses(self, where: str, *values: SqlValue) -> tuple[str, tuple[SqlValue, ...]]:
        """Return the SQL clauses that select the rows of the page, and the row after it."""
        order = f"ORDER BY {self.sort_by} {self.sort_order}, id {self.sort_order} LIMIT ?"
        if self.after is None:
            return f"WHERE {where} {order}", (*values, self.limit + 1)
        comparison = "<" if self.sort_order == "desc" else ">"
        return (
            f"WHERE {where} AND ({self.sort_by}, id) {comparison} (?, ?) {order}",
            (*values, self.after.value, self.after.id, self.limit + 1),
        )

    def paginate(self, rows: list[RowT]) -> tuple[list[RowT], Json]:
        """Return the rows and the pagination object, which has no ``next`` on the last page."""
        pagination: Json = {"sort_by": self.sort_by, "sort_order": self.sort_order.upper()}
        page = rows[: self.limit]
        if len(rows) > self.limit:
            values = [getattr(page[-1], name) for name in (self.sort_by, "id")]
            position = msgspec.json.encode([self.sort_by, self.sort_order, *values])
            pagination["next"] = base64.urlsafe_b64encode(position).decode()
        return page, pagination


def _position(cursor: str | None, sort_fields: tuple[str, ...]) -> Position | None:
    if not cursor:
        return None
    try:
        if _CURSOR.fullmatch(cursor):
            position = msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=Position)
            if position.is_valid_for(sort_fields):
                return position
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        pass
    raise invalid(f"invalid request: cursor: {cursor!r} is not a cursor of this list")
