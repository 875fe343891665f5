"""Splits a stream of bytes into messages. Pure.

Only messages of the given kinds are collected as a whole. All others pass in parts, so that rows
and copied data need no memory.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from neonctl_local.postgres.proxy.errors import ProtocolError
from neonctl_local.postgres.proxy.messages import HEADER_LENGTH

MAX_LENGTH: Final = 1 << 30
"""The length of the longest message of Postgres."""


class Frame(NamedTuple):
    """A message of a collected kind, or bytes of messages of other kinds, whose kind is 0."""

    kind: int
    data: bytes

    def __repr__(self) -> str:
        return f"<Frame {self.kind} of {len(self.data)} bytes>"

    @property
    def payload(self) -> bytes:
        """The message without its header."""
        return self.data[HEADER_LENGTH:]


class Splitter:
    """Reads a stream, and yields the messages of ``kinds``."""

    def __init__(self, kinds: bytes) -> None:
        self._kinds: Final = frozenset(kinds)
        self._rest = bytearray()
        self._needed = HEADER_LENGTH
        """The length that ``rest`` must have before it can be read."""
        self._skipped = 0
        """The bytes that are missing from a message that has passed in part."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the next frames. Raise ProtocolError for a length that no message has."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data, self._rest = bytes(self._rest), bytearray()
        start, offset = 0, min(self._skipped, len(data))
        self._skipped -= offset
        while (end := offset + HEADER_LENGTH) <= len(data):
            length = int.from_bytes(data[offset + 1 : end])
            if not HEADER_LENGTH - 1 <= length <= MAX_LENGTH:
                raise ProtocolError("invalid message length")
            end = offset + 1 + length
            if data[offset] not in self._kinds:
                self._skipped = max(0, end - len(data))
                offset = min(end, len(data))
            elif end <= len(data):
                if start < offset:
                    yield Frame(0, data[start:offset])
                yield Frame(data[offset], data[offset:end])
                start = offset = end
            else:
                self._needed = end - offset
                break
        else:
            self._needed = HEADER_LENGTH
        if start < offset:
            yield Frame(0, data[start:offset])
        self._rest += data[offset:]
