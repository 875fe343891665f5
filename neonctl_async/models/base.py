"""The base of all records: frozen Structs, open enumerations, timestamps with a time zone."""

import enum
from datetime import UTC, datetime
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    NoReturn,
    Self,
    dataclass_transform,
    get_args,
)

import msgspec

from neonctl_async.models.secret import HIDDEN, Secret, missing

_INSTEAD: Final = "pass a form of its connection_uri, such as connection_uri.asyncpg, to the driver"

Timestamp = Annotated[datetime, msgspec.Meta(tz=True)]
"""An RFC 3339 timestamp as a ``datetime`` in UTC, whatever its offset in the response."""


# Type checkers do not see that subclasses inherit frozen=True from msgspec.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Model(msgspec.Struct, frozen=True):
    """A record of the API. It ignores unknown fields. Records with equal fields compare equal."""

    _timestamps: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        annotations = cls.__annotations__
        names = [name for name, annotation in annotations.items() if _has_timestamp(annotation)]
        if names:
            cls._timestamps = (*cls._timestamps, *names)
            # Records without timestamps have no __post_init__, which would slow down decoding.
            setattr(cls, "__post_init__", cls._use_utc)  # noqa: B010 - a plain assignment would be part of the public types

    if not TYPE_CHECKING:  # a type checker reports this mistake itself

        def __getattr__(self, name: str) -> NoReturn:
            has_uri = hasattr(type(self), "connection_uri")
            raise missing(self, name, _INSTEAD if has_uri else "")

    def _use_utc(self) -> None:
        """Convert timestamps with other offsets to UTC. The API usually sends UTC."""
        for name in self._timestamps:
            moment = getattr(self, name)
            if isinstance(moment, datetime) and moment.tzinfo is not UTC:
                msgspec.structs.force_setattr(self, name, _in_utc(moment))

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dict that any JSON library can encode, with secrets hidden.

        Timestamps become RFC 3339 strings, enumerations become strings, and nested records become
        dicts. The keys are the API's field names. Fields that are UNSET are left out.
        """
        fields: dict[str, Any] = msgspec.to_builtins(self, enc_hook=_hide)
        return fields

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> object:
        """Let Pydantic validate records, and encode them as :meth:`to_dict` does."""
        from neonctl_async.models.pydantic_schema import schema_of  # noqa: PLC0415 - Pydantic calls it

        return schema_of(cls, cls.to_dict)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, _handler: object) -> dict[str, object]:
        """Return the schema of the record for OpenAPI."""
        from neonctl_async.models.pydantic_schema import json_schema_of  # noqa: PLC0415 - as above

        return json_schema_of(cls)


def _has_timestamp(annotation: object) -> bool:
    return annotation is Timestamp or Timestamp in get_args(annotation)


def _in_utc(moment: datetime) -> datetime:
    """Convert a time to UTC, or to the nearest time that a datetime can represent."""
    if moment.tzinfo is None:  # a caller has created the record
        return moment
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return _EARLIEST if moment.year == _EARLIEST.year else _LATEST


_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_LATEST: Final = datetime.max.replace(tzinfo=UTC)


def _hide(value: object) -> str:
    if isinstance(value, Secret):
        return HIDDEN
    raise TypeError(f"a record contains a {type(value).__name__}, which is no JSON")


class Empty(Model):
    """A response without content."""


class OpenEnum(enum.StrEnum):
    """An enumeration that accepts unknown values and keeps them unchanged.

    Members are strings and compare equal to strings, so ``status == "paused"`` works even if this
    version of the library does not know a status named ``paused``.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = value
        member._value_ = value
        return member

    def __reduce_ex__(self, _protocol: object) -> tuple[type[Self], tuple[str]]:
        # CPython 3.11.0 to 3.11.3 pickle and copy by name, which fails for unknown values.
        return type(self), (self.value,)

    @property
    def is_known(self) -> bool:
        """True if this version of the library defines the value."""
        return any(self is member for member in type(self))


class Pagination(Model, kw_only=True):
    """The cursor of the next page. Some endpoints name it ``cursor``, others ``next``.

    Both are opaque. Send either one as the ``cursor`` query parameter.
    """

    cursor: str | None = None
    next: str | None = None
    sort_by: str | None = None
    sort_order: str | None = None

    @property
    def next_cursor(self) -> str | None:
        """The ``cursor`` parameter of the next request, or None after the last page."""
        return self.cursor or self.next or None
