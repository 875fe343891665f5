"""The relay: bytes in both directions, backpressure, and the ends of connections."""

import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from neonctl_local.postgres.proxy.messages import Message
from neonctl_local.postgres.proxy.relay import Relay, RelayedSession

SEVERAL_BUFFERS = bytes(range(256)) * 16384
KEY = Message(b"K", b"12345678").encode()


@pytest.fixture(params=["epoll", "poll"])
def relay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """A running relay, with each poller."""
    if not hasattr(select, request.param):
        pytest.skip(f"this system has no {request.param}")
    poller = getattr(select, request.param)
    monkeypatch.setattr("neonctl_local.postgres.proxy.relay._new_poller", poller)
    relay = Relay()
    relay.start()
    yield relay
    relay.stop()


class Peers:
    """A client and a server that a relay connects. ``client`` and ``server`` are their sockets."""

    def __init__(self, relay: Relay, stack: ExitStack) -> None:
        self.ended = threading.Event()
        self.keys: list[bytes] = []
        self.client, near_client = self._pair(stack)
        self.server, near_server = self._pair(stack)
        self.session = RelayedSession(
            near_client, near_server, on_key=self.keys.append, on_end=self.ended.set
        )
        relay.add(self.session)

    def _pair(self, stack: ExitStack) -> tuple[socket.socket, socket.socket]:
        far, near = socket.socketpair()
        stack.enter_context(far).settimeout(10)
        near.settimeout(0)
        return far, near


@pytest.fixture
def peers(relay: Relay) -> Iterator[Peers]:
    with ExitStack() as stack:
        yield Peers(relay, stack)


REQUEST = Message(b"R", b"password?").encode()
REFUSAL = Message(b"E", b"too late").encode()


def read_all(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(65536), b""))


