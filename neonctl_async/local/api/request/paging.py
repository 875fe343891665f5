"""Pages of a list that is sorted by a field the principal chooses, found again by keyset."""

import base64
import binascii
from typing import Annotated, Self, TypeVar

import msgspec
from msgspec import Meta

from neonctl_async.local.api.request.calls import Call, Json
from neonctl_async.local.errors import invalid
from neonctl_async.local.storage.database import Row, SqlValue

RowT = TypeVar("RowT", bound=Row)


class Position(msgspec.Struct, frozen=True, array_like=True):
    """What a cursor holds: the order it belongs to, and the last row of its page."""

    sort_by: str
    sort_order: str
    value: str | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    id: str

    def fits(self, sorts: tuple[str, ...]) -> bool:
        """Whether it is of a list with these orders. Only the times among them are numbers."""
        ordered = self.sort_by in sorts and self.sort_order in ("asc", "desc")
        return ordered and isinstance(self.value, int) == self.sort_by.endswith("_at")


class Sorted(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a sorted list. Ties are broken by id, so no row is on two pages or on none."""

    sort_by: str
    sort_order: str
    limit: int
    after: Position | None

    @classmethod
    def of(
        cls, call: Call, sorts: tuple[str, ...], default: str, maximum: int, default_limit: int
    ) -> Self:
        """The page that a request asks for. A cursor keeps the order of its first page."""
        limit = call.integer("limit", 1, maximum, default_limit)
        after = _position(call.query.get("cursor"), sorts)
        if after is not None:
            return cls(sort_by=after.sort_by, sort_order=after.sort_order, limit=limit, after=after)
        return cls(
            sort_by=call.choice("sort_by", sorts, default),
            sort_order=call.choice("sort_order", ("asc", "desc"), "desc"),
            limit=limit,
            after=None,
        )

    def clauses(self, where: str, *values: SqlValue) -> tuple[str, tuple[SqlValue, ...]]:
        """The clauses that choose the page out of the rows ``where``, and one row more."""
        order = f"ORDER BY {self.sort_by} {self.sort_order}, id {self.sort_order} LIMIT ?"
        if self.after is None:
            return f"WHERE {where} {order}", (*values, self.limit + 1)
        than = "<" if self.sort_order == "desc" else ">"
        return (
            f"WHERE {where} AND ({self.sort_by}, id) {than} (?, ?) {order}",
            (*values, self.after.value, self.after.id, self.limit + 1),
        )

    def cut(self, rows: list[RowT]) -> tuple[list[RowT], Json]:
        """The rows of the page, and its pagination object: without ``next`` on the last page."""
        pagination: Json = {"sort_by": self.sort_by, "sort_order": self.sort_order}
        page = rows[: self.limit]
        if len(rows) > self.limit:
            values = [getattr(page[-1], name) for name in (self.sort_by, "id")]
            position = msgspec.json.encode([self.sort_by, self.sort_order, *values])
            pagination["next"] = base64.urlsafe_b64encode(position).decode()
        return page, pagination


def _position(cursor: str | None, sorts: tuple[str, ...]) -> Position | None:
    if not cursor:
        return None
    try:
        position = msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=Position)
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        raise invalid(f"invalid request: cursor: {cursor!r} is no cursor of this list") from None
    if not position.fits(sorts):
        raise invalid(f"invalid request: cursor: {cursor!r} is no cursor of this list")
    return position
