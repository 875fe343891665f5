"""What every record shares: frozen Structs, enumerations that stay open, aware timestamps."""

import enum
from datetime import datetime
from typing import Annotated, Self, dataclass_transform

import msgspec


# Type checkers learn here what msgspec inherits by itself: that subclasses are frozen.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Model(msgspec.Struct, frozen=True):
    """A record of the API. Unknown fields are ignored; equal records compare equal."""


class Empty(Model):
    """An answer that says nothing but that the request was carried out."""


class OpenEnum(enum.StrEnum):
    """An enumeration that grows over time: an unknown value is kept as it came.

    Members are strings and compare equal to them, so ``status == "paused"`` works before this
    library has heard of a status named ``paused``.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = value
        member._value_ = value
        return member

    @property
    def is_known(self) -> bool:
        """Whether this library has a name for the value."""
        return any(self is member for member in type(self))


Timestamp = Annotated[datetime, msgspec.Meta(tz=True)]
"""An RFC 3339 timestamp as an aware ``datetime``; the API sends UTC, with or without fractions."""


class Pagination(Model, kw_only=True):
    """Where the next page begins: ``cursor`` or ``next``, by endpoint.

    Both are opaque, and both go back as the query parameter ``cursor``.
    """

    cursor: str | None = None
    next: str | None = None
    sort_by: str | None = None
    sort_order: str | None = None

    @property
    def following(self) -> str | None:
        """What goes back as ``cursor`` for the next page; None at the end."""
        return self.cursor or self.next or None
