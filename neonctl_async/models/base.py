"""The base of all records: frozen Structs, open enumerations, timestamps with a time zone."""

import enum
from datetime import datetime
from typing import Annotated, Any, Self, dataclass_transform

import msgspec

from neonctl_async.models.secret import Secret


# Type checkers do not see that subclasses inherit frozen=True from msgspec.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Model(msgspec.Struct, frozen=True):
    """A record of the API. It ignores unknown fields. Equal records compare equal."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dict that any JSON library encodes, with secrets hidden.

        Timestamps are RFC 3339 strings, and enumerations strings. Nested records are dicts. Names
        are those of the API. Fields that are UNSET are left out.
        """
        fields: dict[str, Any] = msgspec.to_builtins(self, enc_hook=_hide)
        return fields


def _hide(value: object) -> str:
    if isinstance(value, Secret):
        return str(value)
    raise TypeError(f"a record contains a {type(value).__name__}, which is no JSON")


class Empty(Model):
    """A response without content."""


class OpenEnum(enum.StrEnum):
    """An enumeration that accepts unknown values and keeps them unchanged.

    Members are strings and compare equal to strings. ``status == "paused"`` therefore works even
    if this version of the library does not know a status named ``paused``.
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
        """True if this version of the library defines the value."""
        return any(self is member for member in type(self))


Timestamp = Annotated[datetime, msgspec.Meta(tz=True)]
"""An RFC 3339 timestamp as a ``datetime`` with a time zone. The API sends UTC."""


class Pagination(Model, kw_only=True):
    """The cursor of the next page. Some endpoints name it ``cursor``, others ``next``.

    Both are opaque. Send either one as the query parameter ``cursor``.
    """

    cursor: str | None = None
    next: str | None = None
    sort_by: str | None = None
    sort_order: str | None = None

    @property
    def next_cursor(self) -> str | None:
        """The ``cursor`` parameter of the next request, or None after the last page."""
        return self.cursor or self.next or None
