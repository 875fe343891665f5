"""Rows of tables."""

from typing import ClassVar, TypeVar

import msgspec

SqlValue = str | int | float | bytes | None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table that the attribute ``table`` names. The fields are the columns."""

    table: ClassVar[str]


RowT = TypeVar("RowT", bound=Row)
