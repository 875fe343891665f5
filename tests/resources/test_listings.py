"""Paginators of the client's list methods, over a real socket."""

import asyncio
from contextlib import aclosing
from urllib.parse import parse_qs, urlsplit

import pytest

from neonctl_async import (
    AuthenticationError,
    InvalidResponseError,
    NotFoundError,
)
from tests.support.records import PROJECT, branch_json, client_of, operation_json
from tests.support.server import (
    MisbehavingServer,
    Received,
    Respond,
    hang,
    http_response,
    in_sequence,
)


def query(request: Received) -> dict[str, list[str]]:
    return parse_qs(urlsplit(request.target).query, keep_blank_values=True)


def operations(*ids: str, **pagination: str) -> Respond:
    page = {"pagination": pagination} if pagination else {}
    return http_response(200, {"operations": [operation_json(id) for id in ids], **page})


def branches(*ids: str, **pagination: str) -> Respond:
    page = {"pagination": pagination} if pagination else {}
    return http_response(200, {"branches": [branch_json(id) for id in ids], **page})


CURSOR = "2022-12-09T08:47:52.20417Z+/=&?"


async def test_operations_are_paged_by_cursor() -> None:
    responses = in_sequence(
        operations("b", cursor=CURSOR), operations("a", cursor="2"), operations()
    )
    async with MisbehavingServer(responses) as server, client_of(server) as neon:
        found = [operation.id async for operation in neon.operations.list(PROJECT, limit=1)]
    assert found == ["b", "a"]
    assert [query(request) for request in server.received] == [
        {"limit": ["1"]},
        {"limit": ["1"], "cursor": [CURSOR]},
        {"limit": ["1"], "cursor": ["2"]},
    ]


async def test_branches_are_paged_by_next_in_the_same_order() -> None:
    responses = in_sequence(
        branches("br-1", next=CURSOR, sort_by="name", sort_order="asc"), branches("br-2")
    )
    async with MisbehavingServer(responses) as server, client_of(server) as neon:
        listing = neon.branches.list(PROJECT, sort_by="name", sort_order="asc")
        assert [branch.id for branch in await listing.collect()] == ["br-1", "br-2"]
    order = {"sort_by": ["name"], "sort_order": ["asc"]}
    assert [query(request) for request in server.received] == [
        order,
        {**order, "cursor": [CURSOR]},
    ]


@pytest.mark.parametrize(
    "end",
    [
        {},
        {"pagination": None},
        {"pagination": {}},
        {"pagination": {"cursor": None}},
        {"pagination": {"cursor": ""}},
        {"pagination": {"cursor": "1"}},
    ],
)
async def test_paging_stops_after_the_last_page(end: dict[str, object]) -> None:
    last = http_response(200, {"operations": [operation_json("a")], **end})
    responses = in_sequence(operations("b", cursor="1"), last)
    async with MisbehavingServer(responses) as server, client_of(server) as neon:
        found = await neon.operations.list(PROJECT).collect()
    assert [operation.id for operation in found] == ["b", "a"]
    assert len(server.received) == 2


async def test_client_works_after_a_listing_was_abandoned() -> None:
    prefetched = asyncio.Event()

    def respond(request: Received) -> Respond:
        if "cursor" not in query(request):
            return operations("b", cursor="1")
        prefetched.set()
        return hang

    async with MisbehavingServer(respond) as server, client_of(server) as neon:
        for _ in range(2):
            prefetched.clear()
            async with aclosing(neon.operations.list(PROJECT).pages()) as pages:
                assert [operation.id for operation in await anext(pages)] == ["b"]
                await prefetched.wait()
    assert len(server.received) == 4


async def test_collect_limit_saves_requests() -> None:
    responses = in_sequence(operations("c", "b", cursor="1"), operations("a"))
    async with MisbehavingServer(responses) as server, client_of(server) as neon:
        assert len(await neon.operations.list(PROJECT, limit=2).collect(2)) == 2
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (http_response(401, {"message": "revoked"}), AuthenticationError),
        (http_response(404, {"message": "gone"}), NotFoundError),
        (http_response(200, {"operations": "many"}), InvalidResponseError),
    ],
)
async def test_error_of_the_second_page_follows_the_first_page(
    failure: Respond, kind: type[Exception]
) -> None:
    seen: list[str] = []
    async with (
        MisbehavingServer(in_sequence(operations("b", cursor="1"), failure)) as server,
        client_of(server) as neon,
    ):
        with pytest.raises(kind):
            async for operation in neon.operations.list(PROJECT):
                seen += [operation.id]
    assert seen == ["b"]
