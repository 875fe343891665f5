"""A model of a Postgres session after its login, as far as the pooler can tell. Pure.

It knows the few statements of the tests. ``test_model`` compares it with Postgres.
"""

import re
from collections.abc import Generator
from typing import Final, NamedTuple, TypeAlias

from neonctl_local.postgres.proxy.messages import Message

COPY_IN: Final = "COPY copied FROM STDIN"
COPY_OUT: Final = "COPY (SELECT 'out') TO STDOUT"
TABLE: Final = "CREATE TABLE copied (number int)"

_LITERAL: Final = re.compile(r"SELECT '(\w*)'")
_TAGS: Final = {
    "CLOSE ALL": "CLOSE CURSOR ALL",
    "RESET SESSION AUTHORIZATION": "RESET",
    "RESET ALL": "RESET",
    "UNLISTEN *": "UNLISTEN",
    "DISCARD TEMP": "DISCARD TEMP",
    "DISCARD SEQUENCES": "DISCARD SEQUENCES",
    "DISCARD ALL": "DISCARD ALL",
    "DEALLOCATE ALL": "DEALLOCATE ALL",
}
_EXITS: Final = ("COMMIT", "ROLLBACK")
_READY: Final = b"Z\0\0\0\5"
_UNLOCK: Final = "SELECT pg_catalog.pg_advisory_unlock_all()"


def message(kind: bytes, payload: bytes = b"") -> bytes:
    return Message(kind, payload).encode()


Run: TypeAlias = Generator[bytes | None, tuple[bytes, bytes] | None]
"""What a message leads to. It yields None to receive a message of a copy."""


class _ServerError(Exception):
    """An error of the server, by its SQLSTATE."""


class _Portal(NamedTuple):
    statement: str
    is_done: list[bool]


def rows_of(statement: str) -> list[str] | None:
    """Return the rows of a query, None for other statements."""
    if statement in (_UNLOCK, "SELECT 1/0"):
        return [""]
    match = _LITERAL.fullmatch(statement)
    return [match[1]] if match else None


