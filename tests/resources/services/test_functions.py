import asyncio
import io
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any

import pytest

from neonctl_async import Secret
from neonctl_async.types import FunctionDeployment, NeonFunction
from tests.models.records import decode
from tests.models.services.storage_records import DEPLOYMENT, FUNCTION
from tests.resources.wire import (
    Call,
    Exchange,
    no_content,
    record_in,
    responding_in_sequence,
    responding_with,
)

FUNCTIONS = "/projects/p-1/branches/br-1/functions"
FOUND = record_in("function", NeonFunction, FUNCTION)

CALLS = [
    Call(lambda neon: neon.functions.get("p-1", "br-1", "hello"), f"GET {FUNCTIONS}/hello", FOUND),
    Call(
        lambda neon: neon.functions.update("p-1", "br-1", "hello", name="Hello"),
        f"PATCH {FUNCTIONS}/hello",
        FOUND,
        body={"name": "Hello"},
    ),
    Call(
        lambda neon: neon.functions.update("p-1", "br-1", "hello", name=None),
        f"PATCH {FUNCTIONS}/hello",
        FOUND,
        body={"name": None},
    ),
    Call(
        lambda neon: neon.functions.delete("p-1", "br-1", "hello"),
        f"DELETE {FUNCTIONS}/hello",
        no_content(),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


async def test_functions_of_all_pages_are_listed() -> None:
    other = {**FUNCTION, "id": "fn-2", "slug": "other"}
    first = {"functions": [FUNCTION], "pagination": {"next": "c-2"}}
    async with responding_in_sequence(first, {"functions": [other]}) as exchange:
        listing = exchange.neon.functions.list("p-1", "br-1", limit=1)
        assert [function.slug async for function in listing] == ["hello", "other"]
    assert [sent.query for sent in exchange.all_sent] == [
        {"limit": "1"},
        {"limit": "1", "cursor": "c-2"},
    ]


def parts_of(exchange: Exchange) -> dict[str, Message]:
    """Return the parts of the form that was sent, by name."""
    [request] = exchange.server.received
    assert (request.method, request.path) == ("POST", f"/api/v2{FUNCTIONS}/hello/deployments")
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    form = BytesParser(policy=HTTP).parsebytes(head + request.body)
    return {
        str(part.get_param("name", header="Content-Disposition")): part
        for part in form.iter_parts()
    }


def texts_of(exchange: Exchange) -> dict[str, object]:
    return {name: part.get_payload(decode=True) for name, part in parts_of(exchange).items()}


async def test_deployment_sends_each_argument_as_a_part() -> None:
    async with responding_with({"deployment": DEPLOYMENT}, 201) as exchange:
        await exchange.neon.functions.deploy(
            "p-1",
            "br-1",
            "hello",
            zip=b"PK\x03\x04 archive",
            environment={"MODE": "ü", "TOKEN": Secret("hunter2")},
            runtime="nodejs24",
        )
    assert texts_of(exchange) == {
        "runtime": b"nodejs24",
        "environment": '{"MODE":"ü","TOKEN":"hunter2"}'.encode(),
        "zip": b"PK\x03\x04 archive",
    }
    file = parts_of(exchange)["zip"]
    assert (file.get_filename(), file.get_content_type()) == ("function.zip", "application/zip")


async def test_deployment_of_settings_sends_no_archive() -> None:
    async with responding_with({"deployment": DEPLOYMENT}, 201) as exchange:
        result = await exchange.neon.functions.deploy(
            "p-1", "br-1", "hello", environment={"MODE": ""}
        )
    assert texts_of(exchange) == {"environment": b'{"MODE":""}'}
    assert result == decode(FunctionDeployment, DEPLOYMENT)


async def test_large_archive_is_read_from_its_file(tmp_path: Path) -> None:
    archive = bytes(range(256)) * 10_000
    await asyncio.to_thread((tmp_path / "hello.zip").write_bytes, archive)
    for path in (tmp_path / "hello.zip", str(tmp_path / "hello.zip")):
        async with responding_with({"deployment": DEPLOYMENT}, 201) as exchange:
            await exchange.neon.functions.deploy("p-1", "br-1", "hello", zip=path)
        assert texts_of(exchange) == {"zip": archive}


async def test_missing_archive_raises_before_the_request(tmp_path: Path) -> None:
    async with responding_with() as exchange:
        with pytest.raises(FileNotFoundError):
            await exchange.neon.functions.deploy("p-1", "br-1", "hello", zip=tmp_path / "no.zip")
    assert exchange.server.received == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"zip": io.BytesIO(b"PK")}, "zip is a BytesIO: expected bytes or the path of a file"),
        ({"environment": "TOKEN=hunter2"}, "environment is a str: expected a mapping"),
    ],
)
async def test_argument_of_another_type_raises_before_the_request(
    arguments: dict[str, Any], words: str
) -> None:
    async with responding_with() as exchange:
        with pytest.raises(TypeError, match=f"^{words}$"):
            await exchange.neon.functions.deploy("p-1", "br-1", "hello", **arguments)
    assert exchange.server.received == []
