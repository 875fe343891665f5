"""Conversations of clients for the tests of the pooler: any messages, and well-behaved ones.

Whoever draws them passes ``random``: hypothesis does, and so does the campaign of ``tools.pooler``.
"""

from itertools import product
from random import Random
from typing import Final

from control_plane.tests.postgres.proxy.model import COPY_IN, COPY_OUT, message
from neonctl_local.postgres.proxy.messages import error_fields

NAMES = ("", "a", "b")
STATEMENTS = (
    "",
    "SELECT 'one'",
    "SELECT 1/0",
    "DROP TABLE absent",
    "NOPE",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    COPY_IN,
    COPY_OUT,
)


def text(*parts: str) -> bytes:
    return b"".join(part.encode() + b"\0" for part in parts)


def query(statement: str) -> bytes:
    return message(b"Q", text(statement))


def parse(name: str, statement: str) -> bytes:
    return message(b"P", text(name, statement) + b"\0\0")


def bind(name: str) -> bytes:
    return message(b"B", text("", name) + bytes(6))


def describe(kind: str, name: str) -> bytes:
    return message(b"D", text(kind + name))


def close(kind: str, name: str) -> bytes:
    return message(b"C", text(kind + name))


EXECUTE = message(b"E", b"\0\0\0\0\0")
SYNC = message(b"S")
FLUSH = message(b"H")
TERMINATE = message(b"X")
CALL = message(b"F", (1610).to_bytes(4) + bytes(4) + b"\0\1")
"""A call of ``pi()`` with a binary result."""
DONE = message(b"c")
FAIL = message(b"f", b"no\0")


def data(*lines: str) -> bytes:
    return message(b"d", "".join(f"{line}\n" for line in lines).encode())


PORTAL: Final = tuple(
    parse("", statement) + bind("") + describe("P", "") + EXECUTE for statement in STATEMENTS
)
FRAMES: Final = (
    *(query(statement) for statement in STATEMENTS),
    query("SELECT 'one'; SELECT 'two'"),
    CALL,
    *(parse(name, statement) for name, statement in product(NAMES, STATEMENTS)),
    *(bind(name) for name in NAMES),
    *(describe("S", name) for name in NAMES),
    *(close("S", name) for name in NAMES),
    *(describe("P", ""), close("P", "")),
    *PORTAL,
    *4 * (EXECUTE, SYNC, FLUSH),
    *2 * (data("1"), data("1", "2", "3"), data("x"), DONE, FAIL),
)
"""Messages of all types. The common ones are likely, and whole portals."""


def split(frames: bytes) -> list[bytes]:
    """Return the messages of a stream."""
    messages: list[bytes] = []
    while frames:
        end = 1 + int.from_bytes(frames[1:5])
        messages.append(frames[:end])
        frames = frames[end:]
    return messages


_ALONE: Final = tuple(one for one in STATEMENTS if one not in ("BEGIN", COPY_IN))
_QUERIES: Final = (*(query(one) for one in _ALONE), query("SELECT 'one'; SELECT 'two'"))
_LINES: Final = (data("1"), data("1", "2"), data("x"))


def _some(random: Random, choices: tuple[bytes, ...], most: int = 3) -> bytes:
    return b"".join(random.choice(choices) for _ in range(random.randint(0, most)))


def draw_turn(random: Random, *, names: bool = True) -> bytes:
    """Return what a well-behaved client sends. It needs no state of the session between turns.

    Without ``names``, it prepares only the unnamed statement.
    """
    copied = _some(random, _LINES) + random.choice((DONE, FAIL))
    portals = [parse("", one) + bind("") + describe("P", "") + EXECUTE for one in _ALONE]
    named = bind("a") + EXECUTE + SYNC
    turns = [
        random.choice(_QUERIES),
        CALL,
        query("BEGIN") + _some(random, _QUERIES) + query(random.choice(("COMMIT", "ROLLBACK"))),
        query(COPY_IN) + copied,
        parse("", COPY_IN) + bind("") + EXECUTE + SYNC + copied + SYNC,
        _some(random, tuple(portals)) + SYNC,
        (parse("a", "SELECT 'one'") + SYNC + describe("S", "a") + FLUSH)
        + (named * random.randint(1, 3) + close("S", "a") + SYNC),
    ]
    return random.choice(turns if names else turns[:-1])


def summary(received: bytes) -> list[tuple[str, str]]:
    """Return the types of messages, and of their contents what clients act on."""
    lines: list[tuple[str, str]] = []
    for one in split(received):
        kind, payload = one[:1], one[5:]
        detail = ""
        if kind in b"EN":
            fields = error_fields(payload)
            detail = f"{fields.get('V', fields['S'])} {fields['C']}"
        elif kind in b"CZ":
            detail = payload.hex()
        lines.append((kind.decode(), detail))
    return lines
