"""What tests of the transport share."""

import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def full_port() -> Iterator[int]:
    """The port of a server that accepts no connection any more."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as last:
        last.connect(server.getsockname())
        yield server.getsockname()[1]
