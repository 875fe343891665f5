"""The exchange of a pooled client with server connections, without sockets."""

from itertools import product

import pytest

from neonctl_local.postgres.proxy.errors import ProtocolError
from neonctl_local.postgres.proxy.messages import Message
from neonctl_local.postgres.proxy.pooler import exchange
from neonctl_local.postgres.proxy.pooler.exchange import (
    RESET,
    RESET_STATEMENTS,
    ClientState,
    ServerState,
)
from neonctl_local.postgres.proxy.pooler.frames import (
    CLIENT_KINDS,
    CLIENT_LENGTHS,
    SERVER_KINDS,
    Frame,
    Splitter,
)
from neonctl_local.postgres.proxy.pooler.phases import Effect, Phase

SYNC = Message(b"S", b"").encode()
PARSED = Message(b"1", b"").encode()
CLOSED = Message(b"3", b"").encode()
BOUND = Message(b"2", b"").encode()
EXECUTE = Message(b"E", b"portal\0\0\0\0\0").encode()
ERROR = Message(b"E", b"SERROR\0\0").encode()
IDLE = Message(b"Z", b"I").encode()
BUSY = Message(b"Z", b"T").encode()


SET_MARS = Message(b"Q", b"SET TimeZone = E'Mars'\0").encode()


def parse(name: bytes) -> bytes:
    return Message(b"P", name + b"\0select $1\0\0\0").encode()


def bind(name: bytes) -> bytes:
    return Message(b"B", b"portal\0" + name + b"\0\0\0\0\1\0\0\0\1a\0\0").encode()


def query(statement: bytes) -> bytes:
    return Message(b"Q", statement + b"\0").encode()


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
        self.frames: list[Frame] = []

    def send(self, data: bytes = b"") -> list[tuple[bytes, bytes]]:
        """Return the kinds and payloads that the server receives."""
        self.frames += Splitter(CLIENT_KINDS, CLIENT_LENGTHS).feed(data)
        sent = b""
        while self.frames:
            effect, passed = self.server.offer(self.frames[0])
            sent += passed
            if effect is Effect.HOLD:
                break
            self.frames.pop(0)
        frames = Splitter(bytes(range(256))).feed(sent)
        return [(frame.data[:1], frame.payload) for frame in frames]

    def receive(self, data: bytes) -> bytes:
        return b"".join(map(self.server.receive, Splitter(SERVER_KINDS).feed(data)))


def test_other_server_prepares_the_statement_before_its_use() -> None:
    one = Link()
    [(_, parsed), _] = one.send(parse(b"mine") + SYNC)
    assert one.receive(PARSED + IDLE) == PARSED + IDLE
    assert one.server.is_done
    other = Link(one.client)
    sent = other.send(bind(b"mine") + SYNC)
    assert [kind for kind, _ in sent] == [b"P", b"B", b"S"]
    assert sent[0][1] == parsed
    assert sent[1][1].startswith(b"portal\0" + parsed.partition(b"\0")[0] + b"\0")
    assert other.receive(PARSED + BOUND + IDLE) == BOUND + IDLE
    assert [kind for kind, _ in other.send(bind(b"mine") + SYNC)] == [b"B", b"S"]


def test_statement_that_failed_does_not_exist() -> None:
    link = Link()
    link.send(parse(b"mine") + SYNC)
    assert link.receive(ERROR + IDLE) == ERROR + IDLE
    with pytest.raises(ProtocolError, match="prepared statement did not exist"):
        link.send(bind(b"mine"))
    link.frames.clear()
    link.send(parse(b"mine") + SYNC)
    link.receive(PARSED + IDLE)
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
    link.receive(BOUND + IDLE)
    assert [kind for kind, _ in link.send(parse(b"c") + SYNC)] == [b"P", b"C", b"S"]
    assert link.receive(PARSED + CLOSED + IDLE) == PARSED + IDLE
    assert [kind for kind, _ in link.send(bind(b"a") + SYNC)] == [b"B", b"S"]
    link.receive(BOUND + IDLE)
    assert [kind for kind, _ in link.send(bind(b"b") + SYNC)] == [b"P", b"C", b"B", b"S"]


@pytest.mark.parametrize("tag", [b"DEALLOCATE ALL", b"DISCARD ALL"])
def test_deallocated_statements_do_not_exist(tag: bytes) -> None:
    link = Link()
    link.send(parse(b"mine") + SYNC + query(tag))
    link.receive(PARSED + IDLE)
    link.send()
    link.receive(complete(tag) + IDLE)
    with pytest.raises(ProtocolError, match="prepared statement did not exist"):
        link.send(bind(b"mine"))


