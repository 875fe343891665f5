"""The query of a URL. Pure: no I/O."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TypeAlias

from msgspec import UnsetType

from neonctl_async._internal import shorten
from neonctl_async.transport.encoding.texts import check_utf8

QueryValue: TypeAlias = str | int | float | datetime | list[str] | tuple[str, ...] | UnsetType


def query_items(query: Mapping[str, QueryValue] | None) -> tuple[tuple[str, str], ...]:
    """Return the names and values of a query. A list repeats its name.

    Raises ValueError or TypeError, with the name of the parameter, for a value that cannot be sent.
    """
    return tuple(_items(query)) if query else ()


def check_aware(name: str, value: datetime) -> datetime:
    """Return ``value``. Raises ValueError if it has no time zone."""
    if value.utcoffset() is None:
        raise ValueError(
            f"{name} is {value.isoformat()}: expected a datetime with a time zone, "
            "as from datetime.now(UTC)"
        )
    return value


def _items(query: Mapping[str, QueryValue]) -> Iterator[tuple[str, str]]:
    for name, value in query.items():
        check_utf8("a name in query", name)
        match value:
            case UnsetType():
                pass
            case list() | tuple():
                yield from ((name, _text(name, item)) for item in value)
            case _:
                yield name, _text(name, value)


def _text(name: str, value: object) -> str:
    match value:
        case str():
            return check_utf8(name, value)
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case datetime():
            return _utc(name, value).isoformat()
        case _:
            raise TypeError(
                f"{name} is {shorten(value)}: expected a string, number, bool or datetime"
            )


def _utc(name: str, value: datetime) -> datetime:
    try:
        return check_aware(name, value).astimezone(UTC)
    except OverflowError:
        raise ValueError(
            f"{name} is {value.isoformat()}: expected years 1 to 9999 in UTC"
        ) from None
