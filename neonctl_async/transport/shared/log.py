"""The log of a shared account: the requests of all clients in order. Pure.

Each client applies the rules to the same requests, so that all of them know the same state. From
time to time, one adds a snapshot of it, because the log keeps only its newest entries.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from neonctl_async.transport.shared.messages import Reply, Request
from neonctl_async.transport.shared.rules import exchange
from neonctl_async.transport.shared.state import State, new_state

SNAPSHOT_EVERY = 50
"""The number of requests between two snapshots. A new client applies about as many."""
LOG_LENGTH = 10 * SNAPSHOT_EVERY
"""The number of entries that a log keeps."""
REQUEST, SNAPSHOT = b"request", b"snapshot"
"""The names of the fields of an entry."""

Entry: TypeAlias = tuple[bytes, Mapping[bytes, bytes]]
"""The id of an entry and its fields. The id is its time in milliseconds, ``-`` and a number."""


class UnreadableLogError(Exception):
    """The log lacks entries, or has entries that this version cannot read."""


class Snapshot(msgspec.Struct, array_like=True):
    """The state of the account after an entry."""

    entry: bytes
    number: int
    """The number of requests until then."""
    state: State


_decode_request = msgspec.msgpack.Decoder(Request).decode
_decode_snapshot = msgspec.msgpack.Decoder(Snapshot).decode
_encoder = msgspec.msgpack.Encoder()


def encode(entry: Request | Snapshot) -> bytes:
    """Return the bytes of a field of an entry."""
    return _encoder.encode(entry)


def replay(known: Snapshot | None, entries: Sequence[Entry]) -> tuple[Snapshot, Reply]:
    """Return the state after the last entry, which is a request, and the reply to that request.

    ``known`` is the state after the first entry, or None if the entries are the whole log.
    """
    try:
        start = _newest_snapshot(entries) or known or _beginning(entries)
        state, number, reply = start.state, start.number, None
        for entry, fields in entries:
            if REQUEST in fields and order(entry) > order(start.entry):
                reply = exchange(state, _decode_request(fields[REQUEST]), order(entry)[0])
                number += 1
    except (msgspec.DecodeError, KeyError, ValueError) as error:
        raise UnreadableLogError from error
    if reply is None:
        raise UnreadableLogError
    return Snapshot(entries[-1][0], number, state), reply


def order(entry: bytes) -> tuple[int, int]:
    """Return the time of an entry, and its number among the entries of that time."""
    time, _, number = entry.partition(b"-")
    return int(time), int(number)


def _newest_snapshot(entries: Sequence[Entry]) -> Snapshot | None:
    """Return the newest snapshot after which no entry is missing."""
    names = {entry for entry, _ in entries}
    snapshots = [_decode_snapshot(fields[SNAPSHOT]) for _, fields in entries if SNAPSHOT in fields]
    complete = [one for one in snapshots if one.entry in names]
    return max(complete, key=lambda one: order(one.entry), default=None)


def _beginning(entries: Sequence[Entry]) -> Snapshot:
    """Return the state before the first entry of a log that has lost no entry yet."""
    entry, fields = entries[0]
    if len(entries) >= LOG_LENGTH:
        raise UnreadableLogError
    return Snapshot(b"0-0", 0, new_state(_decode_request(fields[REQUEST]), order(entry)[0]))