@pytest.mark.parametrize("tag", [b"DEALLOCATE ALL", b"DISCARD ALL"])
def test_statements_behind_a_command_that_deallocates_all_exist(tag: bytes) -> None:
    link = Link()
    link.send(parse(b"all") + parse(b"old") + SYNC)
    link.receive(PARSED + PARSED + IDLE)
    closed = parse(b"closed") + Message(b"C", b"Sclosed\0").encode()
    link.send(bind(b"all") + EXECUTE + parse(b"new") + closed + SYNC)
    link.receive(BOUND + complete(tag) + PARSED + PARSED + CLOSED + IDLE)
    assert [kind for kind, _ in link.send(bind(b"new") + SYNC)] == [b"B", b"S"]
    link.receive(BOUND + IDLE)
    for name in (b"all", b"old", b"closed"):
        with pytest.raises(ProtocolError, match="prepared statement did not exist"):
            link.send(bind(name))
        link.frames.clear()


def test_pipeline_and_transaction_keep_the_server() -> None:
    link = Link()
    assert len(link.send(query(b"begin") + query(b"commit"))) == 1
    assert link.receive(BUSY) == BUSY
    assert not link.server.is_done
    assert len(link.send()) == 1
    assert link.receive(IDLE) == IDLE
    assert link.server.is_done
    link.send(parse(b""))
    assert not link.server.is_done


def test_sync_during_a_copy_is_not_answered() -> None:
    """libpq sends Sync with the COPY statement, and again after the data."""
    link = Link()
    link.send(parse(b"") + bind(b"") + EXECUTE + SYNC)
    link.receive(PARSED + BOUND + Message(b"G", b"\0\0\0").encode())
    link.send(Message(b"d", b"1\n").encode() + SYNC + Message(b"c", b"").encode() + SYNC)
    assert link.receive(complete(b"COPY 1") + IDLE) == complete(b"COPY 1") + IDLE
    assert link.server.is_done


def test_reset_keeps_prepared_statements() -> None:
    link = Link()
    link.send(parse(b"mine") + SYNC)
    link.receive(PARSED + IDLE)
    assert link.server.reset() == RESET
    assert link.receive(complete(b"RESET") + ERROR + IDLE) == b""
    assert link.server.failed


@pytest.mark.parametrize(
    "response",
    [
        complete(b"PREPARE"),
        complete(b"DEALLOCATE"),
        complete(b"DO"),
        complete(b"CALL"),
        Message(b"E", b"SERROR\0C26000\0\0").encode(),
        ERROR,
    ],
)
def test_statements_are_prepared_again_after_sql_has_changed_them(response: bytes) -> None:
    link = Link()
    link.send(parse(b"mine") + SYNC)
    link.receive(PARSED + IDLE)
    link.send(query(b"prepare or deallocate, perhaps inside a function"))
    link.receive(response + IDLE)
    assert link.server.reset() == RESET_STATEMENTS
    assert link.receive(complete(b"DISCARD ALL") + IDLE) == b""
    link.server.begin(link.client)
    assert [kind for kind, _ in link.send(bind(b"mine") + SYNC)] == [b"P", b"B", b"S"]


def test_reset_of_a_session_without_prepared_statements_keeps_nothing() -> None:
    assert Link().server.reset() == RESET_STATEMENTS


PLAIN = (
    b"SELECT 1",
    b" \n\tselect 1 ; ",
    b"Insert INTO t VALUES (1)",
    b"UPDATE t SET a = 'commit'",
    b"DELETE FROM t -- a comment",
    b"VALUES (1)",
    b"WITH a AS (SELECT 1) TABLE a",
    b"SELECT" + b" " * 1_000_000,
)
OTHERS = (
    b"",
    b";",
    b"BEGIN",
    b"COPY t FROM STDIN",
    b"SELECT 1; BEGIN",
    b"SELECT 1;;",
    b"SELECT ';'",
    b"/* SELECT */ BEGIN",
    b"-- SELECT\nBEGIN",
    b"(SELECT 1)",
    b"CALL p()",
    b"SELECT" + b" " * 1_000_000 + b";BEGIN",
)


