"""What a client and a server connection send each other during a transaction. Pure: no I/O.

``phases`` defines the effect of each message. Different clients can choose the same name for their
prepared statements, so each statement has a unique name on servers. A statement that a server does
not have yet is prepared there before it is used.
"""

import re
import secrets
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from itertools import count
from typing import Final, NamedTuple, TypeVar

from neonctl_local.postgres.proxy.errors import ProtocolError
from neonctl_local.postgres.proxy.messages import HEADER_LENGTH, Message, error_fields
from neonctl_local.postgres.proxy.pooler.frames import Frame
from neonctl_local.postgres.proxy.pooler.phases import (
    FROM_CLIENT,
    FROM_SERVER,
    INVALID,
    OURS,
    Effect,
    Phase,
)

T = TypeVar("T")

MAX_STATEMENTS: Final = 1000
"""The largest number of prepared statements per server connection, as on Neon."""

_PARSE, _BIND, _DESCRIBE, _CLOSE, _EXECUTE = b"PBDCE"
_QUERY, _CALL = b"QF"
_COMPLETE, _ERROR, _SETTING, _READY = b"CESZ"
_IDLE: Final = b"I"
_FLUSH: Final = Message(b"H", b"").encode()

RESET: Final = Message(
    b"Q",
    b"CLOSE ALL; RESET SESSION AUTHORIZATION; RESET ALL; UNLISTEN *;"
    b" SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES\0",
).encode()
"""DISCARD ALL, except that named prepared statements stay. Any query drops the unnamed one."""
RESET_STATEMENTS: Final = Message(b"Q", b"DISCARD ALL\0").encode()

_PLAIN: Final = re.compile(
    rb"\s*+(?:SELECT|INSERT|UPDATE|DELETE|VALUES|WITH)[^;]*+;?+\s*+", re.IGNORECASE
)
"""A single statement that leaves no transaction open and copies no data from the client.

A semicolon before the end, even in a string or a comment, prevents a match. No other Postgres
command starts with these letters.
"""

_PREPARING: Final = frozenset({b"PREPARE\0", b"DEALLOCATE\0", b"DO\0", b"CALL\0"})
"""The tags of commands that may prepare or deallocate statements.

Functions that other commands call may do so too; this is not detected.
"""
_COMPLETE_REQUESTS: Final = (Phase.SIMPLE, Phase.SYNCING)
_SHUTDOWNS: Final = frozenset({"57P01", "57P02", "57P03"})
"""The SQLSTATEs of servers that shut down, have crashed, or are starting."""

_PREFIX: Final = b"PGBOUNCER_%b_" % secrets.token_hex(8).encode()
"""The prefix of statement names. Clients cannot guess it, so their SQL cannot use such names."""
_names = count(1)


class Statement(NamedTuple):
    """A prepared statement: its name on servers, and the rest of the Parse message."""

    name: bytes
    source: bytes
    is_plain: bool
    """True if it leaves no transaction open, and copies nothing."""


_ENTRY: Final = 500
"""The approximate memory that a statement needs in addition to its strings, in bytes."""


class Statements(MutableMapping[bytes, Statement]):
    """The prepared statements of a client, by the client's names for them. ``size`` is in bytes."""

    def __init__(self) -> None:
        self.size: int = 0
        self._found: dict[bytes, Statement] = {}

    def __getitem__(self, name: bytes) -> Statement:
        return self._found[name]

    def __setitem__(self, name: bytes, statement: Statement) -> None:
        self.pop(name, None)
        self._found[name] = statement
        self.size += _ENTRY + len(name) + len(statement.source)

    def __delitem__(self, name: bytes) -> None:
        statement = self._found.pop(name)
        self.size -= _ENTRY + len(name) + len(statement.source)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class ClientState:
    """The state that follows a client from one server connection to the next."""

    def __init__(self, settings: dict[bytes, bytes]) -> None:
        self.settings: Final = settings
        self.statements: Final = Statements()


class _Reply(NamedTuple):
    """The expected response to a message of the extended protocol."""

    kinds: bytes
    """The message types that the response may have."""
    hidden: bool = False
    """True if the pooler added the message, so the client must not receive the response."""
    undo: tuple[Callable[[], None], ...] = ()
    """Functions to call, in reverse order, if the server skips the message."""
    prepared: bytes = b""
    """The client's name of the statement that the message prepares."""