class Model:
    """A session. ``feed`` returns what the server sends."""

    def __init__(self) -> None:
        self.ended: bool = False
        self.in_block = self.has_failed = self.is_skipping = False
        self.statements: dict[str, str] = {}
        self.is_pipelining: bool = False
        """True after an Execute without Sync. Postgres 18 treats a query then in another way."""
        self._is_idle = True
        self._portals: dict[str, _Portal] = {}
        self._received = self._unsent = b""
        self._copy: tuple[Run, bool] | None = None

    @property
    def is_copying(self) -> bool:
        return self._copy is not None

    @property
    def is_free(self) -> bool:
        """True if the server has nothing to do, and no open transaction."""
        return self._is_idle and not self._received and not self.ended

    def feed(self, data: bytes) -> bytes:
        self._received += data
        output = b""
        while not self.ended and len(self._received) >= 5:
            end = 1 + int.from_bytes(self._received[1:5])
            if len(self._received) < end:
                break
            kind, payload = self._received[:1], self._received[5:end]
            self._received = self._received[end:]
            self._unsent += self._handle(kind, payload)
            is_ready = self._unsent[-6:-1] == _READY
            if is_ready or kind in b"QFSHcfX" or self.is_skipping or self.is_copying:
                output += self._unsent
                self._unsent = b""
        return output

    def _handle(self, kind: bytes, payload: bytes) -> bytes:
        if self._copy is not None:
            return self._handle_copy(kind, payload)
        if kind == b"X":
            self.ended = True
            return b""
        if kind == b"S":
            self.is_skipping = self.is_pipelining = False
            return self._ready()
        if self.is_skipping or kind in b"dcfH":
            return b""
        self._is_idle = False
        if kind in b"QF":
            run = self._query(payload) if kind == b"Q" else self._call()
            return self._drive(run, is_extended=False)
        if kind in b"PBDCE":
            handlers = {
                b"P": self._parse,
                b"B": self._bind,
                b"D": self._describe,
                b"C": self._close,
                b"E": self._execute,
            }
            return self._drive(handlers[kind](payload), is_extended=True)
        self.ended = True
        return _error("08P01", "FATAL")

    def _handle_copy(self, kind: bytes, payload: bytes) -> bytes:
        assert self._copy is not None
        if kind in b"SH":
            return b""
        if kind in b"dcf":
            (run, is_extended), self._copy = self._copy, None
            return self._drive(run, (kind, payload), is_extended=is_extended)
        self.ended = True
        return _error("08P01") + _error("08P01", "FATAL")

    def _drive(
        self, run: Run, received: tuple[bytes, bytes] | None = None, *, is_extended: bool
    ) -> bytes:
        """Return what a message leads to, and what follows it."""
        output = b""
        try:
            while (part := run.send(received)) is not None:
                output += part
                received = None
        except StopIteration:
            pass
        except _ServerError as error:
            self._fail()
            self.is_skipping = is_extended
            output += _error(str(error))
        else:
            self._copy = run, is_extended
            return output
        if not is_extended:
            output += self._ready()
        return output

    def _fail(self) -> None:
        self.has_failed = self.in_block
        if not self.in_block:
            self._end_transaction()
        for portal in self._portals.values():  # they stay until the end of the block
            portal.is_done[0] = True

    def _end_transaction(self) -> None:
        self._portals.clear()
        self.is_pipelining = False

    def _ready(self) -> bytes:
        self._is_idle = not self.in_block
        if not self.in_block:
            self._end_transaction()
        return message(b"Z", b"E" if self.has_failed else b"T" if self.in_block else b"I")

    def _query(self, payload: bytes) -> Run:
        self.statements.pop("", None)
        texts = [text.strip() for text in payload[:-1].decode().split(";")]
        texts = [text for text in texts if text]
        if not texts:
            yield message(b"I")
        for text in texts:
            if text == "NOPE":
                raise _ServerError("42601")
        for text in texts:
            self._check(text)
            self._plan(text)
            self._portals.pop("", None)
            if rows_of(text) is not None:
                yield message(b"T")
            yield from self._run(text)

    def _call(self) -> Run:
        if self.has_failed:
            raise _ServerError("25P02")
        yield message(b"V")

    def _check(self, text: str) -> None:
        if self.has_failed and text not in _EXITS:
            raise _ServerError("25P02")

    def _plan(self, text: str) -> None:
        if text == "SELECT 1/0":
            raise _ServerError("22012")

    def _run(self, text: str) -> Run:
        rows = rows_of(text)
        if rows is not None:
            for row in rows:
                yield message(b"D", row.encode())
            yield _complete(f"SELECT {len(rows)}")
        elif text == COPY_IN:
            yield from self._copy_in()
        elif text == COPY_OUT:
            yield message(b"H") + message(b"d", b"out\n") + message(b"c") + _complete("COPY 1")
        elif text == "BEGIN":
            if self.in_block:
                yield _notice("25001")
            self.in_block = True
            yield _complete(text)
        elif text in _EXITS:
            yield from self._exit(text)
        elif text.startswith("SET "):
            name, _, value = text[4:].partition(" = ")
            setting = value.strip("E'").encode()
            yield message(b"S", name.encode() + b"\0" + setting + b"\0") + _complete("SET")
        elif text in _TAGS:
            if text in ("DISCARD ALL", "DEALLOCATE ALL"):
                self.statements.clear()
            yield _complete(_TAGS[text])
        else:
            raise _ServerError("42P01")  # DROP TABLE absent

    def _exit(self, text: str) -> Run:
        if not self.in_block:
            yield _notice("25P01")
        tag = "ROLLBACK" if self.has_failed else text
        self.in_block = self.has_failed = False
        self._end_transaction()
        yield _complete(tag)

    def _copy_in(self) -> Run:
        yield message(b"G")
        count, kind = 0, b""
        while kind != b"c":
            received = yield None
            assert received is not None
            kind, data = received
            if kind == b"f":
                raise _ServerError("57014")
            lines = data.splitlines()
            if not all(line.isdigit() for line in lines):
                raise _ServerError("22P02")
            count += len(lines)
        yield _complete(f"COPY {count}")

    def _parse(self, payload: bytes) -> Run:
        name, text, _ = (part.decode() for part in payload.split(b"\0", 2))
        if not name:
            self.statements.pop("", None)
        if text == "NOPE" or ";" in text:
            raise _ServerError("42601")
        if text:
            self._check(text)
        if name in self.statements:
            raise _ServerError("42P05")
        self.statements[name] = text
        yield message(b"1")

    def _bind(self, payload: bytes) -> Run:
        portal, name, _ = (part.decode() for part in payload.split(b"\0", 2))
        text = self._statement(name)
        self._check(text)
        self._plan(text)
        self._portals[portal] = _Portal(text, [False])
        yield message(b"2")

    def _describe(self, payload: bytes) -> Run:
        name = payload[1:-1].decode()
        if payload[:1] == b"S":
            text = self._statement(name)
            if self.has_failed and rows_of(text) is not None:
                raise _ServerError("25P02")
            yield message(b"t")
        elif name in self._portals:
            text = self._portals[name].statement
            if self.has_failed and rows_of(text) is not None:
                raise _ServerError("25P02")
        else:
            raise _ServerError("34000")
        yield message(b"n" if rows_of(text) is None else b"T")

    def _statement(self, name: str) -> str:
        if name not in self.statements:
            raise _ServerError("26000")
        return self.statements[name]

    def _close(self, payload: bytes) -> Run:
        names = self.statements if payload[:1] == b"S" else self._portals
        names.pop(payload[1:-1].decode(), None)
        yield message(b"3")

    def _execute(self, payload: bytes) -> Run:
        portal = self._portals.get(payload.partition(b"\0")[0].decode())
        if portal is None:
            raise _ServerError("34000")
        if not portal.statement:
            yield message(b"I")
            return
        self._check(portal.statement)
        if portal.is_done[0]:
            if rows_of(portal.statement) is None:
                raise _ServerError("55000")
            self.is_pipelining = True
            yield _complete("SELECT 0")
            return
        portal.is_done[0] = True
        yield from self._run(portal.statement)
        self.is_pipelining = portal.statement not in ("BEGIN", *_EXITS)


def _complete(tag: str) -> bytes:
    return message(b"C", tag.encode() + b"\0")


def _error(code: str, severity: str = "ERROR") -> bytes:
    return message(b"E", f"S{severity}\0V{severity}\0C{code}\0Mmodel\0\0".encode())


def _notice(code: str) -> bytes:
    return message(b"N", f"SWARNING\0VWARNING\0C{code}\0Mmodel\0\0".encode())