@pytest.mark.parametrize(
    ("text", "is_early"),
    [*((text, True) for text in PLAIN), *((text, False) for text in OTHERS)],
)
def test_reset_follows_only_a_statement_that_leaves_no_transaction_open(
    text: bytes, is_early: bool
) -> None:
    parsed = Message(b"P", b"\0" + text + b"\0\0\0").encode()
    named = Message(b"P", b"name\0" + text + b"\0\0\0").encode()
    for sent in (
        query(text),
        parsed + bind(b"") + EXECUTE + SYNC,
        named + bind(b"name") + EXECUTE + SYNC,
    ):
        link = Link()
        link.send(sent)
        assert bool(link.server.reset_early()) == is_early
    link = Link()
    link.send(named + SYNC)
    link.receive(PARSED + IDLE)
    link.send(bind(b"name") + EXECUTE)
    assert not link.server.reset_early()
    link.send(SYNC)
    assert bool(link.server.reset_early()) == is_early
    assert not link.server.reset_early()


@pytest.mark.parametrize(
    "sent",
    [
        bind(b"") + EXECUTE + SYNC,
        parse(b"") + query(b"select 1"),
        Message(b"F", b"").encode(),
        Message(b"d", b"1\n").encode(),
    ],
)
def test_reset_does_not_follow_a_request_that_is_not_understood(sent: bytes) -> None:
    link = Link()
    link.send(sent)
    assert not link.server.reset_early()


def test_reset_does_not_follow_a_request_in_a_transaction() -> None:
    link = Link()
    link.send(query(b"begin"))
    link.receive(BUSY)
    link.send(query(b"select 1"))
    assert not link.server.reset_early()


def test_early_reset_is_hidden_from_the_client() -> None:
    link = Link()
    link.send(query(b"select 1"))
    assert link.server.reset_early() == RESET_STATEMENTS
    answer = complete(b"SELECT 1") + IDLE
    assert link.receive(answer + complete(b"DISCARD ALL") + IDLE) == answer
    assert link.server.phase is Phase.IDLE
    assert not link.server.needs_reset


def test_error_in_front_of_an_early_reset_needs_another_one() -> None:
    """What an SQL PREPARE inside of a failed function has left is removed, too."""
    link = Link()
    link.send(parse(b"mine") + SYNC)
    link.receive(PARSED + IDLE)
    link.send(query(b"select 1"))
    assert link.server.reset_early() == RESET
    link.receive(ERROR + IDLE + complete(b"RESET") + IDLE)
    assert link.server.needs_reset
    assert link.server.reset() == RESET_STATEMENTS
    link.receive(complete(b"DISCARD ALL") + IDLE)
    assert not link.server.needs_reset


def test_early_reset_forgets_a_statement_whose_closing_was_skipped() -> None:
    link = Link()
    link.send(parse(b"mine") + SYNC)
    link.receive(PARSED + IDLE)
    link.send(query(b"do") + bind(b"mine") + Message(b"C", b"Smine\0").encode() + SYNC)
    link.receive(complete(b"DO") + IDLE)
    link.send()
    assert link.server.reset_early() == RESET_STATEMENTS
    link.receive(ERROR + IDLE + complete(b"DISCARD ALL") + IDLE)
    link.server.begin(link.client)
    assert [kind for kind, _ in link.send(bind(b"mine") + SYNC)] == [b"P", b"B", b"S"]


def test_transaction_in_front_of_an_early_reset_is_an_error() -> None:
    link = Link()
    link.send(query(b"select 1"))
    link.server.reset_early()
    with pytest.raises(ProtocolError, match="a transaction is open in front of a reset"):
        link.receive(BUSY)


def test_closing_is_confirmed_beside_a_hidden_preparation() -> None:
    """Otherwise, the client gets ParseComplete where it expects CloseComplete."""
    one = Link()
    one.send(parse(b"old") + parse(b"mine") + SYNC)
    one.receive(PARSED + PARSED + IDLE)
    other = Link(one.client)
    sent = other.send(Message(b"C", b"Sold\0").encode() + bind(b"mine") + SYNC)
    assert [kind for kind, _ in sent] == [b"C", b"P", b"B", b"S"]
    assert other.receive(CLOSED + PARSED + BOUND + IDLE) == CLOSED + BOUND + IDLE