_REPLIES: Final = {
    _PARSE: _Reply(b"1"),
    _BIND: _Reply(b"2"),
    _DESCRIBE: _Reply(b"Tn"),
    _CLOSE: _Reply(b"3"),
    _EXECUTE: _Reply(b"CsI"),
}


class ServerState:
    """A server connection, and its exchange with the client that it serves."""

    def __init__(self, settings: dict[bytes, bytes]) -> None:
        self.settings: Final = settings
        self._defaults: Final = dict(settings)
        self.client: ClientState | None = None
        self.phase: Phase = Phase.IDLE
        self.failed: bool = False
        """True if the server refused one of the pooler's queries."""
        self.fatal: str | None = None
        """The SQLSTATE of the error with which the server ended the session."""
        self._in_transaction = False
        self._is_partial = False
        """True while the server has received only a part of a message."""
        self._statements: dict[bytes, bool] = {}  # the statement that was used last comes last
        self._replies: deque[_Reply] = deque()
        self._has_sql_statements = False
        self._is_plain = False
        """True while the request, as received so far, is certain to leave no transaction open."""
        self._has_plain_unnamed = False
        """True if the request has prepared an unnamed statement that matches ``_PLAIN``."""
        self._resetting = 0
        """The number of queries of a reset that the server has received but not executed yet.

        The server may still have to execute the client's request before them.
        """
        self._discards = False
        """True if the reset removes all prepared statements."""

    @property
    def is_done(self) -> bool:
        """True if the server has responded to everything, and has no open transaction."""
        return self.phase is Phase.READY and not (self._in_transaction or self._is_partial)

    @property
    def needs_reset(self) -> bool:
        """True if the transaction is over, or a statement may have survived the last reset."""
        if self.phase is Phase.IDLE:
            return self._has_sql_statements and not self.failed
        return self.is_done

    @property
    def is_shut_down(self) -> bool:
        """True if the server may have ended because its compute was shut down.

        False if it ended because of its client, for example after a protocol violation.
        """
        return self.fatal is None or self.fatal in _SHUTDOWNS

    @property
    def is_ours(self) -> bool:
        """True while the server executes one of the pooler's queries."""
        return self.phase in OURS

    def begin(self, client: ClientState) -> bytes:
        """Start a client's transaction, and return the query that applies the client's settings.

        The query is empty if the server has these settings. Otherwise, the server has to execute it
        before the client's messages are sent.
        """
        self.client = client
        changed: dict[bytes, bytes] = {}
        if client.settings != self.settings:
            changed = {
                name: value
                for name, value in client.settings.items()
                if self.settings.get(name) != value
            }
        if not changed:
            self.phase = Phase.READY
            self._is_plain, self._has_plain_unnamed = True, False
            return b""
        self.phase = Phase.SETTINGS
        return _set(changed)

    def reset(self) -> bytes:
        """Return queries that remove all of the session's state.

        The settings that follow clients stay, because the next client often has the same settings.
        """
        self.phase = Phase.RESETTING
        return self._reset()

    def reset_early(self) -> bytes:
        """Return the queries of :meth:`reset`, to be sent directly after the client's request.

        Return nothing if the request is incomplete or might leave a transaction open.
        """
        if self._resetting or not self._is_plain or self.phase not in _COMPLETE_REQUESTS:
            return b""
        return self._reset()

    def _reset(self) -> bytes:
        self._resetting = 1
        self._discards = self._has_sql_statements or not self._statements
        query = RESET_STATEMENTS if self._discards else RESET
        if self.settings != self._defaults:
            self._resetting = 2
            query += _set(dict(self.settings.items() - self._defaults.items()))
        return query

    def close(self) -> None:
        """Forget how to undo the client's messages, because the session has ended."""
        self._replies.clear()

    def offer(self, frame: Frame) -> tuple[Effect, bytes]:
        """Return the effect of the client's next frame, and the bytes for the server.

        Raise ProtocolError if the statement is unknown, or if the client has to be refused.
        """
        if self._is_partial:
            self._is_partial = frame.is_partial
            return Effect.SEND, frame.data
        effect, following = FROM_CLIENT[self.phase][frame.kind]
        if effect is Effect.SEND:
            if frame.kind in (_QUERY, _CALL):
                self._is_plain = self._is_plain and self._is_plain_query(frame)
            reply = _REPLIES.get(frame.kind)
            try:
                data = frame.data if reply is None else self._send_extended(frame, reply)
            except ProtocolError:
                if not self._replies:
                    raise
                effect, following = Effect.SETTLE, Phase.SETTLING  # the server may skip the frame
            else:
                self._is_partial = frame.is_partial
                self.phase = following
                return effect, data
        if effect is Effect.SETTLE:
            self.phase = following
            return Effect.HOLD, _FLUSH
        if effect is Effect.REFUSE:
            raise refusal(frame)
        return effect, b""

    def receive(self, frame: Frame) -> bytes:
        """Record a frame from the server, and return the bytes for the client.

        Raise ProtocolError for a message that the server cannot send now.
        """
        kind, phase = frame.kind, self.phase
        if (following := FROM_SERVER[phase].get(kind)) is None:
            raise ProtocolError(f"unexpected message type 0x{kind:02X} from the server")
        self.phase = following
        hidden = phase in OURS
        if kind == _READY:
            self._receive_ready(frame.payload, phase)
        elif kind == _SETTING:
            self._receive_setting(frame, ours=hidden)
        elif kind == _ERROR:
            self._receive_error(frame, ours=hidden)
        elif not hidden:
            if kind == _COMPLETE:
                self._receive_complete(frame.payload)
            if self._replies and kind in self._replies[0].kinds:
                hidden = self._receive_reply()
            elif following in (Phase.EXTENDED, Phase.SETTLING, Phase.SYNCING) and kind:
                raise ProtocolError(f"unexpected message type 0x{kind:02X} from the server")
        return b"" if hidden or self.client is None else frame.data

    def _is_plain_query(self, frame: Frame) -> bool:
        """Return whether a frame is a query that matches ``_PLAIN``, and starts its request."""
        if self.phase is not Phase.READY or frame.kind != _QUERY:
            return False
        return _PLAIN.fullmatch(frame.data, HEADER_LENGTH, len(frame.data) - 1) is not None

    def _send_extended(self, frame: Frame, reply: _Reply) -> bytes:
        """Replace the name of a statement. Prepare the statement first if needed."""
        if frame.kind == _PARSE:
            name, end, source = frame.payload.partition(b"\0")
            is_plain = _PLAIN.fullmatch(source.partition(b"\0")[0]) is not None
            if name and end:
                return self._send_parse(name, source, is_plain=is_plain)
            self._has_plain_unnamed = is_plain
        elif frame.kind != _EXECUTE:
            head, name, rest = _split(frame)
            if name:
                return self._send_named(frame.kind, head, name, rest)
            if frame.kind == _BIND:
                self._is_plain = self._is_plain and self._has_plain_unnamed
        self._replies.append(reply)
        return frame.data

    def _send_parse(self, name: bytes, source: bytes, *, is_plain: bool) -> bytes:
        assert self.client is not None
        if name in self.client.statements:
            raise ProtocolError("prepared statement name is already in use")
        statement = Statement(b"%b%d" % (_PREFIX, next(_names)), source, is_plain)
        registered = _change(self.client.statements, name, statement)
        return self._prepare(statement, _Reply(b"1", undo=(registered,), prepared=name))

    def _send_named(self, kind: int, head: bytes, name: bytes, rest: bytes) -> bytes:
        """Return a Bind, Describe or Close, preceded by the messages that it needs.

        The server also confirms a Close of a statement that it does not have.
        """
        assert self.client is not None
        statement = self.client.statements.get(name)
        prefix, reply = b"", _REPLIES[kind]
        if kind == _CLOSE:
            on_server = statement.name if statement else name
            undo = (
                _change(self.client.statements, name, None),
                _change(self._statements, on_server, None),
            )
            reply = reply._replace(undo=undo)
        elif statement is None:
            raise ProtocolError("prepared statement did not exist")
        else:
            prefix, on_server = self._ensure(statement), statement.name
            if kind == _BIND:
                self._is_plain = self._is_plain and statement.is_plain
        self._replies.append(reply)
        return prefix + Message(bytes((kind,)), head + on_server + b"\0" + rest).encode()

    def _ensure(self, statement: Statement) -> bytes:
        if self._statements.pop(statement.name, None) is None:
            return self._prepare(statement, _Reply(b"1", hidden=True))
        self._statements[statement.name] = True  # it is now the last statement
        return b""

    def _prepare(self, statement: Statement, reply: _Reply) -> bytes:
        prepared = _change(self._statements, statement.name, value=True)
        self._replies.append(reply._replace(undo=(*reply.undo, prepared)))
        data = Message(b"P", statement.name + b"\0" + statement.source).encode()
        if len(self._statements) > MAX_STATEMENTS:
            oldest = next(iter(self._statements))
            closed = _change(self._statements, oldest, None)
            self._replies.append(_Reply(b"3", hidden=True, undo=(closed,)))
            data += Message(b"C", b"S" + oldest + b"\0").encode()
        return data

    def _receive_reply(self) -> bool:
        """Record a reply. Return whether it has to be hidden from the client."""
        hidden = self._replies.popleft().hidden
        if not self._replies and self.phase in (Phase.EXTENDED, Phase.SETTLING):
            self.phase = Phase.SETTLED
        return hidden

    def _receive_ready(self, status: bytes, before: Phase) -> None:
        if self._replies:
            raise ProtocolError("the server skipped messages without an error")
        self._in_transaction = status != _IDLE
        self._is_plain, self._has_plain_unnamed = not self._in_transaction, False
        if before is Phase.RESETTING:
            self._resetting -= 1
            if self._discards:
                self._has_sql_statements = False
                self._statements.clear()
            if self._resetting:
                self.phase = before
        elif self._resetting:
            if self._in_transaction:
                raise ProtocolError("a transaction is open in front of a reset")
            self.phase = Phase.RESETTING
        if before is Phase.SETTINGS and self.client is not None:
            known = self.client.settings.keys() & self.settings.keys()
            self.client.settings.update({name: self.settings[name] for name in known})

    def _receive_setting(self, frame: Frame, *, ours: bool) -> None:
        name, value, _ = frame.payload.split(b"\0")
        if name in self.settings:
            self.settings[name] = value
            if self.client is not None and not ours:
                self.client.settings[name] = value

    def _receive_error(self, frame: Frame, *, ours: bool) -> None:
        """Record an error, after which the server skips all messages that it has not executed."""
        self.failed = self.failed or ours
        self._has_sql_statements = True  # statements that a failed DO prepared stay
        while self._replies:
            for undo in reversed(self._replies.pop().undo):
                undo()
        fields = error_fields(frame.payload)
        if fields.get("V") in ("FATAL", "PANIC"):
            self.fatal = fields.get("C")

    def _receive_complete(self, tag: bytes) -> None:
        if tag in _PREPARING:
            self._has_sql_statements = True
        elif tag in (b"DEALLOCATE ALL\0", b"DISCARD ALL\0") and self.client is not None:
            statements = self.client.statements
            later = {  # prepared behind the command, in the same request
                reply.prepared: statements[reply.prepared]
                for reply in self._replies
                if reply.prepared in statements
            }
            statements.clear()
            statements.update(later)
            self._statements.clear()
            self._statements.update({statement.name: True for statement in later.values()})


