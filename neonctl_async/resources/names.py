"""Exact names. The API can only search for parts of names and ids. Pure: no I/O."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from neonctl_async._internal import shorten
from neonctl_async.errors import LookupFailedError

SAMPLE: Final = 400
"""How many records are searched for names similar to an unknown name."""
_CLOSE: Final = 3
"""The maximum number of similar names in an error."""
_LISTED: Final = 20
"""The maximum number of ids or names in an error. If there are more names, the error lists only
similar ones."""


class Named(Protocol):
    """A record with an id, and usually a name."""

    @property
    def id(self) -> str:
        """The id."""
        ...

    @property
    def name(self) -> str | None:
        """The name."""
        ...


NamedT = TypeVar("NamedT", bound=Named)


class Wanted(NamedTuple):
    """The name to search for. ``kind`` and ``scope`` appear in error messages."""

    kind: str
    scope: str
    name: str

    def only(self, records: Iterable[NamedT]) -> NamedT | None:
        """Return the record with exactly this name, or None.

        Raises ValueError, listing the ids, if more than one record has the name.
        """
        found = [record for record in records if record.name == self.name]
        if len(found) > 1:
            ids = ", ".join(record.id for record in found[:_LISTED])
            more = ", …" if len(found) > _LISTED else ""
            raise ValueError(
                f"{len(found)} {self._kinds} of {self.scope} are named {shorten(self.name)}: "
                f"use the id of one of them: {ids}{more}"
            )
        return found[0] if found else None

    def one(self, records: Sequence[NamedT]) -> NamedT:
        """Return the record with exactly this name.

        Raises LookupFailedError, suggesting other names, if no record has it, and ValueError,
        listing the ids, if more than one record has it.
        """
        found = self.only(records)
        if found is None:
            raise LookupFailedError(self.missing(records))
        return found

    def missing(self, sample: Iterable[Named], what: str = "name") -> str:
        """Return the message for an unknown name, suggesting names from ``sample``."""
        return self.unknown((record.name or record.id for record in sample), what)

    def unknown(self, names: Iterable[str], what: str = "name") -> str:
        """Return the message for a name that is not in ``names``."""
        hint = self._hint(sorted({*names}))
        return f"no {self.kind} of {self.scope} has the {what} {shorten(self.name)}{hint}"

    def _hint(self, names: Sequence[str]) -> str:
        if 0 < len(names) <= _LISTED:
            return f"; its {self._kinds}: {', '.join(names)}"
        from difflib import get_close_matches  # noqa: PLC0415 - only this error needs it

        close = get_close_matches(self.name, names, n=_CLOSE)
        return f"; close names: {', '.join(close)}" if close else ""

    @property
    def _kinds(self) -> str:
        return f"{self.kind}es" if self.kind.endswith("ch") else f"{self.kind}s"