def test_statement_whose_closing_was_skipped_still_exists() -> None:
    link = Link()
    link.send(parse(b"mine") + SYNC)
    link.receive(PARSED + IDLE)
    link.send(bind(b"mine") + EXECUTE + Message(b"C", b"Smine\0").encode() + SYNC)
    assert link.receive(BOUND + ERROR + IDLE) == BOUND + ERROR + IDLE
    assert [kind for kind, _ in link.send(bind(b"mine") + SYNC)] == [b"B", b"S"]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        *product([b"P", b"B", b"D", b"C"], [b"", b"S", b"Sname"]),
        (b"B", b"portal\0name"),
    ],
)
def test_malformed_message_gets_the_error_of_the_server(kind: bytes, payload: bytes) -> None:
    link = Link()
    assert link.send(Message(kind, payload).encode() + SYNC) == [(kind, payload), (b"S", b"")]
    assert link.receive(ERROR + IDLE) == ERROR + IDLE
    assert link.server.is_done


def test_part_of_a_message_is_completed_after_an_error() -> None:
    """Otherwise, the server would take the reset for copied data, and never answer it."""
    link, whole = Link(), Message(b"d", b"1\n" * 9).encode()
    splitter = Splitter(CLIENT_KINDS, CLIENT_LENGTHS)
    link.send(query(b"copy"))
    link.receive(Message(b"G", b"\0\0\0").encode())
    for frame in splitter.feed(whole[:10]):
        assert link.server.offer(frame) == (Effect.SEND, whole[:10])
    assert link.receive(ERROR + IDLE) == ERROR + IDLE
    assert not link.server.is_done
    rest, *_, ignored = splitter.feed(whole[10:] + whole)
    assert link.server.offer(rest) == (Effect.SEND, whole[10:])
    assert link.server.offer(ignored) == (Effect.DROP, b"")
    assert link.server.is_done


@pytest.mark.parametrize("data", [IDLE, PARSED, complete(b"SELECT 1"), Message(b"W", b"").encode()])
def test_message_that_no_request_explains_is_an_error(data: bytes) -> None:
    link = Link()
    with pytest.raises(ProtocolError, match=r"unexpected message type 0x.. from the server"):
        link.receive(data)


def test_answer_to_another_message_is_an_error() -> None:
    link = Link()
    link.send(parse(b"") + SYNC)
    with pytest.raises(ProtocolError, match="unexpected message type 0x32 from the server"):
        link.receive(BOUND)
    with pytest.raises(ProtocolError, match="skipped messages without an error"):
        link.receive(IDLE)


def test_messages_wait_while_the_pooler_resets_a_connection() -> None:
    link = Link()
    link.server.reset()
    assert link.send(query(b"select 1")) == []
    assert link.receive(Message(b"N", b"").encode() + complete(b"DISCARD ALL") + IDLE) == b""
    assert link.server.phase is Phase.IDLE


def test_settings_of_a_client_are_set_on_its_server() -> None:
    client = ClientState({b"TimeZone": b"a'b\\", b"client_encoding": b"utf8"})
    link = Link(client, {b"TimeZone": b"GMT", b"client_encoding": b"UTF8"})
    sets = b"SET TimeZone = E'a''b\\\\'; SET client_encoding = E'utf8'\0"
    assert link.begun == Message(b"Q", sets).encode()
    changed = Message(b"S", b"TimeZone\0Mars\0").encode()
    assert link.receive(changed + complete(b"SET") + IDLE) == b""
    assert client.settings == {b"TimeZone": b"Mars", b"client_encoding": b"UTF8"}
    assert link.server.begin(client) == b""


@pytest.mark.parametrize("fails", [False, True])
def test_reset_sets_the_settings_of_its_client_again(fails: bool) -> None:
    client = ClientState({b"TimeZone": b"Mars"})
    link = Link(client, {b"TimeZone": b"GMT"})
    assert link.begun == SET_MARS
    changed = Message(b"S", b"TimeZone\0Mars\0").encode() + complete(b"SET") + IDLE
    assert link.receive(changed) == b""
    link.send(query(b"select 1"))
    assert link.server.reset_early() == RESET_STATEMENTS + SET_MARS
    answer = complete(b"SELECT 1") + IDLE
    assert link.receive(answer) == answer
    lost = Message(b"S", b"TimeZone\0GMT\0").encode() + complete(b"DISCARD ALL") + IDLE
    assert link.receive(lost) == b""
    phases = [link.server.phase]
    assert client.settings == {b"TimeZone": b"Mars"}
    assert link.receive(ERROR + IDLE if fails else changed) == b""
    assert [*phases, link.server.phase] == [Phase.RESETTING, Phase.IDLE]
    assert link.server.failed == fails
    if not fails:
        assert link.server.begin(client) == b""
        assert link.server.reset() == RESET_STATEMENTS + SET_MARS
