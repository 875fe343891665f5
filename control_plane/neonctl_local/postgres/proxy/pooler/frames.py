"""Splits a stream of bytes into messages. Pure: no I/O.

Messages of some types are collected as a whole. All other messages, such as rows and copied data,
are streamed: they are passed on in parts, so that they need no memory. Long errors from servers are
passed on in parts, too.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from neonctl_local.postgres.proxy.messages import HEADER_LENGTH
from neonctl_local.postgres.proxy.pooler.phases import INVALID, STREAMED

CLIENT_KINDS: Final = b"QFPBDCESHcfX"
SERVER_KINDS: Final = b"123TnCsIEGWSZ"

MAX_LENGTH: Final = 0x3FFFFFFE
"""The length of the longest message that Postgres accepts."""
_MAX_SHORT: Final = 10_000
"""The length of the longest message of a short type that Postgres accepts from clients."""

_CLIENT_LENGTHS: Final = dict.fromkeys(b"QFPBd", MAX_LENGTH) | dict.fromkeys(
    b"CDESHcfX", _MAX_SHORT
)
CLIENT_LENGTHS: Final = tuple(_CLIENT_LENGTHS.get(kind, 0) for kind in range(256))
"""The greatest length of each client message type, as in ``SocketBackend``; 0 for invalid types."""
SERVER_LENGTHS: Final = (MAX_LENGTH,) * 256


_HEADER: Final = Struct("!BI")
_ERROR: Final = ord("E")
ERROR_HEAD: Final = 1024
"""The smallest size of a long error's first frame, in bytes, so that it includes the SQLSTATE."""


class Frame(NamedTuple):
    """A message of a collected type, or bytes of streamed messages, whose kind is ``STREAMED``.

    The data of an ``INVALID`` frame says why the stream cannot be read any further.
    """

    kind: int
    data: bytes
    is_partial: bool = False
    """True if the last message continues in the next frame."""

    def __repr__(self) -> str:
        return f"<Frame {self.kind} of {len(self.data)} bytes>"

    @property
    def payload(self) -> bytes:
        """The message without its header."""
        return self.data[HEADER_LENGTH:]


class Splitter:
    """Splits a stream into whole messages of the types in ``kinds``, and parts of all others.

    ``lengths`` defines the longest message of each type. Types with length 0 are invalid. Errors
    from servers begin with a frame of their type, and may continue in parts.
    """

    def __init__(self, kinds: bytes, lengths: tuple[int, ...] = SERVER_LENGTHS) -> None:
        self._kinds: Final = frozenset(kinds)
        self._lengths: Final = lengths
        self._headed = _ERROR if lengths is SERVER_LENGTHS else None  # E of clients is Execute
        self._rest = bytearray()
        self._needed = HEADER_LENGTH
        """The length that ``_rest`` must have before it can be read."""
        self._skipped = 0
        """The number of bytes still to come of a message that was passed on in part."""
        self._is_invalid = False

    @property
    def held(self) -> int:
        """The number of bytes that are held until the rest of their message arrives."""
        return len(self._rest)

    @property
    def needed(self) -> int:
        """The length of the message that is being collected."""
        return self._needed if self._rest else 0

    def clear(self) -> None:
        """Drop an incomplete message, and ignore all later bytes."""
        self._rest = bytearray()
        self._is_invalid = True

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the next frames. Nothing follows an invalid frame."""
        if self._is_invalid:
            return
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data, self._rest = bytes(self._rest), bytearray()
        start = offset = min(self._skipped, len(data))
        if offset:  # the rest of a message that was passed on in part
            self._skipped -= offset
            yield Frame(STREAMED, data[:offset], is_partial=self._skipped > 0)
        self._needed = HEADER_LENGTH
        kinds, lengths, unpack = self._kinds, self._lengths, _HEADER.unpack_from
        while (end := offset + HEADER_LENGTH) <= len(data):
            kind, length = unpack(data, offset)
            if not HEADER_LENGTH - 1 <= length <= lengths[kind]:
                self._is_invalid = True
                break
            end = offset + 1 + length
            if kind not in kinds:
                self._skipped = max(0, end - len(data))
                offset = min(end, len(data))
            elif end <= len(data):
                if start < offset:
                    yield Frame(STREAMED, data[start:offset])
                yield Frame(kind, data[offset:end])
                start = offset = end
            elif kind == self._headed and len(data) - offset >= ERROR_HEAD:
                if start < offset:
                    yield Frame(STREAMED, data[start:offset])
                yield Frame(kind, data[offset:], is_partial=True)
                self._skipped = end - len(data)
                start = offset = len(data)
            else:
                self._needed = end - offset
                if kind == self._headed:
                    self._needed = min(self._needed, ERROR_HEAD)
                break
        if start < offset:
            yield Frame(STREAMED, data[start:offset], is_partial=self._skipped > 0)
        if self._is_invalid:
            yield Frame(INVALID, self._reason(data[offset]))
        else:
            self._rest += data[offset:]

    def _reason(self, kind: int) -> bytes:
        if self._lengths[kind]:
            return b"invalid message length"
        return b"invalid frontend message type %d" % kind