def refusal(frame: Frame) -> ProtocolError:
    """Return the error for a frame that ends its client's connection."""
    if frame.kind == INVALID:
        return ProtocolError(frame.data.decode())
    return ProtocolError(f"unexpected message type 0x{frame.kind:02X} during COPY from stdin")


def _split(frame: Frame) -> tuple[bytes, bytes, bytes]:
    """Split the payload of a Bind, Describe or Close at the name of its statement.

    The name is empty if the message names a portal. It is also empty if the payload is malformed:
    the server then replies with an error.
    """
    head, name, rest = b"", b"", frame.payload
    if frame.kind == _BIND:
        portal, _, rest = rest.partition(b"\0")
        head = portal + b"\0"
    elif rest[:1] == b"S":
        head, rest = rest[:1], rest[1:]
    else:
        return head, name, rest
    name, end, rest = rest.partition(b"\0")
    return head, name if end else b"", rest


def _change(mapping: MutableMapping[bytes, T], key: bytes, value: T | None) -> Callable[[], None]:
    """Set an entry, or remove it if the value is None. Return a function that undoes this."""
    before = mapping.get(key)
    mapping.pop(key, None)
    if value is not None:
        mapping[key] = value

    def restore() -> None:
        mapping.pop(key, None)
        if before is not None:
            mapping[key] = before

    return restore


def _set(settings: dict[bytes, bytes]) -> bytes:
    """Return a query that sets these settings."""
    sets = [b"SET %b = %b" % (name, _quote(value)) for name, value in settings.items()]
    return Message(b"Q", b"; ".join(sets) + b"\0").encode()


def _quote(value: bytes) -> bytes:
    return b"E'" + value.replace(b"\\", b"\\\\").replace(b"'", b"''") + b"'"
