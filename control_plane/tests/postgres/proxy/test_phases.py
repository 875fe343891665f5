"""The tables of the pooler, and what a server connection does with any messages, without sockets.

The pooler may not change what a client receives. So a client that has a server gets what a session
of its own would send, whatever it sends, and however late the server's messages arrive.
"""

from collections import Counter
from collections.abc import Iterator

from hypothesis import example, given, settings
from hypothesis import strategies as st

from control_plane.tests.postgres.proxy.conversations import (
    EXECUTE,
    FLUSH,
    FRAMES,
    SYNC,
    bind,
    data,
    parse,
    query,
    split,
)
from control_plane.tests.postgres.proxy.model import COPY_IN, Model
from neonctl_local.postgres.proxy.errors import ProtocolError
from neonctl_local.postgres.proxy.pooler.exchange import ClientState, ServerState
from neonctl_local.postgres.proxy.pooler.frames import (
    CLIENT_KINDS,
    CLIENT_LENGTHS,
    SERVER_KINDS,
    Frame,
    Splitter,
)
from neonctl_local.postgres.proxy.pooler.phases import (
    CLIENT_ROWS,
    FROM_CLIENT,
    FROM_SERVER,
    SERVER_ROWS,
    Effect,
    Phase,
)


def test_every_message_of_a_client_has_one_effect_in_every_phase() -> None:
    kinds = {*CLIENT_KINDS, 0, ord("?")}
    assert {kind for kind in range(256) if CLIENT_LENGTHS[kind]} == kinds - {0, ord("?")} | {*b"d"}
    rows = Counter((phase, kind) for phase, listed, *_ in CLIENT_ROWS for kind in listed)
    assert rows == Counter((phase, kind) for phase in Phase for kind in kinds)


def test_every_message_of_a_server_has_at_most_one_effect_in_every_phase() -> None:
    rows = Counter((phase, kind) for phase, listed, _ in SERVER_ROWS for kind in listed)
    assert set(rows.values()) == {1}
    assert {kind for _, kind in rows} | {*b"WS"} == {*SERVER_KINDS}
    assert all({0, ord("S"), ord("E")} <= row.keys() for row in FROM_SERVER.values())


def test_what_waits_for_a_server_cannot_wait_forever() -> None:
    """A phase in which messages wait ends with a message of the server, or it is the pooler's."""
    for phase, row in FROM_CLIENT.items():
        if phase is not Phase.IDLE and any(effect is Effect.HOLD for effect, _ in row.values()):
            assert all(effect is Effect.HOLD for effect, _ in row.values())
            assert set(FROM_SERVER[phase].values()) != {phase}


AFTER_A_SELECT = (
    query("SELECT 'one'; BEGIN"),
    query("SELECT 'one'; COPY copied FROM STDIN"),
    parse("", "SELECT 'one'; BEGIN"),
    parse("a", "BEGIN"),
)


class Pooled:
    """A client and its server connection, whose bytes arrive when the test says so."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.client = ClientState({})
        self.server = ServerState({})
        self.server.begin(self.client)
        self.sent = b""
        """What the model has not received."""
        self.answered = b""
        """What the pooler has not received."""
        self.received = b""
        self.has_ended = False
        self.frames: list[Frame] = []
        self._from_client = Splitter(CLIENT_KINDS, CLIENT_LENGTHS)
        self._from_server = Splitter(SERVER_KINDS)

    def send(self, part: bytes) -> None:
        """Take bytes of the client."""
        self.frames += self._from_client.feed(part)
        self.forward()

    def forward(self) -> None:
        """Send what the server can take now."""
        while self.frames and not self.has_ended:
            try:
                effect, passed = self.server.offer(self.frames[0])
            except ProtocolError:
                self.has_ended = True
                return
            self.sent += passed
            if effect is Effect.HOLD:
                return
            self.has_ended = effect is Effect.END
            self.frames.pop(0)

    def answer(self) -> None:
        """Let the server execute what it has received."""
        self.answered += self.model.feed(self.sent)
        self.sent = b""

    def deliver(self, length: int | None = None) -> None:
        """Let the pooler receive bytes of the server."""
        part, self.answered = self.answered[:length], self.answered[len(self.answered[:length]) :]
        self.received += b"".join(map(self.server.receive, self._from_server.feed(part)))
        self.forward()

    def deliver_all(self) -> None:
        """Let everything arrive."""
        while self.sent or self.answered:
            self.answer()
            self.deliver()


def until_refused(received: bytes) -> Iterator[bytes]:
    """Yield messages up to the error that ends a session."""
    for one in split(received):
        if one[:1] == b"E" and b"C08P01" in one:
            return
        yield one


def is_of_a_session(frame: bytes, direct: Model) -> bool:
    """Return whether a message makes sense to a client that knows what it has received.

    Clients send no Sync while they copy, because servers ignore it.
    """
    return not (direct.is_copying and frame[:1] in b"SH")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(FRAMES), max_size=15),
    st.lists(st.sampled_from(["answer", "deliver", "deliver a part", "wait"]), max_size=60),
    st.integers(1, 60),
)
@example([query(COPY_IN), data("x")], [], 1)
@example([parse("", COPY_IN), bind(""), EXECUTE, data("x"), SYNC], [], 1)
def test_client_receives_what_a_session_of_its_own_would_send(
    drawn: list[bytes], events: list[str], length: int
) -> None:
    direct, pooled = Model(), Pooled(Model())
    expected = before = b""
    coming = iter(events)
    for frame in split(b"".join([*drawn, FLUSH])):
        if not is_of_a_session(frame, direct) or direct.ended:
            continue
        expected += direct.feed(frame)
        if frame[:1] == b"S" and before[:1] == b"d":
            pooled.deliver_all()  # the client knows that the copy has failed
        before = frame
        for start in range(0, len(frame), length):
            pooled.send(frame[start : start + length])
            event = next(coming, "wait")
            if event == "answer":
                pooled.answer()
            elif event == "deliver":
                pooled.deliver()
            elif event == "deliver a part":
                pooled.deliver(length)
    pooled.deliver_all()
    answers = list(until_refused(pooled.received))
    wanted = list(until_refused(expected))
    if pooled.has_ended:
        assert answers == wanted[: len(answers)]
    else:
        assert answers == wanted
        assert not pooled.frames
        assert pooled.server.is_done == pooled.model.is_free


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([*FRAMES, *AFTER_A_SELECT]), max_size=5), max_size=15),
    st.booleans(),
)
def test_early_reset_meets_no_open_transaction(drawn: list[list[bytes]], at_once: bool) -> None:
    """The pooler closes a server that has one, and so would end the client."""
    pooled = Pooled(Model())
    for frames in drawn:
        for part in [b"".join(frames)] if at_once else frames:
            pooled.send(part)
            while pooled.sent or pooled.answered:
                if not pooled.frames:
                    pooled.sent += pooled.server.reset_early()
                pooled.answer()
                pooled.deliver()
                if pooled.server.phase is Phase.IDLE:
                    pooled.server.begin(pooled.client)
                    pooled.forward()
            if pooled.has_ended:
                return
