"""The model of a Postgres session, beside Postgres."""

import socket
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_plane.tests.postgres.proxy.conversations import (
    FLUSH,
    FRAMES,
    TERMINATE,
    split,
    summary,
)
from control_plane.tests.postgres.proxy.model import TABLE, Model
from control_plane.tests.postgres.proxy.server import (
    DATABASE,
    PASSWORD,
    ROLE,
    Server,
    running_server,
)
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.template import prepare_template

pytestmark = [pytest.mark.postgres, pytest.mark.long]


@pytest.fixture(scope="module")
def each_server(
    each_installation: Installation, account: ServerAccount | None
) -> Iterator[tuple[Server, bool]]:
    """A server, and whether a query in a pipeline continues its transaction, as since 18."""
    template = prepare_template(each_installation, account)
    with running_server(each_installation, template, account) as server:
        with psycopg.connect(**login(server), autocommit=True) as connection:
            connection.execute(TABLE.encode())
        yield server, each_installation.major >= 18


def login(server: Server) -> dict[str, Any]:
    return {
        "host": str(server.directory),
        "dbname": DATABASE,
        "user": ROLE,
        "password": PASSWORD,
    }


def converse(server: Server, sent: bytes) -> bytes:
    """Send bytes in a new session, and return what Postgres sends until it ends the session."""
    with psycopg.connect(**login(server)) as connection:
        sock = socket.socket(fileno=connection.fileno())
        sock.settimeout(10)
        received = b""
        try:
            sock.sendall(sent)
            while part := sock.recv(65536):
                received += part
        except ConnectionResetError:
            pass
        finally:
            sock.detach()
    return received


@settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.sampled_from(FRAMES), max_size=12))
def test_model_answers_as_postgres(each_server: tuple[Server, bool], drawn: list[bytes]) -> None:
    server, changed = each_server
    model, answered, sent = Model(), b"", b""
    for frame in split(b"".join([*drawn, FLUSH, TERMINATE])):
        if not (changed and model.is_pipelining and frame[:1] in b"QF"):
            answered += model.feed(frame)
            sent += frame
    assert summary(answered) == summary(converse(server, sent))