def read(sock: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        data += sock.recv(length - len(data))
    return data


def fill(sock: socket.socket) -> int:
    """Send until nothing moves for a while. Return the number of bytes sent."""
    sent = 0
    sock.settimeout(0.2)
    try:
        while True:
            sent += sock.send(bytes(65536))
    except TimeoutError:
        sock.settimeout(10)
        return sent


def test_bytes_move_in_both_directions(peers: Peers) -> None:
    for number in range(10):
        peers.client.sendall(b"request %d" % number)
        assert read(peers.server, 9) == b"request %d" % number
        peers.server.sendall(b"response %d" % number)
        assert read(peers.client, 10) == b"response %d" % number


def test_many_bytes_move_in_both_directions_at_once(peers: Peers) -> None:
    received: list[bytes] = []
    threads = [
        threading.Thread(target=peers.client.sendall, args=(SEVERAL_BUFFERS,)),
        threading.Thread(target=peers.server.sendall, args=(SEVERAL_BUFFERS,)),
        threading.Thread(target=lambda: received.append(read(peers.server, len(SEVERAL_BUFFERS)))),
        threading.Thread(target=lambda: received.append(read(peers.client, len(SEVERAL_BUFFERS)))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert received == [SEVERAL_BUFFERS, SEVERAL_BUFFERS]


def test_server_that_is_faster_than_its_client_has_to_wait(peers: Peers) -> None:
    sent = fill(peers.server)
    assert sent < 2_000_000
    peers.client.sendall(b"the other direction is free")
    assert read(peers.server, 27) == b"the other direction is free"
    assert read(peers.client, sent) == bytes(sent)
    peers.server.sendall(b"more")
    assert read(peers.client, 4) == b"more"


def test_slow_client_receives_everything_from_a_server_that_has_closed(peers: Peers) -> None:
    sent = fill(peers.server)
    peers.server.close()
    assert read_all(peers.client) == bytes(sent)
    assert peers.ended.wait(10)


class CountingPoller:
    """Counts the calls of ``poll``."""

    def __init__(self) -> None:
        self.calls = 0
        poller = select.poll()
        self.register = poller.register
        self.modify = poller.modify
        self.unregister = poller.unregister
        self._poll = poller.poll

    def poll(self) -> list[tuple[int, int]]:
        self.calls += 1
        return self._poll()


def test_relay_sleeps_while_a_client_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    poller = CountingPoller()
    monkeypatch.setattr("neonctl_local.postgres.proxy.relay._new_poller", lambda: poller)
    relay = Relay()
    relay.start()
    with ExitStack() as stack:
        peers = Peers(relay, stack)
        fill(peers.server)
        peers.server.close()
        before = poller.calls
        time.sleep(0.1)
        assert poller.calls - before < 5
        relay.stop()


def test_slow_server_receives_everything_from_a_client_that_has_closed(peers: Peers) -> None:
    sent = fill(peers.client)
    peers.client.shutdown(socket.SHUT_WR)
    assert read_all(peers.server) == bytes(sent)


def test_client_may_close_its_side_and_still_receive(peers: Peers) -> None:
    peers.client.sendall(b"request")
    peers.client.shutdown(socket.SHUT_WR)
    assert read_all(peers.server) == b"request"
    peers.server.sendall(b"response")
    assert read(peers.client, 8) == b"response"
    assert not peers.ended.is_set()
    peers.server.close()
    assert peers.client.recv(1) == b""
    assert peers.ended.wait(10)


def test_session_ends_with_its_server(peers: Peers) -> None:
    peers.server.sendall(b"terminating connection")
    peers.server.close()
    assert read_all(peers.client) == b"terminating connection"
    assert peers.ended.wait(10)


def test_client_that_sends_to_a_closed_server_receives_its_last_message(peers: Peers) -> None:
    peers.server.sendall(b"terminating connection")
    peers.server.shutdown(socket.SHUT_RD)
    peers.client.sendall(b"select 1")
    assert read(peers.client, 22) == b"terminating connection"
    peers.server.close()
    assert peers.ended.wait(10)


def test_client_of_a_server_that_did_not_read_everything_receives_its_last_message(
    peers: Peers,
) -> None:
    fill(peers.client)
    peers.server.sendall(b"terminating connection")
    peers.server.close()
    assert read(peers.client, 22) == b"terminating connection"
    assert peers.ended.wait(10)


def test_client_that_disappears_ends_the_session(relay: Relay) -> None:
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = socket.create_connection(listening.getsockname())
        near_client, _ = listening.accept()
        near_client.settimeout(0)
        server, near_server = socket.socketpair()
        stack.enter_context(server)
        near_server.settimeout(0)
        ended = threading.Event()
        relay.add(RelayedSession(near_client, near_server, on_key=print, on_end=ended.set))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()  # resets the connection
        assert ended.wait(10)
        assert server.recv(1) == b""


def test_key_of_the_session_is_known_before_the_client_receives_it(peers: Peers) -> None:
    peers.server.sendall(KEY)
    assert read(peers.client, len(KEY)) == KEY
    assert peers.keys == [b"12345678"]
    peers.server.sendall(KEY)  # not a message of the start any more
    assert read(peers.client, len(KEY)) == KEY
    assert peers.keys == [b"12345678"]


def test_closed_session_closes_both_connections(relay: Relay, peers: Peers) -> None:
    relay.close(peers.session)
    assert peers.ended.wait(10)
    assert peers.client.recv(1) == b""
    assert peers.server.recv(1) == b""
    relay.close(peers.session)


def test_one_session_does_not_wait_for_another(relay: Relay, peers: Peers) -> None:
    fill(peers.server)
    with ExitStack() as stack:
        others = [Peers(relay, stack) for _ in range(20)]
        for other in others:
            other.client.sendall(b"x")
        assert [other.server.recv(1) for other in others] == [b"x"] * 20


def test_stopped_relay_closes_every_session() -> None:
    relay = Relay()
    relay.start()
    with ExitStack() as stack:
        peers = [Peers(relay, stack) for _ in range(20)]
        relay.stop()
        assert all(one.ended.is_set() for one in peers)
        assert [one.client.recv(1) for one in peers] == [b""] * 20


def test_thread_that_an_earlier_call_woke_may_stop_first(monkeypatch: pytest.MonkeyPatch) -> None:
    class LateWake:
        """Announces a call that the thread has run already, because another one woke it."""

        def __init__(self, sock: socket.socket) -> None:
            self._sock = sock

        def send(self, data: bytes) -> int:
            self._sock.send(data)
            thread.join(5)
            return self._sock.send(data)

        def __getattr__(self, name: str) -> object:
            return getattr(self._sock, name)

    def socketpair() -> tuple[socket.socket, LateWake]:
        waking, wake = pair()
        return waking, LateWake(wake)

    pair = socket.socketpair
    monkeypatch.setattr(socket, "socketpair", socketpair)
    relay = Relay()
    before = {*threading.enumerate()}
    relay.start()
    [thread] = {*threading.enumerate()} - before
    relay.stop()


def test_login_is_refused_in_time_and_a_session_is_not(relay: Relay, peers: Peers) -> None:
    peers.server.sendall(REQUEST)
    assert read(peers.client, len(REQUEST)) == REQUEST
    relay.refuse(peers.session, REFUSAL)
    assert read_all(peers.client) == REFUSAL
    assert peers.ended.wait(10)
    with ExitStack() as stack:
        started = Peers(relay, stack)
        started.server.sendall(KEY)
        assert read(started.client, len(KEY)) == KEY
        relay.refuse(started.session, REFUSAL)
        started.server.sendall(REQUEST)
        assert read(started.client, len(REQUEST)) == REQUEST
