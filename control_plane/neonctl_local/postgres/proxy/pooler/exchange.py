"""What a client and a server connection say to each other during a transaction. Pure.

Clients choose names of prepared statements without knowing each other, so each statement has
another name on servers. A server that does not have a statement of the client prepares it first.
"""

from collections import deque
from enum import Enum, auto
from itertools import count
from typing import Final, NamedTuple

from neonctl_local.postgres.proxy.errors import ProtocolError
from neonctl_local.postgres.proxy.messages import Message
from neonctl_local.postgres.proxy.pooler.frames import Frame

CLIENT_KINDS: Final = b"PBDCQFSHXcf"
"""The messages of clients that are read: all that a transaction starts with or waits for."""
SERVER_KINDS: Final = b"13CEGSZ"

MAX_STATEMENTS: Final = 1000
"""The number of prepared statements of one server: Neon's ``max_prepared_statements``."""

_CLOSE_COMPLETE, _PARSE_COMPLETE = b"31"
_COMPLETE, _ERROR, _COPY_IN, _SETTING, _READY = b"CEGSZ"
_PARSE, _BIND, _DESCRIBE, _CLOSE, _QUERY, _CALL, _SYNC = b"PBDCQFS"
TERMINATE: Final = ord("X")
_COPY_ENDS: Final = b"cf"
_IDLE: Final = b"I"

RESET: Final = Message(
    b"Q",
    b"CLOSE ALL; RESET SESSION AUTHORIZATION; RESET ALL; UNLISTEN *;"
    b" SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES\0",
).encode()
"""DISCARD ALL without the deallocation of prepared statements. A query drops the unnamed one."""
RESET_STATEMENTS: Final = Message(b"Q", b"DISCARD ALL\0").encode()

_names = count(1)


class Statement(NamedTuple):
    """A prepared statement: its name on servers, and the rest of the Parse message."""

    name: bytes
    source: bytes


class ClientState:
    """What follows a client from one server connection to the next."""

    def __init__(self, settings: dict[bytes, bytes]) -> None:
        self.settings: Final = settings
        self.statements: Final[dict[bytes, Statement]] = {}


class _Purpose(Enum):
    CLIENT = auto()
    SETTINGS = auto()
    RESET = auto()


class _Reply(NamedTuple):
    """An expected ParseComplete or CloseComplete. The client does not know of a hidden one."""

    hidden: bool
    prepared: bytes | None = None
    """The name on the server, for a ParseComplete."""
    name: bytes | None = None
    """The client's name of a statement that it prepares."""


class _Request:
    """Messages to a server that it answers with one ReadyForQuery."""

    def __init__(self, purpose: _Purpose = _Purpose.CLIENT) -> None:
        self.purpose: Final = purpose
        self.replies: Final[deque[_Reply]] = deque()
        self.is_simple = True


