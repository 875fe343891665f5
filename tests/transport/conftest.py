"""Fixtures of the transport tests."""

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from tests.support.tls import certified


@pytest.fixture
def full_port() -> Iterator[int]:
    """The port of a server whose backlog is full, so that it accepts no connection."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as client:
        client.connect(server.getsockname())
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture(scope="module")
def certificates(authority: trustme.CA) -> dict[str, ssl.SSLContext]:
    """The TLS contexts of servers with different certificates."""
    yesterday = datetime.now(UTC) - timedelta(days=1)
    return {
        "good": certified(authority, "localhost"),
        "other host": certified(authority, "other.example.com"),
        "expired": certified(authority, "localhost", not_after=yesterday),
    }
