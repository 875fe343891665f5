"""The exchange of a pooled client with server connections, without sockets."""

import pytest

from neonctl_local.postgres.proxy.errors import ProtocolError
from neonctl_local.postgres.proxy.messages import Message
from neonctl_local.postgres.proxy.pooler import exchange
from neonctl_local.postgres.proxy.pooler.exchange import (
    CLIENT_KINDS,
    RESET,
    RESET_STATEMENTS,
    SERVER_KINDS,
    ClientState,
    ServerState,
)
from neonctl_local.postgres.proxy.pooler.frames import Splitter

SYNC = Message(b"S", b"").encode()
PARSED = Message(b"1", b"").encode()
CLOSED = Message(b"3", b"").encode()
ERROR = Message(b"E", b"SERROR\0\0").encode()
IDLE = Message(b"Z", b"I").encode()
BUSY = Message(b"Z", b"T").encode()


def parse(name: bytes) -> bytes:
    return Message(b"P", name + b"\0select $1\0\0\0").encode()


def bind(name: bytes) -> bytes:
    return Message(b"B", b"portal\0" + name + b"\0\0\0\0\1\0\0\0\1a\0\0").encode()


def complete(tag: bytes) -> bytes:
    return Message(b"C", tag + b"\0").encode()


class Link:
    """A client that has a server."""

    def __init__(
        self, client: ClientState | None = None, settings: dict[bytes, bytes] | None = None
    ) -> None:
        self.client = client or ClientState({})
        self.server = ServerState(settings or {})
        self.begun = self.server.begin(self.client)

    def send(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Return the kinds and payloads that the server receives."""
        sent = b"".join(map(self.server.send, Splitter(CLIENT_KINDS).feed(data)))
        frames = Splitter(bytes(range(256))).feed(sent)
        return [(frame.data[:1], frame.payload) for frame in frames]

    def receive(self, data: bytes) -> bytes:
        return b"".join(map(self.server.receive, Splitter(SERVER_KINDS).feed(data)))


def test_other_server_prepares_the_statement_before_its_use() -> None:
    one = Link()
    [(_, parsed), _] = one.send(parse(b"mine") + SYNC)
    assert one.receive(PARSED + IDLE) == PARSED + IDLE
    assert one.server.is_ready
    other = Link(one.client)
    sent = other.send(bind(b"mine") + SYNC)
    assert [kind for kind, _ in sent] == [b"P", b"B", b"S"]
    assert sent[0][1] == parsed
    assert sent[1][1].startswith(b"portal\0" + parsed.partition(b"\0")[0] + b"\0")
    bound = Message(b"2", b"").encode()
    assert other.receive(PARSED + bound + IDLE) == bound + IDLE
    assert [kind for kind, _ in other.send(bind(b"mine") + SYNC)] == [b"B", b"S"]


def test_statement_that_failed_does_not_exist() -> None:
    link = Link()
    link.send(parse(b"mine") + SYNC)
    assert link.receive(ERROR + IDLE) == ERROR + IDLE
    with pytest.raises(ProtocolError, match="prepared statement did not exist"):
        link.send(bind(b"mine"))
    link.send(parse(b"mine"))
    with pytest.raises(ProtocolError, match="prepared statement name is already in use"):
        link.send(parse(b"mine"))


def test_closed_name_can_be_used_again() -> None:
    link = Link()
    sent = link.send(parse(b"mine") + Message(b"C", b"Smine\0").encode() + parse(b"mine") + SYNC)
    assert [kind for kind, _ in sent] == [b"P", b"C", b"P", b"S"]
    assert sent[1][1] == b"S" + sent[0][1].partition(b"\0")[0] + b"\0"
    assert link.receive(PARSED + CLOSED + PARSED + IDLE) == PARSED + CLOSED + PARSED + IDLE


def test_oldest_statement_of_a_full_server_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MAX_STATEMENTS", 2)
    link = Link()
    for name in (b"a", b"b"):
        link.send(parse(name) + SYNC)
        link.receive(PARSED + IDLE)
    link.send(bind(b"a") + SYNC)
    link.receive(IDLE)
    assert [kind for kind, _ in link.send(parse(b"c") + SYNC)] == [b"P", b"C", b"S"]
    assert link.receive(PARSED + CLOSED + IDLE) == PARSED + IDLE
    assert [kind for kind, _ in link.send(bind(b"a") + SYNC)] == [b"B", b"S"]
    link.receive(IDLE)
    assert [kind for kind, _ in link.send(bind(b"b") + SYNC)] == [b"P", b"C", b"B", b"S"]


@pytest.mark.parametrize("tag", [b"DEALLOCATE ALL", b"DISCARD ALL"])
def test_deallocated_statements_do_not_exist(tag: bytes) -> None:
    link = Link()
    link.send(parse(b"mine") + Message(b"Q", tag + b"\0").encode())
    link.receive(PARSED + complete(tag) + IDLE)
    with pytest.raises(ProtocolError, match="prepared statement did not exist"):
        link.send(bind(b"mine"))


def test_pipeline_and_transaction_keep_the_server() -> None:
    link = Link()
    link.send(Message(b"Q", b"begin\0").encode() + Message(b"Q", b"commit\0").encode())
    for response in (BUSY, IDLE):
        assert not link.server.is_ready
        assert link.receive(response) == response
    assert link.server.is_ready
    link.send(parse(b""))
    assert not link.server.is_ready


def test_sync_during_a_copy_is_not_answered() -> None:
    """libpq sends Sync with the COPY statement, and again after the data."""
    link = Link()
    link.send(parse(b"") + bind(b"") + SYNC)
    link.receive(PARSED + Message(b"G", b"\0\0\0").encode())
    link.send(Message(b"d", b"1\n").encode() + SYNC + Message(b"c", b"").encode() + SYNC)
    assert link.receive(complete(b"COPY 1") + IDLE) == complete(b"COPY 1") + IDLE
    assert link.server.is_ready


def test_reset_keeps_prepared_statements_unless_sql_made_one() -> None:
    link = Link()
    assert link.server.reset() == RESET
    assert link.receive(complete(b"RESET") + ERROR + IDLE) == b""
    assert link.server.failed
    link = Link()
    link.send(Message(b"Q", b"prepare p as select 1\0").encode())
    link.receive(complete(b"PREPARE") + IDLE)
    assert link.server.reset() == RESET_STATEMENTS
    assert link.receive(complete(b"DISCARD ALL") + IDLE) == b""
    assert link.server.is_ready


def test_settings_of_a_client_are_set_on_its_server() -> None:
    client = ClientState({b"TimeZone": b"a'b\\", b"client_encoding": b"utf8"})
    link = Link(client, {b"TimeZone": b"GMT", b"client_encoding": b"UTF8"})
    assert link.begun == Message(b"Q", b"SET TimeZone = E'a''b\\\\'\0").encode()
    changed = Message(b"S", b"TimeZone\0Mars\0").encode()
    assert link.receive(changed + complete(b"SET") + IDLE) == b""
    assert client.settings == {b"TimeZone": b"Mars", b"client_encoding": b"UTF8"}
    assert link.server.begin(client) == b""