class ServerState:
    """A server connection, and the exchange with the client that has it."""

    def __init__(self, settings: dict[bytes, bytes]) -> None:
        self.settings: Final = settings
        self.client: ClientState | None = None
        self.failed: bool = False
        """True if the server refused a query of the pooler."""
        self._statements: dict[bytes, None] = {}  # the one that was used last comes last
        self._requests: deque[_Request] = deque()
        self._open: _Request | None = None
        """The last request, if the server does not execute it before more messages."""
        self._in_transaction = False
        self._copying = False
        self._has_sql_statements = False

    @property
    def is_ready(self) -> bool:
        """True if the server has answered everything, and has no open transaction."""
        return not self._requests and not self._in_transaction

    @property
    def is_ours(self) -> bool:
        """True while the server executes a query of the pooler."""
        return bool(self._requests) and self._requests[0].purpose != _Purpose.CLIENT

    def begin(self, client: ClientState) -> bytes:
        """Start a transaction of a client. Return the query for its settings, which may be empty.

        The server has to answer it first.
        """
        self.client = client
        changed = {
            name: value
            for name, value in client.settings.items()
            if self.settings.get(name, b"").lower() != value.lower()
        }
        if not changed:
            return b""
        self._requests.append(_Request(_Purpose.SETTINGS))
        sets = [b"SET %b = %b" % (name, _quote(value)) for name, value in changed.items()]
        return Message(b"Q", b"; ".join(sets) + b"\0").encode()

    def reset(self) -> bytes:
        """Return the query that removes all state of the session."""
        self._requests.append(_Request(_Purpose.RESET))
        if not self._has_sql_statements:
            return RESET
        self._has_sql_statements = False
        self._statements.clear()
        return RESET_STATEMENTS

    def send(self, frame: Frame) -> bytes:
        """Return the bytes for the server. Raise ProtocolError for an unknown statement."""
        kind = frame.kind
        if kind == _PARSE:
            return self._send_parse(frame)
        if kind in (_BIND, _DESCRIBE, _CLOSE):
            return self._send_named(frame)
        if kind in (_QUERY, _CALL) or (kind == _SYNC and not self._copying):
            self._last().is_simple = kind != _SYNC
            self._open = None
        elif kind in _COPY_ENDS:
            self._copying = False
        return frame.data

    def receive(self, frame: Frame) -> bytes:
        """Return the bytes for the client."""
        kind = frame.kind
        request = self._requests[0] if self._requests else None
        ours = self.is_ours
        if kind == _READY:
            return self._receive_ready(frame)
        if kind in (_PARSE_COMPLETE, _CLOSE_COMPLETE) and request is not None and request.replies:
            ours = request.replies.popleft().hidden or ours
        elif kind == _SETTING:
            self._receive_setting(frame, ours=ours)
        elif kind == _ERROR:
            self.failed = self.failed or ours
            self._copying = False
        elif kind == _COMPLETE and not ours:
            self._receive_complete(frame.payload)
        elif kind == _COPY_IN and request is not None:
            self._start_copy(request)
        return b"" if ours or self.client is None else frame.data

    def _last(self) -> _Request:
        """Return the request that the next message belongs to."""
        if self._open is None:
            self._open = _Request()
            self._requests.append(self._open)
        return self._open

    def _send_parse(self, frame: Frame) -> bytes:
        name, _, source = frame.payload.partition(b"\0")
        if not name:
            self._last().replies.append(_Reply(hidden=False))
            return frame.data
        assert self.client is not None
        if name in self.client.statements:
            raise ProtocolError("prepared statement name is already in use")
        statement = Statement(b"PGBOUNCER_%d" % next(_names), source)
        self.client.statements[name] = statement
        return self._prepare(statement, _Reply(hidden=False, prepared=statement.name, name=name))

    def _send_named(self, frame: Frame) -> bytes:
        """Replace the name of a statement in Bind, Describe or Close. Prepare it before if needed.

        The server confirms to close statements that it does not have.
        """
        first, *rest = frame.payload.split(b"\0", 2 if frame.kind == _BIND else 1)
        head, name = (first + b"\0", rest[0]) if frame.kind == _BIND else (first[:1], first[1:])
        prefix, last = b"", self._last()
        if name and head != b"P":
            assert self.client is not None
            if frame.kind == _CLOSE:
                closed = self.client.statements.pop(name, None)
                name = closed.name if closed else name
                self._statements.pop(name, None)
            else:
                statement = self.client.statements.get(name)
                if statement is None:
                    raise ProtocolError("prepared statement did not exist")
                prefix, name = self._ensure(statement), statement.name
        if frame.kind == _CLOSE:
            last.replies.append(_Reply(hidden=False))
        payload = head + name + b"\0" + rest[-1]
        return prefix + Message(frame.data[:1], payload).encode()

    def _ensure(self, statement: Statement) -> bytes:
        if statement.name not in self._statements:
            return self._prepare(statement, _Reply(hidden=True, prepared=statement.name))
        del self._statements[statement.name]
        self._statements[statement.name] = None
        return b""

    def _prepare(self, statement: Statement, reply: _Reply) -> bytes:
        replies = self._last().replies
        replies.append(reply)
        data = Message(b"P", statement.name + b"\0" + statement.source).encode()
        self._statements[statement.name] = None
        if len(self._statements) > MAX_STATEMENTS:
            oldest = next(iter(self._statements))
            del self._statements[oldest]
            replies.append(_Reply(hidden=True))
            data += Message(b"C", b"S" + oldest + b"\0").encode()
        return data

    def _receive_ready(self, frame: Frame) -> bytes:
        request = self._requests.popleft()
        if request is self._open:
            self._open = None
        for reply in request.replies:  # the server has skipped them after an error
            if reply.prepared is not None:
                self._statements.pop(reply.prepared, None)
            if reply.name is not None and self.client is not None:
                self.client.statements.pop(reply.name, None)
        if request.purpose == _Purpose.CLIENT:
            self._in_transaction = frame.payload != _IDLE
            return frame.data
        if request.purpose == _Purpose.SETTINGS and self.client is not None:
            known = self.client.settings.keys() & self.settings.keys()
            self.client.settings.update({name: self.settings[name] for name in known})
        return b""

    def _receive_setting(self, frame: Frame, *, ours: bool) -> None:
        name, value, _ = frame.payload.split(b"\0")
        if name in self.settings:
            self.settings[name] = value
            if self.client is not None and not ours:
                self.client.settings[name] = value

    def _receive_complete(self, tag: bytes) -> None:
        if tag == b"PREPARE\0":
            self._has_sql_statements = True
        elif tag in (b"DEALLOCATE ALL\0", b"DISCARD ALL\0") and self.client is not None:
            self._statements.clear()
            self.client.statements.clear()

    def _start_copy(self, request: _Request) -> None:
        """Ignore Sync until the end of the copied data, as the server does."""
        self._copying = True
        if not request.is_simple:  # the client has sent Sync already
            self._open = request


def _quote(value: bytes) -> bytes:
    return b"E'" + value.replace(b"\\", b"\\\\").replace(b"'", b"''") + b"'"
