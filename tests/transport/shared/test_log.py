"""The log of a shared account."""

import msgspec
import pytest
from hypothesis import given

from neonctl_async.transport.shared.log import (
    LOG_LENGTH,
    REQUEST,
    SNAPSHOT,
    Entry,
    Snapshot,
    UnreadableLogError,
    encode,
    replay,
)
from neonctl_async.transport.shared.messages import Reply, Request
from neonctl_async.transport.shared.rules import exchange
from neonctl_async.transport.shared.state import State, new_state
from tests.transport.shared.histories import DELAYS, Step, World, histories
from tests.transport.shared.requests import request_of


class ComparedLogs:
    """Clients that share a short log, compared with the rules on one state."""

    def __init__(self) -> None:
        self._state: State | None = None
        self._log: list[Entry] = []
        self._known: list[Snapshot | None] = [None, None, None]
        self._exchanges = 0

    def exchange(self, request: Request, now: int) -> Reply:
        self._exchanges += 1
        reader = self._exchanges * 7 % 4 % 3  # some clients come back late
        known = self._known[reader]
        if known is not None and self._exchanges % 4 == 0:
            self._add(now, SNAPSHOT, known)
        self._add(now, REQUEST, request)
        del self._log[:-20]
        entries = self._log
        if known is not None and known.entry in (names := [entry for entry, _ in entries]):
            entries = entries[names.index(known.entry) :]
        else:
            known = None
        self._state = self._state or new_state(request, now)
        expected = exchange(self._state, request, now)
        self._known[reader], reply = replay(known, entries)
        assert reply == expected
        assert self._known[reader] == Snapshot(entries[-1][0], self._exchanges, self._state)
        return reply

    def _add(self, now: int, field: bytes, content: Request | Snapshot) -> None:
        previous = self._log[-1][0].partition(b"-") if self._log else (b"", b"", b"0")
        entry = b"%d-%d" % (now, int(previous[2]) + 1)
        self._log.append((entry, {field: encode(content)}))


@given(histories(steps=40, delays=DELAYS))
def test_all_clients_know_the_same_state_and_their_replies(history: list[Step]) -> None:
    World(ComparedLogs().exchange).run(history)


def entries_of(*fields: tuple[bytes, bytes]) -> list[Entry]:
    return [(b"%d-0" % number, {field[0]: field[1]}) for number, field in enumerate(fields, 1)]


ENTRY = (REQUEST, encode(request_of("a")))


@pytest.mark.parametrize("field", [REQUEST, SNAPSHOT])
def test_entry_that_cannot_be_decoded_is_an_error(field: bytes) -> None:
    with pytest.raises(UnreadableLogError):
        replay(None, entries_of(ENTRY, (field, b"\xc1"), ENTRY))


def test_log_that_may_lack_entries_is_an_error() -> None:
    replay(None, entries_of(*[ENTRY] * (LOG_LENGTH - 1)))
    with pytest.raises(UnreadableLogError):
        replay(None, entries_of(*[ENTRY] * LOG_LENGTH))


def test_snapshot_of_an_entry_that_is_missing_is_not_used() -> None:
    state = new_state(request_of("other"), 0)
    snapshot = (SNAPSHOT, msgspec.msgpack.encode(Snapshot(b"0-7", 70, state)))
    known, reply = replay(None, entries_of(ENTRY, snapshot, ENTRY))
    assert known.number == 2
    assert reply.generation == "a@1"
